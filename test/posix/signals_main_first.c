/* A signal to the process comes to main if main has it unblocked, while other threads compute: from
 * a second process, by kill and sigqueue, by setitimer, by kill of a thread inside. The signal ends
 * main's wait with EINTR, or its handler runs beside the wait where POSIX lets the wait go on; a
 * main that computes has the signal, too. */
#define _GNU_SOURCE
#include "test.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BUSY = 3, SIG = SIGUSR1 };

/* The order to the sender, outside or inside: 'k' kill, 'q' sigqueue, 'i' kill by a thread; 0:
 * nothing, 'e': the sender ends. */
static atomic_int *command, *sending; /* and the thread that does it */
static pthread_t main_thread;
static atomic_int got, elsewhere, stop;
static int way; /* for `command` */
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int ends[2], listener, poller;

static void handler(int sig)
{
	(void)sig;
	if (!pthread_equal(pthread_self(), main_thread))
		elsewhere++;
	got++;
}

static void nap(void)
{
	usleep(3000);
}

static void *busy(void *arg)
{
	while (!stop)
		;
	return arg;
}

static void *sends_inside(void *arg)
{
	for (; !stop; nap()) {
		++*sending;
		if (*command == 'i')
			CHECK_EQ(kill(getpid(), SIG), 0);
		--*sending;
	}
	return arg;
}

static void sends_outside(pid_t program)
{
	for (; *command != 'e' && getppid() == program; nap()) {
		++*sending;
		if (*command == 'k')
			kill(program, SIG);
		else if (*command == 'q')
			sigqueue(program, SIG, (union sigval){ .sival_int = 1 });
		--*sending;
	}
	_exit(0);
}

static void begin(void)
{
	struct itimerval it = { { 0, 5000 }, { 0, 5000 } };

	*command = way;
	if (way == 't')
		CHECK_EQ(setitimer(ITIMER_REAL, &it, NULL), 0);
}

/* It waits until main has created it: libc blocks everything meanwhile. */
static void *lets_go(void *arg)
{
	atomic_int *step = arg;

	pthread_mutex_lock(&m);
	if (*step == 0)
		*step = 1;
	while (*step < 2)
		nap();
	begin();
	while (!got)
		nap();
	pthread_cond_signal(&c);
	pthread_mutex_unlock(&m);
	return NULL;
}

/* ---- ways to wait ---------------------------------------------------------------------------- */

static int in_sem(void)
{
	sem_t s;

	sem_init(&s, 0, 0);
	return sem_wait(&s);
}

static int in_read(void)
{
	char byte;

	return (int)read(ends[0], &byte, 1);
}

static int in_accept(void)
{
	return accept(listener, NULL, NULL);
}

static int in_poll(void)
{
	struct pollfd p = { .fd = ends[0], .events = POLLIN };

	return poll(&p, 1, -1);
}

static int in_select(void)
{
	fd_set set;

	FD_ZERO(&set);
	FD_SET(ends[0], &set);
	return select(ends[0] + 1, &set, NULL, NULL, NULL);
}

static int in_epoll(void)
{
	struct epoll_event e;

	return epoll_wait(poller, &e, 1, -1);
}

static int in_sleep(void)
{
	return nanosleep(&(struct timespec){ 1000, 0 }, NULL);
}

static int in_sigsuspend(void)
{
	sigset_t none;

	sigemptyset(&none);
	return sigsuspend(&none);
}

static int interrupted(void)
{
	errno = EINTR;
	return -1;
}

static int computing(void)
{
	while (!got)
		;
	return interrupted();
}

static pthread_t make(atomic_int *step)
{
	pthread_t t;

	*step = 0;
	CHECK_EQ(pthread_create(&t, NULL, lets_go, step), 0);
	while (!*step)
		sched_yield();
	*step = 2;
	return t;
}

static int in_mutex(void)
{
	atomic_int step;
	pthread_t t = make(&step);

	CHECK_EQ(pthread_mutex_lock(&m), 0);
	pthread_mutex_unlock(&m);
	CHECK_EQ(pthread_join(t, NULL), 0);
	return interrupted();
}

static int in_join(void)
{
	atomic_int step;

	CHECK_EQ(pthread_join(make(&step), NULL), 0);
	return interrupted();
}

static int in_cond(void)
{
	atomic_int step = 0;
	pthread_t t;

	CHECK_EQ(pthread_mutex_lock(&m), 0);
	CHECK_EQ(pthread_create(&t, NULL, lets_go, &step), 0);
	step = 2;
	while (!got)
		CHECK_EQ(pthread_cond_wait(&c, &m), 0);
	pthread_mutex_unlock(&m);
	CHECK_EQ(pthread_join(t, NULL), 0);
	return interrupted();
}

static int (*const ways[])(void) = { pause, in_sem, in_read, in_accept, in_poll, in_select, in_epoll, in_sleep,
				     in_sigsuspend, computing, in_mutex, in_join, in_cond };

/* ---- rounds ---------------------------------------------------------------------------------- */

static void end(void)
{
	setitimer(ITIMER_REAL, &(struct itimerval){ 0 }, NULL);
	*command = 0;
	while (*sending)
		sched_yield();
}

int main(void)
{
	/* a handler that blocks the signal would leave the next to further threads, as in the kernel */
	struct sigaction sa = { .sa_handler = handler, .sa_flags = SA_NODEFER };
	struct sockaddr_un u = { .sun_family = AF_UNIX };
	struct epoll_event e = { .events = EPOLLIN };
	pthread_t t[BUSY + 1];
	pid_t self = getpid(), child;

	main_thread = pthread_self();
	command = mmap(NULL, 2 * sizeof(*command), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(command != MAP_FAILED);
	sending = command + 1;
	child = fork();
	if (child == 0)
		sends_outside(self);
	CHECK_EQ(sigaction(SIG, &sa, NULL), 0);
	CHECK_EQ(sigaction(SIGALRM, &sa, NULL), 0);
	CHECK_EQ(pipe(ends), 0);
	listener = socket(AF_UNIX, SOCK_STREAM, 0);
	CHECK_EQ(bind(listener, (struct sockaddr *)&u, sizeof(u.sun_family)), 0);
	CHECK_EQ(listen(listener, 1), 0);
	poller = epoll_create1(0);
	CHECK_EQ(epoll_ctl(poller, EPOLL_CTL_ADD, ends[0], &e), 0);
	for (int i = 0; i < BUSY; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, busy, NULL), 0);
	CHECK_EQ(pthread_create(&t[BUSY], NULL, sends_inside, NULL), 0);
	for (const char *what = "kqti"; *what; what++)
		for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
			got = 0;
			way = *what;
			if (ways[i] != in_mutex && ways[i] != in_join && ways[i] != in_cond)
				begin();
			CHECK_EQ(ways[i](), -1);
			CHECK_EQ(errno, EINTR);
			CHECK(got > 0);
			/* the kernel gives a second signal to further threads before main has run for the first */
			if (getenv("KOCHAB_VPS"))
				CHECK_EQ(elsewhere, 0);
			end();
		}
	stop = 1;
	for (int i = 0; i <= BUSY; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	*command = 'e';
	while (waitpid(child, NULL, 0) < 0)
		CHECK_EQ(errno, EINTR);
	return 0;
}
