/* posix/thread_attrs.c - name, attributes and scheduling of threads, as programs ask for them and
 * set them.
 * For a lightweight thread most values are only remembered and given back: it has no kernel thread
 * of its own that could get a priority. A thread that asked for PTHREAD_SCOPE_SYSTEM gets a kernel
 * thread when it sets a real-time policy. For kernel threads libc answers. Callers: programs. Never
 * switches. */
#include "posix/bind.h"

#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/option.h"
#include "core/vp.h"
#include "os/fd.h"
#include "os/sys.h"
#include "posix/naming.h"

/* ---- names -------------------------------------------------------------------------------- */

/* Sets the process's name in /proc, which is the name of main. */
static void name_process(const char *name)
{
	int fd;

	if (kbi_sys_gettid() == getpid()) {
		kbi_sys(SYS_prctl, PR_SET_NAME, name);
		return;
	}
	KBI_FD_BRIEFLY();
	fd = (int)kbi_sys(SYS_openat, AT_FDCWD, "/proc/self/comm", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	kbi_sys(SYS_write, fd, name, strlen(name));
	kbi_sys(SYS_close, fd);
}

static int process_name(char *buf)
{
	KBI_FD_BRIEFLY();
	int fd = (int)kbi_sys(SYS_openat, AT_FDCWD, "/proc/self/comm", O_RDONLY | O_CLOEXEC);
	long n;

	if (fd < 0)
		return -fd;
	n = kbi_sys(SYS_read, fd, buf, sizeof(((struct kb_thread *)NULL)->name));
	kbi_sys(SYS_close, fd);
	if (n <= 0)
		return n < 0 ? (int)-n : EIO;
	buf[n - 1] = 0; /* the newline */
	return 0;
}

/* Stores t's name, or the process's if t has none. 0, or an errno. */
int kbi_thread_attrs_name(struct kb_thread *t, char buf[16])
{
	kbi_naming_take(t);
	if (t->is_main)
		return process_name(buf);
	if (!t->name[0])
		return (int)-kbi_sys(SYS_prctl, PR_GET_NAME, buf);
	strcpy(buf, t->name);
	return 0;
}

KBI_POSIX_API int pthread_setname_np(pthread_t id, const char *name)
{
	bool gone;
	struct kb_thread *t = kbi_posix_thread(id, &gone);

	if (gone)
		return ESRCH;
	if (!t)
		return kbi_libc()->pthread_setname_np(id, name);
	if (strlen(name) >= sizeof(t->name))
		return ERANGE;
	if (!kbi_posix_lives(t))
		return ENOENT; /* libc opens a file in /proc, which is gone */
	kbi_naming_take(t);
	strcpy(t->name, name);
	t->named = true;
	if (t->is_main)
		name_process(name);
	return 0;
}

KBI_POSIX_API int pthread_getname_np(pthread_t id, char *buf, size_t size)
{
	struct kb_thread *t;
	bool gone;

	kbi_posix_let_turn_end();
	t = kbi_posix_thread(id, &gone);
	if (gone)
		return ESRCH;
	if (!t)
		return kbi_libc()->pthread_getname_np(id, buf, size);
	/* libc demands room for the longest name */
	if (size < sizeof(t->name))
		return ERANGE;
	return kbi_posix_lives(t) ? kbi_thread_attrs_name(t, buf) : ENOENT;
}

/* ---- attributes --------------------------------------------------------------------------- */

/* Stores the stack as libc reports it: the memory that was given; or the size that was asked for,
 * including control block and TLS at its upper end. */
static int fill_stack(const struct kbi_stack *k, pthread_attr_t *attr)
{
	enum { ALIGNED = 64 };
	uintptr_t at = (uintptr_t)k->tcb.slab_low + k->tcb.slab_size;
	/* the record lies there */
	char *end = (char *)((at + KBI_PAGE - 1) & ~((uintptr_t)KBI_PAGE - 1));
	size_t size = k->asked & ~(size_t)(ALIGNED - 1);

	if (k->user)
		return pthread_attr_setstack(attr, k->given, k->asked);
	if (size > (size_t)(end - k->low))
		size = (size_t)(end - k->low);
	return pthread_attr_setstack(attr, end - size, size);
}

/* Fills attr. The record of an ended thread is that of a new thread: scope and policy are the
 * defaults then. */
static int fill_attr(struct kb_thread *t, pthread_t id, pthread_attr_t *attr)
{
	const struct kbi_posix_thread *r = kbi_posix_record(id);
	struct sched_param p = { .sched_priority = r->priority };
	int e = pthread_attr_init(attr);
	cpu_set_t cpus;

	if (e)
		return e;
	pthread_attr_setdetachstate(attr, kbi_thread_is_detached(t));
	pthread_attr_setguardsize(attr, t->stack->user ? 0 : t->stack->guard_asked);
	if (r->system_scope || r->process_scope)
		pthread_attr_setscope(attr, r->system_scope ? PTHREAD_SCOPE_SYSTEM : PTHREAD_SCOPE_PROCESS);
	pthread_attr_setschedpolicy(attr, r->policy);
	pthread_attr_setschedparam(attr, &p);
	if (pthread_getaffinity_np(id, sizeof(cpus), &cpus) == 0)
		pthread_attr_setaffinity_np(attr, sizeof(cpus), &cpus);
	return fill_stack(t->stack, attr);
}

KBI_POSIX_API int pthread_getattr_np(pthread_t id, pthread_attr_t *attr)
{
	bool gone;
	struct kb_thread *t = kbi_posix_thread(id, &gone);

	if (gone)
		return ESRCH;
	if (!t || t->is_main)
		return kbi_libc()->pthread_getattr_np(id, attr);
	return fill_attr(t, id, attr);
}

/* ---- scheduling --------------------------------------------------------------------------- */

int kbi_thread_attrs_may_schedule(int policy, int priority)
{
	int low = sched_get_priority_min(policy), high = sched_get_priority_max(policy);
	struct rlimit limit;

	if (low < 0 || priority < low || priority > high)
		return EINVAL;
	if (policy != SCHED_FIFO && policy != SCHED_RR)
		return 0;
	if (geteuid() == 0)
		return 0;
	return getrlimit(RLIMIT_RTPRIO, &limit) == 0 && (rlim_t)priority <= limit.rlim_cur ? 0 : EPERM;
}

void kbi_thread_attrs_scheduling(int *policy, int *priority)
{
	struct sched_param p = { 0 };
	int found = (int)kbi_sys(SYS_sched_getscheduler, 0);

	kbi_sys(SYS_sched_getparam, 0, &p);
	*policy = found < 0 ? SCHED_OTHER : found & ~SCHED_RESET_ON_FORK;
	*priority = p.sched_priority;
}

void kbi_thread_attrs_adopted(void)
{
	kbi_thread_attrs_scheduling(&kbi_posix_me.policy, &kbi_posix_me.priority);
	kbi_thread_attrs_expect(kbi_posix_me.policy);
}

static bool is_real_time(int policy)
{
	return policy == SCHED_FIFO || policy == SCHED_RR;
}

static int rank_of(int policy, int priority)
{
	return is_real_time(policy) ? priority : 0;
}

/* Returns the caller's real-time priority or 0: of a lightweight thread the remembered value; of a
 * kernel thread, or a thread bound to one, the greater of the kernel's and the remembered value. */
static uint32_t rank_of_caller(void)
{
	struct kbi_task *self = kbi_self_raw();
	int remembered = rank_of(kbi_posix_me.policy, kbi_posix_me.priority), policy, priority, own;

	if (self && self->vp)
		return (uint32_t)remembered;
	kbi_thread_attrs_scheduling(&policy, &priority);
	own = rank_of(policy, priority);
	return (uint32_t)(own > remembered ? own : remembered);
}

void kbi_thread_attrs_expect(int policy)
{
	if (is_real_time(policy & ~SCHED_RESET_ON_FORK))
		a_store_rlx(&kbi_waitq_rank, (void *)(uintptr_t)rank_of_caller);
}

bool kbi_thread_attrs_is_kernels(bool system_scope)
{
	return system_scope && kbi_options.scope != KBI_OPT_SCOPE_PROCESS;
}

/* Returns whether the caller asks for itself and has, or gets now, a kernel thread of its own: then
 * the kernel sets the policy, too. */
static bool has_kernel_thread(const struct kb_thread *t, const char *what)
{
	if (t != kbi_thread_of(kbi_self_raw()))
		return false;
	if (!a_load_rlx(&kbi_posix_me.bound) && !kbi_thread_attrs_is_kernels(kbi_posix_me.system_scope))
		return false;
	kbi_bind_self(what, KBI_BIND_TURNED);
	return true;
}

/* True if its kernel thread had a real-time policy, or is to get one, which virtual processors
 * cannot give it. */
static bool is_more(int before, int policy)
{
	return is_real_time(before) || is_real_time(policy);
}

KBI_POSIX_API int pthread_setschedparam(pthread_t id, int policy, const struct sched_param *param)
{
	bool gone;
	struct kb_thread *t = kbi_posix_thread(id, &gone);
	int e;

	if (gone)
		return ESRCH;
	kbi_thread_attrs_expect(policy);
	if (!t)
		return kbi_libc()->pthread_setschedparam(id, policy, param);
	if (!kbi_posix_lives(t))
		return ESRCH;
	e = kbi_thread_attrs_may_schedule(policy, param->sched_priority);
	if (!e && is_more(kbi_posix_record(id)->policy, policy) &&
		has_kernel_thread(t, "pthread_setschedparam"))
		e = (int)-kbi_sys(SYS_sched_setscheduler, 0, policy, param);
	if (e)
		return e;
	kbi_posix_record(id)->policy = policy;
	kbi_posix_record(id)->priority = param->sched_priority;
	return 0;
}

KBI_POSIX_API int pthread_setschedprio(pthread_t id, int priority)
{
	bool gone;
	struct kb_thread *t = kbi_posix_thread(id, &gone);
	struct sched_param p = { .sched_priority = priority };

	if (gone)
		return ESRCH;
	if (!t)
		return kbi_libc()->pthread_setschedprio(id, priority);
	return pthread_setschedparam(id, kbi_posix_record(id)->policy, &p);
}

KBI_POSIX_API int pthread_getschedparam(pthread_t id, int *restrict policy,
	struct sched_param *restrict param)
{
	bool gone;
	struct kb_thread *t = kbi_posix_thread(id, &gone);

	if (gone)
		return ESRCH;
	if (!t)
		return kbi_libc()->pthread_getschedparam(id, policy, param);
	if (!kbi_posix_lives(t))
		return ESRCH;
	*policy = kbi_posix_record(id)->policy;
	memset(param, 0, sizeof(*param));
	param->sched_priority = kbi_posix_record(id)->priority;
	return 0;
}
