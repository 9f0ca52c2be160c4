/* core/preempt.h - the tick: a signal to the body of a VP whose thread has not switched for long while work waits
 * behind it. The handler gives the waiting work away; it does not switch threads. Sent by a sleeping VP's agent
 * (there is no timer when nothing is stuck). */
#ifndef KBI_PREEMPT_H
#define KBI_PREEMPT_H

#include <signal.h>

#include "base/option.h"
#include "core/vp.h"
#include "os/signal_frame.h"

enum { KBI_SIGNAL_STACK = 32768 };

/* The tick's: ignored by default, so harmless if it ever arrives elsewhere, such as in the next program after an exec. */
static inline int kbi_preempt_signal(void)
{
	return kbi_options.tick_signal == KBI_OPT_TICK_SIGNAL_WINCH ? SIGWINCH : SIGURG;
}

/* The value that `kochab dump` sends to a program, with the tick's signal: a program without Kochab ignores that signal.
 * Has the signal this value? */
enum { KBI_PREEMPT_WISH = 0x6b646d70 };
static inline bool kbi_preempt_is_wish(const siginfo_t *info)
{
	return kbi_unlikely(info->si_code == SI_QUEUE) && info->si_value.sival_int == KBI_PREEMPT_WISH;
}
/* Called for it, wherever it comes; also in handlers. NULL: nothing. */
extern KBI_HIDDEN void (*kbi_preempt_wished)(void);
void kbi_preempt_wish(void);

/* Installs the handlers of the tick and of faults in guard pages. EBUSY, and says so: the program handles the tick's
 * signal. */
int kbi_preempt_setup(void);
/* The handler that is there calls kbi_preempt_tick: the drop-in's. */
extern KBI_HIDDEN bool kbi_preempt_is_shared;
/* An alternate signal stack for the kernel thread that calls: overflow of a thread's stack is reported on it.
 * KBI_SIGNAL_STACK bytes, or NULL. */
void *kbi_preempt_alt_stack(void);
/* It ends. */
void kbi_preempt_no_alt_stack(void *stack);
void kbi_preempt_send(struct kbi_vp *vp);
/* What its handler does, for a handler of the program's on the same signal. */
void kbi_preempt_tick(siginfo_t *info, void *context);
/* There are threads that run on memory which is no stack, below whose stack pointer nothing may be written: from now on the
 * kernel lays the tick's frame on the kernel thread's alternate stack, and it is moved to below place(sp), sp where the
 * thread was interrupted; 0: it stays, and the thread is not left there. Any thread. */
void kbi_preempt_apart(uintptr_t (*place)(uintptr_t sp));
/* Is it so? For other handlers of the runtime's, which are to block all signals then. */
bool kbi_preempt_is_apart(void);
/* In such a handler: goes on as fn where the frame is moved to, or returns; false: the thread is not to be left. */
bool kbi_preempt_settle(siginfo_t *info, void *context, kbi_signal_frame_handler *fn);
/* Called by it first, on any thread. */
extern KBI_HIDDEN void (*kbi_preempt_restart)(struct kbi_task *self, void *context);
/* Called by it on a thread outside the library when its VP was asked for something (core/quantum); may switch. */
extern KBI_HIDDEN void (*kbi_preempt_asked)(struct kbi_task *self, void *context);
/* Called first by the handler of SIGSEGV and SIGBUS, if the program has none of its own. True: the thread is dealt with. */
extern KBI_HIDDEN bool (*kbi_preempt_contain)(int sig, siginfo_t *info, void *context);
/* Called by it before: an instruction on a stack of ours could not be run, and now can be (kbi_stack_follow_code). True: it
 * is to be tried again. For other handlers of SIGSEGV, too. */
bool kbi_preempt_mends(const siginfo_t *info, const void *context);
/* Says so, if it is a guard page that was hit; or what kbi_preempt_explain knows. */
void kbi_preempt_report(const siginfo_t *info);
/* Called by it: says more of a fault at an address, if it is one that it knows of. void (uintptr_t); NULL: nothing. */
extern KBI_HIDDEN aptr kbi_preempt_explain;
/* The handler of SIGBUS, in a process that has no virtual processors yet, if the program has none of its own. */
void kbi_preempt_watch_memory(void);
/* For the drop-in, whose program asks for the action of SIGSEGV or SIGBUS: is it our handler? Then *sa is what the
 * program has. */
bool kbi_preempt_shows(int sig, struct sigaction *sa);
/* The program wants what happens by default: our handler's report, and then that. As sigaction. */
int kbi_preempt_by_default(int sig);
/* Called when a thread that was switched away by it is about to return to the interrupted code, perhaps on another
 * body; NULL: nothing. The drop-in's masks and signals. */
extern void (*kbi_preempt_returns)(struct kbi_task *self, void *context);

/* The name of threads that run tasks (sync/crew): the message about an overflow tells how these get larger stacks. */
#define KBI_PREEMPT_SERVER "task server"

#endif
