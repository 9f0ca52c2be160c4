/* libc/intercept_patch_jump.h - may a jump lead into code that is to be replaced? Each byte that
 * could begin a jump is taken for a jump. x86-64. Only reads code; no locks, no switch.
 * Callers: libc/intercept_patch, libc/intercept_module. */
#ifndef KBI_INTERCEPT_PATCH_JUMP_H
#define KBI_INTERCEPT_PATCH_JUMP_H

#include "base/base.h"

enum { KBI_INTERCEPT_PATCH_JUMP_BYTES = 16 /* so many bytes behind a byte of code may be read */ };

/* A module's code. */
struct kbi_intercept_jumps {
	const uint8_t *from, *to;
	/* a bit for each byte: a jump with a distance of four bytes may lead there. The caller's
	 * memory */
	uint8_t *inner;
};

/* Fills in `inner`. */
void kbi_intercept_patch_find_jumps(struct kbi_intercept_jumps *j, const uint8_t *from,
	const uint8_t *to);
bool kbi_intercept_patch_is_jumped_to(const struct kbi_intercept_jumps *j, const uint8_t *to);
/* Returns a bit for each of 16 bytes that equals a, b or c. */
unsigned kbi_intercept_patch_any_of_16(const uint8_t *p, uint8_t a, uint8_t b, uint8_t c);

#endif
