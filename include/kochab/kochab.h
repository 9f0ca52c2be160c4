/* kochab/kochab.h - the native interface of Kochab: lightweight threads that run on virtual
 * processors and wait by polling.
 *
 * Terms. A virtual processor is a kernel thread (or, with the option body=process, a process) that
 * runs lightweight threads one after the other. A foreign kernel thread is a kernel thread that
 * Kochab did not create. A light thread (KB_TLS_LIGHT) has no thread-local storage (TLS) of its
 * own: it uses the TLS of the virtual processor it runs on.
 *
 * Results. A function that can fail returns 0 or a positive errno value. "EAGAIN: ..." in a comment
 * names an error and its cause. Times are absolute CLOCK_MONOTONIC nanoseconds (kb_now() + delay);
 * KB_FOREVER never comes.
 *
 * Suspension. "May suspend" means: the calling lightweight thread may give up its virtual processor
 * and continue on another virtual processor. Across such a call a light thread must not hold the
 * address of errno or of a __thread variable, a stdio lock or a C++ exception. No native call is a
 * cancellation point. A foreign kernel thread may make every call, too; where the call waits, it
 * blocks that kernel thread.
 *
 * Signals. All virtual processors except the first run with all signals blocked. Where virtual
 * processors are processes, a signal that a thread raises for itself is delivered all the same,
 * unless the thread has blocked it. Threads of KB_SCOPE_SYSTEM and children of fork have the signal
 * mask that the program had when the runtime started. A thread or process that a lightweight thread
 * starts by libc's own pthread_create, posix_spawn or popen inherits the mask of the virtual
 * processor; set the mask in the new thread or process. */
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

/* Starts the runtime: reads KOCHAB_* from the environment, creates the virtual processors and makes
 * the caller a lightweight thread. The first kb_thread_create calls kb_init if the program has not
 * called it. Further calls do nothing and return 0. Errors: EINVAL: an option has a bad value, a
 * message on standard error names it; EAGAIN; ENOMEM; EBUSY: libkochab-posix was loaded into a
 * program that contains this library. */
KB_API int kb_init(void);
/* Starts the runtime as kb_init does, with options that the program prefers: "name=value" separated
 * by blanks, such as "vps=4 bind=cores quantum=10ms" (`kochab options --all` lists them). KOCHAB_*
 * in the environment takes precedence. Must be called before there are other threads. EINVAL: an
 * option is unknown or has a bad value; nothing is set, a message names the option, and the program
 * may call again with better options. EALREADY: the runtime has been started. */
KB_API int kb_init_with(const char *options);
/* Returns the library's version, "major.minor.patch". */
KB_API const char *kb_version(void);
/* kb_vp_count starts the runtime and returns the number of virtual processors. kb_vp_self returns
 * the number of the virtual processor that the caller runs on now, or -1 on a foreign kernel
 * thread. */
KB_API unsigned kb_vp_count(void);
KB_API int kb_vp_self(void);
/* Sets *ns to the time, in nanoseconds of kb_now(), for which virtual processor `vp` has had no
 * thread to run. Counting begins with the first call of this function for any `vp`; an idle period
 * that began before that call is not counted. EINVAL: there is no such virtual processor. */
KB_API int kb_vp_idle(unsigned vp, uint64_t *ns);
/* Binds virtual processor `vp` to a processor of the machine (numbered as in sched_getaffinity);
 * -1: to all processors that the program had when the runtime started. The option bind does the
 * same at the start. Threads in blocking calls, threads of KB_SCOPE_SYSTEM and children of fork are
 * not bound.
 *
 * A kernel thread or process that a lightweight thread makes by pthread_create, posix_spawn, system
 * or vfork inherits the affinity of the virtual processor, a single processor: this library does
 * not learn of it. Make it before the runtime starts, or between kb_blocking_begin and
 * kb_blocking_end (where sched_getaffinity returns the program's processors, too), or link with
 * libkochab-posix, which sees such calls.
 *
 * EINVAL: there is no such virtual processor, or the processor is not one of the program's. EPERM:
 * the kernel refuses. Does not suspend. */
KB_API int kb_vp_bind(unsigned vp, int processor);
/* Sets *processor to the processor that kb_vp_bind or the option bind has chosen for `vp`; -1: any.
 * EINVAL: there is no such virtual processor. */
KB_API int kb_vp_bound(unsigned vp, int *processor);
/* Sets *n to the number of ready threads that virtual processor `vp` holds, without the running
 * thread: threads in its queues, and threads that other virtual processors have given to it and
 * that only it will take. The number may be out of date at return. EINVAL: there is no such virtual
 * processor. */
KB_API int kb_vp_ready(unsigned vp, unsigned *n);

/* Returns the number of lightweight threads: main, all threads that have been created and have not
 * ended, and the threads that run tasks (kochab/task.h). The number may be out of date at return.
 * Does not suspend. */
KB_API unsigned kb_thread_count(void);
/* Returns the address of a word that is 0 until a thread besides main is created for the first
 * time, and 1 from then on. A library may read it before each call to learn whether it must be
 * thread-safe. */
KB_API const uint32_t *kb_thread_ever(void);
/* Sets the word of kb_thread_ever back to 0, until the next thread is created. For a library that
 * has just created threads of its own, which do not use the objects of the program: called by the
 * only other thread. Does not suspend. */
KB_API void kb_thread_ever_reset(void);
/* Sets *value to the value of an option (`kochab options --all`): a number in the option's unit, or
 * for a choice its index from 0. EINVAL: there is no such option, it is a text (bind), or an option
 * in the environment has a bad value. */
KB_API int kb_option(const char *name, uint64_t *value);

#define KB_FOREVER UINT64_MAX
/* Returns the nanoseconds of CLOCK_MONOTONIC. This clock is never set and stands still while the
 * machine is suspended; so do deadlines. */
KB_API uint64_t kb_now(void);

/* ---- threads ------------------------------------------------------------------------------- */

typedef struct kb_thread *kb_thread_t;

enum kb_tls { KB_TLS_LIGHT = 0, KB_TLS_OWN = 1 };
enum kb_scope { KB_SCOPE_PROCESS = 0, KB_SCOPE_SYSTEM = 1 };
enum { KB_STACK_MIN = 16384, KB_STACK_DEFAULT = 65536, KB_NAME_MAX = 16 };

/* Opaque attributes of a thread to be created. Defaults: a 64 KiB stack that the runtime allocates,
 * joinable, process scope, light TLS, not bound to a virtual processor, no name. */
typedef struct kb_attr {
	uint64_t opaque[8];
} kb_attr_t;

KB_API int kb_attr_init(kb_attr_t *attr);
/* Sets the stack size in bytes, rounded up to pages. EINVAL: below KB_STACK_MIN. */
KB_API int kb_attr_setstacksize(kb_attr_t *attr, size_t bytes);
KB_API int kb_attr_getstacksize(const kb_attr_t *attr, size_t *bytes);
/* Makes the thread run on the caller's own memory: lowest address and size in bytes; no guard page
 * is added. EINVAL: too small. The memory is the caller's again when the thread has been joined. */
KB_API int kb_attr_setstack(kb_attr_t *attr, void *lowest, size_t bytes);
KB_API int kb_attr_setdetached(kb_attr_t *attr, int detached);
/* KB_TLS_OWN: the thread gets thread-local storage of its own. kb_thread_create then returns
 * ENOTSUP where the machine or libc does not support this, or cannot end such a thread on a stack
 * of the caller's (musl). */
KB_API int kb_attr_settls(kb_attr_t *attr, enum kb_tls tls);
/* KB_SCOPE_SYSTEM: the thread gets a kernel thread of its own, so gettid, affinity and priority are
 * the thread's. */
KB_API int kb_attr_setscope(kb_attr_t *attr, enum kb_scope scope);
/* Binds the thread to virtual processor `vp` (modulo their number); -1: to none. */
KB_API int kb_attr_setvp(kb_attr_t *attr, int vp);
KB_API int kb_attr_setname(kb_attr_t *attr, const char *name);

/* Creates a thread that runs fn(arg). EAGAIN: no stack or no descriptor is left; nothing is leaked.
 * Does not suspend. POSIX pthread_create. */
KB_API int kb_thread_create(kb_thread_t *thread, const kb_attr_t *attr, void *(*fn)(void *), void *arg);
/* Waits for the end of the thread and frees it. EDEADLK: the caller itself. EINVAL: detached, or
 * already being joined. ESRCH: no such thread. EOWNERDEAD: the thread has crashed (kb_on_crash) and
 * there is no result. May suspend. POSIX pthread_join, but no cancellation point. */
KB_API int kb_thread_join(kb_thread_t thread, void **result);
/* Lets the thread free itself when it ends. EINVAL: already detached or being joined; ESRCH. Does
 * not suspend. POSIX pthread_detach. */
KB_API int kb_thread_detach(kb_thread_t thread);
/* Ends the calling thread after running the destructors of its keys. In main: the process ends when
 * the last thread has ended. POSIX pthread_exit. */
KB_API void kb_thread_exit(void *result) __attribute__((noreturn));
/* Returns the calling thread; NULL on a foreign kernel thread. */
KB_API kb_thread_t kb_thread_self(void);
/* Sets the thread's name, at most 15 bytes. ERANGE: longer. */
KB_API int kb_thread_setname(kb_thread_t thread, const char *name);
KB_API int kb_thread_getname(kb_thread_t thread, char *buf, size_t size);
/* Lets the other ready threads of this virtual processor run. May suspend. POSIX sched_yield. */
KB_API void kb_yield(void);
/* Return at or after the given time, or after `ns` nanoseconds. May suspend. */
KB_API void kb_sleep_until(uint64_t deadline);
KB_API void kb_sleep(uint64_t ns);
/* Prints to descriptor fd every thread with its state, and the backtraces of waiting threads. */
KB_API void kb_dump(int fd);

/* ---- threads that crash ---------------------------------------------------------------------- */

/* With the option contain, a thread that would end the program by SIGSEGV, SIGBUS, SIGILL, SIGFPE,
 * abort or an overflow of its stack, or whose process (option body) is killed, is lost, and the
 * program goes on. kb_thread_join of a lost thread returns EOWNERDEAD. No destructors run.
 * doc/containment.md lists the crashes that end the program nevertheless. */
enum { KB_CRASH_FRAMES = 32 };
struct kb_crash_info {
	int signal;                    /* SIGKILL: the thread's process was killed */
	int code;                      /* si_code */
	void *address;                 /* si_addr; NULL: not a fault (abort) */
	unsigned frames;               /* number of valid entries of frame, at least 1 */
	/* the faulting instruction, then return addresses, innermost first */
	void *frame[KB_CRASH_FRAMES];
	char name[KB_NAME_MAX];        /* the thread's name */
};
/* Sets *info to the cause of a thread's loss. Works also after the thread has been joined, until 64
 * more threads are lost. ESRCH: the thread was not lost. Does not suspend. */
KB_API int kb_thread_crash_info(kb_thread_t thread, struct kb_crash_info *info);
/* Sets the hook that is called for each lost thread. The hook runs as the lost thread, on another
 * stack (256 KiB), after the thread's locks of libc have been released and before its joiner is
 * woken. It may call this library; a crash in the hook ends the program. NULL (the default) prints
 * a line on standard error. Does not suspend. */
KB_API void kb_on_crash(void (*hook)(kb_thread_t thread, const struct kb_crash_info *info));
/* Returns the number of threads that were lost. */
KB_API unsigned kb_crash_count(void);
/* Counts of lost threads, and of processes that are virtual processors (option body) and were
 * killed. Times in ns. */
struct kb_crash_counts {
	uint32_t lost;       /* threads */
	uint32_t bound;      /* threads of KB_SCOPE_SYSTEM that ended with a killed process */
	uint32_t kills;      /* processes that were killed and have been replaced */
	uint32_t reserved;
	uint64_t last_at;    /* CLOCK_MONOTONIC time when the last replacement began to run threads */
	uint64_t last_ns;    /* from the notice that the process was killed to last_at */
	uint64_t longest_ns; /* the longest last_ns of all replacements */
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
/* EAGAIN: no key is left. At a thread's end the destructor is called for each non-NULL value, in at
 * most four rounds. POSIX pthread_key_create, pthread_key_delete, pthread_setspecific,
 * pthread_getspecific. None suspends. */
KB_API int kb_key_create(kb_key_t *key, void (*destructor)(void *));
KB_API int kb_key_delete(kb_key_t key);
KB_API int kb_setspecific(kb_key_t key, const void *value);
KB_API void *kb_getspecific(kb_key_t key);

/* ---- waiting for memory ---------------------------------------------------------------------- */

/* Wait until *word differs from `old`. The agent of the caller's virtual processor polls the word,
 * so the writer need not know Kochab (another process, a device, RDMA). ETIMEDOUT. May suspend. */
KB_API int kb_watch32(const volatile uint32_t *word, uint32_t old, uint64_t deadline);
KB_API int kb_watch64(const volatile uint64_t *word, uint64_t old, uint64_t deadline);

/* ---- blocking calls -------------------------------------------------------------------------- */

/* Between the two calls the caller may block in the kernel, in a foreign library or anywhere else
 * while the other threads go on. The caller keeps its kernel thread; the virtual processor of that
 * kernel thread is taken over by an idle worker, a spare kernel thread (option spares bounds their
 * number), as soon as the virtual processor has other work, or after a millisecond. A pair that
 * does not block costs some 20 ns.
 *
 * The pairs nest; only the outermost end counts. Between them the caller is like a foreign kernel
 * thread: kb_vp_self() is -1, and a call that waits blocks the kernel thread. After the end a light
 * thread may be on another kernel thread. With a quantum (option quantum): while a light thread
 * that was preempted waits to run, its virtual processor keeps its kernel thread, and the threads
 * on this virtual processor wait until the blocking call returns; threads with own TLS do not cause
 * this.
 *
 * begin returns 0 and does not suspend. end returns 0, or EINVAL without a begin, and may suspend.
 * Both keep errno. On foreign kernel threads and threads of KB_SCOPE_SYSTEM they do nothing. Where
 * threads have no TLS of their own, main is a light thread, too. Not for signal handlers. */
KB_API int kb_blocking_begin(void);
KB_API int kb_blocking_end(void);

#ifdef __cplusplus
}
#endif

#include <kochab/sync.h>

#endif
