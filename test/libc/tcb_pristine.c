/* libc/tcb: a thread finds its block in the state of a new libc thread, even if the block has
 * served a thread that changed everything: errno, __thread, keys, locale, cancellation state, tid.
 * matrix: none */
#include "tcb_runner.h"

#include <locale.h>
#include <pthread.h>

static __thread int with_value = 77;
static __thread char zeroed[100];
static __thread struct { long a; char text[24]; } record __attribute__((aligned(64))) =
	{ 5, "initialised" };

/* Older glibc and musl do not reveal the destructors of their keys. */
#if defined(__GLIBC__)
static const bool keys_have_destructors = __GLIBC_PREREQ(2, 34);
#else
static const bool keys_have_destructors = false;
#endif
static pthread_key_t counted, plain, chained;
static int destroyed, chain;
static locale_t other_locale;
static pthread_t selves[2];

static void count(void *value)
{
	CHECK(value == &counted);
	CHECK(pthread_getspecific(counted) == NULL);
	destroyed++;
}

/* POSIX: a destructor may store a value again, for up to PTHREAD_DESTRUCTOR_ITERATIONS rounds. */
static void store_again(void *value)
{
	if (++chain < 3)
		pthread_setspecific(chained, value);
}

static void check_new(void)
{
	int state, type;

	CHECK_EQ(errno, 0);
	CHECK_EQ(with_value, 77);
	for (size_t i = 0; i < sizeof(zeroed); i++)
		CHECK_EQ(zeroed[i], 0);
	CHECK_EQ(record.a, 5);
	CHECK(!strcmp(record.text, "initialised"));
	CHECK_EQ((uintptr_t)&record % 64, 0);
	CHECK(pthread_getspecific(counted) == NULL);
	CHECK(pthread_getspecific(plain) == NULL);
	CHECK(pthread_getspecific(chained) == NULL);
	CHECK(uselocale((locale_t)0) == LC_GLOBAL_LOCALE);
	CHECK_EQ(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state), 0);
	CHECK_EQ(state, PTHREAD_CANCEL_ENABLE);
	CHECK_EQ(pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type), 0);
	CHECK_EQ(type, PTHREAD_CANCEL_DEFERRED);
}

static void change_all(void)
{
	errno = EXDEV;
	with_value = 1;
	memset(zeroed, 0x5a, sizeof(zeroed));
	record.a = 6;
	strcpy(record.text, "changed");
	CHECK_EQ(pthread_setspecific(counted, &counted), 0);
	CHECK_EQ(pthread_setspecific(plain, &plain), 0);
	CHECK_EQ(pthread_setspecific(chained, &chained), 0);
	uselocale(other_locale);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
}

static void check_changed(void)
{
	CHECK_EQ(errno, EXDEV);
	CHECK_EQ(with_value, 1);
	CHECK_EQ(zeroed[99], 0x5a);
	CHECK_EQ(record.a, 6);
	CHECK(pthread_getspecific(plain) == &plain);
	CHECK(uselocale((locale_t)0) == other_locale);
}

static void body(void *slot)
{
	pthread_t *self = slot;

	check_new();
	if (*self)
		CHECK(pthread_equal(*self, pthread_self()));
	*self = pthread_self();
	change_all();
	runner_pause();
	check_changed();
	CHECK(pthread_equal(*self, pthread_self()));
}

static void mark_host(void)
{
	errno = ERANGE;
	with_value = -1;
	memset(zeroed, 1, sizeof(zeroed));
	CHECK_EQ(pthread_setspecific(plain, &with_value), 0);
}

static void check_host(void)
{
	CHECK_EQ(errno, ERANGE);
	CHECK_EQ(with_value, -1);
	CHECK_EQ(zeroed[0], 1);
	CHECK(pthread_getspecific(plain) == &with_value);
	CHECK(uselocale((locale_t)0) == LC_GLOBAL_LOCALE);
	CHECK_EQ(record.a, 5);
}

/* Two blocks in turn, so that a leak from either into the second block or the host shows. */
static void round_of_both(struct runner r[2])
{
	destroyed = chain = 0;
	for (int i = 0; i < 2; i++)
		runner_start(&r[i], body, &selves[i]);
	mark_host();
	for (int i = 0; i < 4; i++)
		runner_resume(&r[i % 2]);
	check_host();
	CHECK(r[0].done && r[1].done);
	if (keys_have_destructors) {
		CHECK_EQ(destroyed, 2);
		CHECK_EQ(chain, 4); /* the first thread: three rounds; the second thread: chain is past 3 */
	}
	CHECK(!pthread_equal(selves[0], selves[1]) && !pthread_equal(selves[0], pthread_self()));
}

static void test(void)
{
	struct runner r[2];

	if (kbi_tcb_mode() != KBI_TCB_TEMPLATE && !strcmp(getenv("KOCHAB_TLS"), "template"))
		CHECK(*kbi_tcb_why());
	CHECK_EQ(pthread_key_create(&counted, count), 0);
	CHECK_EQ(pthread_key_create(&plain, NULL), 0);
	CHECK_EQ(pthread_key_create(&chained, store_again), 0);
	other_locale = newlocale(LC_ALL_MASK, "C.UTF-8", (locale_t)0);
	CHECK(other_locale != (locale_t)0);
	for (int i = 0; i < 2; i++)
		runner_make(&r[i], (unsigned)i);
	for (int k = 0; k < 5; k++)
		round_of_both(r);
	for (int i = 0; i < 2; i++)
		runner_free(&r[i]);
}

int main(void)
{
	return runner_each_mode(test);
}
