/* sched/table.c - the schedulers by name. Callers: core/boot, tests. */
#include "sched/sched.h"

#include <string.h>

const struct kbi_sched *const kbi_sched_table[] = {
	&kbi_sched_rotator,
	&kbi_sched_rotator_paper,
	&kbi_sched_lb2,
	&kbi_sched_steal,
	NULL,
};

const struct kbi_sched *kbi_sched_find(const char *name)
{
	for (unsigned i = 0; kbi_sched_table[i]; i++)
		if (!strcmp(kbi_sched_table[i]->name, name))
			return kbi_sched_table[i];
	return NULL;
}
