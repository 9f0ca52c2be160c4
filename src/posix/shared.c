/* posix/shared.c - checks where libc's own mutexes, readers-writer locks, barriers and semaphores
 * store the mark of a process-shared object, and the fields that are used for lightweight threads.
 * The objects lie in the program's memory, and libraries built elsewhere make them, so the libc
 * that runs decides: one object of each kind is made by its functions and inspected. If a kind is
 * not as expected, the program gets an error when it makes such an object, and a message is
 * printed.
 * Contract in posix.h. Runs in the constructor, on a kernel thread of libc. Never switches. */
#include "posix/posix.h"

#include <semaphore.h>
#include <string.h>

#include "libc/asked.h"
#include "os/sys.h"

uint32_t kbi_shared_unknown;

static const char *const names[] = { "libc's mutexes", "shared conditions", "shared rwlocks",
	"shared barriers", "shared semaphores" };

int kbi_shared_refuse(enum kbi_shared kind)
{
	static a32 said;

	if (!(a_or_acqrel(&said, 1u << kind) >> kind & 1)) /* pairs with itself on another thread */
		kbi_asked_missed(names[kind], "not as expected: they are refused, ENOTSUP");
	return ENOTSUP;
}

static uint32_t read_object_word(const void *object, size_t at)
{
	uint32_t w;

	memcpy(&w, (const char *)object + at, sizeof w);
	return w;
}

/* ---- mutexes ------------------------------------------------------------------------------ */

enum { ROBUST = 16, PI = 32, PP = 64, SHARED = 128 };

/* True if the word is 0 free, 1 held, with the holder's number beside it. */
static bool locks_as_expected(pthread_mutex_t *m)
{
	const struct kbi_libc *libc = kbi_libc();
	bool ok = libc->pthread_mutex_trylock(m) == 0;

	ok = ok && m->__data.__lock == 1 && m->__data.__owner == kbi_sys_gettid();
	ok = ok && libc->pthread_mutex_unlock(m) == 0;
	return ok && !m->__data.__lock && !m->__data.__owner;
}

static int kind_of_new(int shared, int robust, int protocol, pthread_mutex_t *m)
{
	pthread_mutexattr_t a;

	pthread_mutexattr_init(&a);
	pthread_mutexattr_setpshared(&a, shared);
	pthread_mutexattr_setrobust(&a, robust);
	pthread_mutexattr_setprotocol(&a, protocol);
	return kbi_libc()->pthread_mutex_init(m, &a) ? 0
		: m->__data.__kind & (ROBUST | PI | PP | SHARED);
}

static bool knows_mutexes(void)
{
	const int own = PTHREAD_PROCESS_PRIVATE, live = PTHREAD_MUTEX_STALLED,
		plain = PTHREAD_PRIO_NONE;
	pthread_mutex_t m;

	return (kind_of_new(own, PTHREAD_MUTEX_ROBUST, plain, &m) & ROBUST) &&
	       kind_of_new(own, live, PTHREAD_PRIO_INHERIT, &m) == PI &&
	       kind_of_new(own, live, PTHREAD_PRIO_PROTECT, &m) == PP &&
	       kind_of_new(PTHREAD_PROCESS_SHARED, live, plain, &m) == SHARED && locks_as_expected(&m);
}

/* ---- other kinds -------------------------------------------------------------------------- */

static bool knows_rwlocks(void)
{
	const struct kbi_libc *libc = kbi_libc();
	pthread_rwlock_t shared, own;
	pthread_rwlockattr_t a;
	bool ok;

	pthread_rwlockattr_init(&a);
	libc->pthread_rwlock_init(&own, &a);
	pthread_rwlockattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
	libc->pthread_rwlock_init(&shared, &a);
	ok = shared.__data.__shared && !own.__data.__shared &&
		libc->pthread_rwlock_trywrlock(&shared) == 0;
	ok = ok && shared.__data.__cur_writer == kbi_sys_gettid() && shared.__data.__readers;
	ok = ok && libc->pthread_rwlock_unlock(&shared) == 0;
	return ok && !shared.__data.__cur_writer;
}

static bool knows_barriers(void)
{
	pthread_barrier_t shared, own;
	pthread_barrierattr_t a;

	pthread_barrierattr_init(&a);
	kbi_libc()->pthread_barrier_init(&own, &a, 1);
	pthread_barrierattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
	kbi_libc()->pthread_barrier_init(&shared, &a, 1);
	return read_object_word(&shared, KBI_SHARED_BARRIER_AT) &&
		!read_object_word(&own, KBI_SHARED_BARRIER_AT);
}

/* The value is in the numerically lower half of the 64 bits; our code reads it and waits for it. */
static bool knows_sems(void)
{
	enum { VALUE = 5, VALUE_AT = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4 : 0 };
	sem_t shared, own;

	kbi_libc()->sem_init(&own, 0, VALUE);
	kbi_libc()->sem_init(&shared, 1, VALUE);
	return read_object_word(&shared, KBI_SHARED_SEM_AT) &&
		!read_object_word(&own, KBI_SHARED_SEM_AT) &&
		read_object_word(&shared, VALUE_AT) == VALUE;
}

void kbi_shared_learn(void)
{
	bool known[] = {
		[KBI_SHARED_MUTEX] = knows_mutexes(),
			[KBI_SHARED_COND] = kbi_cond_flags_at != KBI_COND_FLAGS_UNKNOWN,
		[KBI_SHARED_RWLOCK] = knows_rwlocks(), [KBI_SHARED_BARRIER] = knows_barriers(),
		[KBI_SHARED_SEM] = knows_sems(),
	};

	for (unsigned i = 0; i < kbi_countof(known); i++) {
		if (!known[i])
			kbi_shared_unknown |= 1u << i;
		if (!known[i])
			kbi_asked_lacks(names[i], "not as expected: they are refused");
		else if (i == KBI_SHARED_COND)
			kbi_asked_found(names[i], "marked at byte %u", kbi_cond_flags_at);
		else
			kbi_asked_found(names[i], "as expected");
	}
}
