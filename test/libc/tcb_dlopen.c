/* libc/tcb: libraries with TLS that are loaded after (or before) the blocks are made: dynamic TLS,
 * allocated at first use, and static TLS (initial-exec), which the loader must put into every
 * existing and every new block. Values belong to the thread and are initial for a block's next
 * thread. The test compiles the libraries.
 * matrix: none */
#include "tcb_runner.h"

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

enum { BEFORE = 20, ROUNDS = 3, LOADS = 300 };

static char dir[] = "/tmp/kochab-tcb-XXXXXX";
static const char source[] =
	"static __thread int value MODEL = 4711; static __thread char room[200] MODEL;\n"
	"int *value_of(void) { return &value; } char *room_of(void) { return room; }\n";

#if defined(__GLIBC__)
static const bool static_may_come_late = true;
#else
static const bool static_may_come_late = false; /* musl refuses such libraries */
#endif
static int *(*value_of)(void);
static char *(*room_of)(void);

static void compile(const char *name, const char *model)
{
	const char *cc = getenv("CC");
	char command[600];

	snprintf(command, sizeof(command),
		 "%s -shared -fPIC -O1 '-DMODEL=__attribute__((tls_model(\"%s\")))' -o %s/%s %s/lib.c",
		 cc && *cc ? cc : "cc", model, dir, name, dir);
	if (system(command) != 0)
		SKIP("no compiler for the libraries");
}

static void compile_all(void)
{
	char path[100];
	FILE *f;

	CHECK(mkdtemp(dir) != NULL);
	snprintf(path, sizeof(path), "%s/lib.c", dir);
	f = fopen(path, "w");
	CHECK(f != NULL);
	fputs(source, f);
	fclose(f);
	compile("dynamic.so", "global-dynamic");
	compile("static.so", "initial-exec");
}

static void remove_all(void)
{
	char command[100];

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	CHECK_EQ(system(command), 0);
}

static void *load(const char *name)
{
	char path[100];
	void *lib;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	lib = dlopen(path, RTLD_NOW);
	if (!lib)
		fprintf(stderr, "%s\n", dlerror());
	CHECK(lib != NULL);
	value_of = (int *(*)(void))dlsym(lib, "value_of");
	room_of = (char *(*)(void))dlsym(lib, "room_of");
	CHECK(value_of && room_of);
	return lib;
}

static void use_library(void *arg)
{
	int i = (int)(intptr_t)arg;

	CHECK_EQ(*value_of(), 4711);
	for (int k = 0; k < 200; k++)
		CHECK_EQ(room_of()[k], 0);
	*value_of() = i;
	memset(room_of(), i + 1, 200);
	runner_pause();
	CHECK_EQ(*value_of(), i);
	CHECK_EQ(room_of()[0], (char)(i + 1));
	CHECK_EQ(room_of()[199], (char)(i + 1));
}

static void run_all(struct runner *r, int n)
{
	for (int i = 0; i < n; i++)
		runner_start(&r[i], use_library, (void *)(intptr_t)i);
	for (int k = 0; k < 2; k++)
		for (int i = 0; i < n; i++)
			runner_resume(&r[i]);
	for (int i = 0; i < n; i++)
		CHECK(r[i].done);
}

/* Closed and opened again, in both orders, so that offsets and module numbers are used again. */
static void with_library(const char *name, struct runner *old)
{
	struct runner new[4];
	void *lib = load(name);

	for (int i = 0; i < 4; i++)
		runner_make(&new[i], (unsigned)(BEFORE + i));
	for (int k = 0; k < ROUNDS; k++) {
		run_all(old, BEFORE);
		run_all(new, 4);
	}
	CHECK_EQ(dlclose(lib), 0);
	for (int i = 0; i < 4; i++)
		runner_free(&new[i]);
}

static void load_inside(void *arg)
{
	void *lib = load("dynamic.so");
	const char *error;

	use_library(arg);
	CHECK(dlsym(lib, "no_such_name") == NULL);
	runner_pause();
	error = dlerror();
	CHECK(error && strstr(error, "no_such_name"));
	CHECK_EQ(dlclose(lib), 0);
}

/* Blocks are reset and made while the loader writes a new module's TLS into all of them. */
static bool stop;

static void nothing(void *unused)
{
	(void)unused;
}

static void *churn(void *arg)
{
	struct runner kept, passing;
	unsigned first = (unsigned)(intptr_t)arg;

	runner_make(&kept, first);
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		for (int i = 0; i < 1000; i++)
			runner_run(&kept, nothing, NULL);
		runner_make(&passing, first + 1);
		runner_run(&passing, nothing, NULL);
		runner_free(&passing);
	}
	/* the last library is still loaded, and was never used in this block */
	if (static_may_come_late)
		runner_run(&kept, use_library, (void *)3);
	runner_free(&kept);
	return NULL;
}

static void against_the_loader(struct runner *old)
{
	pthread_t threads[2];
	void *lib = NULL;

	__atomic_store_n(&stop, false, __ATOMIC_RELAXED);
	for (intptr_t i = 0; i < 2; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, churn, (void *)(100 + 2 * i)), 0);
	for (int i = 0; i < LOADS; i++) {
		if (lib)
			dlclose(lib);
		lib = load(static_may_come_late ? "static.so" : "dynamic.so");
		run_all(old, BEFORE);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	CHECK_EQ(dlclose(lib), 0);
}

static void test(void)
{
	static struct runner old[BEFORE];

	for (int i = 0; i < BEFORE; i++)
		runner_make(&old[i], (unsigned)i);
	for (int k = 0; k < ROUNDS; k++) {
		with_library("dynamic.so", old);
		if (static_may_come_late)
			with_library("static.so", old);
	}
	for (int i = 0; i < BEFORE; i++)
		runner_run(&old[i], load_inside, (void *)(intptr_t)i);
	against_the_loader(old);
	for (int i = 0; i < BEFORE; i++)
		runner_free(&old[i]);
}

int main(void)
{
	int result;

	compile_all();
	result = runner_each_mode(test);
	remove_all();
	return result;
}
