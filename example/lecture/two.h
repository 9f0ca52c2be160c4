/* example/lecture/two.h - what the programs of this folder share: two threads that run fn(0) and fn(1). */
#ifndef LECTURE_TWO_H
#define LECTURE_TWO_H

#include <kochab/kochab.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Together on one virtual processor, where a thread runs until it waits or yields, so that the order of
 * steps is ours to choose; or each on its own, as far as there are two. */
enum where { TOGETHER, APART };

static inline void two(void *(*fn)(void *), enum where where)
{
	kb_thread_t t[2];
	kb_attr_t attr;

	for (int i = 0; i < 2; i++) {
		kb_attr_init(&attr);
		kb_attr_settls(&attr, KB_TLS_OWN); /* stdio knows the owner of a stream by it */
		kb_attr_setvp(&attr, where == APART ? i % (int)kb_vp_count() : 0);
		if (kb_thread_create(&t[i], &attr, fn, (void *)(long)i) == 0)
			continue;
		kb_attr_settls(&attr, KB_TLS_LIGHT); /* not every libc has the other kind */
		if (kb_thread_create(&t[i], &attr, fn, (void *)(long)i) != 0)
			abort();
	}
	for (int i = 0; i < 2; i++)
		kb_thread_join(t[i], NULL);
}

#endif
