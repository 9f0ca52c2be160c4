/* bind_self.h - gives the caller an affinity of its own, and so a kernel thread of its own. */
#ifndef BIND_SELF_H
#define BIND_SELF_H

#include <pthread.h>
#include <sched.h>

#include "test.h"

static void bind_self(void)
{
	cpu_set_t here;
	int cpu = sched_getcpu();

	CPU_ZERO(&here);
	CPU_SET(cpu < 0 ? 0 : cpu, &here);
	CHECK_EQ(pthread_setaffinity_np(pthread_self(), sizeof here, &here), 0);
}

#endif
