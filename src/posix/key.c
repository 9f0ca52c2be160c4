/* posix/key.c - keys of thread-specific data. Values stay in libc's storage, in each thread's own
 * control block, so pthread_getspecific and pthread_setspecific are libc's. This unit keeps the
 * list of destructors and runs them when a lightweight thread ends; for kernel threads libc runs
 * them. tss_* are here because libc's call pthread_key_create inside libc, where we would not see
 * it. The order at a thread's end is libc's: thread_local objects first.
 * Callers: programs, posix/thread. No locks: a row belongs to the creator of the key. Never
 * switches. */
#include "posix/posix.h"

#include <limits.h>

#include "libc/names.h"
#include "posix/creator_module.h"

enum { KEYS = 1024 }; /* PTHREAD_KEYS_MAX of every glibc */

static aptr destructor_of[KEYS];
static a32 used; /* keys below this may have a destructor */

static void note_destructor(pthread_key_t key, void (*destructor)(void *))
{
	uint32_t n = a_load_rlx(&used);

	if (key >= KEYS)
		return;
	/* release: pairs with the acquire in run_destructor_round */
	a_store_rel(&destructor_of[key], (void *)destructor);
	while (n <= key && !a_cas_rel(&used, &n, key + 1))
		;
}

KBI_POSIX_API int pthread_key_create(pthread_key_t *key, void (*destructor)(void *))
{
	int e = kbi_libc()->pthread_key_create(key, destructor);

	kbi_creator_module_loads(__builtin_return_address(0));
	if (e == 0)
		note_destructor(*key, destructor);
	return e;
}

KBI_POSIX_ALIAS(__pthread_key_create, pthread_key_create);

KBI_POSIX_API int pthread_key_delete(pthread_key_t key)
{
	if (key < KEYS)
		a_store_rlx(&destructor_of[key], NULL);
	return kbi_libc()->pthread_key_delete(key);
}

KBI_POSIX_API int tss_create(tss_t *key, tss_dtor_t destructor)
{
	_Static_assert(sizeof(tss_t) == sizeof(pthread_key_t), "the same keys");
	return pthread_key_create(key, destructor) == 0 ? thrd_success : thrd_error;
}

KBI_POSIX_API void tss_delete(tss_t key)
{
	pthread_key_delete(key);
}

/* ---- the end of a thread ------------------------------------------------------------------ */

static bool run_destructor_round(void)
{
	/* acquire: pairs with the compare-and-swap in note_destructor */
	uint32_t n = a_load_acq(&used);
	bool any = false;

	for (pthread_key_t key = 0; key < n; key++) {
		/* acquire: pairs with the release in note_destructor */
		void (*destructor)(void *) = (void (*)(void *))a_load_acq(&destructor_of[key]);
		void *value = destructor ? pthread_getspecific(key) : NULL;

		if (!value)
			continue;
		pthread_setspecific(key, NULL);
		destructor(value);
		any = true;
	}
	return any;
}

/* Clears values that destructors have set again and again (POSIX lets us stop), and values without
 * a destructor. */
static void clear_key_values(void)
{
	/* acquire: pairs with the compare-and-swap in note_destructor */
	for (pthread_key_t key = 0; key < a_load_acq(&used); key++)
		if (pthread_getspecific(key))
			pthread_setspecific(key, NULL);
}

static void (*call_tls_dtors)(void);

/* Finds libc's function for thread_local objects of C++, which is not in any header. */
void kbi_key_find(void)
{
	call_tls_dtors = (void (*)(void))(uintptr_t)kbi_names_look_up("__call_tls_dtors");
}

void kbi_key_run_destructors(void)
{
	kbi_cancel_over();
	if (kbi_unlikely(kbi_posix_me.at_once)) {
		clear_key_values();
		return;
	}
	if (call_tls_dtors)
		call_tls_dtors();
	for (int i = 0; i < PTHREAD_DESTRUCTOR_ITERATIONS; i++)
		if (!run_destructor_round())
			return;
	clear_key_values();
}
