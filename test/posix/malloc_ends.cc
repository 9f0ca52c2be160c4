/* Memory taken early and late: in constructors, in destructors of thread_local objects and of keys,
 * after main; a thousand threads, one after another, need no more memory than a few. Also run with
 * libkochab-malloc.so by malloc_kochab.sh. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <string>
#include <sys/resource.h>
#include <thread>
#include <vector>

#include "test.h"

static void *early;
static pthread_key_t key;

__attribute__((constructor(102))) static void before_main()
{
	early = malloc(5000);
	memset(early, 1, 5000);
	atexit([] {
		free(early);
		free(malloc(100));
	});
}

struct Owner {
	std::vector<std::string> v;
	~Owner()
	{
		v.push_back(std::string(300, 'x'));
		free(malloc(70000));
	}
};

static thread_local Owner owner;

static void at_end(void *p)
{
	static thread_local int rounds;

	free(p);
	if (++rounds < 8) /* more rounds than libc makes */
		pthread_setspecific(key, malloc(200));
}

static void body()
{
	owner.v.push_back(std::string(1000, 'y'));
	pthread_setspecific(key, malloc(100));
	for (int i = 0; i < 200; i++)
		free(calloc(1, 1 + i * 40));
}

static long peak()
{
	struct rusage r;

	getrusage(RUSAGE_SELF, &r);
	return r.ru_maxrss;
}

int main()
{
	long some;

	pthread_key_create(&key, at_end);
	for (int i = 0; i < 100; i++)
		std::thread(body).join();
	some = peak();
	for (int i = 0; i < 1000; i++)
		std::thread(body).join();
	CHECK(peak() < some + 8192);
	body();
	return 0;
}
