/* posix/stdio.c - the lock of a stream. It is libc's: recursive, and its owner is a control block,
 * so a thread of ours can be its owner. But libc waits for it in the kernel, and with it all
 * threads of that virtual processor, perhaps the holder: the holder may be suspended (flockfile
 * around a wait, a callback of fopencookie) or be blocked in write() while its reader waits behind
 * it. So a lightweight thread takes the lock here before it enters libc, as in posix/libc_mutex: it
 * tries, and sleeps between tries. Inside, libc takes the lock once more without waiting. Unlocking
 * is libc's; so are ftrylockfile, the *_unlocked functions and all calls of kernel threads.
 * stdio.def has a row for each function. Not covered: calls inside libc (err, error, syslog,
 * putpwent).
 * Callers: programs. May switch. A cancellation may unwind these frames. */
#include "os/sys.h"
#include "posix/call_priv.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <wchar.h>

/* ---- libc's originals --------------------------------------------------------------------- */

typedef FILE *position;

struct originals {
#define CALL(result, name, parameters, arguments, stream) result (*name) parameters;
#define FAST(result, name, unlocked, parameters, arguments, stream) \
	result (*name) parameters; \
	result (*name##_fast) parameters;
#include "posix/stdio.def"
	int (*fclose)(FILE *);
	int (*fileno)(FILE *);
	int (*fileno_unlocked)(FILE *);
	FILE *(*freopen)(const char *, const char *, FILE *);
	FILE *(*freopen64)(const char *, const char *, FILE *);
	int (*fflush)(FILE *);
	int (*fflush_unlocked)(FILE *);
	void (*flockfile)(FILE *);
	int (*ftrylockfile)(FILE *);
	void (*funlockfile)(FILE *);
	/* the list of all streams; NULL: this libc does not export it */
	void (*_IO_list_lock)(void);
	void (*_IO_list_unlock)(void);
	position (*_IO_iter_begin)(void);
	position (*_IO_iter_end)(void);
	position (*_IO_iter_next)(position);
	FILE *(*_IO_iter_file)(position);
};

static struct originals table;

#define SLOT(name) { #name, (void **)&table.name }

static const struct kbi_libc_row rows[] = {
#define CALL(result, name, ...) SLOT(name),
#define FAST(result, name, unlocked, ...) SLOT(name), { #unlocked, (void **)&table.name##_fast },
#include "posix/stdio.def"
	SLOT(fclose), SLOT(fileno), SLOT(fileno_unlocked), SLOT(freopen), SLOT(freopen64), SLOT(fflush),
	SLOT(fflush_unlocked), SLOT(flockfile), SLOT(ftrylockfile), SLOT(funlockfile),
	SLOT(_IO_list_lock), SLOT(_IO_list_unlock), SLOT(_IO_iter_begin), SLOT(_IO_iter_end),
	SLOT(_IO_iter_next),
	SLOT(_IO_iter_file),
};

static a32 ready;

void kbi_stdio_resolve(void)
{
	if (!a_load_acq(&ready)) /* pairs with the release in kbi_libc_look_up */
		kbi_libc_look_up(rows, kbi_countof(rows), &ready);
}

#define REAL(name) \
	((__typeof__(table.name))(kbi_likely(table.name) ? (void *)table.name : \
				  kbi_libc_original(#name, (void **)&table.name)))

/* ---- the lock ----------------------------------------------------------------------------- */

/* Returns the caller if it is a lightweight thread; then the table is complete, also for a thread
 * made by kb_thread_create. */
static inline struct kbi_task *resolved_light_thread(void)
{
	struct kbi_task *self = kbi_posix_light();

	if (self && kbi_unlikely(!a_load_acq(&ready))) /* pairs with the release in kbi_libc_look_up */
		kbi_stdio_resolve();
	return self;
}

static int try_stream_lock(void *f)
{
	return table.ftrylockfile(f) == 0 ? 0 : EBUSY;
}

/* True for a thread of ours that may be suspended here: not in a handler that has interrupted our
 * library. */
static bool may_wait(void)
{
	struct kbi_task *self = resolved_light_thread();

	return self && a_load_rlx(&self->np) == 0;
}

static KBI_NOINLINE void wait_for_stream(FILE *f)
{
	int saved = errno;

	if (!may_wait()) {
		table.flockfile(f);
		return;
	}
	kbi_libc_mutex_wait(try_stream_lock, f, NULL, CLOCK_MONOTONIC, NULL);
	errno = saved;
}

/* True if the buffer is empty and filling it makes libc lock and flush stdout: the stream is
 * line-buffered (a terminal) or has no buffer. */
static inline bool flushes_stdout(FILE *f)
{
	return f->_IO_read_ptr >= f->_IO_read_end && !__fwritable(f) &&
		(__flbf(f) || __fbufsize(f) <= 1);
}

static KBI_NOINLINE void wait_for_stdout(void)
{
	if (table.ftrylockfile(stdout) != 0)
		wait_for_stream(stdout);
	table.funlockfile(stdout);
}

/* A stream that a thread of ours has locked, if the program wants locks. Calls that may block in
 * the kernel do so with the virtual processor lent. */
struct hold { /* small, to be passed in registers */
	FILE *f;
	bool lent;
	int copy; /* 1 + a copy of the reader's file; 0: none */
};

/* ---- a reader's file ---------------------------------------------------------------------- */

/* A thread that has waited for input reads from the file that it has waited for, whichever file the
 * stream's number means by then: libc's own read gets a copy of the file (io/own), which has a
 * different number. A thread that asks for the stream's number meanwhile gets the program's; asking
 * does not take the lock. A jump out of the call leaves the copy in the stream until the stream is
 * locked again. */

enum { NUMBERS = KBI_CALL_DESCRIPTORS };
/* index: a copy; 1 + the program's number; 0: no stream has this copy */
static a32 instead_of[NUMBERS];
static a32 copies;              /* number of streams with a copy; each changes it under its lock */

static void set_stream_copy(FILE *f, int own)
{
	int number = f->_fileno;

	if (own >= NUMBERS)
		return;
	a_add_rlx(&copies, 1);
	a_store_rlx(&instead_of[own], (uint32_t)number + 1);
	/* release: pairs with the acquire in fd_of_stream */
	__atomic_store_n(&f->_fileno, own, __ATOMIC_RELEASE);
}

/* Sets the program's number again. Call under the stream's lock. */
static void restore_stream_number(FILE *f)
{
	int own = f->_fileno;
	uint32_t number = (unsigned)own < NUMBERS ? a_load_rlx(&instead_of[own]) : 0;

	if (kbi_likely(!number))
		return;
	__atomic_store_n(&f->_fileno, (int)number - 1, __ATOMIC_RELAXED);
	/* release: pairs with the acquire in fd_of_stream, which reads the stream's number again
	 * if it finds 0 */
	a_store_rel(&instead_of[own], 0);
	a_sub_rlx(&copies, 1);
}

static int fd_of_stream(FILE *f, int (*ask)(FILE *))
{
	for (;;) {
		int fd = ask(f);
		/* acquire: pairs with the release in restore_stream_number */
		uint32_t number = (unsigned)fd < NUMBERS ? a_load_acq(&instead_of[fd]) : 0;

		if (kbi_unlikely(number))
			return (int)number - 1;
		/* acquire: pairs with the release in set_stream_copy */
		if (kbi_likely(__atomic_load_n(&f->_fileno, __ATOMIC_ACQUIRE) == fd || fd < 0))
			return fd;
	}
}

enum { ROOM = 1024 }; /* bytes: output is seldom longer */

enum use { WRITES, FLUSHES, READS_ONE, READS };

/* True if the stream would read or write now, on a descriptor that may block: a pipe, a socket, a
 * terminal, or a file that waits for the disk. */
static inline bool may_stream_block(FILE *f, enum use use)
{
	if (f->_fileno < 0 || kbi_call_is_file(f->_fileno))
		return false;
	if (use == FLUSHES)
		return __fpending(f) > 0;
	if (use == WRITES)
		return f->_IO_buf_end - f->_IO_write_ptr < ROOM || __flbf(f);
	return use == READS || f->_IO_read_ptr >= f->_IO_read_end;
}

/* Sleeps until there is something to read, and lends the virtual processor. Call with the stream
 * locked. */
static KBI_NOINLINE void await_and_lend_vp(struct hold *h, enum use use)
{
	int saved = errno;

	if (!kbi_call_may_wait())
		return;
	if (use > FLUSHES && h->f->_IO_read_ptr >= h->f->_IO_read_end &&
		!kbi_sys_is_ready(h->f->_fileno, POLLIN)) {
		struct kbi_call_keeps k = { { -1, -1 } };
		int fd = h->f->_fileno;

		kbi_call_keep(&k, &fd);
		h->copy = k.own[0] + 1;
		kbi_call_await(fd, POLLIN, true);
		if (h->copy)
			set_stream_copy(h->f, fd);
	}
	errno = saved;
	kbi_call_leave_vp(false);
	h->lent = true;
}

static inline struct hold lock_stream(FILE *f)
{
	struct hold h = { NULL, false, 0 };
	struct kbi_task *self = resolved_light_thread();

	if (!self || !f || (f->_flags & _IO_USER_LOCK))
		return h;
	/* a thread that prints all the time is in libc whenever the tick comes */
	if (kbi_quantum_is_over(self))
		(void)kbi_call_may_wait();
	if (kbi_unlikely(table.ftrylockfile(f) != 0))
		wait_for_stream(f);
	h.f = f;
	if (kbi_unlikely(a_load_rlx(&copies)))
		restore_stream_number(f);
	if (kbi_unlikely(flushes_stdout(f)))
		wait_for_stdout();
	return h;
}

static inline void unlock_stream(struct hold *h)
{
	if (h->lent)
		kbi_call_rejoin();
	if (kbi_unlikely(h->copy)) {
		struct kbi_call_keeps k = { { h->copy - 1, -1 } };

		restore_stream_number(h->f);
		kbi_call_keep_no_more(&k);
	}
	if (h->f)
		table.funlockfile(h->f);
}

/* Inlined into the frame that unlocks: a cancellation may unwind it. */
static inline void prepare_if_blocking(struct hold *h, enum use use)
{
	if (h->f && kbi_unlikely(may_stream_block(h->f, use)))
		await_and_lend_vp(h, use);
}

#define FROM(f) f, READS
#define ONE(f) f, READS_ONE
#define HOLDING_(f, use, ...) \
	struct hold held __attribute__((cleanup(unlock_stream))) = lock_stream(f); \
\
	prepare_if_blocking(&held, use)
#define HOLDING(...) HOLDING_(__VA_ARGS__, WRITES, )

/* ---- the functions ------------------------------------------------------------------------ */

/* libc's headers redirect and inline some of these names, so the definitions have names of their
 * own in C. */
#define CALL(result, name, parameters, arguments, stream) \
	KBI_POSIX_API result kbi_stdio_##name parameters __asm__(#name); \
	result kbi_stdio_##name parameters \
	{ \
		HOLDING(stream); \
\
		return REAL(name) arguments; \
	}
#define FAST(result, name, unlocked, parameters, arguments, stream) \
	KBI_POSIX_API result kbi_stdio_##name parameters __asm__(#name); \
	result kbi_stdio_##name parameters \
	{ \
		HOLDING(stream); \
\
		return held.f ? table.name##_fast arguments : REAL(name) arguments; \
	}
#define PRINT(name, original, parameters, arguments, stream) \
	KBI_POSIX_API int kbi_stdio_##name parameters __asm__(#name); \
	int kbi_stdio_##name parameters \
	{ \
		HOLDING(stream); \
		va_list ap; \
		int n; \
\
		va_start(ap, format); \
		n = REAL(original) arguments; \
		va_end(ap); \
		return n; \
	}
#include "posix/stdio.def"

KBI_POSIX_API void flockfile(FILE *f)
{
	if (!resolved_light_thread())
		REAL(flockfile)(f);
	else if (table.ftrylockfile(f) != 0)
		wait_for_stream(f);
}

KBI_POSIX_ALIAS(_IO_flockfile, flockfile);

KBI_POSIX_API int kbi_stdio_fileno(FILE *f) __asm__("fileno");
KBI_POSIX_API int kbi_stdio_fileno(FILE *f)
{
	return fd_of_stream(f, REAL(fileno));
}

KBI_POSIX_API int kbi_stdio_fileno_unlocked(FILE *f) __asm__("fileno_unlocked");
KBI_POSIX_API int kbi_stdio_fileno_unlocked(FILE *f)
{
	return fd_of_stream(f, REAL(fileno_unlocked));
}

/* ---- streams that end --------------------------------------------------------------------- */

/* Returns the number that libc is about to close, by a call of its own; -1: none. The program must
 * not use the stream any more: once its lock has been free, no thread will take it. */
static int number_to_close(FILE *f)
{
	struct hold held = lock_stream(f);

	unlock_stream(&held);
	if (!f)
		return -1;
	restore_stream_number(f);
	return f->_fileno;
}

KBI_POSIX_API int fclose(FILE *f)
{
	bool lends = kbi_call_may_wait();
	KBI_CALL_CLOSING(x, number_to_close(f), true);

	/* a stream of the program's own functions; or as in close */
	if (!lends || x.fd < 0 || kbi_unlikely(x.stopped))
		return REAL(fclose)(f);
	KBI_CALL_LENT();
	return REAL(fclose)(f);
}

KBI_POSIX_API int pclose(FILE *f)
{
	KBI_CALL_CLOSING(x, number_to_close(f), true);

	if (!kbi_call_may_wait())
		return KBI_CALL_REAL(pclose)(f);
	KBI_CALL_BLOCKING(false);
	return KBI_CALL_REAL(pclose)(f);
}

static FILE *reopen_stream(FILE *(*original)(const char *, const char *, FILE *), const char *path,
	const char *mode, FILE *f)
{
	HOLDING(f);
	KBI_CALL_CLOSING(x, f->_fileno, true);

	return original(path, mode, f);
}

KBI_POSIX_API FILE *kbi_stdio_freopen(const char *path, const char *mode,
	FILE *f) __asm__("freopen");
KBI_POSIX_API FILE *kbi_stdio_freopen(const char *path, const char *mode, FILE *f)
{
	return reopen_stream(REAL(freopen), path, mode, f);
}

KBI_POSIX_API FILE *kbi_stdio_freopen64(const char *path, const char *mode,
	FILE *f) __asm__("freopen64");
KBI_POSIX_API FILE *kbi_stdio_freopen64(const char *path, const char *mode, FILE *f)
{
	return reopen_stream(REAL(freopen64), path, mode, f);
}

/* ---- all streams -------------------------------------------------------------------------- */

/* Returns a stream with output, locked. The list's lock is free again: flushing may suspend, and
 * the holder of a stream may open streams. *busy: a stream with output is locked by another
 * thread. */
static FILE *next_with_output(bool *busy)
{
	FILE *found = NULL;

	*busy = false;
	table._IO_list_lock();
	for (position p = table._IO_iter_begin(); p != table._IO_iter_end() && !found;
		p = table._IO_iter_next(p)) {
		FILE *f = table._IO_iter_file(p);

		if (__fpending(f) == 0)
			continue;
		if (table.ftrylockfile(f) == 0)
			found = f;
		else
			*busy = true;
	}
	table._IO_list_unlock();
	return found;
}

static int flush_free_streams(void *arg)
{
	bool *failed = arg, busy = false;
	FILE *f;

	while (!*failed && (f = next_with_output(&busy)) != NULL) {
		struct hold held __attribute__((cleanup(unlock_stream), unused)) = { f, false, 0 };

		/* failed output stays in the stream; another thread may have emptied it before we locked
		 * it */
		*failed = __fpending(f) && table.fflush_unlocked(f) != 0;
	}
	return busy && !*failed ? EBUSY : 0;
}

/* Flushes all streams. libc's function would lock the list and wait for each stream, even if its
 * holder is blocked in a read. */
static int flush_all_streams(void)
{
	bool failed = false;
	int saved = errno;

	kbi_libc_mutex_wait(flush_free_streams, &failed, NULL, CLOCK_MONOTONIC, NULL);
	if (failed) /* libc flushes the rest, and sets errno and the result */
		return table.fflush(NULL);
	errno = saved;
	return 0;
}

KBI_POSIX_API int fflush(FILE *f)
{
	HOLDING_(f, FLUSHES, );

	if (!f && may_wait() && table._IO_list_lock && table._IO_iter_file)
		return flush_all_streams();
	return REAL(fflush)(f);
}
