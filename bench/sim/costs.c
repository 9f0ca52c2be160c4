/* bench/sim/costs.c - the cost table: lines "name<TAB>value", # starts a comment. Contract in
 * machine.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine.h"

static const struct {
	const char *name;
	uint64_t *value;
} rows[] = {
#define ROW(name) { #name, &sim_costs.name },
	SIM_COSTS(ROW)
#undef ROW
};

enum { ROWS = sizeof rows / sizeof *rows };

static int set(const char *name, const char *text, bool seen[])
{
	char *end;
	double v = strtod(text, &end);

	for (unsigned i = 0; i < ROWS; i++) {
		if (strcmp(rows[i].name, name) != 0)
			continue;
		if (end == text || v < 0 || v > 1e9) {
			fprintf(stderr, "sim: the cost '%s' is no number: %s\n", name, text);
			return EINVAL;
		}
		*rows[i].value = (uint64_t)(v * 1000 + 0.5);
		seen[i] = true;
		return 0;
	}
	fprintf(stderr, "sim: there is no cost '%s'\n", name);
	return EINVAL;
}

static int check(const char *path, const bool seen[])
{
	for (unsigned i = 0; i < ROWS; i++)
		if (!seen[i]) {
			fprintf(stderr, "sim: %s says nothing about '%s'\n", path, rows[i].name);
			return EINVAL;
		}
	if (sim_costs.smt_size < 1000 || sim_costs.cluster_size < 1000 ||
		sim_costs.socket_size < 1000) {
		fprintf(stderr, "sim: %s: a size is less than 1\n", path);
		return EINVAL;
	}
	return 0;
}

int sim_costs_load(const char *path)
{
	char line[256], name[64], value[64];
	bool seen[ROWS] = { false };
	FILE *f = fopen(path, "r");
	int e = 0;

	if (!f) {
		fprintf(stderr, "sim: %s: %s\n", path, strerror(errno));
		return EINVAL;
	}
	while (!e && fgets(line, sizeof line, f)) {
		line[strcspn(line, "#\n")] = 0;
		if (sscanf(line, "%63s %63s", name, value) == 2)
			e = set(name, value, seen);
	}
	fclose(f);
	return e ? e : check(path, seen);
}

int sim_costs_set(const char *setting)
{
	char name[64];
	bool seen[ROWS];
	const char *is = strchr(setting, '=');

	if (!is || (size_t)(is - setting) >= sizeof name) {
		fprintf(stderr, "sim: a cost is name=value, not %s\n", setting);
		return EINVAL;
	}
	memcpy(name, setting, (size_t)(is - setting));
	name[is - setting] = 0;
	return set(name, is + 1, seen);
}
