/* libc/segment: threads with TLS of their own that are switched to often get a segment descriptor
 * each, as many as there are; with or without a descriptor, each finds its own TLS, and so do the
 * last of more threads than there are descriptors. */
#include <errno.h>
#include <kochab/kochab.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/own_tls.h"
#include "libc/segment.h"
#include "test.h"

enum { FEW = 40, SWITCHES = 2 * KBI_SEGMENT_LOADS };

static __thread uint64_t mine;
static uint32_t with_descriptor, all_there;

/* The selector stays when a block without a descriptor is loaded behind a block that has it: so the
 * table is asked. */
static bool has_descriptor(void)
{
#if defined(SYS_modify_ldt)
	uint16_t (*table)[4] = calloc(KBI_SEGMENTS, sizeof *table);
	unsigned selector;
	uint32_t base;

	__asm__ volatile("movl %%fs, %0" : "=r"(selector));
	if (!selector || (uintptr_t)kbi_tp_get() >> 32)
		return false;
	CHECK(table && syscall(SYS_modify_ldt, 0, table, KBI_SEGMENTS * sizeof *table) > 0);
	base = table[selector >> 3][1] | (table[selector >> 3][2] & 0xffu) << 16 |
		(table[selector >> 3][3] & 0xff00u) << 16;
	free(table);
	return base == (uintptr_t)kbi_tp_get();
#else
	return false;
#endif
}

static void *switches(void *arg)
{
	uint64_t me = (uintptr_t)arg;

	CHECK_EQ(mine, 0);
	while (!__atomic_load_n(&all_there, __ATOMIC_RELAXED))
		kb_yield();
	for (unsigned i = 0; i < SWITCHES; i++) {
		mine = me + i;
		errno = (int)(me % 1000);
		kb_yield();
		CHECK_EQ(mine, me + i);
		CHECK_EQ(errno, me % 1000);
	}
	if (has_descriptor())
		__atomic_fetch_add(&with_descriptor, 1, __ATOMIC_RELAXED);
	return arg;
}

/* Returns how many of n threads had a descriptor in the end. */
static unsigned run(unsigned n)
{
	kb_thread_t *t = calloc(n, sizeof *t);
	kb_attr_t a;

	CHECK(t != NULL);
	with_descriptor = all_there = 0;
	kb_attr_init(&a);
	CHECK_EQ(kb_attr_settls(&a, KB_TLS_OWN), 0);
	CHECK_EQ(kb_attr_setstacksize(&a, 16384), 0);
	for (unsigned i = 0; i < n; i++)
		CHECK_EQ(kb_thread_create(&t[i], &a, switches, (void *)(uintptr_t)(i + 1)), 0);
	__atomic_store_n(&all_there, 1, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < n; i++)
		CHECK_EQ(kb_thread_join(t[i], NULL), 0);
	free(t);
	return with_descriptor;
}

/* The second run finds the descriptors at its beginning; in the third the later threads get the
 * descriptors that are left. */
static void with(void)
{
	CHECK(run(FEW) > 0);
	CHECK(run(FEW) > 0);
	run(TEST_THREADS(KBI_SEGMENTS + 500));
}

static void without(void)
{
	CHECK_EQ(run(FEW), 0);
}

static void in_child(const char *option, void (*act)(void))
{
	int status;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		setenv("KOCHAB_SEGMENTS", option, 1);
		CHECK_EQ(kb_init(), 0);
		if (own_tls_is_there())
			act();
		exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

static bool there_are_descriptors(void)
{
	const char *body = getenv("KOCHAB_BODY");
	bool there = KBI_HAVE_SEGMENTS;

#if defined(SYS_modify_ldt)
	there = there && syscall(SYS_modify_ldt, 0, NULL, 0) == 0;
#endif
	return there && !(body && !strcmp(body, "process"));
}

int main(void)
{
#if defined(__SANITIZE_ADDRESS__)
	SKIP("what is below 4 GiB is the sanitizer's");
#endif
	in_child("yes", there_are_descriptors() ? with : without);
	in_child("no", without);
	return 0;
}
