/* dev/kernel/refuse.c - runs a command on a kernel that lacks something: a seccomp filter answers as older kernels do.
 *
 *   refuse [--error NAME] FEATURE[,FEATURE]... COMMAND [ARGUMENT]...
 *   refuse --list | --table | --units | --tests FEATURE[,FEATURE]...
 *
 * FEATURE is its name (feature.def), `linux-5.10` for all that are newer than that, `all`, or `none` for a
 * filter that refuses nothing: that there is a filter makes a difference by itself. --error ENOSYS or EPERM is said
 * instead of every error of a system call that is refused whole, as containers do.
 * Where the answer lies in the caller's memory a supervisor is asked, a process of its own that ends with the last process
 * under the filter. x86-64 only. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

enum question { NOTHING, RING_MEMORY, RELEASE };

struct rule {
	int nr, arg; /* arg -1: whatever they are */
	uint32_t mask, value;
	int error;
	enum question ask; /* not NOTHING: the supervisor's to answer */
};

static const struct feature {
	const char *name, *kernel, *what, *pattern, *units, *without, *tests;
	struct rule rules[4]; /* nr 0: none; read(2) is never refused */
} features[] = {
#define CALL(nr, error) { nr, -1, 0, 0, error, NOTHING }
#define FLAG(nr, arg, mask, value, error) { nr, arg, mask, value, error, NOTHING }
#define ASK(nr, question) { nr, -1, 0, 0, 0, question }
#define NO_RULE { 0, -1, 0, 0, 0, NOTHING }
#define FEATURE(name, kernel, what, pattern, units, without, tests, ...) \
	{ #name, kernel, what, pattern, units, without, tests, { __VA_ARGS__ } },
#include "feature.def"
};
enum { FEATURES = sizeof(features) / sizeof(features[0]), RULES = sizeof(features[0].rules) / sizeof(struct rule) };

static bool chosen[FEATURES];
static int instead; /* of the error of a system call that is refused whole; 0: its own */

static void die(const char *why, const char *what)
{
	fprintf(stderr, "refuse: %s: %s\n", what, why);
	exit(125);
}

/* ---- the choice ---------------------------------------------------------------------------------------------------- */

static unsigned version(const char *text)
{
	unsigned major = 0, minor = 0;

	return sscanf(text, "%u.%u", &major, &minor) == 2 ? major * 1000 + minor : 0;
}

static void choose_one(const char *word)
{
	bool any = strcmp(word, "none") == 0;
	unsigned newest = strncmp(word, "linux-", 6) == 0 ? version(word + 6) : 0;

	for (unsigned i = 0; i < FEATURES; i++) {
		const struct feature *f = &features[i];
		bool is = strcmp(word, "all") == 0 || strcmp(word, f->name) == 0 || (newest && version(f->kernel) > newest);

		chosen[i] |= is;
		any |= is;
	}
	if (!any)
		die("no such feature; --list names them", word);
}

static void choose(char *words)
{
	for (char *word = strtok(words, ","); word; word = strtok(NULL, ","))
		choose_one(word);
}

/* ---- the filter ----------------------------------------------------------------------------------------------------- */

static struct sock_filter filter[512];
static unsigned short length;

static void put(unsigned code, uint32_t k, unsigned yes, unsigned no)
{
	if (length == sizeof(filter) / sizeof(filter[0]))
		die("too long", "filter");
	filter[length++] = (struct sock_filter){ (uint16_t)code, (uint8_t)yes, (uint8_t)no, k };
}

static void load(size_t at)
{
	put(BPF_LD | BPF_W | BPF_ABS, (uint32_t)at, 0, 0);
}

/* Flags are in the lower half of an argument. */
static void put_rule(const struct rule *r)
{
	uint32_t error = (uint32_t)(instead && r->arg < 0 ? instead : r->error);

	load(offsetof(struct seccomp_data, nr));
	put(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)r->nr, 0, r->arg < 0 ? 1 : 4);
	if (r->arg >= 0) {
		load(offsetof(struct seccomp_data, args) + 8 * (size_t)r->arg);
		put(BPF_ALU | BPF_AND | BPF_K, r->mask, 0, 0);
		put(BPF_JMP | BPF_JEQ | BPF_K, r->value, 0, 1);
	}
	put(BPF_RET | BPF_K, r->ask ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ERRNO | error, 0, 0);
}

/* Puts the rules that ask, or the rules that answer by themselves; are there any? */
static bool put_rules(bool ask)
{
	bool any = false;

	for (unsigned i = 0; i < FEATURES; i++)
		for (unsigned k = 0; chosen[i] && k < RULES && features[i].rules[k].nr; k++)
			if ((features[i].rules[k].ask != NOTHING) == ask) {
				put_rule(&features[i].rules[k]);
				any = true;
			}
	return any;
}

/* Calls of 32 bits are left alone. True: there is something to ask. */
static bool make_filter(void)
{
	bool asks;

	load(offsetof(struct seccomp_data, arch));
	put(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
	put(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
	put_rules(false);
	asks = put_rules(true);
	put(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
	return asks;
}

/* Returns the listener, or 0. A user without the right gives up the rights that exec could give. */
static int install(bool asks)
{
	const struct sock_fprog program = { length, filter };
	const unsigned flags = asks ? SECCOMP_FILTER_FLAG_NEW_LISTENER : 0;
	long r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);

	if (r < 0 && errno == EACCES) {
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
	}
	if (r < 0)
		die(strerror(errno), "seccomp");
	return (int)r;
}

/* ---- the supervisor -------------------------------------------------------------------------------------------------- */

static bool reads_ring_memory(const struct seccomp_notif *n)
{
	enum { NO_MMAP = 1 << 14 };
	uint32_t head[3] = { 0 }; /* of struct io_uring_params: two sizes, flags */
	struct iovec to = { head, sizeof(head) }, from = { (void *)(uintptr_t)n->data.args[1], sizeof(head) };

	return process_vm_readv((pid_t)n->pid, &to, 1, &from, 1, 0) == (ssize_t)sizeof(head) && head[2] & NO_MMAP;
}

static bool writes_release(const struct seccomp_notif *n)
{
	struct utsname u;
	struct iovec from = { &u, sizeof(u) }, to = { (void *)(uintptr_t)n->data.args[0], sizeof(u) };

	uname(&u);
	snprintf(u.release, sizeof(u.release), "5.10.0-refused");
	return process_vm_writev((pid_t)n->pid, &from, 1, &to, 1, 0) == (ssize_t)sizeof(u);
}

static void answer(int listener)
{
	struct seccomp_notif n;
	struct seccomp_notif_resp r;

	memset(&n, 0, sizeof(n));
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &n) != 0)
		return;
	memset(&r, 0, sizeof(r));
	r.id = n.id;
	if (n.data.nr == SYS_uname)
		r.flags = writes_release(&n) ? 0 : SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	else if (reads_ring_memory(&n))
		r.error = -EINVAL;
	else
		r.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &r);
}

/* Until nobody is under the filter any more. */
static void supervise(int listener)
{
	struct pollfd p = { .fd = listener, .events = POLLIN };

	while (poll(&p, 1, -1) > 0 && !(p.revents & (POLLHUP | POLLERR)))
		answer(listener);
	_exit(0);
}

union control {
	struct cmsghdr head;
	char bytes[CMSG_SPACE(sizeof(int))];
};

static void send_listener(int way, int listener)
{
	union control c = { .head = { CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	char byte = 0;
	struct iovec v = { &byte, 1 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof(c) };

	memcpy(CMSG_DATA(&c.head), &listener, sizeof(listener));
	if (sendmsg(way, &m, 0) != 1)
		die(strerror(errno), "supervisor");
}

static int receive_listener(int way)
{
	union control c;
	char byte;
	struct iovec v = { &byte, 1 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof(c) };
	int listener;

	if (recvmsg(way, &m, 0) != 1 || m.msg_controllen < sizeof(struct cmsghdr))
		_exit(1);
	memcpy(&listener, CMSG_DATA(&c.head), sizeof(listener));
	return listener;
}

/* No child of the command's, in no session or pipe of its. Returns where it waits for the listener. */
static int start_supervisor(void)
{
	int way[2], nowhere;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, way) != 0 || (pid = fork()) < 0)
		die(strerror(errno), "supervisor");
	if (pid > 0) {
		close(way[1]);
		waitpid(pid, NULL, 0);
		return way[0];
	}
	setsid();
	if (fork() != 0)
		_exit(0);
	close(way[0]);
	nowhere = open("/dev/null", O_RDWR);
	for (int fd = 0; fd < 3; fd++)
		dup2(nowhere, fd);
	supervise(receive_listener(way[1]));
	return -1;
}

/* ---- its output ------------------------------------------------------------------------------------------------------ */

static void print_list(void)
{
	for (unsigned i = 0; i < FEATURES; i++)
		if (features[i].rules[0].nr)
			puts(features[i].name);
}

/* As it stands in doc/portability.md. */
static void print_table(void)
{
	puts("| feature | least kernel | what it is | where | without it |\n| --- | --- | --- | --- | --- |");
	for (unsigned i = 0; i < FEATURES; i++) {
		const struct feature *f = &features[i];

		printf("| %s%s | %s | %s | ", f->name, f->rules[0].nr ? "" : " (1)", f->kernel, f->what);
		for (const char *c = f->units; *c; c++)
			fputs(*c == ' ' ? ", " : (char[]){ *c, 0 }, stdout);
		printf(" | %s |\n", f->without);
	}
}

static void print_units(void)
{
	for (unsigned i = 0; i < FEATURES; i++)
		printf("%s\t%s\t%s\n", features[i].name, features[i].pattern, features[i].units);
}

static void print_tests(char *words)
{
	choose(words);
	for (unsigned i = 0; i < FEATURES; i++)
		if (chosen[i])
			puts(features[i].tests);
}

static void read_options(int *argc, char ***argv)
{
	const char *first = *argc > 1 ? (*argv)[1] : "";

	if (strcmp(first, "--list") == 0) {
		print_list();
	} else if (strcmp(first, "--table") == 0) {
		print_table();
	} else if (strcmp(first, "--units") == 0) {
		print_units();
	} else if (strcmp(first, "--tests") == 0 && *argc > 2) {
		print_tests((*argv)[2]);
	} else if (strcmp(first, "--error") == 0 && *argc > 2) {
		instead = strcmp((*argv)[2], "EPERM") == 0 ? EPERM : strcmp((*argv)[2], "ENOSYS") == 0 ? ENOSYS : 0;
		if (!instead)
			die("ENOSYS or EPERM", (*argv)[2]);
		*argc -= 2;
		*argv += 2;
		return;
	} else {
		return;
	}
	exit(0);
}

int main(int argc, char **argv)
{
	int way = -1, listener;

	read_options(&argc, &argv);
	if (argc < 3)
		die("refuse [--error ENOSYS|EPERM] FEATURE[,FEATURE]... COMMAND [ARGUMENT]... | --list | --table | --units | "
		    "--tests FEATURE", "usage");
	choose(argv[1]);
	if (make_filter())
		way = start_supervisor();
	listener = install(way >= 0);
	if (way >= 0) {
		send_listener(way, listener);
		close(listener);
		close(way);
	}
	execvp(argv[2], argv + 2);
	die(strerror(errno), argv[2]);
}
