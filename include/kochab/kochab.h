/* kochab/kochab.h - the native interface of Kochab: lightweight threads that wait by polling.
 *
 * Conventions. Functions that can fail return 0 or a positive errno value. Times are absolute
 * CLOCK_MONOTONIC nanoseconds (kb_now() + delay); KB_FOREVER never comes. "May suspend" means the
 * calling lightweight thread may give up its virtual processor and come back on another one: a light
 * thread (KB_TLS_LIGHT) must not hold the address of errno or of a __thread variable, a stdio lock
 * or a C++ exception across such a call. No native call is a cancellation point. Every call may also
 * be made by a kernel thread that Kochab did not create; it then blocks that kernel thread.
 * Signals: the virtual processors but the first run with all blocked; where they are processes one that a thread raises
 * for itself is let through all the same, unless the thread has blocked it. Threads of KB_SCOPE_SYSTEM and children of fork
 * have the mask the program had when the runtime started; what libc's own pthread_create, posix_spawn and popen start
 * from a lightweight thread inherits the mask of the virtual processor, so set it there. */
#ifndef KOCHAB_KOCHAB_H
#define KOCHAB_KOCHAB_H

#include <stddef.h>
#include <stdint.h>

#include <kochab/version.h>

#if defined(__GNUC__)
#define KB_API __attribute__((visibility("default")))
#else
#define KB_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the runtime ------------------------------------------------------------------------- */

/* Starts the runtime: reads KOCHAB_* from the environment, creates the virtual processors, makes the
 * caller a lightweight thread. Called by the first kb_thread_create if the program does not call it.
 * 0, EINVAL (a bad option: a message on standard error names it), EAGAIN, ENOMEM, EBUSY (libkochab-posix was loaded
 * into a program that has this library inside). Idempotent. */
KB_API int kb_init(void);
/* The same with options that the program prefers, "name=value" with blanks between (`kochab options`), such as
 * "vps=4 bind=cores quantum=10ms". What KOCHAB_* says in the environment goes before. EINVAL: no such option or bad value,
 * nothing is set, a message names it, and the next call may be a better one. EALREADY: the runtime has been started.
 * Before there are other threads. */
KB_API int kb_init_with(const char *options);
/* The library's version, "major.minor.patch". */
KB_API const char *kb_version(void);
/* Number of virtual processors (starts the runtime), and the one the caller runs on now, or -1 on a
 * foreign kernel thread. */
KB_API unsigned kb_vp_count(void);
KB_API int kb_vp_self(void);
/* How long virtual processor `vp` has had no thread to run, in nanoseconds of kb_now(). Counted from the first call
 * on (of any vp); idleness that has begun before it is not counted. EINVAL: no such virtual processor. */
KB_API int kb_vp_idle(unsigned vp, uint64_t *ns);
/* Virtual processor `vp` runs on that processor of the machine from now on (as in sched_getaffinity); -1: on any that the
 * program had when the runtime started. Option bind does so at the start. Not bound are threads in blocking calls, threads
 * of KB_SCOPE_SYSTEM and children of fork. What else a thread makes with the kernel, by pthread_create, posix_spawn, system
 * or vfork, inherits the affinity of the virtual processor, a single processor, for nothing tells this library of it: make
 * it before the runtime starts or between kb_blocking_begin and kb_blocking_end (where sched_getaffinity tells the
 * program's processors, too), or link with libkochab-posix, which is told. EINVAL: no such virtual processor, or none of
 * the program's processors; EPERM: refused by the kernel. Does not suspend. */
KB_API int kb_vp_bind(unsigned vp, int processor);
/* *processor: where kb_vp_bind or the option bind has put it; -1: anywhere. EINVAL: no such virtual processor. */
KB_API int kb_vp_bound(unsigned vp, int *processor);
/* How many ready threads virtual processor `vp` holds, the running one not counted: those in its queues, and those that
 * others have given it and only it will take. A look from outside, of a moment that is over. EINVAL: no such one. */
KB_API int kb_vp_ready(unsigned vp, unsigned *n);

/* How many lightweight threads there are: main, all that have been created and have not ended, and those that run tasks
 * (kochab/task.h). The number of a moment that may be over. Does not suspend. */
KB_API unsigned kb_thread_count(void);
/* A word that is 0 until a thread besides main is created for the first time, and 1 from then on: a library may ask it
 * before each call whether it is to do anything for threads. */
KB_API const uint32_t *kb_thread_ever(void);
/* The value of a knob (`kochab options`), a number in the option's unit, of a choice the index from 0. EINVAL: no such
 * knob, it is a text (bind), or a bad option in the environment. */
KB_API int kb_option(const char *name, uint64_t *value);

#define KB_FOREVER UINT64_MAX
/* Nanoseconds of CLOCK_MONOTONIC, which is not set and stands still while the machine is suspended: so do deadlines. */
KB_API uint64_t kb_now(void);

/* ---- threads ------------------------------------------------------------------------------- */

typedef struct kb_thread *kb_thread_t;

enum kb_tls { KB_TLS_LIGHT = 0, KB_TLS_OWN = 1 };
enum kb_scope { KB_SCOPE_PROCESS = 0, KB_SCOPE_SYSTEM = 1 };
enum { KB_STACK_MIN = 16384, KB_STACK_DEFAULT = 65536, KB_NAME_MAX = 16 };

/* Opaque attributes of a thread to be created. Default: 64 KiB stack of the runtime's, joinable,
 * process scope, light TLS, placed freely, no name. */
typedef struct kb_attr {
	uint64_t opaque[8];
} kb_attr_t;

KB_API int kb_attr_init(kb_attr_t *attr);
/* Bytes; EINVAL below KB_STACK_MIN. Rounded up to pages. */
KB_API int kb_attr_setstacksize(kb_attr_t *attr, size_t bytes);
KB_API int kb_attr_getstacksize(const kb_attr_t *attr, size_t *bytes);
/* The caller's own stack: lowest address and size; no guard is added. EINVAL if too small. The memory is the caller's
 * again when the thread has been joined. */
KB_API int kb_attr_setstack(kb_attr_t *attr, void *lowest, size_t bytes);
KB_API int kb_attr_setdetached(kb_attr_t *attr, int detached);
/* KB_TLS_OWN: kb_thread_create says ENOTSUP where the machine or libc has no such threads, or cannot end them on a stack
 * of the caller's (musl). */
KB_API int kb_attr_settls(kb_attr_t *attr, enum kb_tls tls);
/* KB_SCOPE_SYSTEM: a kernel thread of its own (gettid, affinity and priority are the thread's). */
KB_API int kb_attr_setscope(kb_attr_t *attr, enum kb_scope scope);
/* Bind to virtual processor `vp` (modulo their number); -1: placed freely. */
KB_API int kb_attr_setvp(kb_attr_t *attr, int vp);
KB_API int kb_attr_setname(kb_attr_t *attr, const char *name);

/* Creates a thread that runs fn(arg). EAGAIN: no stack or descriptor to be had, nothing is leaked.
 * Does not suspend. POSIX pthread_create. */
KB_API int kb_thread_create(kb_thread_t *thread, const kb_attr_t *attr, void *(*fn)(void *), void *arg);
/* Waits for its end and frees it. EDEADLK: itself. EINVAL: detached or already being joined.
 * ESRCH: no such thread. EOWNERDEAD: it has crashed (kb_on_crash), there is no result. May suspend. */
KB_API int kb_thread_join(kb_thread_t thread, void **result);
/* EINVAL: already detached or being joined; ESRCH. */
KB_API int kb_thread_detach(kb_thread_t thread);
/* Ends the calling thread: runs the destructors of its keys. In main: the process ends when the last
 * thread has ended. */
KB_API void kb_thread_exit(void *result) __attribute__((noreturn));
/* The calling thread; NULL on a foreign kernel thread. */
KB_API kb_thread_t kb_thread_self(void);
/* At most 15 bytes are kept: ERANGE if longer. */
KB_API int kb_thread_setname(kb_thread_t thread, const char *name);
KB_API int kb_thread_getname(kb_thread_t thread, char *buf, size_t size);
/* Lets the other ready threads of this virtual processor run. May suspend. POSIX sched_yield. */
KB_API void kb_yield(void);
/* May suspend; returns at or after the time. */
KB_API void kb_sleep_until(uint64_t deadline);
KB_API void kb_sleep(uint64_t ns);
/* Prints every thread with its state and the backtrace of parked ones to descriptor fd. */
KB_API void kb_dump(int fd);

/* ---- threads that crash ------------------------------------------------------------------------ */

/* With the option contain: a thread that would end the program by SIGSEGV, SIGBUS, SIGILL, SIGFPE, abort or an overflow of
 * its stack, or whose process (option body) is killed, is lost, and the program goes on. kb_thread_join of it says
 * EOWNERDEAD. No destructors run. Which crashes end the program all the same: doc/containment.md. */
enum { KB_CRASH_FRAMES = 32 };
struct kb_crash_info {
	int signal;                    /* SIGKILL: its process was killed */
	int code;                      /* si_code */
	void *address;                 /* si_addr; NULL: of no fault (abort) */
	unsigned frames;               /* from 1 on: */
	void *frame[KB_CRASH_FRAMES];  /* where it was and return addresses, innermost first */
	char name[KB_NAME_MAX];        /* the thread's */
};
/* What happened to a thread that was lost: also when it has been joined, until 64 others are lost. ESRCH: it was not.
 * Does not suspend. */
KB_API int kb_thread_crash_info(kb_thread_t thread, struct kb_crash_info *info);
/* Called for each thread that is lost, as that thread and on another stack (256 KiB), after what it held of libc's was
 * given back, before its joiner is told. It may call the library; a crash in it ends the program. NULL, as at the start: a
 * line on standard error. Does not suspend. */
KB_API void kb_on_crash(void (*hook)(kb_thread_t thread, const struct kb_crash_info *info));
/* So many were lost. */
KB_API unsigned kb_crash_count(void);
/* Of virtual processors that are processes (option body) and were killed, too. Times in ns. */
struct kb_crash_counts {
	uint32_t lost;       /* threads */
	uint32_t bound;      /* of KB_SCOPE_SYSTEM, that ended with a process that was killed */
	uint32_t kills;      /* processes that were killed and have been replaced */
	uint32_t reserved;
	uint64_t last_at;    /* CLOCK_MONOTONIC, when the last replacement went on; */
	uint64_t last_ns;    /* since it was known that the process was killed; */
	uint64_t longest_ns; /* the longest of these times */
};
#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* a struct and a function of the same name */
#endif
KB_API void kb_crash_counts(struct kb_crash_counts *counts);
#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

/* ---- thread-specific data ------------------------------------------------------------------- */

typedef uint32_t kb_key_t;
enum { KB_KEYS_MAX = 1024 };
/* EAGAIN: no key left. The destructor is called at a thread's end for a non-NULL value, up to four
 * rounds. POSIX pthread_key_create and friends. None suspends. */
KB_API int kb_key_create(kb_key_t *key, void (*destructor)(void *));
KB_API int kb_key_delete(kb_key_t key);
KB_API int kb_setspecific(kb_key_t key, const void *value);
KB_API void *kb_getspecific(kb_key_t key);

/* ---- waiting for memory ---------------------------------------------------------------------- */

/* Waits until *word is no longer `old`, polled by the agent of the caller's virtual processor: the
 * writer need not know Kochab (another process, a device, RDMA). ETIMEDOUT. May suspend. */
KB_API int kb_watch32(const volatile uint32_t *word, uint32_t old, uint64_t deadline);
KB_API int kb_watch64(const volatile uint64_t *word, uint64_t old, uint64_t deadline);

/* ---- blocking calls ------------------------------------------------------------------------------ */

/* Between the two the caller may block in the kernel, in a foreign library, anywhere, and the other threads go on: it
 * keeps the kernel thread it is on, and that thread's virtual processor is taken over by a spare one (option spares
 * bounds them) as soon as it has other work, or after a millisecond. A pair that does not block costs some 20 ns.
 * They nest; the outermost end counts. Between them the caller is like a foreign kernel thread: kb_vp_self() is -1, and
 * what it waits for blocks the kernel thread. After the end a light thread may be on another kernel thread.
 * With a quantum (option quantum): while a light thread waits that was preempted, its virtual processor keeps its kernel
 * thread, and what is on it waits for the call; threads with own TLS have no such bond. Not in signal handlers.
 * begin: 0; does not suspend. end: 0, or EINVAL without a begin; may suspend. Both keep errno; on foreign kernel threads
 * and threads of KB_SCOPE_SYSTEM they do nothing. Where threads have no TLS of their own main is a light thread, too. */
KB_API int kb_blocking_begin(void);
KB_API int kb_blocking_end(void);

#ifdef __cplusplus
}
#endif

#include <kochab/sync.h>

#endif
