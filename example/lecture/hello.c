/* One thread prints "goto statement reached", another "Hello World", through a library that was written
 * without threads in mind: its position in the line is common to both. On the display: neither the one nor
 * the other. Wrap the library's calls with a mutex, or mend the library: stdio's own functions lock the
 * stream for the length of a call. */
#include "two.h"

static char display[64];
static size_t position;
static kb_mutex_t lock;
static int locked;

/* The library: a call may lose the processor between any two characters. */
static void print(const char *text)
{
	if (locked)
		kb_mutex_lock(&lock);
	for (const char *c = text; *c; c++) {
		display[position++] = *c;
		if ((c - text) % 3 == 2)
			kb_yield();
	}
	if (locked)
		kb_mutex_unlock(&lock);
}

static void *say(void *arg)
{
	print((long)arg == 0 ? "goto statement reached. " : "Hello World. ");
	return NULL;
}

static int whole(void)
{
	return strstr(display, "goto statement reached. ") && strstr(display, "Hello World. ");
}

static int run(int with_lock)
{
	locked = with_lock;
	position = 0;
	memset(display, 0, sizeof(display));
	two(say, TOGETHER);
	printf("%s: %s\n", with_lock ? "right" : "wrong", display);
	return whole();
}

int main(void)
{
	int wrong = run(0), right = run(1);

	return !wrong && right ? 0 : 1;
}
