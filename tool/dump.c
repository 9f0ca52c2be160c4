/* tool/dump.c - `kochab dump`: asks a running program for the list of its threads, which it prints
 * to its own standard error. The question is the tick's signal with a word. A process without a
 * handler ignores that signal, so the question ends no process, while SIGQUIT ends a program that
 * has made no thread yet. A program that ignores SIGQUIT hears the question, too. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/option.h"
#include "core/preempt.h"
#include "tool.h"

/* Opens a file of the process in /proc. NULL: it cannot be opened, and the reason is printed. */
static FILE *open_file(pid_t pid, const char *name)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
	f = fopen(path, "re");
	if (!f)
		tool_say("dump: %s: %s", path, strerror(errno == ENOENT ? ESRCH : errno));
	return f;
}

/* Returns whether a line of the file, copied to `line`, has the word. -1: it cannot be opened; the
 * reason is printed. */
static int has_word(pid_t pid, const char *name, const char *word, char *line, size_t size)
{
	FILE *f = open_file(pid, name);
	int found = 0;

	if (!f)
		return -1;
	while (!found && fgets(line, (int)size, f))
		found = strstr(line, word) != NULL;
	fclose(f);
	return found;
}

/* Returns the tick's signal, by the environment with which the program was started. */
static int tick_signal_of(pid_t pid)
{
	static const char name[] = "KOCHAB_TICK_SIGNAL=winch";
	char text[8192];
	FILE *f = open_file(pid, "environ");
	size_t n = f ? fread(text, 1, sizeof text, f) : 0;

	if (f)
		fclose(f);
	return n && memmem(text, n, name, sizeof name) ? SIGWINCH : SIGURG;
}

static int catches_signal(pid_t pid, int sig)
{
	char line[4096];
	int found = has_word(pid, "status", "SigCgt:", line, sizeof line);

	return found <= 0 ? found : (int)(strtoull(strchr(line, ':') + 1, NULL, 16) >> (sig - 1) & 1);
}

static int ask_for_dump(pid_t pid)
{
	char line[4096];
	int sig, runs = has_word(pid, "maps", "/libkochab", line, sizeof line), listens;

	if (runs < 0)
		return TOOL_FAILED;
	if (!runs) {
		tool_say("dump: %d does not run on Kochab's libraries", (int)pid);
		return TOOL_FAILED;
	}
	sig = tick_signal_of(pid);
	listens = catches_signal(pid, sig);
	if (listens == 0)
		tool_say("dump: %d has no virtual processors: it has made no thread yet", (int)pid);
	if (listens <= 0)
		return TOOL_FAILED;
	if (sigqueue(pid, sig, (union sigval){ .sival_int = KBI_PREEMPT_WISH })) {
		tool_say("dump: %d: %s", (int)pid, strerror(errno));
		return TOOL_FAILED;
	}
	return TOOL_OK;
}

int tool_dump(int argc, char **argv)
{
	int code = TOOL_OK;

	if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
		printf("usage: kochab dump PID...\n\n"
		       "Asks programs that run on Kochab for the list of their threads, with state and "
		       "backtrace. Each\n"
		       "prints it to its own standard error, and goes on. SIGQUIT does the same, but ends "
		       "a program that\n"
		       "has made no thread yet, and is not heard by one that ignores it.\n");
		return TOOL_OK;
	}
	if (argc < 2) {
		tool_say("dump: which process? usage: kochab dump PID...");
		return TOOL_USAGE;
	}
	for (int i = 1; i < argc; i++) {
		char *end;
		long pid = isdigit((unsigned char)argv[i][0]) ? strtol(argv[i], &end, 10) : 0;

		if (pid <= 0 || pid > INT_MAX || *end) {
			tool_say("dump: %s: no number of a process; usage: kochab dump PID...", argv[i]);
			return TOOL_USAGE;
		}
		if (ask_for_dump((pid_t)pid) != TOOL_OK)
			code = TOOL_FAILED;
	}
	return code;
}
