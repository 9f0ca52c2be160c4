/* core/preempt.h - the tick: a signal to the worker (the kernel thread) of a VP whose thread has
 * not switched for long while work waits behind it. The handler gives the waiting work away and may
 * switch threads (kbi_preempt_asked). Senders: the agent of an idle VP, steal_request, quantum, io.
 * There is no timer when nothing is stuck.
 * Callers: agent, steal_request, quantum, boot, process, worker_thread, contain, dump, io, space,
 * posix. */
#ifndef KBI_PREEMPT_H
#define KBI_PREEMPT_H

#include <signal.h>

#include "base/option.h"
#include "core/vp.h"
#include "os/signal_frame.h"

enum { KBI_SIGNAL_STACK = 32768 };

/* Returns the tick's signal. Its default action is to be ignored, so it does no harm where it
 * arrives by mistake, as in the next program after an exec. */
static inline int kbi_preempt_signal(void)
{
	return kbi_options.tick_signal == KBI_OPT_TICK_SIGNAL_WINCH ? SIGWINCH : SIGURG;
}

/* `kochab dump` sends this value with the tick's signal; a program without Kochab ignores that
 * signal. Returns true if the signal has this value. */
enum { KBI_PREEMPT_WISH = 0x6b646d70 };
static inline bool kbi_preempt_is_wish(const siginfo_t *info)
{
	return kbi_unlikely(info->si_code == SI_QUEUE) && info->si_value.sival_int == KBI_PREEMPT_WISH;
}
/* Called for that value on any thread, also inside handlers. NULL: nothing is called. */
extern KBI_HIDDEN void (*kbi_preempt_wished)(void);
/* Calls kbi_preempt_wished, if it is set. */
void kbi_preempt_wish(void);

/* Installs the handlers of the tick and of faults in guard pages. Returns 0, or EBUSY after a
 * message if the program handles the tick's signal itself. */
int kbi_preempt_setup(void);
/* True: the drop-in's own handler of the signal calls kbi_preempt_tick. */
extern KBI_HIDDEN bool kbi_preempt_is_shared;
/* Maps and sets an alternate signal stack of KBI_SIGNAL_STACK bytes for the calling kernel thread:
 * an overflow of a thread's stack is reported on it. Returns the stack or NULL. */
void *kbi_preempt_alt_stack(void);
/* Removes that stack before the kernel thread ends. */
void kbi_preempt_no_alt_stack(void *stack);
/* Sends the tick to vp's worker, unless that is in a call which a signal would end. Any kernel
 * thread. */
void kbi_preempt_send(struct kbi_vp *vp);
/* Does the work of the tick's handler, for a handler of the program's on the same signal. */
void kbi_preempt_tick(siginfo_t *info, void *context);
/* Moves the tick's frames, from now on, away from the interrupted stack. Needed once threads run on
 * memory that is not a stack: nothing may be written below their stack pointer. The kernel then
 * lays the frame on the kernel thread's alternate stack, and the handler moves it to below
 * place(sp), where sp is the interrupted stack pointer. place returns 0: the frame stays and the
 * thread is not switched away. Any thread may call this. */
void kbi_preempt_apart(uintptr_t (*place)(uintptr_t sp));
/* Returns true if frames are moved. The runtime's other handlers must then block all signals. */
bool kbi_preempt_is_apart(void);
/* Moves the frame of such a handler, where that is needed, and goes on there as fn; else returns.
 * False: the thread must not be switched away. */
bool kbi_preempt_settle(siginfo_t *info, void *context, kbi_signal_frame_handler *fn);
/* The tick's handler calls it first, on any thread. */
extern KBI_HIDDEN void (*kbi_preempt_restart)(struct kbi_task *self, void *context);
/* The tick's handler calls it on a thread outside the library after a request to its VP
 * (core/quantum); it may switch. */
extern KBI_HIDDEN void (*kbi_preempt_asked)(struct kbi_task *self, void *context);
/* The handler of SIGSEGV and SIGBUS calls it instead of kbi_preempt_report if the program has no
 * handler of its own. True: the thread is dealt with. */
extern KBI_HIDDEN bool (*kbi_preempt_contain)(int sig, siginfo_t *info, void *context);
/* Makes an instruction on a stack of ours executable (kbi_stack_follow_code) after a fault there.
 * True: the instruction is to be tried again. Our fault handler calls it before
 * kbi_preempt_contain; other handlers of SIGSEGV may. */
bool kbi_preempt_mends(const siginfo_t *info, const void *context);
/* Reports a fault: an overflow if it hit a guard page, or the address's meaning for
 * kbi_preempt_explain or the heap. */
void kbi_preempt_report(const siginfo_t *info);
/* void (uintptr_t): kbi_preempt_report calls it to explain a fault at an address that it knows.
 * NULL: nothing. */
extern KBI_HIDDEN aptr kbi_preempt_explain;
/* Installs the handler of SIGBUS in a process without VPs, unless the program has a handler. */
void kbi_preempt_watch_memory(void);
/* Returns true if *sa is our handler of SIGSEGV or SIGBUS, and then sets *sa to the program's
 * action. For the drop-in's sigaction. */
bool kbi_preempt_shows(int sig, struct sigaction *sa);
/* Restores the program's default action: our handler reports first, then the default follows.
 * Result as sigaction. */
int kbi_preempt_by_default(int sig);
/* Called when a thread that the tick switched away is about to return to the interrupted code,
 * perhaps on another worker; NULL: nothing. For the drop-in's masks and signals. */
extern void (*kbi_preempt_returns)(struct kbi_task *self, void *context);

/* The name of threads that run tasks (sync/crew): the message about an overflow tells how these get
 * larger stacks. */
#define KBI_PREEMPT_SERVER "task server"

#endif
