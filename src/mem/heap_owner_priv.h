/* mem/heap_owner_priv.h - what heap_owner.c and heap_owner_life.c ask of each other. */
#ifndef KBI_HEAP_OWNER_PRIV_H
#define KBI_HEAP_OWNER_PRIV_H

#include "mem/heap_owner.h"

/* Something was posted to an orphan. */
void kbi_life_tend(struct kbi_owner *o);
/* Around fork: the magazines' lock. */
void kbi_owner_freeze(void);
void kbi_owner_thaw(void);

#endif
