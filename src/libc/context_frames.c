/* libc/context_frames.c - tells whether a context is in one of libc's functions that may be left
 * anywhere, or in their callees, and finds the caller. The string functions and their callees take
 * no lock. regexec takes the lock of its regular expression; a thread that wants this lock waits in
 * the kernel and is found there. A thread in the allocator is not left. For any other function it
 * finds the place of the return address on the stack. Contract in context.h.
 * The information is in libc's own tables: .eh_frame, DWARF's call frame information, by which
 * unwinders find the caller from any instruction. Only the forms that occur for such functions are
 * understood; any other form gives no answer. x86-64. Runs in handlers, except for learn: the
 * tables are read-only, and no function of libc is called. */
#include <fnmatch.h>
#include <link.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <wchar.h>

#include "libc/context.h"
#include "libc/redirect.h"
#include "libc/unwind_table.h"

#if defined(__x86_64__)

typedef void code(void);

/* The variants for this processor, as in context_leaf.c. */
static code *const known[] = {
	(code *)memmem,  (code *)strstr,  (code *)strcasestr, (code *)strspn,  (code *)strcspn,
	(code *)strpbrk, (code *)strsep,  (code *)strtok_r, (code *)memccpy,   (code *)strcat,
	(code *)strncat,  (code *)stpcpy, (code *)stpncpy, (code *)memrchr, (code *)strchrnul,
	(code *)wcslen,  (code *)wcschr,   (code *)wcscmp, (code *)wcsstr,  (code *)wmemset,
	(code *)wmemcmp,    (code *)wmemchr, (code *)strtol,   (code *)strtoul, (code *)strtod,
	(code *)qsort,   (code *)qsort_r,    (code *)fnmatch, (code *)regexec,  (code *)mbstowcs,
	(code *)wcstombs,
};

/* Functions that hold the allocator's lock, or are half-way through its lists. */
static code *const never[] = {
	(code *)malloc, (code *)free, (code *)calloc, (code *)realloc, (code *)aligned_alloc,
	(code *)posix_memalign,
};

/* Functions that do not only return by their return address: they keep it for later, or determine
 * their caller by it. And functions that call the program back, which may leave them in its own
 * ways: by an exception, or a copy of the stack. */
static const char *const special[] = {
	"_setjmp", "setjmp", "__sigsetjmp", "vfork", "__vfork", "getcontext", "setcontext",
	"swapcontext", "makecontext", "dlopen", "dlmopen", "dlclose", "dlsym", "dlvsym", "dlinfo",
	"dladdr", "dladdr1", "dl_iterate_phdr", "mcount", "__fentry__", "qsort", "qsort_r", "bsearch",
	"lfind", "lsearch", "tsearch", "tfind", "tdelete", "twalk", "twalk_r", "tdestroy", "ftw",
	"ftw64", "nftw", "nftw64", "fts_open", "fts_children", "fts_read", "scandir", "scandir64",
	"scandirat", "scandirat64", "glob", "glob64", "argp_parse", "pthread_once", "call_once", "exit",
	"quick_exit", "__cxa_finalize", "pthread_exit", "thrd_exit", "__libc_start_main",
	"_obstack_begin", "_obstack_begin_1", "_obstack_newchunk", "fork", "_Fork", "clone", "__clone",
	"backtrace",
};

enum { KNOWN = 160, DEEPEST = 32 };

/* Beginnings of functions: the listed functions, and functions that they jump to at their end.
 * Constant once learnt. */
static struct starts {
	uintptr_t at[KNOWN];
	unsigned n;
} may, may_not, not_over;

/* ---- the tables ------------------------------------------------------------------------------ */

/* libc, and our allocator if it is the program's: range of code, unwind table (NULL: none), and
 * names. */
static struct module {
	const struct kbi_unwind_table *header;
	uintptr_t low, size, base;
	const ElfW(Dyn) *dynamic;
} libc, heap;

/* The description of a function. */
struct entry {
	uintptr_t from, to;
	const uint8_t *first, *first_end; /* instructions common to all functions of this kind */
	const uint8_t *own, *own_end;     /* instructions of this function */
	uint64_t code_step;
	int64_t data_step;
};

static uint32_t word_at(const uint8_t *p)
{
	uint32_t w;

	memcpy(&w, p, sizeof w);
	return w;
}

static uint64_t take_number(const uint8_t **p)
{
	uint64_t n = 0;
	unsigned shift = 0;

	do
		n |= (uint64_t)(**p & 127) << shift;
	while ((shift += 7) < 64 && (*(*p)++ & 128));
	return n;
}

static int64_t take_signed(const uint8_t **p)
{
	const uint8_t *begin = *p;
	uint64_t n = take_number(p);
	unsigned bits = 7 * (unsigned)(*p - begin);

	return bits < 64 && (n >> (bits - 1) & 1) ? (int64_t)(n | ~(uint64_t)0 << bits) : (int64_t)n;
}

/* Reads the kind of a common entry. C functions have two kinds: plain functions; and functions with
 * cleanups, whose entries contain the address of a function in four bytes and the encoding of their
 * own part. Only the addresses count here. Returns NULL for another kind. */
static const char *take_kind(const uint8_t **p)
{
	static const char *const kinds[] = { "zR", "zPLR" };

	for (size_t i = 0; i < kbi_countof(kinds); i++)
		if (memcmp(*p, kinds[i], strlen(kinds[i]) + 1) == 0) {
			*p += strlen(kinds[i]) + 1;
			return kinds[i];
		}
	return NULL;
}

/* Reads an entry common to many functions. Returns false if it is not understood. */
static bool read_common_entry(const uint8_t *p, struct entry *e)
{
	enum { VERSION = 1, RETURN = 16, BY_WAY_OF_4 = 0x9b };
	const char *kind;
	uint64_t size;

	e->first_end = p + 4 + word_at(p);
	p += 8;
	kind = *p++ == VERSION ? take_kind(&p) : NULL;
	if (!kind)
		return false;
	e->code_step = take_number(&p);
	e->data_step = take_signed(&p);
	if (*p++ != RETURN)
		return false;
	size = take_number(&p);
	e->first = p + size;
	if (kind[1] == 'P') {
		if (*p != KBI_UNWIND_RELATIVE_4 && *p != BY_WAY_OF_4)
			return false;
		p += 1 + 4 + 1;
	}
	return p + 1 == e->first && *p == KBI_UNWIND_RELATIVE_4;
}

static bool read_entry(const uint8_t *p, struct entry *e)
{
	const uint8_t *common = p + 4 - word_at(p + 4);
	uint64_t size;

	e->own_end = p + 4 + word_at(p);
	p += 8;
	e->from = (uintptr_t)p + (uintptr_t)(int32_t)word_at(p);
	e->to = e->from + word_at(p + 4);
	p += 8;
	size = take_number(&p);
	e->own = p + size;
	return read_common_entry(common, e);
}

static bool is_in_module(const struct module *m, uintptr_t at)
{
	return at - m->low < m->size;
}

/* Finds the description of the function that contains the address. Returns false if there is
 * none. */
static bool find_unwind_entry(uintptr_t at, struct entry *e)
{
	const struct kbi_unwind_table *t = is_in_module(&libc, at) ? libc.header :
		is_in_module(&heap, at) ? heap.header : NULL;
	int64_t i = t ? kbi_unwind_table_find(t, at) : -1;

	return i >= 0 && read_entry((const uint8_t *)kbi_unwind_table_place(t, t->pair[i].fde), e) &&
	       at - e->from < e->to - e->from;
}

/* ---- instructions of the tables -------------------------------------------------------------- */

enum { RBP = 6, RSP = 7, RETURN = 16, KEPT = 4 };

/* State at an instruction: the frame ends at register reg plus `end` bytes. The caller's rbp is at
 * the frame's end plus `rbp`; 0: still in the register. */
struct row {
	uint64_t reg;
	int64_t end, rbp;
};

struct run {
	const struct entry *e;
	uintptr_t at;     /* wanted address */
	uintptr_t loc;    /* current address */
	struct row row, first, kept[KEPT];
	unsigned n_kept;
};

/* Records where a register of the caller is saved. Returns false if the return address is not where
 * the call has put it. */
static bool set_place(struct run *r, uint64_t reg, int64_t place)
{
	if (reg == RBP)
		r->row.rbp = place;
	return reg != RETURN || place == -8;
}

static void restore_place(struct run *r, uint64_t reg)
{
	if (reg == RBP)
		r->row.rbp = r->first.rbp;
}

static bool keep_row(struct run *r)
{
	if (r->n_kept == KEPT)
		return false;
	r->kept[r->n_kept++] = r->row;
	return true;
}

static bool restore_row(struct run *r)
{
	if (r->n_kept == 0)
		return false;
	r->row = r->kept[--r->n_kept];
	return true;
}

static bool advance_loc(struct run *r, uint64_t by)
{
	r->loc += by * r->e->code_step;
	return true;
}

/* Executes an instruction that uses all bits for its operation. Returns false if it is not
 * understood. */
static bool run_long_instruction(struct run *r, unsigned op, const uint8_t **p)
{
	enum {
		NOP = 0x00, ADVANCE_1 = 0x02, ADVANCE_2 = 0x03, ADVANCE_4 = 0x04, KEEP = 0x0a,
		BRING_BACK = 0x0b, END_IS = 0x0c, END_REGISTER = 0x0d, END_OFFSET = 0x0e, ARGUMENTS = 0x2e,
	};
	const uint8_t *q = *p;

	switch (op) {
	case NOP:
		return true;
	case ADVANCE_1:
		*p += 1;
		return advance_loc(r, q[0]);
	case ADVANCE_2:
		*p += 2;
		return advance_loc(r, q[0] | (uint64_t)q[1] << 8);
	case ADVANCE_4:
		*p += 4;
		return advance_loc(r, word_at(q));
	case KEEP:
		return keep_row(r);
	case BRING_BACK:
		return restore_row(r);
	case END_IS:
		r->row.reg = take_number(p);
		r->row.end = (int64_t)take_number(p);
		return true;
	case END_REGISTER:
		r->row.reg = take_number(p);
		return true;
	case END_OFFSET:
		r->row.end = (int64_t)take_number(p);
		return true;
	case ARGUMENTS: /* size of arguments on the stack, for exception handlers inside a call */
		take_number(p);
		return true;
	default:
		return false;
	}
}

static bool run_instruction(struct run *r, const uint8_t **p)
{
	enum { KIND = 0xc0, ADVANCE = 0x40, IS_AT = 0x80, AS_FIRST = 0xc0 };
	unsigned op = *(*p)++, low = op & ~(unsigned)KIND;

	switch (op & KIND) {
	case ADVANCE:
		return advance_loc(r, low);
	case IS_AT:
		return set_place(r, low, (int64_t)take_number(p) * r->e->data_step);
	case AS_FIRST:
		restore_place(r, low);
		return true;
	default:
		return run_long_instruction(r, op, p);
	}
}

/* Executes instructions until they describe code behind the wanted instruction. */
static bool run_to(struct run *r, const uint8_t *p, const uint8_t *end)
{
	while (p < end && r->loc <= r->at)
		if (!run_instruction(r, &p))
			return false;
	return true;
}

static bool row_at(const struct entry *e, uintptr_t at, struct row *row)
{
	struct run r = { .e = e, .at = at, .loc = e->from };

	if (!run_to(&r, e->first, e->first_end))
		return false;
	r.first = r.row;
	if (!run_to(&r, e->own, e->own_end))
		return false;
	*row = r.row;
	return true;
}

/* ---- the caller ------------------------------------------------------------------------------ */

static bool has_start(const struct starts *s, uintptr_t from)
{
	for (unsigned i = 0; i < s->n; i++)
		if (s->at[i] == from)
			return true;
	return false;
}

struct frame {
	uintptr_t pc, sp, rbp;
};

static uintptr_t stack_word(uintptr_t at)
{
	return *(const uintptr_t *)at;
}

/* Moves the frame to the caller's. Returns false if the tables do not tell. */
static bool leave_frame(struct frame *f, const struct entry *e, uintptr_t at)
{
	struct row row;
	uintptr_t end;

	if (!row_at(e, at, &row) || (row.reg != RSP && row.reg != RBP))
		return false;
	end = (row.reg == RSP ? f->sp : f->rbp) + (uintptr_t)row.end;
	if (end <= f->sp || end % 8)
		return false;
	f->pc = stack_word(end - 8);
	if (row.rbp)
		f->rbp = stack_word(end + (uintptr_t)row.rbp);
	f->sp = end;
	return true;
}

uintptr_t kbi_context_known_returns_to(const void *context)
{
	const greg_t *reg = ((const ucontext_t *)context)->uc_mcontext.gregs;
	struct frame f = { (uintptr_t)reg[REG_RIP], (uintptr_t)reg[REG_RSP], (uintptr_t)reg[REG_RBP] };
	struct entry e;

	for (unsigned i = 0; i < DEEPEST; i++) {
		/* the byte behind a call may belong to the next function */
		uintptr_t at = f.pc - (i > 0);

		if (!find_unwind_entry(at, &e) || has_start(&may_not, e.from) ||
			!leave_frame(&f, &e, at))
			return 0;
		if (kbi_context_code(f.pc) != KBI_CODE_LIBC)
			return has_start(&may, e.from) ? f.pc : 0;
	}
	return 0;
}

/* Walks to the outermost frame of a run of frames. A function without callees on the stack may be
 * about to read its own return address; the allocators never do. Functions that read it later, or
 * keep it, are in `special`. */
uintptr_t *kbi_context_slot(const void *context)
{
	const greg_t *reg = ((const ucontext_t *)context)->uc_mcontext.gregs;
	struct frame f = { (uintptr_t)reg[REG_RIP], (uintptr_t)reg[REG_RSP], (uintptr_t)reg[REG_RBP] };
	struct entry e;

	for (unsigned i = 0; i < DEEPEST; i++) {
		uintptr_t at = f.pc - (i > 0);

		if (!find_unwind_entry(at, &e) || has_start(&not_over, e.from) ||
			!leave_frame(&f, &e, at))
			return NULL;
		if (kbi_context_code(f.pc) == KBI_CODE_LIBC || is_in_module(&heap, f.pc))
			continue;
		if (i == 0 && !has_start(&may_not, e.from) && !is_in_module(&heap, at))
			return NULL;
		return kbi_context_may_leave(f.pc) && kbi_context_follows_call(f.pc)
			? (uintptr_t *)(f.sp - sizeof f.sp) : NULL;
	}
	return NULL;
}

/* ---- learning -------------------------------------------------------------------------------- */

/* Search for the module that contains this address, in code or data. */
struct wanted {
	uintptr_t at;
	struct module *to;
};

static int match_module(struct dl_phdr_info *info, size_t size, void *arg)
{
	const struct wanted *w = arg;
	const struct kbi_unwind_table *h = NULL;
	const ElfW(Dyn) *dynamic = NULL;
	const ElfW(Phdr) *code = NULL;
	bool has = false;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t low = info->dlpi_addr + p->p_vaddr;

		has |= p->p_type == PT_LOAD && w->at - low < p->p_memsz;
		if (p->p_type == PT_LOAD && (p->p_flags & PF_X))
			code = p;
		else if (p->p_type == PT_DYNAMIC)
			dynamic = (const ElfW(Dyn) *)low;
		else if (p->p_type == PT_GNU_EH_FRAME)
			h = (const struct kbi_unwind_table *)low;
	}
	if (!has || !code || !dynamic)
		return has;
	*w->to = (struct module){ .low = info->dlpi_addr + code->p_vaddr, .size = code->p_memsz,
		.base = info->dlpi_addr, .dynamic = dynamic };
	if (kbi_unwind_table_is_known(h))
		w->to->header = h;
	return has;
}

static void learn_module(struct module *m, uintptr_t at)
{
	struct wanted w = { at, m };

	*m = (struct module){ .header = NULL };
	if (at)
		dl_iterate_phdr(match_module, &w);
}

static void learn_start(struct starts *s, uintptr_t from)
{
	if (s->n < KNOWN && !has_start(s, from))
		s->at[s->n++] = from;
}

/* Learns the beginnings of functions that this function jumps to. They are parts of it and return
 * to its caller. */
static void learn_jumps(struct starts *s, const struct entry *e)
{
	enum { JUMP = 0xe9, SIZE = 5 };
	struct entry to;

	for (const uint8_t *p = (const uint8_t *)e->from; p + SIZE <= (const uint8_t *)e->to; p++) {
		uintptr_t target = (uintptr_t)p + SIZE + (uintptr_t)(int32_t)word_at(p + 1);

		if (*p == JUMP && target - e->from >= e->to - e->from &&
			find_unwind_entry(target, &to) && to.from == target &&
			!has_start(&may_not, target))
			learn_start(s, target);
	}
}

static void learn_function(struct starts *s, uintptr_t fn)
{
	struct entry e;

	if (find_unwind_entry(fn, &e) && e.from == fn) {
		learn_start(s, e.from);
		learn_jumps(s, &e);
	}
}

static void learn_functions(struct starts *s, code *const *fn, size_t n)
{
	s->n = 0;
	for (size_t i = 0; i < n; i++)
		learn_function(s, (uintptr_t)fn[i]);
}

/* Learns libc's own functions, although we define some of these names. Asks no dlsym: another
 * thread may hold the loader's lock and wait for us. */
static void learn_special(void)
{
	enum { VERSIONS = 8 };
	struct kbi_redirect_place at[VERSIONS];

	not_over.n = 0;
	for (size_t i = 0; i < kbi_countof(special) && libc.dynamic; i++)
		for (unsigned n = kbi_redirect_originals(libc.base, libc.dynamic, special[i], at, VERSIONS);
			n > 0; n--)
			learn_function(&not_over, at[n - 1].at);
}

void kbi_context_frames_learn(void)
{
	learn_module(&libc, (uintptr_t)memmem);
	learn_module(&heap, (uintptr_t)kbi_context_added());
	learn_functions(&may_not, never, kbi_countof(never));
	learn_functions(&may, known, kbi_countof(known));
	learn_special();
}

#else

uintptr_t kbi_context_known_returns_to(const void *context)
{
	(void)context;
	return 0;
}

uintptr_t *kbi_context_slot(const void *context)
{
	(void)context;
	return NULL;
}

void kbi_context_frames_learn(void)
{
}

#endif
