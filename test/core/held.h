/* held.h - system calls that are held as long as a test likes, as by a disk that does not answer.
 * The program is started once more, under a filter (SECCOMP_RET_USER_NOTIF) that notifies the first
 * process of some system calls. The first process lets them go on at once, except the calls that
 * the second process has asked it to hold: by a descriptor, the first argument, or by an
 * address. */
#ifndef HELD_H
#define HELD_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "test.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HELD_FD = 600, HELD_PATIENCE_MS = 5000, HELD_CALLS = 64 };

/* In memory of both processes. */
struct held {
	uint64_t key;  /* the argument; 0: hold none */
	uint32_t count; /* how many have been held */
	uint32_t go;   /* the call may go on */
	uint32_t late; /* it went on because no release came in time */
};
static struct held *held;

#define HELD_SET(field, value) __atomic_store_n(&held->field, value, __ATOMIC_SEQ_CST)
#define HELD_GET(field) __atomic_load_n(&held->field, __ATOMIC_SEQ_CST)

/* Holds calls with this argument from here on. */
static inline void held_begin(uint64_t key)
{
	HELD_SET(count, 0);
	HELD_SET(go, 0);
	HELD_SET(late, 0);
	HELD_SET(key, key);
}

/* Holds no call from here on, and lets a held call go on. Returns false if it went on before, since
 * no release came. */
static inline bool held_end(void)
{
	HELD_SET(key, 0);
	HELD_SET(go, 1);
	return !HELD_GET(late);
}

/* ---- the first process ----------------------------------------------------------------------- */

static inline bool held_is_asked(const struct seccomp_data *d)
{
	uint64_t key = HELD_GET(key);

	if (key && d->nr == SYS_sync)
		return true;
	if (key < UINT32_MAX)
		return key && (uint32_t)d->args[0] == key;
	return d->args[0] == key || d->args[1] == key || d->args[2] == key;
}

static inline void held_go_on(int listener, uint64_t id)
{
	struct seccomp_notif_resp r = { .id = id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };

	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &r) && errno != ENOENT)
		CHECK_EQ(errno, 0);
}

static inline bool held_is_there(int listener, uint64_t id)
{
	return ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

/* Waits until the second process has ended; returns its status. */
static inline int held_serve(int listener, pid_t pid)
{
	struct pollfd p = { .fd = listener, .events = POLLIN };
	uint64_t id = 0, since = 0;
	int status;

	for (;;) {
		union {
			struct seccomp_notif n;
			char room[512];
		} u;

		if (waitpid(pid, &status, WNOHANG) == pid)
			return status;
		if (id && test_now_ns() - since > HELD_PATIENCE_MS * 1000000ull)
			HELD_SET(late, 1);
		if (id && (HELD_GET(go) || HELD_GET(late) || !held_is_there(listener, id))) {
			held_go_on(listener, id); /* unless a signal has ended it */
			id = 0;
		}
		if (poll(&p, 1, 1) <= 0 || !(p.revents & POLLIN))
			continue;
		memset(&u, 0, sizeof u);
		if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &u.n))
			continue;
		if (id && !held_is_there(listener, id))
			id = 0; /* a signal has ended it */
		if (!id && held_is_asked(&u.n.data)) {
			id = u.n.id;
			since = test_now_ns();
			__atomic_add_fetch(&held->count, 1, __ATOMIC_SEQ_CST);
		} else {
			held_go_on(listener, u.n.id);
		}
	}
}

/* ---- the second process ---------------------------------------------------------------------- */

static inline int held_filter(const int *calls, unsigned n)
{
	struct sock_filter f[HELD_CALLS + 3] =
		{ BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)) };
	struct sock_fprog p = { (unsigned short)(n + 3), f };

	CHECK(n <= HELD_CALLS);
	for (unsigned i = 0; i < n; i++)
		f[i + 1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i],
			(unsigned char)(n - i), 0);
	f[n + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	f[n + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &p);
}

static inline void held_send(int to, int fd)
{
	union {
		struct cmsghdr h;
		char room[CMSG_SPACE(sizeof(int))];
	} u = { .h = { .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET,
		.cmsg_type = SCM_RIGHTS } };
	char c = 0;
	struct iovec v = { &c, 1 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = &u,
		.msg_controllen = sizeof u };

	memcpy(CMSG_DATA(&u.h), &fd, sizeof fd);
	CHECK_EQ(syscall(SYS_sendmsg, to, &m, 0), 1);
}

static inline int held_receive(int from)
{
	union {
		struct cmsghdr h;
		char room[CMSG_SPACE(sizeof(int))];
	} u;
	char c;
	struct iovec v = { &c, 1 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = &u,
		.msg_controllen = sizeof u };
	int fd = -1;

	if (recvmsg(from, &m, 0) == 1 && m.msg_controllen >= CMSG_LEN(sizeof fd))
		memcpy(&fd, CMSG_DATA(&u.h), sizeof fd);
	return fd;
}

/* Starts the program again, whose held_attach returns true there; returns its exit status. Skips
 * where filters cannot notify. */
static inline int held_run(char **argv, const int *calls, unsigned n)
{
	int pair[2], memory = memfd_create("held", 0), listener, status;
	pid_t pid;

	CHECK(memory >= 0);
	CHECK_EQ(ftruncate(memory, 4096), 0);
	held = mmap(NULL, sizeof *held, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	CHECK(held != MAP_FAILED);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	pid = fork();
	if (pid == 0) {
		if (dup2(memory, HELD_FD) != HELD_FD || setenv("KB_TEST_HELD", "1", 1))
			_exit(1);
		listener = held_filter(calls, n);
		if (listener < 0)
			_exit(77);
		held_send(pair[1], listener);
		execv("/proc/self/exe", argv);
		_exit(1);
	}
	syscall(SYS_close, pair[1]);
	listener = held_receive(pair[0]);
	if (listener < 0) {
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
			SKIP("no filter of system calls that tells of them here");
	} else {
		status = held_serve(listener, pid);
		close(listener);
	}
	munmap(held, sizeof *held);
	close(memory);
	close(pair[0]);
	if (WIFSIGNALED(status))
		printf("signal %d\n", WTERMSIG(status));
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* Returns true in the program that was started again. */
static inline bool held_attach(void)
{
	if (!getenv("KB_TEST_HELD"))
		return false;
	held = mmap(NULL, sizeof *held, PROT_READ | PROT_WRITE, MAP_SHARED, HELD_FD, 0);
	CHECK(held != MAP_FAILED);
	return true;
}

#endif
