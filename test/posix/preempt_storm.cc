/* core/quantum: preemption every 100 us in code that holds locks and thread-local state inside
 * libraries: malloc, printf, fopen, getaddrinfo, localtime, C++ exceptions, dlopen, floating point
 * in vector registers. Nothing is lost, mixed up or stuck. SOAK_SECONDS sets the run time in
 * seconds, with 64 threads. */
#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <netdb.h>
#include <pthread.h>
#include <stdexcept>
#include <stdint.h>
#include <string>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <vector>

#include "test.h"

enum { THREADS = 24, MANY = 64 };

static uint64_t end;
static FILE *sink;
static const char *host = "localhost";

static void allocates(uint64_t *rand)
{
	std::vector<char *> v;

	for (int i = 0; i < 30; i++) {
		size_t n = test_rand(rand) % 3000 + 1;
		char *p = (char *)malloc(n);

		CHECK(p != NULL);
		memset(p, i, n);
		v.push_back(p);
	}
	for (size_t i = 0; i < v.size(); i++) {
		CHECK_EQ(v[i][0], (char)i);
		free(v[i]);
	}
}

static void prints(uint64_t *rand)
{
	char text[64], file[64];
	FILE *f;

	snprintf(text, sizeof text, "%d %s %.3f", (int)(*rand & 1023), "text", (double)(*rand & 15));
	CHECK(fprintf(sink, "%s\n", text) > 0);
	f = fopen("/proc/self/comm", "r");
	CHECK(f != NULL);
	CHECK(fgets(file, sizeof file, f) != NULL);
	CHECK_EQ(fclose(f), 0);
}

static int resolve(const char *name, int flags)
{
	struct addrinfo hints = {}, *found = NULL;
	int e;

	hints.ai_flags = flags;
	hints.ai_socktype = SOCK_STREAM;
	e = getaddrinfo(name, "80", &hints, &found);
	CHECK(e != 0 || found != NULL);
	if (e == 0)
		freeaddrinfo(found);
	return e;
}

static void resolves(uint64_t *rand)
{
	CHECK_EQ(*rand % 2 ? resolve("127.0.0.1", AI_NUMERICHOST) : resolve(host, 0), 0);
}

static void tells_time(uint64_t *rand)
{
	time_t t = (time_t)(*rand % 2000000000);
	struct tm tm;

	CHECK(localtime_r(&t, &tm) != NULL);
	CHECK_EQ(mktime(&tm), t);
	CHECK(localtime(&t) != NULL);
}

static int deep(int n)
{
	std::string s(20, 'a' + n % 20);

	if (n == 0)
		throw std::runtime_error(s);
	return deep(n - 1) + (int)s.size();
}

static void throws(uint64_t *rand)
{
	try {
		deep((int)(*rand % 12));
	} catch (const std::runtime_error &e) {
		CHECK_EQ(strlen(e.what()), 20);
		return;
	}
	CHECK(false);
}

static void loads(uint64_t *rand)
{
	void *h;

	if (*rand % 8)
		return;
	h = dlopen("libm.so.6", RTLD_NOW);
	CHECK(!h || dlsym(h, "cos") != NULL);
	if (h)
		CHECK_EQ(dlclose(h), 0);
}

/* Sums in registers, which a switch must keep. */
static void counts(uint64_t *rand)
{
	double x[8] = { 1, 2, 3, 4, 5, 6, 7, 8 }, sum = 0;
	int n = 20000 + (int)(*rand % 1000);

	for (int i = 0; i < n; i++)
		for (int k = 0; k < 8; k++)
			x[k] += 1;
	for (int k = 0; k < 8; k++)
		sum += x[k];
	CHECK(fabs(sum - (36.0 + 8.0 * n)) < 0.5);
	errno = (int)(*rand & 63);
	for (volatile int i = 0; i < 20000; i++)
		;
	CHECK_EQ(errno, (int)(*rand & 63));
}

static void *works(void *arg)
{
	static void (*const scene[])(uint64_t *) = { allocates, prints, tells_time, throws, loads, counts, resolves };
	uint64_t rand = test_seed() + (uintptr_t)arg * 7919 + 1;

	while (test_now_ns() < end) {
		test_rand(&rand);
		scene[rand % (sizeof scene / sizeof *scene)](&rand);
	}
	return NULL;
}

int main(int, char **argv)
{
	const char *seconds = getenv("SOAK_SECONDS");
	int threads = seconds ? MANY : THREADS;
	pthread_t t[MANY];
	uint64_t start;

	if (!getenv("KOCHAB_QUANTUM")) { /* it is read when the process starts */
		setenv("KOCHAB_QUANTUM", "100us", 1);
		execv("/proc/self/exe", argv);
	}
	end = test_now_ns() + (seconds ? strtoull(seconds, NULL, 10) * 1000000000u : 700000000u);
	sink = fopen("/dev/null", "w");
	CHECK(sink != NULL);
	start = test_now_ns();
	if (resolve(host, 0) || test_now_ns() - start > 100000000)
		host = "127.0.0.1"; /* nobody knows it, or a server is asked */
	for (intptr_t i = 0; i < threads; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, works, (void *)i), 0);
	for (int i = 0; i < threads; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	return 0;
}
