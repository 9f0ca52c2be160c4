/* Options: a name, "=", a value, as in the environment. An accepted value is shown so that it is understood again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/option.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Of CPUS a value is the address of its text, or 0. */
static bool is_same(const struct kbi_option *o, uint64_t a, uint64_t b)
{
	if (o->type != KBI_OPTION_CPUS || !a || !b)
		return a == b;
	return strcmp((const char *)(uintptr_t)a, (const char *)(uintptr_t)b) == 0;
}

static void try_on(const struct kbi_option *o, const char *text)
{
	char shown[2048], allowed[256];
	uint64_t value, again;

	kbi_option_allowed(o, allowed, sizeof allowed);
	if (kbi_option_parse(o, text, &value))
		return;
	if (kbi_option_parse(o, kbi_option_show(o, value, shown, sizeof shown), &again) || !is_same(o, value, again))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	const struct kbi_option *o;
	size_t n;

	memcpy(text, data, size);
	text[size] = 0;
	n = strcspn(text, "=");
	o = kbi_option_find(text, n);
	if (o)
		try_on(o, text[n] ? text + n + 1 : "");
	for (o = kbi_option_table; o->name; o++)
		try_on(o, text);
	free(text);
	return 0;
}
