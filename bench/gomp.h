/* bench/gomp.h - libgomp's entries, which gcc calls for OpenMP's directives: so no compiler for
 * them is needed. Included by omp.c and mpi/halo.c. */
#ifndef BENCH_GOMP_H
#define BENCH_GOMP_H

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

struct gomp {
	void (*parallel)(void (*fn)(void *), void *data, unsigned threads, unsigned flags);
	void (*barrier)(void);
	void (*critical_start)(void);
	void (*critical_end)(void);
	int (*thread)(void);
	int (*team)(void);
	void (*levels)(int);
	void (*dynamic)(int);
};

/* Returns NULL, or the name of a missing entry. */
static inline const char *gomp_load(struct gomp *g)
{
	static const struct {
		const char *name;
		size_t at;
	} entries[] = {
		{ "GOMP_parallel", offsetof(struct gomp, parallel) },
		{ "GOMP_barrier", offsetof(struct gomp, barrier) },
		{ "GOMP_critical_start", offsetof(struct gomp, critical_start) },
		{ "GOMP_critical_end", offsetof(struct gomp, critical_end) },
		{ "omp_get_thread_num", offsetof(struct gomp, thread) },
		{ "omp_get_num_threads", offsetof(struct gomp, team) },
		{ "omp_set_max_active_levels", offsetof(struct gomp, levels) },
		{ "omp_set_dynamic", offsetof(struct gomp, dynamic) },
	};
	void *library = dlopen("libgomp.so.1", RTLD_NOW);

	if (!library)
		return "libgomp.so.1";
	for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
		void *p = dlsym(library, entries[i].name);

		if (!p)
			return entries[i].name;
		memcpy((char *)g + entries[i].at, &p, sizeof p);
	}
	return NULL;
}

#endif
