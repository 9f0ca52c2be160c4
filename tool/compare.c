/* tool/compare.c - `kochab compare`: runs a program on kernel threads and under `kochab run`, in
 * turns, so that a noisy moment of the machine falls on all kinds of run; the kind that begins
 * changes from round to round. The round before the measured rounds warms caches up and shows
 * whether the program behaves the same on Kochab. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/option.h"
#include "compare.h"
#include "os/cpu.h"
#include "tool.h"

static void print_compare_usage(void)
{
	printf("usage: kochab compare [OPTION]... [--] PROGRAM [ARGUMENT]...\n\n"
	       "Runs a program on kernel threads and on Kochab, in turns, and says what differs: exit "
	       "status, output,\n"
	       "time, processor time, peak memory, switches of the kernel. Options of 'kochab run' are "
	       "those of the\n"
	       "runs on Kochab.\n\n"
	       "  -n RUNS              runs of each that are measured, default 5; one before is not\n"
	       "  --check              fail unless all runs write the same to standard output, byte by "
	       "byte\n"
	       "  --try                measure more options, too: --body process, --vps 1 ..., "
	       "--malloc kochab\n"
	       "  --json               one object a line\n"
	       "  --input FILE         what each run reads as standard input; otherwise the file that "
	       "this command\n"
	       "                       has there, or nothing\n"
	       "  --timeout SECONDS    longest run; otherwise kernel threads have no limit, and Kochab "
	       "has 60 s and\n"
	       "                       20 times what they took\n"
	       "  --load COMMAND       PROGRAM is a server: the shell's command that is timed; then "
	       "the server gets\n"
	       "                       SIGTERM, and SIGKILL after 10 s\n"
	       "  --ready COMMAND      the shell's command that succeeds once the server is ready\n"
	       "  --ready-seconds S    how long that may take, default 10\n\n"
	       "Exit: 0 all runs end the same way; 1 they do not; 127 the program was not found, 126 "
	       "it cannot be run,\n"
	       "2 wrong usage.\n");
}

/* ---- the command line ---- */

/* Returns the value if argv[*i] is the option: behind `=`, or the next argument, to which *i then
 * moves. Else NULL. */
static const char *value_of_argument(const char *option, int argc, char **argv, int *i)
{
	size_t n = strlen(option);

	if (strncmp(argv[*i], option, n) != 0)
		return NULL;
	if (argv[*i][n] == '=' || (argv[*i][n] != '\0' && option[1] != '-'))
		return argv[*i] + n + (argv[*i][n] == '=');
	if (argv[*i][n] != '\0' || *i + 1 >= argc)
		return NULL;
	return argv[++*i];
}

static bool take_seconds(const char *option, const char *value, double *to)
{
	char *end;

	*to = strtod(value, &end);
	if (*end == '\0' && end != value && *to > 0 && *to <= 1e6)
		return true;
	tool_say("compare: %s %s: bad value, allowed: seconds above 0", option, value);
	return false;
}

static bool take_runs(const char *value, unsigned *to)
{
	char *end;
	long n = strtol(value, &end, 10);

	if (*end != '\0' || end == value || n < 1 || n > COMPARE_RUNS) {
		tool_say("compare: -n %s: bad value, allowed: 1 to %d", value, COMPARE_RUNS);
		return false;
	}
	*to = (unsigned)n;
	return true;
}

/* Takes an option of this command itself; *taken: argv[*i] was such an option. Returns false for a
 * bad value. */
static bool take_compare_option(struct compare *all, int argc, char **argv, int *i, bool *taken)
{
	struct text {
		const char *option, **to;
	} texts[] = { { "--load", &all->load }, { "--ready", &all->ready },
		{ "--input", &all->input } };
	const char *value;

	*taken = true;
	if (strcmp(argv[*i], "--check") == 0)
		return all->check = true;
	if (strcmp(argv[*i], "--json") == 0)
		return all->json = true;
	if (strcmp(argv[*i], "--try") == 0)
		return all->tries = true;
	if ((value = value_of_argument("--ready-seconds", argc, argv, i)) != NULL)
		return take_seconds("--ready-seconds", value, &all->ready_seconds);
	if ((value = value_of_argument("--timeout", argc, argv, i)) != NULL)
		return take_seconds("--timeout", value, &all->timeout);
	for (size_t k = 0; k < sizeof(texts) / sizeof(*texts); k++)
		if ((value = value_of_argument(texts[k].option, argc, argv, i)) != NULL) {
			*texts[k].to = value;
			return true;
		}
	if (strncmp(argv[*i], "--", 2) != 0 &&
		(value = value_of_argument("-n", argc, argv, i)) != NULL)
		return take_runs(value, &all->runs);
	*taken = false;
	return true;
}

/* Returns -1: go on with the program at argv[*i]; else the exit code. */
static int read_options(struct compare *all, int argc, char **argv, int *i)
{
	bool taken;

	for (*i = 1; *i < argc && argv[*i][0] == '-' && argv[*i][1] != '\0'; ++*i) {
		if (strcmp(argv[*i], "--") == 0) {
			++*i;
			break;
		}
		if (strcmp(argv[*i], "--help") == 0 || strcmp(argv[*i], "-h") == 0) {
			print_compare_usage();
			return TOOL_OK;
		}
		if (!take_compare_option(all, argc, argv, i, &taken))
			return TOOL_USAGE;
		if (taken)
			continue;
		if (strncmp(argv[*i], "--", 2) != 0) {
			tool_say("compare: %s: no such option, or no value; see 'kochab compare --help'",
				argv[*i]);
			return TOOL_USAGE;
		}
		if (!tool_take_option("compare", argc, argv, i))
			return TOOL_USAGE;
	}
	if (*i >= argc) {
		tool_say("compare: which program? usage: kochab compare [OPTION]... [--] PROGRAM "
			"[ARGUMENT]...");
		return TOOL_USAGE;
	}
	if ((all->load == NULL) != (all->ready == NULL)) {
		tool_say("compare: --load and --ready go together: the load begins when the server is "
			"ready");
		return TOOL_USAGE;
	}
	return -1;
}

/* Standard input that is a file is read by each run from its beginning. */
static bool find_input(struct compare *all)
{
	static char path[] = "/proc/self/fd/0";
	struct stat st;

	if (all->input != NULL && access(all->input, R_OK) != 0) {
		tool_say("compare: --input %s: %s", all->input, strerror(errno));
		return false;
	}
	if (all->input == NULL && fstat(STDIN_FILENO, &st) == 0 && S_ISREG(st.st_mode))
		all->input = path;
	return true;
}

/* ---- the kinds ---- */

static void add_kind(struct compare *all, const char *name, const char *options,
	const char *variable, const char *value)
{
	struct compare_kind *kind = &all->kind[all->n++];

	*kind = (struct compare_kind){ .name = name, .options = options, .variable = variable,
		.value = value };
	kind->plain = all->n == 1;
}

/* Adds a kind for each option that may make the program faster and is not in force already. */
static void add_tries(struct compare *all)
{
	static char half[16], half_option[32];
	unsigned vps = kbi_options.vps != 0 ? (unsigned)kbi_options.vps : kbi_cpu_count();

	if (kbi_options.body != KBI_OPT_BODY_PROCESS)
		add_kind(all, "Kochab --body process", "--body process", "KOCHAB_BODY", "process");
	if (vps > 1)
		add_kind(all, "Kochab --vps 1", "--vps 1", "KOCHAB_VPS", "1");
	if (vps > 3) {
		snprintf(half, sizeof(half), "%u", vps / 2);
		snprintf(half_option, sizeof(half_option), "Kochab --vps %u", vps / 2);
		add_kind(all, half_option, half_option + strlen("Kochab "), "KOCHAB_VPS", half);
	}
	if (kbi_options.malloc != KBI_OPT_MALLOC_KOCHAB)
		add_kind(all, "Kochab --malloc kochab", "--malloc kochab", "KOCHAB_MALLOC", "kochab");
}

/* ---- the rounds ---- */

static void say_progress(const struct compare *all, const struct compare_kind *kind, unsigned round)
{
	if (!isatty(STDERR_FILENO))
		return;
	if (kind == NULL)
		fputs("\r\033[K", stderr);
	else if (round == 0)
		fprintf(stderr, "\r\033[Kwarming up: %s", kind->name);
	else
		fprintf(stderr, "\r\033[Krun %u of %u: %s", round, all->runs, kind->name);
	fflush(stderr);
}

static bool should_continue(const struct compare *all)
{
	return !all->kind[0].over && !all->kind[1].over && compare_stopped() == 0 &&
	       !(all->check && !compare_same(all));
}

static void warm_up(struct compare *all)
{
	for (unsigned k = 0; k < all->n && (k == 0 || !all->kind[0].over) && compare_stopped() == 0;
		k++) {
		say_progress(all, &all->kind[k], 0);
		compare_run(all, &all->kind[k], false);
		if (k == 1 && *all->kind[1].difference != '\0')
			compare_run(all, &all->kind[0], false); /* is it so there, too? */
	}
}

/* Runs all rounds. A kind with a wrong run gets no further run, so it has fewer figures, or
 * none. */
static void measure_kinds(struct compare *all)
{
	warm_up(all);
	for (unsigned round = 1; round <= all->runs && should_continue(all); round++)
		for (unsigned i = 0; i < all->n && should_continue(all); i++) {
			struct compare_kind *kind = &all->kind[round % 2 ? i : all->n - 1 - i];

			say_progress(all, kind, round);
			if (!kind->over)
				compare_run(all, kind, true);
		}
	say_progress(all, NULL, 0);
}

/* Measures the cost of a start if runs are so short that it counts. */
static void measure_start(struct compare *all)
{
	static const double is_short = 0.1; /* s */

	if (should_continue(all) && all->load == NULL && all->longest < is_short)
		all->start = compare_start_cost(all);
}

static int end_by_signal(int sig)
{
	sigset_t set;

	signal(sig, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, sig);
	raise(sig);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	return TOOL_FAILED;
}

int tool_compare(int argc, char **argv)
{
	struct compare all = { .runs = 5, .ready_seconds = 10, .reference = -1 };
	char program[PATH_MAX];
	int i, code = read_options(&all, argc, argv, &i);

	if (code >= 0)
		return code;
	if (kbi_option_load() != 0 || !tool_check_options("compare") || !find_input(&all))
		return TOOL_USAGE;
	code = tool_look_up(argv[i], program, sizeof(program));
	if (code == 0)
		code = tool_check_program(program);
	if (code == TOOL_ALONE || code == TOOL_PLAINLY) {
		tool_say("compare: %s cannot be run with Kochab, so there is nothing to compare", program);
		code = TOOL_CANNOT_RUN;
	}
	if (code == 0 && tool_is_linked(program)) {
		tool_say("compare: %s is linked with Kochab: it runs on it both times, so there is nothing "
			"to compare", program);
		code = TOOL_CANNOT_RUN;
	}
	if (code != 0)
		return code;
	if (all.runs < COMPARE_LEAST && !all.check)
		tool_say("compare: -n %u: whether it is faster is not told by fewer than %d runs of each",
			all.runs, COMPARE_LEAST);
	all.argv = argv + i;
	all.kind = calloc(COMPARE_KINDS, sizeof(*all.kind));
	if (all.kind == NULL || !tool_self(all.self, sizeof(all.self))) {
		tool_say("compare: %s", strerror(errno));
		return TOOL_FAILED;
	}
	add_kind(&all, "kernel threads", "", NULL, NULL);
	add_kind(&all, "Kochab", "", NULL, NULL);
	if (all.tries)
		add_tries(&all);
	fflush(stdout);
	compare_setup();
	compare_begin_others(&all);
	measure_kinds(&all);
	compare_end_others(&all);
	measure_start(&all);
	if (compare_stopped() != 0)
		return end_by_signal(compare_stopped());
	code = compare_show(&all);
	free(all.kind);
	return code;
}
