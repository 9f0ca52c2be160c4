/* sched/packet.h - packets of tasks that the rotator gives away: a packet is cut out of the
 * giver's Protect Queue and opened by the VP that keeps its tasks. Only the owner touches a
 * queue. Only the giver touches the tasks of a packet until the packet is published, and only
 * its taker after the packet is taken.
 * Callers: sched/rotator. Never blocks, never switches. */
#ifndef KBI_SCHED_PACKET_H
#define KBI_SCHED_PACKET_H

#include "sched/link.h"

/* Cuts up to n tasks in a row that are not bound, from *at on, for VP `to`; moves *at behind
 * them. A returned n of 0: there are none. */
struct kbi_packet kbi_packet_cut(struct kbi_sched_vp *s, struct kbi_task **at, unsigned n,
	unsigned to);
/* Cuts up to n threads that have not started, from the newest back to *at, which becomes NULL
 * when it is reached. The newest threads of a burst are still in our caches, and a thread that
 * joins the burst in order finds the first threads here. */
struct kbi_packet kbi_packet_cut_newest(struct kbi_sched_vp *s, struct kbi_task **at, unsigned n,
	unsigned to);
/* Makes the packet's tasks ready at s. */
void kbi_packet_open(struct kbi_sched_vp *s, struct kbi_packet p);

#endif
