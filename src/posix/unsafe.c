/* posix/unsafe.c - makes the functions thread-safe that POSIX does not require to be. Results that
 * libc keeps at a single place for the process lie in blocks of the caller's own here, and
 * functions that work on common data have a lock that suspends the thread, not the virtual
 * processor. unsafe.def has a row for each function. A result is valid until the same thread calls
 * the same function again, as without threads. Values, errno and all else are libc's. While there
 * is a single thread, and inside our own library, libc's function is called directly.
 * Callers: programs. May switch. A cancellation may unwind these frames. */
#include "posix/posix.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <locale.h>
#include <mntent.h>
#include <netdb.h>
#include <netinet/ether.h>
#include <search.h>
#include <shadow.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <pwd.h>
#include <uchar.h>
#include <utmp.h>
#include <utmpx.h>
#include <wchar.h>

#include "core/vp.h"
#include "os/sys.h"

/* ---- libc's originals --------------------------------------------------------------------- */

struct originals {
#define COPY(result, name, parameters, ...) result (*name) parameters;
#define LOCK(result, name, parameters, ...) result (*name) parameters;
#define ENTRY(type, name, parameters, ...) type *(*name) parameters;
#define HENTRY(type, name, parameters, ...) type *(*name) parameters;
#define STATE(result, name, parameters, ...) result (*name) parameters;
#include "posix/unsafe.def"
	int (*mblen)(const char *, size_t);
	int (*mbtowc)(wchar_t *, const char *, size_t);
	int (*wctomb)(char *, wchar_t);
	int (*__wctomb_chk)(char *, wchar_t, size_t);
	char *(*crypt)(const char *, const char *);
	char *(*strerror)(int);
};

/* Serves getenv before our constructor: an allocator asks for its settings when it is first called,
 * perhaps by the look-up itself. */
static char *walk_environment(const char *name)
{
	size_t n = strlen(name);

	for (char **e = environ; e && *e; e++)
		if (strncmp(*e, name, n) == 0 && (*e)[n] == '=')
			return *e + n + 1;
	return NULL;
}

static char *walk_unless_secure(const char *name)
{
	return getauxval(AT_SECURE) ? NULL : walk_environment(name);
}

static struct originals table = { .getenv = walk_environment, .secure_getenv = walk_unless_secure };

#define SLOT(name) { #name, (void **)&table.name },

static const struct kbi_libc_row rows[] = {
#define COPY(result, name, ...) SLOT(name)
#define LOCK(result, name, ...) SLOT(name)
#define ENTRY(type, name, ...) SLOT(name)
#define HENTRY(type, name, ...) SLOT(name)
#define STATE(result, name, ...) SLOT(name)
#include "posix/unsafe.def"
	SLOT(mblen) SLOT(mbtowc) SLOT(wctomb) SLOT(__wctomb_chk) SLOT(crypt) SLOT(strerror)
};

#define REAL(name) \
	((__typeof__(table.name))(kbi_likely(table.name) ? (void *)table.name : \
				  kbi_libc_original(#name, (void **)&table.name)))

/* True if there is a single thread, or in a signal handler that interrupted our library and must
 * not wait here. */
static bool calls_libc_directly(void)
{
	struct kbi_task *self = kbi_posix_light();

	if (!kbi_vp_n && !kbi_posix_made_kernel)
		return true;
	return self && a_load_rlx(&self->np) > 0;
}

/* ---- locks -------------------------------------------------------------------------------- */

enum lock { ENVIRONMENT, BUFFER, RANDOM, TABLE, LOGINS, LOCKS };

#define FRESH { [0 ... LOCKS - 1] = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP }

static pthread_mutex_t locks[LOCKS] = FRESH;

static void fresh_locks(void)
{
	static const pthread_mutex_t fresh[LOCKS] = FRESH;

	memcpy(locks, fresh, sizeof(locks));
}

/* Looks the originals up. A child of fork has the calling thread only, so it gets fresh locks. */
void kbi_unsafe_resolve(void)
{
	static a32 ready;

	if (a_load_acq(&ready)) /* pairs with the release in kbi_libc_look_up */
		return;
	kbi_libc_look_up(rows, kbi_countof(rows), &ready);
	pthread_atfork(NULL, NULL, fresh_locks);
}

/* Takes the lock. The caller's turn may end first: a thread that does little else is inside libc,
 * called from here, whenever the tick comes, and a turn cannot end in libc. */
static pthread_mutex_t *hold_unsafe_lock(enum lock l)
{
	kbi_posix_let_turn_end();
	pthread_mutex_lock(&locks[l]);
	return &locks[l];
}

static void release_unsafe_lock(pthread_mutex_t **m)
{
	pthread_mutex_unlock(*m);
}

#define HOLDING(lock) \
	pthread_mutex_t *held __attribute__((cleanup(release_unsafe_lock), unused)) = \
		hold_unsafe_lock(lock)

/* ---- the caller's own blocks -------------------------------------------------------------- */

enum slot {
#define COPY(result, name, ...) SLOT_##name,
#define ENTRY(type, name, ...) SLOT_##name,
#define HENTRY(type, name, ...) SLOT_##name,
#define STATE(result, name, ...) SLOT_##name,
#define HAND(name, why) SLOT_##name,
#include "posix/unsafe.def"
	SLOTS
};

struct block {
	size_t size;
	char data[] KBI_ALIGNED(16);
};

struct kbi_unsafe_own {
	struct block *slot[SLOTS];
};

static void free_own(void *p)
{
	struct kbi_unsafe_own *own = p;

	for (int i = 0; i < SLOTS; i++)
		free(own->slot[i]);
	free(own);
}

void kbi_unsafe_thread_ends(void)
{
	if (!kbi_posix_me.own)
		return;
	free_own(kbi_posix_me.own);
	kbi_posix_me.own = NULL;
}

int __cxa_thread_atexit_impl(void (*fn)(void *), void *arg, void *dso);
extern void *__dso_handle;

static void kernel_thread_ends(void *unused)
{
	(void)unused;
	kbi_unsafe_thread_ends();
}

static struct kbi_unsafe_own *make_own(void)
{
	kbi_posix_me.own = calloc(1, sizeof(*kbi_posix_me.own));
	/* lightweight threads end in posix/thread; main's results last as long as the process */
	if (kbi_posix_me.own && !kbi_posix_light() && kbi_sys_gettid() != getpid())
		__cxa_thread_atexit_impl(kernel_thread_ends, NULL, &__dso_handle);
	return kbi_posix_me.own;
}

/* Returns a block with room for `size` bytes, zeroed when it is new; NULL and ENOMEM. */
static struct block *result_block(enum slot i, size_t size)
{
	struct kbi_unsafe_own *own = kbi_posix_me.own ? kbi_posix_me.own : make_own();
	struct block *b;

	if (!own)
		return NULL;
	b = own->slot[i];
	if (b && b->size >= size)
		return b;
	b = realloc(b, sizeof(*b) + size);
	if (!b)
		return NULL;
	if (!own->slot[i])
		memset(b->data, 0, size);
	b->size = size;
	own->slot[i] = b;
	return b;
}

/* Copies libc's result; bytes 0: it need not be copied. */
static void *copy_result(enum slot i, void *result, size_t bytes)
{
	struct block *b = bytes ? result_block(i, bytes) : NULL;

	if (!bytes)
		return result;
	return b ? memcpy(b->data, result, bytes) : NULL;
}

static mbstate_t *own_state(enum slot i)
{
	struct block *b = result_block(i, sizeof(mbstate_t));

	return b ? (mbstate_t *)(void *)b->data : NULL; /* NULL: libc's state */
}

/* ---- the functions ------------------------------------------------------------------------ */

/* libc's headers redirect and inline some of these names, so the definitions have names of their
 * own in C. */
#define DEFINE(result, name, parameters) \
	KBI_POSIX_API result kbi_unsafe_##name parameters __asm__(#name); \
	result kbi_unsafe_##name parameters

#define COPY(result, name, parameters, arguments, bytes, lock, why) \
	DEFINE(result, name, parameters) \
	{ \
		result r; \
\
		if (calls_libc_directly()) \
			return REAL(name) arguments; \
		HOLDING(lock); \
		r = REAL(name) arguments; \
		return r ? copy_result(SLOT_##name, r, bytes) : NULL; \
	}

#define LOCK(result, name, parameters, arguments, lock, why) \
	DEFINE(result, name, parameters) \
	{ \
		if (calls_libc_directly()) \
			return REAL(name) arguments; \
		HOLDING(lock); \
		return REAL(name) arguments; \
	}

enum { FIRST_SIZE = 1024 };

/* Expands to the arguments with a comma after them, if there are any. */
#define SPREAD(...) __VA_OPT__(__VA_ARGS__, )

/* Fetches an entry as libc does: a buffer that is too small is doubled. */
#define FETCH(type, name, arguments, too_small, ...) \
	struct block *b; \
	type *r = NULL; \
	int e; \
\
	if (calls_libc_directly()) \
		return REAL(name) arguments; \
	kbi_posix_let_turn_end(); \
	b = result_block(SLOT_##name, sizeof(type) + FIRST_SIZE); \
	while (b) { \
		e = name##_r(SPREAD arguments(type *)(void *) b->data, b->data + sizeof(type), \
			b->size - sizeof(type), \
			     &r __VA_OPT__(, __VA_ARGS__)); \
		if (e != ERANGE || !(too_small)) \
			break; \
		b = result_block(SLOT_##name, b->size * 2); \
	} \
	if (!b || e) \
		r = NULL

#define ENTRY(type, name, parameters, arguments, why) \
	DEFINE(type *, name, parameters) \
	{ \
		FETCH(type, name, arguments, true); \
		return r; \
	}

#define HENTRY(type, name, parameters, arguments, why) \
	DEFINE(type *, name, parameters) \
	{ \
		int host_error = 0; \
\
		FETCH(type, name, arguments, host_error == NETDB_INTERNAL, &host_error); \
		if (host_error) \
			h_errno = host_error; \
		return r; \
	}

#define STATE(result, name, parameters, arguments, why) \
	DEFINE(result, name, parameters) \
	{ \
		if (!ps) \
			ps = own_state(SLOT_##name); \
		return REAL(name) arguments; \
	}

#include "posix/unsafe.def"

/* ---- by hand ------------------------------------------------------------------------------ */

DEFINE(char *, strtok, (char *s, const char *ends))
{
	return strtok_r(s, ends, &kbi_posix_me.strtok_at);
}

/* For a number that libc knows, strerror_r returns libc's text. */
DEFINE(char *, strerror, (int number))
{
	enum { ROOM = 1024 }; /* libc's size */
	struct block *b = NULL;

	if (!calls_libc_directly() && strverscmp(gnu_get_libc_version(), "2.32") < 0)
		b = result_block(SLOT_strerror, ROOM);
	return b ? strerror_r(number, b->data, ROOM) : REAL(strerror)(number);
}

DEFINE(struct mntent *, getmntent, (FILE *f))
{
	enum { LINE = 4096 }; /* libc's size */
	struct block *b = result_block(SLOT_getmntent, sizeof(struct mntent) + LINE);

	return b ? getmntent_r(f, (struct mntent *)(void *)b->data, b->data + sizeof(struct mntent),
		LINE) : NULL;
}

/* Maps mbrtowc's two errors to -1. */
static int mb_char_length(size_t used)
{
	return used >= (size_t)-2 ? -1 : (int)used;
}

/* Measures a character from the initial state. s NULL: returns whether the encoding has shift
 * states. */
DEFINE(int, mblen, (const char *s, size_t n))
{
	mbstate_t state = { 0 };

	return s && *s ? mb_char_length(REAL(mbrtowc)(NULL, s, n, &state)) : REAL(mblen)(s, n);
}

DEFINE(int, mbtowc, (wchar_t *c, const char *s, size_t n))
{
	mbstate_t *state = own_state(SLOT_mbtowc);

	if (s)
		return mb_char_length(REAL(mbrtowc)(c, s, n, state));
	if (state)
		*state = (mbstate_t){ 0 };
	return REAL(mbtowc)(c, s, n);
}

DEFINE(int, wctomb, (char *s, wchar_t c))
{
	if (!s)
		return REAL(wctomb)(s, c);
	return (int)REAL(wcrtomb)(s, c, own_state(SLOT_wctomb));
}

DEFINE(int, __wctomb_chk, (char *s, wchar_t c, size_t room))
{
	if (!s)
		return REAL(wctomb)(s, c);
	return (int)REAL(__wcrtomb_chk)(s, c, own_state(SLOT___wctomb_chk), room);
}

/* Finds crypt in a libcrypt that dlopen may have loaded after us. */
static char *(*find_crypt(void))(const char *, const char *)
{
	static const char *const names[] = { "libcrypt.so.1", "libcrypt.so.2" };
	void *lib = NULL;

	for (size_t i = 0; i < kbi_countof(names) && !table.crypt; i++) {
		lib = dlopen(names[i], RTLD_LAZY | RTLD_NOLOAD);
		if (lib)
			table.crypt = (char *(*)(const char *, const char *))(uintptr_t)dlsym(lib, "crypt");
	}
	dlerror();
	return table.crypt;
}

DEFINE(char *, crypt, (const char *key, const char *salt))
{
	char *r = NULL;

	HOLDING(BUFFER);
	if (!REAL(crypt) && !find_crypt()) {
		errno = ENOSYS;
		return NULL;
	}
	r = table.crypt(key, salt);
	return r && !calls_libc_directly() ? copy_result(SLOT_crypt, r, strlen(r) + 1) : r;
}
