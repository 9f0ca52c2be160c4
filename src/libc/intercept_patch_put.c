/* libc/intercept_patch_put.c - contract in intercept_patch_put.h.
 * The stub calls C, with every register kept that a system call keeps. */
#include "libc/intercept_patch_put.h"

#include <string.h>
#include <sys/mman.h>

#include "libc/intercept_cancel.h"
#include "libc/intercept_patch_unwind.h"
#include "libc/intercept_stub.h"
#include "libc/intercept_wanted.h"
#include "os/newer.h"
#include "os/sys.h"

#if defined(__x86_64__)

enum {
	CALL_BYTES = 35,       /* length of put_call's code */
	/* by put_call's code: the 128 bytes below the stack pointer are libc's (the red zone) */
	LOWERED = 128,
	CALL_AT = 5, CALL_END = 28,
	JUMP = 5,              /* bytes of a jump */
	APART_BYTES = 37,      /* length of put_apart's code */
	FUTEX_ONLY = -2,       /* in place of a number */
};

static void put_stub_bytes(struct kbi_intercept_pen *p, const void *bytes, size_t n)
{
	memcpy(p->stub, bytes, n);
	p->stub += n;
}

#define PUT(p, ...) put_stub_bytes(p, (const uint8_t[]){ __VA_ARGS__ }, \
	sizeof((const uint8_t[]){ __VA_ARGS__ }))

static void put_stub_int32(struct kbi_intercept_pen *p, int32_t v)
{
	put_stub_bytes(p, &v, sizeof v);
}

static void put_jump(struct kbi_intercept_pen *p, const uint8_t *to)
{
	PUT(p, 0xe9);
	put_stub_int32(p, (int32_t)(to - (p->stub + 4)));
}

/* Puts a call of C: lea -128(%rsp),%rsp; mov $call,%r11; mov $enter,%rcx; call *%rcx; lea
 * 128(%rsp),%rsp. It loses rcx and r11, as a system call does. */
static void put_call(struct kbi_intercept_pen *p)
{
	uintptr_t call = (uintptr_t)p->call, enter = (uintptr_t)kbi_intercept_stub_enter;

	kbi_intercept_patch_unwind_add(p->stub + CALL_AT, CALL_END - CALL_AT, LOWERED, p->back);
	PUT(p, 0x48, 0x8d, 0x64, 0x24, 0x80, 0x49, 0xbb);
	put_stub_bytes(p, &call, 8);
	PUT(p, 0x48, 0xb9);
	put_stub_bytes(p, &enter, 8);
	PUT(p, 0xff, 0xd1, 0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0);
}

/* Puts a system call. The program counter of a thread interrupted in the kernel lies at the call,
 * or behind it. */
static void put_syscall(struct kbi_intercept_pen *p)
{
	kbi_intercept_patch_unwind_add(p->stub, 3, 0, p->back);
	PUT(p, 0x0f, 0x05);
}

/* Puts a jump to the code for children that the caller waits for, with rax set: mov
 * $kbi_intercept_stub_child,%r11; mov (%r11),%r11; mov $back,%rcx; jmp *(%rip). */
static void put_apart(struct kbi_intercept_pen *p)
{
	uintptr_t child = (uintptr_t)&kbi_intercept_stub_child, back = (uintptr_t)p->back,
		apart = (uintptr_t)kbi_intercept_stub_apart;

	PUT(p, 0x49, 0xbb);
	put_stub_bytes(p, &child, 8);
	PUT(p, 0x4d, 0x8b, 0x1b, 0x48, 0xb9);
	put_stub_bytes(p, &back, 8);
	PUT(p, 0xff, 0x25, 0, 0, 0, 0);
	put_stub_bytes(p, &apart, 8);
}

/* Puts clone. A copy of the process (no CLONE_VM, no stack of its own) is made by C. A child that
 * shares the memory and that the caller waits for (CLONE_VFORK; without CLONE_CHILD_CLEARTID, which
 * the wait needs) is made and waited for by code of ours. Other processes become children of the
 * supervisor. */
static void put_clone(struct kbi_intercept_pen *p)
{
	/* mov %edi,%r11d; and $VM|VFORK|THREAD|CLEARTID,%r11d */
	PUT(p, 0x41, 0x89, 0xfb, 0x41, 0x81, 0xe3, 0, 0x41, 0x21, 0);
	PUT(p, 0x41, 0x81, 0xfb, 0, 0x41, 0, 0);                 /* cmp $VM|VFORK,%r11d */
	PUT(p, 0x75, APART_BYTES + 2, 0x31, 0xc0);               /* jne 0f; xor %eax,%eax */
	put_apart(p);                                            /* 0: */
	PUT(p, 0xf7, 0xc7, 0, 1, 0, 0);                          /* test $CLONE_VM,%edi */
	PUT(p, 0x75, CALL_BYTES + 7, 0x48, 0x85, 0xf6);          /* jnz 1f; test %rsi,%rsi */
	PUT(p, 0x75, CALL_BYTES + 2);                            /* jnz 1f */
	put_call(p);
	PUT(p, 0xeb, 28);                                        /* jmp 3f */
	/* 1: test $CLONE_VM,%edi; jz 2f: ours */
	PUT(p, 0xf7, 0xc7, 0, 1, 0, 0, 0x74, 14);
	PUT(p, 0xf7, 0xc7, 0, 0, 1, 0, 0x75, 6);                 /* test $CLONE_THREAD,%edi; jnz 2f */
	PUT(p, 0x81, 0xcf, 0, 0x80, 0, 0);                       /* or $CLONE_PARENT,%edi */
	put_syscall(p);                                          /* 2: syscall; 3: */
	PUT(p, 0x90, 0x90, 0x90, 0x90);
}

/* Puts vfork. libc keeps its return address in rdi meanwhile. */
static void put_vfork(struct kbi_intercept_pen *p)
{
	PUT(p, 0xb8, 0x11, 0x41, 0, 0);                          /* mov $VM|VFORK|SIGCHLD,%eax */
	put_apart(p);
}

/* Puts a call with a number that is not known where the code is read: a table has the wanted
 * numbers. An unwanted call is made by the old instruction, which stays in place if there is room
 * for a jump before it: libc's handler of cancellation looks for it there. */
static void put_unknown(struct kbi_intercept_pen *p, bool stays)
{
	uintptr_t table = (uintptr_t)kbi_intercept_wanted_table();

	/* cmp $KBI_INTERCEPT_WANTED_MOST,%rax */
	PUT(p, 0x48, 0x3d);
	put_stub_int32(p, KBI_INTERCEPT_WANTED_MOST);
	PUT(p, 0x73, CALL_BYTES + 18, 0x49, 0xbb);               /* jae 1f; mov $table,%r11 */
	put_stub_bytes(p, &table, 8);
	PUT(p, 0x49, 0x0f, 0xa3, 0x03, 0x73, CALL_BYTES + 2);    /* bt %rax,(%r11); jnc 1f */
	put_call(p);
	/* jmp 2f; 1: syscall, or a jump to it; 2: */
	PUT(p, 0xeb, stays ? JUMP : 2);
	if (stays)
		put_jump(p, p->back - 2);
	else
		put_syscall(p);
}

/* Puts a call that goes to C if it is a futex call: its number may not be known where the code is
 * read. */
static void put_futex(struct kbi_intercept_pen *p)
{
	unsigned test = p->private_only ? 6 : 0;

	PUT(p, 0x3d, KBI_INTERCEPT_PATCH_FUTEX, 0, 0, 0);        /* cmp $SYS_futex,%eax */
	PUT(p, 0x75, CALL_BYTES + 2 + test);                     /* jne 1f */
	/* test $FUTEX_PRIVATE_FLAG,%sil; jz 1f */
	if (test)
		PUT(p, 0x40, 0xf6, 0xc6, 0x80, 0x74, CALL_BYTES + 2);
	put_call(p);
	PUT(p, 0xeb, 2);                                         /* jmp 2f */
	put_syscall(p);                                          /* 1: syscall; 2: */
}

/* Adjusts the distance in the last instruction put, which ended at `end` in libc: it leads to the
 * same data. Stubs are in reach of libc's data. */
static void put_distance(struct kbi_intercept_pen *p, const uint8_t *end)
{
	int32_t distance;

	memcpy(&distance, p->stub - sizeof distance, sizeof distance);
	distance += (int32_t)(end - p->stub);
	memcpy(p->stub - sizeof distance, &distance, sizeof distance);
}

void kbi_intercept_patch_put(struct kbi_intercept_pen *p, const struct kbi_intercept_site *s)
{
	bool stays = !p->futex_only && s->nr == -1 && s->before >= JUMP;
	uint8_t *start = p->stub;
	int32_t to;

	p->back = s->at + 2;
	put_stub_bytes(p, s->at - s->before, s->before);
	if (s->relative)
		put_distance(p, s->at);
	switch (p->futex_only ? FUTEX_ONLY : s->nr) {
	case FUTEX_ONLY:
		put_futex(p);
		break;
	case SYS_getpid:
		PUT(p, 0xb8);
		put_stub_int32(p, p->pid);
		break;
	case SYS_clone:
		put_clone(p);
		break;
	case SYS_vfork:
		put_vfork(p);
		break;
	case SYS_clone3: /* libc falls back to clone */
		PUT(p, 0x48, 0xc7, 0xc0, 0xda, 0xff, 0xff, 0xff);
		break;
	case -1:
		put_unknown(p, stays);
		break;
	default:
		put_call(p);
	}
	put_jump(p, s->at + 2);
	s->at[-(int)s->before] = 0xe9;
	to = (int32_t)(start - (s->at - s->before + JUMP));
	memcpy(s->at - s->before + 1, &to, 4);
	memset(s->at - s->before + JUMP, 0x90, s->before + (stays ? 0 : 2) - JUMP);
	if (!p->futex_only)
		kbi_intercept_cancel_stub(p->back, start, p->stub);
}

bool kbi_intercept_patch_make_room(struct kbi_intercept_pen *p, uintptr_t low, uintptr_t high,
	size_t bytes)
{
	high = (high + 0xffff) & ~(uintptr_t)0xffff;
	for (uintptr_t at = high; at < low + 0x60000000; at += 0x10000) {
		long room = kbi_sys(SYS_mmap, at, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

		if (room != (long)at)
			continue;
		p->stub = (uint8_t *)room;
		p->end = p->stub + bytes;
		return true;
	}
	return false;
}

#endif
