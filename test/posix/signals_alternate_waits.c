/* posix/signal_stack: handlers of faults on alternate stacks wait, in several threads at once: for
 * a mutex, a condition, a semaphore, a pipe. Each returns to the instruction that faulted, with its
 * own stack, whatever ran meanwhile. A handler that computes lets other threads run. In a handler a
 * second signal stays on the stack, a handler's sigaltstack counts until that handler returns,
 * SS_AUTODISARM frees the stack for the time, a jump leaves the stack, and the context tells the
 * thread's stack. A child of fork has its creator's. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "test.h"

#ifndef SS_AUTODISARM
#define SS_AUTODISARM (1u << 31)
#endif

enum { THREADS = 8, PAGES = 12, STACK = 65536, PAGE = 4096, JUMPS = 20 };
enum how { MUTEX, CONDITION, SEMAPHORE, PIPE, HOWS };

static char *memory;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static sem_t answered[THREADS];
static int ask[2], answer[THREADS][2];
static __thread int me;
static __thread char *stack;
static __thread sigjmp_buf back;
static __thread volatile int mode, seen;

struct question {
	char *page;
	int who, how;
};

static bool is_on_stack(const void *at)
{
	return (const char *)at >= stack && (const char *)at < stack + STACK;
}

static void set_stack(char *memory_of_it, int flags)
{
	stack_t s = { .ss_sp = memory_of_it, .ss_size = STACK, .ss_flags = flags };

	CHECK_EQ(sigaltstack(&s, NULL), 0);
}

static void open_page(char *page)
{
	CHECK_EQ(mprotect(page, PAGE, PROT_READ | PROT_WRITE), 0);
	page[0]++;
}

static void fault(int sig, siginfo_t *info, void *context)
{
	int saved = errno, who = me;
	struct question q = { (char *)((uintptr_t)info->si_addr & -(uintptr_t)PAGE), who, 0 };
	char here, c;

	(void)context;
	CHECK_EQ(sig, SIGSEGV);
	CHECK(is_on_stack(&here));
	CHECK(q.page >= memory && q.page < memory + (size_t)THREADS * PAGES * PAGE);
	q.how = (int)((q.page - memory) / PAGE) % HOWS;
	switch ((enum how)q.how) {
	case MUTEX:
		pthread_mutex_lock(&mutex);
		open_page(q.page);
		usleep(200);
		pthread_mutex_unlock(&mutex);
		break;
	case CONDITION:
		CHECK_EQ(write(ask[1], &q, sizeof q), sizeof q);
		pthread_mutex_lock(&mutex);
		while (mprotect(q.page, PAGE, PROT_READ) == 0 && q.page[0] == 0)
			pthread_cond_wait(&condition, &mutex);
		CHECK_EQ(mprotect(q.page, PAGE, PROT_READ | PROT_WRITE), 0);
		pthread_mutex_unlock(&mutex);
		break;
	case SEMAPHORE:
		CHECK_EQ(write(ask[1], &q, sizeof q), sizeof q);
		while (sem_wait(&answered[who]))
			CHECK_EQ(errno, EINTR);
		break;
	default:
		CHECK_EQ(write(ask[1], &q, sizeof q), sizeof q);
		CHECK_EQ(read(answer[who][0], &c, 1), 1);
	}
	CHECK_EQ(me, who);
	CHECK(is_on_stack(&here));
	errno = saved;
}

static void *pager(void *arg)
{
	struct question q;

	while (read(ask[0], &q, sizeof q) == sizeof q) {
		pthread_mutex_lock(&mutex);
		open_page(q.page);
		pthread_cond_broadcast(&condition);
		pthread_mutex_unlock(&mutex);
		if (q.how == SEMAPHORE)
			sem_post(&answered[q.who]);
		else if (q.how == PIPE)
			CHECK_EQ(write(answer[q.who][1], "", 1), 1);
	}
	return arg;
}

static void *toucher(void *arg)
{
	me = (int)(intptr_t)arg;
	stack = malloc(STACK);
	set_stack(stack, 0);
	for (int i = 0; i < PAGES; i++) {
		volatile char *page = memory + (size_t)(me * PAGES + i) * PAGE;
		double kept = me + i * 0.5;

		__asm__ volatile("" : "+m"(kept));
		CHECK_EQ(page[0], 1);
		CHECK(kept == me + i * 0.5);
	}
	return NULL;
}

static void waits(void)
{
	pthread_t t[THREADS], p;

	CHECK_EQ(pipe(ask), 0);
	for (int i = 0; i < THREADS; i++) {
		CHECK_EQ(pipe(answer[i]), 0);
		CHECK_EQ(sem_init(&answered[i], 0, 0), 0);
	}
	CHECK_EQ(pthread_create(&p, NULL, pager, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, toucher, (void *)(intptr_t)i), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	close(ask[1]);
	CHECK_EQ(pthread_join(p, NULL), 0);
}

/* ---- the handler's view ---------------------------------------------------------------------- */

enum { PLAIN, NESTS, JUMPS_OUT, SETS, DISARMED, SWITCHES };
static int go;

static void look(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	static __thread char other[STACK];
	char here = 0;
	stack_t s;

	(void)info;
	seen++;
	CHECK(is_on_stack(&here));
	CHECK_EQ(sigaltstack(NULL, &s), 0);
	if (mode == DISARMED) {
		CHECK_EQ(s.ss_flags, SS_DISABLE);
		set_stack(other, 0);
		return;
	}
	CHECK(s.ss_sp == stack && s.ss_size == STACK);
	CHECK_EQ(s.ss_flags, SS_ONSTACK);
	CHECK(uc->uc_stack.ss_sp == stack && uc->uc_stack.ss_size == STACK);
	CHECK_EQ(uc->uc_stack.ss_flags, 0);
	s.ss_flags = SS_DISABLE;
	CHECK(sigaltstack(&s, NULL) == -1 && errno == EPERM);
	if (mode == NESTS && sig == SIGUSR1)
		CHECK_EQ(pthread_kill(pthread_self(), SIGUSR2), 0);
	if (mode == JUMPS_OUT)
		siglongjmp(back, 1);
	if (mode == SWITCHES)
		while (!__atomic_load_n(&go, __ATOMIC_SEQ_CST)) /* never makes a call that lets other threads run */
			;
}

/* On the interrupted stack: a handler's setting is undone. */
static void sets(int sig)
{
	static __thread char other[STACK];
	stack_t s = { 0 };

	(void)sig;
	CHECK(!is_on_stack(&s));
	set_stack(other, 0);
	CHECK_EQ(sigaltstack(NULL, &s), 0);
	CHECK(s.ss_sp == other);
}

static void check_stack(unsigned flags)
{
	stack_t s;

	CHECK_EQ(sigaltstack(NULL, &s), 0);
	CHECK(s.ss_sp == stack && s.ss_size == STACK);
	CHECK_EQ((unsigned)s.ss_flags, flags);
}

static void *looker(void *arg)
{
	pid_t pid;
	int status;

	stack = malloc(STACK);
	set_stack(stack, 0);
	CHECK_EQ(raise(SIGUSR1), 0);
	mode = NESTS;
	CHECK_EQ(raise(SIGUSR1), 0);
	CHECK_EQ(seen, 3);
	mode = JUMPS_OUT;
	for (volatile int i = 0; i < JUMPS; i++)
		if (!sigsetjmp(back, 1))
			raise(SIGUSR1);
	CHECK_EQ(seen, 3 + JUMPS);
	check_stack(0);
	CHECK_EQ(raise(SIGALRM), 0);
	check_stack(0);
	mode = DISARMED;
	set_stack(stack, (int)SS_AUTODISARM);
	CHECK_EQ(raise(SIGUSR1), 0);
	check_stack(SS_AUTODISARM);
	mode = PLAIN;
	set_stack(stack, 0);
	pid = fork();
	if (pid == 0) {
		check_stack(0);
		raise(SIGUSR1);
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	return arg;
}

static void *computes(void *arg)
{
	stack = malloc(STACK);
	set_stack(stack, 0);
	mode = SWITCHES;
	CHECK_EQ(raise(SIGUSR1), 0);
	return arg;
}

static void *goes(void *arg)
{
	__atomic_store_n(&go, 1, __ATOMIC_SEQ_CST);
	return arg;
}

static void sees(void)
{
	pthread_t t[THREADS], last;

	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, looker, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, computes, NULL), 0);
	usleep(1000);
	CHECK_EQ(pthread_create(&last, NULL, goes, NULL), 0);
	CHECK_EQ(pthread_join(last, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
}

int main(void)
{
	struct sigaction sa = { .sa_sigaction = fault, .sa_flags = SA_SIGINFO | SA_ONSTACK };

	memory = mmap(NULL, (size_t)THREADS * PAGES * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(memory != MAP_FAILED);
	CHECK_EQ(sigaction(SIGSEGV, &sa, NULL), 0);
	sa.sa_sigaction = look;
	CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	CHECK_EQ(sigaction(SIGUSR2, &sa, NULL), 0);
	sa.sa_handler = sets;
	sa.sa_flags = 0;
	CHECK_EQ(sigaction(SIGALRM, &sa, NULL), 0);
	waits();
	sees();
	return 0;
}
