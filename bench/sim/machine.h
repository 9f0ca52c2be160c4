/* bench/sim/machine.h - the machine on paper: virtual processors, each with a clock of its own and a stack on which the
 * runtime's code runs, cache lines that cost time to move, and the few system calls that the runtime makes.
 *
 * Time is counted in picoseconds, in integers: the same input gives the same output on every machine. The processor
 * that is furthest behind runs; each access to a shared word (hook/base/atom.h) is charged to it and is a place
 * where another one may go on, so locks contend, claims fail and wake-ups race as they would.
 *
 * What an access costs. A line that this processor has: `hit`, or more if it has not used it for long. Else it
 * moves from who wrote it last: the latency by their distance (SMT siblings, cluster, socket, across). Stores do
 * not wait for their line, but only so many can be on their way; fences and read-modify-writes do. Reads that miss
 * one after the other overlap. A line moves to one processor at a time for `occupied` per cent of that, so that a
 * word that all read or write is a bottleneck.
 * What it does not know: sizes of caches but the first two, instructions, bandwidth, prefetching, the kernel's
 * scheduling: each virtual processor has a processor of its own. */
#ifndef KBI_SIM_MACHINE_H
#define KBI_SIM_MACHINE_H

#include "base/atom.h"

/* A cost table's rows, in ns unless said: bench/sim/costs/NAME.tsv. */
#define SIM_COSTS(ROW) \
	ROW(hit)          /* an access to a word that the processor has */ \
	ROW(second)       /* the same, where `close` other lines have been used since, */ \
	ROW(far)          /* or `near`; */ \
	ROW(chilled)      /* or since it slept for over a ms: its caches have been others' */ \
	ROW(smt)          /* a line moves from the other hyper-thread */ \
	ROW(cluster)      /* from a core that shares the last-level cache */ \
	ROW(socket)       /* from another one in the socket */ \
	ROW(across)       /* from another socket */ \
	ROW(cold)         /* a line that nobody has had */ \
	ROW(overlap)      /* times: reads in a row that miss are so much cheaper */ \
	ROW(drain)        /* times: a store need not wait for its line, but so much later they can go on */ \
	ROW(occupied)     /* per cent of a move in which the line cannot move on */ \
	ROW(rmw)          /* a read-modify-write, beside its line */ \
	ROW(fence)        /* a full fence */ \
	ROW(syscall)      /* a short one */ \
	ROW(clock)        /* reading the clock */ \
	ROW(wake_call)    /* futex wake that wakes somebody, for who calls */ \
	ROW(wake)         /* from that call until the other one runs */ \
	ROW(wake_long)    /* the same, of a processor that has slept for over a ms */ \
	ROW(semop)        /* a semop that does not wait */ \
	ROW(tick)         /* from sending the tick's signal until its handler runs, and its cost */ \
	ROW(relax)        /* a turn of an idle loop beside its accesses */ \
	ROW(yield)        /* a thread's turn: yield and switch, beside their accesses */ \
	ROW(hop)          /* a message: notify, wait and switch */ \
	ROW(create)       /* making a thread */ \
	ROW(first)        /* a thread's first turn, beside `yield`, on a stack that is in no cache near it */ \
	ROW(end)          /* running it once, its end and join */ \
	ROW(context)      /* lines that a thread brings along to another processor */ \
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

/* 0, or EINVAL with a message: a row that is missing, unknown or no number. */
int sim_costs_load(const char *path);
/* "name=value" over the table. */
int sim_costs_set(const char *setting);

/* ---- processors ---- */

/* n of them; body(i) runs on each from time 0. Returns when one calls sim_stop, or all sleep for good (-1). */
int sim_run(unsigned n, void (*body)(unsigned));
void sim_stop(void);
unsigned sim_self(void);
/* This processor's clock, ps. */
uint64_t sim_clock(void);
/* It computes for so long. */
void sim_spend(uint64_t ps);
/* The same, but the tick interrupts it: what is left. */
uint64_t sim_compute(uint64_t ps);
/* A signal for processor i: its sim_compute ends early, now or the next one. */
void sim_signal(unsigned i);
bool sim_signalled(void);
/* Lines without words of their own move here from processor `from`; n in thousandths. */
void sim_move(unsigned from, uint64_t n);
/* Time it has slept in system calls; accesses it has made that had to move a line; all accesses. */
uint64_t sim_slept(unsigned i);
uint64_t sim_moves(void);
uint64_t sim_accesses(void);
/* Kernel wake-ups. */
uint64_t sim_wakes(void);

#endif
