/* putc locks the stream for each character: dear, and yet two threads' words mix. putc_unlocked does not
 * lock: cheap, and on its own a data race. flockfile round a loop of putc_unlocked is both cheap and
 * right: one lock for a word. (A thread of the native interface must not wait with a stream locked, see
 * the warnings in README; here none does.) */
#include "two.h"

#include <stdbool.h>

enum { WORDS = 400, LENGTH = 50 };

static FILE *out;
static bool unlocked;

static void put_word(char letter)
{
	if (unlocked)
		flockfile(out);
	for (int i = 0; i < LENGTH; i++) {
		if (unlocked)
			putc_unlocked(letter, out);
		else
			putc(letter, out);
		if (!unlocked && i == LENGTH / 2)
			kb_yield(); /* between two calls anybody may come in; on other machines without being asked */
	}
	if (unlocked) {
		putc_unlocked('\n', out);
		funlockfile(out);
	} else {
		putc('\n', out);
	}
}

static void *write_words(void *arg)
{
	for (int i = 0; i < WORDS; i++)
		put_word((long)arg ? 'b' : 'a');
	return NULL;
}

/* Words that are not of one letter. */
static int broken_words(void)
{
	char line[4 * LENGTH];
	int n = 0;

	rewind(out);
	while (fgets(line, sizeof(line), out))
		n += strlen(line) != LENGTH + 1 || strspn(line, line[0] == 'a' ? "a" : "b") != LENGTH;
	return n;
}

static double ns_a_character(bool cheap)
{
	enum { MANY = 200000 };
	uint64_t start = kb_now();

	if (cheap) {
		flockfile(out);
		for (int i = 0; i < MANY; i++)
			putc_unlocked('x', out);
		funlockfile(out);
	} else {
		for (int i = 0; i < MANY; i++)
			putc('x', out);
	}
	return (double)(kb_now() - start) / MANY;
}

static int run(bool cheap)
{
	int broken;
	double ns;

	out = tmpfile();
	if (!out)
		abort();
	unlocked = cheap;
	two(write_words, TOGETHER);
	broken = broken_words();
	ns = ns_a_character(cheap);
	printf("%s: %d of %d words broken, %.1f ns a character\n",
	       cheap ? "right: putc_unlocked under flockfile" : "wrong: putc", broken, 2 * WORDS, ns);
	fclose(out);
	return broken;
}

int main(void)
{
	int wrong = run(false), right = run(true);

	return wrong > 0 && right == 0 ? 0 : 1;
}
