/* os/crash.c - frames of a thread that crashed. Contract in crash.h.
 * libc's functions may hold locks of libc's own (malloc's, the loader's, the time zone's), of which nobody knows an owner,
 * and our own library's work is not to be left half done. So a stack is seen as runs of frames: the program's (with its
 * other libraries), libc's, ours. A thread is left only where each run of libc's was entered by one of `harmless`, which
 * take a stream's lock at most; or is one function, called by the program, that faulted at its argument. Nowhere with one
 * of `never` among the innermost frames; and who has not crashed but is left wherever it is, in the program's code only.
 * Ours may be the outermost run, where threads begin, and no other. */
#include "os/crash.h"

#include <setjmp.h>

#include "os/context.h"
#include "os/crash_libc.h"
#include "os/real.h"

static const char *const harmless[] = {
	"printf", "fprintf", "vprintf", "vfprintf", "dprintf", "sprintf", "snprintf", "vsprintf", "vsnprintf",
	"__printf_chk", "__fprintf_chk", "__vprintf_chk", "__vfprintf_chk", "__sprintf_chk", "__snprintf_chk",
	"__vsnprintf_chk", "puts", "fputs", "fputc", "putc", "putchar", "fwrite", "fread", "fgets", "fgetc", "getc",
	"getchar", "fflush", "scanf", "fscanf", "sscanf",
	"__isoc99_scanf", "__isoc99_sscanf", "__isoc99_fscanf", "__isoc23_scanf", "__isoc23_sscanf", "__isoc23_fscanf",
	"strtol", "strtoul", "strtoll", "strtoull", "strtod", "atoi", "atol", "__isoc23_strtol", "__isoc23_strtoul",
	"strdup", "strndup", "strcasecmp", "strncasecmp", "strcoll", "qsort", "qsort_r", "bsearch",
	"abort", "raise", "pthread_kill", "__assert_fail", "__assert_perror_fail", "__stack_chk_fail", "__fortify_fail",
	"__chk_fail", "_Unwind_RaiseException", "_Unwind_Resume",
};
/* They hold such a lock while they work, or what they work on is broken. */
static const char *const never[] = {
	"malloc", "free", "calloc", "realloc", "memalign", "aligned_alloc", "posix_memalign", "valloc", "pvalloc",
	"reallocarray", "malloc_trim", "malloc_info", "mallinfo", "mallinfo2", "mallopt", "exit", "setenv", "putenv",
	"unsetenv", "clearenv", "localtime", "localtime_r", "mktime", "tzset", "setlocale", "rand", "random",
	"srandom", "readdir", "fclose", "fopen", "getpwnam", "getpwuid", "getgrnam", "getgrgid",
};

static struct kbi_crash_place good[2 * kbi_countof(harmless)], bad[kbi_countof(never)]; /* libc's own; and the drop-in's */

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

/* ---- frames -------------------------------------------------------------------------------------------------------- */

struct walk {
	struct kbi_crash_walk *to;
	uintptr_t at;              /* where it crashed: the handler's own frames come before */
	bool begun;
	enum kbi_crash_kind kind;
	/* the run of frames that is being walked through: */
	enum kbi_context_code code;
	unsigned length, runs;     /* runs: complete ones */
	uintptr_t outermost;
	bool bad;                  /* it has one of `never` */
	const char *unknown;       /* why not in the run before, libc's, unless a function of ours in libc's place called it */
	const char *why;
};

/* at: a return address, which may be behind the function's last byte. */
static bool is_among(const struct kbi_crash_place *p, unsigned n, uintptr_t at)
{
	for (unsigned i = 0; i < n; i++)
		if (p[i].low && at - p[i].low <= p[i].size)
			return true;
	return false;
}

/* The thread is in libc: the program has called this run. */
static const char *why_not_in_libc(const struct walk *w)
{
	bool fault_at_argument = w->runs == 0 && w->length == 1 && w->kind == KBI_CRASH_FAULT;

	if (w->runs == 0 && w->kind == KBI_CRASH_ANYWHERE)
		return "it is in libc";
	if (!w->bad && (fault_at_argument || is_among(good, kbi_countof(good), w->outermost)))
		return NULL;
	return "it came in libc or the loader, where locks without an owner may be held";
}

/* The run is complete, code of this kind has called it. A function of libc's may have jumped to another, which is then
 * the outermost (vfprintf does): where a function of the drop-in's called it in libc's place, that names the first. */
static void end_run(struct walk *w, enum kbi_context_code caller)
{
	const char *unknown = w->unknown;

	w->unknown = NULL;
	if (w->code == KBI_CODE_LIBC && caller == KBI_CODE_OURS && !w->bad && w->kind != KBI_CRASH_ANYWHERE)
		w->unknown = why_not_in_libc(w);
	else if (w->code == KBI_CODE_LIBC)
		w->why = why_not_in_libc(w);
	else if (w->code == KBI_CODE_OURS && w->runs == 0 && w->kind == KBI_CRASH_ANYWHERE)
		w->why = "it is in the library";
	else if (w->code == KBI_CODE_OURS && is_among(good, kbi_countof(good), w->outermost))
		w->why = NULL; /* the drop-in's, in libc's place */
	else if (unknown)
		w->why = unknown;
	else if (w->code == KBI_CODE_OURS && !(w->kind == KBI_CRASH_SENT && w->runs == 0))
		w->why = w->runs ? "it came in what the library or a signal has called" : "it came in the library";
	w->runs++;
	w->length = 0;
	w->bad = false;
}

static void add(struct walk *w, uintptr_t pc)
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

static bool step(void *arg, uintptr_t pc)
{
	struct walk *w = arg;

	w->begun |= pc == w->at;
	if (w->begun && pc)
		add(w, pc);
	return !w->why;
}

const char *kbi_crash_look(const void *context, enum kbi_crash_kind kind, struct kbi_crash_walk *to, void **guard)
{
	struct walk w = { .to = to, .at = kbi_context_at(context), .kind = kind };
	struct walk *volatile at = &w;
	jmp_buf back;

	to->n = 0;
	if (!_setjmp(back)) {
		*guard = &back;
		kbi_compiler_barrier();
		kbi_crash_frames(step, at);
	}
	*guard = NULL;
	kbi_compiler_barrier();
	if (!at->begun)
		add(at, at->at); /* no unwinder knows this place: a jump to nowhere */
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
