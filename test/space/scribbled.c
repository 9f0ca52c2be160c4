/* space: a process writes random words all over a space while another process uses it, on a
 * kernel thread and on lightweight threads. The calls of the user may fail; it is not
 * killed, and ends in time.
 * matrix: none
 * timeout: 120 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "space/layout.h"
#include "space/hostile.h"

enum { ROUNDS = 2, USE_MS = 2000, MOST_MS = 45000 };

/* Scribbles until it is killed. */
static void scribble(const char *path, uint64_t seed)
{
	struct stat st;
	int fd = open(path, O_RDWR);
	uint32_t *m;
	uint64_t words;

	CHECK(fd >= 0 && fstat(fd, &st) == 0);
	m = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(m != MAP_FAILED);
	words = a_load_rlx(&((struct kbi_space_head *)(void *)m)->used) / 4;
	for (unsigned n = 0;; n++) {
		uint64_t r = test_rand(&seed), where = test_rand(&seed);
		/* the head and the first entries of the table, or allocated bytes */
		uint64_t i = where % 4 == 0 ? where / 4 % 1024 :
			where % 4 == 1 ? KBI_SPACE_TABLE / 4 + where / 4 % 4000 :
			KBI_SPACE_FIRST / 4 + where / 4 % (words - KBI_SPACE_FIRST / 4);
		uint32_t any = (uint32_t)(r >> 32);

		*(volatile uint32_t *)&m[i] = r % 3 == 0 ? any : r % 3 == 1 ? any % 70 : m[i] + 1;
		if (n % 256 == 0)
			usleep(100);
	}
}

static void uses(bool light)
{
	uint64_t until = in_ms(USE_MS);
	kb_thread_t t;

	open_all();
	do {
		if (light && kb_thread_create(&t, NULL, use_light, NULL) == 0)
			kb_thread_join(t, NULL);
		else
			use_all();
	} while (kb_now() < until);
	kb_space_detach(a.s);
}

/* The user of the space begins before the scribbler does. */
static void one_round(unsigned round, uint64_t seed)
{
	uint64_t began = test_now_ns();
	char path[128];
	int status = 0, ready[2];
	pid_t user, scribbler;
	char c;

	snprintf(path, sizeof path, "/dev/shm/test.scribbled.%d", getpid());
	unlink(path);
	CHECK_EQ(pipe(ready), 0);
	user = fork();
	if (user == 0) {
		struct rlimit none = { 0, 0 };

		setrlimit(RLIMIT_CORE, &none);
		CHECK_EQ(kb_space_create(&a.s, path, NULL), 0);
		CHECK_EQ(open_all(), 0);
		use_all();
		CHECK_EQ(kb_init(), 0);
		CHECK_EQ(write(ready[1], "", 1), 1);
		uses(round % 2);
		_exit(0);
	}
	CHECK_EQ(read(ready[0], &c, 1), 1);
	scribbler = fork();
	if (scribbler == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		scribble(path, seed);
	}
	while (waitpid(user, &status, WNOHANG) != user) {
		if (test_now_ns() - began > MOST_MS * MS) {
			kill(user, SIGKILL);
			waitpid(user, NULL, 0);
			status = -1;
			break;
		}
		usleep(2000);
	}
	kill(scribbler, SIGKILL);
	waitpid(scribbler, NULL, 0);
	close(ready[0]);
	close(ready[1]);
	unlink(path);
	if (status)
		fprintf(stderr, "round %u: status %#x after %u ms\n", round, (unsigned)status,
			(unsigned)((test_now_ns() - began) / MS));
	CHECK_EQ(status, 0);
}

int main(void)
{
	uint64_t seed = test_seed() + 1;

	for (unsigned i = 0; i < ROUNDS; i++)
		one_round(i, test_rand(&seed));
	return 0;
}
