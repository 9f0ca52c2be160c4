/* core/run: a handler of the program every millisecond, wherever the switches are just then. */
#include <signal.h>
#include <sys/time.h>

#include "core/busy_day.h"

static volatile unsigned handled;

static void on_alarm(int sig)
{
	volatile char frame[512];

	(void)sig;
	frame[0] = frame[511] = 1;
	handled = handled + frame[0];
}

int main(void)
{
	struct itimerval every_ms = { { 0, 1000 }, { 0, 1000 } };
	struct sigaction sa = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	uint64_t end = test_now_ns() + 500000000;

	CHECK_EQ(sigaction(SIGALRM, &sa, NULL), 0);
	CHECK_EQ(setitimer(ITIMER_REAL, &every_ms, NULL), 0);
	busy_day();
	while (test_now_ns() < end)
		kb_sleep(100000);
	CHECK(handled > 100);
	return 0;
}
