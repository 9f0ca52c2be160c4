/* posix/signal_exec.c - exec. As in the kernel, signals that were sent to the thread and are
 * blocked are pending for the new program, and the new program gets the thread's mask (except the
 * tick's signal). Signals in our list go to the kernel thread that executes; where VPs are
 * processes, to the first process, which becomes the new program. An exec that fails changes
 * nothing.
 * Callers: programs, posix/call_number. Runs on the thread's stack, in brackets (kbi_np_enter): the
 * thread stays on its kernel thread. The pool's lock only. */
#include "posix/signal_priv.h"

#include <stdarg.h>
#include <string.h>

#include "core/process_fork.h"
#include "core/wait.h"
#include "os/sys.h"

/* Signals that go along; in memory that all VPs share. */
struct carried {
	size_t n, n_shared; /* n_shared: the first of them, which were sent to the process */
	siginfo_t info[];
};

struct leave {
	struct kbi_task *self; /* NULL: begin_exec has done nothing */
	uint64_t mask;
	struct carried *c;     /* NULL: no signal waits */
};

enum { MOST = 4096, BYTES = sizeof(struct carried) + MOST * sizeof(siginfo_t) };

static aptr to_carry; /* struct carried, for the first process */

static void set_mask(uint64_t mask)
{
	kbi_sys(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, KBI_MASK_BYTES);
}

/* Sends the signals; runs on the kernel thread that executes, with the thread's mask. */
static void send_all(const struct carried *c)
{
	for (size_t i = 0; c && i < c->n; i++) {
		siginfo_t info = c->info[i];

		kbi_sys_signal_info(kbi_sys_gettid(), info.si_signo, &info);
	}
}

static void send_carried(void)
{
	send_all(a_load_acq(&to_carry)); /* acquire: partner is the release in begin_exec */
}

/* Takes the signals back from the kernel, which has them in the order of sending. */
static void take_carried_back(const struct carried *c)
{
	static const struct timespec none;
	uint64_t set = 0;
	siginfo_t info;

	for (size_t i = 0; i < c->n; i++) {
		set = kbi_signal_bit(c->info[i].si_signo);
		kbi_sys(SYS_rt_sigtimedwait, &set, &info, &none, KBI_MASK_BYTES);
	}
}

static void put_carried(struct kb_thread *t, const struct carried *c)
{
	for (size_t i = 0; i < c->n; i++)
		kbi_signal_put(kbi_signal_to(t), &c->info[i], i < c->n_shared);
	kbi_signal_give_back(t);
}

static struct carried *collect_carried(struct kb_thread *t, uint64_t mask)
{
	struct carried *c;

	if (!(a_load_acq(&t->signals.pending) & mask)) /* partner: the release in kbi_signal_put */
		return NULL;
	c = kbi_sys_map(BYTES);
	if (!c)
		return NULL;
	while (c->n < MOST && kbi_signal_get_back(t, mask, false, &c->info[c->n]))
		c->n++;
	c->n_shared = c->n;
	while (c->n < MOST && kbi_signal_get(t, mask, &c->info[c->n]))
		c->n++;
	return c;
}

static struct leave begin_exec(void)
{
	struct kbi_task *self = kbi_posix_in_vfork() ? NULL : kbi_posix_light();
	struct leave l = { .self = self };

	if (!self)
		return l;
	l.mask = a_load_rlx(kbi_signal_mask(self));
	if (!kbi_posix_me.in_handler)
		kbi_signal_dispatcher_empty(kbi_thread_of(self));
	kbi_signal_resumed();
	kbi_np_enter(self);
	l.c = collect_carried(kbi_thread_of(self), l.mask);
	set_mask(l.mask & ~kbi_signal_never()); /* a tick must not wait for the new program */
	if (kbi_sys_from.processes) {
		kbi_process_fork_execs = send_carried;
		a_store_rel(&to_carry, l.c); /* release: partner is the acquire in send_carried */
	} else {
		send_all(l.c);
	}
	return l;
}

static void end_exec(const struct leave *l)
{
	int saved = errno;

	if (!l->self)
		return;
	if (l->c && !kbi_sys_from.processes)
		take_carried_back(l->c);
	if (l->c) {
		put_carried(kbi_thread_of(l->self), l->c);
		kbi_sys_unmap(l->c, BYTES);
	}
	set_mask(l->mask & ~(kbi_signal_never() | kbi_broadcast_bit()));
	kbi_np_leave(l->self);
	kbi_signal_resumed();
	errno = saved;
}

KBI_POSIX_API int execve(const char *path, char *const argv[], char *const envp[])
{
	struct leave l = begin_exec();
	int r = kbi_libc()->execve(path, argv, envp);

	end_exec(&l);
	return r;
}

KBI_POSIX_API int execv(const char *path, char *const argv[])
{
	return execve(path, argv, environ);
}

KBI_POSIX_API int execvpe(const char *file, char *const argv[], char *const envp[])
{
	struct leave l = begin_exec();
	int r = kbi_libc()->execvpe(file, argv, envp);

	end_exec(&l);
	return r;
}

KBI_POSIX_API int execvp(const char *file, char *const argv[])
{
	return execvpe(file, argv, environ);
}

KBI_POSIX_API int fexecve(int fd, char *const argv[], char *const envp[])
{
	struct leave l = begin_exec();
	int r = kbi_libc()->fexecve(fd, argv, envp);

	end_exec(&l);
	return r;
}

long kbi_signal_exec_by_number(long n, const long a[6])
{
	struct leave l = begin_exec();
	long r = kbi_libc()->syscall(n, a[0], a[1], a[2], a[3], a[4]);

	end_exec(&l);
	return r == -1 ? -errno : r;
}

/* ---- with separate arguments ----------------------------------------------------------------- */

struct list {
	size_t n;
	char **argv;
};

static size_t count_arguments(va_list from)
{
	size_t n = 2;
	va_list ap;

	va_copy(ap, from);
	while (va_arg(ap, char *))
		n++;
	va_end(ap);
	return n;
}

/* Collects the arguments up to NULL; *ap then yields the argument behind the list. False: no
 * memory, errno is set. */
static bool collect_arguments(struct list *l, const char *first, va_list *ap)
{
	l->n = count_arguments(*ap);
	l->argv = kbi_sys_map(l->n * sizeof(*l->argv));
	if (!l->argv) {
		errno = ENOMEM;
		return false;
	}
	l->argv[0] = (char *)(uintptr_t)first;
	for (size_t i = 1; i < l->n; i++)
		l->argv[i] = va_arg(*ap, char *);
	return true;
}

static void free_argument_list(const struct list *l)
{
	int saved = errno;

	if (l->argv)
		kbi_sys_unmap(l->argv, l->n * sizeof(*l->argv));
	errno = saved;
}

KBI_POSIX_API int execl(const char *path, const char *first, ...)
{
	struct list l;
	va_list ap;
	int r;

	va_start(ap, first);
	r = collect_arguments(&l, first, &ap) ? execve(path, l.argv, environ) : -1;
	va_end(ap);
	free_argument_list(&l);
	return r;
}

KBI_POSIX_API int execle(const char *path, const char *first, ...)
{
	struct list l;
	va_list ap;
	int r;

	va_start(ap, first);
	r = collect_arguments(&l, first, &ap) ? execve(path, l.argv, va_arg(ap, char **)) : -1;
	va_end(ap);
	free_argument_list(&l);
	return r;
}

KBI_POSIX_API int execlp(const char *file, const char *first, ...)
{
	struct list l;
	va_list ap;
	int r;

	va_start(ap, first);
	r = collect_arguments(&l, first, &ap) ? execvpe(file, l.argv, environ) : -1;
	va_end(ap);
	free_argument_list(&l);
	return r;
}
