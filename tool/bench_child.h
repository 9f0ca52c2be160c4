/* tool/bench_child.h - shared by the driver and the measuring process. */
#ifndef KOCHAB_TOOL_BENCH_CHILD_H
#define KOCHAB_TOOL_BENCH_CHILD_H

enum { BENCH_EXIT_WRONG = 1, BENCH_EXIT_SKIP = 77 };

int bench_child(int argc, char **argv);

#endif
