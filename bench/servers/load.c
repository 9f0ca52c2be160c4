/* load.c - load for a key-value server: each connection sends a batch of requests, waits for all
 * answers and sends the next batch. One thread, epoll. Every byte of every answer is compared with
 * the expected byte. Prints one line: requests, seconds, requests/s, p50, p99 and longest latency
 * in us, CPU seconds of the server. */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static const char help[] =
	"usage: load [options] redis|memcached SOCKET|PORT\n"
	"  -c N  connections (50)        -P N  requests in a batch (1)\n"
	"  -k N  different keys (1000)   -d N  bytes of a value (32)\n"
	"  -w N  per cent writes (10)    -s S  seconds (2)\n"
	"  -p PID  of the server, whose CPU time is to be told\n"
	"  -i    idle: every connection asks once, then waits for S seconds; tells the server's memory\n"
	"  -H    all latencies as well: a line for each, ns and how many\n";

static struct {
	bool memcached, idle, all;
	const char *where;
	unsigned conns, batch, keys, size, writes, pid;
	double seconds;
} o = { .conns = 50, .batch = 1, .keys = 1000, .size = 32, .writes = 10, .seconds = 2 };

struct conn {
	int fd;
	uint64_t sent; /* ns */
	char *expect; /* the answers to the batch */
	size_t size, got; /* of them */
};

static struct conn *conns;
static int epoll;
static char *request; /* a batch */
static uint64_t requests, seed = 88172645463325252ull;
static unsigned next_key; /* the first pass writes every key */

static void die(const char *what)
{
	fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static unsigned chance(unsigned n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (unsigned)(seed >> 33) % n;
}

/* ---- how long it took: a bucket for each 1/1024 of a power of two ns, three digits ---- */

enum { FINE = 10, BUCKETS = 64 << FINE };

static uint64_t bucket[BUCKETS], longest;

static void took(uint64_t ns)
{
	unsigned power = 63 - (unsigned)__builtin_clzll(ns | 1 << FINE);

	bucket[(power << FINE) + (ns >> (power - FINE) & ((1 << FINE) - 1))]++;
	if (ns > longest)
		longest = ns;
}

static uint64_t bucket_ns(unsigned i)
{
	unsigned power = i >> FINE, rest = i & ((1 << FINE) - 1);

	return power > FINE ? (uint64_t)((1 << FINE) + rest) << (power - FINE) : (uint64_t)(1 << FINE) + rest;
}

static double quantile(double q)
{
	uint64_t left = (uint64_t)(q * (double)requests);

	for (unsigned i = 0; i < BUCKETS; i++) {
		if (bucket[i] > left)
			return (double)bucket_ns(i) / 1000;
		left -= bucket[i];
	}
	return (double)longest / 1000;
}

static void print_all(void)
{
	for (unsigned i = 0; i < BUCKETS; i++)
		if (bucket[i])
			printf("%llu ns %llu\n", (unsigned long long)bucket_ns(i), (unsigned long long)bucket[i]);
}

/* ---- requests and their expected answers ---- */

/* The value of a key never changes, so an answer is known before it comes. */
static size_t value(char *to, unsigned key)
{
	for (unsigned i = 0; i < o.size; i++)
		to[i] = (char)('a' + (key * 7 + i * (key % 5 + 1)) % 26);
	return o.size;
}

enum { AROUND = 128 }; /* bytes of a request or an answer around the value, at most */

static char *print(char *to, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	to += vsnprintf(to, AROUND / 2, format, args);
	va_end(args);
	return to;
}

static char *put(char *to, unsigned key, char **expect)
{
	if (o.memcached)
		to = print(to, "set key:%012u 0 0 %u\r\n", key, o.size);
	else
		to = print(to, "*3\r\n$3\r\nSET\r\n$16\r\nkey:%012u\r\n$%u\r\n", key, o.size);
	to += value(to, key);
	*expect = print(*expect, o.memcached ? "STORED\r\n" : "+OK\r\n");
	return print(to, "\r\n");
}

static char *get(char *to, unsigned key, char **expect)
{
	if (o.memcached)
		*expect = print(*expect, "VALUE key:%012u 0 %u\r\n", key, o.size);
	else
		*expect = print(*expect, "$%u\r\n", o.size);
	*expect += value(*expect, key);
	*expect = print(*expect, o.memcached ? "\r\nEND\r\n" : "\r\n");
	if (o.memcached)
		return print(to, "get key:%012u\r\n", key);
	return print(to, "*2\r\n$3\r\nGET\r\n$16\r\nkey:%012u\r\n", key);
}

static void batch(struct conn *c, bool fill)
{
	char *to = request, *expect = c->expect;
	size_t n;

	for (unsigned i = 0; i < o.batch; i++) {
		if (fill)
			to = put(to, next_key++ % o.keys, &expect);
		else if (chance(100) < o.writes)
			to = put(to, chance(o.keys), &expect);
		else
			to = get(to, chance(o.keys), &expect);
	}
	c->size = (size_t)(expect - c->expect);
	c->got = 0;
	c->sent = now();
	n = (size_t)(to - request);
	if (send(c->fd, request, n, MSG_NOSIGNAL) != (ssize_t)n)
		die("send");
}

/* Reads; true: the batch is answered. */
static bool answered(struct conn *c)
{
	static char got[1 << 20];
	ssize_t n = recv(c->fd, got, sizeof got, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0)
		die(n < 0 ? "recv" : "the server closed a connection");
	if ((size_t)n > c->size - c->got || memcmp(got, c->expect + c->got, (size_t)n) != 0) {
		fprintf(stderr, "load: wrong answer: %.*s\n", (int)(n < 200 ? n : 200), got);
		exit(1);
	}
	c->got += (size_t)n;
	if (c->got < c->size)
		return false;
	for (unsigned i = 0; i < o.batch; i++)
		took(now() - c->sent);
	requests += o.batch;
	return true;
}

/* ---- the server ---- */

/* utime and stime are fields 14 and 15; the second may have blanks. */
static double server_cpu(void)
{
	char path[64], line[1024], *p;
	unsigned long user = 0, system = 0;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%u/stat", o.pid);
	f = o.pid ? fopen(path, "r") : NULL;
	if (f == NULL)
		return 0;
	if (fgets(line, sizeof line, f) && (p = strrchr(line, ')')))
		sscanf(p + 2, "%*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %lu %lu", &user, &system);
	fclose(f);
	return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

static double server_rss(void)
{
	char path[64], line[256];
	double kb = 0;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%u/status", o.pid);
	f = o.pid ? fopen(path, "r") : NULL;
	while (f && fgets(line, sizeof line, f))
		if (strncmp(line, "VmRSS:", 6) == 0)
			kb = atof(line + 6);
	if (f)
		fclose(f);
	return kb * 1024;
}

static int open_conn(void)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int tcp = isdigit((unsigned char)o.where[0]), fd = socket(tcp ? AF_INET : AF_UNIX, SOCK_STREAM, 0), on = 1;

	in.sin_port = htons((uint16_t)atoi(o.where));
	strncpy(un.sun_path, o.where, sizeof un.sun_path - 1);
	if (fd < 0)
		die("socket");
	for (unsigned tries = 0; connect(fd, tcp ? (void *)&in : (void *)&un, tcp ? sizeof in : sizeof un) != 0; tries++) {
		if (tries == 500 || (errno != ECONNREFUSED && errno != ENOENT && errno != EAGAIN))
			die(o.where);
		usleep(10000);
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	return fd;
}

static void connect_all(void)
{
	for (unsigned i = 0; i < o.conns; i++) {
		conns[i].fd = open_conn();
		epoll_ctl(epoll, EPOLL_CTL_ADD, conns[i].fd,
			&(struct epoll_event){ .events = EPOLLIN, .data.ptr = &conns[i] });
	}
}

/* Until every key is written; until the time is over; or, with `once`, until everybody has asked
 * once. */
static double load(bool fill, bool once, double seconds)
{
	struct epoll_event event[512];
	uint64_t begin = now(), end = begin + (uint64_t)(seconds * 1e9), t;
	unsigned busy = 0;
	bool more = true;

	requests = longest = 0;
	memset(bucket, 0, sizeof bucket);
	for (unsigned i = 0; i < o.conns; i++, busy++)
		batch(&conns[i], fill);
	while (busy > 0) {
		int n = epoll_wait(epoll, event, 512, 20000);

		if (n <= 0)
			die(n < 0 ? "epoll_wait" : "no answer for 20 s");
		t = now();
		more = fill ? next_key < o.keys : !once && t < end;
		for (int i = 0; i < n; i++) {
			struct conn *c = event[i].data.ptr;

			if (c->got == c->size || !answered(c))
				continue;
			if (more)
				batch(c, fill);
			else
				busy--;
		}
	}
	return (double)(now() - begin) / 1e9;
}

static void idle(void)
{
	double before = server_rss(), cpu;

	connect_all();
	load(false, true, 0);
	usleep(300000);
	cpu = server_cpu();
	usleep((unsigned)(o.seconds * 1e6));
	printf("%u connections, %.0f B each, %.2f %% of a core\n", o.conns, (server_rss() - before) / o.conns,
		(server_cpu() - cpu) / o.seconds * 100);
}

static void options(int argc, char **argv)
{
	int opt;

	while ((opt = getopt(argc, argv, "c:P:k:d:w:s:p:iH")) != -1) {
		unsigned n = optarg ? (unsigned)atoi(optarg) : 0;

		switch (opt) {
		case 'c': o.conns = n; break;
		case 'P': o.batch = n; break;
		case 'k': o.keys = n; break;
		case 'd': o.size = n; break;
		case 'w': o.writes = n; break;
		case 's': o.seconds = atof(optarg); break;
		case 'p': o.pid = n; break;
		case 'i': o.idle = true; break;
		case 'H': o.all = true; break;
		default: fputs(help, stderr); exit(2);
		}
	}
	if (argc - optind != 2 || o.conns == 0 || o.batch == 0 || o.keys == 0) {
		fputs(help, stderr);
		exit(2);
	}
	o.memcached = strcmp(argv[optind], "memcached") == 0;
	o.where = argv[optind + 1];
}

int main(int argc, char **argv)
{
	struct rlimit files;
	double seconds, cpu;

	options(argc, argv);
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	epoll = epoll_create1(0);
	conns = calloc(o.conns, sizeof *conns);
	request = malloc((size_t)o.batch * (o.size + AROUND));
	for (unsigned i = 0; i < o.conns; i++)
		conns[i].expect = malloc((size_t)o.batch * (o.size + AROUND));
	if (o.idle) {
		unsigned n = o.conns;

		o.conns = 1; /* the keys first, so that their memory does not count */
		connect_all();
		load(true, false, 0);
		close(conns[0].fd);
		o.conns = n;
		idle();
		return 0;
	}
	connect_all();
	load(true, false, 0);
	cpu = server_cpu();
	seconds = load(false, false, o.seconds);
	cpu = server_cpu() - cpu;
	printf("%llu requests, %.2f s, %.0f/s, p50 %.0f us, p99 %.0f us, longest %.0f us, server %.2f s\n",
		(unsigned long long)requests, seconds, (double)requests / seconds, quantile(0.5), quantile(0.99),
		(double)longest / 1000, cpu);
	if (o.all)
		print_all();
	return 0;
}
