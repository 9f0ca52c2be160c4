/* libc/tcb_layout.c - finds where the parts of a block lie, by looking at two donors that never run
 * and at a third that reports, not from a table of libc versions. A part that cannot be found for
 * certain is left out, and the caller falls back: no template, a slower reset, or no blocks at all.
 * Callers: tcb (setup, single-threaded; and in a child of fork). Runs on any stack; no locks, no
 * switch. */
#include "libc/tcb_priv.h"

#include "libc/asked.h"
#include "libc/context.h"
#include "libc/names.h"
#include "libc/real.h"
#include "os/sys.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>
#if KBI_TCB_GLIBC
#include <gnu/libc-version.h>
#endif

enum {
	SENTINEL_ROOM = 256 << 10,   /* bytes of a sentinel's slab beside its static TLS */
	/* the younger sentinel's slab is larger by this, so that the size shows as a difference */
	SENTINEL_STEP = 64 << 10,
	STATIC_TLS_GUESS = 64 << 10,
	CONTROL_BLOCK_MAX = 4096,    /* bytes that are searched for the tid */
	CONTROL_BLOCK_APART = 200,   /* the same, where the control block is not in the slab */
	KEY_MARK = 0x6b6f6368,
	RSEQ_AREA = 64, /* bytes that libc may have set aside for rseq */
};

struct kbi_tcb_layout kbi_tcb_layout;
uint32_t kbi_tcb_turned;
struct kbi_tcb_sentinel kbi_tcb_sentinel[2];

extern void __asan_init(void) __attribute__((weak));
extern const ptrdiff_t __rseq_offset __attribute__((weak)); /* glibc >= 2.35 */

static bool covers_address(const struct dl_phdr_info *object, const void *address)
{
	uintptr_t a = (uintptr_t)address - object->dlpi_addr;

	for (unsigned i = 0; address && i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &object->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && a >= p->p_vaddr && a - p->p_vaddr < p->p_memsz)
			return true;
	}
	return false;
}

/* Returns AddressSanitizer's initialiser or NULL. It is there from the program's start, or
 * never. */
static const void *asan_init(void)
{
	static const void *found;
	static bool looked;

	if (looked)
		return found;
	looked = true;
	found = kbi_names_definition("__asan_init");
	if (!found) /* -static-libasan: in the program, whose dynamic symbols do not show it */
		found = (const void *)__asan_init;
	return found;
}

bool kbi_tcb_made_through_asan(void)
{
	const void *init = asan_init();
	Dl_info its, maker;

	return init && dladdr(init, &its) && dladdr((const void *)kbi_real.pthread_create, &maker) &&
	       its.dli_fbase == maker.dli_fbase;
}

static bool is_sanitizer(const struct dl_phdr_info *object)
{
	return kbi_tcb_made_through_asan() && covers_address(object, asan_init());
}

bool kbi_tcb_layout_foreign(const struct dl_phdr_info *object)
{
	uintptr_t loader = getauxval(AT_BASE);

#if KBI_TCB_GLIBC
	if (covers_address(object, (const void *)gnu_get_libc_version))
		return true;
#endif
	if (loader && object->dlpi_addr == loader)
		return true;
	/* the allocator's TLS word names the kernel thread that runs, not the thread */
	if (kbi_context_added() && covers_address(object, kbi_context_added()))
		return true;
	return object->dlpi_name[0] && is_sanitizer(object);
}

/* ---- sentinels ------------------------------------------------------------------------------- */

static size_t static_tls_size(void)
{
	void (*info)(size_t *size, size_t *align) =
		(void (*)(size_t *, size_t *))(uintptr_t)kbi_names_look_up("_dl_get_tls_static_info");
	size_t size = 0, align = 0;

	if (info)
		info(&size, &align);
	return size;
}

static void note_tid(struct kbi_tcb *t)
{
	struct kbi_tcb_sentinel *s = kbi_container(t, struct kbi_tcb_sentinel, tcb);

	s->tid = (uint32_t)kbi_sys_gettid();
}

static int make_sentinel(struct kbi_tcb_sentinel *s, size_t size)
{
	int err;

	memset(s, 0, sizeof(*s));
	s->tcb.id = KBI_TCB_ID_LIMIT + (uint32_t)(s - kbi_tcb_sentinel);
	s->tcb.slab_size = size;
	s->tcb.slab_low = kbi_sys_map(size);
	if (!s->tcb.slab_low)
		return ENOMEM;
	err = kbi_tcb_donor_make(&s->tcb);
	if (err)
		kbi_sys_unmap(s->tcb.slab_low, size);
	return err;
}

static int make_sentinels(void)
{
	size_t tls = static_tls_size(), size;
	int err;

	size = ((tls ? tls : STATIC_TLS_GUESS) + SENTINEL_ROOM + KBI_PAGE - 1) & -(size_t)KBI_PAGE;
	kbi_tcb_donor_look = note_tid;
	err = make_sentinel(&kbi_tcb_sentinel[0], size);
	if (!err)
		err = make_sentinel(&kbi_tcb_sentinel[1], size + SENTINEL_STEP);
	kbi_tcb_donor_look = NULL;
	return err;
}

static bool inside_slab(const struct kbi_tcb *t, const char *p)
{
	return p >= t->slab_low && p < t->slab_low + t->slab_size;
}

/* Returns the bytes of the control block from pthread_self() on that are certainly mapped. */
static size_t control_block_size(const struct kbi_tcb *t)
{
	char *pd = (char *)t->pthread, *end = t->slab_low + t->slab_size;

	if (!inside_slab(t, pd))
		return CONTROL_BLOCK_APART;
	if ((char *)t->tp > pd)
		end = t->tp;
	return end - pd < CONTROL_BLOCK_MAX ? (size_t)(end - pd) : CONTROL_BLOCK_MAX;
}

/* ---- the owner word -------------------------------------------------------------------------- */

static bool holds_tid(const struct kbi_tcb_sentinel *s, size_t offset)
{
	return *(uint32_t *)(s->tcb.pthread + offset) == s->tid;
}

/* Finds the only word that held the kernel's tid in both sentinels. */
static bool find_tid(void)
{
	size_t size = control_block_size(&kbi_tcb_sentinel[0].tcb);
	unsigned hits = 0;

	for (size_t o = 0; o + sizeof(uint32_t) <= size; o += sizeof(uint32_t)) {
		if (!holds_tid(&kbi_tcb_sentinel[0], o) || !holds_tid(&kbi_tcb_sentinel[1], o))
			continue;
		kbi_tcb_layout.tid = (ptrdiff_t)o;
		hits++;
	}
	return hits == 1;
}

static void own_tids(void)
{
	for (size_t i = 0; i < kbi_countof(kbi_tcb_sentinel); i++) {
		const struct kbi_tcb *t = &kbi_tcb_sentinel[i].tcb;

		*kbi_tcb_tid_word(t) = kbi_tcb_own_tid(t);
	}
}

int kbi_tcb_layout_renew(void)
{
	int err = make_sentinels();

	if (!err)
		own_tids();
	return err;
}

/* ---- pthread keys ---------------------------------------------------------------------------- */

static struct key_probe {
	pthread_key_t key;
	char before[CONTROL_BLOCK_MAX];
} *key_probe;

static bool part_of_slot(const char *pd, size_t o, size_t size)
{
	uint64_t w[3];

	o &= ~(size_t)7;
	if (o + sizeof(w) > size)
		return false;
	memcpy(w, pd + o, sizeof(w));
	return w[0] == KEY_MARK || w[1] == KEY_MARK;
}

static void note_born_keys(void)
{
	for (unsigned k = 0; k < PTHREAD_KEYS_MAX; k++)
		if (k != key_probe->key && kbi_real.pthread_getspecific(k))
			kbi_tcb_layout.born_keys[k / 64] |= (uint64_t)1 << k % 64;
}

/* Finds the byte that went from 0 to 1 when the thread first stored a value, beside the value's own
 * slot. */
static void probe_keys_used(struct kbi_tcb *t)
{
	char *pd = (char *)t->pthread;
	size_t size = control_block_size(t);
	ptrdiff_t found = KBI_TCB_NONE;
	void *before = kbi_real.pthread_getspecific(key_probe->key);

	note_born_keys();
	memcpy(key_probe->before, pd, size);
	kbi_real.pthread_setspecific(key_probe->key, (void *)(uintptr_t)KEY_MARK);
	for (size_t o = 0; o < size; o++) {
		if (pd[o] == key_probe->before[o] || part_of_slot(pd, o, size))
			continue;
		if (key_probe->before[o] == 0 && pd[o] == 1)
			found = found == KBI_TCB_NONE ? (ptrdiff_t)o : CONTROL_BLOCK_MAX;
	}
	kbi_real.pthread_setspecific(key_probe->key, before);
	if (found < CONTROL_BLOCK_MAX)
		kbi_tcb_layout.keys_used = found;
}

static bool any_born_keys(void)
{
	uint64_t any = 0;

	for (size_t i = 0; i < kbi_countof(kbi_tcb_layout.born_keys); i++)
		any |= kbi_tcb_layout.born_keys[i];
	return any;
}

/* Reports the result. A thread that is born with values has used keys before it is looked at. */
static void tell_keys(void)
{
	const char *what = "keys in use", *how = "all of libc's own are looked at when a thread ends";

	if (kbi_tcb_layout.keys_used != KBI_TCB_NONE)
		kbi_asked_found(what, "at byte %td", kbi_tcb_layout.keys_used);
	else if (KBI_TCB_GLIBC && !any_born_keys())
		kbi_asked_missed(what, "not found: %s", how);
	else
		kbi_asked_lacks(what, "%s", how);
}

/* Makes a third donor and finds the byte in it. The donor stays: it is small, and starting must not
 * need to end blocks. */
static int find_keys(void)
{
	static struct kbi_tcb probe;
	size_t room = kbi_tcb_sentinel[0].tcb.slab_size;
	struct key_probe *k = kbi_sys_map(sizeof(*k));
	bool own;
	int err;

	probe = (struct kbi_tcb){ .slab_size = room, .id = KBI_TCB_ID_LIMIT + 2 };
	probe.slab_low = kbi_sys_map(room);
	kbi_tcb_layout.keys_used = KBI_TCB_NONE;
	if (!k || !probe.slab_low)
		return ENOMEM;
	/* if the program has all keys, the first of its own serves: the donor has no value for it */
	own = kbi_real.pthread_key_create(&k->key, NULL) == 0;
	key_probe = k;
	kbi_tcb_donor_look = probe_keys_used;
	err = kbi_tcb_donor_make(&probe);
	kbi_tcb_donor_look = NULL;
	if (own)
		kbi_real.pthread_key_delete(k->key);
	if (!err)
		*kbi_tcb_tid_word(&probe) = kbi_tcb_own_tid(&probe);
	kbi_sys_unmap(k, sizeof(*k));
	return err;
}

/* ---- static TLS ------------------------------------------------------------------------------ */

enum module_kind { PLAIN, FOREIGN, SANITIZED_PROGRAM };

struct module {
	struct kbi_tcb_span span;
	size_t id;
	enum module_kind kind;
};

struct modules {
	char *tp;
	unsigned n;
	bool too_many;
	bool late; /* some modules may have come and gone, or be where this thread cannot see them */
	struct module at[KBI_TCB_SPANS];
};

static enum module_kind kind_of_module(const struct dl_phdr_info *object, const ElfW(Phdr) *tls,
	ptrdiff_t from)
{
	if (kbi_tcb_layout_foreign(object))
		return FOREIGN;
	if (!is_sanitizer(object))
		return PLAIN;
	kbi_tcb_layout.program = (struct kbi_tcb_span){ from, tls->p_memsz };
	kbi_tcb_layout.program_image = (const char *)(object->dlpi_addr + tls->p_vaddr);
	kbi_tcb_layout.program_in_file = tls->p_filesz;
	return SANITIZED_PROGRAM;
}

static int add_module(struct dl_phdr_info *object, size_t size, void *arg)
{
	struct modules *m = arg;

	(void)size;
	m->late |= object->dlpi_subs > 0;
	for (unsigned i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &object->dlpi_phdr[i];
		ptrdiff_t from = (char *)object->dlpi_tls_data - m->tp;

		if (p->p_type != PT_TLS)
			continue;
		if (kbi_tcb_layout.align < p->p_align)
			kbi_tcb_layout.align = p->p_align;
		if (!object->dlpi_tls_data || from < kbi_tcb_layout.tls_from ||
			from >= kbi_tcb_layout.tls_to) {
			m->late = true;
			continue;
		}
		m->too_many |= m->n == KBI_TCB_SPANS;
		if (!m->too_many)
			m->at[m->n++] = (struct module){ { from, p->p_memsz }, object->dlpi_tls_modid,
							 kind_of_module(object, p, from) };
	}
	return 0;
}

/* Returns true if the offset is in static TLS. Our module and libc are among the first modules:
 * their TLS must lie where the loader says that static TLS lies. */
static bool is_static(ptrdiff_t at)
{
	return at >= kbi_tcb_layout.tls_from && at < kbi_tcb_layout.tls_to;
}

static bool find_static_tls(void)
{
	const struct kbi_tcb *t = &kbi_tcb_sentinel[1].tcb;
	size_t size = static_tls_size();

	if (!size || !inside_slab(t, t->tp))
		return false;
	kbi_tcb_layout.tls_from = KBI_TCB_TLS_BELOW ? (ptrdiff_t)(kbi_tcb_layout.above - size) : 0;
	kbi_tcb_layout.tls_to = KBI_TCB_TLS_BELOW ? 0 : (ptrdiff_t)kbi_tcb_layout.above;
	return kbi_tcb_layout.tls_from >= -(ptrdiff_t)kbi_tcb_layout.below &&
		is_static(kbi_tcb_layout.self) && is_static((char *)&errno - (char *)kbi_tp_get());
}

static void sort_modules(struct modules *m)
{
	for (unsigned i = 1; i < m->n; i++)
		for (unsigned j = i; j > 0 && m->at[j].span.from < m->at[j - 1].span.from; j--) {
			struct module x = m->at[j];

			m->at[j] = m->at[j - 1];
			m->at[j - 1] = x;
		}
}

static bool add_span(struct kbi_tcb_spans *s, ptrdiff_t from, ptrdiff_t to)
{
	if (from >= to)
		return true;
	if (s->n == KBI_TCB_SPANS)
		return false;
	s->at[s->n++] = (struct kbi_tcb_span){ from, (size_t)(to - from) };
	return true;
}

/* As add_span, without the word that holds `self`: that word must never be seen empty, above all by
 * a signal handler. */
static bool add_but_self(struct kbi_tcb_spans *s, ptrdiff_t from, ptrdiff_t to)
{
	ptrdiff_t self = kbi_tcb_layout.self, end = self + (ptrdiff_t)sizeof(void *);

	if (self < from || self >= to)
		return add_span(s, from, to);
	return add_span(s, from, self) && add_span(s, end, to);
}

/* Divides static TLS into plain modules, foreign modules, and room between and beyond them. */
static bool lay_out_static_tls(struct modules *m)
{
	ptrdiff_t at = kbi_tcb_layout.tls_from;
	bool ok = !m->too_many;

	if (!KBI_TCB_TLS_BELOW)
		at += 2 * (ptrdiff_t)sizeof(void *); /* the head of the control block */
	sort_modules(m);
	for (unsigned i = 0; ok && i < m->n; i++) {
		ptrdiff_t from = m->at[i].span.from, to = from + (ptrdiff_t)m->at[i].span.size;

		ok = add_but_self(&kbi_tcb_layout.compare, at, from);
		if (m->at[i].kind == FOREIGN)
			ok = ok && add_span(&kbi_tcb_layout.keep, from, to);
		else if (m->at[i].kind == PLAIN)
			ok = ok && add_but_self(&kbi_tcb_layout.copy, from, to);
		at = to > at ? to : at;
	}
	return ok && add_but_self(&kbi_tcb_layout.compare, at, kbi_tcb_layout.tls_to);
}

/* Finds the watched bytes. The loader gives out the room from its end at the modules, leaving no
 * more than an alignment's worth: the first module to get some shows in the bytes next to today's
 * last module. rseq's area may lie between. */
static void find_watch(const struct modules *m)
{
	ptrdiff_t low = m->at[0].span.from, high = 0, from, size = (ptrdiff_t)kbi_tcb_layout.align + 16;

	for (unsigned i = 0; i < m->n; i++) {
		ptrdiff_t end = m->at[i].span.from + (ptrdiff_t)m->at[i].span.size;

		high = end > high ? end : high;
	}
	if (&__rseq_offset && __rseq_offset != 0 && __rseq_offset < low)
		low = __rseq_offset;
	if (&__rseq_offset && __rseq_offset != 0 && __rseq_offset + RSEQ_AREA > high)
		high = __rseq_offset + RSEQ_AREA;
	from = KBI_TCB_TLS_BELOW ? low - size : high;
	if (!m->late && size <= KBI_TCB_WATCH_MAX && from >= kbi_tcb_layout.tls_from &&
	    from + size <= kbi_tcb_layout.tls_to)
		kbi_tcb_layout.watch = (struct kbi_tcb_span){ from, (size_t)size };
}

/* ---- the dynamic thread vector --------------------------------------------------------------- */

/* Returns true if the vector is as tcb_reset.c expects: pairs (address, pointer to free), numbered
 * by module, and static modules have nothing to free. */
static bool check_dtv(const struct modules *m)
{
	const struct kbi_tcb *t = &kbi_tcb_sentinel[1].tcb;
	const ptrdiff_t at = KBI_TCB_DTV;
	void **dtv = *(void ***)((char *)t->tp + at);

	if ((uintptr_t)dtv % sizeof(*dtv) || !kbi_sys_can_read(dtv - 2, 2 * sizeof(*dtv)))
		return false;
	for (unsigned i = 0; i < m->n; i++) {
		if (m->at[i].id == 0 || m->at[i].id > (uintptr_t)dtv[-2] ||
		    !kbi_sys_can_read(dtv + 2 * m->at[i].id, 2 * sizeof(*dtv)))
			return false;
		if (dtv[2 * m->at[i].id] != (char *)t->tp + m->at[i].span.from || dtv[2 * m->at[i].id + 1])
			return false;
	}
	return m->n > 0;
}

static void find_tls(void)
{
	static struct modules modules;

	if (!KBI_TCB_GLIBC || !find_static_tls())
		return;
	modules = (struct modules){ .tp = kbi_tp_get() };
	dl_iterate_phdr(add_module, &modules);
	kbi_tcb_layout.image = lay_out_static_tls(&modules) && check_dtv(&modules);
	if (kbi_tcb_layout.image)
		find_watch(&modules);
}

static void tell_tls(void)
{
	const char *what = "static TLS";

	if (kbi_tcb_layout.image)
		kbi_asked_found(what, "from %+td to %+td of the thread pointer, %u parts",
			kbi_tcb_layout.tls_from, kbi_tcb_layout.tls_to, kbi_tcb_layout.copy.n);
	else
		kbi_asked_lacks(what,
			"its layout was not found: a thread that ends sets it back module by module");
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void measure_block(void)
{
	const struct kbi_tcb *t = &kbi_tcb_sentinel[1].tcb;
	char *end = t->slab_low + t->slab_size, *frames = t->frames.sp;

	if (inside_slab(t, t->tp)) {
		kbi_tcb_layout.above = (size_t)(end - (char *)t->tp);
		kbi_tcb_layout.below = (size_t)((char *)t->tp - frames);
	} else {
		kbi_tcb_layout.below = (size_t)(end - frames);
	}
}

/* Rotates the ids by the process number, with an equal share of ids for each process number: so
 * processes have tids in common only by chance, and none if both have few threads. */
static void turn_ids(void)
{
	enum { PIDS = 1 << 22 /* PID_MAX_LIMIT */ };

	kbi_tcb_turned = (uint32_t)kbi_sys(SYS_getpid) % PIDS * (KBI_TCB_ID_LIMIT / PIDS);
}

int kbi_tcb_layout_find(void *self_tls, const char **why)
{
	int err;

	turn_ids();
	err = make_sentinels();
	if (err) {
		*why = "libc could not create a thread on a stack of ours";
		return err;
	}
	kbi_tcb_layout.align = KBI_CACHE_LINE;
	kbi_tcb_layout.self = (char *)self_tls - (char *)kbi_tp_get();
	measure_block();
	if (!find_tid()) {
		*why = "the thread id was not found in libc's control block";
		return ENOTSUP;
	}
	kbi_asked_found("thread's number", "at byte %td", kbi_tcb_layout.tid);
	own_tids();
	err = find_keys();
	if (err) {
		*why = "libc could not create a third thread";
		return err;
	}
	tell_keys();
	find_tls();
	tell_tls();
	return 0;
}
