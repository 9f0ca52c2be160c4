/* posix/attr.c - the contention scope of thread attributes. All other attributes are data that libc
 * keeps. libc refuses PTHREAD_SCOPE_PROCESS. Here that scope means a lightweight thread. The scope
 * is kept in bits of libc's flags word that libc does not use; the place of that word is checked
 * once. Option `scope` decides whether the system scope means a kernel thread (doc/why/scope.md).
 * In a program that is not linked with Kochab it has no effect by default: then attributes without
 * an explicit scope report PTHREAD_SCOPE_SYSTEM, as in libc; otherwise they report
 * PTHREAD_SCOPE_PROCESS. kbi_attr_has_more also tells whether attributes hold processors or a
 * signal mask.
 * Callers: posix/thread, programs. No locks, never switches. */
#include "posix/posix.h"

#include "base/option.h"
#include "libc/asked.h"
#include "libc/module.h"

#include <string.h>

/* Layout of libc's struct pthread_attr: sched_param, policy, flags. */
enum { FLAGS_AT = 8, FLAG_DETACHED = 1, FLAG_LIBCS_PROCESS = 4, FLAG_PROCESS = 0x20000000,
	FLAG_SYSTEM = 0x40000000 };

static int *attr_flags(const pthread_attr_t *attr)
{
	return (int *)(void *)((char *)(uintptr_t)attr + FLAGS_AT);
}

static a32 known; /* 0: not checked, 1: yes, 2: no; every check has the same result */

/* Tests whether pthread_attr_setdetachstate changes the bit that we take for the first flag. */
static KBI_NOINLINE bool check_attr_layout(void)
{
	const char *what = "attributes' flags";
	pthread_attr_t a;
	int before, after;

	if (a_load_rlx(&known))
		return a_load_rlx(&known) == 1;
	if (pthread_attr_init(&a))
		return false;
	before = *attr_flags(&a);
	pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED);
	after = *attr_flags(&a);
	pthread_attr_destroy(&a);
	a_store_rlx(&known, before == 0 && after == FLAG_DETACHED ? 1 : 2);
	if (a_load_rlx(&known) == 1)
		kbi_asked_found(what, "at byte %d", FLAGS_AT);
	else
		kbi_asked_missed(what, "not as expected: no scope can be asked for");
	return a_load_rlx(&known) == 1;
}

static inline bool is_layout_known(void)
{
	return kbi_likely(a_load_rlx(&known) == 1) || check_attr_layout();
}

bool kbi_attr_is_system(const pthread_attr_t *attr)
{
	return is_layout_known() && (*attr_flags(attr) & FLAG_SYSTEM);
}

bool kbi_attr_is_process(const pthread_attr_t *attr)
{
	return is_layout_known() && (*attr_flags(attr) & FLAG_PROCESS);
}

/* ---- rare attributes ------------------------------------------------------------------------- */

/* libc keeps processors and a signal mask behind a pointer. more_at: offset of that pointer in
 * words; WORDS and above: unknown. */
enum { WORDS = sizeof(pthread_attr_t) / sizeof(uintptr_t), UNKNOWN = WORDS, NOT_LOOKED };
static a32 more_at = { NOT_LOOKED };
int pthread_attr_setsigmask_np(pthread_attr_t *attr, const sigset_t *mask) __attribute__((weak));

static uintptr_t attr_word(const pthread_attr_t *attr, unsigned i)
{
	uintptr_t word;

	memcpy(&word, (const char *)attr + i * sizeof word, sizeof word);
	return word;
}

static bool give_processors(pthread_attr_t *a)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	return pthread_attr_setaffinity_np(a, sizeof set, &set) == 0;
}

static bool give_mask(pthread_attr_t *a)
{
	sigset_t set;

	sigemptyset(&set);
	return pthread_attr_setsigmask_np(a, &set) == 0;
}

/* Returns the index of the first word that is 0 in fresh attributes and is not 0 after give();
 * UNKNOWN: none. */
static unsigned find_pointer_word(bool (*give)(pthread_attr_t *))
{
	unsigned at = UNKNOWN;
	pthread_attr_t fresh, a;

	if (pthread_attr_init(&a))
		return UNKNOWN;
	fresh = a;
	if (give(&a))
		for (unsigned w = WORDS; w-- > 0;)
			if (!attr_word(&fresh, w) && attr_word(&a, w))
				at = w;
	pthread_attr_destroy(&a);
	return at;
}

static KBI_NOINLINE unsigned find_extension(void)
{
	const char *what = "attributes' extension";
	unsigned at = find_pointer_word(give_processors);

	if (pthread_attr_setsigmask_np && find_pointer_word(give_mask) != at)
		at = UNKNOWN;
	if (a_load_rlx(&more_at) != NOT_LOOKED)
		return at;
	a_store_rlx(&more_at, at);
	if (at < WORDS)
		kbi_asked_found(what, "behind the pointer at byte %zu", at * sizeof(uintptr_t));
	else
		kbi_asked_missed(what, "not as expected: libc is asked for each thread");
	return at;
}

bool kbi_attr_has_more(const pthread_attr_t *attr)
{
	unsigned at = a_load_rlx(&more_at);

	if (kbi_unlikely(at == NOT_LOOKED))
		at = find_extension();
	return kbi_unlikely(at >= WORDS) || kbi_unlikely(attr_word(attr, at));
}

/* ---- scope ----------------------------------------------------------------------------------- */

/* Tests whether the program was linked with Kochab; otherwise this library is only preloaded.
 * Checked once, as late as possible. */
static bool is_program_linked(void)
{
	static a32 known; /* 0: not checked, 1: yes, 2: no; every check has the same result */

	if (!a_load_rlx(&known))
		a_store_rlx(&known, kbi_module_is_linked() ? 1 : 2);
	return a_load_rlx(&known) == 1;
}

/* Tests whether attr asks for a kernel thread. libc has no scope but the system scope, so a program
 * written for libc says nothing by asking for it. */
bool kbi_attr_wants_kernel_thread(const pthread_attr_t *attr)
{
	if (kbi_likely(!kbi_attr_is_system(attr)))
		return false;
	if (kbi_options.scope == KBI_OPT_SCOPE_AUTO)
		return is_program_linked();
	return kbi_options.scope == KBI_OPT_SCOPE_ASKED;
}

KBI_POSIX_API int pthread_attr_setscope(pthread_attr_t *attr, int scope)
{
	if (scope != PTHREAD_SCOPE_PROCESS && scope != PTHREAD_SCOPE_SYSTEM)
		return EINVAL;
	if (!is_layout_known())
		return scope == PTHREAD_SCOPE_PROCESS ? 0 : ENOTSUP;
	*attr_flags(attr) &= ~(FLAG_LIBCS_PROCESS | FLAG_PROCESS | FLAG_SYSTEM);
	*attr_flags(attr) |= scope == PTHREAD_SCOPE_SYSTEM ? FLAG_SYSTEM : FLAG_PROCESS;
	return 0;
}

KBI_POSIX_API int pthread_attr_getscope(const pthread_attr_t *restrict attr, int *restrict scope)
{
	bool none = kbi_options.scope == KBI_OPT_SCOPE_AUTO && !is_program_linked();

	if (kbi_attr_is_process(attr))
		none = false;
	*scope = none || kbi_attr_is_system(attr) ? PTHREAD_SCOPE_SYSTEM : PTHREAD_SCOPE_PROCESS;
	return 0;
}
