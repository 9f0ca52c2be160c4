/* os/crash.c - frames of a thread that crashed. Contract in crash.h.
 * Functions of libc's may hold locks of its own (malloc's, the loader's, the time zone's ...), of which nobody knows an
 * owner. So a thread is left in libc only where it is known that it holds none: in a function that the program has called
 * and that has called no other one of libc's; or in one of `harmless`, which take a stream's lock at most. Nowhere with one
 * of `never` among the frames. */
#include "os/crash.h"

#include <dlfcn.h>
#include <link.h>
#include <setjmp.h>
#include <stdio.h>
#include <unwind.h>

#include "base/atom.h"
#include "os/context.h"
#include "os/sys.h"

static const char *const harmless[] = {
	"printf", "fprintf", "vprintf", "vfprintf", "dprintf", "sprintf", "snprintf", "vsprintf", "vsnprintf", "__printf_chk",
	"__fprintf_chk", "__vfprintf_chk", "__sprintf_chk", "__snprintf_chk", "__vsnprintf_chk", "puts", "fputs", "fputc",
	"putc", "putchar", "fwrite", "fread", "fgets", "fgetc", "getc", "getchar", "fflush", "scanf", "fscanf", "sscanf",
	"__isoc99_sscanf", "__isoc99_fscanf", "__isoc23_sscanf", "__isoc23_fscanf", "strtol", "strtoul", "strtod", "atoi",
	"abort", "raise", "pthread_kill", "__assert_fail", "__stack_chk_fail", "__chk_fail", "qsort", "bsearch",
};
static const char *const never[] = {
	"malloc", "free", "calloc", "realloc", "memalign", "aligned_alloc", "posix_memalign", "valloc", "pvalloc",
	"reallocarray", "malloc_trim", "malloc_info", "mallinfo", "mallopt", "exit", "dlopen", "dlclose", "dlsym", "dl_iterate_phdr",
	"setlocale", "setenv", "putenv", "unsetenv", "localtime", "localtime_r", "mktime", "tzset", "fopen", "fclose", "popen",
	"pclose", "fork", "pthread_create", "pthread_exit", "getaddrinfo",
};

struct place {
	uintptr_t low, size;
};
static struct place good[kbi_countof(harmless)], bad[kbi_countof(never)];

/* libc's streams: its own functions to walk through them; NULL: not there. */
static struct {
	void (*lock)(void), (*unlock)(void);
	void *(*begin)(void), *(*end)(void), *(*next)(void *), *(*file)(void *);
} streams;

static void find(const char *name, struct place *p)
{
	void *at = dlsym(RTLD_DEFAULT, name);
	const ElfW(Sym) *s = NULL;
	Dl_info i;

	if (!at || !dladdr1(at, &i, (void **)&s, RTLD_DL_SYMENT) || !s || i.dli_saddr != at)
		return;
	*p = (struct place){ (uintptr_t)at, s->st_size };
}

void kbi_crash_learn(void)
{
	for (unsigned i = 0; i < kbi_countof(harmless); i++)
		find(harmless[i], &good[i]);
	for (unsigned i = 0; i < kbi_countof(never); i++)
		find(never[i], &bad[i]);
#define STREAM(field, name) *(void **)&streams.field = dlsym(RTLD_DEFAULT, name)
	STREAM(lock, "_IO_list_lock");
	STREAM(unlock, "_IO_list_unlock");
	STREAM(begin, "_IO_iter_begin");
	STREAM(end, "_IO_iter_end");
	STREAM(next, "_IO_iter_next");
	STREAM(file, "_IO_iter_file");
#undef STREAM
	kbi_context_learn();
}

/* ---- frames -------------------------------------------------------------------------------------------------------- */

struct walk {
	uintptr_t at;
	void **frame;
	unsigned n, most;
	bool begun;
};

/* The handler's own frames come first. */
static _Unwind_Reason_Code step(struct _Unwind_Context *c, void *arg)
{
	struct walk *w = arg;
	uintptr_t pc = _Unwind_GetIP(c);

	w->begun = w->begun || pc == w->at;
	if (w->begun && pc)
		w->frame[w->n++] = (void *)pc;
	return w->n < w->most ? _URC_NO_REASON : _URC_END_OF_STACK;
}

unsigned kbi_crash_frames(const void *context, void **frame, unsigned most, void **guard)
{
	volatile struct walk w = { .at = kbi_context_at(context), .frame = frame, .most = most };
	jmp_buf back;

	if (!_setjmp(back)) {
		*guard = &back;
		kbi_compiler_barrier();
		_Unwind_Backtrace(step, (void *)&w);
	}
	*guard = NULL;
	if (w.n)
		return w.n;
	frame[0] = (void *)w.at;
	return 1;
}

void kbi_crash_give_up(void *guard)
{
	longjmp(*(jmp_buf *)guard, 1);
}

/* ---- may it be left -------------------------------------------------------------------------------------------------- */

/* at: a return address, which may be behind the function's last byte. */
static bool is_among(const struct place *p, unsigned n, void *frame)
{
	uintptr_t at = (uintptr_t)frame;

	for (unsigned i = 0; i < n; i++)
		if (p[i].low && at - p[i].low <= p[i].size)
			return true;
	return false;
}

/* How many frames, from `from` on, are in libc and the like, or in the library. */
static unsigned run_of(void *const *frame, unsigned from, unsigned n, bool library)
{
	unsigned i = from;

	while (i < n && kbi_context_is_delicate((uintptr_t)frame[i]) && kbi_context_is_library((uintptr_t)frame[i]) == library)
		i++;
	return i - from;
}

bool kbi_crash_may_leave(void *const *frame, unsigned n, bool fault)
{
	/* the library's own frames come first where libc's system calls are made by it, or it was given a bad address */
	unsigned ours = run_of(frame, 0, n, true), libcs = run_of(frame, ours, n, false), run = ours + libcs;

	if (run && !fault)
		return false;
	/* nobody knows who has called libc; or the library has */
	if (run && (run == n || kbi_context_is_delicate((uintptr_t)frame[run])))
		return false;
	for (unsigned i = 0; i < n; i++)
		if (is_among(bad, kbi_countof(bad), frame[i]))
			return false;
	return libcs < 2 || is_among(good, kbi_countof(good), frame[run - 1]);
}

/* ---- streams ----------------------------------------------------------------------------------------------------------- */

#if defined(__GLIBC__)

/* glibc's. */
struct stream_lock {
	a32 word;
	int count;
	void *owner;
};

static void free_stream(FILE *f, void *tp)
{
	struct stream_lock *l = (struct stream_lock *)f->_lock;

	if (!l || l->owner != tp)
		return;
	l->count = 0;
	l->owner = NULL;
	/* release: partner is the acquire of who locks it; 2: somebody sleeps */
	if (a_xchg_rel(&l->word, 0) > 1)
		kbi_sys_futex_wake(&l->word, 1);
}

void kbi_crash_free_streams(void *tp)
{
	FILE *const standard[] = { stdin, stdout, stderr };

	for (unsigned i = 0; i < kbi_countof(standard); i++)
		free_stream(standard[i], tp);
	if (!streams.lock || !streams.unlock || !streams.begin || !streams.end || !streams.next || !streams.file)
		return;
	streams.lock();
	for (void *i = streams.begin(); i != streams.end(); i = streams.next(i))
		free_stream(streams.file(i), tp);
	streams.unlock();
}

#else

void kbi_crash_free_streams(void *tp)
{
	(void)tp;
}

#endif
