/* libc/return_hook.c - return hooks. Contract in return_hook.h.
 *
 * There is a fixed number of doors (trampolines), each with a place that keeps the true return
 * address. The first instruction of a door pushes that address, so that the stack then looks as if
 * the function had just been called. Before this instruction an unwinder finds the place by the
 * unwind table of the door: the distance to the place is an operand of the instruction.
 *
 * A place is identified by the address of the word on the stack that it stands for, which is unique
 * in the process. So a door that was jumped over does no harm, whatever is stored in its word
 * later. A place becomes free when its door was passed, when its word has changed, or when its
 * owner has ended. If none of this is noticed, the place stays in use, and there is a door less. */
#include "libc/return_hook.h"

#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "libc/asked.h"
#include "os/sys.h"

struct kbi_return_hook_signal (*kbi_return_hook_asks)(void);
a32 kbi_return_hook_in_use;

#if defined(__x86_64__) && defined(__GLIBC__)

#define DOORS 128
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

/* The assembler code knows its size. */
struct place {
	uintptr_t back; /* read by the door */
	aptr slot;      /* NULL: free */
};

_Static_assert(sizeof(struct place) == 16, "as the doors have it");

struct place kbi_return_hook_places[DOORS] KBI_HIDDEN;
static const void *owners[DOORS]; /* owner of each place, valid while the place is in use */

enum { DOOR_SIZE = 16, DOOR_AT = 5 };

extern const char kbi_return_hook_doors[] KBI_HIDDEN, kbi_return_hook_left[] KBI_HIDDEN;
struct kbi_return_hook_signal kbi_return_hook_returned(uintptr_t *slot) KBI_HIDDEN;

#define KEEP(r) "pushq %" #r "\n\t.cfi_adjust_cfa_offset 8\n\t"
#define BACK(r) "popq %" #r "\n\t.cfi_adjust_cfa_offset -8\n\t"

/* Each door takes 16 bytes. Unwinders look one byte before a return address, so the bytes in front
 * of an entry belong to the door, too. At the entry the stack ends in front of the return address,
 * which is kept at *(uint32_t *)(pc + 2) + pc + 6: hence the expression. Then: saves the registers
 * that may hold a result, and for safety all other volatile ones; results are in at most two vector
 * registers. */
__asm__(".text\n\t.p2align 4\n"
	".hidden kbi_return_hook_doors\n.globl kbi_return_hook_doors\n"
	".type kbi_return_hook_doors,@function\n"
	"kbi_return_hook_doors:\n\t"
	".set kbi_return_hook_i, 0\n\t"
	".rept " TEXT(DOORS) "\n\t"
	".cfi_startproc\n\t.cfi_def_cfa_offset 0\n\t"
	".cfi_escape 0x10, 0x10, 0x07, 0x80, 0x02, 0x94, 0x04, 0x80, 0x06, 0x22\n\t"
	".byte 0x90, 0x90, 0x90, 0x90, 0x90\n\t"
	"pushq kbi_return_hook_places+16*kbi_return_hook_i(%rip)\n\t"
	".cfi_def_cfa_offset 8\n\t.cfi_offset rip, -8\n\t"
	".byte 0xe9\n\t.long kbi_return_hook_through - . - 4\n\t"
	".cfi_endproc\n\t"
	".set kbi_return_hook_i, kbi_return_hook_i + 1\n\t"
	".endr\n\t"
	".size kbi_return_hook_doors, . - kbi_return_hook_doors\n"
	".type kbi_return_hook_through,@function\n"
	"kbi_return_hook_through:\n\t.cfi_startproc\n\t"
	KEEP(rax) KEEP(rcx) KEEP(rdx) KEEP(rsi) KEEP(rdi) KEEP(r8) KEEP(r9) KEEP(r10) KEEP(r11)
	"subq $32, %rsp\n\t.cfi_adjust_cfa_offset 32\n\t"
	"movups %xmm0, 0(%rsp)\n\tmovups %xmm1, 16(%rsp)\n\t"
	"leaq 104(%rsp), %rdi\n\tcall kbi_return_hook_returned\n\t"
	"movups 0(%rsp), %xmm0\n\tmovups 16(%rsp), %xmm1\n\t"
	"testq %rax, %rax\n\tje 3f\n\t"
	"movl %eax, %esi\n\tmovq %rdx, %rdi\n\tshrq $32, %rax\n\tmovl %eax, %edx\n\t"
	"testq %rdi, %rdi\n\tje 1f\n\t"
	"movl $234, %eax\n\tjmp 2f\n" /* tgkill; below: tkill */
	"1:\tmovl %esi, %edi\n\tmovl %edx, %esi\n\tmovl $200, %eax\n"
	"2:\tsyscall\n"
	".hidden kbi_return_hook_left\n.globl kbi_return_hook_left\n"
	"kbi_return_hook_left:\n"
	"3:\taddq $32, %rsp\n\t.cfi_adjust_cfa_offset -32\n\t"
	BACK(r11) BACK(r10) BACK(r9) BACK(r8) BACK(rdi) BACK(rsi) BACK(rdx) BACK(rcx) BACK(rax)
	"ret\n\t.cfi_endproc\n\t"
	".size kbi_return_hook_through, . - kbi_return_hook_through\n");

_Static_assert(SYS_tkill == 200 && SYS_tgkill == 234, "in the code above");

static uintptr_t door_address(unsigned i)
{
	return (uintptr_t)kbi_return_hook_doors + i * DOOR_SIZE + DOOR_AT;
}

/* ---- doors ----------------------------------------------------------------------------------- */

/* Frees a place. release: pairs with the CAS in take_hook_place, which may be another
 * thread's. */
static void free_hook_place(unsigned i)
{
	a_sub_rlx(&kbi_return_hook_in_use, 1);
	a_store_rel(&kbi_return_hook_places[i].slot, NULL);
}

/* Returns the place that an earlier return address in this word has left: the word holds a new
 * return address, so the old place is void. Returns DOORS if there is none. */
static unsigned find_hook_place(const uintptr_t *slot)
{
	unsigned i = 0;

	while (i < DOORS && a_load_rlx(&kbi_return_hook_places[i].slot) != (const void *)slot)
		i++;
	return i;
}

/* Frees the places of the owner, on whose stack we are, whose words have changed. */
static void sweep_hook_places(const void *owner)
{
	for (unsigned i = 0; i < DOORS; i++) {
		const uintptr_t *slot = a_load_rlx(&kbi_return_hook_places[i].slot);

		if (slot && owners[i] == owner && *slot != door_address(i))
			free_hook_place(i);
	}
}

static unsigned take_hook_place(uintptr_t *slot)
{
	for (unsigned i = 0; i < DOORS; i++) {
		void *none = NULL;

		/* acquire: pairs with the release in free_hook_place */
		if (!a_load_rlx(&kbi_return_hook_places[i].slot) &&
			a_cas_acq(&kbi_return_hook_places[i].slot, &none, slot)) {
			a_add_rlx(&kbi_return_hook_in_use, 1);
			return i;
		}
	}
	return DOORS;
}

/* ---- bounds of main's stack ------------------------------------------------------------------ */

extern void *__libc_stack_end __attribute__((weak));

static uintptr_t main_low, main_high;

/* Returns true if `end` is right below the program's arguments and the kernel's data, whose address
 * the kernel tells: at most 6 MiB. */
static bool is_below_arguments(uintptr_t end)
{
	enum { ARGUMENTS = 8 << 20 };
	uintptr_t data = getauxval(AT_RANDOM);

	return !data || data - end < ARGUMENTS;
}

void kbi_return_hook_learn(void)
{
	/* the kernel keeps so much free below main's stack, or as the limit was */
	enum { PAGE = 4096, MOST = 128 << 20 };
	const char *what = "end of main's stack",
		*without = "main is not preempted where it is deep in libc";
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

bool kbi_return_hook_is_on_main(uintptr_t sp)
{
	return !main_high || sp - main_low < main_high - main_low;
}

/* Returns true if the processor keeps a second copy of return addresses and compares them. The
 * instruction does nothing on processors without this feature. */
static bool has_shadow_stack(void)
{
	uintptr_t at = 0;

	__asm__ volatile(".byte 0xf3, 0x48, 0x0f, 0x1e, 0xc8" : "+a"(at)); /* rdsspq %rax */
	return at;
}

bool kbi_return_hook(const void *owner, uintptr_t *slot, uintptr_t low, size_t bytes)
{
	unsigned i;

	if (!bytes) {
		low = main_low;
		bytes = main_high - main_low;
	}
	if ((uintptr_t)slot - low >= bytes || has_shadow_stack())
		return false;
	i = find_hook_place(slot);
	if (i == DOORS && a_load_rlx(&kbi_return_hook_in_use))
		sweep_hook_places(owner);
	if (i == DOORS)
		i = take_hook_place(slot);
	if (i == DOORS)
		return false;
	owners[i] = owner;
	kbi_return_hook_places[i].back = *slot;
	*(volatile uintptr_t *)slot = door_address(i);
	return true;
}

/* Called by a door. Its word is a return address again. */
struct kbi_return_hook_signal kbi_return_hook_returned(uintptr_t *slot)
{
	static const struct kbi_return_hook_signal none;
	unsigned i = find_hook_place(slot);

	if (i < DOORS)
		free_hook_place(i);
	return kbi_return_hook_asks ? kbi_return_hook_asks() : none;
}

uintptr_t kbi_return_hook_place(void)
{
	return (uintptr_t)kbi_return_hook_left;
}

bool kbi_return_hook_is_door(uintptr_t at)
{
	return at - (uintptr_t)kbi_return_hook_doors < DOORS * DOOR_SIZE;
}

static void forget_hook_places(const void *owner, bool this)
{
	for (unsigned i = 0; i < DOORS; i++)
		if (a_load_rlx(&kbi_return_hook_places[i].slot) && (owners[i] == owner) == this)
			free_hook_place(i);
}

void kbi_return_hook_forget_those(const void *owner)
{
	forget_hook_places(owner, true);
}

void kbi_return_hook_forget_others(const void *owner)
{
	forget_hook_places(owner, false);
}

#else

void kbi_return_hook_learn(void)
{
}

bool kbi_return_hook_is_on_main(uintptr_t sp)
{
	(void)sp;
	return true;
}

bool kbi_return_hook(const void *owner, uintptr_t *slot, uintptr_t low, size_t bytes)
{
	(void)owner, (void)slot, (void)low, (void)bytes;
	return false;
}

uintptr_t kbi_return_hook_place(void)
{
	return 0;
}

bool kbi_return_hook_is_door(uintptr_t at)
{
	(void)at;
	return false;
}

void kbi_return_hook_forget_those(const void *owner)
{
	(void)owner;
}

void kbi_return_hook_forget_others(const void *owner)
{
	(void)owner;
}

#endif
