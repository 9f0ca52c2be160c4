/* libc/crash.c - frames of a crashed thread. Contract in crash.h.
 * libc's functions may hold internal locks (malloc's, the loader's, the time zone's) whose owner is
 * unknown, and work of our own library must not be left half done. So a stack is seen as runs of
 * frames: the program's (with its other libraries), libc's, ours. A thread is left only if each run
 * of libc's was entered by a function of `harmless`, which takes at most a stream's lock; or if the
 * run is a single function, called by the program, that faulted at its argument. It is never left
 * with a function of `never` among the innermost frames. A thread that has not crashed but is to be
 * left wherever it is (KBI_CRASH_ANYWHERE) is left in the program's code only. Our code may be the
 * outermost run, where threads begin, and no other run. */
#include "libc/crash.h"

#include <setjmp.h>

#include "libc/context.h"
#include "libc/crash_libc.h"
#include "libc/real.h"

static const char *const harmless[] = {
	"printf", "fprintf", "vprintf", "vfprintf", "dprintf", "sprintf", "snprintf", "vsprintf",
	"vsnprintf", "__printf_chk", "__fprintf_chk", "__vprintf_chk", "__vfprintf_chk",
	"__sprintf_chk", "__snprintf_chk", "__vsnprintf_chk", "puts", "fputs", "fputc", "putc",
	"putchar", "fwrite", "fread", "fgets", "fgetc", "getc", "getchar", "fflush", "scanf", "fscanf",
	"sscanf", "__isoc99_scanf", "__isoc99_sscanf", "__isoc99_fscanf", "__isoc23_scanf",
	"__isoc23_sscanf", "__isoc23_fscanf", "strtol", "strtoul", "strtoll", "strtoull", "strtod",
	"atoi", "atol", "__isoc23_strtol", "__isoc23_strtoul", "strdup", "strndup", "strcasecmp",
	"strncasecmp", "strcoll", "qsort", "qsort_r", "bsearch", "abort", "raise", "pthread_kill",
	"__assert_fail", "__assert_perror_fail", "__stack_chk_fail", "__fortify_fail", "__chk_fail",
	"_Unwind_RaiseException", "_Unwind_Resume",
};
/* They hold such a lock while they work, or the data they work on is broken. */
static const char *const never[] = {
	"malloc", "free", "calloc", "realloc", "memalign", "aligned_alloc", "posix_memalign", "valloc",
	"pvalloc", "reallocarray", "malloc_trim", "malloc_info", "mallinfo", "mallinfo2", "mallopt",
	"exit", "setenv", "putenv", "unsetenv", "clearenv", "localtime", "localtime_r", "mktime",
	"tzset", "setlocale", "rand", "random", "srandom", "readdir", "fclose", "fopen", "getpwnam",
	"getpwuid", "getgrnam", "getgrgid",
};

/* libc's function and the drop-in's for each of `harmless` */
static struct kbi_crash_place good[2 * kbi_countof(harmless)], bad[kbi_countof(never)];

bool kbi_crash_learn(void)
{
	kbi_context_learn();
	if (!kbi_crash_open_libc() || !kbi_context_can_go() || !kbi_context_knows_code())
		return false;
	for (unsigned i = 0; i < kbi_countof(harmless); i++) {
		kbi_crash_find(harmless[i], true, &good[2 * i]);
		kbi_crash_find(harmless[i], false, &good[2 * i + 1]);
	}
	for (unsigned i = 0; i < kbi_countof(never); i++)
		kbi_crash_find(never[i], true, &bad[i]);
	return true;
}

/* ---- frames ---------------------------------------------------------------------------------- */

struct walk {
	struct kbi_crash_walk *to;
	uintptr_t at;              /* address of the crash: the handler's own frames come before */
	bool begun;
	enum kbi_crash_kind kind;
	/* the run of frames being walked: */
	enum kbi_context_code code;
	unsigned length, runs;     /* runs: complete runs */
	uintptr_t outermost;
	bool bad;                  /* the run has a function of `never` */
	/* why not, for a run of libc's that ended, unless a function of the drop-in called it in libc's
	 * place */
	const char *unknown;
	const char *why;
};

/* Returns true if a place contains `at`, a return address, which may be behind the last byte of the
 * function. */
static bool is_among(const struct kbi_crash_place *p, unsigned n, uintptr_t at)
{
	for (unsigned i = 0; i < n; i++)
		if (p[i].low && at - p[i].low <= p[i].size)
			return true;
	return false;
}

/* Returns why a thread cannot be left in this run of libc's, which the program has called; NULL: it
 * can. */
static const char *why_not_in_libc(const struct walk *w)
{
	bool fault_at_argument = w->runs == 0 && w->length == 1 && w->kind == KBI_CRASH_FAULT;

	if (w->runs == 0 && w->kind == KBI_CRASH_ANYWHERE)
		return "it is in libc";
	if (!w->bad && (fault_at_argument || is_among(good, kbi_countof(good), w->outermost)))
		return NULL;
	return "it came in libc or the loader, where locks without an owner may be held";
}

/* Ends a run; code of kind `caller` has called it. A function of libc may have jumped to another
 * function, which is then the outermost frame (vfprintf does). If a function of the drop-in called
 * it in libc's place, the drop-in's function identifies the function of libc. */
static void end_run(struct walk *w, enum kbi_context_code caller)
{
	const char *unknown = w->unknown;

	w->unknown = NULL;
	if (w->code == KBI_CODE_LIBC && caller == KBI_CODE_OURS && !w->bad &&
		w->kind != KBI_CRASH_ANYWHERE)
		w->unknown = why_not_in_libc(w);
	else if (w->code == KBI_CODE_LIBC)
		w->why = why_not_in_libc(w);
	else if (w->code == KBI_CODE_OURS && w->runs == 0 && w->kind == KBI_CRASH_ANYWHERE)
		w->why = "it is in the library";
	else if (w->code == KBI_CODE_OURS && is_among(good, kbi_countof(good), w->outermost))
		w->why = NULL; /* the drop-in's function, in libc's place */
	else if (unknown)
		w->why = unknown;
	else if (w->code == KBI_CODE_OURS && !(w->kind == KBI_CRASH_SENT && w->runs == 0))
		w->why = w->runs ? "it came in what the library or a signal has called"
			: "it came in the library";
	w->runs++;
	w->length = 0;
	w->bad = false;
}

static void add_crash_frame(struct walk *w, uintptr_t pc)
{
	enum kbi_context_code code = kbi_context_code(pc - (w->begun && w->at != pc));

	if (w->to->n < w->to->most)
		w->to->frame[w->to->n++] = (void *)pc;
	if (w->length && code != w->code)
		end_run(w, code);
	w->code = code;
	w->outermost = pc;
	w->length++;
	w->bad |= is_among(bad, kbi_countof(bad), pc);
}

static bool on_crash_frame(void *arg, uintptr_t pc)
{
	struct walk *w = arg;

	w->begun |= pc == w->at;
	if (w->begun && pc)
		add_crash_frame(w, pc);
	return !w->why;
}

const char *kbi_crash_look(const void *context, enum kbi_crash_kind kind, struct kbi_crash_walk *to,
	void **guard)
{
	struct walk w = { .to = to, .at = kbi_context_at(context), .kind = kind };
	struct walk *volatile at = &w;
	jmp_buf back;

	to->n = 0;
	if (!_setjmp(back)) {
		*guard = &back;
		kbi_compiler_barrier();
		kbi_crash_frames(on_crash_frame, at);
	}
	*guard = NULL;
	kbi_compiler_barrier();
	if (!at->begun)
		/* the unwinder does not know this place: a jump to nowhere */
		add_crash_frame(at, at->at);
	if (!at->why && at->code == KBI_CODE_LIBC)
		return "it came in libc, and who has called it is not to be found out";
	if (!at->why && at->unknown)
		return at->unknown;
	return !at->why && at->code == KBI_CODE_OURS && !at->runs ? "it came in the library" : at->why;
}

void kbi_crash_give_up(void *guard)
{
	kbi_real.longjmp(*(jmp_buf *)guard, 1);
	__builtin_unreachable();
}
