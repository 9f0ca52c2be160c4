/* mem/heap_owner_priv.h - calls between heap_owner.c and heap_owner_life.c. Contract in
 * heap_owner.h. */
#ifndef KBI_HEAP_OWNER_PRIV_H
#define KBI_HEAP_OWNER_PRIV_H

#include "mem/heap_owner.h"

/* Returns magazines that were posted to the orphan o to its slabs. */
void kbi_life_tend(struct kbi_owner *o);
/* Take and release the magazines' lock, around fork. */
void kbi_owner_freeze(void);
void kbi_owner_thaw(void);

#endif
