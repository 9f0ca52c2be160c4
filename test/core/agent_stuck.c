/* core/agent, core/preempt: work behind a thread that computes, while idle VPs sleep. */
/* matrix: vps=2,4 */
#include "core/agent_stuck.h"

int main(void)
{
	agent_stuck();
	return 0;
}
