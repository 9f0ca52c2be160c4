/* core/supervisor.h - the supervisor's table of the processes of a program whose virtual processors
 * are processes, and its care for processes that stop, are killed or end. It traces them
 * (os/trace), so it sees each end before it comes.
 * Callers: process (the supervisor), process_clock, process_timers, process_stack, contain, posix.
 * Calls respawn, libc/broadcast. */
#ifndef KBI_SUPERVISOR_H
#define KBI_SUPERVISOR_H

#include <signal.h>

#include "base/atom.h"

struct kb_thread;
struct kbi_stack;

/* The thread that ran in a process when that process was killed. Valid while the thread has not
 * given up its processor since: its descriptor may be another thread's then. */
struct kbi_victim {
	struct kb_thread *thread; /* NULL: not known yet */
	uint64_t turn;            /* kbi_vp_turns then */
};

struct kbi_process {
	a32 pid;                  /* 0: none */
	a32 over;                 /* 1: it ends because its work is done */
	struct kbi_stack *stack;  /* stays when the process has ended */
	void *(*fn)(void *);
	void *arg;
	uint64_t mask;            /* signal mask that the process begins with */
	bool by_worker;           /* made by a worker, not by the supervisor */
	/* enum kbi_supervisor_traced; the process waits for a change before it does anything */
	a32 traced;
	a32 begun;                /* it has done something, so it cannot simply be started again */
	/* the supervisor's: */
	bool end_seen;            /* it stood at its end; its place is known */
	bool unplaced;            /* a successor that was killed before it stood in its place */
	siginfo_t passed;         /* the last signal that it was told to go on with; si_signo 0: none */
	/* it was killed and goes on: */
	a32 notices; /* how often the thread that ran there is still to be told, until it is lost */
	struct kbi_victim victim;
	a32 final; /* 1: the program cannot do without it: the next kill ends the program */
};

enum kbi_supervisor_traced { KBI_SUPERVISOR_NOT_YET, KBI_SUPERVISOR_TRACED, KBI_SUPERVISOR_NEVER };

extern KBI_HIDDEN struct kbi_supervisor {
	int pid;                     /* constant once VPs run */
	struct kbi_process *process; /* changed between hold and release of libc/broadcast */
	unsigned most;
	int first;                   /* the first worker: signals for the program go there */
} kbi_supervisor;

/* Returns the table's entry of process pid; NULL: none. pid 0: a free entry. */
struct kbi_process *kbi_supervisor_find(int pid);
/* Waits, first of all in a new process, until the supervisor traces it, if it traces any
 * process. */
void kbi_supervisor_wait(struct kbi_process *p);

/* ---- the supervisor -------------------------------------------------------------------------- */

/* Begins the tracing; once, before there are other processes. again(p): starts p once more, from
 * its beginning, and returns its number or -errno. */
void kbi_supervisor_begin(int (*again)(struct kbi_process *p));
/* Traces any new process from now on. */
void kbi_supervisor_look(void);
/* Handles all changes after SIGCHLD. ended(pid): called for each process that has ended. */
void kbi_supervisor_reap(void (*ended)(int pid));
/* Returns true if pid, which has ended and is not reaped, was killed and has a successor now. */
bool kbi_supervisor_saves(int pid);
/* Some killed process is to be told again, with this time between two reminders: */
enum { KBI_SUPERVISOR_BETWEEN = 2000000 /* ns */ };
/* Returns true while some killed process is to be told again. */
bool kbi_supervisor_reminds(void);
/* Tells such processes again. */
void kbi_supervisor_remind(void);

/* ---- killed processes ------------------------------------------------------------------------ */

/* A killed process goes on in another process (core/respawn). There the function below runs in a
 * signal handler with this context, and prepares the loss of the thread that ran. *victim is kept
 * from call to call. */
enum kbi_supervisor_loss {
	KBI_SUPERVISOR_DONE, /* the thread will be lost when the handler returns; or there was none */
	KBI_SUPERVISOR_LATER, /* the thread is where it cannot be left */
	KBI_SUPERVISOR_ENDS, /* the program ends with it */
};
struct kbi_supervisor_kills {
	uint32_t kills;    /* processes that were killed and had a successor */
	uint32_t bound;    /* kernel threads of the program's that ended with them */
	uint64_t at;       /* kbi_sys_now() when the last successor went on */
	uint64_t last;     /* ns from when the supervisor saw that kill until then */
	uint64_t longest;  /* the longest such time, ns */
};
/* Returns the counts. Any process. */
struct kbi_supervisor_kills kbi_supervisor_kills(void);
/* Called by the supervisor: the program's own kernel threads in this process are lost. Returns
 * their number. */
extern KBI_HIDDEN unsigned (*kbi_supervisor_lose_bound)(int pid);
/* Called by the supervisor for a process with a successor that has not gone on yet: a signal
 * from a timer or another process that was about to reach the killed process may be lost. NULL:
 * nothing. */
extern KBI_HIDDEN int (*kbi_supervisor_kick)(int pid);
/* Called by the supervisor when process pid, which has ended, is about to leave the table; and with
 * 0 when it has left. */
extern KBI_HIDDEN void (*kbi_supervisor_counts)(int pid);
/* NULL: killed processes have no successors. */
extern KBI_HIDDEN enum kbi_supervisor_loss (*kbi_supervisor_lose)(struct kbi_victim *victim,
	void *context);

#endif
