/* core/quantum: a thread that makes one short system call after the next, or copies, clears and
 * searches much memory, or allocates, prints and reads numbers, is in libc, in the kernel or in
 * this library whenever the system monitor looks. Its turns end all the same: a thread that wakes
 * beside it runs soon. */
#define _GNU_SOURCE
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <iconv.h>
#include <pthread.h>
#include <pwd.h>
#include <regex.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { WAKES = 15, LIMIT_MS = 4000, SOME = 100, MUCH = 4 << 20, LINE = 2000 };

static int zero, over;
static FILE *sink;
static char *much, *more; /* MUCH bytes each */
static volatile size_t found;
static regex_t expression;
static iconv_t converter;

static void calls_getppid(void) { CHECK(getppid() > 0); }

static void calls_stat(void)
{
	struct stat st;

	CHECK_EQ(stat("/", &st), 0);
}

static void calls_mmap(void)
{
	void *p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	CHECK_EQ(munmap(p, 4096), 0);
}

static void calls_read(void)
{
	char c;

	CHECK_EQ(read(zero, &c, 1), 1);
}

static void calls_pread(void)
{
	char c;

	CHECK_EQ(pread(zero, &c, 1, 0), 1);
}

static void calls_open(void)
{
	int fd = open("/dev/zero", O_RDONLY);

	CHECK(fd >= 0);
	CHECK_EQ(close(fd), 0);
}

static void calls_fprintf(void) { CHECK_EQ(fprintf(sink, "%d %s\n", 12345, "text"), 11); }

static void calls_memset(void) { memset(much, 1, MUCH); }

static void calls_memcpy(void) { memcpy(much, more, MUCH); }

static void calls_strlen(void)
{
	memset(more, 'a', 1); /* so that it is not known from the last time */
	found = strlen(more);
	CHECK_EQ(found, MUCH - 1);
}

static void calls_strspn(void)
{
	found = strspn(more, "a");
	CHECK_EQ(found, MUCH - 1);
}

static void calls_strcspn(void)
{
	found = strcspn(more, "xyz");
	CHECK_EQ(found, MUCH - 1);
}

static void calls_strstr(void) { CHECK(!strstr(more, "aab")); }

static void calls_memmem(void) { CHECK(!memmem(more, MUCH - 1, "aaaaaaaaaaaaaaaab", 17)); }

static void calls_long_memmem(void)
{
	static char needle[300];

	memset(needle, 'a', sizeof needle);
	needle[0] = 'b';
	CHECK(!memmem(more, MUCH - 1, needle, sizeof needle));
}

static void calls_mbstowcs(void)
{
	found = mbstowcs(NULL, more, 0);
	CHECK_EQ(found, MUCH - 1);
}

static void calls_regexec(void) { CHECK_EQ(regexec(&expression, more + MUCH - LINE, 0, NULL, 0), REG_NOMATCH); }

static void calls_malloc(void)
{
	void *volatile p = malloc(2000);

	CHECK(p != NULL);
	free(p);
}

static void calls_realloc(void)
{
	void *volatile p = realloc(malloc(100), 5000);

	CHECK(p != NULL);
	free(p);
}

static void calls_snprintf(void)
{
	char text[100];

	CHECK_EQ(snprintf(text, sizeof text, "%d %s %.3f", 12345, "text", 3.25), 16);
}

static void calls_sscanf(void)
{
	double real;
	int whole;

	CHECK_EQ(sscanf("12 3.25", "%d %lf", &whole, &real), 2);
}

static void calls_strtod(void)
{
	CHECK(strtod("3.14159265358979323846e10", NULL) > 3.1e10);
}

static void calls_iconv(void)
{
	char *in = more, *out = much;
	size_t n_in = LINE, n_out = MUCH;

	CHECK_EQ(iconv(converter, &in, &n_in, &out, &n_out), 0);
}

static void calls_localtime(void)
{
	time_t t = 1700000000;
	struct tm tm;

	CHECK(localtime_r(&t, &tm) == &tm);
}

static void calls_mktime(void)
{
	struct tm tm = { .tm_year = 120, .tm_mday = 5 };

	CHECK(mktime(&tm) > 0);
}

static void calls_strftime(void)
{
	struct tm tm = { .tm_year = 120, .tm_mday = 5 };
	char text[100];

	CHECK(strftime(text, sizeof text, "%A %d %B %Y %c", &tm) > 0);
}

/* Functions that the drop-in has for libc's, since libc's have the same result for all threads. */
static void calls_ctime(void)
{
	time_t t = 1700000000;

	CHECK(ctime(&t) != NULL);
}

static void calls_localtime_plain(void)
{
	time_t t = 1700000000;

	CHECK(localtime(&t) != NULL);
}

static void calls_setenv(void) { CHECK_EQ(setenv("KB_TURNS", "1", 1), 0); }

static void calls_getpwnam(void)
{
	found = getpwnam("root") != NULL;
}

static void calls_kill(void) { CHECK_EQ(kill(getpid(), 0), 0); }

/* Those that are the drop-in's and suspend nobody. */
static void calls_gettid(void) { CHECK(gettid() > 0); }
static void calls_pthread_kill(void) { CHECK_EQ(pthread_kill(pthread_self(), 0), 0); }

static void handle(int sig) { (void)sig; }
static void calls_raise(void) { CHECK_EQ(raise(SIGUSR1), 0); }

static void calls_sigmask(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
	CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &set, NULL), 0);
}

static void calls_sigpending(void)
{
	sigset_t set;

	CHECK_EQ(sigpending(&set), 0);
}

static void calls_sigaction(void)
{
	struct sigaction sa;

	CHECK_EQ(sigaction(SIGUSR1, NULL, &sa), 0);
}

static void calls_affinity(void)
{
	cpu_set_t set;

	CHECK_EQ(sched_getaffinity(0, sizeof set, &set), 0);
}

static void calls_name(void)
{
	char name[16];

	CHECK_EQ(pthread_getname_np(pthread_self(), name, sizeof name), 0);
}

static void *nothing(void *unused) { return unused; }

static void calls_create(void)
{
	pthread_t t;
	int e = pthread_create(&t, NULL, nothing, NULL);

	CHECK(e == 0 || e == EAGAIN); /* they may be too many */
	if (e == 0)
		CHECK_EQ(pthread_detach(t), 0);
}

/* On some machines only the end of libc's wrappers is known; on a single kind of machine also where
 * each of its functions returns to. */
enum where { ANYWHERE, WRAPPERS, ALL };

static const struct row {
	const char *name;
	void (*fn)(void);
	enum where where;
} rows[] = {
	{ "getppid", calls_getppid, WRAPPERS }, { "stat", calls_stat, WRAPPERS },  { "mmap", calls_mmap, WRAPPERS },
	{ "read", calls_read, ANYWHERE },       { "pread", calls_pread, ANYWHERE }, { "kill", calls_kill, ANYWHERE },
	{ "open", calls_open, ANYWHERE },       { "fprintf", calls_fprintf, ANYWHERE },
	{ "memset", calls_memset, WRAPPERS },   { "memcpy", calls_memcpy, WRAPPERS },
	{ "strlen", calls_strlen, WRAPPERS },   { "strspn", calls_strspn, ALL },
	{ "strcspn", calls_strcspn, ALL },  { "strstr", calls_strstr, ALL },
	{ "memmem", calls_memmem, ALL },    { "memmem for much", calls_long_memmem, ALL },
	{ "mbstowcs", calls_mbstowcs, ALL }, { "regexec", calls_regexec, ALL },
	{ "malloc", calls_malloc, ALL },     { "realloc", calls_realloc, ALL },
	{ "snprintf", calls_snprintf, ALL }, { "sscanf", calls_sscanf, ALL },
	{ "strtod", calls_strtod, ALL },     { "iconv", calls_iconv, ALL },
	{ "localtime_r", calls_localtime, ALL }, { "mktime", calls_mktime, ALL },
	{ "strftime", calls_strftime, ALL },
	{ "ctime", calls_ctime, ANYWHERE },     { "localtime", calls_localtime_plain, ANYWHERE },
	{ "setenv", calls_setenv, ANYWHERE },   { "getpwnam", calls_getpwnam, ANYWHERE },
	{ "gettid", calls_gettid, ANYWHERE },   { "pthread_kill", calls_pthread_kill, ANYWHERE },
	{ "raise", calls_raise, ANYWHERE },     { "pthread_sigmask", calls_sigmask, ANYWHERE },
	{ "sigpending", calls_sigpending, ANYWHERE }, { "sigaction", calls_sigaction, ANYWHERE },
	{ "sched_getaffinity", calls_affinity, ANYWHERE }, { "pthread_getname_np", calls_name, ANYWHERE },
	{ "pthread_create", calls_create, ANYWHERE },
};

static bool is_known_here(enum where where)
{
#if !defined(__GLIBC__)
	return where == ANYWHERE;
#elif defined(__x86_64__)
	return where <= ALL;
#elif defined(__aarch64__) || (defined(__riscv) && __riscv_xlen == 64)
	return where <= WRAPPERS;
#else
	return where == ANYWHERE;
#endif
}

static void *calls(void *arg)
{
	const struct row *r = arg;

	while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE))
		for (int i = 0; i < SOME && !__atomic_load_n(&over, __ATOMIC_ACQUIRE); i++)
			r->fn();
	return NULL;
}

static void beside(const struct row *r)
{
	uint64_t begun = test_now_ns(), ms;
	pthread_t t;

	over = 0;
	CHECK_EQ(pthread_create(&t, NULL, calls, (void *)r), 0);
	for (int i = 0; i < WAKES; i++)
		usleep(1000);
	ms = (test_now_ns() - begun) / 1000000;
	if (ms > LIMIT_MS)
		fprintf(stderr, "beside %s: %d wake-ups took %llu ms\n", r->name, WAKES, (unsigned long long)ms);
	CHECK(ms <= LIMIT_MS);
	__atomic_store_n(&over, 1, __ATOMIC_RELEASE);
	CHECK_EQ(pthread_join(t, NULL), 0);
}

int main(void)
{
	zero = open("/dev/zero", O_RDONLY);
	CHECK(zero >= 0);
	sink = fopen("/dev/null", "w");
	CHECK(sink != NULL);
	much = malloc(MUCH);
	more = malloc(MUCH);
	CHECK(much && more);
	memset(more, 'a', MUCH - 1);
	more[MUCH - 1] = 0;
	converter = iconv_open("UTF-16LE", "UTF-8");
	CHECK(converter != (iconv_t)-1);
	CHECK(signal(SIGUSR1, handle) != SIG_ERR);
	CHECK_EQ(regcomp(&expression, "(a|b)*c$", REG_EXTENDED), 0);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (is_known_here(rows[i].where))
			beside(&rows[i]);
	return 0;
}
