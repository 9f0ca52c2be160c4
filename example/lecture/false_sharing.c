/* Two threads write two variables that have nothing to do with each other, but lie in one cache line: the
 * line travels between the cores at each write. A line's distance between them, and each core keeps its
 * own. What is measured depends on the machine (with one core there is no difference); what is checked is
 * where the variables lie. */
#include "two.h"

enum { WRITES = 5000000, LINE = 64 };

static struct {
	volatile int a, b;
} near __attribute__((aligned(LINE)));

static struct {
	volatile int a __attribute__((aligned(2 * LINE))); /* two lines: processors fetch them in pairs */
	volatile int b __attribute__((aligned(2 * LINE)));
} far;

static volatile int *word[2];

static void *write_it(void *arg)
{
	volatile int *mine = word[(long)arg];

	for (int i = 1; i <= WRITES; i++)
		*mine = i;
	return NULL;
}

static double run(volatile int *a, volatile int *b)
{
	uint64_t start = kb_now();

	word[0] = a;
	word[1] = b;
	two(write_it, APART);
	return (double)(kb_now() - start) / WRITES;
}

static long line_of(volatile int *p)
{
	return (long)((uintptr_t)p / LINE);
}

int main(void)
{
	double slow = run(&near.a, &near.b), fast = run(&far.a, &far.b);

	printf("wrong: in one cache line: %.2f ns a write\n", slow);
	printf("right: in lines of their own: %.2f ns a write\n", fast);
	return line_of(&near.a) == line_of(&near.b) && line_of(&far.a) != line_of(&far.b) && near.a == WRITES &&
	       near.b == WRITES && far.a == WRITES && far.b == WRITES ? 0 : 1;
}
