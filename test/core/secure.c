/* A program with more rights than its caller takes no options from the caller's environment but two
 * that can do no harm, prints nothing about bad options, and SIGQUIT ends it without a message; a
 * program that is not dumpable prints no addresses; and names of threads do nothing to the terminal
 * that they are shown on. */
/* matrix: none */
#include <errno.h>
#include <fcntl.h>
#include <kochab/kochab.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/option.h"
#include "core/dump.h"
#include "libc/segment.h"
#include "core/crashers.h"
#include "setuid.h"
#include "test.h"

enum { NOBODY = 65534, NOT_SECURE = 77 };

static char folder[] = "/tmp/kb-secure-XXXXXX", path[64];

/* A name of a thread that a terminal would obey. */
#define NAME "a\033]0;x\a\302\233m"

/* Attempts of a caller. */
static char *const tries[] = { "KOCHAB_CONTAIN=1", "KOCHAB_BODY=process", "KOCHAB_ON_CRASH=release",
			       "KOCHAB_STATS=1", "KOCHAB_VERBOSE=1", "KOCHAB_GUARD=none", "KOCHAB_VPS=7",
			       "KOCHAB_NONSENSE=1", "KOCHAB_TICK_MS=x", "KOCHAB_SCHED=steal", NULL };

static void *parks(void *sem)
{
	kb_sem_wait(sem);
	return NULL;
}

/* Runs with the file owner's rights. */
static int secure(void)
{
	kb_sem_t sem = KB_SEM_INIT(0);
	kb_thread_t t;

	if (!getauxval(AT_SECURE))
		return NOT_SECURE;
	CHECK_EQ(kb_thread_create(&t, NULL, parks, &sem), 0);
	CHECK_EQ(kbi_options.contain, 0);
	CHECK_EQ(kbi_options.body, KBI_OPT_BODY_THREAD);
	CHECK_EQ(kbi_options.on_crash, KBI_OPT_ON_CRASH_ABORT);
	CHECK_EQ(kbi_options.stats, 0);
	CHECK_EQ(kbi_options.guard, KBI_OPT_GUARD_AUTO);
	CHECK_EQ(kbi_options.vps, 0);
	CHECK_EQ(kbi_options.sched, KBI_OPT_SCHED_STEAL);
	CHECK(!kbi_segment_is_open()); /* stacks may lie anywhere */
	raise(SIGQUIT);
	return 1; /* the signal ends it */
}

/* Stores the child's standard error in `said`; returns its status. */
static int run(void (*child)(void), char *said, size_t room)
{
	int p[2], status;
	size_t at = 0;
	ssize_t n;
	pid_t pid;

	CHECK_EQ(pipe(p), 0);
	pid = fork();
	if (pid == 0) {
		dup2(p[1], STDERR_FILENO);
		child();
		_exit(126);
	}
	close(p[1]);
	while (at < room - 1 && (n = read(p[0], said + at, room - 1 - at)) > 0)
		at += (size_t)n;
	said[at] = 0;
	close(p[0]);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return status;
}

static void as_nobody(void)
{
	char *const argv[] = { path, "secure", NULL };

	if (setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY))
		_exit(NOT_SECURE);
	execve(path, argv, tries);
	if (errno == ENOEXEC)
		_exit(NOT_SECURE); /* another machine's program, in an emulator */
}

/* A plain program that has closed itself later: states are printed, no code. */
static void closed(void)
{
	kb_sem_t sem = KB_SEM_INIT(0);
	kb_thread_t t;
	kb_attr_t a;

	kb_attr_init(&a);
	kb_attr_setname(&a, NAME);
	CHECK_EQ(kb_thread_create(&t, &a, parks, &sem), 0);
	kb_yield();
	CHECK_EQ(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), 0);
	raise(SIGQUIT);
	_exit(0);
}

#ifndef NOT_CONTAINED
static void *crashes(void *nowhere)
{
	*(volatile int *)nowhere = 1;
	return NULL;
}

/* A crash is reported without an address of the code or the memory. */
static void crashes_closed(void)
{
	kb_thread_t t;
	kb_attr_t a;

	setenv("KOCHAB_CONTAIN", "1", 1);
	kb_attr_init(&a);
	kb_attr_setname(&a, NAME);
	CHECK_EQ(kb_thread_create(&t, &a, crashes, (void *)8), 0);
	CHECK_EQ(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), 0);
	kb_thread_join(t, NULL);
	_exit(0);
}
#endif

int main(int argc, char **argv)
{
	char said[65536];
	int status;

	(void)argv;
	if (argc > 1)
		return secure();
	status = run(closed, said, sizeof said);
	CHECK(strstr(said, "a?]0;x?"));
	CHECK(!strpbrk(said, "\033\a\233"));
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	CHECK(strstr(said, "waiting on VP"));
	CHECK(strstr(said, "not dumpable"));
	CHECK(!strstr(said, "0x"));
#ifndef NOT_CONTAINED
	run(crashes_closed, said, sizeof said);
	CHECK(strstr(said, "a?]0;x?"));
	CHECK(!strpbrk(said, "\033\a\233"));
	CHECK(strstr(said, "signal 11 at (nil)"));
	CHECK(!strstr(said, "0x"));
#endif
	if (geteuid() != 0)
		SKIP("only root can give rights away");
	CHECK(mkdtemp(folder));
	CHECK_EQ(chmod(folder, 0755), 0);
	snprintf(path, sizeof path, "%s/secure", folder);
	setuid_copy(path);
	status = run(as_nobody, said, sizeof said);
	unlink(path);
	rmdir(folder);
	if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_SECURE)
		SKIP("a setuid program gets no rights here");
	CHECK_EQ(strlen(said), 0);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGQUIT);
	return 0;
}
