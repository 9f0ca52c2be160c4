/* libc/crash_libc.c - glibc's knowledge about a crash. Contract in crash_libc.h. */
#include "libc/crash_libc.h"

#if defined(__GLIBC__)

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <unwind.h>

#include "base/atom.h"
#include "libc/asked.h"
#include "libc/redirect.h"
#include "libc/return_hook.h"
#include "os/sys.h"

static void *libc;
static const struct link_map *module; /* libc's */

/* libc's functions that walk through its streams; NULL: missing. */
static struct {
	void (*lock)(void), (*unlock)(void);
	void *(*begin)(void), *(*end)(void), *(*next)(void *), *(*file)(void *);
} streams;

/* The lock of a stream in glibc. */
struct stream_lock {
	a32 word;
	int count;
	void *owner;
};

static bool locks_are_known;

/* Returns true if the lock of the stream has the known layout: locked by us it must read as
 * expected (from 2.39 on the first time does not count), and when free it must be all 0. If another
 * thread holds the lock, there is no reason to doubt. */
static bool has_known_lock(FILE *f)
{
	const struct stream_lock *l = (const struct stream_lock *)f->_lock;
	bool ok;

	if (!l || ftrylockfile(f))
		return l;
	ok = a_load_rlx(&l->word) && l->owner == (void *)pthread_self() && (unsigned)l->count <= 1;
	funlockfile(f);
	/* another thread has it, or it is free */
	return ok && (a_load_rlx(&l->word) || (!l->owner && !l->count));
}

static void tell_streams(bool known)
{
	const char *what = "stream's lock";

	locks_are_known = known;
	if (known)
		kbi_asked_found(what, "a word, a count and the holder");
	else
		kbi_asked_missed(what, "not as expected: a thread that is lost keeps what it had locked");
}

bool kbi_crash_open_libc(void)
{
	libc = dlopen("libc.so.6", RTLD_NOLOAD | RTLD_LAZY);
	if (!libc || dlinfo(libc, RTLD_DI_LINKMAP, &module))
		return false;
#define STREAM(field, name) *(void **)&streams.field = dlsym(libc, name)
	STREAM(lock, "_IO_list_lock");
	STREAM(unlock, "_IO_list_unlock");
	STREAM(begin, "_IO_iter_begin");
	STREAM(end, "_IO_iter_end");
	STREAM(next, "_IO_iter_next");
	STREAM(file, "_IO_iter_file");
#undef STREAM
	tell_streams(has_known_lock(stderr));
	return true;
}

static void find_in_libc(const char *name, struct kbi_crash_place *p)
{
	struct kbi_redirect_place found;

	if (kbi_redirect_originals(module->l_addr, module->l_ld, name, &found, 1))
		*p = (struct kbi_crash_place){ found.at, found.size };
}

void kbi_crash_find(const char *name, bool libcs, struct kbi_crash_place *p)
{
	void *at = libcs ? NULL : dlsym(RTLD_DEFAULT, name);
	const ElfW(Sym) *s = NULL;
	Dl_info i;

	if (libcs)
		find_in_libc(name, p);
	if (!at || !dladdr1(at, &i, (void **)&s, RTLD_DL_SYMENT) || !s || i.dli_saddr != at)
		return;
	*p = (struct kbi_crash_place){ (uintptr_t)at, s->st_size };
}

/* ---- frames ---------------------------------------------------------------------------------- */

struct asker {
	bool (*each)(void *arg, uintptr_t pc);
	void *arg;
};

static _Unwind_Reason_Code on_unwind_frame(struct _Unwind_Context *c, void *arg)
{
	const struct asker *a = arg;

	if (kbi_return_hook_is_door(_Unwind_GetIP(c)))
		return _URC_NO_REASON;
	return a->each(a->arg, _Unwind_GetIP(c)) ? _URC_NO_REASON : _URC_END_OF_STACK;
}

void kbi_crash_frames(bool (*each)(void *arg, uintptr_t pc), void *arg)
{
	struct asker a = { each, arg };

	_Unwind_Backtrace(on_unwind_frame, &a);
}

/* ---- streams --------------------------------------------------------------------------------- */

static void free_stream(FILE *f, void *tp)
{
	struct stream_lock *l = (struct stream_lock *)f->_lock;

	if (!l || l->owner != tp)
		return;
	l->count = 0;
	l->owner = NULL;
	/* release: pairs with the acquire of the next holder in libc; 2: a thread sleeps */
	if (a_xchg_acqrel(&l->word, 0) > 1)
		kbi_sys_futex_wake(&l->word, 1);
}

void kbi_crash_free_streams(void *tp)
{
	FILE *const standard[] = { stdin, stdout, stderr };

	if (!locks_are_known)
		return;
	for (unsigned i = 0; i < kbi_countof(standard); i++)
		free_stream(standard[i], tp);
	if (!streams.lock || !streams.unlock || !streams.begin || !streams.end || !streams.next ||
		!streams.file)
		return;
	streams.lock();
	for (void *i = streams.begin(); i != streams.end(); i = streams.next(i))
		free_stream(streams.file(i), tp);
	streams.unlock();
}

/* kbi_crash_learn has returned false, so these are not called. musl's compiler would use glibc's
 * unwinder. */
#else

bool kbi_crash_open_libc(void)
{
	return false;
}

void kbi_crash_find(const char *name, bool libcs, struct kbi_crash_place *p)
{
	(void)name;
	(void)libcs;
	(void)p;
}

void kbi_crash_frames(bool (*each)(void *arg, uintptr_t pc), void *arg)
{
	(void)each;
	(void)arg;
}

void kbi_crash_free_streams(void *tp)
{
	(void)tp;
}

#endif
