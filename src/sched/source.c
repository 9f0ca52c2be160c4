/* sched/source.c - the source of events. Contract in source.h. */
#include "sched/source.h"

struct kbi_source kbi_source;
