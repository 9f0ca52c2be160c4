/* libc/intercept_patch, libc/intercept_sud: liburing makes its system calls by instructions of its
 * own. Where virtual processors are processes a ring that any of them has set up lies in all. */
#include "crowd.h"

#include <dlfcn.h>
#include <stdint.h>
#include <unistd.h>

enum { THREADS = 6, ROUNDS = 20, ENTRIES = 8, RING_ENTRIES = 3 /* the place of its pointer in struct io_uring */ };

static union {
	uint32_t *pointer[512];
} ring[2];

static int (*init)(unsigned entries, void *ring, unsigned flags);
static void (*leave)(void *ring);

static void *sets_up(void *arg)
{
	int e = init(ENTRIES, &ring[(long)arg], 0);

	CHECK_EQ(e, 0);
	return arg;
}

static void *reads(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		for (int k = 0; k < 2; k++)
			CHECK_EQ(*ring[k].pointer[RING_ENTRIES], ENTRIES);
		usleep(300);
	}
	return arg;
}

static void *leaves(void *arg)
{
	leave(&ring[(long)arg]);
	return arg;
}

int main(void)
{
	void *library = dlopen("liburing.so.2", RTLD_NOW);

	if (!library)
		SKIP("no liburing.so.2");
	*(void **)&init = dlsym(library, "io_uring_queue_init");
	*(void **)&leave = dlsym(library, "io_uring_queue_exit");
	CHECK(init && leave);
	if (init(ENTRIES, &ring[0], 0))
		SKIP("no rings of io_uring here");
	leave(&ring[0]);
	for (int i = 0; i < 3; i++) {
		crowd_run(sets_up, 2);
		crowd_run(reads, THREADS);
		crowd_run(leaves, 2);
	}
	return 0;
}
