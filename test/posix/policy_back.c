/* posix/policy_back - a thread that sets its memory policy keeps a kernel thread of its own until
 * it sets the policy back, as hwloc does when it probes the kernel; threads that it creates
 * afterwards are ordinary threads. */
#include <dlfcn.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "test.h"

static int (*vp_self)(void); /* the drop-in's; NULL: on kernel threads */

static int policy(int mode, unsigned long nodes)
{
	return (int)syscall(SYS_set_mempolicy, mode, nodes ? &nodes : NULL, nodes ? 64UL : 0UL);
}

static int policy_now(void)
{
	int mode = -1;

	CHECK_EQ(syscall(SYS_get_mempolicy, &mode, NULL, 0UL, NULL, 0UL), 0);
	return mode;
}

static void *is_plain(void *arg)
{
	(void)arg;
	CHECK_EQ(policy_now(), MPOL_DEFAULT);
	if (vp_self)
		CHECK(vp_self() >= 0);
	return NULL;
}

static void *set_and_back(void *arg)
{
	pthread_t thread;

	(void)arg;
	for (int i = 0; i < 20; i++) {
		CHECK_EQ(policy(MPOL_PREFERRED, 1), 0);
		CHECK_EQ(policy_now(), MPOL_PREFERRED);
		if (vp_self)
			CHECK_EQ(vp_self(), -1);
		CHECK_EQ(policy(MPOL_DEFAULT, 0), 0);
		is_plain(NULL);
		CHECK_EQ(pthread_create(&thread, NULL, is_plain, NULL), 0);
		CHECK_EQ(pthread_join(thread, NULL), 0);
	}
	return NULL;
}

int main(void)
{
	pthread_t thread[4];

	if (syscall(SYS_get_mempolicy, NULL, NULL, 0UL, NULL, 0UL) != 0 || policy_now() != MPOL_DEFAULT)
		SKIP("no memory policies here, or one is set already");
	vp_self = (int (*)(void))dlsym(RTLD_DEFAULT, "kb_vp_self");
	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&thread[i], NULL, set_and_back, NULL), 0);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_join(thread[i], NULL), 0);
	set_and_back(NULL);
	return 0;
}
