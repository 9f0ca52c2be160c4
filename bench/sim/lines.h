/* bench/sim/lines.h - the table of cache lines: which processor has which line. Callers:
 * machine.c. */
#ifndef KBI_SIM_LINES_H
#define KBI_SIM_LINES_H

#include <stdbool.h>
#include <stdint.h>

struct sim_line {
	uint64_t key;     /* address / 64 */
	uint64_t free_at; /* ps: the time from which it can move on */
	int32_t owner;    /* the processor that wrote it last; -1: none yet */
	uint32_t sharers; /* number of processors that have it */
	int32_t last;     /* the processor that used it last; -1: none yet */
	uint64_t used;    /* when it did, counted in the lines that it has used */
	uint64_t have[];  /* a bit for each processor */
};

void sim_lines_begin(unsigned processors);
void sim_lines_end(void);
struct sim_line *sim_line_of(const void *word);

static inline bool sim_line_has(const struct sim_line *l, unsigned who)
{
	return l->have[who / 64] >> (who % 64) & 1;
}

static inline void sim_line_share(struct sim_line *l, unsigned who)
{
	l->have[who / 64] |= UINT64_C(1) << (who % 64);
	l->sharers++;
}

/* Makes `who` the only processor that has the line. */
void sim_line_take(struct sim_line *l, unsigned who);

#endif
