/* libc/intercept_patch_code: the code in front of a system call is understood as whole
 * instructions, or not at all. tcsetattr of glibc 2.36 has an instruction with prefix %fs there;
 * moving it without the prefix is a SIGSEGV where virtual processors are processes.
 * matrix: none */
#include "test.h"

#if !defined(__x86_64__)
int main(void)
{
	SKIP("x86-64");
}
#else

#include <string.h>

#include "libc/intercept_patch_code.h"

static const struct {
	unsigned n, before, second;
	long nr;
	uint8_t code[16]; /* the end of the code, in front of the call */
} sites[] = {
	/* mov $16,%eax; mov $0x5401,%esi */
	{ 10, 5, 0, 16, { 0xb8, 0x10, 0, 0, 0, 0xbe, 0x01, 0x54, 0, 0 } },
	/* mov $16,%eax */
	{ 5, 5, 0, 16, { 0xb8, 0x10, 0, 0, 0 } },
	/* mov $16,%eax; xor %esi,%esi */
	{ 7, 7, 2, 16, { 0xb8, 0x10, 0, 0, 0, 0x31, 0xf6 } },
	/* mov %rsi,%rdx; xor %esi,%esi */
	{ 8, 5, 2, -1, { 0x44, 0x89, 0xc8, 0x48, 0x89, 0xf2, 0x31, 0xf6 } },
	/* mov %fs:(%r10),%ebp */
	{ 7, 0, 0, -1, { 0x44, 0x89, 0xc8, 0x64, 0x41, 0x8b, 0x2a } },
	/* mov %gs:(%r10),%ebp */
	{ 7, 0, 0, -1, { 0x44, 0x89, 0xc8, 0x65, 0x41, 0x8b, 0x2a } },
	/* mov 8(%r10),%bp */
	{ 8, 0, 0, -1, { 0x44, 0x89, 0xc8, 0x66, 0x41, 0x8b, 0x6a, 0x08 } },
	/* maskmovq %mm1,%mm0 */
	{ 6, 0, 0, -1, { 0x44, 0x89, 0xc8, 0x0f, 0xf7, 0xc1 } },
	/* mov $8,%r8d */
	{ 6, 6, 0, -1, { 0x41, 0xb8, 0x08, 0, 0, 0 } },
	/* mov %r11,8(%rsp) */
	{ 10, 5, 0, -1, { 0x4c, 0x8b, 0x4c, 0x24, 0x10, 0x4c, 0x89, 0x5c, 0x24, 0x08 } },
	/* mov %r11,%fs:8(%rsp) */
	{ 9, 0, 0, -1, { 0x44, 0x89, 0xc8, 0x64, 0x4c, 0x89, 0x5c, 0x24, 0x08 } },
	/* mov $13,%eax; mov $8,%r8d */
	{ 11, 6, 0, 13, { 0xb8, 0x0d, 0, 0, 0, 0x41, 0xb8, 0x08, 0, 0, 0 } },
};

int main(void)
{
	for (unsigned i = 0; i < sizeof sites / sizeof *sites; i++) {
		uint8_t code[64];
		struct kbi_intercept_site s = { .at = code + 32 };

		memset(code, 0x90, sizeof code);
		memcpy(s.at - sites[i].n, sites[i].code, sites[i].n);
		memcpy(s.at, (const uint8_t[]){ 0x0f, 0x05 }, 2);
		kbi_intercept_patch_understand(&s);
		printf("%u: %u bytes move, the second %u before, call %ld\n", i, s.before, s.second, s.nr);
		CHECK_EQ(s.before, sites[i].before);
		if (s.before) {
			CHECK_EQ(s.second, sites[i].second);
			CHECK_EQ(s.nr, sites[i].nr);
		}
	}
	return 0;
}
#endif
