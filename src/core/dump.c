/* core/dump.c - prints threads: on SIGQUIT, at a deadlock, on request. Contract in dump.h.
 * Backtraces follow frame pointers inside the thread's own stack from its saved context; code
 * compiled without frame pointers shortens them (the debugger helper unwinds fully). The state of a
 * thread that runs meanwhile is a snapshot. */
#include "core/dump.h"
#include "core/process.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <kochab/kochab.h>

#include "base/option.h"
#include "core/contain.h"
#include "core/handoff.h"
#include "core/preempt.h"
#include "core/sysmon.h"
#include "core/vp.h"
#include "core/worker_pool.h"
#include "libc/real.h"
#include "os/sys.h"

enum { FRAMES = 24 };

/* Writes a line behind the prefix by which all messages are found. Its newline stays even if the
 * text is cut. */
static void KBI_PRINTF(2, 3) print_line(int fd, const char *format, ...)
{
	static const char prefix[] = "kochab: ";
	enum { PREFIX = sizeof prefix - 1 };
	char text[512];
	va_list ap;
	int n;

	memcpy(text, prefix, PREFIX);
	va_start(ap, format);
	n = vsnprintf(text + PREFIX, sizeof text - PREFIX, format, ap);
	va_end(ap);
	if (n < 0)
		return;
	n = (size_t)n < sizeof text - PREFIX ? n + PREFIX : (int)sizeof text - 1;
	text[n - 1] = '\n';
	kbi_sys_harmless(text, (size_t)n);
	kbi_sys_write(fd, text, (size_t)n);
}

static const char *state_name(enum kbi_task_kind k)
{
	static const char *const names[] = {
		[KBI_TASK_FREE] = "free",       [KBI_TASK_NEW] = "new",
		[KBI_TASK_READY] = "ready",     [KBI_TASK_WAIVED] = "moving",
		[KBI_TASK_RUNNING] = "running", [KBI_TASK_WAITING] = "waiting",
		[KBI_TASK_DONE] = "ended",      [KBI_TASK_FOREIGN] = "kernel thread",
		[KBI_TASK_BLOCKED] = "in a blocking call",
	};

	return names[k];
}

static void print_frame(int fd, unsigned n, uintptr_t pc)
{
	Dl_info i;

	if (!dladdr((void *)pc, &i) || !i.dli_fname)
		print_line(fd, "    #%-2u 0x%lx\n", n, (unsigned long)pc);
	else if (i.dli_sname)
		print_line(fd, "    #%-2u 0x%lx %s+0x%lx (%s)\n", n, (unsigned long)pc, i.dli_sname,
		     (unsigned long)(pc - (uintptr_t)i.dli_saddr), i.dli_fname);
	else
		print_line(fd, "    #%-2u 0x%lx %s+0x%lx\n", n, (unsigned long)pc, i.dli_fname,
		     (unsigned long)(pc - (uintptr_t)i.dli_fbase));
}

/* Reads two words of a stack, which its thread may leave meanwhile, so that there may be anything
 * instead of a frame: the kernel reads them, and a bad address does not make us fault. */
static bool read_stack_words(uintptr_t at, uintptr_t word[2])
{
	struct iovec to = { word, 2 * sizeof *word }, from = { (void *)at, 2 * sizeof *word };

	return kbi_sys(SYS_process_vm_readv, kbi_sys(SYS_getpid), &to, 1, &from, 1) == (long)to.iov_len;
}

/* A thread as seen from another thread: approximate, because its VP may change it. */
struct seen {
	uintptr_t sp, low, high; /* of its stack */
	bool has_deadline, watches;
	char name[sizeof((struct kb_thread *)0)->name + 1];
};

/* Reads t. main's stack is libc's: its frames are followed as long as they climb, for at most 8
 * MiB. */
__attribute__((no_sanitize("thread"))) static void snapshot_thread(const struct kb_thread *t,
	struct seen *s)
{
	const volatile struct kb_thread *v = t;
	const struct kbi_stack *stack = v->stack;

	s->sp = s->low = (uintptr_t)v->task.ctx.sp;
	s->high = stack ? (uintptr_t)stack->low + stack->size : s->low + (8 << 20);
	s->has_deadline = kbi_task_is(&t->task, KBI_TASK_TIMED);
	s->watches = kbi_task_is(&t->task, KBI_TASK_WATCHES);
	for (unsigned i = 0; i < sizeof t->name; i++)
		s->name[i] = v->name[i];
	s->name[sizeof t->name] = 0;
}

/* Finds where a saved context goes on: pc and frame pointer. */
static bool read_context(uintptr_t sp, uintptr_t *pc, uintptr_t *fp)
{
#if defined(KBI_FRAME_RIP)
	_Static_assert(KBI_FRAME_RIP == KBI_FRAME_RBP + 8, "read together");
	uintptr_t word[2];

	if (!read_stack_words(sp + KBI_FRAME_RBP, word))
		return false;
	*fp = word[0];
	*pc = word[1];
	return true;
#else
	(void)sp;
	*pc = *fp = 0;
	return false;
#endif
}

static void backtrace_of(int fd, const struct kb_thread *t, const struct seen *s)
{
	uintptr_t pc, fp, low = s->low;

	if (kbi_task_is(&t->task, KBI_TASK_NOT_STARTED) || !read_context(s->sp, &pc, &fp))
		return;
	for (unsigned n = 0; n < FRAMES && pc; n++) {
		uintptr_t f[2];

		print_frame(fd, n, pc);
		if (fp < low || fp + sizeof f > s->high || fp % sizeof *f ||
		    !read_stack_words(fp, f))
			return;
		low = fp + 1;
		fp = f[0];
		pc = f[1];
	}
}

/* Prints a thread. open: its addresses may be seen. */
static void print_thread_state(int fd, const struct kb_thread *t, bool open)
{
	/* acquire: partner is the release store of the state */
	uint64_t st = a_load_acq(&t->task.state);
	enum kbi_task_kind k = kbi_state_kind(st);
	struct seen s;

	if (k == KBI_TASK_FREE)
		return;
	snapshot_thread(t, &s);
	if (k == KBI_TASK_FOREIGN || k == KBI_TASK_NEW || k == KBI_TASK_DONE)
		print_line(fd, "  thread #%u \"%s\" %s\n", t->task.index, s.name, state_name(k));
	else
		print_line(fd, "  thread #%u \"%s\" %s on VP %u%s%s%s\n", t->task.index, s.name,
		     state_name(k), kbi_state_vp(st),
		     s.has_deadline ? ", with a deadline" : "", s.watches ? ", watching a word" : "",
		     kbi_task_is(&t->task, KBI_TASK_BOUND) ? ", bound" : "");
	if ((k == KBI_TASK_WAITING || k == KBI_TASK_READY) && open)
		backtrace_of(fd, t, &s);
}

static void print_vp(int fd, const struct kbi_vp *v)
{
	static const char *const idle[] = { "busy", "polling", "sleeping" };

	print_line(fd, "  VP %u (kernel thread %d) %s, %u ready, %llu switches\n", v->id,
	     (int)a_load_rlx(&v->tid),
	     idle[a_load_rlx(&v->s->idle)], kbi_vp_backlog(v), (unsigned long long)kbi_vp_progress(v));
}

void kbi_dump(int fd)
{
	uint32_t n = kbi_descriptor_limit();
	bool open = kbi_sys_is_open();

	print_line(fd, "%u virtual processors, scheduler %s\n", kbi_vp_n,
		kbi_vp_n ? kbi_vps[0]->sched->name : "-");
	for (unsigned i = 0; i < kbi_vp_n; i++)
		print_vp(fd, kbi_vps[i]);
	print_line(fd, "  %u kernel threads in blocking calls, %u spare\n", kbi_handoff_away(),
		kbi_worker_pool_counts().idle);
	if (kbi_contain_lost())
		print_line(fd, "  %u threads were lost by crashes\n", kbi_contain_lost());
	if (!open)
		print_line(fd,
		     "  no backtraces: the program's memory is not to be seen (it is not dumpable)\n");
	for (uint32_t i = 0; i < n; i++)
		print_thread_state(fd, kbi_descriptor_at(i), open);
}

/* Returns the kernel threads of a process, by counting the entries in its folder; 0: unknown. */
static unsigned kernel_threads_in(const char *folder)
{
	char buf[4096];
	long fd = kbi_sys(SYS_openat, AT_FDCWD, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), n;
	unsigned count = 0;

	if (fd < 0)
		return 0;
	while ((n = kbi_sys(SYS_getdents64, fd, buf, sizeof buf)) > 0)
		for (long at = 0; at < n;) {
			uint16_t length;

			memcpy(&length, buf + at + 16, sizeof length);
			count += buf[at + 19] != '.';
			at += length;
		}
	kbi_sys(SYS_close, fd);
	return count;
}

/* Returns the kernel threads of this process; where virtual processors are processes, of all but
 * the supervisor. */
static unsigned kernel_threads(void)
{
	char folder[32];
	unsigned count = 0;

	if (!kbi_sys_from.processes)
		return kernel_threads_in("/proc/self/task");
	for (unsigned i = 0; i < kbi_process_most(); i++) {
		int pid = kbi_process_at(i);

		if (!pid)
			continue;
		snprintf(folder, sizeof folder, "/proc/%d/task", pid);
		count += kernel_threads_in(folder);
	}
	return count;
}

/* Returns true if the program has a handler of a signal that comes from outside. Our handlers,
 * libc's and handlers of faults do not count. */
static bool has_handlers(void)
{
	const int other[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGQUIT,
		kbi_preempt_signal() };
	char buf[4096] = "";
	long fd = kbi_sys(SYS_openat, AT_FDCWD, "/proc/self/status", O_RDONLY | O_CLOEXEC);
	const char *at;
	uint64_t caught;

	if (fd < 0)
		return false;
	kbi_sys(SYS_read, fd, buf, sizeof buf - 1);
	kbi_sys(SYS_close, fd);
	at = strstr(buf, "SigCgt:");
	caught = at ? strtoull(at + 7, NULL, 16) : 0;
	for (unsigned i = 0; i < kbi_countof(other); i++)
		caught &= ~(1ull << (other[i] - 1));
	for (int sig = 32; sig < SIGRTMIN; sig++)
		caught &= ~(1ull << (sig - 1));
	return caught != 0;
}

bool kbi_dump_deadlock(void)
{
	bool ends = kbi_contain_ends_deadlock();

	if (kbi_handoff_away() > 0 || kernel_threads() != kbi_handoff_kernel_threads() ||
	    (!ends && has_handlers()))
		return false;
	kbi_sys_message("deadlock: all threads wait, none has a deadline, and no kernel thread is "
			"left to wake one");
	kbi_dump(STDERR_FILENO);
	if (ends)
		kbi_sys_fatal("what the others wait for was perhaps a lost thread's to do: the program "
			      "ends (option on_crash)");
	return true;
}

/* Prints all threads on SIGQUIT. A signal that the terminal sends to each process comes by the
 * supervisor, too. */
static void on_quit(int sig, siginfo_t *info, void *context)
{
	int saved = errno;

	(void)sig;
	(void)context;
	if (!kbi_process_is_copy(info) || !kbi_process_passes())
		kbi_dump(STDERR_FILENO);
	errno = saved;
}

bool kbi_dump_is_action(const struct sigaction *sa)
{
	return sa->sa_sigaction == on_quit;
}

/* ---- on request ------------------------------------------------------------------------------ */

enum {
	STACK = 16384 /* bytes that a dump may take */
};

static a32 wished;

static bool is_wished(void)
{
	return a_load_rlx(&wished);
}

static uint64_t grant_dump(uint64_t now)
{
	(void)now;
	if (is_wished() && a_xchg_rlx(&wished, 0))
		kbi_dump(STDERR_FILENO);
	return UINT64_MAX;
}

static bool has_room(void)
{
	const struct kbi_task *self = kbi_self_raw();
	const struct kbi_stack *k = self ? kbi_thread_of((struct kbi_task *)(uintptr_t)self)->stack
		: NULL;
	uintptr_t at = (uintptr_t)__builtin_frame_address(0);

	return !k || at - (uintptr_t)k->low > STACK;
}

/* Requests a dump in a handler, on any stack: sysmon prints the list, if it runs. */
static void request_dump(void)
{
	a_store_rlx(&wished, 1);
	a_fence_sc(); /* partner: the fence in sleep_long of sysmon */
	if (a_load_rlx(&kbi_sysmon_bell) != KBI_BELL_NONE)
		kbi_sysmon_wake();
	else if (has_room())
		grant_dump(0);
	else
		kbi_sys_message("the interrupted thread's stack has no room for a list of threads: "
				"ask again");
}

/* Prints, under the option stats, the VPs' counters at the process's end. The owners go on counting
 * with plain stores. */
__attribute__((no_sanitize("thread"))) static void print_stats(void)
{
	for (unsigned i = 0; i < kbi_vp_n; i++) {
		const struct kbi_vp *v = kbi_vps[i];

		print_line(STDERR_FILENO,
		     "VP %u: %llu switches, %llu messages, %llu sleeps, %llu ticks, "
		     "%llu threads given, %llu taken\n",
		     i, (unsigned long long)kbi_vp_progress(v), (unsigned long long)v->n_mail,
		     (unsigned long long)v->n_sleeps, (unsigned long long)v->n_ticks,
		     (unsigned long long)v->s->given, (unsigned long long)v->s->taken);
		if (v->spread.n_moves)
			print_line(STDERR_FILENO,
			     "VP %u: %llu times to a processor where no VP was\n", i,
			     (unsigned long long)v->spread.n_moves);
		if (v->n_ended)
			print_line(STDERR_FILENO,
			     "VP %u: %llu turns ended by the quantum, %llu of threads that spun\n", i,
			     (unsigned long long)v->n_ended, (unsigned long long)v->n_brief);
	}
	print_line(STDERR_FILENO,
	     "at most %u threads at once, main and kernel threads that called included\n",
	     kbi_descriptor_ever_used());
	if (kbi_contain_lost())
		print_line(STDERR_FILENO, "%u threads were lost by crashes\n", kbi_contain_lost());
	print_line(STDERR_FILENO,
	     "%u kernel threads at most at once, %llu hand-overs of a VP by a blocking call\n",
	     kbi_worker_pool_counts().most, (unsigned long long)kbi_worker_pool_counts().given);
}

/* Removes the handler in the child of fork, which is a program of a single thread. */
static void remove_quit_handler(void)
{
	struct sigaction now, dfl = { .sa_handler = SIG_DFL };

	if (!kbi_real.sigaction(SIGQUIT, NULL, &now) && kbi_dump_is_action(&now))
		kbi_real.sigaction(SIGQUIT, &dfl, NULL);
}

void kbi_dump_setup(void)
{
	struct sigaction sa = { .sa_sigaction = on_quit,
		.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK }, old;

	if (kbi_options.stats)
		atexit(print_stats);
	if (!kbi_sys_is_open())
		return; /* SIGQUIT, which its caller may send, ends it as ever */
	kbi_sysmon_dump = (struct kbi_sysmon_duty){ grant_dump, is_wished };
	kbi_preempt_wished = request_dump;
	if (!kbi_options.dump_on_quit)
		return;
	sigfillset(&sa.sa_mask);
	kbi_real.sigaction(SIGQUIT, NULL, &old);
	/* SIG_IGN stays: a program that this program executes is to inherit it */
	if (old.sa_handler != SIG_DFL)
		return;
	kbi_real.sigaction(SIGQUIT, &sa, NULL);
	pthread_atfork(NULL, NULL, remove_quit_handler);
}
