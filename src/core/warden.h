/* core/warden.h - the processes of a program whose virtual processors are processes: their table, and what the supervisor
 * does about those that stop, are killed or end. It traces them (os/trace), so it sees each one's end before that comes.
 * Callers: body_process: the supervisor; contain. Calls revive, os/everywhere. */
#ifndef KBI_WARDEN_H
#define KBI_WARDEN_H

#include <signal.h>

#include "base/atom.h"

struct kb_thread;
struct kbi_stack;

/* The thread that ran in a process when that was killed, as long as it has not given up its processor since: its descriptor
 * may be another thread's then. */
struct kbi_victim {
	struct kb_thread *thread; /* NULL: not known yet */
	uint64_t turn;            /* kbi_vp_turns */
};

struct kbi_process {
	a32 pid;                  /* 0: none */
	a32 over;                 /* it ends because its work is done */
	struct kbi_stack *stack;  /* stays when it has ended */
	void *(*fn)(void *);
	void *arg;
	uint64_t mask;            /* that it begins with */
	bool by_body;             /* it was made by one of them, not by the supervisor */
	a32 traced;               /* enum kbi_warden_traced; it waits for that before it does anything */
	a32 begun;                /* it has done something: it is not simply started again */
	/* the supervisor's: */
	bool end_seen;            /* it stood at its end; its place is known */
	bool unplaced;            /* a successor that was killed before it stood in that place */
	siginfo_t passed;         /* the signal that it was last told to go on with, si_signo 0: none */
	/* it was killed and goes on: */
	a32 notices;              /* how often the thread that ran there is still to be told, until it is lost */
	struct kbi_victim victim;
	a32 final;                /* the program cannot do without it: the next kill ends it */
};

enum kbi_warden_traced { KBI_WARDEN_NOT_YET, KBI_WARDEN_TRACED, KBI_WARDEN_NEVER };

extern KBI_HIDDEN struct kbi_warden {
	int supervisor;              /* constant once VPs run */
	struct kbi_process *process; /* changed between hold and release of os/everywhere */
	unsigned most;
	int first;                   /* the first body: signals for the program go there */
} kbi_warden;

struct kbi_process *kbi_warden_find(int pid);
/* In a new process, first of all: returns when the supervisor traces it, if it traces any. */
void kbi_warden_wait(struct kbi_process *p);

/* ---- the supervisor ------------------------------------------------------------------------------------------------ */

/* Once, before there are other processes. again(p): starts p once more, from its beginning; its number, or -errno. */
void kbi_warden_begin(int (*again)(struct kbi_process *p));
/* There may be a new process: it is traced from now on. */
void kbi_warden_look(void);
/* SIGCHLD has come. ended(pid): of those that have. */
void kbi_warden_reap(void (*ended)(int pid));
/* One that has ended, which has not been reaped: it was killed, and has a successor now. */
bool kbi_warden_saves(int pid);
/* Some process that was killed is to be told again, so often: */
enum { KBI_WARDEN_BETWEEN = 2000000 /* ns */ };
bool kbi_warden_reminds(void);
void kbi_warden_remind(void);

/* ---- killed ones ----------------------------------------------------------------------------------------------------- */

/* A process that was killed goes on in another one (core/revive), and there, in a signal handler with this context, what it
 * takes to lose the thread that ran is done. *victim is kept from call to call. */
enum kbi_warden_loss {
	KBI_WARDEN_DONE,  /* it will be lost when the handler returns; or there was none */
	KBI_WARDEN_LATER, /* it is where it cannot be left */
	KBI_WARDEN_ENDS,  /* the program ends with it */
};
struct kbi_warden_kills {
	uint32_t kills;    /* processes that were killed and had a successor */
	uint32_t bound;    /* kernel threads of the program's that ended with them */
	uint64_t at;       /* kbi_sys_now() when the last successor went on; */
	uint64_t last;     /* ns since the supervisor had seen that kill; */
	uint64_t longest;  /* the most of all */
};
struct kbi_warden_kills kbi_warden_kills(void);
/* By the supervisor: the program's own kernel threads in this process are lost. How many. */
extern KBI_HIDDEN unsigned (*kbi_warden_bury)(int pid);
/* By the supervisor: this one has a successor, which has not gone on yet; what a timer or another process was about to tell
 * the killed one may be lost. NULL: nothing. */
extern KBI_HIDDEN int (*kbi_warden_knock)(int pid);
/* By the supervisor: process pid, which has ended, is not to be in the table any more; and (0) it is not. */
extern KBI_HIDDEN void (*kbi_warden_counts)(int pid);
/* NULL: killed processes have no successors. */
extern KBI_HIDDEN enum kbi_warden_loss (*kbi_warden_lose)(struct kbi_victim *victim, void *context);

#endif
