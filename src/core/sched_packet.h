/* core/sched_packet.h - packets of tasks that the rotator gives: cut out of the giver's Protect Queue, opened by who keeps
 * them. Only the owner touches a queue, and the tasks in a packet from when it is cut until it is published, and from when
 * it is taken. Callers: core/sched_rotator. Never blocks. */
#ifndef KBI_SCHED_PACKET_H
#define KBI_SCHED_PACKET_H

#include "core/sched_link.h"

/* Up to n tasks in a row that are not bound, from *at on, for VP `to`; *at moves behind them. n 0: there are none. */
struct kbi_packet kbi_packet_cut(struct kbi_sched_vp *s, struct kbi_task **at, unsigned n, unsigned to);
/* The same of threads that have not begun, from the newest on, as far as *at, NULL then: of a burst these are in our caches
 * still, and who joins them in their order finds the first ones here. */
struct kbi_packet kbi_packet_cut_newest(struct kbi_sched_vp *s, struct kbi_task **at, unsigned n, unsigned to);
/* Its tasks are ready at s. */
void kbi_packet_open(struct kbi_sched_vp *s, struct kbi_packet p);

#endif
