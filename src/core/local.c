/* core/local.c - thread-specific data: keys with destructors. Values lie in blocks of 32, made when
 * first set. A key's sequence number is odd while the key is in use; a value counts only under the
 * number that it was set with, so a key that was deleted and created again starts empty in every
 * thread. Callers: the public interface, core/thread. */
#include <errno.h>
#include <stdlib.h>

#include <kochab/kochab.h>

#include "core/foreign.h"
#include "core/local.h"
#include "core/wait.h"

enum { BLOCK = 32, BLOCKS = KB_KEYS_MAX / BLOCK, ROUNDS = 4 };

struct value {
	uint64_t seq;
	void *data;
};

struct key {
	a64 seq;
	aptr destructor;
};

static struct key keys[KB_KEYS_MAX];

int kb_key_create(kb_key_t *key, void (*destructor)(void *))
{
	for (uint32_t k = 0; k < KB_KEYS_MAX; k++) {
		uint64_t seq = a_load_rlx(&keys[k].seq);

		/* acquire: partner is the CAS in kb_key_delete */
		if ((seq & 1) || !a_cas_acqrel(&keys[k].seq, &seq, seq + 1))
			/* release: partner is the acquire in run_destructors */
			continue;
		a_store_rel(&keys[k].destructor, (void *)(uintptr_t)destructor);
		*key = k;
		return 0;
	}
	return EAGAIN;
}

int kb_key_delete(kb_key_t key)
{
	uint64_t seq;

	if (key >= KB_KEYS_MAX)
		return EINVAL;
	seq = a_load_rlx(&keys[key].seq);
	a_store_rlx(&keys[key].destructor, NULL);
	/* release: partner is the CAS in kb_key_create */
	return (seq & 1) && a_cas_acqrel(&keys[key].seq, &seq, seq + 1) ? 0 : EINVAL;
}

static struct value *find_key_value(struct kb_thread *t, kb_key_t key)
{
	struct value **blocks = (struct value **)t->keys;

	return blocks && blocks[key / BLOCK] ? &blocks[key / BLOCK][key % BLOCK] : NULL;
}

static struct value *make_key_value(struct kb_thread *t, kb_key_t key)
{
	struct value **blocks;

	a_store_rlx(&kbi_foreign_at_end, (void *)(uintptr_t)kbi_local_exit);
	if (!t->keys)
		t->keys = calloc(BLOCKS, sizeof *t->keys);
	blocks = (struct value **)t->keys;
	if (!blocks)
		return NULL;
	kbi_san_in_use(blocks);
	if (!blocks[key / BLOCK])
		blocks[key / BLOCK] = calloc(BLOCK, sizeof(struct value));
	return find_key_value(t, key);
}

int kb_setspecific(kb_key_t key, const void *data)
{
	struct kb_thread *t = kbi_thread_of(kbi_self());
	struct value *v;
	uint64_t seq;

	if (key >= KB_KEYS_MAX)
		return EINVAL;
	/* acquire: partner is the CAS in kb_key_create */
	seq = a_load_acq(&keys[key].seq);
	if (!(seq & 1))
		return EINVAL;
	v = find_key_value(t, key);
	if (!v && !data)
		return 0;
	if (!v)
		v = make_key_value(t, key);
	if (!v)
		return ENOMEM;
	*v = (struct value){ seq, (void *)(uintptr_t)data };
	return 0;
}

void *kb_getspecific(kb_key_t key)
{
	struct value *v;

	if (key >= KB_KEYS_MAX)
		return NULL;
	v = find_key_value(kbi_thread_of(kbi_self()), key);
	return v && v->seq == a_load_rlx(&keys[key].seq) ? v->data : NULL;
}

/* Runs a round over all values; returns true if a destructor was called. */
static bool run_destructors(struct value **blocks)
{
	bool any = false;

	for (uint32_t k = 0; k < KB_KEYS_MAX; k++) {
		struct value *v = blocks[k / BLOCK] ? &blocks[k / BLOCK][k % BLOCK] : NULL;
		/* acquire: partner is the release in kb_key_create */
		void (*destructor)(void *) = (void (*)(void *))(uintptr_t)a_load_acq(&keys[k].destructor);
		void *data;

		if (!v || !v->data || v->seq != a_load_rlx(&keys[k].seq) || !destructor)
			continue;
		data = v->data;
		v->data = NULL;
		destructor(data);
		any = true;
	}
	return any;
}

void kbi_local_exit(struct kb_thread *t)
{
	struct value **blocks = (struct value **)t->keys;

	for (unsigned i = 0; i < ROUNDS && run_destructors(blocks); i++)
		;
	t->keys = NULL;
	for (uint32_t i = 0; i < BLOCKS; i++)
		free(blocks[i]);
	free(blocks);
}
