/* libc/broadcast.h - one system call, made by every process of a program whose virtual processors
 * are processes. Mappings and signal actions belong to each process, but the program has only one
 * set of them. The caller makes the call first. If its call succeeds, a signal interrupts the other
 * processes, and they make the call, too, before the caller goes on.
 * Callers: mem/stack*, libc/emulate*, libc/intercept_signal, libc/intercept_sud, core (workers,
 * respawn, supervisor), posix (signals, setid). Any thread of any of the processes may call; a
 * handler of this signal may not. The caller waits in a futex with signals blocked; no switch. */
#ifndef KBI_BROADCAST_H
#define KBI_BROADCAST_H

#include "base/base.h"

#include <signal.h>

#include "os/sys.h"

/* libc's signal for set*id, which libc's functions hide from programs. Where virtual processors are
 * processes libc does not use it. Never blocked in a process of ours. */
enum { KBI_BROADCAST_SIGNAL = 33 };

/* Signals that must not stay blocked: KBI_BROADCAST_SIGNAL and the signals of libc/intercept_patch.
 * 0 where workers are kernel threads. */
extern KBI_HIDDEN uint64_t kbi_broadcast_kept; /* grows before there are processes */
static inline uint64_t kbi_broadcast_bit(void)
{
	return kbi_sys_from.processes ? kbi_broadcast_kept : 0;
}

/* Those that a call of libc's may raise: if blocked at that time, they end the process. */
static inline uint64_t kbi_broadcast_faults(void)
{
	return kbi_broadcast_kept & ~((uint64_t)1 << (KBI_BROADCAST_SIGNAL - 1));
}

/* The code through which handlers return, where libc's own would be taken for a system call of the
 * program's; 0: libc's. */
extern KBI_HIDDEN uintptr_t kbi_broadcast_restorer;
/* Changes an action of rt_sigaction (the kernel's struct) so that it suits the two: mask and
 * restorer. */
void kbi_broadcast_fit(uint64_t *action);

enum { KBI_BROADCAST_DATA = 64 };

struct kbi_broadcast_call {
	long nr, arg[6];
	/* called instead of the system call, if not NULL */
	long (*fn)(const struct kbi_broadcast_call *c);
	unsigned more;  /* number of repetitions; each adds `step` to the first argument */
	long step;
	/* the call changes privileges, which resets the signal at the parent's end (PR_SET_PDEATHSIG):
	 * set that again */
	bool rights;
	/* index of the argument that points to `data`, which each process reads from its own copy; -1:
	 * none */
	int pointer;
	char data[KBI_BROADCAST_DATA];
};

/* Allocates the table for so many processes and installs the handler. Call once. Returns 0 or
 * ENOMEM. */
int kbi_broadcast_setup(unsigned processes);
/* Makes the call here, then everywhere. Returns the result of the (first) call here; if that is
 * -errno no other process has made the call, else every process has. */
long kbi_broadcast(const struct kbi_broadcast_call *c);
/* Between hold and release no such call is under way: a process that is started and added meanwhile
 * misses none. */
void kbi_broadcast_hold(uint64_t *mask);
void kbi_broadcast_add(int pid);
void kbi_broadcast_release(uint64_t mask);
/* As hold; and every other process stands still until release: it writes nothing and makes no
 * calls. Kernel threads that a process has besides its first kernel thread go on. */
void kbi_broadcast_stop(uint64_t *mask);
/* As stop, for the supervisor, on which the holder of the lock may depend. Returns false if the
 * lock is held: the supervisor then answers and tries again. */
bool kbi_broadcast_try_stop(uint64_t *mask);
/* Between stop and release: makes the call here; if that succeeds, the others make it before this
 * returns. A caller that gives up its privileges by the call need not send signals for that. */
long kbi_broadcast_stopped(const struct kbi_broadcast_call *c);
/* In a child of fork: the child is not in the table, there are no other processes, and the signal
 * is libc's again. */
void kbi_broadcast_forget(void);
/* Removes a process that has ended. */
void kbi_broadcast_remove(int pid);
/* Called by the supervisor about process `old`, which stands at its end or has ended: calls under
 * way do not wait for it. Returns false: the lock is held, as by hold. Returns true: nothing is to
 * be released; a process that stands at its end holds the lock, and the caller has made the call
 * which that process was making. */
bool kbi_broadcast_act_for(int old, uint64_t *mask);
/* Between act_for and release, or after act_for returned true: a copy of the caller takes old's
 * place. */
void kbi_broadcast_succeed(int old, int now);
/* Returns true if another process that stands at its end has stopped the rest: its successor is to
 * be made before pid's. */
bool kbi_broadcast_waits_for_another(int pid);
/* After that: the caller, which stood still, stands still again. */
void kbi_broadcast_stand(void);
/* pid stands at its end, or has ended, and answers no more: no process is to wait for it. */
void kbi_broadcast_excuse(int pid);
/* Called repeatedly in the process `watcher` while it waits for the lock or stands still; NULL:
 * nothing is called. */
extern KBI_HIDDEN void (*kbi_broadcast_meanwhile)(void);
extern KBI_HIDDEN int kbi_broadcast_watcher;
/* Makes the handler, which runs on the alternate stack, call fn, too. Call once, before other
 * processes run. */
void kbi_broadcast_also(void (*fn)(void *context));
/* Returns true if the calling process is in the table. A child between vfork and exec is not. */
bool kbi_broadcast_has_me(void);
/* Returns the number of the last call that the calling process has made. */
uint64_t kbi_broadcast_last(void);
/* Makes the call that is asked of this process now, as the handler does; for a caller that waits
 * with signals blocked. */
void kbi_broadcast_answer(void);

#endif
