/* libc/intercept_wanted.c - contract in intercept_wanted.h.
 * The first call of kbi_intercept_wanted_table fills the table; the unit that intercepts the calls
 * makes it, alone. */
#include "libc/intercept_wanted.h"

#if defined(__x86_64__)

#include "libc/emulate_owned.h"
#include "os/newer.h"

/* The calls of libc/emulate_owned are wanted in addition. */
#define WANTED(CALL) \
	CALL(futex) CALL(getpid) CALL(getppid) CALL(tgkill) CALL(kill) CALL(rt_sigqueueinfo) \
	CALL(clone) CALL(clone3) CALL(fork) CALL(vfork) CALL(wait4) CALL(waitid) CALL(execve) \
	CALL(execveat) CALL(ptrace) CALL(mq_notify) CALL(alarm) CALL(setitimer) CALL(getitimer) \
	CALL(timer_create) CALL(timer_settime) CALL(timer_gettime) CALL(timer_getoverrun) \
	CALL(timer_delete) CALL(mmap) CALL(munmap) CALL(mprotect) CALL(mremap) CALL(madvise) CALL(brk) \
	CALL(shmat) CALL(shmdt) CALL(prlimit64) CALL(rt_sigaction) CALL(rt_sigprocmask) \
	CALL(rt_sigtimedwait) CALL(rt_sigsuspend) CALL(getrusage) CALL(times)

static const char *name_of(long nr)
{
	switch (nr) {
#define CALL(name) case SYS_##name: return #name;
	WANTED(CALL)
#undef CALL
	default:
		return NULL;
	}
}

const char *kbi_intercept_wanted_name(long nr)
{
	const char *name = name_of(nr);

	return name ? name : nr < 0 ? "a call of unknown number" : "another call";
}

bool kbi_intercept_wanted_is(long nr)
{
	return name_of(nr) || kbi_emulate_is_owned(nr);
}

const uint64_t *kbi_intercept_wanted_table(void)
{
	static uint64_t table[KBI_INTERCEPT_WANTED_MOST / 64];
	static bool filled;

	for (long nr = 0; nr < KBI_INTERCEPT_WANTED_MOST && !filled; nr++)
		if (kbi_intercept_wanted_is(nr))
			table[nr / 64] |= (uint64_t)1 << nr % 64;
	filled = true;
	return table;
}

bool kbi_intercept_wanted_makes_child(long nr)
{
	return nr == SYS_clone || nr == SYS_clone3 || nr == SYS_vfork || nr == SYS_fork;
}

/* Excludes also calls that a child of posix_spawn makes, because it has no handlers of the
 * program's any more when it sets its mask and executes a program: a breakpoint would end it. */
bool kbi_intercept_wanted_may_trap(long nr)
{
	return !kbi_intercept_wanted_makes_child(nr) && nr != SYS_rt_sigprocmask &&
		nr != SYS_rt_sigaction && nr != SYS_execve;
}

#else

const char *kbi_intercept_wanted_name(long nr)
{
	(void)nr;
	return "";
}

bool kbi_intercept_wanted_is(long nr)
{
	(void)nr;
	return false;
}

const uint64_t *kbi_intercept_wanted_table(void)
{
	return NULL;
}

bool kbi_intercept_wanted_makes_child(long nr)
{
	(void)nr;
	return false;
}

bool kbi_intercept_wanted_may_trap(long nr)
{
	(void)nr;
	return false;
}

#endif
