/* libc/intercept_patch_function: lengths of instructions, the number of a call, and code that may
 * be moved with the call. Each function of this system's libc and loader is read, instruction after
 * instruction, and ends where the next begins.
 * matrix: none */
#include "test.h"

#if !defined(__x86_64__) || !defined(__GLIBC__)
int main(void)
{
	SKIP("x86-64 with glibc");
}
#else

#include <link.h>
#include <string.h>

#include "libc/intercept_patch_function.h"

enum { MOST = 64 };

static const struct {
	unsigned n;
	uint8_t code[15];
} lengths[] = {
	{ 1, { 0x90 } },                                                /* nop */
	{ 2, { 0x0f, 0x05 } },                                          /* syscall */
	{ 4, { 0xf3, 0x0f, 0x1e, 0xfa } },                              /* endbr64 */
	{ 5, { 0xb8, 0xca, 0, 0, 0 } },                                 /* mov $202,%eax */
	{ 4, { 0x66, 0xb8, 0xca, 0 } },                                 /* mov $202,%ax */
	{ 10, { 0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8 } },                 /* movabs $...,%rax */
	{ 9, { 0xa1, 1, 2, 3, 4, 5, 6, 7, 8 } },                        /* movabs ...,%eax */
	{ 6, { 0x67, 0xa1, 1, 2, 3, 4 } },                              /* addr32 mov ...,%eax */
	{ 5, { 0x4c, 0x89, 0x5c, 0x24, 0x08 } },                        /* mov %r11,8(%rsp) */
	{ 7, { 0x8b, 0x04, 0x25, 1, 2, 3, 4 } },                        /* mov 0x4030201,%eax */
	{ 9, { 0x64, 0x48, 0x8b, 0x04, 0x25, 0x10, 0, 0, 0 } },         /* mov %fs:16,%rax */
	{ 6, { 0x8b, 0x05, 1, 2, 3, 4 } },                              /* mov 0x4030201(%rip),%eax */
	{ 12, { 0x48, 0xc7, 0x84, 0x24, 1, 2, 3, 4, 5, 6, 7, 8 } },     /* movq $...,0x4030201(%rsp) */
	{ 3, { 0xf6, 0xc1, 0x01 } },                                    /* test $1,%cl */
	{ 2, { 0xf7, 0xd8 } },                                          /* neg %eax */
	{ 6, { 0xf7, 0xc7, 0, 1, 0, 0 } },                              /* test $256,%edi */
	{ 3, { 0xc2, 0x08, 0 } },                                       /* ret $8 */
	{ 4, { 0xc8, 0x08, 0, 0 } },                                    /* enter $8,$0 */
	{ 6, { 0x0f, 0x84, 1, 2, 3, 4 } },                              /* je */
	{ 5, { 0xf0, 0x0f, 0xb1, 0x57, 0x08 } },                        /* lock cmpxchg %edx,8(%rdi) */
	{ 6, { 0x66, 0x0f, 0x3a, 0x0f, 0xc1, 0x08 } },                  /* palignr $8,%xmm1,%xmm0 */
	{ 5, { 0x66, 0x0f, 0x38, 0x17, 0xc0 } },                        /* ptest %xmm0,%xmm0 */
	{ 3, { 0xc5, 0xf8, 0x77 } },                                    /* vzeroupper */
	{ 5, { 0xc5, 0xfd, 0x6f, 0x47, 0x20 } },                        /* vmovdqa 32(%rdi),%ymm0 */
	{ 6, { 0xc4, 0xe3, 0x7d, 0x39, 0xc1, 0x01 } },                 /* vextracti128 $1,%ymm0,%xmm1 */
	{ 7, { 0x62, 0xf1, 0xfe, 0x48, 0x6f, 0x46, 0x01 } },            /* vmovdqu64 64(%rsi),%zmm0 */
	/* nopw of 15 bytes */
	{ 15, { 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0 } },
	/* not an instruction in this mode */
	{ 0, { 0x06 } },
};

static const struct {
	bool is_call;
	unsigned n, before, second;
	long nr;
	uint8_t code[40]; /* up to the call */
} functions[] = {
	/* mov $202,%eax; mov %r8,8(%rsp) */
	{ true, 10, 5, 0, 202, { 0xb8, 0xca, 0, 0, 0, 0x4c, 0x89, 0x44, 0x24, 0x08 } },
	/* mov $202,%ebx; cmp %ecx,%edx; je +0; mov %ebx,%eax; lea 8(%rsp),%rsi */
	{ true, 16, 5, 0, 202, { 0xbb, 0xca, 0, 0, 0, 0x39, 0xd1, 0x74, 0, 0x89, 0xd8, 0x48, 0x8d, 0x74,
		0x24, 0x08 } },
	/* mov $202,%r13d; call; mov %r13d,%eax: a callee-saved register */
	{ true, 14, 3, 0, 202, { 0x41, 0xbd, 0xca, 0, 0, 0, 0xe8, 0, 0, 0, 0, 0x44, 0x89, 0xe8 } },
	/* mov $202,%edx; call; mov %edx,%eax; nop: a register that the call loses; and a nop that does
	 * not move */
	{ true, 13, 0, 0, -1, { 0xba, 0xca, 0, 0, 0, 0xe8, 0, 0, 0, 0, 0x89, 0xd0, 0x90 } },
	/* mov $202,%eax; add $1,%eax; movzbl (%rdi),%esi */
	{ true, 11, 3, 0, -1, { 0xb8, 0xca, 0, 0, 0, 0x83, 0xc0, 0x01, 0x0f, 0xb6, 0x37 } },
	/* mov $13,%eax; cmpl $0,4(%rip): relative to its own address */
	{ true, 12, 0, 0, 13, { 0xb8, 0x0d, 0, 0, 0, 0x83, 0x3d, 4, 0, 0, 0, 0 } },
	/* mov $13,%eax; pop %rsi; mov %edi,%edi: the stack pointer moves */
	{ true, 8, 0, 0, 13, { 0xb8, 0x0d, 0, 0, 0, 0x5e, 0x89, 0xff } },
	/* mov $13,%eax; lea (%rdi),%rsi; mov %edi,%edi: two instructions */
	{ true, 10, 5, 2, 13, { 0xb8, 0x0d, 0, 0, 0, 0x48, 0x8d, 0x37, 0x89, 0xff } },
	/* test %eax,%eax; jne +0: eax is 0 if it does not jump */
	{ true, 9, 5, 0, 0, { 0x85, 0xc0, 0x75, 0, 0x48, 0x8d, 0x74, 0x24, 0x08 } },
	/* mov $0x050fNNNN,%esi, whose constant ends with the two bytes of a call */
	{ false, 3, 0, 0, -1, { 0xbe, 0x01, 0x02 } },
	/* not an instruction: no answer */
	{ true, 6, 0, 0, -1, { 0xb8, 0x0d, 0, 0, 0, 0x06 } },
};

/* A constant that looks like the number of a call, before the function is read, belongs to another
 * instruction. */
static void check_correction(void)
{
	/* mov $0x0db8,%ecx in its long form, whose end reads as mov $13,%eax; lea 4(%rip),%rdi */
	static uint8_t code[] = { 0x48, 0xb9, 0, 0, 0, 0xb8, 0x0d, 0, 0, 0, 0x48, 0x8d, 0x3d, 4, 0, 0,
		0, 0x0f, 0x05 };
	struct kbi_intercept_site s = { .at = code + 17, .before = 12, .second = 7, .nr = 13 };
	long nr;

	CHECK(kbi_intercept_patch_read(code, &s, &nr));
	CHECK(s.before == 7 && s.second == 0 && s.relative && s.nr == -1 && nr == -1);
}

static void check_functions(void)
{
	for (unsigned i = 0; i < sizeof functions / sizeof *functions; i++) {
		uint8_t code[MOST];
		struct kbi_intercept_site s = { .at = code + functions[i].n };
		long nr;
		bool is_call;

		memset(code, 0x90, sizeof code);
		memcpy(code, functions[i].code, functions[i].n);
		memcpy(s.at, (const uint8_t[]){ 0x0f, 0x05 }, 2);
		is_call = kbi_intercept_patch_read(code, &s, &nr);
		printf("%u: %u bytes move, the second %u before, call %ld\n", i, s.before, s.second, nr);
		CHECK_EQ(is_call, functions[i].is_call);
		CHECK_EQ(s.before, functions[i].before);
		CHECK_EQ(s.second, functions[i].second);
		CHECK_EQ(nr, functions[i].nr);
	}
}

/* ---- libc and loader of this system ---------------------------------------------------------- */

static unsigned read_functions, elsewhere, calls;

/* Reads each function up to the beginning of the next. In the table a signal's return begins a byte
 * before its code, and between sections there is padding: a few of thousands may end elsewhere. */
static void read_whole(const uint8_t *from, const uint8_t *to)
{
	const uint8_t *p = from;

	while (p < to) {
		unsigned n = kbi_intercept_patch_length(p);

		if (!n)
			printf("%p in the function at %p: %02x %02x %02x\n", (const void *)p,
				(const void *)from, p[0], p[1], p[2]);
		CHECK(n);
		calls += n == 2 && p[0] == 0x0f && p[1] == 0x05;
		p += n;
	}
	read_functions++;
	if (p == to)
		return;
	printf("the function at %p ends %td behind the next one's beginning\n", (const void *)from,
		p - to);
	elsewhere++;
}

static void read_module(const void *table, const uint8_t *from, const uint8_t *to)
{
	const uint8_t *function = NULL;

	for (const uint8_t *p = from; p < to; p++) {
		const uint8_t *now = kbi_intercept_patch_function(table, p);

		if (now == function || now < from)
			continue;
		if (function)
			read_whole(function, now);
		function = now;
	}
}

static int each_module(struct dl_phdr_info *info, size_t size, void *arg)
{
	const void *table = NULL;

	(void)size, (void)arg;
	if (!strstr(info->dlpi_name, "/libc.so") && !strstr(info->dlpi_name, "/libc-2") &&
		!strstr(info->dlpi_name, "/ld-"))
		return 0;
	for (unsigned i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME)
			table = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	CHECK(table);
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		const uint8_t *from = (const uint8_t *)(info->dlpi_addr + h->p_vaddr);

		if (h->p_type == PT_LOAD && h->p_flags & PF_X)
			read_module(table, from, from + h->p_memsz);
	}
	return 0;
}

int main(void)
{
	for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		printf("length %u\n", i);
		CHECK_EQ(kbi_intercept_patch_length(lengths[i].code), lengths[i].n);
	}
	check_functions();
	check_correction();
	dl_iterate_phdr(each_module, NULL);
	printf("%u functions with %u system calls\n", read_functions, calls);
	CHECK(read_functions > 1000 && elsewhere < 10 && calls > 300);
	return 0;
}
#endif
