/* core/boot: options that are refused once they meet the machine or the program set nothing, and
 * the next call starts the runtime, with other options or with none. A message names the fault. */
/* matrix: none */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kochab/kochab.h>

#include "core/child.h"

static unsigned default_vps;

static uint64_t option(const char *name)
{
	uint64_t value = 77;

	CHECK_EQ(kb_option(name, &value), 0);
	return value;
}

/* Returns good words around a processor that the program does not have. */
static int ask_for_wrong_processor(void)
{
	char text[64];
	cpu_set_t all;
	int cpu = 0;

	CHECK_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
	while (CPU_ISSET(cpu, &all))
		cpu++;
	snprintf(text, sizeof(text), "vps=7 bind=%d spin-us=123", cpu);
	return kb_init_with(text);
}

static void then_none(void *unused)
{
	(void)unused;
	CHECK_EQ(ask_for_wrong_processor(), EINVAL);
	CHECK_EQ(ask_for_wrong_processor(), EINVAL);
	CHECK_EQ(kb_init(), 0);
	CHECK_EQ(kb_vp_count(), default_vps);
	CHECK_EQ(option("spin_us"), 50);
}

static void then_others(void *unused)
{
	int at;

	(void)unused;
	CHECK_EQ(ask_for_wrong_processor(), EINVAL);
	CHECK_EQ(kb_init_with("vps=2 bind=cores"), 0);
	CHECK_EQ(kb_vp_count(), 2);
	CHECK_EQ(option("spin_us"), 50);
	for (unsigned i = 0; i < 2; i++) {
		CHECK_EQ(kb_vp_bound(i, &at), 0);
		CHECK(at >= 0);
	}
}

static void *ends(void *arg)
{
	return arg;
}

static void then_thread(void *unused)
{
	kb_thread_t t;

	(void)unused;
	CHECK_EQ(ask_for_wrong_processor(), EINVAL);
	CHECK_EQ(kb_thread_create(&t, NULL, ends, NULL), 0);
	CHECK_EQ(kb_thread_join(t, NULL), 0);
}

static void *stays(void *arg)
{
	pause();
	return arg;
}

/* Processes are refused to a program with another kernel thread. */
static void other_body(void *unused)
{
	pthread_t t;

	(void)unused;
	CHECK_EQ(unsetenv("KOCHAB_BODY"), 0); /* the environment goes before */
	CHECK_EQ(pthread_create(&t, NULL, stays, NULL), 0);
	CHECK_EQ(kb_init_with("vps=7 body=process"), ENOTSUP);
	CHECK_EQ(kb_init_with("vps=2"), 0);
	CHECK_EQ(kb_vp_count(), 2);
	CHECK_EQ(option("body"), 0);
}

static void comma(void *unused)
{
	(void)unused;
	CHECK_EQ(kb_init_with("vps=2,bind=cores"), EINVAL);
	CHECK_EQ(kb_init_with("vps=2;spin-us=1,bind=cores"), EINVAL);
	CHECK_EQ(kb_init_with("vps=2 bind=cores"), 0);
}

static void vps(void *unused)
{
	(void)unused;
	CHECK_EQ(kb_init(), 0);
	printf("vps %u.", kb_vp_count());
}

int main(void)
{
	static struct child c;
	const char *said;

	child_run(&c, vps, NULL);
	child_exited(&c, 0);
	said = strstr(c.text, "vps "); /* a sanitizer may have printed a line before */
	CHECK(said);
	CHECK_EQ(sscanf(said, "vps %u.", &default_vps), 1);
	child_run(&c, then_none, NULL);
	child_exited(&c, 0);
	child_said(&c, "option bind: processor ");
	child_run(&c, then_others, NULL);
	child_exited(&c, 0);
	child_run(&c, then_thread, NULL);
	child_exited(&c, 0);
	child_run(&c, other_body, NULL);
	child_exited(&c, 0);
	child_said(&c, "virtual processors cannot be processes");
	child_run(&c, comma, NULL);
	child_exited(&c, 0);
	child_said(&c, "vps=2,bind=cores: bad value (blanks separate options");
	return 0;
}
