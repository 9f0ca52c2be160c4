/* mem/heap_guard.c - guarded blocks. Contract in heap_guard.h.
 *
 *   | no access | slot 0: no access | block, to the end | no access | slot 1 ...   each 64 KiB
 *
 * The pages of a block can be touched while the program has the block. Slots are used in turn: the
 * slot freed last is used last. A slot's state changes by compare-and-swap, so that there is no
 * lock that a fork or a fault could find held:
 *   EMPTY, FREED -> BUSY -> LIVE   taken
 *   LIVE -> BUSY -> FREED          freed: its pages are gone */
#include "mem/heap_guard.h"

#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "libc/names.h"
#include "os/random.h"
#include "os/sys.h"

enum { EMPTY, BUSY, LIVE, FREED };
enum { TRIES = 8, PATTERN = 0xa5 };

struct slot {
	a32 state;
	/* written by the thread that made it BUSY; reports read these fields, too */
	int taken_in, freed_in; /* kernel threads */
	size_t n;
	unsigned char *block;
	const void *taken_by, *freed_by;
};

struct kbi_guard kbi_guard;

static struct slot slots[KBI_GUARD_SLOTS];
static a32 turn;
static a32 stopped;
static uint64_t key[2]; /* constant */
static a64 drawn;
static size_t page;     /* constant */

void kbi_guard_setup(uint32_t every)
{
	size_t bytes = (2 * KBI_GUARD_SLOTS + 1) * (size_t)KBI_UNIT;
	void *p = every ? kbi_sys_mmap(NULL, bytes, PROT_NONE, MAP_NORESERVE) : NULL;

	if (!p)
		return;
	kbi_random(key, sizeof key);
	page = getauxval(AT_PAGESZ);
	kbi_guard = (struct kbi_guard){ (uintptr_t)p, bytes, every };
}

void kbi_guard_stop(void)
{
	a_store_rlx(&stopped, 1);
}

uint32_t kbi_guard_distance(void)
{
	uint64_t most = 2 * (uint64_t)kbi_guard.every - 1;

	return 1 + (uint32_t)(kbi_random_hash(key, a_add_rlx(&drawn, 1), 0) % most);
}

/* ---- places ---------------------------------------------------------------------------------- */

/* Returns the first address behind a slot. */
static uintptr_t end_of_slot(size_t i)
{
	return kbi_guard.base + (2 * i + 2) * KBI_UNIT;
}

static uintptr_t pages_of_slot(const struct slot *s)
{
	return (uintptr_t)s->block & ~(uintptr_t)(page - 1);
}

/* Returns the slot that contains the address, or lies right before it, or (the first slot) right
 * behind it. */
static size_t slot_near(uintptr_t at)
{
	size_t unit = (at - kbi_guard.base) / KBI_UNIT;

	return unit ? (unit - 1) / 2 : 0;
}

static bool change_slot_state(struct slot *s, uint32_t from, uint32_t to)
{
	/* acquire and release: pairs with itself (the previous change) and with the acquire in
	 * kbi_guard_explain; all writes of the slot's last user are visible */
	return a_cas_acqrel(&s->state, &from, to);
}

static size_t claim_slot(void)
{
	for (unsigned i = 0; i < TRIES; i++) {
		size_t k = a_add_rlx(&turn, 1) % KBI_GUARD_SLOTS;

		if (change_slot_state(&slots[k], FREED, BUSY) ||
		    change_slot_state(&slots[k], EMPTY, BUSY))
			return k;
	}
	return KBI_GUARD_SLOTS;
}

/* ---- taking and giving ----------------------------------------------------------------------- */

static bool open_pages(const struct slot *s, uintptr_t end)
{
	uintptr_t from = pages_of_slot(s);

	return kbi_sys(SYS_mprotect, from, end - from, PROT_READ | PROT_WRITE) == 0;
}

static void close_pages(const struct slot *s, uintptr_t end)
{
	uintptr_t from = pages_of_slot(s);

	kbi_sys(SYS_mprotect, from, end - from, PROT_NONE);
	kbi_sys(SYS_madvise, from, end - from, MADV_DONTNEED);
}

void *kbi_guard_take(size_t align, size_t n, const void *caller)
{
	size_t k, grain = align > KBI_HEAP_GRAIN ? align : KBI_HEAP_GRAIN;
	uintptr_t end;
	struct slot *s;

	if (n > KBI_HEAP_SMALL || align > page || a_load_rlx(&stopped) ||
	    (k = claim_slot()) == KBI_GUARD_SLOTS)
		return NULL;
	s = &slots[k];
	end = end_of_slot(k);
	s->n = n;
	s->block = (unsigned char *)((end - (n ? n : 1)) & ~(uintptr_t)(grain - 1));
	s->taken_by = caller;
	s->taken_in = kbi_sys_gettid();
	if (!open_pages(s, end)) {
		change_slot_state(s, BUSY, EMPTY);
		return NULL;
	}
	memset(s->block + n, PATTERN, end - (uintptr_t)s->block - n);
	change_slot_state(s, BUSY, LIVE);
	return s->block;
}

static KBI_NORETURN void abort_with_slot(const char *what, const void *p, const struct slot *s,
					 const void *caller)
{
	kbi_sys_fatal("heap: %s: address %p, block %p of %zu bytes, taken from %p by thread %d, "
		      "freed from %p by thread %d,"
		      " called from %p",
		      what, kbi_sys_shown(p), kbi_sys_shown(s->block), s->n,
		      kbi_sys_shown(s->taken_by), s->taken_in, kbi_sys_shown(s->freed_by),
		      s->freed_in, kbi_sys_shown(caller));
}

static void check_end(const struct slot *s, uintptr_t end, const void *caller)
{
	for (const unsigned char *c = s->block + s->n; (uintptr_t)c < end; c++)
		if (*c != PATTERN)
			abort_with_slot("overflow of a block", c, s, caller);
}

void kbi_guard_give(void *p, const void *caller)
{
	size_t k = slot_near((uintptr_t)p);
	struct slot *s = &slots[k];

	if (s->block != p)
		abort_with_slot("invalid free", p, s, caller);
	if (!change_slot_state(s, LIVE, BUSY))
		abort_with_slot("double free", p, s, caller);
	check_end(s, end_of_slot(k), caller);
	s->freed_by = caller;
	s->freed_in = kbi_sys_gettid();
	close_pages(s, end_of_slot(k));
	change_slot_state(s, BUSY, FREED);
}

size_t kbi_guard_bytes(const void *p, const void *caller)
{
	struct slot *s = &slots[slot_near((uintptr_t)p)];

	if (s->block != p || a_load_rlx(&s->state) != LIVE)
		abort_with_slot(s->block == p ? "use of a freed block" : "invalid free", p, s,
				caller);
	return s->n;
}

/* ---- faults ---------------------------------------------------------------------------------- */

static void report_freed_block(uintptr_t at, const struct slot *s)
{
	kbi_sys_message("heap: use of a freed block: address %p, at offset %zd of the block %p of %zu "
			"bytes, taken from %p"
			" by thread %d, freed from %p by thread %d",
			kbi_sys_shown((void *)at), (ptrdiff_t)(at - (uintptr_t)s->block),
			kbi_sys_shown(s->block), s->n, kbi_sys_shown(s->taken_by), s->taken_in,
			kbi_sys_shown(s->freed_by), s->freed_in);
}

static void report_block_overflow(uintptr_t at, const struct slot *s)
{
	bool behind = at >= (uintptr_t)s->block;
	size_t by = behind ? at - (uintptr_t)s->block - s->n : (uintptr_t)s->block - at;

	kbi_sys_message("heap: overflow of a block: address %p, %zu bytes %s the block %p of %zu "
			"bytes, taken from %p"
			" by thread %d",
			kbi_sys_shown((void *)at), by, behind ? "behind the end of" : "before",
			kbi_sys_shown(s->block), s->n, kbi_sys_shown(s->taken_by), s->taken_in);
}

void kbi_guard_explain(uintptr_t at)
{
	const struct slot *s;
	uint32_t state;

	if (!kbi_guard_has((void *)at))
		return;
	s = &slots[slot_near(at)];
	/* acquire: pairs with the release in change_slot_state */
	state = a_load_acq(&s->state);
	if (state == FREED || state == BUSY)
		report_freed_block(at, s);
	else if (state == LIVE)
		report_block_overflow(at, s);
}

/* libc's sigaction, looked up by name: called only in programs without the drop-in. */
static int (*set_action)(int sig, const struct sigaction *act, struct sigaction *old);

static void on_guard_fault(int sig, siginfo_t *info, void *context)
{
	struct sigaction by_default = { .sa_handler = SIG_DFL };

	(void)context;
	if (info->si_code > 0)
		kbi_guard_explain((uintptr_t)info->si_addr);
	/* The instruction runs again and ends the program, as without this handler; a signal that was
	 * sent is sent again. */
	set_action(sig, &by_default, NULL);
	if (info->si_code <= 0)
		kbi_sys(SYS_tgkill, kbi_sys(SYS_getpid), kbi_sys_gettid(), sig);
}

void kbi_guard_watch(void)
{
	struct sigaction sa = { .sa_sigaction = on_guard_fault,
		.sa_flags = SA_SIGINFO | SA_ONSTACK }, old;

	set_action = (int (*)(int, const struct sigaction *, struct sigaction *))(uintptr_t)
		kbi_names_look_up("sigaction");
	if (set_action && set_action(SIGSEGV, NULL, &old) == 0 && !(old.sa_flags & SA_SIGINFO) &&
	    old.sa_handler == SIG_DFL)
		set_action(SIGSEGV, &sa, NULL);
}
