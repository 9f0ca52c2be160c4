/* bind_self.h - the caller has an affinity of its own from here on, and so a kernel thread. */
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
