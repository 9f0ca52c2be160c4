/* core/meter_priv.h - what meter and meter_read share. */
#ifndef KBI_METER_PRIV_H
#define KBI_METER_PRIV_H

#include "core/meter.h"

/* ns; a turn of that length is charged by the kernel's clock. */
enum { KBI_METER_SHORT = 20000 };

/* b, the caller's kernel thread: its time since the last pass is whose it was, what comes is next's; NULL: nobody's.
 * exactly: by the kernel's clock, however short it was. */
void kbi_meter_pass(struct kbi_body *b, struct kbi_task *next, bool exactly);

/* What t has used up to now, or up to the beginning of its turn, ns. */
static inline a64 *kbi_meter_charged(const struct kbi_task *t)
{
	return &kbi_descriptor_table.charged[t->index];
}

#endif
