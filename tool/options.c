/* tool/options.c - `kochab options`: the table of base/option.def with values as they are now. */
#include <stdio.h>
#include <string.h>

#include "base/option.h"
#include "tool.h"

static void print_text(const struct kbi_option *o)
{
	char now[64], def[64], allowed[128];

	kbi_option_show(o, kbi_option_get(o), now, sizeof(now));
	kbi_option_show(o, o->def, def, sizeof(def));
	printf("%-20s %-14s default %-10s allowed %s\n    %s\n", o->env, now, def,
	       kbi_option_allowed(o, allowed, sizeof(allowed)), o->help);
}

static void print_json(const struct kbi_option *o)
{
	char now[64], def[64], allowed[128];

	printf("{\"name\": \"%s\", \"variable\": \"%s\", \"value\": ", o->name, o->env);
	tool_json_string(kbi_option_show(o, kbi_option_get(o), now, sizeof(now)));
	printf(", \"default\": ");
	tool_json_string(kbi_option_show(o, o->def, def, sizeof(def)));
	printf(", \"allowed\": ");
	tool_json_string(kbi_option_allowed(o, allowed, sizeof(allowed)));
	printf(", \"help\": ");
	tool_json_string(o->help);
	printf("}\n");
}

int tool_options(int argc, char **argv)
{
	bool json = false;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			printf("usage: kochab options [--json]\n\n"
			       "Lists every knob: its environment variable, value now, default and what it may "
			       "be.\n"
			       "The same knobs are options of 'kochab run'. --json: one object a line.\n");
			return TOOL_OK;
		}
		if (strcmp(argv[i], "--json") != 0) {
			tool_say("options: %s: no such argument; usage: kochab options [--json]", argv[i]);
			return TOOL_USAGE;
		}
		json = true;
	}
	if (kbi_option_load() != 0)
		return TOOL_USAGE;
	for (const struct kbi_option *o = kbi_option_table; o->name != NULL; o++)
		(json ? print_json : print_text)(o);
	return TOOL_OK;
}
