/* tool/stack.h - backtraces of another process' threads, by elfutils. stack.c chooses threads and
 * prints, stack_unwind.c asks libdw, which is opened when it is needed, so the command runs without
 * it. */
#ifndef KOCHAB_TOOL_STACK_H
#define KOCHAB_TOOL_STACK_H

#include "look.h"

enum { STACK_FRAMES = 100 };

/* The frames of a thread: the address where each goes on; the first may be the program counter. */
struct stack_trace {
	uint32_t thread; /* place in look->thread */
	enum kbi_task_kind kind;
	uint32_t n;
	uint64_t *pc;
	const char *why; /* NULL; why there are none, or not all */
};

/* Opens the libraries and lists the process's modules. file: the core file, NULL. False: the reason
 * is printed. */
bool stack_begin(const struct look *l, const char *file);
/* Finds the frames of a thread: t->n addresses in t->pc, which the caller frees. */
void stack_unwind(const struct look *l, struct stack_trace *t);
/* Writes a frame as it may be shown: function, module, line. call: the frame goes on behind a
 * call. */
const char *stack_words(uint64_t pc, bool call, char *to, size_t size);

#endif
