/* Text made harmless: on a terminal no controls and within its room; as JSON a single string; in a page no markup. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_terminal(const char *text, size_t most, size_t room)
{
	char *to = malloc(room);
	size_t n = strlen(tool_plain(to, room, text, most));

	if (n >= room)
		abort();
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)to[i] < 0x20 || to[i] == 0x7f)
			abort();
	free(to);
}

static void check_json(const char *s, size_t n)
{
	if (n < 2 || s[0] != '"' || s[n - 1] != '"')
		abort();
	for (size_t i = 1; i + 1 < n; i++) {
		if ((unsigned char)s[i] < 0x20 || s[i] == '"')
			abort();
		if (s[i] == '\\' && !strchr("\"\\u", s[++i]))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), *json = NULL, *html = NULL;
	size_t n, m;
	FILE *f;

	memcpy(text, data, size);
	text[size] = 0;
	check_terminal(text, size, 4 * size + 5);
	check_terminal(text, size / 2, size / 2 + 5);
	f = open_memstream(&json, &n);
	tool_json(f, text);
	fclose(f);
	check_json(json, n);
	f = open_memstream(&html, &m);
	tool_html(f, text);
	fclose(f);
	if (strpbrk(html, "<>\"'"))
		abort();
	free(text);
	free(json);
	free(html);
	return 0;
}
