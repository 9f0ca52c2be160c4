/* tool/doctor_libc.c - the questions about libc's inside when a program makes its first thread, and
 * the answers (doc/libc.md). The drop-in asks: this command is run under it once more, makes a
 * thread and ends, and with option verbose the drop-in tells. Where that program crashes, so would
 * every program. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <limits.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool.h"

enum { SECONDS = 20 };

static void *do_nothing(void *arg)
{
	return arg;
}

int tool_make_thread(void)
{
	pthread_attr_t attr;
	pthread_t t;
	int e = pthread_attr_init(&attr);

	pthread_attr_setscope(&attr, PTHREAD_SCOPE_PROCESS);
	e = e ? e : pthread_create(&t, &attr, do_nothing, NULL);
	return e || pthread_join(t, NULL) ? TOOL_FAILED : TOOL_OK;
}

/* Runs in a child. The options of the environment are kept: they may be the fault. */
static void become_program(const char *self, const char *drop_in, const char *body, int out)
{
	int nothing = open("/dev/null", O_RDWR);

	out = fcntl(out, F_DUPFD, STDERR_FILENO + 1);
	dup2(nothing, 0);
	dup2(nothing, 1);
	dup2(out, 2);
	alarm(SECONDS);
	setenv("LD_PRELOAD", drop_in, 1);
	setenv("KOCHAB_VERBOSE", "1", 1);
	setenv("KOCHAB_CONTAIN", "1", 0);
	setenv("KOCHAB_BODY", body, 1);
	execl(self, self, "doctor", "--make-thread", (char *)NULL);
	_exit(TOOL_CANNOT_RUN);
}

static bool is_told(const char *name)
{
	enum { MOST = 64 };
	static char names[MOST][64];
	static unsigned n;

	for (unsigned i = 0; i < n; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	if (n < MOST)
		snprintf(names[n++], sizeof(names[0]), "%s", name);
	return false;
}

/* Tells a line "kochab: glibc 2.36: + thing: how". The mark is +, - or none, which all programs
 * print. Returns whether it is such a line. */
static bool tell_line(char *line, tool_told *tell)
{
	static const char before[] = "kochab: glibc ";
	char *what, *how, name[64];
	bool found;

	line[strcspn(line, "\n")] = '\0';
	if (strncmp(line, before, sizeof(before) - 1) != 0 ||
		(what = strstr(line + sizeof(before) - 1, ": ")) == NULL)
		return false;
	what += 2;
	found = *what == '+';
	if (found || *what == '-')
		what += 2;
	how = strstr(what, ": ");
	if (how == NULL)
		return false;
	*how = '\0';
	snprintf(name, sizeof(name), "  %s", what);
	if (!is_told(name))
		tell(name, found, how + 2);
	return true;
}

/* Returns whether it ended well. */
static bool tell_end(int status, tool_told *tell)
{
	char text[96];

	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return true;
	if (WIFSIGNALED(status))
		snprintf(text, sizeof(text), "the program that asked was ended by signal %d",
			WTERMSIG(status));
	else
		snprintf(text, sizeof(text), "the program that asked ended with code %d",
			WEXITSTATUS(status));
	tell("  its end", false, text);
	return false;
}

/* Returns whether the program ended well and the drop-in printed there: the loader goes on without
 * a file that is no library. */
static bool ask_drop_in(const char *self, const char *drop_in, const char *body, tool_told *tell)
{
	char line[512];
	int ends[2], status = 0;
	bool spoke = false;
	FILE *f;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return false;
	fflush(stdout);
	pid = fork();
	if (pid == 0)
		become_program(self, drop_in, body, ends[1]);
	close(ends[1]);
	f = fdopen(ends[0], "r");
	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		spoke |= tell_line(line, tell);
	if (f != NULL)
		fclose(f);
	return pid > 0 && waitpid(pid, &status, 0) == pid && tell_end(status, tell) && spoke;
}

/* Some things are asked only where virtual processors are processes. */
unsigned tool_doctor_libc(tool_told *tell)
{
	char self[PATH_MAX], drop_in[PATH_MAX];
	unsigned runs;

	if (!tool_self(self, sizeof(self)) || !tool_find_drop_in(drop_in, sizeof(drop_in)))
		return 0;
	runs = ask_drop_in(self, drop_in, "thread", tell) ? TOOL_RUNS_THREADS : 0;
	return runs | (ask_drop_in(self, drop_in, "process", tell) ? TOOL_RUNS_PROCESSES : 0);
}
