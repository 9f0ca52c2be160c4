/* strtok keeps where it stands in a static variable: two threads that cut their strings turn by turn get
 * pieces of each other's. Three ways to cope, in the order of the lecture: give each thread its own
 * variable (the drop-in does that for unmodified programs), let the caller free what is returned, or
 * change the interface: strtok_r, whose third argument is the caller's place to stand. */
#include "two.h"

static char *where; /* the static variable inside */

static char *naive_strtok(char *s, const char *ends)
{
	return strtok_r(s, ends, &where);
}

static int naive, mixed_up;
static char taken[2][16];

static void *cut(void *arg)
{
	static const char *const text[2] = { "a b c", "x y z" };
	long me = (long)arg;
	char copy[8], *mine = NULL, *piece;

	strcpy(copy, text[me]);
	piece = naive ? naive_strtok(copy, " ") : strtok_r(copy, " ", &mine);
	while (piece) {
		strncat(taken[me], piece, 1);
		mixed_up += strchr(text[me], *piece) == NULL;
		kb_yield();
		piece = naive ? naive_strtok(NULL, " ") : strtok_r(NULL, " ", &mine);
	}
	return NULL;
}

static int run(int how)
{
	naive = how;
	mixed_up = 0;
	memset(taken, 0, sizeof(taken));
	two(cut, TOGETHER);
	printf("%s: \"a b c\" gave %s, \"x y z\" gave %s\n", how ? "wrong: strtok" : "right: strtok_r", taken[0],
	       taken[1]);
	return mixed_up;
}

int main(void)
{
	int wrong = run(1), right = run(0);

	return wrong > 0 && right == 0 && strcmp(taken[0], "abc") == 0 && strcmp(taken[1], "xyz") == 0 ? 0 : 1;
}
