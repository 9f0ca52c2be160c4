/* bench/crew.c - parked threads, used by the memory and the idle question. All wait on a single
 * semaphore, so that only the thread itself is counted. */
#include <semaphore.h>
#include <stdlib.h>
#include <time.h>

#include "crew.h"

struct crew_park {
	struct crew_attr attr;
	kb_sem_t kb_gate;
	sem_t gate;
	unsigned inside, count;
	uintptr_t *threads;
};

static void *kb_parked(void *arg)
{
	struct crew_park *p = arg;

	__atomic_add_fetch(&p->inside, 1, __ATOMIC_RELEASE); /* with crew_park's load */
	kb_sem_wait(&p->kb_gate);
	return NULL;
}

static void *posix_parked(void *arg)
{
	struct crew_park *p = arg;

	__atomic_add_fetch(&p->inside, 1, __ATOMIC_RELEASE); /* with crew_park's load */
	while (sem_wait(&p->gate))
		; /* EINTR */
	return NULL;
}

static void let_run(enum crew kind)
{
	if (kind == CREW_PTHREAD)
		sched_yield();
	else
		kb_yield();
}

void crew_sleep(enum crew kind, double seconds)
{
	struct timespec t = { (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) };

	if (kind == CREW_PTHREAD)
		nanosleep(&t, NULL);
	else
		kb_sleep((uint64_t)(seconds * 1e9));
}

struct crew_park *crew_park(enum crew kind, const struct bench_case *c, unsigned *made, int *error)
{
	struct crew_park *p = bench_alloc(1, sizeof *p);

	p->threads = bench_alloc(c->threads, sizeof *p->threads);
	crew_start(&p->attr, kind, c);
	kb_sem_init(&p->kb_gate, 0);
	sem_init(&p->gate, 0, 0);
	for (*error = 0; p->count < c->threads && !*error; p->count += !*error)
		*error = crew_try_create(&p->attr, kind, &p->threads[p->count],
			kind == CREW_PTHREAD ? posix_parked : kb_parked, p);
	*made = p->count;
	while (__atomic_load_n(&p->inside, __ATOMIC_ACQUIRE) < p->count) /* with the parked threads' add */
		let_run(kind);
	crew_sleep(kind, 0.1);
	return p;
}

void crew_unpark(struct crew_park *p)
{
	for (unsigned i = 0; i < p->count; i++)
		if (p->attr.kind == CREW_PTHREAD)
			sem_post(&p->gate);
		else
			kb_sem_post(&p->kb_gate);
	for (unsigned i = 0; i < p->count; i++)
		crew_join(p->attr.kind, p->threads[i], NULL);
	free(p->threads);
	free(p);
}
