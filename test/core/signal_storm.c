/* core/run: a handler of the program runs every millisecond, at any point of a switch. */
#include <signal.h>
#include <sys/time.h>

#include "core/busy_day.h"

static unsigned handled;

static void on_alarm(int sig)
{
	volatile char frame[512];

	(void)sig;
	frame[0] = frame[511] = 1;
	__atomic_add_fetch(&handled, frame[0], __ATOMIC_RELAXED);
}

int main(void)
{
	struct itimerval every_ms = { { 0, 1000 }, { 0, 1000 } };
	struct sigaction sa = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };

	CHECK_EQ(sigaction(SIGALRM, &sa, NULL), 0);
	CHECK_EQ(setitimer(ITIMER_REAL, &every_ms, NULL), 0);
	busy_day();
	/* a busy machine's clock may be slow */
	while (__atomic_load_n(&handled, __ATOMIC_RELAXED) <= 100)
		kb_sleep(100000);
	return 0;
}
