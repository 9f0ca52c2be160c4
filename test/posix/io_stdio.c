/* Streams on pipes: threads that wait in fgets, getc, fread and getline for the output of a thread
 * behind them on their virtual processor, and a thread whose printf fills a pipe that another
 * thread empties. */
#include "test.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 30, LINES = 4000 };

struct pair {
	FILE *in, *out;
};

static struct pair a, b;

static struct pair pair_open(void)
{
	int p[2];

	CHECK_EQ(pipe(p), 0);
	return (struct pair){ fdopen(p[0], "r"), fdopen(p[1], "w") };
}

static void pair_close(struct pair *p)
{
	fclose(p->in);
	fclose(p->out);
}

static int get_line(int way)
{
	static __thread char *line;
	static __thread size_t room;
	char text[64] = "";
	int n = -1;

	switch (way % 4) {
	case 0:
		CHECK(fgets(text, sizeof text, a.in));
		break;
	case 1:
		for (int i = 0; i == 0 || text[i - 1] != '\n'; i++)
			text[i] = (char)getc(a.in);
		break;
	case 2:
		CHECK_EQ(fread(text, 1, 8, a.in), 8);
		break;
	default:
		CHECK(getline(&line, &room, a.in) == 8);
		strcpy(text, line);
	}
	CHECK_EQ(sscanf(text, "line%d\n", &n), 1);
	return n;
}

static void *answers(void *unused)
{
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_EQ(get_line(i), i + 100);
		CHECK(fprintf(b.out, "back%d\n", i) > 0);
		CHECK_EQ(fflush(b.out), 0);
	}
	return unused;
}

static void conversation(void)
{
	pthread_t t;
	int n;

	a = pair_open();
	b = pair_open();
	CHECK_EQ(pthread_create(&t, NULL, answers, NULL), 0);
	for (int i = 0; i < ROUNDS; i++) {
		CHECK(fprintf(a.out, "line%d\n", i + 100) > 0);
		CHECK_EQ(fflush(a.out), 0);
		CHECK_EQ(fscanf(b.in, " back%d", &n), 1);
		CHECK_EQ(n, i);
	}
	CHECK_EQ(pthread_join(t, NULL), 0);
	pair_close(&a);
	pair_close(&b);
}

static void *prints(void *unused)
{
	for (int i = 0; i < LINES; i++)
		CHECK_EQ(fprintf(a.out, "%060d\n", i), 61);
	fclose(a.out);
	return unused;
}

static void full(int buffering)
{
	char text[128];
	pthread_t t;

	a = pair_open();
	CHECK_EQ(setvbuf(a.out, NULL, buffering, 4096), 0);
	CHECK_EQ(pthread_create(&t, NULL, prints, NULL), 0);
	for (int i = 0; i < LINES; i++) {
		CHECK(fgets(text, sizeof text, a.in));
		CHECK_EQ(atoi(text), i);
	}
	CHECK(!fgets(text, sizeof text, a.in));
	CHECK(feof(a.in));
	CHECK_EQ(pthread_join(t, NULL), 0);
	fclose(a.in);
}

static void *cancelled(void *unused)
{
	char text[8];

	CHECK(!fgets(text, sizeof text, a.in));
	return unused;
}

static void cancel(void)
{
	pthread_t t;
	void *value;

	a = pair_open();
	CHECK_EQ(pthread_create(&t, NULL, cancelled, NULL), 0);
	usleep(5000);
	CHECK_EQ(pthread_cancel(t), 0);
	CHECK_EQ(pthread_join(t, &value), 0);
	CHECK(value == PTHREAD_CANCELED);
	CHECK_EQ(ftrylockfile(a.in), 0); /* free */
	funlockfile(a.in);
	pair_close(&a);
}

int main(void)
{
	conversation();
	full(_IOFBF);
	full(_IOLBF);
	full(_IONBF);
	cancel();
	return 0;
}
