/* State that exists once for the process and has a lock: the sequences of random numbers lose no
 * number and give no number twice, a hash table takes entries from several threads, the environment
 * is read while further threads write it. In plain runs only the guarantees of glibc are tested:
 * its random number generators, tables and environment are not made for threads. */
#include "crowd.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <search.h>
#include <string.h>

enum { THREADS = 4, NUMBERS = 100000, ENTRIES = 500, ROUNDS = 300 };

static void each(void *(*fn)(void *))
{
	crowd_run(fn, THREADS);
}

/* ---- random numbers: together the threads draw what one would have drawn --------------------- */

static long drawn[THREADS][NUMBERS], expected[THREADS * NUMBERS];

static long from_rand(void) { return rand(); }
static long from_lrand48(void) { return lrand48(); }
static long from_mrand48(void) { return mrand48(); }
static long from_drand48(void) { return (long)(drand48() * 281474976710656.0); }

static long (*draw)(void);

static void *draw_many(void *arg)
{
	for (int i = 0; i < NUMBERS; i++) {
		drawn[(long)arg][i] = draw();
		if (i % 1000 == 0)
			sched_yield();
	}
	return NULL;
}

static int compare(const void *a, const void *b)
{
	long x = *(const long *)a, y = *(const long *)b;

	return (x > y) - (x < y);
}

static void sequence(const char *name, long (*fn)(void))
{
	draw = fn;
	srand(5);
	srand48(5);
	for (int i = 0; i < THREADS * NUMBERS; i++)
		expected[i] = draw();
	srand(5);
	srand48(5);
	each(draw_many);
	qsort(expected, THREADS * NUMBERS, sizeof(long), compare);
	qsort(drawn, THREADS * NUMBERS, sizeof(long), compare);
	if (memcmp(expected, drawn, sizeof(expected)) != 0)
		printf("%s: numbers lost or given twice\n", name);
	CHECK(memcmp(expected, drawn, sizeof(expected)) == 0);
}

/* ---- one hash table -------------------------------------------------------------------------- */

static char keys[THREADS][ENTRIES][16];

static void *enter(void *arg)
{
	long me = (long)arg;

	for (int i = 0; i < ENTRIES; i++) {
		snprintf(keys[me][i], sizeof(keys[me][i]), "%ld/%d", me, i);
		CHECK(hsearch((ENTRY){ keys[me][i], &keys[me][i] }, ENTER) != NULL);
		if (i % 10 == 0)
			sched_yield();
	}
	return NULL;
}

static void *find(void *arg)
{
	for (int i = 0; i < ENTRIES; i++) {
		char *key = keys[((long)arg + 1) % THREADS][i];
		ENTRY *e = hsearch((ENTRY){ key, NULL }, FIND);

		CHECK(e != NULL && e->data == key);
	}
	return NULL;
}

static void table(void)
{
	CHECK(hcreate(THREADS * ENTRIES * 2) != 0);
	each(enter);
	each(find);
	hdestroy();
}

/* ---- the environment ------------------------------------------------------------------------- */

static void *change(void *arg)
{
	long me = (long)arg;
	char name[32], value[32];

	for (int i = 0; i < ROUNDS; i++) {
		snprintf(name, sizeof(name), "UNSAFE_%ld_%d", me, i);
		snprintf(value, sizeof(value), "%ld", me * ROUNDS + i);
		CHECK_EQ(setenv(name, value, 1), 0);
		CHECK(getenv("KEPT") != NULL && strcmp(getenv("KEPT"), "as it was") == 0);
		CHECK(getenv(name) != NULL && strcmp(getenv(name), value) == 0);
		if (i % 2)
			CHECK_EQ(unsetenv(name), 0);
		if (i % 50 == 0)
			sched_yield();
	}
	return NULL;
}

static void environment(void)
{
	int left = 0;
	extern char **environ;

	CHECK_EQ(setenv("KEPT", "as it was", 1), 0);
	each(change);
	for (char **e = environ; *e; e++)
		left += strncmp(*e, "UNSAFE_", 7) == 0;
	CHECK_EQ(left, THREADS * ROUNDS / 2);
}

int main(void)
{
	sequence("rand", from_rand);
	if (!dlsym(RTLD_DEFAULT, "kb_thread_self") && !getenv("TEST_UNSAFE_ALL"))
		return 0;
	sequence("lrand48", from_lrand48);
	sequence("mrand48", from_mrand48);
	sequence("drand48", from_drand48);
	table();
	environment();
	return 0;
}
