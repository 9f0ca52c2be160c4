/* tool/stack.c - `kochab stack`: backtraces of a program's threads, equal ones once. The work is
 * done by a child with limits: symbols and unwind tables come from files that the program has
 * mapped, and may be anything. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stack.h"
#include "tool.h"

enum { SECONDS = 300, NAMED = 6 };

struct asked {
	const char *what;  /* the process or core file, in the user's words */
	bool is_pid;
	bool all;          /* each thread by itself */
	long thread;       /* -1: all */
};

static int by_frames(const void *a, const void *b)
{
	const struct stack_trace *x = a, *y = b;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->n != y->n)
		return x->n < y->n ? -1 : 1;
	for (uint32_t i = 0; i < x->n; i++)
		if (x->pc[i] != y->pc[i])
			return x->pc[i] < y->pc[i] ? -1 : 1;
	if (x->why != y->why)
		return x->why < y->why ? -1 : 1;
	return x->thread < y->thread ? -1 : x->thread > y->thread;
}

static bool are_equal(const struct stack_trace *x, const struct stack_trace *y)
{
	return x->kind == y->kind && x->n == y->n && x->why == y->why &&
	       (x->n == 0 || memcmp(x->pc, y->pc, x->n * sizeof(*x->pc)) == 0);
}

/* A group of equal traces. */
struct group {
	uint32_t first, n;
};

static int by_number(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	return x->n != y->n ? (x->n < y->n) - (x->n > y->n) :
		(x->first > y->first) - (x->first < y->first);
}

static void print_thread(const struct kb_thread *t, const char *before)
{
	char name[LOOK_NAME];

	look_name(t, name);
	printf("%s#%u%s%s%s", before, t->task.index, *name != '\0' ? " \"" : "", name,
		*name != '\0' ? "\"" : "");
}

static void print_group(const struct look *l, const struct stack_trace *trace,
	const struct group *g)
{
	const struct stack_trace *first = &trace[g->first];
	const struct kb_thread *t = &l->thread[first->thread];
	char words[2560];

	if (g->n > 1)
		printf("%u threads: ", g->n);
	for (uint32_t i = 0; i < g->n && i < NAMED; i++)
		print_thread(&l->thread[trace[g->first + i].thread],
			i > 0 ? ", " : g->n > 1 ? "" : "Thread ");
	printf("%s, %s", g->n > NAMED ? " ..." : "", look_state(t));
	if (g->n == 1 && look_tid(l, t) != 0)
		printf(" on kernel thread %d", look_tid(l, t));
	printf("\n");
	for (uint32_t i = 0; i < first->n; i++)
		printf("  %2u  %s\n", i, stack_words(first->pc[i], i > 0, words, sizeof(words)));
	if (first->why != NULL)
		printf("      (%s)\n", first->why);
	else if (first->n == STACK_FRAMES)
		printf("      (and more)\n");
	printf("\n");
}

static int print_all(const struct look *l, const struct asked *a)
{
	struct stack_trace *trace = calloc(l->n + 1, sizeof(*trace));
	struct group *group = calloc(l->n + 1, sizeof(*group));
	uint32_t n = 0, groups = 0;

	if (trace == NULL || group == NULL) {
		tool_say("stack: %s", strerror(ENOMEM));
		return TOOL_FAILED;
	}
	for (uint32_t i = 0; i < l->n; i++)
		if (a->thread < 0 || l->thread[i].task.index == (uint64_t)a->thread) {
			trace[n].thread = i;
			trace[n].kind = look_kind(&l->thread[i]);
			stack_unwind(l, &trace[n++]);
		}
	if (n == 0) {
		tool_say("stack: %s: no thread #%ld; 'kochab ps %s' lists them", a->what,
			a->thread, a->what);
		return TOOL_FAILED;
	}
	if (!a->all)
		qsort(trace, n, sizeof(*trace), by_frames);
	for (uint32_t i = 0; i < n; i++) {
		if (groups == 0 || a->all || !are_equal(&trace[i], &trace[group[groups - 1].first]))
			group[groups++] = (struct group){ i, 0 };
		group[groups - 1].n++;
	}
	if (!a->all)
		qsort(group, groups, sizeof(*group), by_number);
	for (uint32_t i = 0; i < groups; i++)
		print_group(l, trace, &group[i]);
	return TOOL_OK;
}

static int print_backtraces(const struct asked *a)
{
	struct look l;
	enum look_found found = a->is_pid ? look_open(&l, (int)strtol(a->what, NULL, 10)) :
		look_open_core(&l, a->what);

	if (found != LOOK_FOUND || !look_threads(&l)) {
		tool_say("stack: %s: %s", a->what, l.why);
		return TOOL_FAILED;
	}
	return stack_begin(&l, a->is_pid ? NULL : a->what) ? print_all(&l, a) : TOOL_FAILED;
}

/* Ends this command, whose child was ended by a signal. After signals from outside it ends the same
 * way, as where nobody reads its output. */
static int end_like_child(int sig)
{
	static const int own[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP };

	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
		if (sig == own[i]) {
			tool_say("stack: the unwinder ended by signal %d (%s): what the program has mapped is "
				"damaged", sig, strsignal(sig));
			return TOOL_FAILED;
		}
	if (sig != SIGXCPU && sig != SIGKILL) {
		signal(sig, SIG_DFL);
		raise(sig);
	}
	tool_say("stack: the unwinder ended by signal %d (%s); it may compute for %d s", sig,
		strsignal(sig), SECONDS);
	return TOOL_FAILED;
}

/* Runs the work in the child. If the child is stopped from outside, its traced threads go on. */
static int print_backtraces_in_child(const struct asked *a)
{
	pid_t child;
	int status;

	fflush(stdout);
	child = fork();
	if (child == 0) {
		struct rlimit limit = { SECONDS, SECONDS };
		int code;

		setrlimit(RLIMIT_CPU, &limit);
		code = print_backtraces(a);
		if (fflush(stdout) != 0)
			code = TOOL_FAILED;
		_exit(code);
	}
	if (child < 0 || waitpid(child, &status, 0) != child) {
		tool_say("stack: %s", strerror(errno));
		return TOOL_FAILED;
	}
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	return end_like_child(WTERMSIG(status));
}

static void print_stack_usage(FILE *out)
{
	fprintf(out, "usage: kochab stack [--all] PID | CORE [THREAD]\n\n"
		     "Backtraces of a program's threads, also of one that is stuck or stopped; THREAD is "
		     "an index of 'kochab ps\n"
		     "PID'. Equal ones are shown once, with their number; --all: each by itself. Nothing "
		     "runs in the program for\n"
		     "that; kernel threads that are running are stopped for a moment. It needs elfutils "
		     "(libdw).\n");
}

int tool_stack(int argc, char **argv)
{
	struct asked a = { .thread = -1 };
	char *end;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			print_stack_usage(stdout);
			return TOOL_OK;
		}
		if (strcmp(argv[i], "--all") == 0) {
			a.all = true;
		} else if (argv[i][0] == '-' || (a.what != NULL && a.thread >= 0)) {
			tool_say("stack: %s: no such argument; see 'kochab stack --help'", argv[i]);
			return TOOL_USAGE;
		} else if (a.what == NULL) {
			a.what = argv[i];
		} else {
			a.thread = strtol(argv[i] + (argv[i][0] == '#'), &end, 10);
			if (*end != '\0' || a.thread < 0 || argv[i][argv[i][0] == '#'] == '\0') {
				tool_say("stack: %s: no index of a thread; 'kochab ps %s' lists them",
					argv[i], a.what);
				return TOOL_USAGE;
			}
		}
	}
	if (a.what == NULL) {
		print_stack_usage(stderr);
		return TOOL_USAGE;
	}
	a.is_pid = strtol(a.what, &end, 10) > 0 && *end == '\0';
	return print_backtraces_in_child(&a);
}
