/* core/agent: the first time a virtual processor has nothing to run, its agent is entered with FP
 * control words of its own; a thread that is resumed from there has its own words, all the same. */
#include <fenv.h>
#include <kochab/kochab.h>

#include "core/own_tls.h"
#include "test.h"

int main(void)
{
	CHECK_EQ(kb_init(), 0);
	if (!own_tls_is_there())
		SKIP("threads with own TLS cannot be had here");
	CHECK_EQ(fesetround(FE_UPWARD), 0);
	kb_sleep(2000000);
	CHECK_EQ(fegetround(), FE_UPWARD);
	return 0;
}
