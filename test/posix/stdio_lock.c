/* A stream's lock belongs to the thread, whatever virtual processor the thread is on. The holder
 * may wait: threads that want the stream, on any virtual processor, wait for the lock and do not
 * take their processor along. */
#include "test.h"

#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

enum { THREADS = 12 };

static FILE *f, *wide;
static char path[] = "/tmp/stdio_lock.XXXXXX", wide_path[] = "/tmp/stdio_lock.XXXXXX";
static int holding, entered, finished;

static void own_time(int yields)
{
	for (int i = 0; i < yields; i++)
		sched_yield();
	usleep(2000);
}

/* ---- the calls ------------------------------------------------------------------------------- */

static void c_putc(void) { CHECK_EQ(putc('x', f), 'x'); }
static void c_fputc(void) { CHECK_EQ(fputc('x', f), 'x'); }
static void c_fputs(void) { CHECK(fputs("abc\n", f) >= 0); }
static void c_fwrite(void) { CHECK_EQ(fwrite("abc\n", 1, 4, f), 4); }
static void c_fprintf(void) { CHECK_EQ(fprintf(f, "%s%d\n", "abc", 5), 5); }
static int call_vfprintf(const char *format, ...)
{
	va_list ap;
	int n;

	va_start(ap, format);
	n = vfprintf(f, format, ap);
	va_end(ap);
	return n;
}
static void c_vfprintf(void) { CHECK_EQ(call_vfprintf("%d %s\n", 1, "a"), 4); }
static void c_fflush(void) { CHECK_EQ(fflush(f), 0); }
static void c_fflush_all(void) { CHECK_EQ(fflush(NULL), 0); }
static void c_fseek(void) { CHECK_EQ(fseek(f, 0, SEEK_END), 0); }
static void c_ftell(void) { CHECK(ftell(f) >= 0); }
static void c_getc(void) { (void)getc(f); }
static void c_fgets(void) { char b[10]; (void)!fgets(b, sizeof(b), f); }
static void c_fread(void) { char b[10]; (void)!fread(b, 1, sizeof(b), f); }
static void c_getline(void) { char *b = NULL; size_t n = 0; (void)!getline(&b, &n, f); free(b); }
static void c_fscanf(void) { char b[10]; (void)!fscanf(f, "%5s", b); }
static void c_ungetc(void) { (void)ungetc('u', f); }
static void c_rewind(void) { rewind(f); }
static void c_feof(void) { (void)feof(f); (void)ferror(f); clearerr(f); }
static void c_fgetpos(void) { fpos_t p; CHECK_EQ(fgetpos(f, &p), 0); CHECK_EQ(fsetpos(f, &p), 0); }
static void c_setvbuf(void) { CHECK_EQ(setvbuf(f, NULL, _IOFBF, 0), 0); }
static void c_fputwc(void) { CHECK(fputwc(L'x', wide) == L'x'); }
static void c_fputws(void) { CHECK(fputws(L"abc\n", wide) >= 0); }
static void c_fwprintf(void) { CHECK_EQ(fwprintf(wide, L"%d\n", 5), 2); }
static void c_lock(void) { flockfile(f); own_time(2); funlockfile(f); }

static void (*const calls[])(void) = {
	c_putc, c_fputc, c_fputs, c_fwrite, c_fprintf, c_vfprintf, c_fflush, c_fseek, c_ftell, c_getc, c_fgets,
	c_fread, c_getline, c_fscanf, c_ungetc, c_rewind, c_feof, c_fgetpos, c_setvbuf, c_fputwc, c_fputws, c_fwprintf,
	c_lock, c_fflush_all,
};

/* ---- threads wait while the holder waits ----------------------------------------------------- */

static void *call_it(void *arg)
{
	void (*call)(void) = *(void (*const *)(void))arg;

	__atomic_add_fetch(&entered, 1, __ATOMIC_SEQ_CST);
	call();
	CHECK_EQ(__atomic_load_n(&holding, __ATOMIC_SEQ_CST), 0);
	__atomic_add_fetch(&finished, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

/* THREADS threads make one call on a stream whose lock its holder keeps over yields and sleeps. */
static void blocked_call(unsigned n)
{
	pthread_t t[THREADS];

	flockfile(f);
	flockfile(wide);
	holding = 1;
	entered = finished = 0;
	if (calls[n] == c_fflush_all)
		CHECK(putc_unlocked('x', f) == 'x');
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, call_it, (void *)&calls[n]), 0);
	while (__atomic_load_n(&entered, __ATOMIC_SEQ_CST) < THREADS)
		usleep(100);
	own_time(20);
	CHECK_EQ(finished, 0);
	__atomic_store_n(&holding, 0, __ATOMIC_SEQ_CST);
	funlockfile(wide);
	funlockfile(f);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	CHECK_EQ(finished, THREADS);
}

/* ---- the owner is the thread ----------------------------------------------------------------- */

static void *try_it(void *arg)
{
	(void)arg;
	CHECK(ftrylockfile(f) != 0);
	sched_yield();
	CHECK(ftrylockfile(f) != 0);
	return NULL;
}

static void *take_it(void *arg)
{
	(void)arg;
	CHECK_EQ(ftrylockfile(f), 0);
	CHECK_EQ(ftrylockfile(f), 0);
	own_time(3);
	funlockfile(f);
	own_time(3);
	funlockfile(f);
	return NULL;
}

static void owner_is_the_thread(void)
{
	pthread_t t;

	flockfile(f);
	CHECK_EQ(ftrylockfile(f), 0);
	flockfile(f);
	CHECK_EQ(pthread_create(&t, NULL, try_it, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	funlockfile(f);
	funlockfile(f);
	CHECK_EQ(pthread_create(&t, NULL, try_it, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	funlockfile(f);
	CHECK_EQ(pthread_create(&t, NULL, take_it, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
}

/* fclose and freopen wait for the holder, too. */
static void *close_it(void *arg)
{
	FILE *g = *(FILE **)arg;

	__atomic_add_fetch(&entered, 1, __ATOMIC_SEQ_CST);
	CHECK_EQ(fclose(g), 0);
	CHECK_EQ(__atomic_load_n(&holding, __ATOMIC_SEQ_CST), 0);
	return NULL;
}

static void closing(void)
{
	FILE *g = tmpfile();
	pthread_t t;

	CHECK(g != NULL);
	flockfile(g);
	holding = 1;
	entered = 0;
	CHECK_EQ(pthread_create(&t, NULL, close_it, &g), 0);
	while (!__atomic_load_n(&entered, __ATOMIC_SEQ_CST))
		usleep(100);
	own_time(5);
	__atomic_store_n(&holding, 0, __ATOMIC_SEQ_CST);
	funlockfile(g);
	CHECK_EQ(pthread_join(t, NULL), 0);
}

/* ---- a thread that is cancelled within a call leaves the stream free ------------------------- */

static ssize_t cancelled_write(void *unused, const char *buf, size_t n)
{
	(void)unused, (void)buf;
	own_time(3);
	pthread_testcancel();
	return (ssize_t)n;
}

static void *print_and_die(void *arg)
{
	FILE *g = arg;

	pthread_cancel(pthread_self());
	fprintf(g, "%d%s", 1, "text");
	CHECK(!"it was not cancelled");
	return NULL;
}

static void *use_it(void *arg)
{
	FILE *g = arg;

	CHECK_EQ(ftrylockfile(g), 0);
	funlockfile(g);
	return NULL;
}

static void cancelled(void)
{
	FILE *g = fopencookie(NULL, "w", (cookie_io_functions_t){ .write = cancelled_write });
	pthread_t t;
	void *result;

	CHECK(g != NULL);
	CHECK_EQ(setvbuf(g, NULL, _IONBF, 0), 0);
	CHECK_EQ(pthread_create(&t, NULL, print_and_die, g), 0);
	CHECK_EQ(pthread_join(t, &result), 0);
	CHECK(result == PTHREAD_CANCELED);
	CHECK_EQ(pthread_create(&t, NULL, use_it, g), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	fclose(g);
}

int main(void)
{
	int fd = mkstemp(path), fd2 = mkstemp(wide_path);

	CHECK(fd >= 0 && fd2 >= 0);
	f = fdopen(fd, "w+");
	wide = fdopen(fd2, "w+");
	CHECK(f && wide);
	unlink(path);
	unlink(wide_path);
	CHECK(fwide(wide, 1) > 0);
	owner_is_the_thread();
	for (unsigned i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		blocked_call(i);
	closing();
	cancelled();
	return 0;
}
