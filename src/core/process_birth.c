/* core/process_birth.c - children that their caller's kernel thread cannot wait for, or cannot
 * make. Contract in process_birth.h.
 *
 * A thread that calls fork, vfork, posix_spawn or clone keeps its registers in a record
 * (libc/intercept_stub), and goes to a stack in that record. The child goes on with these registers
 * where the call was made.
 *
 * With the caller's memory (vfork, posix_spawn) the calling process makes the child, and waits
 * until the child has executed a program or ended. Meanwhile all signals are blocked, as the kernel
 * would have it, but for libc/broadcast's signal, because the other processes wait for its answer;
 * and nothing lies on the caller's stack, which may be the child's. The kernel's own wait
 * (CLONE_VFORK) takes no signal.
 *
 * If the caller has a seccomp filter that no child may have, it asks the supervisor
 * (process_children): the child gets the rest of the caller's attributes (os/clone_attrs). With
 * memory of its own (fork) the child copies the program's memory while all processes stand still
 * (process_fork). With the caller's memory it gets the supervisor's, which is the same memory. A
 * thread with an identity of its own is refused: its children would have another identity.
 *
 * A record is used again when its caller has gone on and its child needs it no more, as the kernel
 * reports (CLONE_CHILD_CLEARTID). */
#include "core/process_birth.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>

#include "arch/arch.h"
#include "core/process_children.h"
#include "core/process_fork.h"
#include "libc/broadcast.h"
#include "libc/intercept_signal.h"
#include "libc/intercept_stub.h"
#include "libc/real.h"
#include "os/clone_attrs.h"
#include "os/sys.h"

enum { FLAGS, OWN_STACK, PARENT_TID, CHILD_TID, TLS, ARGUMENTS = 6 }; /* clone's, x86-64 */
enum { WAITS = 32768, BEGINS = 16384 /* bytes of stacks */, MASK_BYTES = 8 };

struct birth {
	struct kbi_intercept_stub_call_apart call; /* the caller's */
	struct kbi_intercept_stub_call_apart childs; /* where the child goes on */
	struct birth *next;                   /* constant once b is in the list */
	long arg[ARGUMENTS];                  /* clone's arguments, whatever function was called */
	void *tp;
	struct kbi_clone_attrs attrs;
	bool sealed; /* the caller's other attributes cannot be given to a child */
	uint64_t sigchld[4];                  /* the program's action in the kernel's form */
	a32 begun;                            /* the child does not need `childs` any more */
	char waits[WAITS], begins[BEGINS] __attribute__((aligned(16)));
};

static aptr records;
static const uint64_t *(*programs_sigchld)(void); /* NULL: callers make the children themselves */

/* ---- records --------------------------------------------------------------------------------- */

static long make_child_and_wait(struct kbi_intercept_stub_call_apart *call);

static struct birth *new_birth_record(void)
{
	struct birth *b = kbi_sys_map(sizeof *b);
	void *first = a_load_rlx(&records);

	if (!b)
		return NULL;
	b->call.top = b->waits + WAITS;
	b->call.makes = make_child_and_wait;
	a_store_rlx(&b->call.used, 1);
	do
		b->next = first;
	while (!a_cas_rel(&records, &first, b)); /* release: partner is the acquire in
	                                          * take_birth_record */
	return b;
}

static struct birth *take_birth_record(void)
{
	/* acquire: partner is the release in new_birth_record */
	for (struct birth *b = a_load_acq(&records); b; b = b->next) {
		uint32_t no = 0;

		/* acquire: partners are the store of 0 in kbi_intercept_stub_go, and the kernel's store at
		 * the child's end */
		if (!a_load_rlx(&b->call.used) && !a_load_acq(&b->call.tid) &&
		    a_cas_acq(&b->call.used, &no, 1))
			return b;
	}
	return new_birth_record();
}

/* ---- the caller ------------------------------------------------------------------------------ */

/* Returns true for flags that would change the supervisor's own handlers, or would need the child's
 * word that says when its memory is free: that word is needed here. */
static bool is_odd_clone(long flags)
{
	return flags & CLONE_VM && flags & (CLONE_SIGHAND | CLONE_CHILD_CLEARTID);
}

static long refuse_odd_clone(void)
{
	static a32 said;

	if (!a_xchg_rlx(&said, 1))
		kbi_sys_message("clone of a process with CLONE_SIGHAND, or with CLONE_VM and "
				"CLONE_CHILD_CLEARTID, is refused where a seccomp filter is used: ENOSYS");
	return -ENOSYS;
}

/* Takes a record for the call, on the caller's stack. Returns the record or -errno; the caller's
 * registers are kept when this returns. */
static long on_child_call(long flags, long arg[6])
{
	const uint64_t every = ~kbi_broadcast_bit();
	uint64_t mask;
	struct birth *b;

	if (programs_sigchld && !flags && is_odd_clone(arg[FLAGS]))
		return refuse_odd_clone();
	kbi_sys(SYS_rt_sigprocmask, SIG_SETMASK, &every, &mask, MASK_BYTES);
	b = take_birth_record();
	if (!b) {
		kbi_sys(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, MASK_BYTES);
		return -ENOMEM;
	}
	b->call.mask = mask;
	memset(b->arg, 0, sizeof b->arg);
	if (flags)
		b->arg[FLAGS] = flags;
	else
		memcpy(b->arg, arg, sizeof b->arg);
	return (long)b;
}

static long make_here(struct birth *b);
static long make_by_supervisor(struct birth *b);

/* Makes the child and waits for it, on the record's stack with signals blocked. */
static long make_child_and_wait(struct kbi_intercept_stub_call_apart *call)
{
	struct birth *b = (struct birth *)call;
	uint32_t tid;
	long pid;

#if KBI_HAVE_TP
	b->tp = b->arg[FLAGS] & CLONE_SETTLS ? (void *)b->arg[TLS] : kbi_tp_get();
#endif
	pid = programs_sigchld ? make_by_supervisor(b) : make_here(b);
	/* acquire: partner is the kernel's store, when the child has executed another program or
	 * ended */
	while (pid > 0 && b->arg[FLAGS] & CLONE_VFORK && (tid = a_load_acq(&call->tid)))
		kbi_sys_futex_wait_shared(&call->tid, tid, NULL);
	return pid;
}

/* ---- the child ------------------------------------------------------------------------------- */

/* Goes on as the child. Signals are blocked as they are in its maker. */
static KBI_NOINLINE KBI_NORETURN void become_child(struct birth *b)
{
#if KBI_HAVE_TP
	kbi_tp_set(b->tp);
#endif
	if (programs_sigchld) {
		kbi_clone_attrs_take(&b->attrs);
		kbi_sys(SYS_rt_sigaction, SIGCHLD, b->sigchld, NULL, MASK_BYTES);
	}
	kbi_intercept_stub_go(&b->childs, 0, &b->begun);
}

/* Begins a child with the caller's memory. */
static int run_sharing_child(void *birth)
{
	struct birth *b = birth;

	if (b->arg[FLAGS] & CLONE_CHILD_SETTID)
		*(int *)b->arg[CHILD_TID] = kbi_sys_gettid();
	if (programs_sigchld)
		kbi_intercept_signal_is_programs();
	become_child(b);
}

/* ---- its maker ------------------------------------------------------------------------------- */

static long make_sharing(struct birth *b)
{
	const long ours = CLONE_VFORK | CLONE_SETTLS | CLONE_CHILD_SETTID;
	int flags = (int)((b->arg[FLAGS] & ~ours) | CLONE_CHILD_CLEARTID), pid;

	a_store_rlx(&b->call.tid, 1);
	pid = kbi_real.clone(run_sharing_child, b->begins + BEGINS, flags, b,
		(void *)b->arg[PARENT_TID], NULL, &b->call.tid);
	if (pid < 0)
		a_store_rlx(&b->call.tid, 0);
	return pid < 0 ? -errno : pid;
}

static void place_child(struct birth *b)
{
	b->childs = b->call;
	if (b->arg[OWN_STACK])
		b->childs.sp = (uint64_t)b->arg[OWN_STACK];
}

/* Makes a child in the calling process; its parent is the supervisor all the same, as of all the
 * program's children. */
static long make_here(struct birth *b)
{
	place_child(b);
	b->arg[FLAGS] |= CLONE_PARENT;
	return make_sharing(b);
}

static long make_as_supervisor(void *birth)
{
	struct birth *b = birth;
	long pid;

	if (b->sealed || !kbi_clone_attrs_is_mine(&b->attrs)) {
		kbi_sys_message("a thread with an identity or a filter of its own can make no process "
				"where Kochab has a seccomp filter: EPERM");
		return -EPERM;
	}
	memcpy(b->sigchld, programs_sigchld(), sizeof b->sigchld);
	place_child(b);
	if (b->arg[FLAGS] & CLONE_VM)
		return make_sharing(b);
	pid = kbi_process_fork_by_supervisor(b->arg);
	if (!pid)
		become_child(b);
	return pid;
}

static long make_by_supervisor(struct birth *b)
{
	kbi_clone_attrs_read(&b->attrs);
	return kbi_children_make(make_as_supervisor, b);
}

void kbi_process_birth_setup(const uint64_t *(*sigchld)(void))
{
	programs_sigchld = sigchld;
	kbi_intercept_stub_child = on_child_call;
}
