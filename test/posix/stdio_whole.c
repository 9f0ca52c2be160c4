/* No interleaving inside a call: lines come out whole whatever happens within a call (a callback
 * that waits, a write that blocks in the kernel, a buffer that fills up in the middle), and
 * putc_unlocked under flockfile keeps a word whole. */
#include "crowd.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 8, LINES = 60, LENGTH = 300 };

/* ---- the output ------------------------------------------------------------------------------ */

/* A line is a thread's letter, LENGTH times. */
static void check_lines(const char *text, size_t size, int threads)
{
	int lines[THREADS] = { 0 };

	CHECK_EQ(size, (size_t)threads * LINES * (LENGTH + 1));
	for (size_t at = 0; at < size; at += LENGTH + 1) {
		CHECK(text[at] >= 'a' && text[at] < 'a' + threads);
		for (int i = 0; i < LENGTH; i++)
			CHECK_EQ(text[at + (size_t)i], text[at]);
		CHECK_EQ(text[at + LENGTH], '\n');
		lines[text[at] - 'a']++;
	}
	for (int i = 0; i < threads; i++)
		CHECK_EQ(lines[i], LINES);
}

static FILE *f;

static void print_whole(char letter, int way)
{
	char line[LENGTH + 2];

	memset(line, letter, LENGTH);
	line[LENGTH] = 0;
	switch (way) {
	case 0:
		CHECK_EQ(fprintf(f, "%.100s%s%c", line, line + 100, '\n'), LENGTH + 1);
		break;
	case 1:
		line[LENGTH] = '\n';
		CHECK_EQ(fwrite(line, 1, LENGTH + 1, f), LENGTH + 1);
		break;
	case 2:
		flockfile(f);
		for (int i = 0; i < LENGTH; i++) {
			CHECK(putc_unlocked(letter, f) == letter);
			if (i % 100 == 50)
				sched_yield();
		}
		putc('\n', f);
		funlockfile(f);
		break;
	default:
		line[LENGTH] = '\n';
		line[LENGTH + 1] = 0;
		CHECK(fputs(line, f) >= 0);
	}
}

static void *print_lines(void *arg)
{
	int me = (int)(long)arg;

	for (int i = 0; i < LINES; i++) {
		print_whole((char)('a' + me), (i + me) % 4);
		if (i % 7 == me % 7)
			sched_yield();
	}
	return NULL;
}

static void print_all(int threads)
{
	crowd_run(print_lines, threads);
	CHECK_EQ(fclose(f), 0);
}

/* ---- a callback that waits ------------------------------------------------------------------- */

static char sink[THREADS * LINES * (LENGTH + 1) + 1];
static size_t fill;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static ssize_t slow_write(void *unused, const char *buf, size_t n)
{
	(void)unused;
	sched_yield();
	pthread_mutex_lock(&m);
	CHECK(fill + n < sizeof(sink));
	memcpy(sink + fill, buf, n);
	sched_yield();
	fill += n;
	pthread_mutex_unlock(&m);
	if (fill % 11 == 0)
		usleep(200);
	return (ssize_t)n;
}

static void waiting_callback(int mode, size_t size)
{
	fill = 0;
	f = fopencookie(NULL, "w", (cookie_io_functions_t){ .write = slow_write });
	CHECK(f != NULL);
	CHECK_EQ(setvbuf(f, NULL, mode, size), 0);
	print_all(THREADS);
	check_lines(sink, fill, THREADS);
}

/* ---- a write that blocks --------------------------------------------------------------------- */

static int ends[2];

static void *drain(void *arg)
{
	size_t *at = arg;
	ssize_t n;

	while ((n = read(ends[0], sink + *at, sizeof(sink) - *at < 512 ? sizeof(sink) - *at : 512)) > 0) {
		*at += (size_t)n;
		sched_yield();
	}
	return NULL;
}

/* The pipe is full most of the time: a thread is blocked writing and the rest want the stream. The
 * reader is a thread among them, so the writers must not take every virtual processor along. */
static void blocking_write(void)
{
	const char *vps = getenv("KOCHAB_VPS");
	pthread_t reader;
	size_t at = 0;

	if (vps && atoi(vps) == 1)
		return; /* write() itself blocks the only virtual processor */
	CHECK_EQ(pipe(ends), 0);
	f = fdopen(ends[1], "w");
	CHECK(f != NULL);
	CHECK_EQ(pthread_create(&reader, NULL, drain, &at), 0);
	print_all(THREADS);
	CHECK_EQ(pthread_join(reader, NULL), 0);
	check_lines(sink, at, THREADS);
	close(ends[0]);
}

/* ---- to a file ------------------------------------------------------------------------------- */

static void to_a_file(void)
{
	FILE *file = tmpfile();
	int fd;
	ssize_t n;

	CHECK(file != NULL);
	fd = dup(fileno(file));
	f = file;
	print_all(THREADS);
	n = pread(fd, sink, sizeof(sink), 0);
	CHECK(n >= 0);
	check_lines(sink, (size_t)n, THREADS);
	close(fd);
}

int main(void)
{
	to_a_file();
	waiting_callback(_IOFBF, 1000);
	waiting_callback(_IOLBF, 200);
	waiting_callback(_IONBF, 0);
	blocking_write();
	return 0;
}
