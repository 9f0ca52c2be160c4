/* libc/tcb_reset.c - the end of a thread whose block will serve another: does what libc does at a
 * thread's end, as far as that can be reached, and sets TLS back. No list of modules is kept: the
 * image of the static TLS of a thread that never ran is a sentinel, which the loader keeps up to
 * date at every dlopen as all threads. So there is nothing to invalidate, no lock, and no
 * dl_iterate_phdr (except without glibc).
 * Callers: tcb, on the thread itself. No locks. */
#include "libc/tcb_priv.h"

#include "libc/asked.h"
#include "libc/names.h"
#include "libc/real.h"

#include <errno.h>
#include <limits.h>
#include <link.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#define DTV_UNALLOCATED ((void *)-1)

/* An element of libc's table of keys; checked at setup. */
struct key {
	uintptr_t seq;
	void (*destructor)(void *);
};

static struct {
	void (*call_tls_dtors)(void);
	const struct key *keys; /* PTHREAD_KEYS_MAX elements, or NULL */
} libc_end;

static void probe_destructor(void *unused)
{
	(void)unused;
}

/* Returns true if a key with a known destructor stands where the table should have it. */
static bool keys_as_expected(const struct key *table)
{
	pthread_key_t k;
	bool ok;

	if (!table || kbi_real.pthread_key_create(&k, probe_destructor))
		return false;
	ok = k < PTHREAD_KEYS_MAX && table[k].destructor == probe_destructor && (table[k].seq & 1);
	kbi_real.pthread_key_delete(k);
	return ok;
}

static void tell_keys(bool has_table)
{
	const char *what = "libc's own keys";

	if (libc_end.keys)
		kbi_asked_found(what, "has a known destructor where it should");
	else if (has_table)
		kbi_asked_missed(what, "not as expected: values of libc's own keys have no destructors");
	else
		kbi_asked_lacks(what, "not shown: values of libc's own keys have no destructors");
}

/* Returns false for a statically linked program, which has no names to look up. */
static bool has_names(void)
{
	return kbi_names_look_up("gnu_get_libc_version") != NULL;
}

bool kbi_tcb_reset_find(const char **why)
{
	const struct key *table = kbi_names_look_up("__pthread_keys");

	libc_end.call_tls_dtors = (void (*)(void))(uintptr_t)kbi_names_look_up("__call_tls_dtors");
	libc_end.keys = keys_as_expected(table) ? table : NULL;
	tell_keys(table != NULL);
	if (libc_end.call_tls_dtors) {
		kbi_asked_found("thread_local's end", "called by __call_tls_dtors");
		return true;
	}
	*why = "nothing calls thread_local's destructors before a thread ends (__call_tls_dtors)";
	return !KBI_TCB_GLIBC || !has_names();
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* Ends a key's value (POSIX pthread_key_create): removes the value before its destructor sees it.
 * Returns true if a destructor ran. */
static bool end_key(unsigned k)
{
	void *value = kbi_real.pthread_getspecific(k);
	void (*destructor)(void *);

	if (!value)
		return false;
	kbi_real.pthread_setspecific(k, NULL);
	destructor = libc_end.keys ? libc_end.keys[k].destructor : NULL;
	if (!destructor)
		return false;
	destructor(value);
	return true;
}

static KBI_NOINLINE void end_keys(void)
{
	bool again = true;

	for (unsigned round = 0; again && round <= PTHREAD_DESTRUCTOR_ITERATIONS; round++) {
		again = false;
		for (unsigned k = 0; k < PTHREAD_KEYS_MAX; k++)
			if (!(kbi_tcb_layout.born_keys[k / 64] >> k % 64 & 1))
				again |= end_key(k);
	}
}

static void reset_keys(struct kbi_tcb *t)
{
	char *used = (char *)t->pthread + kbi_tcb_layout.keys_used;

	if (kbi_tcb_layout.keys_used == KBI_TCB_NONE) {
		end_keys();
	} else if (kbi_unlikely(*used)) {
		end_keys();
		*used = 0;
	}
}

/* ---- from a file's image --------------------------------------------------------------------- */

static void set_range(char *to, const char *image, size_t in_file, size_t size, const char *self)
{
	for (size_t i = 0; i < size; i++) {
		char want = i < in_file ? image[i] : 0;

		if (to + i == self)
			i += sizeof(void *) - 1;
		else if (to[i] != want)
			to[i] = want;
	}
}

/* ---- static TLS ------------------------------------------------------------------------------ */

/* Copies room that dlopen may give to a module at any time, in all threads one after another, the
 * sentinel before most. If our copy of the sentinel's old bytes fell on such a module's new bytes,
 * the sentinel differs from our copy at the next comparison: the full fence puts our stores before
 * that load. Partner: the order of the loader's stores, the sentinel's first. */
static void match_image(char *to, const char *from, size_t size)
{
	while (kbi_unlikely(memcmp(to, from, size) != 0)) {
		memcpy(to, from, size);
		a_fence_sc();
	}
}

/* A pattern in the sentinel, where the first module to get static TLS late must reach. As long as
 * it is untouched, for most programs their whole life, the room need not be compared in each
 * block. */
static char untouched[KBI_TCB_WATCH_MAX];
static a32 late_modules; /* 1 once a module came late, or may have; never reset */

void kbi_tcb_reset_look_always(void)
{
	a_store_rlx(&late_modules, 1);
}

void kbi_tcb_reset_watch(void)
{
	struct kbi_tcb_span w = kbi_tcb_layout.watch;
	char *at = (char *)kbi_tcb_sentinel[1].tcb.tp + w.from;

	if (!w.size || memcmp(at, untouched, w.size) != 0) { /* it must still be zero */
		kbi_tcb_reset_look_always();
		return;
	}
	for (size_t i = 0; i < w.size; i++)
		untouched[i] = (char)(0xa7 ^ i * 29);
	memcpy(at, untouched, w.size);
}

static bool any_late_module(const char *image)
{
	if (a_load_rlx(&late_modules))
		return true;
	if (kbi_likely(memcmp(image + kbi_tcb_layout.watch.from, untouched,
		kbi_tcb_layout.watch.size) == 0))
		return false;
	a_store_rlx(&late_modules, 1);
	return true;
}

static void reset_static(char *tp)
{
	const char *image = kbi_tcb_sentinel[1].tcb.tp;

	for (unsigned i = 0; i < kbi_tcb_layout.copy.n; i++) {
		struct kbi_tcb_span s = kbi_tcb_layout.copy.at[i];

		memcpy(tp + s.from, image + s.from, s.size);
	}
	for (unsigned i = 0; i < kbi_tcb_layout.compare.n && any_late_module(image); i++) {
		struct kbi_tcb_span s = kbi_tcb_layout.compare.at[i];

		match_image(tp + s.from, image + s.from, s.size);
	}
	if (kbi_unlikely(kbi_tcb_layout.program.size))
		set_range(tp + kbi_tcb_layout.program.from, kbi_tcb_layout.program_image,
			  kbi_tcb_layout.program_in_file, kbi_tcb_layout.program.size,
			  tp + kbi_tcb_layout.self);
}

/* ---- dynamic TLS ----------------------------------------------------------------------------- */

/* Returns true if any module has a dynamic block. Mostly none has; the vector has room for 14 more
 * modules than there were at start. */
static inline bool has_dynamic(void *const *dtv, size_t n)
{
	uintptr_t any = 0;
	size_t i = 1;

	for (; i + 3 <= n; i += 4)
		any |= (uintptr_t)dtv[2 * i + 1] | (uintptr_t)dtv[2 * i + 3] | (uintptr_t)dtv[2 * i + 5] |
		       (uintptr_t)dtv[2 * i + 7];
	for (; i <= n; i++)
		any |= (uintptr_t)dtv[2 * i + 1];
	return any;
}

/* Frees blocks that were allocated at first use, as at a thread's end; the next use makes a new
 * block. The owner does not matter: a module that was closed since leaves its block here, too. */
static void clear_dynamic(char *tp)
{
	void **dtv = *(void ***)(tp + KBI_TCB_DTV);
	size_t n = (size_t)(uintptr_t)dtv[-2];

	for (size_t i = 1; i <= n; i++) {
		void *block = dtv[2 * i + 1];

		if (kbi_likely(!block))
			continue;
		dtv[2 * i] = DTV_UNALLOCATED;
		dtv[2 * i + 1] = NULL;
		free(block);
	}
}

/* ---- the slow way, without a known layout ---------------------------------------------------- */

struct module_reset {
	char *self; /* this word stays unchanged */
};

static int reset_module(struct dl_phdr_info *object, size_t size, void *arg)
{
	struct module_reset *r = arg;

	(void)size;
	for (unsigned i = 0; object->dlpi_tls_data && i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &object->dlpi_phdr[i];
		const char *image = (const char *)(object->dlpi_addr + p->p_vaddr);

		if (p->p_type == PT_TLS && !kbi_tcb_layout_foreign(object))
			set_range(object->dlpi_tls_data, image, p->p_filesz, p->p_memsz, r->self);
	}
	return 0;
}

static KBI_NOINLINE void reset_by_modules(struct kbi_tcb *t)
{
	struct module_reset r = { (char *)kbi_tcb_self_word(t) };

	dl_iterate_phdr(reset_module, &r);
}

/* ---- all of it ------------------------------------------------------------------------------- */

void kbi_tcb_end_values(struct kbi_tcb *t)
{
	if (libc_end.call_tls_dtors)
		libc_end.call_tls_dtors();
	reset_keys(t);
}

bool kbi_tcb_is_clear(const struct kbi_tcb *t)
{
	void *const *dtv = *(void ***)((char *)t->tp + KBI_TCB_DTV);

	if (kbi_tcb_layout.keys_used != KBI_TCB_NONE &&
		*((char *)t->pthread + kbi_tcb_layout.keys_used))
		return false;
	return !kbi_tcb_layout.image || !has_dynamic(dtv, (size_t)(uintptr_t)dtv[-2]);
}

void kbi_tcb_reset_values(struct kbi_tcb *t)
{
	kbi_tcb_end_values(t);
	if (kbi_unlikely(!kbi_tcb_layout.image))
		reset_by_modules(t);
	else if (!kbi_tcb_is_clear(t))
		clear_dynamic(t->tp);
}

/* Resets the rest. It does not call __libc_thread_freeres, which glibc < 2.34 exports: that would
 * switch malloc's cache off for the block's next threads. */
void kbi_tcb_finish(struct kbi_tcb *t, void *self)
{
	if (libc_end.call_tls_dtors)
		libc_end.call_tls_dtors();
	uselocale(LC_GLOBAL_LOCALE);
	kbi_real.pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	kbi_real.pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, NULL);
	if (kbi_likely(kbi_tcb_layout.image))
		reset_static(t->tp);
	*kbi_tcb_self_word(t) = self;
	errno = 0;
}
