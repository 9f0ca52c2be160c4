/* tool/ps.c - `kochab ps`: lists the processes that run on Kochab, or the threads of a process or a
 * core file with their states and waits. It only reads memory (tool/look.c). */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "look.h"
#include "tool.h"

enum { COMMAND = 256, STATES = KBI_TASK_BLOCKED + 1 };

/* ---- facts from /proc ---- */

/* Returns the process's arguments, or its name where they cannot be read. */
static const char *command_of(int pid, char to[COMMAND])
{
	size_t n = look_proc(pid, "cmdline", to, COMMAND);

	if (n == 0) {
		n = look_proc(pid, "comm", to, COMMAND);
		n -= n > 0;
	}
	while (n > 0 && to[n - 1] == '\0')
		n--;
	to[n] = '\0';
	for (size_t i = 0; i < n; i++)
		if (to[i] == '\0')
			to[i] = ' ';
	return to;
}

/* Returns for how long the process has run, s. */
static double uptime_of(int pid)
{
	enum { START = 22 };
	char text[1024];
	const char *behind;
	unsigned long long start;
	struct timespec now;

	look_proc(pid, "stat", text, sizeof(text));
	behind = strrchr(text, ')'); /* of its name, which may be anything */
	for (int field = 2; behind != NULL && field < START; field++)
		behind = strchr(behind + 1, ' ');
	if (behind == NULL || sscanf(behind, "%llu", &start) != 1)
		return 0;
	clock_gettime(CLOCK_BOOTTIME, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec -
		(double)start / (double)sysconf(_SC_CLK_TCK);
}

/* Returns whether the process is in another namespace, so that the numbers that it knows are not
 * ours. */
static bool has_own_numbers(int pid)
{
	char text[4096];
	const char *line;

	look_proc(pid, "status", text, sizeof(text));
	line = strstr(text, "\nNSpid:\t");
	return line != NULL && line[8 + strcspn(line + 8, "\t\n")] == '\t';
}

/* Returns whether a virtual processor lives in the process. A forked process has only a copy of the
 * tables. */
static bool has_own_vps(const struct look *l)
{
	if (has_own_numbers(l->pid))
		return true;
	for (unsigned i = 0; i < l->n_vps; i++)
		if (look_process(l, l->vp[i].tid) != 0)
			return true;
	return false;
}

/* Returns whether the process is a virtual processor, or will be. Its parent, the program's
 * process, is listed instead. */
static bool is_body(const struct look *l)
{
	return l->processes && !has_own_numbers(l->pid) &&
		look_parent(l->pid) == look_parent(l->vp[0].tid);
}

static const char *option_of(const struct look *l, const char *name, char *to, size_t size)
{
	const struct kbi_option *o = kbi_option_find(name, strlen(name));

	/* every choice is a uint32_t */
	return kbi_option_show(o, *(const uint32_t *)(const void *)((const char *)&l->options +
		o->offset), to, size);
}

static const char *format_span(double s, char to[32])
{
	unsigned long n = s > 0 ? (unsigned long)s : 0;

	if (n >= 86400)
		snprintf(to, 32, "%lu-%02lu:%02lu:%02lu", n / 86400, n / 3600 % 24, n / 60 % 60, n % 60);
	else
		snprintf(to, 32, "%lu:%02lu:%02lu", n / 3600, n / 60 % 60, n % 60);
	return to;
}

/* ---- the processes ---- */

static void print_process(struct look *l, enum look_found found, bool json)
{
	char command[COMMAND], shown[4 * COMMAND + 8], sched[32] = "", up_text[32];
	const char *body = l->processes ? "process" : "kernel thread";
	double up = uptime_of(l->pid);

	command_of(l->pid, command);
	if (found == LOOK_FOUND)
		option_of(l, "sched", sched, sizeof(sched));
	if (json) {
		printf("{\"pid\": %d, \"command\": ", l->pid);
		tool_json_string(command);
		printf(", \"up_s\": %.2f", up);
		if (found == LOOK_FOUND) {
			printf(", \"threads\": %u, \"vps\": %u, \"body\": \"%s\", \"scheduler\": \"%s\"}\n",
				l->n, l->n_vps, l->processes ? "process" : "thread", sched);
			return;
		}
		printf(", \"why\": ");
		tool_json_string(l->why);
		puts("}");
		return;
	}
	tool_plain(shown, sizeof(shown), command, sizeof(command));
	if (found == LOOK_FOUND)
		printf("%7d %8u %4u  %-13s  %-13s  %10s  %s\n", l->pid, l->n, l->n_vps, body, sched,
			format_span(up, up_text), shown);
	else
		printf("%7d %8s %4s  %-13s  %-13s  %10s  %s (%s)\n", l->pid, "-", "-", "-", "-",
			format_span(up, up_text), shown, l->why);
}

static int list_processes(bool json)
{
	DIR *dir = opendir("/proc");
	struct dirent *d;
	bool title = json;

	if (dir == NULL) {
		tool_say("ps: /proc: %s", strerror(errno));
		return TOOL_FAILED;
	}
	while ((d = readdir(dir)) != NULL) {
		char *end;
		long pid = strtol(d->d_name, &end, 10);
		enum look_found found;
		struct look l;

		if (*end != '\0' || pid <= 0 || pid == (long)getpid())
			continue;
		found = look_open(&l, (int)pid);
		if (found == LOOK_FOUND && !look_threads(&l))
			found = LOOK_DENIED;
		if (found == LOOK_OTHER || found == LOOK_IDLE ||
			(found == LOOK_FOUND && !is_body(&l) && has_own_vps(&l))) {
			if (!title)
				printf("%7s %8s %4s  %-13s  %-13s  %10s  %s\n", "PID", "THREADS", "VPS", "BODY",
					"SCHEDULER", "UP", "COMMAND");
			title = true;
			print_process(&l, found, json);
		}
		look_close(&l);
	}
	closedir(dir);
	if (!title)
		printf("no process that this user may look at runs on Kochab\n");
	return TOOL_OK;
}

/* ---- the threads of a process ---- */

struct row {
	const struct look *look;
	const struct kb_thread *t;
	const struct look_wait *wait;
	const uint64_t *charged; /* NULL */
};

static bool is_on_vp(enum kbi_task_kind kind)
{
	return kind == KBI_TASK_READY || kind == KBI_TASK_WAIVED || kind == KBI_TASK_RUNNING ||
		kind == KBI_TASK_WAITING;
}

/* Returns the number by which the program knows the thread (gettid); 0: the thread has no
 * number. */
static uint32_t number_of_thread(const struct kb_thread *t)
{
	return t->posix != NULL ? a_load_rlx(&t->number) : 0;
}

static void print_row(const struct row *r)
{
	enum kbi_task_kind kind = look_kind(r->t);
	char name[LOOK_NAME], words[160], vp[16] = "", number[16] = "", cpu[32] = "";
	int tid = look_tid(r->look, r->t);

	if (is_on_vp(kind))
		snprintf(vp, sizeof(vp), "%u", kbi_state_vp(a_load_rlx(&r->t->task.state)));
	if (number_of_thread(r->t) != 0)
		snprintf(number, sizeof(number), "%u", number_of_thread(r->t));
	if (r->charged != NULL)
		snprintf(cpu, sizeof(cpu), "%10.3f  ", 1e-9 * (double)r->charged[r->t->task.index]);
	look_words(r->wait, words, sizeof(words));
	if (tid != 0)
		snprintf(words + strlen(words), sizeof(words) - strlen(words), "%son kernel thread %d",
			 *words != '\0' ? ", " : "", tid);
	printf("%8u %9s  %-13s %4s  %-16s %s%s\n", r->t->task.index, number, look_state(r->t), vp,
	       look_name(r->t, name), cpu, words);
}

static void json_row(const struct row *r)
{
	const struct look_wait *w = r->wait;
	char name[LOOK_NAME], words[160];
	int tid = look_tid(r->look, r->t);

	printf("{\"index\": %u, \"state\": \"%s\", \"name\": ", r->t->task.index, look_state(r->t));
	tool_json_string(look_name(r->t, name));
	if (number_of_thread(r->t) != 0)
		printf(", \"number\": %u", number_of_thread(r->t));
	if (is_on_vp(look_kind(r->t)))
		printf(", \"vp\": %u", kbi_state_vp(a_load_rlx(&r->t->task.state)));
	if (tid != 0)
		printf(", \"kernel_thread\": %d", tid);
	if (w->what != NULL) {
		printf(", \"waits_for\": \"%s\", \"object\": %" PRIu64, w->what, w->object);
		printf(", \"words\": \"%s\"", look_words(w, words, sizeof(words)));
	}
	if (w->what != NULL && w->owner >= 0)
		printf(", \"owner\": %" PRId64, w->owner);
	if (w->timed && r->look->core < 0)
		printf(", \"wakes_s\": %.3f", w->left);
	if (r->charged != NULL)
		printf(", \"processor_s\": %.6f", 1e-9 * (double)r->charged[r->t->task.index]);
	puts("}");
}

static void print_head(const struct look *l, const char *what)
{
	char command[COMMAND] = "", shown[4 * COMMAND + 8], sched[32], up_text[32] = "";
	unsigned count[STATES] = { 0 }, damaged = 0;
	const char *comma = "";

	if (l->core < 0) {
		format_span(uptime_of(l->pid), up_text);
		command_of(l->pid, command);
	}
	printf("%s", tool_plain(shown, sizeof(shown), l->core < 0 ? command : what, COMMAND));
	printf("%s: %u threads%s, %u virtual processor%s (%s), %s%s%s\n",
		l->core < 0 ? "" : " (a core file)", l->n, l->cut ? " and more" : "", l->n_vps,
		l->n_vps == 1 ? "" : "s", l->processes ? "processes" : "kernel threads",
		option_of(l, "sched", sched, sizeof(sched)), *up_text != '\0' ? ", up " : "", up_text);
	for (uint32_t i = 0; i < l->n; i++) {
		unsigned kind = (unsigned)look_kind(&l->thread[i]);

		if (kind < STATES)
			count[kind]++;
		else
			damaged++;
	}
	for (uint32_t i = 0; i < l->n;) {
		unsigned kind = (unsigned)look_kind(&l->thread[i++]);

		if (kind >= STATES || count[kind] == 0)
			continue;
		printf("%s%u %s", comma, count[kind], look_state(&l->thread[i - 1]));
		count[kind] = 0;
		comma = ", ";
	}
	if (damaged > 0)
		printf("%s%u damaged", comma, damaged);
	printf("\n");
}

static void show_threads(const struct look *l, const struct look_wait *wait, bool json)
{
	/* first the threads that do something, then the threads that wait */
	static const enum kbi_task_kind order[] = { KBI_TASK_RUNNING, KBI_TASK_BLOCKED, KBI_TASK_READY,
		KBI_TASK_WAIVED,
						    KBI_TASK_NEW, KBI_TASK_WAITING, KBI_TASK_FOREIGN, KBI_TASK_DONE };
	enum { ORDER = sizeof(order) / sizeof(*order) };
	uint64_t *charged = look_charged(l);

	if (!json)
		printf("\n%8s %9s  %-13s %4s  %-16s %s%s\n", "INDEX", "NUMBER", "STATE", "VP", "NAME",
		       charged != NULL ? "     CPU s  " : "", "WAITS FOR");
	for (unsigned k = 0; k <= ORDER; k++)
		for (uint32_t i = 0; i < l->n; i++) {
			struct row r = { l, &l->thread[i], &wait[i], charged };
			enum kbi_task_kind kind = look_kind(r.t);

			if (k < ORDER ? kind == order[k] : (unsigned)kind >= STATES)
				(json ? json_row : print_row)(&r);
		}
	free(charged);
}

static int show_process_or_core(const char *what, bool json)
{
	char *end;
	long pid = strtol(what, &end, 10);
	bool is_pid = *what != '\0' && *end == '\0' && pid > 0 && pid <= INT32_MAX;
	struct look_wait *wait = NULL;
	struct look l;
	enum look_found found = is_pid ? look_open(&l, (int)pid) : look_open_core(&l, what);
	int code = TOOL_FAILED;

	if (found != LOOK_FOUND || !look_threads(&l)) {
		tool_say("ps: %s: %s", what, l.why);
	} else if (l.core < 0 && !has_own_vps(&l)) {
		tool_say("ps: %s: it was forked from a program on Kochab, and runs on kernel threads",
			what);
	} else if ((wait = look_waits(&l)) == NULL) {
		tool_say("ps: %s", strerror(ENOMEM));
	} else {
		if (!json)
			print_head(&l, what);
		show_threads(&l, wait, json);
		code = TOOL_OK;
	}
	free(wait);
	look_close(&l);
	return code;
}

static void print_ps_usage(FILE *out)
{
	fprintf(out, "usage: kochab ps [--json] [PID | CORE]\n\n"
		     "Without an argument: the processes that run on Kochab and that this user may look "
		     "at. With a process, or\n"
		     "a core file: its threads, their states, and what they wait for. Nothing runs or "
		     "stops there for that:\n"
		     "memory is read, also of a program that is stuck or stopped. --json: one object a "
		     "line.\n");
}

int tool_ps(int argc, char **argv)
{
	const char *what = NULL;
	bool json = false;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			print_ps_usage(stdout);
			return TOOL_OK;
		}
		if (strcmp(argv[i], "--json") == 0) {
			json = true;
		} else if (argv[i][0] == '\0') {
			tool_say("ps: '': neither the number of a process nor a core file; is the file with "
				"the number empty?");
			return TOOL_USAGE;
		} else if (argv[i][0] == '-' || what != NULL) {
			tool_say("ps: %s: no such argument; usage: kochab ps [--json] [PID | CORE]", argv[i]);
			return TOOL_USAGE;
		} else {
			what = argv[i];
		}
	}
	return what != NULL ? show_process_or_core(what, json) : list_processes(json);
}
