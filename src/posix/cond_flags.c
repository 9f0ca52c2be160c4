/* posix/cond_flags.c - finds the flag word of libc's condition variables: at byte 36 up to glibc
 * 2.40, at byte 28 from 2.41 on. The libc that runs may be newer than the libc of the build, so it
 * is asked. Contract in posix.h. Runs in the constructor. Never switches. */
#include "posix/posix.h"

#include <string.h>

#include "sync/cond.h"

enum { FIRST = KBI_COND_FLAGS_UNKNOWN };
_Static_assert(FIRST == offsetof(kb_cond_t, reserved), "0 in all of ours");
_Static_assert(FIRST <= offsetof(pthread_cond_t, __data.__wrefs), "libc's flags stay clear");

uint32_t kbi_cond_flags_at = offsetof(pthread_cond_t, __data.__wrefs);

void kbi_cond_learn(void)
{
	pthread_cond_t c;
	pthread_condattr_t a;
	uint32_t word, found = FIRST;

	memset(&c, 0, sizeof c);
	pthread_condattr_init(&a);
	pthread_condattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
	pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
	kbi_libc()->pthread_cond_init(&c, &a);
	for (uint32_t at = FIRST; at + sizeof word <= sizeof c; at += sizeof word) {
		memcpy(&word, (char *)&c + at, sizeof word);
		if (word == (KBI_COND_SHARED | KBI_COND_MONOTONIC))
			found = at;
	}
	kbi_cond_flags_at = found;
}
