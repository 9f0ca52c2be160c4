/* A pending cancellation acts in each function that POSIX makes a cancellation point (XSH 2.9.5.2),
 * also if the call need not wait, and before the call has had an effect; it acts in no function
 * that must not be a cancellation point. */
#define _GNU_SOURCE
#include "test.h"

#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

static int file, zero, pair[2], listener, tty, queue;
static mqd_t mq;
static char page[8192];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_barrier_t alone;
static pthread_key_t key;
static sem_t full, ended;
static const struct timespec at_once = { 0, 1 };
static pthread_t sleeper;

#define IOV(n) struct iovec v[2] = { { page, n }, { page + n, n } }
#define MESSAGE IOV(1); struct msghdr m = { .msg_iov = v, .msg_iovlen = 2 }

/* ---- cancellation points --------------------------------------------------------------------- */
static void p_accept(void) { accept(listener, NULL, NULL); }
static void p_aio_suspend(void)
{
	static struct aiocb a; /* outlives the thread */
	const struct aiocb *list[] = { &a };
	struct timespec t = { 0, 1000000 };

	a = (struct aiocb){ .aio_fildes = pair[0], .aio_buf = page, .aio_nbytes = 1 };
	CHECK_EQ(aio_read(&a), 0);
	aio_suspend(list, 1, &t);
}
static void p_clock_nanosleep(void) { clock_nanosleep(CLOCK_MONOTONIC, 0, &at_once, NULL); }
static void p_close(void) { close(zero); }
static void p_connect(void)
{
	struct sockaddr a = { .sa_family = AF_UNIX };

	connect(pair[0], &a, sizeof a);
}
static void p_creat(void) { creat("/dev/null", 0600); }
static void p_fcntl(void)
{
	fcntl(file, F_SETLKW, &(struct flock){ .l_type = F_RDLCK, .l_len = 1 });
}
static void p_fdatasync(void) { fdatasync(file); }
static void p_fsync(void) { fsync(file); }
static void p_lockf(void) { (void)!lockf(file, F_LOCK, 1); }
static void p_mq_receive(void) { mq_receive(mq, page, sizeof page, NULL); }
static void p_mq_send(void) { mq_send(mq, page, 1, 0); }
static void p_mq_timedreceive(void) { mq_timedreceive(mq, page, sizeof page, NULL, &at_once); }
static void p_mq_timedsend(void) { mq_timedsend(mq, page, 1, 0, &at_once); }
static void p_msgrcv(void) { msgrcv(queue, page, 100, 0, IPC_NOWAIT); }
static void p_msgsnd(void) { *(long *)(void *)page = 1; msgsnd(queue, page, 1, IPC_NOWAIT); }
static void p_msync(void) { msync(NULL, 0, MS_SYNC); }
static void p_nanosleep(void) { nanosleep(&at_once, NULL); }
static void p_open(void) { open("/dev/null", O_RDONLY); }
static void p_openat(void) { openat(AT_FDCWD, "/dev/null", O_RDONLY); }
static void p_pause(void) { pause(); }
static void p_poll(void) { poll(NULL, 0, 0); }
static void p_ppoll(void) { ppoll(NULL, 0, &at_once, NULL); }
static void p_pread(void) { (void)!pread(zero, page, 1, 0); }
static void p_preadv(void) { IOV(1); (void)!preadv(zero, v, 2, 0); }
static void p_pselect(void) { pselect(0, NULL, NULL, NULL, &at_once, NULL); }
static void waits(int (*how)(void))
{
	CHECK_EQ(pthread_mutex_lock(&mutex), 0);
	pthread_cleanup_push((void (*)(void *))(void *)pthread_mutex_unlock, &mutex);
	how();
	pthread_cleanup_pop(1);
}
static int timed(void) { return pthread_cond_timedwait(&cond, &mutex, &at_once); }
static int clocked(void)
{
	return pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, &at_once);
}
static int untimed(void) { return pthread_cond_wait(&cond, &mutex); }
static void p_pthread_cond_timedwait(void) { waits(timed); }
static void p_pthread_cond_clockwait(void) { waits(clocked); }
static void p_pthread_cond_wait(void) { waits(untimed); }
static void p_pthread_join(void) { pthread_join(sleeper, NULL); }
static void p_pthread_testcancel(void) { pthread_testcancel(); }
static void p_pwrite(void) { (void)!pwrite(file, page, 1, 0); }
static void p_pwritev(void) { IOV(1); (void)!pwritev(file, v, 2, 0); }
static void p_read(void) { (void)!read(zero, page, 1); }
static void p_readv(void) { IOV(1); (void)!readv(zero, v, 2); }
static void p_recv(void) { recv(pair[0], page, 1, MSG_DONTWAIT); }
static void p_recvfrom(void) { recvfrom(pair[0], page, 1, MSG_DONTWAIT, NULL, NULL); }
static void p_recvmsg(void) { MESSAGE; recvmsg(pair[0], &m, MSG_DONTWAIT); }
static void p_select(void) { select(0, NULL, NULL, NULL, &(struct timeval){ 0, 0 }); }
static void p_sem_timedwait(void) { sem_timedwait(&full, &at_once); }
static void p_sem_wait(void) { sem_wait(&full); }
static void p_send(void) { send(pair[1], page, 1, 0); }
static void p_sendmsg(void) { MESSAGE; sendmsg(pair[1], &m, 0); }
static void p_sendto(void) { sendto(pair[1], page, 1, 0, NULL, 0); }
static sigset_t usr1(void) { sigset_t s; sigemptyset(&s); sigaddset(&s, SIGUSR1); return s; }
static void p_sigsuspend(void) { sigset_t s = usr1(); sigsuspend(&s); }
static void p_sigtimedwait(void) { sigset_t s = usr1(); sigtimedwait(&s, NULL, &at_once); }
static void p_sigwait(void) { sigset_t s = usr1(); int n; sigwait(&s, &n); }
static void p_sigwaitinfo(void) { sigset_t s = usr1(); sigwaitinfo(&s, NULL); }
static void p_sleep(void) { sleep(1); }
static void p_tcdrain(void) { tcdrain(tty); }
static void p_usleep(void) { usleep(1); }
static void p_wait(void) { wait(NULL); }
static void p_waitid(void) { waitid(P_ALL, 0, NULL, WEXITED); }
static void p_waitpid(void) { waitpid(-1, NULL, WNOHANG); }
static void p_write(void) { (void)!write(file, page, 1); }
static void p_writev(void) { IOV(1); (void)!writev(file, v, 2); }

/* ---- functions that must not be cancellation points ------------------------------------------ */
static void n_mutex(void)
{
	struct timespec t = test_in_ms(CLOCK_REALTIME, 1);

	CHECK_EQ(pthread_mutex_lock(&mutex), 0);
	CHECK_EQ(pthread_mutex_trylock(&mutex), EBUSY);
	CHECK_EQ(pthread_mutex_timedlock(&mutex, &t), ETIMEDOUT);
	CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
}
static void n_cond(void)
{
	CHECK_EQ(pthread_cond_signal(&cond), 0);
	CHECK_EQ(pthread_cond_broadcast(&cond), 0);
}
static void n_sem(void)
{
	CHECK_EQ(sem_post(&full), 0);
	CHECK_EQ(sem_trywait(&full), 0);
}
static void n_spin(void)
{
	CHECK_EQ(pthread_spin_lock(&spin), 0);
	CHECK_EQ(pthread_spin_unlock(&spin), 0);
}
static void n_rwlock(void) /* may be a cancellation point by POSIX; is none in libc */
{
	CHECK_EQ(pthread_rwlock_rdlock(&rwlock), 0);
	CHECK_EQ(pthread_rwlock_unlock(&rwlock), 0);
	CHECK_EQ(pthread_rwlock_wrlock(&rwlock), 0);
	CHECK_EQ(pthread_rwlock_unlock(&rwlock), 0);
}
static void n_barrier(void)
{
	CHECK_EQ(pthread_barrier_wait(&alone), PTHREAD_BARRIER_SERIAL_THREAD);
}
static void *end(void *arg) { sem_post(arg); return arg; }
static void n_create(void)
{
	pthread_t t;

	CHECK_EQ(pthread_create(&t, NULL, end, &ended), 0);
	CHECK_EQ(pthread_detach(t), 0);
}
static void nothing(void) {}
static void n_once(void)
{
	pthread_once_t once = PTHREAD_ONCE_INIT;

	CHECK_EQ(pthread_once(&once, nothing), 0);
}
static void n_key(void)
{
	CHECK_EQ(pthread_setspecific(key, page), 0);
	CHECK(pthread_getspecific(key) == page);
	CHECK_EQ(pthread_setspecific(key, NULL), 0);
}
static void n_signals(void)
{
	sigset_t old, set = usr1();

	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, &old), 0);
	CHECK_EQ(pthread_kill(pthread_self(), 0), 0);
	CHECK_EQ(raise(SIGUSR2), 0);
	CHECK_EQ(pthread_sigmask(SIG_SETMASK, &old, NULL), 0);
}
static void n_yield(void) { CHECK_EQ(sched_yield(), 0); }
static void n_memory(void) { free(malloc(1 << 20)); }
static void n_lock_state(void)
{
	CHECK_EQ(fcntl(file, F_SETLK, &(struct flock){ .l_type = F_UNLCK }), 0);
}

#define IS(name) { #name, p_##name, true }
#define NOT(name) { #name, n_##name, false }
static const struct point {
	const char *name;
	void (*call)(void);
	bool is;
} points[] = {
	IS(accept), IS(aio_suspend), IS(clock_nanosleep), IS(connect), IS(creat), IS(fcntl),
	IS(fdatasync), IS(fsync), IS(lockf), IS(mq_receive), IS(mq_send), IS(mq_timedreceive),
	IS(mq_timedsend), IS(msgrcv), IS(msgsnd), IS(msync), IS(nanosleep), IS(open), IS(openat),
	IS(pause), IS(poll), IS(ppoll), IS(pread), IS(preadv), IS(pselect), IS(pthread_cond_timedwait),
	IS(pthread_cond_clockwait), IS(pthread_cond_wait), IS(pthread_join), IS(pthread_testcancel),
	IS(pwrite), IS(pwritev), IS(read), IS(readv), IS(recv), IS(recvfrom), IS(recvmsg), IS(select),
	IS(sem_timedwait), IS(sem_wait), IS(send), IS(sendmsg), IS(sendto), IS(sigsuspend),
	IS(sigtimedwait), IS(sigwait), IS(sigwaitinfo), IS(sleep), IS(tcdrain), IS(usleep), IS(wait),
	IS(waitid), IS(waitpid), IS(write), IS(writev), IS(close),
	NOT(mutex), NOT(cond), NOT(sem), NOT(spin), NOT(rwlock), NOT(barrier), NOT(create),
	NOT(once), NOT(key), NOT(signals), NOT(yield), NOT(memory), NOT(lock_state),
};

static void *call_it(void *arg)
{
	const struct point *p = arg;

	CHECK_EQ(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL), 0);
	CHECK_EQ(pthread_cancel(pthread_self()), 0);
	CHECK_EQ(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL), 0);
	p->call();
	CHECK_EQ(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL), 0);
	return arg;
}

static void *sleeps(void *arg)
{
	while (sem_wait(arg))
		;
	return arg;
}

static void ignore(int sig) { (void)sig; }

static void places(void)
{
	char name[] = "/tmp/cancel_points.XXXXXX", text[40];
	struct mq_attr a = { .mq_maxmsg = 4, .mq_msgsize = 100 };

	file = mkstemp(name);
	zero = open("/dev/zero", O_RDONLY);
	listener = socket(AF_UNIX, SOCK_STREAM, 0);
	CHECK(file >= 0 && zero >= 0 && listener >= 0 && unlink(name) == 0);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	tty = posix_openpt(O_RDWR | O_NOCTTY); /* if there is none, tcdrain is cancelled all the same */
	snprintf(text, sizeof text, "/cancel_points.%d", (int)getpid());
	mq = mq_open(text, O_CREAT | O_RDWR, 0600, &a);
	mq_unlink(text);
	queue = msgget(IPC_PRIVATE, 0600);
	CHECK_EQ(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE), 0);
	CHECK_EQ(pthread_barrier_init(&alone, NULL, 1), 0);
	CHECK_EQ(pthread_key_create(&key, NULL), 0);
	CHECK_EQ(sem_init(&full, 0, 1), 0);
	CHECK_EQ(sem_init(&ended, 0, 0), 0);
	signal(SIGUSR2, ignore);
}

int main(void)
{
	int value, failed = 0;
	sem_t wake;

	places();
	CHECK_EQ(sem_init(&wake, 0, 0), 0);
	CHECK_EQ(pthread_create(&sleeper, NULL, sleeps, &wake), 0);
	for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
		pthread_t t;
		void *r;

		CHECK_EQ(pthread_create(&t, NULL, call_it, (void *)&points[i]), 0);
		CHECK_EQ(pthread_join(t, &r), 0);
		if ((r == PTHREAD_CANCELED) == points[i].is)
			continue;
		fprintf(stderr, "%s was%s cancelled\n", points[i].name, points[i].is ? " not" : "");
		failed = 1;
	}
	CHECK_EQ(sem_wait(&ended), 0); /* of the thread that was made */
	/* the call had no effect */
	CHECK_EQ(sem_getvalue(&full, &value), 0);
	CHECK_EQ(value, 1);
	CHECK_EQ(lseek(file, 0, SEEK_END), 0);
	CHECK_EQ(recv(pair[0], page, 1, MSG_DONTWAIT), -1);
	CHECK(fcntl(zero, F_GETFD) >= 0);
	if (queue >= 0)
		msgctl(queue, IPC_RMID, NULL);
	CHECK_EQ(sem_post(&wake), 0);
	CHECK_EQ(pthread_join(sleeper, NULL), 0);
	return failed;
}
