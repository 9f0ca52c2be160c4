/* bench/sim/lines.h - which processor has which cache line. Callers: machine.c. */
#ifndef KBI_SIM_LINES_H
#define KBI_SIM_LINES_H

#include <stdbool.h>
#include <stdint.h>

struct sim_line {
	uint64_t key;     /* address / 64 */
	uint64_t free_at; /* ps: it can move on then */
	int32_t owner;    /* who wrote it last; -1: nobody yet */
	uint32_t sharers; /* how many have it */
	int32_t last;     /* who used it last; -1: nobody yet; */
	uint64_t used;    /* and when, counted in that one's lines */
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

/* It is who's alone. */
void sim_line_take(struct sim_line *l, unsigned who);

#endif
