/* io/engine.c - asking epoll, on behalf of all VPs. Contract in engine.h; sched/source.h
 * says which VP asks when.
 * Callers: see engine.h; sched/source, through the registered functions. Runs on threads' stacks
 * and the agent's, inside np brackets. Never switches.
 *
 * Each wait arms its descriptor for one event (EPOLLONESHOT). That is a system call for each wait;
 * it makes numbers that were closed and used again harmless: the kernel then answers ENOENT, no
 * matter which thread closed the number, and how. Where waits are short, a descriptor stays armed
 * for all input (EPOLLET), and is asked about when a wait was not short after all. A kick is one
 * more event: `bell`, which is always readable, armed once more. So nothing is ever written to a
 * descriptor of ours, which the program may have closed and reopened as a file.
 *
 * epoll forgets a descriptor that is closed behind our back while a thread waits for
 * it; the audit finds that. */
#include "io/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/eventfd.h>

#include "core/preempt.h"
#include "core/vp.h"
#include "os/fd.h"
#include "os/lock.h"
#include "os/newer.h"
#include "os/sys.h"
#include "sched/source.h"

enum {
	BATCH = 32,    /* events of a poll */
	BATCH_SLEEPER = 64,
	AUDIT_NS = 1000000000,
	AUDIT_LEAST = 256, /* numbers checked by an audit; or a part of all numbers */
	AUDIT_PART = 16,
	STRAYS = 100,   /* a second: more are worth a new epoll */
	POLLED_NS = 100000, /* period in which a sleeper polls sources that nothing reports */
	PAUSE_NS = 1000000, /* pause where no epoll can be made any more */
};
#define STAYING (EPOLLIN | EPOLLPRI | EPOLLET)
#define BELL UINT64_MAX
#define JOINED (UINT64_MAX - 1)

static struct {
	a32 stage;   /* 0 none, 1 being made, 2 there */
	a32 epoll, bell; /* descriptors */
	kbi_engine_found *found;
	kbi_engine_again *again;
	aptr look;   /* void (struct kbi_vp *): of the joined descriptor */
	a32 joined;  /* the joined descriptor */
	aptr also;   /* likewise, of kbi_engine_poll_also */
	a32 polling; /* a VP asks without sleeping */
	a32 lost KBI_ALIGNED(KBI_CACHE_LINE); /* the program has closed descriptors of ours */
	a32 strays;  /* events since the last audit of files that cannot be taken out of the epoll */
	a64 audit_at; /* ns */
	a32 auditing;
	uint32_t audit_next; /* next number; under auditing */
	/* only for the sleeping VP */
	int n_events;
	struct epoll_event event[BATCH_SLEEPER];
} engine;

a32 kbi_engine_is_forked;

static int epoll_fd(void)
{
	return (int)a_load_rlx(&engine.epoll);
}

bool kbi_engine_owns(int fd)
{
	return a_load_rlx(&engine.stage) == 2 && !kbi_engine_forked() &&
	       (fd == epoll_fd() || fd == (int)a_load_rlx(&engine.bell) ||
		(a_load_rlx(&engine.look) && fd == (int)a_load_rlx(&engine.joined)));
}

int kbi_engine_highest(void)
{
	int most = -1;

	if (a_load_rlx(&engine.stage) != 2 || kbi_engine_forked())
		return most;
	most = epoll_fd() > (int)a_load_rlx(&engine.bell) ? epoll_fd() : (int)a_load_rlx(&engine.bell);
	if (a_load_rlx(&engine.look) && (int)a_load_rlx(&engine.joined) > most)
		most = (int)a_load_rlx(&engine.joined);
	return most;
}

/* ---- making it ------------------------------------------------------------------------------- */

static int control_epoll(int op, int fd, uint32_t events, uint64_t data)
{
	struct epoll_event e = { .events = events, .data.u64 = data };

	return (int)-kbi_sys(SYS_epoll_ctl, epoll_fd(), op, fd, &e);
}

static int make_engine(void)
{
	KBI_FD_BRIEFLY();
	long e, b;

	e = kbi_sys(SYS_epoll_create1, EPOLL_CLOEXEC);
	if (e < 0)
		return (int)-e;
	b = kbi_sys(SYS_eventfd2, 1, EFD_CLOEXEC | EFD_NONBLOCK);
	if (b < 0) {
		kbi_sys(SYS_close, e);
		return (int)-b;
	}
	a_store_rlx(&engine.epoll, (uint32_t)kbi_fd_move((int)e));
	a_store_rlx(&engine.bell, (uint32_t)kbi_fd_move((int)b));
	if (a_load_rlx(&engine.look))
		control_epoll(EPOLL_CTL_ADD, (int)a_load_rlx(&engine.joined), EPOLLIN, JOINED);
	return control_epoll(EPOLL_CTL_ADD, (int)a_load_rlx(&engine.bell), EPOLLONESHOT, BELL);
}

int kbi_engine_join(int fd, void (*look)(struct kbi_vp *me))
{
	a_store_rlx(&engine.joined, (uint32_t)fd);
	/* release: pairs with the acquire in call_hook */
	a_store_rel(&engine.look, (void *)(uintptr_t)look);
	return control_epoll(EPOLL_CTL_ADD, fd, EPOLLIN, JOINED);
}

void kbi_engine_poll_also(void (*look)(struct kbi_vp *me))
{
	/* release: pairs with the acquire in call_hook */
	a_store_rel(&engine.also, (void *)(uintptr_t)look);
}

/* Closes the engine in the child of fork, whose only kernel thread waits by itself. The fork may
 * have come in the middle of the start. */
static void close_engine_in_child(void)
{
	uint32_t stage = a_load_rlx(&engine.stage);

	if ((stage == 0 && !kbi_vp_n) || kbi_engine_forked())
		return;
	a_store_rlx(&kbi_engine_is_forked, 1);
	if (stage != 2)
		return;
	kbi_sys(SYS_close, epoll_fd());
	kbi_sys(SYS_close, (int)a_load_rlx(&engine.bell));
	if (a_load_rlx(&engine.look))
		kbi_sys(SYS_close, (int)a_load_rlx(&engine.joined));
}

/* Registers the fork handler before there are threads, not at the start of the engine: a fork that
 * has begun by then would miss it. */
__attribute__((constructor)) static void on_fork(void)
{
	pthread_atfork(NULL, NULL, close_engine_in_child);
}

/* ---- what is armed --------------------------------------------------------------------------- */

static bool is_open(int fd)
{
	return kbi_sys(SYS_fcntl, fd, F_GETFD) >= 0;
}

static int arm_descriptor(struct kbi_slot *s, int fd, uint32_t mask, uint32_t known)
{
	int e = control_epoll(a_load_rlx(&s->known) ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, mask,
		(uint32_t)fd);

	if (e == ENOENT)
		e = control_epoll(EPOLL_CTL_ADD, fd, mask, (uint32_t)fd);
	else if (e == EEXIST)
		e = control_epoll(EPOLL_CTL_MOD, fd, mask, (uint32_t)fd);
	a_store_rlx(&s->known, e ? 0 : known);
	if (kbi_unlikely((e == EBADF || e == EINVAL) && is_open(fd) && !kbi_engine_owns(fd))) {
		/* not the program's fault: the next VP that asks arms all numbers again */
		a_store_rlx(&engine.lost, 1);
		return 0;
	}
	return e;
}

int kbi_engine_arm(struct kbi_slot *s, int fd, uint32_t mask)
{
	return arm_descriptor(s, fd, mask | EPOLLONESHOT, KBI_SLOT_KNOWN);
}

int kbi_engine_arm_to_stay(struct kbi_slot *s, int fd)
{
	return arm_descriptor(s, fd, STAYING, KBI_SLOT_KNOWN | KBI_SLOT_STAYS);
}

int kbi_engine_check(const struct kbi_slot *s, int fd, uint32_t mask)
{
	bool stays = a_load_rlx(&s->known) & KBI_SLOT_STAYS;

	return control_epoll(EPOLL_CTL_MOD, fd, stays ? STAYING : mask | EPOLLONESHOT,
		(uint32_t)fd);
}

void kbi_engine_disarm(struct kbi_slot *s, int fd)
{
	control_epoll(EPOLL_CTL_DEL, fd, 0, 0);
	a_store_rlx(&s->known, 0);
}

/* The number is closed already, or means a different file, while the armed file is still open in
 * another process or under another number: the kernel removes it only with its epoll. */
void kbi_engine_stray(void)
{
	a_add_rlx(&engine.strays, 1);
}

static bool has_own_descriptors(void)
{
	int bell = (int)a_load_rlx(&engine.bell);

	return is_open(bell) && !control_epoll(EPOLL_CTL_MOD, bell, EPOLLONESHOT, BELL);
}

static void arm_all_again(struct kbi_vp *me)
{
	for (int n = kbi_slot_limit(), fd = 0; fd < n; fd++)
		engine.again(me, fd, true);
}

/* Makes the descriptors again that the program has closed. */
static void remake_engine(struct kbi_vp *me)
{
	/* a descriptor that may still be ours stays open, as its number may belong to any file */
	if (!has_own_descriptors() && make_engine())
		return;
	a_store_rlx(&engine.lost, 0);
	arm_all_again(me);
}

/* Puts a new epoll under the old number. A VP that sleeps in the old epoll is told to come out. */
static void replace_epoll(struct kbi_vp *me)
{
	KBI_FD_BRIEFLY();
	long e = has_own_descriptors() ? kbi_sys(SYS_epoll_create1, EPOLL_CLOEXEC) : -EBADF;

	if (e < 0)
		return;
	kbi_sys(SYS_dup3, e, epoll_fd(), O_CLOEXEC);
	kbi_sys(SYS_close, e);
	if (a_load_rlx(&engine.look))
		control_epoll(EPOLL_CTL_ADD, (int)a_load_rlx(&engine.joined), EPOLLIN, JOINED);
	control_epoll(EPOLL_CTL_ADD, (int)a_load_rlx(&engine.bell), EPOLLONESHOT, BELL);
	for (unsigned i = 0; i < kbi_vp_n; i++)
		if (a_load_rlx(&kbi_vps[i]->doze) == KBI_DOZE_SOURCE)
			kbi_preempt_send(kbi_vps[i]);
	arm_all_again(me);
}

static void audit_some(struct kbi_vp *me)
{
	uint32_t all = (uint32_t)kbi_slot_limit(), n = all / AUDIT_PART;

	if (n < AUDIT_LEAST)
		n = AUDIT_LEAST;
	for (; n > 0; n--) {
		engine.audit_next = engine.audit_next + 1 < all ? engine.audit_next + 1 : 0;
		engine.again(me, (int)engine.audit_next, false);
		if (engine.audit_next == 0)
			return;
	}
}

/* Checks once a second that no wait has been forgotten. */
static void audit_waits(struct kbi_vp *me)
{
	uint64_t now;

	/* acquire: pairs with the release below */
	if (a_load_rlx(&engine.auditing) || a_xchg_acq(&engine.auditing, 1))
		return;
	now = kbi_sys_now();
	if (a_load_rlx(&engine.lost)) {
		remake_engine(me);
	} else if (now >= a_load_rlx(&engine.audit_at)) {
		a_store_rlx(&engine.audit_at, now + AUDIT_NS);
		if (a_xchg_rlx(&engine.strays, 0) > STRAYS)
			replace_epoll(me);
		audit_some(me);
	}
	/* release: pairs with the acquire above */
	a_store_rel(&engine.auditing, 0);
}

/* ---- asking ---------------------------------------------------------------------------------- */

static void ring_bell(void)
{
	if (control_epoll(EPOLL_CTL_MOD, (int)a_load_rlx(&engine.bell),
		EPOLLIN | EPOLLONESHOT, BELL))
		a_store_rlx(&engine.lost, 1);
}

static void call_hook(aptr *hook, struct kbi_vp *me)
{
	/* acquire: pairs with the release in kbi_engine_join and kbi_engine_poll_also */
	void (*look)(struct kbi_vp *) = (void (*)(struct kbi_vp *))(uintptr_t)a_load_acq(hook);

	if (look)
		look(me);
}

static void deliver_events(struct kbi_vp *me, const struct epoll_event *e, long n, bool sleeper)
{
	call_hook(&engine.look, me);
	if (a_load_rlx(&kbi_source.polled))
		call_hook(&engine.also, me);
	if (n == -EBADF || n == -EINVAL)
		a_store_rlx(&engine.lost, 1);
	for (long i = 0; i < n; i++) {
		if (e[i].data.u64 < JOINED)
			engine.found(me, (int)e[i].data.u64, e[i].events);
		else if (e[i].data.u64 == BELL && !sleeper && a_load_rlx(&kbi_source.sleeper))
			ring_bell(); /* the kick was not for us */
	}
	if (kbi_unlikely(a_load_rlx(&engine.lost)))
		audit_waits(me);
}

static long ask_epoll(struct epoll_event *e, int max, uint64_t ns)
{
	struct timespec ts = kbi_sys_timespec(ns);
	long n;

	if (ns == 0)
		return kbi_sys(SYS_epoll_pwait, epoll_fd(), e, max, 0, NULL, 0);
	n = kbi_sys(SYS_epoll_pwait2, epoll_fd(), e, max, &ts, NULL, 0);
	/* before Linux 5.11, or under a filter of system calls that does not know the call */
	if (n == -ENOSYS || n == -EPERM)
		n = kbi_sys(SYS_epoll_pwait, epoll_fd(), e, max, (int)((ns + 999999) / 1000000), NULL, 0);
	return n;
}

static void poll_now(struct kbi_vp *me)
{
	struct epoll_event e[BATCH];
	uint64_t at;
	long n = 0;

	/* a single asking VP is enough; two would hinder each other */
	if (a_load_rlx(&engine.polling) || a_xchg_rlx(&engine.polling, 1))
		return;
	/* the sleeper sees the kernel's events by itself */
	if (!a_load_rlx(&kbi_source.sleeper))
		n = ask_epoll(e, BATCH, 0);
	a_store_rlx(&engine.polling, 0);
	deliver_events(me, e, n, false);
	at = kbi_sys_now();
	if (a_load_rlx(&me->s->idle) == KBI_IDLE_BUSY)
		a_store_rlx(&kbi_source.looked, at);
	if (kbi_unlikely(at >= a_load_rlx(&engine.audit_at)))
		audit_waits(me);
}

static bool sleep_now(uint64_t ns)
{
	uint64_t now = kbi_sys_now(), at = a_load_rlx(&engine.audit_at), most = at > now ? at - now : 0;
	struct timespec pause = { 0, PAUSE_NS };
	bool shorter;

	if (a_load_rlx(&engine.lost)) {
		kbi_sys(SYS_nanosleep, &pause, NULL);
		engine.n_events = 0;
		return false;
	}
	if (a_load_rlx(&kbi_source.polled) && most > POLLED_NS)
		most = POLLED_NS;
	shorter = most < ns;
	engine.n_events = (int)ask_epoll(engine.event, BATCH_SLEEPER, shorter ? most : ns);
	return engine.n_events == 0 && !shorter;
}

static void deliver_slept(struct kbi_vp *me)
{
	deliver_events(me, engine.event, engine.n_events, true);
	if (kbi_sys_now() >= a_load_rlx(&engine.audit_at))
		audit_waits(me);
}

/* Wakes VP w, which sleeps in epoll_wait, or is on its way there. If the bell is lost, w's next
 * call fails; a call in progress is ended by a signal. */
static void kick_sleeper(struct kbi_vp *w)
{
	ring_bell();
	if (kbi_unlikely(a_load_rlx(&engine.lost)))
		kbi_preempt_send(w);
}

static const struct kbi_source_does does = { poll_now, sleep_now, deliver_slept, kick_sleeper };

int kbi_engine_start(kbi_engine_found *found, kbi_engine_again *again)
{
	uint32_t none = 0;
	int e = 0;

	/* acquire: pairs with the release in kbi_lock_tell below */
	if (kbi_likely(a_load_acq(&engine.stage) == 2))
		return 0;
	if (a_cas_acq(&engine.stage, &none, 1)) {
		e = make_engine();
		engine.found = found;
		engine.again = again;
		a_store_rlx(&engine.audit_at, kbi_sys_now() + AUDIT_NS);
		kbi_source_register(&does);
		kbi_lock_tell(&engine.stage, e ? 0 : 2);
		return e;
	}
	kbi_lock_await(&engine.stage, 1);
	return kbi_engine_start(found, again);
}
