/* space_test.h - a test is several programs: each role is this program, started anew with the
 * role's name and the name of the space. */
#ifndef KB_SPACE_TEST_H
#define KB_SPACE_TEST_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kochab/space.h>

#include "space/path.h"
#include "test.h"

#define MS 1000000ull
static char space_name[64];

static inline uint64_t in_ms(uint64_t ms)
{
	return kb_now() + ms * MS;
}

static void space_gone(void)
{
	kb_space_unlink(space_name);
}

/* Finds the path of its file, for a test that changes the file without attaching. */
static inline void space_path(char *path, size_t size)
{
	CHECK(space_path_of(space_name, path, size));
}

/* Makes a space with an unused name; it is removed when main ends. A peer gets the name by argv. */
static inline kb_space_t *space_new(const kb_space_config_t *config)
{
	kb_space_t *s = NULL;

	snprintf(space_name, sizeof space_name, "test.%d.%llx", getpid(),
		(unsigned long long)test_now_ns());
	CHECK_EQ(kb_space_create(&s, space_name, config), 0);
	return s;
}

static inline kb_space_t *space_join(const char *name)
{
	kb_space_t *s = NULL;

	snprintf(space_name, sizeof space_name, "%s", name);
	CHECK_EQ(kb_space_attach(&s, name, 0), 0);
	return s;
}

static inline pid_t peer(const char *role, const char *more)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		sigset_t none;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		execl("/proc/self/exe", "peer", role, space_name, more, (char *)NULL);
		_exit(127);
	}
	return pid;
}

static inline void peer_ends(pid_t pid)
{
	int status = 0;

	CHECK_EQ(waitpid(pid, &status, 0), pid);
	if (!WIFEXITED(status) || WEXITSTATUS(status)) {
		space_gone();
		CHECK_EQ(status, 0);
	}
}

static inline void peer_kill(pid_t pid)
{
	CHECK_EQ(kill(pid, SIGKILL), 0);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
}

/* A test of two programs with equal roles: the first program makes the space and starts the second;
 * they meet at a barrier. */
struct pair {
	kb_space_t *s;
	kb_space_barrier_t *barrier;
	pid_t other; /* 0: this program is not the first */
};

static inline struct pair pair_begin(int argc, char **argv)
{
	struct pair p = { 0 };

	CHECK_EQ(kb_init(), 0);
	if (argc > 2) {
		p.s = space_join(argv[2]);
	} else {
		p.s = space_new(NULL);
		atexit(space_gone);
		p.other = peer("other", NULL);
	}
	CHECK_EQ(kb_space_barrier_open(p.s, "meet", 2, &p.barrier), 0);
	return p;
}

static inline void pair_meet(const struct pair *p)
{
	CHECK(kb_space_barrier_wait(p->barrier, in_ms(30000)) <= 0);
}

/* Ends when both programs have finished. */
static inline void pair_end(const struct pair *p)
{
	pair_meet(p);
	if (p->other)
		peer_ends(p->other);
	CHECK_EQ(kb_space_detach(p->s), 0);
}

/* fn as a lightweight thread or as a kernel thread of its own. */
struct runner {
	bool kernel;
	kb_thread_t light;
	pthread_t heavy;
};

static inline void run(struct runner *r, bool kernel, void *(*fn)(void *), void *arg)
{
	r->kernel = kernel;
	CHECK_EQ(kernel ? pthread_create(&r->heavy, NULL, fn, arg) :
		kb_thread_create(&r->light, NULL, fn, arg), 0);
}

static inline void run_join(struct runner *r)
{
	CHECK_EQ(r->kernel ? pthread_join(r->heavy, NULL) : kb_thread_join(r->light, NULL), 0);
}

#endif
