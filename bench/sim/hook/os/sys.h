/* bench/sim/hook/os/sys.h - os/sys.h under the simulator: no system call leaves it. The
 * functions are in machine.c, which answers in virtual time; the direct ones go there, too. */
#ifndef KBI_SIM_SYS_H
#define KBI_SIM_SYS_H

#include "../../../../src/os/sys.h"

long sim_sys(long n, long a, long b, long c, long d);
int sim_semget(void);
int sim_semctl(int command);

#undef kbi_sys
#define SIM_SYS_ARGS(n, a, b, c, d, ...) \
	sim_sys((long)(n), (long)(a), (long)(b), (long)(c), (long)(d))
#define kbi_sys(...) SIM_SYS_ARGS(__VA_ARGS__, 0, 0, 0, 0, 0)
#define semget(key, n, flags) ((void)(key), sim_semget())
#define semctl(id, which, command, ...) ((void)(id), (void)(which), sim_semctl(command))

#endif
