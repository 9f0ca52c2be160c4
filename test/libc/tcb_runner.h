/* tcb_runner.h - a minimal runner of threads with control blocks of their own: a slab, a block, a
 * context, and a kernel thread that becomes the thread until it pauses. Another kernel thread may
 * continue it. For the tests of libc/tcb and the measurements beside them. */
#ifndef TCB_RUNNER_H
#define TCB_RUNNER_H

#ifdef __cplusplus
extern "C" {
#endif
#include "arch/arch.h"
#include "libc/tcb.h"
#ifdef __cplusplus
}
#endif
#include "test.h"

#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#else
#define VALGRIND_STACK_REGISTER(low, high) 0
#define VALGRIND_STACK_DEREGISTER(id) ((void)(id))
#define RUNNING_ON_VALGRIND 0
#endif
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct runner {
	struct kbi_tcb tcb;
	struct kbi_ctx here, back;
	void (*fn)(void *);
	void *arg;
	void *host_tp;
	bool done;
	char *slab;
	size_t slab_size;
	unsigned stack_id; /* valgrind's number */
};

static __thread void *runner_self __attribute__((tls_model("initial-exec")));

/* Each read must be fresh: the kernel thread may have changed since the last read. */
static KBI_NOINLINE __attribute__((unused)) struct runner *runner_current(void)
{
	kbi_compiler_barrier();
	return (struct runner *)runner_self;
}

static inline void runner_setup(void)
{
	const char *how = getenv("KOCHAB_TLS");
	enum kbi_tcb_mode mode = KBI_TCB_AUTO;
	int err;

	if (how && !strcmp(how, "donor"))
		mode = KBI_TCB_DONOR;
	if (how && !strcmp(how, "template"))
		mode = KBI_TCB_TEMPLATE;
#if KBI_HAVE_TP && defined(__x86_64__)
	kbi_tp_init(getenv("KOCHAB_FSGSBASE") ? atoi(getenv("KOCHAB_FSGSBASE")) : true);
#endif
	err = kbi_tcb_setup(&runner_self, mode);
	if (err && !kbi_tcb_available)
		SKIP(kbi_tcb_why());
	CHECK_EQ(err, 0);
}

/* Runs the whole test in a process of its own for each way to make blocks. Skipped only if both are
 * skipped. */
static inline int runner_each_mode(void (*test)(void))
{
	static const char *const modes[] = { "template", "donor" };
	int skipped = 0;

	for (int i = 0; i < 2; i++) {
		int status = -1;
		pid_t pid = fork();

		if (pid == 0) {
			setenv("KOCHAB_TLS", modes[i], 1);
			runner_setup();
			test();
			exit(0);
		}
		CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
		if (!WIFEXITED(status) || (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != 77)) {
			fprintf(stderr, "with %s: status %#x\n", modes[i], (unsigned)status);
			return 1;
		}
		skipped += WEXITSTATUS(status) == 77;
	}
	return skipped == 2 ? 77 : 0;
}

static inline int runner_try_make(struct runner *r, unsigned id, size_t room)
{
	int err;

	memset((void *)r, 0, sizeof(*r));
	r->slab_size = (kbi_tcb_slab_min() + room + KBI_PAGE - 1) & -(size_t)KBI_PAGE;
	r->slab = (char *)mmap(NULL, r->slab_size, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK((void *)r->slab != MAP_FAILED);
	err = kbi_tcb_make(&r->tcb, r->slab, r->slab_size, id, r);
	if (err)
		munmap(r->slab, r->slab_size);
	else
		r->stack_id = VALGRIND_STACK_REGISTER(r->tcb.stack_low,
			r->tcb.stack_low + r->tcb.stack_size);
	return err;
}

static inline void runner_make(struct runner *r, unsigned id)
{
	CHECK_EQ(runner_try_make(r, id, 64 << 10), 0);
}

static inline void runner_free(struct runner *r)
{
	int err;

	VALGRIND_STACK_DEREGISTER(r->stack_id);
	err = kbi_tcb_destroy(&r->tcb);

	if (err != 0)
		CHECK_EQ(err, EBUSY); /* impossible with this libc: the block stays */
	else
		munmap(r->slab, r->slab_size);
}

static inline void runner_entry(void *arg)
{
	struct runner *r = (struct runner *)arg;

	r->fn(r->arg);
	kbi_tcb_reset(&r->tcb, r);
	r->done = true;
	kbi_ctx_switch(&r->here, &r->back, NULL, NULL);
	abort();
}

static inline void runner_start(struct runner *r, void (*fn)(void *), void *arg)
{
	r->fn = fn;
	r->arg = arg;
	r->done = false;
	kbi_ctx_make(&r->here, r->tcb.stack_low, r->tcb.stack_size, runner_entry, r);
}

/* The calling kernel thread runs r until r pauses or ends. */
static KBI_SWITCHER __attribute__((unused)) void runner_resume(struct runner *r)
{
	void *mine = kbi_tp_get();

	kbi_tp_set(r->tcb.tp);
	kbi_ctx_switch(&r->back, &r->here, NULL, NULL);
	kbi_tp_set(mine);
	kbi_compiler_barrier();
}

static KBI_SWITCHER __attribute__((unused)) void runner_pause(void)
{
	struct runner *r = runner_current();

	kbi_ctx_switch(&r->here, &r->back, NULL, NULL);
	kbi_compiler_barrier();
}

static inline void runner_run(struct runner *r, void (*fn)(void *), void *arg)
{
	runner_start(r, fn, arg);
	while (!r->done)
		runner_resume(r);
}

#endif
