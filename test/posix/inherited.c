/* A thread changes state that the kernel keeps for each thread. Threads and children that it
 * creates afterwards have the change, also their own, and no thread else: neither main, nor older
 * threads, nor later threads of main. Each kind runs in a program of its own. Changes that the
 * machine or the user does not permit are left out. */
#define _GNU_SOURCE
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LOOKS = 12, LATER = 12, OLDER = 3 };

/* ---- the kinds: a change, and how it is seen ---------------------------------------------- */

static long own_seccomp(void)
{
	char info[256];

	errno = 0;
	return syscall(SYS_sysinfo, info) < 0 ? errno : 0;
}

static int filter(int errno_value, long nr)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)nr, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)errno_value),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { 4, code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

static int set_seccomp(void)
{
	return filter(EXDEV, SYS_sysinfo);
}

static long own_modest(void)
{
	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
}

static int set_modest(void)
{
	return (int)syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

static long own_slack(void)
{
	return prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
}

static int set_slack(void)
{
	return prctl(PR_SET_TIMERSLACK, 654321, 0, 0, 0);
}

static long own_personality(void)
{
	return personality(0xffffffff) & ADDR_NO_RANDOMIZE;
}

static int set_personality(void)
{
	return personality(ADDR_NO_RANDOMIZE) < 0;
}

static long own_memory_errors(void)
{
	return prctl(PR_MCE_KILL_GET, 0, 0, 0, 0);
}

static int set_memory_errors(void)
{
	return prctl(PR_MCE_KILL, PR_MCE_KILL_SET, PR_MCE_KILL_EARLY, 0, 0);
}

static long own_nice(void)
{
	return getpriority(PRIO_PROCESS, 0);
}

static int set_nice(void)
{
	errno = 0;
	return nice(3) < 0 && errno;
}

static long own_io(void)
{
	return syscall(SYS_ioprio_get, 1, 0);
}

static int set_io(void)
{
	return (int)syscall(SYS_ioprio_set, 1, 0, 2 << 13 | 6);
}

static long own_files_user(void)
{
	return setfsuid((uid_t)-1);
}

static int set_files_user(void)
{
	setfsuid(65534);
	return setfsuid((uid_t)-1) != 65534;
}

static long own_user(void)
{
	return geteuid();
}

/* Where virtual processors are processes such a thread could not reach them: doc/posix.md. */
static int set_user(void)
{
	const char *body = getenv("KOCHAB_BODY");

	if (body && !strcmp(body, "process"))
		return -1;
	return (int)syscall(SYS_setresuid, 65534, 65534, 0);
}

static long own_bits(void)
{
	return prctl(PR_GET_SECUREBITS, 0, 0, 0, 0);
}

static int set_bits(void)
{
	return prctl(PR_SET_SECUREBITS, 1 << 0 /* SECBIT_NOROOT */, 0, 0, 0);
}

static long own_bound(void)
{
	return prctl(PR_CAPBSET_READ, 0, 0, 0, 0);
}

static int set_bound(void)
{
	return prctl(PR_CAPBSET_DROP, 0, 0, 0, 0);
}

static long own_mask(void)
{
	char line[128];
	unsigned mask = 0;
	FILE *f = fopen("/proc/thread-self/status", "r");

	CHECK(f != NULL);
	while (fgets(line, sizeof(line), f) && sscanf(line, "Umask: %o", &mask) != 1)
		;
	fclose(f);
	return mask;
}

static int set_mask(void)
{
	if (unshare(CLONE_FS))
		return -1;
	umask(0555);
	return 0;
}

static int kept_open;

static long own_descriptors(void)
{
	(void)own_mask(); /* /proc is readable */
	return fcntl(kept_open, F_GETFD) >= 0;
}

static int set_descriptors(void)
{
	return unshare(CLONE_FILES) || close(kept_open);
}

static long own_host(void)
{
	struct stat st;

	CHECK_EQ(stat("/proc/thread-self/ns/uts", &st), 0);
	return (long)st.st_ino;
}

static int set_host(void)
{
	return unshare(CLONE_NEWUTS);
}

static long own_affinity(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CHECK_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
	return CPU_COUNT(&set);
}

static int set_affinity(void)
{
	cpu_set_t set;
	int last = CPU_SETSIZE;

	CHECK_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
	if (CPU_COUNT(&set) < 2)
		return -1;
	while (!CPU_ISSET(--last, &set))
		;
	CPU_ZERO(&set);
	CPU_SET(last, &set);
	return pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

static long own_policy(void)
{
	return syscall(SYS_sched_getscheduler, 0);
}

static int set_policy(void)
{
	struct sched_param p = { 0 };

	return sched_setscheduler(0, SCHED_BATCH, &p);
}

static const struct kind {
	const char *name;
	long (*own)(void);
	int (*set)(void);
} kinds[] = {
	{ "seccomp", own_seccomp, set_seccomp },
	{ "no_new_privs", own_modest, set_modest },
	{ "timer slack", own_slack, set_slack },
	{ "personality", own_personality, set_personality },
	{ "memory errors", own_memory_errors, set_memory_errors },
	{ "nice", own_nice, set_nice },
	{ "io priority", own_io, set_io },
	{ "user for files", own_files_user, set_files_user },
	{ "user", own_user, set_user },
	{ "securebits", own_bits, set_bits },
	{ "bounding set", own_bound, set_bound },
	{ "umask", own_mask, set_mask },
	{ "descriptors", own_descriptors, set_descriptors },
	{ "host's namespace", own_host, set_host },
	{ "affinity", own_affinity, set_affinity },
	{ "policy", own_policy, set_policy },
};

/* ---- the threads that have it ------------------------------------------------------------- */

static const struct kind *kind;
static long before, after;
static sem_t is_set;
static volatile bool refused;

static void look(const char *who, long expected)
{
	for (int i = 0; i < LOOKS; i++) {
		long found = kind->own();

		if (found != expected) {
			fprintf(stderr, "%s: %s has %ld, not %ld\n", kind->name, who, found, expected);
			_exit(1);
		}
		if (i % 2)
			sched_yield();
		else
			usleep(300);
	}
}

static pthread_key_t at_end;

/* Checks it at the thread's end, too. */
static void ends(void *expected)
{
	CHECK_EQ(kind->own(), *(long *)expected);
}

static void *grandchild(void *arg)
{
	pthread_setspecific(at_end, &after);
	look("the thread's thread's", after);
	return arg;
}

static void *child(void *arg)
{
	pthread_t t;

	CHECK_EQ(pthread_create(&t, NULL, grandchild, NULL), 0);
	look("the thread's", after);
	CHECK_EQ(pthread_join(t, NULL), 0);
	look("the thread's", after);
	return arg;
}

static void has_children(void)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(kind->own() == after ? 0 : 9);
	CHECK(pid > 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

static void *changes(void *arg)
{
	pthread_t t[2];
	pthread_attr_t plain;

	refused = kind->set() != 0;
	after = kind->own();
	pthread_setspecific(at_end, &after);
	sem_post(&is_set);
	if (refused)
		return arg;
	CHECK(after != before);
	pthread_attr_init(&plain);
	CHECK_EQ(pthread_create(&t[0], NULL, child, NULL), 0);
	CHECK_EQ(pthread_create(&t[1], &plain, child, NULL), 0);
	pthread_attr_destroy(&plain);
	look("the thread", after);
	has_children();
	for (int i = 0; i < 2; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	look("the thread", after);
	return arg;
}

static void *other(void *arg)
{
	pthread_setspecific(at_end, &before);
	while (!arg && sem_trywait(&is_set))
		usleep(200);
	if (!arg)
		sem_post(&is_set);
	look(arg ? "a later one" : "an older one", before);
	return arg;
}

static void others_have_not(void)
{
	pthread_t t[LATER];

	for (int i = 0; i < LATER; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, other, &before), 0);
	look("main", before);
	for (int i = 0; i < LATER; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
}

/* Runs a kind by a thread, with further threads beside it; by_main: by main, whose later threads
 * have the change. */
static void run(bool by_main)
{
	pthread_t old[OLDER], t;

	CHECK_EQ(sem_init(&is_set, 0, 0), 0);
	CHECK_EQ(pthread_key_create(&at_end, ends), 0);
	kept_open = fcntl(STDERR_FILENO, F_DUPFD, 500);
	before = kind->own();
	for (int i = 0; i < OLDER; i++)
		CHECK_EQ(pthread_create(&old[i], NULL, other, NULL), 0);
	if (by_main) {
		changes(NULL);
	} else {
		CHECK_EQ(pthread_create(&t, NULL, changes, NULL), 0);
		while (sem_wait(&is_set))
			;
		sem_post(&is_set);
		others_have_not();
		CHECK_EQ(pthread_join(t, NULL), 0);
		others_have_not();
	}
	for (int i = 0; i < OLDER; i++)
		CHECK_EQ(pthread_join(old[i], NULL), 0);
	if (refused)
		fprintf(stderr, "%s cannot be changed here\n", kind->name);
}

int main(void)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		for (int by_main = 0; by_main < 2; by_main++) {
			pid_t pid = fork();
			int status;

			CHECK(pid >= 0);
			if (!pid) {
				kind = &kinds[i];
				run(by_main);
				_exit(0);
			}
			CHECK_EQ(waitpid(pid, &status, 0), pid);
			CHECK_EQ(status, 0);
		}
	return 0;
}
