/* os/plant.c - return addresses that were put aside. Contract in plant.h.
 *
 * There are some doors, each with a place where the true address is kept. A door's first instruction pushes that, so that
 * from then on the stack is as if the function had just been called; before, an unwinder that comes along finds the place
 * by what the table says of the door: the distance to it stands in the instruction.
 *
 * A place is known by the word on the stack that it stands for, of which there is one in the whole process: so a door
 * that was jumped over does no harm, whatever is put in its stead. It is free again when it was gone through; when its
 * word has become another; when its owner has ended. If that is not known it stays, and there is one less. */
#include "os/plant.h"

#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "os/asked.h"
#include "os/sys.h"

struct kbi_plant_signal (*kbi_plant_asks)(void);
a32 kbi_plant_in_use;

#if defined(__x86_64__) && defined(__GLIBC__)

#define DOORS 128
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

/* The assembler knows its size. */
struct place {
	uintptr_t back; /* read by the door */
	aptr slot;      /* NULL: free */
};

_Static_assert(sizeof(struct place) == 16, "as the doors have it");

struct place kbi_plant_places[DOORS] KBI_HIDDEN;
static const void *owners[DOORS]; /* whose it is, valid while it is not free */

enum { DOOR_SIZE = 16, DOOR_AT = 5 };

extern const char kbi_plant_doors[] KBI_HIDDEN, kbi_plant_left[] KBI_HIDDEN;
struct kbi_plant_signal kbi_plant_returned(uintptr_t *slot) KBI_HIDDEN;

#define KEEP(r) "pushq %" #r "\n\t.cfi_adjust_cfa_offset 8\n\t"
#define BACK(r) "popq %" #r "\n\t.cfi_adjust_cfa_offset -8\n\t"

/* Each in 16 bytes, the last of its neighbour's for unwinders, that look one byte before a return address. There the
 * stack ends in front of the return address, which is at *(uint32_t *)(pc + 2) + pc + 6: so the expression.
 * Then: registers that may have a result, and all others for good measure; of the vector registers two have. */
__asm__(".text\n\t.p2align 4\n"
	".hidden kbi_plant_doors\n.globl kbi_plant_doors\n.type kbi_plant_doors,@function\n"
	"kbi_plant_doors:\n\t"
	".set kbi_plant_i, 0\n\t"
	".rept " TEXT(DOORS) "\n\t"
	".cfi_startproc\n\t.cfi_def_cfa_offset 0\n\t"
	".cfi_escape 0x10, 0x10, 0x07, 0x80, 0x02, 0x94, 0x04, 0x80, 0x06, 0x22\n\t"
	".byte 0x90, 0x90, 0x90, 0x90, 0x90\n\t"
	"pushq kbi_plant_places+16*kbi_plant_i(%rip)\n\t"
	".cfi_def_cfa_offset 8\n\t.cfi_offset rip, -8\n\t"
	".byte 0xe9\n\t.long kbi_plant_through - . - 4\n\t"
	".cfi_endproc\n\t"
	".set kbi_plant_i, kbi_plant_i + 1\n\t"
	".endr\n\t"
	".size kbi_plant_doors, . - kbi_plant_doors\n"
	".type kbi_plant_through,@function\n"
	"kbi_plant_through:\n\t.cfi_startproc\n\t"
	KEEP(rax) KEEP(rcx) KEEP(rdx) KEEP(rsi) KEEP(rdi) KEEP(r8) KEEP(r9) KEEP(r10) KEEP(r11)
	"subq $32, %rsp\n\t.cfi_adjust_cfa_offset 32\n\t"
	"movups %xmm0, 0(%rsp)\n\tmovups %xmm1, 16(%rsp)\n\t"
	"leaq 104(%rsp), %rdi\n\tcall kbi_plant_returned\n\t"
	"movups 0(%rsp), %xmm0\n\tmovups 16(%rsp), %xmm1\n\t"
	"testq %rax, %rax\n\tje 3f\n\t"
	"movl %eax, %esi\n\tmovq %rdx, %rdi\n\tshrq $32, %rax\n\tmovl %eax, %edx\n\t"
	"testq %rdi, %rdi\n\tje 1f\n\t"
	"movl $234, %eax\n\tjmp 2f\n" /* tgkill; tkill */
	"1:\tmovl %esi, %edi\n\tmovl %edx, %esi\n\tmovl $200, %eax\n"
	"2:\tsyscall\n"
	".hidden kbi_plant_left\n.globl kbi_plant_left\n"
	"kbi_plant_left:\n"
	"3:\taddq $32, %rsp\n\t.cfi_adjust_cfa_offset -32\n\t"
	BACK(r11) BACK(r10) BACK(r9) BACK(r8) BACK(rdi) BACK(rsi) BACK(rdx) BACK(rcx) BACK(rax)
	"ret\n\t.cfi_endproc\n\t"
	".size kbi_plant_through, . - kbi_plant_through\n");

_Static_assert(SYS_tkill == 200 && SYS_tgkill == 234, "in the code above");

static uintptr_t door(unsigned i)
{
	return (uintptr_t)kbi_plant_doors + i * DOOR_SIZE + DOOR_AT;
}

/* ---- doors ---------------------------------------------------------------------------------------------------------- */

/* release: partner is the exchange in take_free, whose thread may be another */
static void set_free(unsigned i)
{
	a_sub_rlx(&kbi_plant_in_use, 1);
	a_store_rel(&kbi_plant_places[i].slot, NULL);
}

/* This word's old one, which has become nothing by the word's being another return address; DOORS: none. */
static unsigned find(const uintptr_t *slot)
{
	unsigned i = 0;

	while (i < DOORS && a_load_rlx(&kbi_plant_places[i].slot) != (const void *)slot)
		i++;
	return i;
}

/* Those of the owner, which are on its stack, whose word has become another. */
static void sweep(const void *owner)
{
	for (unsigned i = 0; i < DOORS; i++) {
		const uintptr_t *slot = a_load_rlx(&kbi_plant_places[i].slot);

		if (slot && owners[i] == owner && *slot != door(i))
			set_free(i);
	}
}

static unsigned take_free(uintptr_t *slot)
{
	for (unsigned i = 0; i < DOORS; i++) {
		void *none = NULL;

		/* acquire: partner is the release in set_free */
		if (!a_load_rlx(&kbi_plant_places[i].slot) && a_cas_acq(&kbi_plant_places[i].slot, &none, slot)) {
			a_add_rlx(&kbi_plant_in_use, 1);
			return i;
		}
	}
	return DOORS;
}

/* ---- where ---------------------------------------------------------------------------------------------------------- */

extern void *__libc_stack_end __attribute__((weak));

static uintptr_t main_low, main_high;

/* The kernel puts the program's arguments there, and other data of which it says where: all at most 6 MiB. */
static bool is_below_arguments(uintptr_t end)
{
	enum { ARGUMENTS = 8 << 20 };
	uintptr_t data = getauxval(AT_RANDOM);

	return !data || data - end < ARGUMENTS;
}

void kbi_plant_learn(void)
{
	enum { PAGE = 4096, MOST = 128 << 20 }; /* the kernel leaves so much free below main's, or as the limit was */
	const char *what = "end of main's stack", *without = "main is not preempted where it is deep in libc";
	struct rlimit r;

	if (!&__libc_stack_end || getrlimit(RLIMIT_STACK, &r)) {
		kbi_asked_lacks(what, "not shown: %s", without);
		return;
	}
	if (!is_below_arguments((uintptr_t)__libc_stack_end)) {
		kbi_asked_missed(what, "not as expected: %s", without);
		return;
	}
	kbi_asked_found(what, "shown");
	main_high = ((uintptr_t)__libc_stack_end + PAGE) & ~(uintptr_t)(PAGE - 1);
	main_low = main_high - (r.rlim_cur < MOST ? r.rlim_cur : MOST);
}

bool kbi_plant_is_on_main(uintptr_t sp)
{
	return !main_high || sp - main_low < main_high - main_low;
}

/* The processor keeps return addresses a second time, and compares. It does nothing where it does not. */
static bool has_shadow_stack(void)
{
	uintptr_t at = 0;

	__asm__ volatile(".byte 0xf3, 0x48, 0x0f, 0x1e, 0xc8" : "+a"(at)); /* rdsspq %rax */
	return at;
}

bool kbi_plant(const void *owner, uintptr_t *slot, uintptr_t low, size_t bytes)
{
	unsigned i;

	if (!bytes) {
		low = main_low;
		bytes = main_high - main_low;
	}
	if ((uintptr_t)slot - low >= bytes || has_shadow_stack())
		return false;
	i = find(slot);
	if (i == DOORS && a_load_rlx(&kbi_plant_in_use))
		sweep(owner);
	if (i == DOORS)
		i = take_free(slot);
	if (i == DOORS)
		return false;
	owners[i] = owner;
	kbi_plant_places[i].back = *slot;
	*(volatile uintptr_t *)slot = door(i);
	return true;
}

/* By a door. Its word is a return address again. */
struct kbi_plant_signal kbi_plant_returned(uintptr_t *slot)
{
	static const struct kbi_plant_signal none;
	unsigned i = find(slot);

	if (i < DOORS)
		set_free(i);
	return kbi_plant_asks ? kbi_plant_asks() : none;
}

uintptr_t kbi_plant_place(void)
{
	return (uintptr_t)kbi_plant_left;
}

bool kbi_plant_is_door(uintptr_t at)
{
	return at - (uintptr_t)kbi_plant_doors < DOORS * DOOR_SIZE;
}

static void forget(const void *owner, bool this)
{
	for (unsigned i = 0; i < DOORS; i++)
		if (a_load_rlx(&kbi_plant_places[i].slot) && (owners[i] == owner) == this)
			set_free(i);
}

void kbi_plant_forget_those(const void *owner)
{
	forget(owner, true);
}

void kbi_plant_forget_others(const void *owner)
{
	forget(owner, false);
}

#else

void kbi_plant_learn(void)
{
}

bool kbi_plant_is_on_main(uintptr_t sp)
{
	(void)sp;
	return true;
}

bool kbi_plant(const void *owner, uintptr_t *slot, uintptr_t low, size_t bytes)
{
	(void)owner, (void)slot, (void)low, (void)bytes;
	return false;
}

uintptr_t kbi_plant_place(void)
{
	return 0;
}

bool kbi_plant_is_door(uintptr_t at)
{
	(void)at;
	return false;
}

void kbi_plant_forget_those(const void *owner)
{
	(void)owner;
}

void kbi_plant_forget_others(const void *owner)
{
	(void)owner;
}

#endif
