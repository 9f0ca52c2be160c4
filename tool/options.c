/* tool/options.c - `kochab options`: the table of base/option.def with values as they are now, the
 * options of users and operators first; those of the laboratory only with --all. */
#include <stdio.h>
#include <string.h>

#include "base/option.h"
#include "tool.h"

const char *tool_tier_heading(unsigned tier)
{
	static const char *const heading[KBI_TIERS] = {
		[KBI_TIER_USER] = "For the user of a program",
		[KBI_TIER_OPERATOR] = "For the operator of a service",
		[KBI_TIER_LABORATORY] = "For the laboratory: experiments and measurements",
	};

	return heading[tier];
}

static const char *tier_name(enum kbi_option_tier tier)
{
	static const char *const name[KBI_TIERS] = {
		[KBI_TIER_USER] = "user",
		[KBI_TIER_OPERATOR] = "operator",
		[KBI_TIER_LABORATORY] = "laboratory",
	};

	return name[tier];
}

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

	printf("{\"name\": \"%s\", \"tier\": \"%s\", \"variable\": \"%s\", \"value\": ", o->name,
	       tier_name(o->tier), o->env);
	tool_json_string(kbi_option_show(o, kbi_option_get(o), now, sizeof(now)));
	printf(", \"default\": ");
	tool_json_string(kbi_option_show(o, o->def, def, sizeof(def)));
	printf(", \"allowed\": ");
	tool_json_string(kbi_option_allowed(o, allowed, sizeof(allowed)));
	printf(", \"help\": ");
	tool_json_string(o->help);
	printf("}\n");
}

/* Prints the options of a tier, as text under its heading. */
static void print_tier(unsigned tier, bool json)
{
	if (!json)
		printf("%s%s:\n\n", tier == KBI_TIER_USER ? "" : "\n", tool_tier_heading(tier));
	for (const struct kbi_option *o = kbi_option_table; o->name != NULL; o++) {
		if (o->tier == tier)
			(json ? print_json : print_text)(o);
	}
}

/* Says how to see the options that are not listed, or only those that are for everybody. */
static void print_foot(bool all)
{
	unsigned hidden = 0;

	for (const struct kbi_option *o = kbi_option_table; o->name != NULL; o++)
		hidden += o->tier == KBI_TIER_LABORATORY;
	if (all)
		printf("\nThese are all; 'kochab options' leaves out the %u of the laboratory.\n", hidden);
	else
		printf("\n%u more are for the laboratory: 'kochab options --all' shows them, too.\n",
		       hidden);
}

static void print_options_usage(void)
{
	printf("usage: kochab options [--all] [--json]\n\n"
	       "Lists the options of users and operators: environment variable, value now, default, "
	       "and\nwhat is allowed. All options are options of 'kochab run' as well.\n\n"
	       "  --all    list the options of the laboratory, too (experiments and measurements)\n"
	       "  --json   all options, one object a line, with its tier\n");
}

int tool_options(int argc, char **argv)
{
	bool json = false, all = false;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			print_options_usage();
			return TOOL_OK;
		}
		if (strcmp(argv[i], "--all") == 0) {
			all = true;
		} else if (strcmp(argv[i], "--json") == 0) {
			json = true;
		} else {
			tool_say("options: %s: no such argument; usage: kochab options [--all] [--json]",
				argv[i]);
			return TOOL_USAGE;
		}
	}
	if (kbi_option_load() != 0)
		return TOOL_USAGE;
	for (unsigned tier = 0; tier < (all || json ? KBI_TIERS : KBI_TIER_LABORATORY); tier++)
		print_tier(tier, json);
	if (!json)
		print_foot(all);
	return TOOL_OK;
}
