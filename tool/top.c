/* tool/top.c - `kochab top`: shows a running program on Kochab, read again and again from outside
 * (tool/look.c): its virtual processors with their switches a second, its threads by state, and the
 * objects that most threads wait for. Escape sequences move the cursor, so no library is needed;
 * where standard output is no terminal, the looks follow each other as text. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "look.h"
#include "tool.h"

enum { ROWS = 10, STATES = KBI_TASK_BLOCKED + 1, NOT_ON_TERMINAL = 1000 };

/* A look. */
struct sample {
	struct look l;
	struct look_wait *wait;
	uint64_t *charged; /* NULL: the program is not metered */
	double at;         /* s */
};

static volatile sig_atomic_t stopped;
static struct termios before;
static bool on_terminal;

static void drop_sample(struct sample *s)
{
	look_close(&s->l);
	free(s->wait);
	free(s->charged);
	*s = (struct sample){ .l.core = -1 };
}

static bool take_sample(struct sample *s, int pid)
{
	enum look_found found = look_open(&s->l, pid);

	s->wait = NULL;
	s->charged = NULL;
	s->at = tool_now();
	if (found == LOOK_FOUND && look_threads(&s->l)) {
		s->charged = look_charged(&s->l);
		s->wait = look_waits(&s->l);
	}
	if (s->wait != NULL)
		return true;
	tool_say("top: %d: %s", pid, *s->l.why != '\0' ? s->l.why : strerror(ENOMEM));
	drop_sample(s);
	return false;
}

/* ---- the parts of the picture: each prints up to `rows` lines and says how many ---- */

static unsigned print_states(const struct sample *s)
{
	unsigned count[STATES + 1] = { 0 };
	const char *comma = "";

	for (uint32_t i = 0; i < s->l.n; i++) {
		unsigned kind = (unsigned)look_kind(&s->l.thread[i]);

		count[kind < STATES ? kind : STATES]++;
	}
	printf("%u threads: ", s->l.n);
	for (uint32_t i = 0; i < s->l.n; i++) {
		unsigned kind = (unsigned)look_kind(&s->l.thread[i]);

		kind = kind < STATES ? kind : STATES;
		if (count[kind] > 0)
			printf("%s%u %s", comma, count[kind], look_state(&s->l.thread[i]));
		if (count[kind] > 0)
			comma = ", ";
		count[kind] = 0;
	}
	printf("\n");
	return 1;
}

static unsigned print_vps(const struct sample *s, const struct sample *old, unsigned rows)
{
	static const char *const idle[] = { "busy", "polling", "sleeping" };
	double time = s->at - old->at;
	unsigned i;

	printf("%4s %8s  %-9s %12s %10s  %s\n", "VP", "LWP", "IS", "SWITCHES/s", "SLEEPS/s", "RUNS");
	for (i = 0; i < s->l.n_vps && i + 1 < rows; i++) {
		const struct look_vp *vp = &s->l.vp[i], *was = i < old->l.n_vps ? &old->l.vp[i] : vp;
		const struct kb_thread *t = look_at_address(&s->l, vp->thread);
		char name[LOOK_NAME];

		printf("%4u %8d  %-9s %12.0f %10.0f  ", vp->id, vp->tid,
			vp->idle < 3 ? idle[vp->idle] : "?",
			(double)(int64_t)(vp->switches - was->switches) / time,
			(double)(int64_t)(vp->sleeps - was->sleeps) / time);
		if (t != NULL)
			printf("#%u %s", t->task.index, look_name(t, name));
		printf("\n");
	}
	return i + 1;
}

/* An object, and how many threads wait for it. */
struct object {
	const struct look_wait *wait;
	unsigned n;
};

static int by_object(const void *a, const void *b)
{
	const struct look_wait *x = ((const struct object *)a)->wait,
		*y = ((const struct object *)b)->wait;

	if (x->what != y->what)
		return x->what < y->what ? -1 : 1;
	return x->object != y->object ? (x->object < y->object ? -1 : 1) :
		(x->owner > y->owner) - (x->owner < y->owner);
}

static int by_number(const void *a, const void *b)
{
	const struct object *x = a, *y = b;

	return x->n != y->n ? (x->n < y->n) - (x->n > y->n) : by_object(a, b);
}

static unsigned print_objects(const struct sample *s, unsigned rows)
{
	struct object *object = malloc((s->l.n + 1) * sizeof(*object));
	uint32_t n = 0, groups = 0;
	unsigned i = 0;

	for (uint32_t k = 0; object != NULL && k < s->l.n; k++)
		if (s->wait[k].what != NULL)
			object[n++] = (struct object){ &s->wait[k], 1 };
	if (n > 0)
		qsort(object, n, sizeof(*object), by_object);
	for (uint32_t k = 0; k < n; k++)
		if (groups > 0 && by_object(&object[groups - 1], &object[k]) == 0)
			object[groups - 1].n++;
		else
			object[groups++] = object[k];
	if (groups > 0)
		qsort(object, groups, sizeof(*object), by_number);
	printf("%8s  %s\n", "THREADS", "WAIT FOR");
	for (; i < groups && i + 1 < rows; i++) {
		struct look_wait w = *object[i].wait;
		char words[160];

		w.timed = w.timed && object[i].n == 1;
		printf("%8u  %s\n", object[i].n, look_words(&w, words, sizeof(words)));
	}
	free(object);
	return i + 1;
}

/* Prints the threads that have used most processor time since the look before. */
static unsigned print_busy(const struct sample *s, const struct sample *old, unsigned rows)
{
	uint32_t best[ROWS], n = 0,
		olds = old->l.n > 0 ? old->l.thread[old->l.n - 1].task.index + 1 : 0;
	uint64_t used[ROWS];

	for (uint32_t i = 0; i < s->l.n; i++) {
		uint32_t index = s->l.thread[i].task.index, place;
		uint64_t was = index < olds ? old->charged[index] : 0, is = s->charged[index] - was;

		if (s->charged[index] <= was)
			continue;
		for (place = n < ROWS ? n++ : ROWS; place > 0 && used[place - 1] < is; place--)
			if (place < ROWS) {
				used[place] = used[place - 1];
				best[place] = best[place - 1];
			}
		if (place < ROWS) {
			used[place] = is;
			best[place] = i;
		}
	}
	printf("%8s %6s  %-13s %s\n", "THREAD", "CPU %", "STATE", "NAME");
	for (uint32_t i = 0; i < n && i + 1 < rows; i++) {
		const struct kb_thread *t = &s->l.thread[best[i]];
		char name[LOOK_NAME];

		printf("%8u %6.1f  %-13s %s\n", t->task.index, 1e-7 * (double)used[i] / (s->at - old->at),
			look_state(t), look_name(t, name));
	}
	return n + 1 < rows ? n + 1 : rows;
}

static void print_all(const struct sample *s, const struct sample *old)
{
	struct winsize size = { .ws_row = 0 };
	unsigned rows = NOT_ON_TERMINAL, each = ROWS + 1;

	if (on_terminal) {
		printf("\033[H\033[J");
		rows = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 8 ?
			size.ws_row - 4u : 20;
	}
	printf("process %d, looked at from outside%s\n", s->l.pid, on_terminal ? "; q ends" : "");
	print_states(s);
	printf("\n");
	rows -= print_vps(s, old, rows / 2) + 3;
	if (s->charged != NULL && old->charged != NULL && rows > 4) {
		printf("\n");
		rows -= print_busy(s, old, rows / 2 < each ? rows / 2 : each) + 1;
	}
	if (rows > 3) {
		printf("\n");
		print_objects(s, rows - 1 < each ? rows - 1 : each);
	}
	fflush(stdout);
}

/* ---- the terminal ---- */

static void on_stop_signal(int sig)
{
	stopped = sig;
}

static void begin_terminal(void)
{
	struct sigaction sa = { .sa_handler = on_stop_signal };
	struct termios raw;

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGHUP, &sa, NULL);
	on_terminal = isatty(STDOUT_FILENO) && isatty(STDIN_FILENO) &&
		tcgetattr(STDIN_FILENO, &before) == 0;
	if (!on_terminal)
		return;
	raw = before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
}

static void end_terminal(void)
{
	if (on_terminal)
		tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

/* Waits. Returns false if the command is to end. */
static bool wait_for_key(double seconds)
{
	double end = tool_now() + seconds;
	struct pollfd p = { STDIN_FILENO, POLLIN, 0 };
	char key;

	while (!stopped) {
		double left = end - tool_now();

		if (left <= 0)
			return true;
		if (poll(&p, on_terminal ? 1 : 0, (int)(1000 * left) + 1) > 0 &&
			(read(STDIN_FILENO, &key, 1) != 1 || key == 'q'))
			return false;
	}
	return false;
}

static int watch_program(int pid, double delay, bool once)
{
	struct sample s[2];
	unsigned i = 0;
	bool goes_on = take_sample(&s[0], pid);
	int code = goes_on ? TOOL_OK : TOOL_FAILED;

	if (!goes_on)
		return code;
	s[1] = (struct sample){ .l.core = -1 };
	begin_terminal();
	if (once)
		on_terminal = false;
	while (goes_on && wait_for_key(delay)) {
		i = 1 - i;
		drop_sample(&s[i]);
		goes_on = take_sample(&s[i], pid);
		if (goes_on)
			print_all(&s[i], &s[1 - i]);
		else
			code = once ? TOOL_FAILED : TOOL_OK; /* the program has ended */
		if (once)
			break;
		if (goes_on && !on_terminal)
			printf("\n");
	}
	end_terminal();
	drop_sample(&s[0]);
	drop_sample(&s[1]);
	return code;
}

static void print_top_usage(FILE *out)
{
	fprintf(out, "usage: kochab top [--once] [-d SECONDS] PID\n\n"
		     "What a program on Kochab does, looked at from outside every SECONDS (2): its virtual "
		     "processors and how\n"
		     "often they switch, its threads by state, those that compute most, where the program "
		     "is metered, and what\n"
		     "most threads wait for. q ends. --once: one look, as text.\n");
}

int tool_top(int argc, char **argv)
{
	double delay = 2;
	bool once = false;
	long pid = 0;
	char *end;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			print_top_usage(stdout);
			return TOOL_OK;
		}
		if (strcmp(argv[i], "--once") == 0) {
			once = true;
			continue;
		}
		if (strcmp(argv[i], "-d") == 0 && i + 1 < argc) {
			delay = strtod(argv[++i], &end);
			if (*end == '\0' && end != argv[i] && delay >= 0.1 && delay <= 3600)
				continue;
			tool_say("top: -d %s: bad value, allowed: 0.1 to 3600 s", argv[i]);
			return TOOL_USAGE;
		}
		if (pid != 0 || (pid = strtol(argv[i], &end, 10)) <= 0 || pid > INT32_MAX || *end != '\0') {
			tool_say("top: %s: no number of a process; see 'kochab top --help'", argv[i]);
			return TOOL_USAGE;
		}
	}
	if (pid == 0) {
		print_top_usage(stderr);
		return TOOL_USAGE;
	}
	return watch_program((int)pid, delay, once);
}
