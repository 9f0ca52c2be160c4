/* core/vp: more VPs than cores. */
/* matrix: vps=3,8,16 */
#include "core/busy_day.h"

int main(void)
{
	busy_day();
	return 0;
}
