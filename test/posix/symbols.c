/* posix/symbol: code that looks a thread function up (by dlsym, by dlvsym with libc's version, from
 * the program's own handle, as the next function behind a wrapper) gets the function that the
 * linker has bound, and it works. Condition variables of two implementations on one mutex would not
 * work. A function that is no thread function is libc's. */
#define _GNU_SOURCE
#include "libc_age.h"
#include "crowd.h"

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>

enum { TURNS = 200 };

static const char *const versions[] = { "GLIBC_2.34", "GLIBC_2.36", "GLIBC_2.3.2", "GLIBC_2.3.3",
	"GLIBC_2.2.5", "GLIBC_2.17", "GLIBC_2.27", "GLIBC_2.2", "GLIBC_2.1", "GLIBC_2.0" };

/* dlvsym's answer for the version that dlsym's answer has, or for the first version that it knows. */
static void *versioned(void *handle, const char *name)
{
	void *plain = dlsym(RTLD_DEFAULT, name), *first = NULL;

	for (size_t i = 0; i < sizeof(versions) / sizeof(*versions); i++) {
		void *p = dlvsym(handle, name, versions[i]);

		if (p == plain)
			return p;
		if (p && !first)
			first = p;
	}
	return first;
}

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int turn;
static int (*wait_fn)(pthread_cond_t *, pthread_mutex_t *);
static int (*wake_fn)(pthread_cond_t *);

static void *player(void *arg)
{
	int me = (int)(intptr_t)arg;

	for (int i = 0; i < TURNS; i++) {
		pthread_mutex_lock(&m);
		while (turn % 3 != me)
			wait_fn(&c, &m);
		turn++;
		wake_fn(&c);
		pthread_mutex_unlock(&m);
	}
	return NULL;
}

static void play(void)
{
	turn = 0;
	crowd_run(player, 3);
	CHECK_EQ(turn, 3 * TURNS);
}

#define SAME(name) \
	do { \
		CHECK(dlsym(RTLD_DEFAULT, #name) == (void *)(uintptr_t)name); \
		CHECK(dlsym(dlopen(NULL, RTLD_NOW), #name) == (void *)(uintptr_t)name); \
		CHECK(versioned(RTLD_DEFAULT, #name) == (void *)(uintptr_t)name); \
		CHECK(versioned(RTLD_NEXT, #name) == (void *)(uintptr_t)name); \
	} while (0)

int main(void)
{
	SAME(pthread_create);
	SAME(pthread_cond_wait);
	SAME(pthread_cond_signal);
	SAME(pthread_cond_broadcast);
	SAME(pthread_mutex_lock);
	SAME(pthread_rwlock_wrlock);
	SAME(pthread_join);
	SAME(sem_wait);
	SAME(pthread_self);
	SAME(malloc);
	/* libc before 2.36: the oldest version, whose condition variables have another form (BZ 14932) */
	if (!under_kochab() && libc_is_before("2.36") &&
	    dlsym(RTLD_NEXT, "pthread_cond_wait") != (void *)(uintptr_t)pthread_cond_wait)
		SKIP("this libc finds its oldest pthread_cond_wait behind a wrapper");
	CHECK(!dlvsym(RTLD_DEFAULT, "no_such_function", "GLIBC_2.34"));
	CHECK(dlerror());
	wait_fn = (int (*)(pthread_cond_t *, pthread_mutex_t *))(uintptr_t)versioned(
		RTLD_DEFAULT, "pthread_cond_wait");
	wake_fn = (int (*)(pthread_cond_t *))(uintptr_t)dlsym(RTLD_DEFAULT, "pthread_cond_broadcast");
	play();
	wait_fn = (int (*)(pthread_cond_t *, pthread_mutex_t *))(uintptr_t)dlsym(
		RTLD_NEXT, "pthread_cond_wait");
	wake_fn = (int (*)(pthread_cond_t *))(uintptr_t)versioned(RTLD_NEXT, "pthread_cond_broadcast");
	play();
	return 0;
}
