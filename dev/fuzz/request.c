/* Requests to kvstore: at once or byte by byte they are the same requests, and arguments lie within the buffer. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "resp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 256 };

struct seen {
	enum resp_result result;
	size_t requests, arguments, bytes;
};

/* The buffer as a client's: a request that is complete is taken away. step: bytes that come at a time. */
static struct seen read_all(const uint8_t *data, size_t size, size_t step)
{
	struct seen s = { .result = RESP_MORE };
	char *copy = malloc(size + 1);
	size_t from = 0, have = 0;
	struct resp r;

	memcpy(copy, data, size);
	resp_init(&r);
	while (s.result != RESP_ERROR && (have < size || s.result == RESP_COMPLETE)) {
		if (s.result != RESP_COMPLETE)
			have = size - have < step ? size : have + step;
		s.result = resp_parse(&r, copy + from, have - from);
		if (s.result != RESP_COMPLETE)
			continue;
		for (size_t i = 0; i < r.count; i++) {
			if (r.args[i].data < copy + from || r.args[i].data + r.args[i].size > copy + have)
				abort();
			s.bytes += r.args[i].size;
		}
		s.requests++;
		s.arguments += r.count;
		from += r.at;
		resp_next(&r);
		if (from == have && have == size)
			s.result = RESP_MORE;
		if (from > have)
			abort();
	}
	resp_release(&r);
	free(copy);
	return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seen once, bit;

	if (size > MOST * 16)
		return 0;
	once = read_all(data, size, size + 1);
	bit = read_all(data, size, 1);
	if (once.result != bit.result || once.requests != bit.requests || once.arguments != bit.arguments ||
	    once.bytes != bit.bytes)
		abort();
	return 0;
}
