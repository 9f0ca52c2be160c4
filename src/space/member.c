/* space/member.c - this process among the attached processes. Contract in member.h.
 * Callers: space. The two kernel threads run on stacks of their own and hold the file's
 * lock while they clean up. */
#include "space/member.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/worker_thread.h"
#include "libc/real.h"
#include "os/fd.h"
#include "os/sys.h"
#include "space/file.h"
#include "space/life.h"
#include "space/note.h"
#include "space/queue.h"
#include "space/recover.h"

/* ns between two checks of processes that have no descriptor */
enum { LOOK_NS = 50000000 };

/* ---- the listener ---------------------------------------------------------------------------- */

/* Returns whether the descriptor is still ours. The program may have closed the number and reused
 * it: then the number is left alone. */
static bool is_bell(const struct kb_space *s, int end)
{
	struct stat st;

	return fstat(s->bell[end], &st) == 0 && S_ISFIFO(st.st_mode) && st.st_ino == s->bell_inode &&
	       st.st_dev == s->bell_device;
}

static void wake_watchman(struct kb_space *s)
{
	if (is_bell(s, 1))
		kbi_sys(SYS_write, s->bell[1], "", 1);
}

static void drain_bell(const struct kb_space *s)
{
	char rings[64];

	if (is_bell(s, 0))
		kbi_sys(SYS_read, s->bell[0], rings, sizeof rings);
}

static void close_bell(const struct kb_space *s)
{
	for (int end = 0; end < 2; end++) {
		kbi_fd_let(s->bell[end]);
		if (is_bell(s, end))
			kbi_sys(SYS_close, s->bell[end]);
	}
}

static int make_bell(struct kb_space *s)
{
	struct stat st;
	int e = (int)kbi_sys(SYS_pipe2, s->bell, O_CLOEXEC | O_NONBLOCK);

	if (e)
		return -e;
	for (int end = 0; end < 2; end++) {
		s->bell[end] = kbi_fd_move(s->bell[end]);
		kbi_fd_keep(s->bell[end]);
	}
	if (fstat(s->bell[0], &st))
		return errno;
	s->bell_inode = st.st_ino;
	s->bell_device = st.st_dev;
	return 0;
}

/* Ends a helper that is a process. Afterwards the space may be unmapped. */
static void end_helper_process(struct kb_space *s)
{
	if (!kbi_sys_from.processes)
		return;
	a_sub_acqrel(&s->helpers, 1); /* release: pairs with the acquire in wait_for_helpers */
	kbi_sys_futex_wake(&s->helpers, 1);
}

static void *run_listener(void *arg)
{
	struct kb_space *s = arg;
	struct kbi_space_proc *p = kbi_space_me(s);
	uint32_t generation = s->generation;

	/* acquire: pairs with the release in stop_helpers */
	while (!a_load_acq(&s->ending)) {
		/* acquire: pairs with the read-modify-write in kbi_space_note_ring */
		uint32_t rung = a_load_acq(&p->ring), now = a_load_rlx(&s->head->generation);

		kbi_space_note_rouse();
		if (now != generation)
			wake_watchman(s);
		generation = now;
		/* acquire: pairs with the release in stop_helpers */
		if (!a_load_acq(&s->ending))
			kbi_sys_futex_wait_shared(&p->ring, rung, NULL);
	}
	end_helper_process(s);
	return NULL;
}

/* ---- the watchman ---------------------------------------------------------------------------- */

static void clean_if_dead(struct kb_space *s, uint32_t slot)
{
	struct kbi_space_proc *p = kbi_space_proc(s, slot);

	if (kbi_space_file_lock(s))
		return;
	/* acquire: pairs with the release in take_table_entry, and in free_entry (recover.c) */
	if (slot != s->slot && a_load_acq(&p->state) != KBI_SPACE_FREE &&
	    kbi_space_life_is_over(a_load_rlx(&p->pid), a_load_rlx(&p->start)))
		kbi_space_recover(s, UINT64_C(1) << slot, true);
	kbi_space_file_unlock(s);
}

/* Returns whether the number is still the descriptor of that process, or of a process that has
 * ended, or cannot be checked. The program may have closed the number and reused it. */
static bool is_pidfd(const struct kbi_space_peer *peer)
{
	char path[40], text[512], wanted[24];
	long fd, n;
	KBI_FD_BRIEFLY();

	snprintf(path, sizeof path, "/proc/self/fdinfo/%d", peer->pidfd);
	fd = kbi_sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return true;
	n = kbi_sys(SYS_read, fd, text, sizeof text - 1);
	kbi_sys(SYS_close, fd);
	text[n > 0 ? n : 0] = 0;
	snprintf(wanted, sizeof wanted, "\nPid:\t%u\n", peer->pid);
	return strstr(text, wanted) || strstr(text, "\nPid:\t-1\n");
}

static int watch_peer(const struct kbi_space_peer *peer)
{
	int fd = kbi_space_life_open(peer->pid, peer->start);

	if (fd < 0)
		return fd;
	fd = kbi_fd_move(fd);
	kbi_fd_keep(fd);
	return fd;
}

static void forget_peer(struct kbi_space_peer *peer)
{
	if (peer->pidfd >= 0) {
		kbi_fd_let(peer->pidfd);
		if (is_pidfd(peer))
			kbi_sys(SYS_close, peer->pidfd);
	}
	*peer = (struct kbi_space_peer){ .pidfd = -1 };
}

/* Reads the processes in the table. Under the lock, under which processes enter: a process that has
 * rung us is in the table then, or is dead. False: the lock cannot be had. */
static bool read_table(struct kb_space *s, struct kbi_space_peer *seen)
{
	if (kbi_space_file_lock(s))
		return false;
	for (uint32_t i = 0; i < KBI_SPACE_PROCS; i++) {
		struct kbi_space_proc *p = kbi_space_proc(s, i);

		seen[i] = (struct kbi_space_peer){ .pid = 0 };
		/* acquire: pairs with the release in take_table_entry */
		if (i != s->slot && a_load_acq(&p->state) != KBI_SPACE_FREE)
			seen[i] = (struct kbi_space_peer){ .pid = a_load_rlx(&p->pid),
				.start = a_load_rlx(&p->start) };
	}
	kbi_space_file_unlock(s);
	return true;
}

/* Opens a descriptor for each other process. False: the table could not be read. */
static bool refresh_peers(struct kb_space *s)
{
	struct kbi_space_peer seen[KBI_SPACE_PROCS];

	if (!read_table(s, seen))
		return false;
	for (uint32_t i = 0; i < KBI_SPACE_PROCS; i++) {
		struct kbi_space_peer *peer = &s->peer[i];

		if (peer->pid == seen[i].pid && peer->start == seen[i].start && peer->pidfd >= 0)
			continue;
		forget_peer(peer);
		if (!seen[i].pid)
			continue;
		peer->pid = seen[i].pid;
		peer->start = seen[i].start;
		peer->pidfd = watch_peer(peer);
		if (peer->pidfd < 0)
			clean_if_dead(s, i);
	}
	return true;
}

static void *run_watchman(void *arg)
{
	struct kb_space *s = arg;

	/* acquire: pairs with the release in stop_helpers */
	while (!a_load_acq(&s->ending)) {
		struct pollfd p[KBI_SPACE_PROCS + 1];
		struct timespec look = { 0, LOOK_NS };
		uint32_t slot[KBI_SPACE_PROCS + 1], n = 0;
		bool blind = !refresh_peers(s) || !is_bell(s, 0);

		for (uint32_t i = 0; i < KBI_SPACE_PROCS; i++) {
			if (s->peer[i].pidfd >= 0) {
				p[n] = (struct pollfd){ .fd = s->peer[i].pidfd, .events = POLLIN };
				slot[n++] = i;
			}
			blind |= s->peer[i].pidfd < 0 && s->peer[i].pid;
		}
		p[n] = (struct pollfd){ .fd = is_bell(s, 0) ? s->bell[0] : -1, .events = POLLIN };
		if (kbi_sys(SYS_ppoll, p, n + 1, blind ? &look : NULL) <= 0)
			continue;
		if (p[n].revents)
			drain_bell(s);
		for (uint32_t i = 0; i < n; i++)
			if (p[i].revents) {
				clean_if_dead(s, slot[i]);
				forget_peer(&s->peer[slot[i]]);
			}
	}
	end_helper_process(s);
	return NULL;
}

/* ---- joining and leaving --------------------------------------------------------------------- */

/* Starts a helper; as a process of its own where virtual processors are processes: a killed process
 * is respawned, but its kernel threads are not. */
static int create_helper(uint64_t *thread, void *(*run)(void *), struct kb_space *s)
{
	pthread_t t;
	int e;

	*thread = 0;
	if (!kbi_sys_from.processes) {
		e = kbi_real.pthread_create(&t, NULL, run, s);
		*thread = e ? 0 : (uint64_t)t;
		return e;
	}
	a_add_rlx(&s->helpers, 1);
	e = kbi_worker_kernel_thread(run, s);
	if (e)
		a_sub_rlx(&s->helpers, 1);
	return e;
}

static int start_helper(uint64_t *thread, void *(*run)(void *), struct kb_space *s)
{
	sigset_t all, old;
	int e;

	sigfillset(&all);
	/* the file may be truncated: blocked, SIGBUS would end the program without a message */
	sigdelset(&all, SIGBUS);
	kbi_real.pthread_sigmask(SIG_SETMASK, &all, &old);
	e = create_helper(thread, run, s);
	kbi_real.pthread_sigmask(SIG_SETMASK, &old, NULL);
	return e;
}

static void wait_for_helpers(struct kb_space *s)
{
	uint32_t n;

	/* acquire: pairs with the release in end_helper_process */
	while ((n = a_load_acq(&s->helpers)))
		kbi_sys_futex_wait(&s->helpers, n, NULL);
}

static void stop_helpers(struct kb_space *s)
{
	/* release: pairs with the acquire in run_listener and run_watchman */
	a_store_rel(&s->ending, 1);
	kbi_space_note_ring(kbi_space_me(s));
	wake_watchman(s);
	if (s->listener)
		kbi_real.pthread_join((pthread_t)s->listener, NULL);
	if (s->watchman)
		kbi_real.pthread_join((pthread_t)s->watchman, NULL);
	wait_for_helpers(s);
	for (uint32_t i = 0; i < KBI_SPACE_PROCS; i++)
		forget_peer(&s->peer[i]);
	close_bell(s);
}

static void read_process_name(char *name, size_t size)
{
	KBI_FD_BRIEFLY();
	long fd = kbi_sys(SYS_openat, AT_FDCWD, "/proc/self/comm", O_RDONLY | O_CLOEXEC), n = 0;

	memset(name, 0, size);
	if (fd >= 0) {
		n = kbi_sys(SYS_read, fd, name, size - 1);
		kbi_sys(SYS_close, fd);
	}
	if (n > 0 && name[n - 1] == '\n')
		name[n - 1] = 0;
}

static void ring_peers(struct kb_space *s)
{
	for (uint32_t i = 0; i < KBI_SPACE_PROCS; i++)
		/* acquire: pairs with the release in take_table_entry */
		if (i != s->slot && a_load_acq(&kbi_space_proc(s, i)->state) != KBI_SPACE_FREE)
			kbi_space_note_ring(kbi_space_proc(s, i));
}

static uint64_t find_dead_members(const struct kb_space *s)
{
	uint64_t dead = 0;

	for (uint32_t i = 0; i < KBI_SPACE_PROCS; i++) {
		struct kbi_space_proc *p = kbi_space_proc(s, i);

		/* acquire: pairs with the release in take_table_entry */
		if (a_load_acq(&p->state) != KBI_SPACE_FREE &&
				kbi_space_life_is_over(a_load_rlx(&p->pid), a_load_rlx(&p->start)))
			dead |= UINT64_C(1) << i;
	}
	return dead;
}

/* Takes an entry. Under the file's lock. */
static int take_table_entry(struct kb_space *s, uint64_t since)
{
	struct kbi_space_proc *p;
	uint64_t dead = find_dead_members(s);
	uint32_t slot = 0;

	s->slot = KBI_SPACE_PROCS; /* takes locks over on behalf of no entry */
	if (dead && kbi_space_recover(s, dead, true))
		return EPROTO;
	/* acquire: pairs with the release in free_entry (recover.c) */
	while (slot < KBI_SPACE_PROCS && a_load_acq(&kbi_space_proc(s, slot)->state) != KBI_SPACE_FREE)
		slot++;
	if (slot == KBI_SPACE_PROCS)
		return EUSERS;
	s->slot = slot;
	p = kbi_space_proc(s, slot);
	a_store_rlx(&p->pid, s->pid);
	a_store_rlx(&p->start, since);
	read_process_name(p->name, sizeof p->name);
	kbi_space_queue_reset(s);
	kbi_space_note_reset(s);
	a_store_rlx(&s->head->generation, a_load_rlx(&s->head->generation) + 1);
	s->generation = a_load_rlx(&s->head->generation);
	/* before the entry is valid: if this process dies after that, the other
	 * processes are about to look */
	ring_peers(s);
	/* release: pairs with the acquire of state without the lock, in ring_peers */
	a_store_rel(&p->state, KBI_SPACE_ALIVE);
	return 0;
}

static void free_table_entry(struct kb_space *s)
{
	if (kbi_space_file_lock(s))
		return; /* the entry stays in the table until this process ends */
	kbi_space_recover(s, UINT64_C(1) << s->slot, false);
	kbi_space_file_unlock(s);
	ring_peers(s);
}

int kbi_space_member_join(struct kb_space *s)
{
	uint64_t since;
	int e;

	for (uint32_t i = 0; i < KBI_SPACE_PROCS; i++)
		s->peer[i].pidfd = -1;
	/* the pid of the program, not of a process that is a virtual processor */
	s->pid = (uint32_t)getpid();
	e = make_bell(s);
	if (e)
		return e;
	since = kbi_space_life_own_start(s->pid);
	s->identity = kbi_space_life_identity(s->pid, since);
	e = kbi_space_file_lock(s);
	if (!e) {
		e = take_table_entry(s, since);
		kbi_space_file_unlock(s);
	}
	if (e) {
		close_bell(s);
		return e;
	}
	e = start_helper(&s->listener, run_listener, s);
	if (!e)
		e = start_helper(&s->watchman, run_watchman, s);
	if (e) {
		stop_helpers(s);
		free_table_entry(s);
	}
	return e;
}

void kbi_space_member_leave(struct kb_space *s)
{
	stop_helpers(s);
	free_table_entry(s);
}

void kbi_space_member_forked(struct kb_space *s)
{
	for (uint32_t i = 0; i < KBI_SPACE_PROCS; i++)
		forget_peer(&s->peer[i]);
	close_bell(s);
}

void kbi_space_member_exit(struct kb_space *s)
{
	free_table_entry(s);
}
