/* bench/sim/machine.h - the simulated machine: virtual processors, each with its own clock and a
 * stack on which the runtime's code runs; cache lines that cost time to move; and the few system
 * calls that the runtime makes. Callers: runtime.c, work.c, main.c.
 *
 * Time is counted in picoseconds, in integers: the same input gives the same output on every
 * machine. The processor that is furthest behind runs. Each access to a shared word
 * (hook/base/atom.h) is charged to it, and at each access a second processor may go on, so that
 * locks contend, claims fail and wake-ups race as on a real machine.
 *
 * The cost of an access. A line that the processor has costs `hit`, or more if the processor has
 * not used it for long. A line that it does not have moves from the processor that wrote it
 * last: the latency by their distance (SMT siblings, cluster, socket, across). Stores do not
 * wait for their line, but only so many can be on their way; fences and read-modify-writes wait.
 * Reads that miss one after the other overlap. A line moves to one processor at a time, for
 * `occupied` per cent of the move, so that a word that all processors read or write is a
 * bottleneck.
 *
 * Not simulated: sizes of caches except the first two, instructions, bandwidth, prefetching, the
 * kernel's scheduling: each virtual processor has a processor of its own. */
#ifndef KBI_SIM_MACHINE_H
#define KBI_SIM_MACHINE_H

#include "base/atom.h"

/* The rows of a cost table, in ns unless stated: bench/sim/costs/NAME.tsv. */
#define SIM_COSTS(ROW) \
	ROW(hit)          /* an access to a word that the processor has */ \
	ROW(second)       /* an access after `close` further lines have been used, */ \
	ROW(far)          /* or after `near`; */ \
	ROW(chilled)      /* or after a sleep of over a ms: its caches were used elsewhere */ \
	ROW(smt)          /* a line moves from its second hyper-thread */ \
	ROW(cluster)      /* from a core that shares the last-level cache */ \
	ROW(socket)       /* from a different core of the socket */ \
	ROW(across)       /* from a different socket */ \
	ROW(cold)         /* a line that no processor has had */ \
	ROW(overlap)      /* times: reads in a row that miss are cheaper by this factor */ \
	ROW(drain)        /* times: a store's writer waits 1/drain of the line's move */ \
	ROW(occupied)     /* per cent of a move in which the line cannot move on */ \
	ROW(rmw)          /* a read-modify-write, beside its line */ \
	ROW(fence)        /* a full fence */ \
	ROW(syscall)      /* a short one */ \
	ROW(clock)        /* reading the clock */ \
	ROW(wake_call)    /* futex wake that wakes a processor, for the caller */ \
	ROW(wake)         /* from that call until the woken processor runs */ \
	ROW(wake_long)    /* wake of a processor that has slept for over a ms */ \
	ROW(semop)        /* a semop that does not wait */ \
	ROW(tick)         /* from sending the tick's signal until its handler runs, and its cost */ \
	ROW(relax)        /* a turn of an idle loop beside its accesses */ \
	ROW(yield)        /* a thread's turn: yield and switch, beside their accesses */ \
	ROW(hop)          /* a message: notify, wait and switch */ \
	ROW(create)       /* making a thread */ \
	ROW(first)        /* a thread's first turn, beside `yield`, on a stack in no near cache */ \
	ROW(end)          /* running it once, its end and join */ \
	ROW(context)      /* lines that a thread brings along to a new processor */ \
	ROW(close)        /* lines, */ \
	ROW(near)         /* and more */ \
	ROW(smt_size)     /* processors that share a core, */ \
	ROW(cluster_size) /* a last-level cache, */ \
	ROW(socket_size)  /* a socket */

struct sim_costs {
#define ROW(name) uint64_t name; /* ps; plain numbers: thousandths */
	SIM_COSTS(ROW)
#undef ROW
};
extern struct sim_costs sim_costs;

/* Loads a cost table. Returns 0, or EINVAL with a message: a row is missing, unknown or no
 * number. */
int sim_costs_load(const char *path);
/* Sets one cost by "name=value", after the table was loaded. Returns 0 or EINVAL with a message. */
int sim_costs_set(const char *setting);

/* ---- processors ------------------------------------------------------------------------------ */

/* Runs n processors; body(i) runs on each from time 0. Returns when a processor calls sim_stop,
 * or all sleep for good (-1). */
int sim_run(unsigned n, void (*body)(unsigned));
void sim_stop(void);
unsigned sim_self(void);
/* Returns this processor's clock, ps. */
uint64_t sim_clock(void);
/* Lets this processor compute for so long. */
void sim_spend(uint64_t ps);
/* Computes until the tick interrupts. Returns the ps that are left. */
uint64_t sim_compute(uint64_t ps);
/* Sends a signal to processor i: its present or next sim_compute ends early. */
void sim_signal(unsigned i);
bool sim_signalled(void);
/* Moves lines without words of their own from processor `from` to this; n in thousandths. */
void sim_move(unsigned from, uint64_t n);
/* Return the time that processor i has slept in system calls; the accesses that had to move a
 * line; all accesses. */
uint64_t sim_slept(unsigned i);
uint64_t sim_moves(void);
uint64_t sim_accesses(void);
/* Returns the number of wake-ups by the kernel. */
uint64_t sim_wakes(void);

#endif
