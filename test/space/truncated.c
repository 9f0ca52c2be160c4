/* space/file, space/space: a process truncates the file of an attached space. A user of the space
 * then ends by SIGBUS, as the kernel decides, after a line that names the space, whichever thread
 * it is; the file is not lengthened again, with zeros in it. */
#include <kochab/kochab.h>
#include <kochab/space.h>

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "core/child.h"
#include "space/path.h"

enum { BYTES = 1 << 20, GROWS = 3 << 20 };

static char space_name[64];
static kb_space_t *space;
static char *memory;
static char path[128];

static void attach(void)
{
	CHECK_EQ(kb_space_attach(&space, space_name, 0), 0);
	CHECK_EQ(kb_space_memory_open(space, "memory", BYTES, (void **)&memory), 0);
	memory[BYTES - 1] = 1;
}

static void *uses_memory(void *arg)
{
	*(volatile char *)&memory[BYTES - 1] = 2;
	return arg;
}

static void on_kernel_thread(void *arg)
{
	attach();
	CHECK_EQ(truncate(path, 0), 0);
	uses_memory(arg);
}

static void on_light_thread(void *arg)
{
	kb_thread_t t;

	attach();
	CHECK_EQ(kb_init(), 0);
	CHECK_EQ(truncate(path, 0), 0);
	CHECK_EQ(kb_thread_create(&t, NULL, uses_memory, arg), 0);
	kb_thread_join(t, NULL);
}

static void in_the_library(void *arg)
{
	kb_space_sem_t *sem;

	(void)arg;
	attach();
	CHECK_EQ(kb_space_sem_open(space, "semaphore", 0, &sem), 0);
	CHECK_EQ(truncate(path, 0), 0);
	kb_space_sem_post(sem);
}

/* Only the end of the file is cut off, which holds no object yet: growth
 * and attaching are refused. */
static void grows(void *arg)
{
	struct stat st;
	void *more;

	(void)arg;
	attach();
	CHECK_EQ(stat(path, &st), 0);
	CHECK_EQ(truncate(path, st.st_size - 4096), 0);
	CHECK_EQ(kb_space_memory_open(space, "more", GROWS, &more), EBADMSG);
	CHECK_EQ(kb_space_attach(&space, space_name, 0), EBADMSG);
	printf("refused\n");
}

static void run(void (*program)(void *), int signal, const char *says)
{
	static struct child c;
	kb_space_t *s = NULL;

	/* a name for the line; made and left by a process of its own, because this process must have no
	 * runtime when it forks */
	snprintf(space_name, sizeof space_name, "test.%d.%llx", getpid(),
		(unsigned long long)test_now_ns());
	if (fork() == 0) {
		CHECK_EQ(kb_space_create(&s, space_name, &(kb_space_config_t){ .limit = 16 << 20 }), 0);
		exit(0);
	}
	wait(NULL);
	CHECK(space_path_of(space_name, path, sizeof path));
	child_run(&c, program, NULL);
	kb_space_unlink(space_name);
	if (signal)
		child_killed(&c, signal);
	else
		child_exited(&c, 0);
	child_said(&c, says);
	if (signal)
		child_said(&c, space_name);
}

int main(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	SKIP("the sanitizer's handler of SIGBUS comes first");
#endif
	run(on_kernel_thread, SIGBUS, "truncated");
	run(on_light_thread, SIGBUS, "truncated");
	run(in_the_library, SIGBUS, "truncated");
	run(grows, 0, "refused");
	return 0;
}
