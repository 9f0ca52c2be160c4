/* core/process_fork.c - fork and exec where virtual processors are processes. Contract in
 * process_fork.h.
 *
 * fork: the calling process makes the child, as a child of the supervisor, while all processes
 * stand still. The child copies the memory that it would share (os/memory_leave), and reports the
 * end of the copy by closing a pipe. Then the program goes on; if the child dies first, the pipe
 * ends, too. The child's libc is as it was before the start, so the child is a process like any
 * process that forked with threads: a single kernel thread, no virtual processors.
 *
 * exec is the supervisor's, whose number the program has: it ends all other processes first. Errors
 * that can be seen before, such as a missing file or right, are returned; if the kernel refuses the
 * file afterwards the program is at its end.
 *
 * Runs inside libc's fork, on the caller's stack. No locks but libc/broadcast's; does not
 * switch. */
#include "core/process_fork.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/atom.h"
#include "core/process_children.h"
#include "libc/broadcast.h"
#include "libc/emulate.h"
#include "libc/intercept.h"
#include "mem/heap_door.h"
#include "os/clone_attrs.h"
#include "os/maps.h"
#include "os/memory_leave.h"
#include "os/memory_marks.h"
#include "os/sys.h"

enum { FLAGS, PARENT_TID = 2, CHILD_TID, MASK_BYTES = 8 };

static int supervisor;
static void (*end_others)(void);

/* ---- fork ------------------------------------------------------------------------------------ */

static void write_child_number(const long arg[6])
{
	int *word = (int *)arg[CHILD_TID];

	if (arg[FLAGS] & CLONE_CHILD_SETTID)
		*word = kbi_sys_gettid();
	if (arg[FLAGS] & CLONE_CHILD_CLEARTID)
		kbi_sys(SYS_set_tid_address, word);
}

/* Lies on the stack outside the space (os/memory_leave), in either process. */
struct split {
	long flags, number, pid;
	int ends[2];
	struct kbi_leave *leave;
};

static void leave_or_end(struct kbi_leave *l, const char *text, size_t n)
{
	if (kbi_leave(l)) {
		kbi_sys(SYS_write, 2, text, n);
		kbi_sys(SYS_exit_group, 127);
	}
}

static void leave_as_child(struct split *s)
{
	static const char text[] =
		"kochab: fork: no memory for a copy of the program: the child ends\n";

	leave_or_end(s->leave, text, sizeof text - 1);
	kbi_sys(SYS_close, s->ends[0]);
	kbi_sys(SYS_close, s->ends[1]);
}

/* Waits until the child has closed its end of the pipe, or is dead: nobody else has that end. */
static void wait_until_left(struct split *s)
{
	char none;

	kbi_sys(SYS_close, s->ends[1]);
	while (s->pid > 0 && kbi_sys(SYS_read, s->ends[0], &none, 1) == -EINTR)
		;
	kbi_sys(SYS_close, s->ends[0]);
}

static void split_process(void *arg)
{
	struct split here = *(struct split *)arg;

	here.pid = kbi_sys(SYS_clone, here.flags, 0, here.number, 0, 0);
	if (here.pid)
		wait_until_left(&here);
	else
		leave_as_child(&here);
	((struct split *)arg)->pid = here.pid;
}

static void become_plain_process(void)
{
	kbi_door_shared(false);
	kbi_intercept_undo();
	kbi_broadcast_forget();
}

/* Makes the child while all processes stand still. Returns 0 in the child, which is by then a plain
 * process. */
static long fork_while_stopped(long flags, const long arg[6], struct kbi_leave *l)
{
	/* the kernel would write these while the memory is still the parent's, too; the child is about
	 * to be on another stack */
	const long later = CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | CLONE_SETTLS;
	struct split s = { .flags = flags & ~later, .number = arg[PARENT_TID], .leave = l };

	/* not before: another thread's child would inherit the ends, and this fork would wait for that
	 * child */
	if (kbi_sys(SYS_pipe2, s.ends, O_CLOEXEC))
		return -EAGAIN;
	kbi_leave_call(l, split_process, &s);
	if (s.pid)
		return s.pid;
	become_plain_process();
	kbi_memory_obey_marks();
	write_child_number(arg);
	return 0;
}

/* Refuses a fork whose child could not know the mappings that it has to copy. */
static long refuse_blind(void)
{
	kbi_sys_message("fork by a thread that may not read /proc/self/maps is refused where "
			"virtual processors are processes: EPERM");
	return -EPERM;
}

static long on_fork_call(const long arg[6])
{
	struct kbi_leave *l = kbi_leave_prepare();
	bool parent = kbi_sys(SYS_getpid) != supervisor;
	uint64_t mask;
	long pid;

	if (!l)
		return -ENOMEM;
	if (!kbi_maps_may_read()) {
		kbi_leave_drop(l);
		return refuse_blind();
	}
	kbi_broadcast_stop(&mask);
	pid = fork_while_stopped(arg[FLAGS] | (parent ? CLONE_PARENT : 0), arg, l);
	if (pid)
		kbi_broadcast_release(mask);
	else
		kbi_sys(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, MASK_BYTES);
	kbi_leave_drop(l);
	return pid;
}

long kbi_process_fork_by_supervisor(const long arg[6])
{
	struct kbi_leave *l;
	uint64_t mask;
	long pid = -ENOMEM;

	if (!kbi_broadcast_try_stop(&mask))
		return -EBUSY;
	l = kbi_leave_prepare();
	if (l)
		pid = fork_while_stopped(arg[FLAGS], arg, l);
	if (pid)
		kbi_broadcast_release(mask);
	if (l)
		kbi_leave_drop(l);
	return pid;
}

/* ---- no processes after all ------------------------------------------------------------------ */

static void leave_alone(void *l)
{
	static const char text[] = "kochab: no memory for a private copy of the program: it ends\n";

	leave_or_end(l, text, sizeof text - 1);
}

void kbi_process_fork_alone(void)
{
	struct kbi_leave *l = kbi_leave_prepare();

	if (!l)
		kbi_sys(SYS_exit_group, 127);
	kbi_leave_call(l, leave_alone, l);
	kbi_leave_drop(l);
	become_plain_process();
	kbi_children_forget();
	kbi_emulate_exec = NULL;
	kbi_emulate_fork = NULL;
}

/* ---- exec ------------------------------------------------------------------------------------ */

static struct {
	a32 asked;
	long nr, arg[6];
	uint64_t mask;
	struct kbi_clone_attrs attrs;
	bool given; /* the caller's attributes differ from the supervisor's */
} exec;

static long check_exec_file(long nr, const long arg[6])
{
	struct stat st;
	bool at = nr == SYS_execveat;
	long folder = at ? arg[0] : AT_FDCWD, path = at ? arg[1] : arg[0], flags = at ? arg[4] : 0;
	long e = kbi_sys(SYS_newfstatat, folder, path, &st, flags);

	if (!e && !S_ISREG(st.st_mode))
		e = -EACCES;
	/* For a descriptor without a path, kernels before 5.8 cannot check this by faccessat: then it
	 * is left to exec */
	return e || flags ? e : kbi_sys(SYS_faccessat, folder, path, X_OK);
}

/* Refuses exec for a thread with a filter or namespace of its own: the supervisor has none, so it
 * would be lost. A child of the thread may execute the file, because the child inherits them. */
static long refuse_sealed(void)
{
	kbi_sys_message("exec by a thread with filters, privileges or namespaces of its own is "
			"refused where virtual processors are processes: EPERM");
	return -EPERM;
}

static long on_exec_call(long nr, const long arg[6])
{
	const uint64_t every = ~kbi_broadcast_bit();
	long e = check_exec_file(nr, arg);
	enum kbi_clone_attrs_kind kind = kbi_clone_attrs_kind();
	uint64_t mask;

	if (!e && kind == KBI_CLONE_ATTRS_SEALED)
		e = refuse_sealed();
	if (e)
		return e;
	kbi_sys(SYS_rt_sigprocmask, SIG_SETMASK, &every, &mask, MASK_BYTES);
	/* no data is passed here: of several callers a single caller writes the request */
	if (!a_xchg_acqrel(&exec.asked, 1)) {
		exec.nr = nr;
		exec.mask = mask;
		memcpy(exec.arg, arg, sizeof exec.arg);
		exec.given = kind == KBI_CLONE_ATTRS_GIVEN;
		kbi_clone_attrs_read(&exec.attrs);
		a_store_rel(&exec.asked, 2); /* partner: the acquire in kbi_process_fork_answer */
		kbi_sys(SYS_kill, supervisor, KBI_BROADCAST_SIGNAL);
	}
	for (;;)
		kbi_sys(SYS_ppoll, NULL, 0, NULL, NULL, MASK_BYTES);
}

void (*kbi_process_fork_execs)(void);

void kbi_process_fork_answer(void)
{
	const long *a = exec.arg;
	static const char text[] =
		"kochab: exec: the kernel refuses to execute the file: the program ends\n";

	if (a_load_acq(&exec.asked) != 2) /* partner: the release in on_exec_call */
		return;
	end_others();
	if (exec.given)
		kbi_clone_attrs_take(&exec.attrs);
	kbi_sys(SYS_rt_sigprocmask, SIG_SETMASK, &exec.mask, NULL, MASK_BYTES);
	if (kbi_process_fork_execs)
		kbi_process_fork_execs();
	kbi_sys(exec.nr, a[0], a[1], a[2], a[3], a[4]);
	kbi_sys_write(2, text, sizeof text - 1);
	kbi_sys(SYS_exit_group, 127);
}

void kbi_process_fork_setup(int pid, void (*others)(void))
{
	supervisor = pid;
	end_others = others;
	kbi_emulate_exec = on_exec_call;
	kbi_emulate_fork = on_fork_call;
}
