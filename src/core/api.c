/* core/api.c - the public interface of threads, kb_*: thin doors to core/thread. Contracts in
 * kochab/kochab.h. Runs on the caller's stack; locks nothing. */
#include <errno.h>
#include <string.h>

#include <kochab/kochab.h>

#include "base/option.h"
#include "core/agent.h"
#include "core/boot.h"
#include "core/dump.h"
#include "core/handoff.h"
#include "core/live_threads.h"
#include "core/place.h"
#include "core/slice.h"
#include "core/thread.h"
#include "core/timer.h"
#include "core/vp.h"
#include "core/yield.h"

enum { ATTR_MAGIC = 0x6b626174 };

struct attr {
	uint32_t magic;
	int32_t vp;
	uint64_t stack_size;
	void *stack_low;
	uint8_t detached, tls, scope;
	uint8_t special; /* an attribute besides tls was set */
	char name[KB_NAME_MAX];
};

_Static_assert(sizeof(struct attr) <= sizeof(kb_attr_t), "kb_attr_t is too small");

static struct attr *attr_of(const kb_attr_t *a)
{
	struct attr *at = (struct attr *)(uintptr_t)a;

	return at && at->magic == ATTR_MAGIC ? at : NULL;
}

int kb_attr_init(kb_attr_t *a)
{
	struct attr *at = (struct attr *)a;

	if (!at)
		return EINVAL;
	memset(a, 0, sizeof *a);
	at->magic = ATTR_MAGIC;
	at->vp = -1;
	return 0;
}

int kb_attr_setstacksize(kb_attr_t *a, size_t bytes)
{
	struct attr *at = attr_of(a);

	if (!at || bytes < KB_STACK_MIN)
		return EINVAL;
	at->special = 1;
	at->stack_size = bytes;
	return 0;
}

int kb_attr_getstacksize(const kb_attr_t *a, size_t *bytes)
{
	struct attr *at = attr_of(a);

	if (!at)
		return EINVAL;
	*bytes = at->stack_size ? at->stack_size : kbi_options.stack_size;
	return 0;
}

int kb_attr_setstack(kb_attr_t *a, void *lowest, size_t bytes)
{
	struct attr *at = attr_of(a);

	if (!at || !lowest || bytes < KB_STACK_MIN)
		return EINVAL;
	at->stack_low = lowest;
	at->special = 1;
	at->stack_size = bytes;
	return 0;
}

int kb_attr_setdetached(kb_attr_t *a, int detached)
{
	struct attr *at = attr_of(a);

	if (!at)
		return EINVAL;
	at->special = 1;
	at->detached = detached != 0;
	return 0;
}

int kb_attr_settls(kb_attr_t *a, enum kb_tls tls)
{
	struct attr *at = attr_of(a);

	if (!at || (tls != KB_TLS_LIGHT && tls != KB_TLS_OWN))
		return EINVAL;
	at->tls = (uint8_t)tls;
	return 0;
}

int kb_attr_setscope(kb_attr_t *a, enum kb_scope scope)
{
	struct attr *at = attr_of(a);

	if (!at || (scope != KB_SCOPE_PROCESS && scope != KB_SCOPE_SYSTEM))
		return EINVAL;
	at->special = 1;
	at->scope = (uint8_t)scope;
	return 0;
}

int kb_attr_setvp(kb_attr_t *a, int vp)
{
	struct attr *at = attr_of(a);

	if (!at || vp < -1)
		return EINVAL;
	at->special = 1;
	at->vp = vp;
	return 0;
}

static int copy_name(char *to, const char *name)
{
	if (strlen(name) >= KB_NAME_MAX)
		return ERANGE;
	strcpy(to, name);
	return 0;
}

int kb_attr_setname(kb_attr_t *a, const char *name)
{
	struct attr *at = attr_of(a);

	if (!at || !name)
		return EINVAL;
	at->special = 1;
	return copy_name(at->name, name);
}

int kb_init(void)
{
	return kbi_boot();
}

int kb_init_with(const char *options)
{
	int e;

	if (!options)
		return EINVAL;
	e = kbi_boot_has_vps() ? EALREADY : kbi_option_prefer(options);
	if (e)
		return e;
	if (kbi_boot_is_refused())
		kbi_boot_again(); /* the new options may be good */
	e = kbi_boot();
	if (e && kbi_boot_is_refused()) {
		kbi_option_prefer_no_more();
		kbi_boot_again();
	}
	return e;
}

const char *kb_version(void)
{
	return KOCHAB_VERSION;
}

unsigned kb_vp_count(void)
{
	return kbi_boot() ? 0 : kbi_vp_n;
}

int kb_vp_idle(unsigned vp, uint64_t *ns)
{
	if (vp >= kb_vp_count() || !ns)
		return EINVAL;
	*ns = kbi_agent_idle_ns(kbi_vps[vp]);
	return 0;
}

int kb_vp_ready(unsigned vp, unsigned *n)
{
	if (vp >= kb_vp_count() || !n)
		return EINVAL;
	*n = kbi_vp_backlog(kbi_vps[vp]);
	return 0;
}

int kb_vp_bind(unsigned vp, int processor)
{
	return vp < kb_vp_count() ? kbi_place_bind(kbi_vps[vp], processor) : EINVAL;
}

int kb_vp_bound(unsigned vp, int *processor)
{
	if (vp >= kb_vp_count() || !processor)
		return EINVAL;
	*processor = kbi_place_of(kbi_vps[vp]);
	return 0;
}

int kb_vp_self(void)
{
	struct kbi_task *self = kbi_self_raw();

	return self && self->vp ? (int)self->vp->id : -1;
}

unsigned kb_thread_count(void)
{
	return (unsigned)kbi_live_threads_sum() + a_load_rlx(&kbi_live_threads_servants);
}

const uint32_t *kb_thread_ever(void)
{
	return &kbi_live_threads_ever.v_;
}

void kb_thread_ever_reset(void)
{
	a_store_rlx(&kbi_live_threads_ever, 0);
}

int kb_option(const char *name, uint64_t *value)
{
	const struct kbi_option *o = name ? kbi_option_find(name, strlen(name)) : NULL;

	if (!o || !value || o->type == KBI_OPTION_CPUS || kbi_option_load())
		return EINVAL;
	*value = kbi_option_get(o);
	return 0;
}

uint64_t kb_now(void)
{
	return kbi_timer_now();
}

/* Creates the first thread, or a thread with special attributes. at may be NULL. */
static KBI_NOINLINE int create_special_thread(kb_thread_t *thread, const struct attr *at,
	void *(*fn)(void *), void *arg)
{
	struct kbi_thread_attr a = { .bound = -1 };
	int e = kbi_boot();

	if (e)
		return e;
	if (at) {
		a.stack_size = at->stack_size;
		a.stack_low = at->stack_low;
		a.bound = at->vp;
		a.detached = at->detached;
		a.own_tls = at->tls == KB_TLS_OWN;
		a.system_scope = at->scope == KB_SCOPE_SYSTEM;
		a.name = at->name[0] ? at->name : NULL;
	}
	return kbi_thread_create(thread, &a, fn, arg);
}

int kb_thread_create(kb_thread_t *thread, const kb_attr_t *attr, void *(*fn)(void *), void *arg)
{
	static const struct kbi_thread_attr own = { .bound = -1, .own_tls = true };
	const struct attr *at = (const struct attr *)attr;
	struct kbi_task *self = kbi_self_raw();

	if (!thread || !fn || (at && at->magic != ATTR_MAGIC))
		return EINVAL;
	/* a thread on a VP need not ask whether there are any */
	if (kbi_unlikely(!self || !self->vp || (at && at->special)))
		return create_special_thread(thread, at, fn, arg);
	if (at && at->tls == KB_TLS_OWN)
		return kbi_thread_create(thread, &own, fn, arg);
	return kbi_thread_create_light(self, thread, fn, arg);
}

int kb_thread_join(kb_thread_t thread, void **result)
{
	int e;

	/* a join is in brackets, where no handler runs */
	while ((e = kbi_thread_join(thread, result, KBI_FOREVER, kbi_wait_due)) == EINTR)
		kbi_wait_handle(kbi_self());
	return e;
}

int kb_thread_detach(kb_thread_t thread)
{
	return kbi_thread_detach(thread);
}

void kb_thread_exit(void *result)
{
	kbi_thread_exit(result);
}

kb_thread_t kb_thread_self(void)
{
	struct kbi_task *self = kbi_self_raw();

	/* a kernel thread that has no function of ours to run is foreign */
	return self && (self->vp || kbi_thread_of(self)->fn) ? kbi_thread_of(self) : NULL;
}

int kb_thread_setname(kb_thread_t t, const char *name)
{
	int e = kbi_descriptor_valid(t) ? copy_name(t->name, name) : ESRCH;

	if (!e)
		t->named = true;
	return e;
}

int kb_thread_getname(kb_thread_t t, char *buf, size_t size)
{
	if (!kbi_descriptor_valid(t))
		return ESRCH;
	if (size <= strlen(t->name))
		return ERANGE;
	strcpy(buf, t->name);
	return 0;
}

void kb_yield(void)
{
	kbi_yield_now();
}

void kb_sleep_until(uint64_t deadline)
{
	struct kbi_task *self = kbi_self();

	kbi_slice_note(self);
	for (;;) {
		kbi_wait_handle(self);
		if (kbi_timer_now() >= deadline)
			break;
		kbi_timer_sleep(self, deadline);
	}
}

void kb_sleep(uint64_t ns)
{
	uint64_t now = kbi_timer_now();

	kb_sleep_until(ns < KBI_FOREVER - now ? now + ns : KBI_FOREVER);
}

void kb_dump(int fd)
{
	kbi_dump(fd);
}

/* ---- blocking calls -------------------------------------------------------------------------- */

int kb_blocking_begin(void)
{
	kbi_handoff_begin(KBI_HANDOFF_PERHAPS);
	return 0;
}

int kb_blocking_end(void)
{
	return kbi_handoff_end() ? 0 : EINVAL;
}
