/* cast.h - the actors of a soak: threads of every kind, chosen at random, that check the conditions
 * of their kind in every scene: a bound thread is on its virtual processor; an own __thread
 * variable, errno and a key's value are the thread's own across every suspension. Callers:
 * scenes.h, mix.c. */
#ifndef KB_SOAK_CAST_H
#define KB_SOAK_CAST_H

#include <dirent.h>
#include <errno.h>
#include <kochab/kochab.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "test.h"

enum { US = 1000, MS = 1000000, MAX_ACTORS = 24 };

enum kind { LIGHT, OWN, BOUND, BOUND_OWN, SYSTEM, FOREIGN, KINDS };
static const char *const kind_names[KINDS] = { "light", "own TLS", "bound", "bound, own TLS", "system", "kernel" };

struct actor {
	/* set by cast_start */
	enum kind kind;
	int vp; /* bound to, or -1 */
	void (*act)(struct actor *);
	void *scene;
	unsigned number;
	uint64_t rand;
	/* threads */
	kb_thread_t kb;
	pthread_t pt;
	kb_sem_t done; /* FOREIGN: pthread_join would block a virtual processor that its thread needs */
};

static kb_key_t cast_key;
static uint64_t cast_keys_left; /* values whose destructor has not been called */
static uint64_t cast_started[KINDS];
static __thread uint64_t cast_own;

static inline uint64_t cast_rand(uint64_t *rand, uint64_t below)
{
	return (test_rand(rand) >> 16) % below;
}

static inline void cast_key_gone(void *value)
{
	CHECK(value != NULL);
	__atomic_sub_fetch(&cast_keys_left, 1, __ATOMIC_RELAXED);
}

/* Sets the actor's own mark in every thread-specific place. */
static inline void cast_mark(struct actor *a)
{
	CHECK_EQ(kb_setspecific(cast_key, a), 0);
	__atomic_add_fetch(&cast_keys_left, 1, __ATOMIC_RELAXED);
	if (a->kind == LIGHT || a->kind == BOUND)
		return;
	cast_own = (uint64_t)(uintptr_t)a;
	errno = (int)(a->number + 1000);
}

static inline void cast_check(const struct actor *a)
{
	CHECK(kb_getspecific(cast_key) == a);
	if (a->vp >= 0)
		CHECK_EQ(kb_vp_self(), a->vp);
	if (a->kind == LIGHT || a->kind == BOUND)
		return;
	CHECK(cast_own == (uint64_t)(uintptr_t)a);
	CHECK_EQ(errno, a->number + 1000);
}

static inline void *cast_main(void *arg)
{
	struct actor *a = arg;

	cast_mark(a);
	a->act(a);
	cast_check(a);
	if (a->kind == FOREIGN)
		kb_sem_post(&a->done);
	else if (cast_rand(&a->rand, 4) == 0)
		kb_thread_exit(a);
	return a;
}

static inline enum kind cast_choose(uint64_t *rand)
{
	static const unsigned char weight[KINDS] = { 45, 20, 15, 8, 4, 8 };
	unsigned r = (unsigned)cast_rand(rand, 100), k = 0;

	while (r >= weight[k])
		r -= weight[k++];
	return (enum kind)k;
}

static inline void cast_attr(kb_attr_t *attr, struct actor *a, uint64_t *rand)
{
	char name[KB_NAME_MAX];

	kb_attr_init(attr);
	snprintf(name, sizeof name, "%s %u", a->kind == OWN ? "own" : "actor", a->number % 10000);
	kb_attr_setname(attr, name);
	if (a->kind == OWN || a->kind == BOUND_OWN)
		kb_attr_settls(attr, KB_TLS_OWN);
	if (a->kind == SYSTEM)
		kb_attr_setscope(attr, KB_SCOPE_SYSTEM);
	else if (cast_rand(rand, 8) == 0)
		kb_attr_setstacksize(attr, 32768u << cast_rand(rand, 4));
	if (a->kind == BOUND || a->kind == BOUND_OWN) {
		a->vp = (int)cast_rand(rand, kb_vp_count());
		kb_attr_setvp(attr, a->vp);
	}
}

static inline int cast_create(struct actor *a, uint64_t *rand)
{
	kb_attr_t attr;

	a->vp = -1;
	if (a->kind == FOREIGN)
		return pthread_create(&a->pt, NULL, cast_main, a);
	cast_attr(&attr, a, rand);
	return kb_thread_create(&a->kb, &attr, cast_main, a);
}

static inline unsigned cast_kernel_threads(void)
{
	DIR *d = opendir("/proc/self/task");
	unsigned n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

/* Starts an actor; the fields `act`, `scene` and `number` are set. A busy machine may have no
 * kernel thread left: the actor then is a light thread, unless the soak itself has too many kernel
 * threads. */
static inline void cast_start(struct actor *a, enum kind kind, uint64_t *rand)
{
	int e;

	a->kind = kind;
	a->rand = test_rand(rand) | 1;
	e = cast_create(a, rand);
	if (e == EAGAIN && (kind == SYSTEM || kind == FOREIGN)) {
		CHECK(cast_kernel_threads() < 1000);
		a->kind = LIGHT;
		e = cast_create(a, rand);
	}
	CHECK_EQ(e, 0);
	__atomic_add_fetch(&cast_started[kind], 1, __ATOMIC_RELAXED);
}

static inline void cast_join(struct actor *a)
{
	void *result;

	if (a->kind == FOREIGN) {
		CHECK_EQ(kb_sem_wait(&a->done), 0);
		CHECK_EQ(pthread_join(a->pt, &result), 0);
	} else {
		CHECK_EQ(kb_thread_join(a->kb, &result), 0);
	}
	CHECK(result == a);
}

/* Starts and joins n actors of a scene, of kinds chosen at random. */
static inline void cast_play(unsigned n, void (*act)(struct actor *), void *scene, uint64_t *rand)
{
	struct actor *all = calloc(n, sizeof *all);

	CHECK(all != NULL);
	for (unsigned i = 0; i < n; i++) {
		all[i].act = act;
		all[i].scene = scene;
		all[i].number = i;
		cast_start(&all[i], cast_choose(rand), rand);
	}
	for (unsigned i = 0; i < n; i++)
		cast_join(&all[i]);
	free(all);
}

/* Pauses now and then in some way, so that events meet in ever new ways. */
static inline void cast_pause(struct actor *a)
{
	switch (cast_rand(&a->rand, 16)) {
	case 0:
		kb_sleep(cast_rand(&a->rand, 300 * US));
		break;
	case 1:
	case 2:
	case 3:
		kb_yield();
		break;
	case 4:
		for (unsigned i = (unsigned)cast_rand(&a->rand, 20000); i > 0; i--)
			__asm__ volatile("");
		break;
	default:
		break;
	}
	cast_check(a);
}

#endif
