/* os/everywhere.h - one system call, made by every process of a program whose virtual processors
 * are processes. Mappings and signal actions belong to each process, but the program has only one
 * set of them. The caller makes the call first. If its call succeeds, a signal interrupts the other
 * processes, and they make the call, too, before the caller goes on.
 * Callers: mem/stack*, os/libcall*, os/libsignal, os/libdispatch, core (workers, respawn,
 * supervisor), posix (signals, setid). Any thread of any of the processes may call; a handler of
 * this signal may not. The caller waits in a futex with signals blocked; no switch. */
#ifndef KBI_EVERYWHERE_H
#define KBI_EVERYWHERE_H

#include "base/base.h"

#include <signal.h>

#include "os/sys.h"

/* libc's signal for set*id, which libc's functions hide from programs. Where virtual processors are
 * processes libc does not use it. Never blocked in a process of ours. */
enum { KBI_EVERYWHERE_SIGNAL = 33 };

/* Signals that must not stay blocked: KBI_EVERYWHERE_SIGNAL and the signals of os/libsite. 0 where
 * workers are kernel threads. */
extern KBI_HIDDEN uint64_t kbi_everywhere_kept; /* grows before there are processes */
static inline uint64_t kbi_everywhere_bit(void)
{
	return kbi_sys_from.processes ? kbi_everywhere_kept : 0;
}

/* Those that a call of libc's may raise: if blocked at that time, they end the process. */
static inline uint64_t kbi_everywhere_faults(void)
{
	return kbi_everywhere_kept & ~((uint64_t)1 << (KBI_EVERYWHERE_SIGNAL - 1));
}

/* The code through which handlers return, where libc's own would be taken for a system call of the
 * program's; 0: libc's. */
extern KBI_HIDDEN uintptr_t kbi_everywhere_restorer;
/* Changes an action of rt_sigaction (the kernel's struct) so that it suits the two: mask and
 * restorer. */
void kbi_everywhere_fit(uint64_t *action);

enum { KBI_EVERYWHERE_DATA = 64 };

struct kbi_everywhere_call {
	long nr, arg[6];
	/* called instead of the system call, if not NULL */
	long (*fn)(const struct kbi_everywhere_call *c);
	unsigned more;  /* number of repetitions; each adds `step` to the first argument */
	long step;
	/* the call changes privileges, which resets the signal at the parent's end (PR_SET_PDEATHSIG):
	 * set that again */
	bool rights;
	/* index of the argument that points to `data`, which each process reads from its own copy; -1:
	 * none */
	int pointer;
	char data[KBI_EVERYWHERE_DATA];
};

/* Allocates the table for so many processes and installs the handler. Call once. Returns 0 or
 * ENOMEM. */
int kbi_everywhere_setup(unsigned processes);
/* Makes the call here, then everywhere. Returns the result of the (first) call here; if that is
 * -errno no other process has made the call, else every process has. */
long kbi_everywhere(const struct kbi_everywhere_call *c);
/* Between hold and release no such call is under way: a process that is started and added meanwhile
 * misses none. */
void kbi_everywhere_hold(uint64_t *mask);
void kbi_everywhere_add(int pid);
void kbi_everywhere_release(uint64_t mask);
/* As hold; and every other process stands still until release: it writes nothing and makes no
 * calls. Kernel threads that a process has besides its first kernel thread go on. */
void kbi_everywhere_stop(uint64_t *mask);
/* As stop, for the supervisor, on which the holder of the lock may depend. Returns false if the
 * lock is held: the supervisor then answers and tries again. */
bool kbi_everywhere_try_stop(uint64_t *mask);
/* Between stop and release: makes the call here; if that succeeds, the others make it before this
 * returns. A caller that gives up its privileges by the call need not send signals for that. */
long kbi_everywhere_stopped(const struct kbi_everywhere_call *c);
/* In a child of fork: the child is not in the table, there are no other processes, and the signal
 * is libc's again. */
void kbi_everywhere_forget(void);
/* Removes a process that has ended. */
void kbi_everywhere_remove(int pid);
/* Called by the supervisor about process `old`, which stands at its end or has ended: calls under
 * way do not wait for it. Returns false: the lock is held, as by hold. Returns true: nothing is to
 * be released; a process that stands at its end holds the lock, and the caller has made the call
 * which that process was making. */
bool kbi_everywhere_act_for(int old, uint64_t *mask);
/* Between act_for and release, or after act_for returned true: a copy of the caller takes old's
 * place. */
void kbi_everywhere_succeed(int old, int now);
/* Returns true if another process that stands at its end has stopped the rest: its successor is to
 * be made before pid's. */
bool kbi_everywhere_waits_for_another(int pid);
/* After that: the caller, which stood still, stands still again. */
void kbi_everywhere_stand(void);
/* pid stands at its end, or has ended, and answers no more: no process is to wait for it. */
void kbi_everywhere_excuse(int pid);
/* Called repeatedly in the process `watcher` while it waits for the lock or stands still; NULL:
 * nothing is called. */
extern KBI_HIDDEN void (*kbi_everywhere_meanwhile)(void);
extern KBI_HIDDEN int kbi_everywhere_watcher;
/* Makes the handler, which runs on the alternate stack, call fn, too. Call once, before other
 * processes run. */
void kbi_everywhere_also(void (*fn)(void *context));
/* Returns true if the calling process is in the table. A child between vfork and exec is not. */
bool kbi_everywhere_has_me(void);
/* Returns the number of the last call that the calling process has made. */
uint64_t kbi_everywhere_last(void);
/* Makes the call that is asked of this process now, as the handler does; for a caller that waits
 * with signals blocked. */
void kbi_everywhere_answer(void);

#endif
