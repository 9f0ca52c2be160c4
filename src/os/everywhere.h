/* os/everywhere.h - one system call, made by every process of a program whose virtual processors are processes: mappings
 * and what signals do belong to each process, and the program has one of each. The caller makes it first; if that went well
 * the others are interrupted by a signal and make it, too, before the caller goes on.
 * Callers: os/libcall, core/body_process. Any thread of any of the processes; not in a handler of this signal. */
#ifndef KBI_EVERYWHERE_H
#define KBI_EVERYWHERE_H

#include "base/base.h"

#include <signal.h>

#include "os/sys.h"

/* libc's for set*id, which its functions hide from programs; where virtual processors are processes libc has no use for it.
 * Open in every process of ours. */
enum { KBI_EVERYWHERE_SIGNAL = 33 };

/* Signals that are never to be blocked for long: that one, and those of os/libsite. 0 where bodies are kernel threads. */
extern KBI_HIDDEN uint64_t kbi_everywhere_kept; /* grows before there are processes */
static inline uint64_t kbi_everywhere_bit(void)
{
	return kbi_sys_from.processes ? kbi_everywhere_kept : 0;
}

/* Those of them that a call of libc's may raise: blocked while one is made they end the process. */
static inline uint64_t kbi_everywhere_faults(void)
{
	return kbi_everywhere_kept & ~((uint64_t)1 << (KBI_EVERYWHERE_SIGNAL - 1));
}

/* How handlers return where libc's return would be taken for a call of the program's; 0: as libc says. */
extern KBI_HIDDEN uintptr_t kbi_everywhere_restorer;
/* An action for the kernel, a struct of its own, fits in with the two. */
void kbi_everywhere_fit(uint64_t *action);

enum { KBI_EVERYWHERE_DATA = 64 };

struct kbi_everywhere_call {
	long nr, arg[6];
	long (*fn)(const struct kbi_everywhere_call *c); /* instead of the system call, if it is not NULL */
	unsigned more;  /* so often again, each with the first argument larger by */
	long step;
	bool rights;    /* it changes what the process may do: the signal at its parent's end is lost by that, and set again */
	int pointer;    /* which argument points to data; -1: none. The others' copy lies elsewhere */
	char data[KBI_EVERYWHERE_DATA];
};

/* Room for so many processes; the handler is installed. ENOMEM. Once. */
int kbi_everywhere_setup(unsigned processes);
/* What the (first) call returned here: -errno and nobody else has made it, or every process has. */
long kbi_everywhere(const struct kbi_everywhere_call *c);
/* Between hold and release no such call is under way: a process that is started meanwhile and added misses none. */
void kbi_everywhere_hold(uint64_t *mask);
void kbi_everywhere_add(int pid);
void kbi_everywhere_release(uint64_t mask);
/* As hold, and all others stand still until release: none of them writes or calls anything. Not kernel threads that a
 * process has beside its first one. */
void kbi_everywhere_stop(uint64_t *mask);
/* The same by the supervisor, on whom who holds it may depend. False: not now, it is held; it answers, and tries again. */
bool kbi_everywhere_try_stop(uint64_t *mask);
/* Between stop and release: the caller makes the call; if that went well the others make it, too, before it returns. Who
 * has given up its rights by the call need not send signals. */
long kbi_everywhere_stopped(const struct kbi_everywhere_call *c);
/* In a child of fork: it is none of them, there are no others, and the signal is libc's. */
void kbi_everywhere_forget(void);
/* It has ended. */
void kbi_everywhere_remove(int pid);
/* The supervisor, about process `old`, which stands at its end or has ended: calls under way do not wait for it. As
 * hold; or true, nothing is to be released: one that stands at its end holds it, and what that was making the caller
 * has made. */
bool kbi_everywhere_act_for(int old, uint64_t *mask);
/* Between that and the release, or where there is none: a copy of the caller is in old's place. */
void kbi_everywhere_succeed(int old, int now);
/* Another one that stands at its end has stopped all others: it is to have its successor before pid has. */
bool kbi_everywhere_waits_for_another(int pid);
/* Afterwards: the caller, who stood still, does so again. */
void kbi_everywhere_stand(void);
/* pid stands at its end, or has ended, and answers no more: nobody is to wait for it. */
void kbi_everywhere_excuse(int pid);
/* Called again and again in the process `watcher` while it waits for the lock, or stands still; NULL: nothing. */
extern KBI_HIDDEN void (*kbi_everywhere_meanwhile)(void);
extern KBI_HIDDEN int kbi_everywhere_watcher;
/* The handler, on the alternate stack, calls this, too. Once, before other processes run. */
void kbi_everywhere_also(void (*fn)(void *context));
/* Is the process that calls one of them? A child between vfork and its program is not. */
bool kbi_everywhere_has_me(void);
/* The number of the last one that the calling process has made. */
uint64_t kbi_everywhere_last(void);
/* Makes what is asked of this process now: what the handler does, for who waits with signals blocked. */
void kbi_everywhere_answer(void);

#endif
