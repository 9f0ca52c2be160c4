/* os/everywhere.h - one system call, made by every process of a program whose virtual processors are processes: mappings
 * and what signals do belong to each process, and the program has one of each. The caller makes it first; if that went well
 * the others are interrupted by a signal and make it, too, before the caller goes on.
 * Callers: os/libcall, core/body_process. Any thread of any of the processes; not in a handler of this signal. */
#ifndef KBI_EVERYWHERE_H
#define KBI_EVERYWHERE_H

#include "base/base.h"

#include <signal.h>

/* Hardly anybody knows it, and the kernel never sends it. Open in every process of ours. */
#ifdef SIGSTKFLT
#define KBI_EVERYWHERE_SIGNAL SIGSTKFLT
#else
#define KBI_EVERYWHERE_SIGNAL SIGPWR
#endif

enum { KBI_EVERYWHERE_DATA = 64 };

struct kbi_everywhere_call {
	long nr, arg[6];
	unsigned more;  /* so often again, each with the first argument larger by */
	long step;
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
/* It has ended. */
void kbi_everywhere_remove(int pid);
/* The supervisor, about process `old`, which stands at its end or has ended: calls under way do not wait for it. As hold; or
 * true, nothing is to be released: one that stands at its end holds it, and what that was making the caller has made. */
bool kbi_everywhere_act_for(int old, uint64_t *mask);
/* Between that and the release, or where there is none: a copy of the caller is in old's place. */
void kbi_everywhere_succeed(int old, int now);
/* Called now and then by who waits for the lock in the process `watcher`; NULL: nothing. */
extern KBI_HIDDEN void (*kbi_everywhere_meanwhile)(void);
extern KBI_HIDDEN int kbi_everywhere_watcher;
/* Called in the handler, behind what is asked; NULL: nothing. */
extern KBI_HIDDEN void (*kbi_everywhere_more)(void *context);
/* pid has stopped, or ended, and answers no more: nobody is to wait for it. */
void kbi_everywhere_excuse(int pid);
/* Is the process that calls one of them? A child between vfork and its program is not. */
bool kbi_everywhere_has_me(void);
/* Makes what is asked of this process now: what the handler does, for who waits with signals blocked. */
void kbi_everywhere_answer(void);

#endif
