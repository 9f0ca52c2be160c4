/* libc/intercept_cancel.c - where libc's cancellation points are. Contract in intercept_cancel.h.
 * The code mov %r11,8(%rsp); syscall; ret is the end of libc's function, and of no other
 * function. */
#include "libc/intercept_cancel.h"

#include <link.h>
#include <string.h>
#include <ucontext.h>

#include "libc/asked.h"
#include "libc/intercept_stub.h"

#if defined(__x86_64__)

static struct {
	const uint8_t *behind; /* address behind the instruction; NULL: libc has no such function */
	uintptr_t from, bytes; /* the stub */
} cancel;

static int find_function(struct dl_phdr_info *info, size_t size, void *arg)
{
	static const uint8_t end[] = { 0x4c, 0x89, 0x5c, 0x24, 0x08, 0x0f, 0x05, 0xc3 };

	(void)size, (void)arg;
	if (!strstr(info->dlpi_name, "/libc.so"))
		return 0;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		const uint8_t *from = (const uint8_t *)(info->dlpi_addr + h->p_vaddr), *at;

		if (h->p_type != PT_LOAD || !(h->p_flags & PF_X))
			continue;
		at = memmem(from, h->p_memsz, end, sizeof end);
		if (at)
			cancel.behind = at + sizeof end - 1;
	}
	return 1;
}

void kbi_intercept_cancel_find(void)
{
	const char *what = "cancellation points";

	if (cancel.behind)
		return;
	dl_iterate_phdr(find_function, NULL);
	if (cancel.behind)
		kbi_asked_found(what, "one function's");
	else if (strverscmp(kbi_asked_version(), "2.41") < 0)
		kbi_asked_found(what, "wherever a thread's mark says so");
	else
		kbi_asked_missed(what,
			"their function was not found: a thread is cancelled when its call has ended");
}

void kbi_intercept_cancel_stub(const uint8_t *behind, const uint8_t *from, const uint8_t *to)
{
	if (behind != cancel.behind)
		return;
	cancel.from = (uintptr_t)from;
	cancel.bytes = (uintptr_t)(to - from);
}

/* Behind the frame's own two words lie the return address and the address that
 * kbi_intercept_stub_call keeps. */
bool kbi_intercept_cancel_made(const uintptr_t *frame)
{
	return cancel.behind && (frame[1] - cancel.from < cancel.bytes ||
		frame[2] == (uintptr_t)cancel.behind);
}

void kbi_intercept_cancel_handle(void (*handler)(int, siginfo_t *, void *), int sig,
	siginfo_t *info, void *context)
{
	greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs, pc = g[REG_RIP], sp = g[REG_RSP];
	uintptr_t behind = (uintptr_t)kbi_intercept_stub_behind;
	bool stands = cancel.behind && ((uintptr_t)pc == behind || (uintptr_t)pc == behind - 2) &&
		      *(const uintptr_t *)sp == (uintptr_t)cancel.behind;

	if (stands) {
		g[REG_RIP] = (greg_t)((uintptr_t)cancel.behind - (behind - (uintptr_t)pc));
		g[REG_RSP] = sp + KBI_INTERCEPT_STUB_LOWERED;
	}
	handler(sig, info, context);
	g[REG_RIP] = pc;
	g[REG_RSP] = sp;
}

#else

void kbi_intercept_cancel_find(void)
{
}

void kbi_intercept_cancel_stub(const uint8_t *behind, const uint8_t *from, const uint8_t *to)
{
	(void)behind, (void)from, (void)to;
}

bool kbi_intercept_cancel_made(const uintptr_t *frame)
{
	(void)frame;
	return false;
}

void kbi_intercept_cancel_handle(void (*handler)(int, siginfo_t *, void *), int sig,
	siginfo_t *info, void *context)
{
	handler(sig, info, context);
}

#endif
