/* tool/main.c - the command `kochab`: picks the subcommand. Each subcommand has its own file. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <kochab/version.h>
#include "tool.h"

static const struct command {
	const char *name;
	int (*main)(int argc, char **argv);
	const char *help;
} commands[] = {
	{ "run", tool_run, "run a program with its threads on virtual processors" },
	{ "compare", tool_compare,
		"run a program on kernel threads and on Kochab, in turns, and compare" },
	{ "ps", tool_ps, "list programs that run on Kochab, or the threads of one" },
	{ "stack", tool_stack, "print backtraces of a program's threads" },
	{ "top", tool_top, "watch what a program's virtual processors and threads do" },
	{ "options", tool_options, "list every knob with its default and its value now" },
	{ "doctor", tool_doctor, "say what this machine supports" },
	{ "dump", tool_dump, "ask a running program for the list of its threads" },
	{ "space", tool_space, "list, inspect and remove named spaces" },
	{ "bench", kochab_bench, "measure" },
};

enum { COMMANDS = sizeof(commands) / sizeof(commands[0]) };

void tool_say(const char *format, ...)
{
	char text[8192], shown[2 * sizeof text];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	fflush(stdout);
	fprintf(stderr, "kochab: %s\n", tool_plain(shown, sizeof shown, text, sizeof text));
}

static void print_main_usage(FILE *out)
{
	fprintf(out, "usage: kochab COMMAND [ARGUMENTS]\n\n");
	for (int i = 0; i < COMMANDS; i++)
		fprintf(out, "  %-8s  %s\n", commands[i].name, commands[i].help);
	fprintf(out, "\nkochab COMMAND --help says more; kochab --version. Manual: kochab(1), "
	"kochab(7).\n");
}

/* Flushes standard output. Output that did not arrive (a full disk) is a failure. */
static int flush_output(int code)
{
	if (fflush(stdout) != 0 && code == TOOL_OK) {
		perror("kochab: standard output");
		return TOOL_FAILED;
	}
	return code;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : NULL;

	if (name == NULL) {
		print_main_usage(stderr);
		return TOOL_USAGE;
	}
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
		print_main_usage(stdout);
		return flush_output(TOOL_OK);
	}
	if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0 || strcmp(name, "version") == 0) {
		printf("kochab %s\n", KOCHAB_VERSION);
		return flush_output(TOOL_OK);
	}
	for (int i = 0; i < COMMANDS; i++) {
		if (strcmp(name, commands[i].name) != 0)
			continue;
		if (commands[i].main == NULL) {
			tool_say("%s: this build does not have it", name);
			return TOOL_FAILED;
		}
		return flush_output(commands[i].main(argc - 1, argv + 1));
	}
	tool_say("%s: no such %s; 'kochab --help' lists the commands", name,
		name[0] == '-' ? "option" : "command");
	return TOOL_USAGE;
}
