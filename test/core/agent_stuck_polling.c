/* core/agent, core/preempt: work behind a thread that computes, while idle VPs poll for long. */
/* matrix: vps=2 */
#include "core/agent_stuck.h"

int main(void)
{
	CHECK_EQ(setenv("KOCHAB_SPIN_US", "1000000", 1), 0);
	agent_stuck();
	return 0;
}
