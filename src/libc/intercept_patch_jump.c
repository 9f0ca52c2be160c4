/* libc/intercept_patch_jump.c - contract in intercept_patch_jump.h.
 * Jumps with a distance of four bytes may come from anywhere, so all are found at once, sixteen
 * bytes at a time. Jumps with a distance of a byte are searched around each place. */
#include "libc/intercept_patch_jump.h"

#include <string.h>

#if defined(__x86_64__)

#include <emmintrin.h>

unsigned kbi_intercept_patch_any_of_16(const uint8_t *p, uint8_t a, uint8_t b, uint8_t c)
{
	__m128i all = _mm_loadu_si128((const __m128i *)(const void *)p);
	__m128i first = _mm_cmpeq_epi8(all, _mm_set1_epi8((char)a)),
		second = _mm_cmpeq_epi8(all, _mm_set1_epi8((char)b));
	__m128i third = _mm_cmpeq_epi8(all, _mm_set1_epi8((char)c));

	return (unsigned)_mm_movemask_epi8(_mm_or_si128(_mm_or_si128(first, second), third));
}

/* Marks the target of the bytes at p if they are a jump or a call. */
static void mark_far(struct kbi_intercept_jumps *j, const uint8_t *p)
{
	unsigned opcode = *p == 0x0f ? 2 : 1;
	const uint8_t *target;
	int32_t far;

	if (opcode == 2 && (p[1] & 0xf0) != 0x80)
		return;
	memcpy(&far, p + opcode, sizeof far);
	target = p + opcode + sizeof far + far;
	if (target >= j->from && target < j->to)
		j->inner[(target - j->from) / 8] |= (uint8_t)(1u << (target - j->from) % 8);
}

void kbi_intercept_patch_find_jumps(struct kbi_intercept_jumps *j, const uint8_t *from,
	const uint8_t *to)
{
	const uint8_t *p = from;

	j->from = from;
	j->to = to;
	memset(j->inner, 0, (size_t)(to - from) / 8 + 1);
	for (; p + 16 + KBI_INTERCEPT_PATCH_JUMP_BYTES <= to; p += 16)
		for (unsigned found = kbi_intercept_patch_any_of_16(p, 0xe8, 0xe9, 0x0f); found;
			found &= found - 1) mark_far(j, p + __builtin_ctz(found));
	for (; p + 6 <= to; p++)
		if (*p == 0xe8 || *p == 0xe9 || *p == 0x0f)
			mark_far(j, p);
}

static bool is_near_jump(const uint8_t *p)
{
	return *p == 0xeb || (*p >= 0x70 && *p <= 0x7f) || (*p >= 0xe0 && *p <= 0xe3);
}

static bool is_near_target(const struct kbi_intercept_jumps *j, const uint8_t *to)
{
	enum { LENGTH = 2, BACK = 128, FORTH = 127 }; /* a near jump; distances from its end */
	const uint8_t *from = to - j->from > LENGTH + FORTH ? to - LENGTH - FORTH : j->from;
	const uint8_t *last = j->to - to > BACK ? to + BACK - LENGTH : j->to - LENGTH;

	for (const uint8_t *p = from; p <= last; p++)
		if (is_near_jump(p) && p + LENGTH + (int8_t)p[1] == to)
			return true;
	return false;
}

bool kbi_intercept_patch_is_jumped_to(const struct kbi_intercept_jumps *j, const uint8_t *to)
{
	size_t at = (size_t)(to - j->from);

	return j->inner[at / 8] & 1u << at % 8 || is_near_target(j, to);
}

#endif
