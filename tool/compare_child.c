/* tool/compare_child.c - starts a program, waits for it, ends it with all that it has started. Each
 * program leads a process group; processes that leave the group come back to this command when
 * their parents end (PR_SET_CHILD_SUBREAPER) and are ended, too. If this command is killed, the
 * kernel kills the program (PR_SET_PDEATHSIG). Signals are taken by sigtimedwait: there are no
 * handlers. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "compare.h"
#include "tool.h"

extern char **environ;

static sigset_t waited, before; /* signals that are waited for; the mask that the program gets */
static int stopped;
static unsigned stops; /* how often */
static bool had_children;
static unsigned living; /* children that were started and whose ends were not taken */

int compare_stopped(void)
{
	return stopped;
}

/* Stores the numbers of up to `most` children of this command in pid[] and returns how many it has
 * stored; 0, too, where the kernel has no list of children. */
static unsigned list_children(pid_t *pid, unsigned most)
{
	char path[64];
	unsigned n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	f = fopen(path, "re");
	if (f == NULL)
		return 0;
	while (n < most && fscanf(f, "%d", &pid[n]) == 1)
		n++;
	fclose(f);
	return n;
}

void compare_setup(void)
{
	static const int ends[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	pid_t child;
	int fd;

	sigemptyset(&waited);
	sigaddset(&waited, SIGCHLD);
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		struct sigaction sa;

		if (sigaction(ends[i], NULL, &sa) == 0 && sa.sa_handler != SIG_IGN)
			sigaddset(&waited, ends[i]);
	}
	while ((fd = open("/dev/null", O_RDWR)) >= 0 && fd <= 2)
		; /* the places of standard input, output and error are taken by something */
	close(fd);
	signal(SIGCHLD, SIG_DFL); /* ignored, it would take away the exit status */
	sigprocmask(SIG_BLOCK, &waited, &before);
	sigdelset(&before, SIGCHLD);
	/* from before this process's exec: they are not ended */
	had_children = list_children(&child, 1) > 0;
	if (!had_children)
		prctl(PR_SET_CHILD_SUBREAPER, 1L, 0L, 0L, 0L);
}

int compare_file(void)
{
	const char *folder = getenv("TMPDIR");
	char path[PATH_MAX];
	int fd, n;

	n = snprintf(path, sizeof(path), "%s/kochab-compare.XXXXXX",
		folder != NULL && *folder != '\0' ? folder : "/tmp");
	if (n < 0 || (size_t)n >= sizeof(path))
		return -1;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	return fd;
}

/* Removes Kochab's variables, and its drop-in from LD_PRELOAD, so that the program runs on kernel
 * threads. */
static void clean_environment(void)
{
	for (char **e = environ; *e != NULL;) {
		char name[64];
		size_t n = strcspn(*e, "=");

		if (strncmp(*e, "KOCHAB_", 7) != 0 || n >= sizeof(name)) {
			e++;
			continue;
		}
		memcpy(name, *e, n);
		name[n] = '\0';
		unsetenv(name);
		e = environ;
	}
	tool_drop_preload();
}

static void exec_in_child(char *const *argv, const int file[3], const struct compare_kind *kind,
	pid_t parent, int report)
{
	int e;

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, (long)SIGKILL, 0L, 0L, 0L);
	if (getppid() != parent)
		_exit(TOOL_FAILED);
	for (int i = 0; i < 3; i++)
		if (dup2(file[i], i) < 0)
			_exit(TOOL_FAILED);
	if (kind->plain)
		clean_environment();
	else if (kind->variable != NULL)
		setenv(kind->variable, kind->value, 1);
	sigprocmask(SIG_SETMASK, &before, NULL);
	execvp(argv[0], argv);
	e = errno;
	if (write(report, &e, sizeof(e)) != sizeof(e))
		_exit(TOOL_FAILED);
	_exit(TOOL_CANNOT_RUN);
}

int compare_start(struct compare_child *c, char *const *argv, const int file[3],
	const struct compare_kind *kind)
{
	pid_t parent = getpid();
	int report[2], e = 0;

	*c = (struct compare_child){ .began = tool_now() };
	if (pipe2(report, O_CLOEXEC) != 0)
		return errno;
	c->pid = fork();
	if (c->pid < 0) {
		e = errno;
		close(report[0]);
		close(report[1]);
		return e;
	}
	if (c->pid == 0)
		exec_in_child(argv, file, kind, parent, report[1]);
	close(report[1]);
	setpgid(c->pid, c->pid); /* the child makes this call, too: either may be first */
	if (read(report[0], &e, sizeof(e)) != sizeof(e))
		e = 0; /* the program runs */
	close(report[0]);
	if (e != 0)
		waitpid(c->pid, NULL, 0);
	else
		living++;
	return e;
}

/* Returns whether the child has ended. It stays a zombie until take_end has killed its group, so
 * the group's number is not used again. */
static bool has_ended(const struct compare_child *c)
{
	siginfo_t info = { 0 };

	return waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
		info.si_pid == c->pid;
}

/* Ends the processes that came back to this command when their parents ended. Returns how many of
 * them were alive. */
static unsigned end_strays(void)
{
	enum { MOST = 64, PATIENCE = 2000 };
	pid_t pid[MOST];
	unsigned ended = 0;

	for (int i = 0; i < PATIENCE && !had_children; i++) {
		unsigned n = list_children(pid, MOST);

		for (unsigned k = 0; k < n; k++)
			if (waitpid(pid[k], NULL, WNOHANG) == 0)
				ended += kill(pid[k], SIGKILL) == 0 && i == 0;
		if (n == 0)
			break;
		if (i > 0)
			usleep(1000);
	}
	return ended;
}

/* Takes the exit status of a child that has ended, or got SIGKILL. Ends its group, and strays if it
 * was the last child. */
static void take_end(struct compare_child *c)
{
	c->took = tool_now() - c->began;
	kill(-c->pid, SIGKILL);
	while (wait4(c->pid, &c->status, 0, &c->usage) < 0 && errno == EINTR)
		;
	c->ended = true;
	living--;
	if (living == 0)
		c->left = end_strays();
}

/* Waits until the child ends, the time is over, or this command has been asked to end more often
 * than `asked`. */
static bool wait_for_child(struct compare_child *c, double seconds, unsigned asked)
{
	double end = tool_now() + seconds;

	while (!c->ended) {
		double left = end - tool_now();
		struct timespec t = { (time_t)left, (long)((left - (double)(time_t)left) * 1e9) };
		int sig;

		if (has_ended(c)) {
			take_end(c);
			break;
		}
		if (left <= 0 || stops > asked)
			return false;
		sig = sigtimedwait(&waited, NULL, &t);
		if (sig > 0 && sig != SIGCHLD) {
			stopped = sig;
			stops++;
		}
	}
	return true;
}

bool compare_wait(struct compare_child *c, double seconds)
{
	return wait_for_child(c, seconds, 0);
}

bool compare_end(struct compare_child *c, double patience)
{
	if (!c->ended && patience > 0) {
		kill(c->pid, SIGTERM);
		wait_for_child(c, patience, stops);
	}
	if (c->ended)
		return true;
	kill(-c->pid, SIGKILL);
	kill(c->pid, SIGKILL);
	take_end(c);
	return false;
}
