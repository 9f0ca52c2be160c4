/* core/meter_priv.h - shared by meter and meter_read. Callers: these two units. */
#ifndef KBI_METER_PRIV_H
#define KBI_METER_PRIV_H

#include "core/meter.h"

/* ns; a turn of this length or more is charged by the kernel's clock. */
enum { KBI_METER_SHORT = 20000 };

/* Charges the time since the last pass of b, the caller's kernel thread, to its thread; the time
 * from now on belongs to `next`; NULL: to no thread. exactly: by the kernel's clock, however
 * short the time was. */
void kbi_meter_pass(struct kbi_worker *b, struct kbi_task *next, bool exactly);

/* Returns the counter of t: ns used up to now, or up to the beginning of its turn. */
static inline a64 *kbi_meter_charged(const struct kbi_task *t)
{
	return &kbi_descriptor_table.charged[t->index];
}

#endif
