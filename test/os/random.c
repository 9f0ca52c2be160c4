/* os/random: the hash is SipHash-2-4. No bit of the results is constant, also if the kernel gives
 * no random bytes: then a message says so, and the bytes of the process's start do not show. */
/* matrix: none */
#include "os/random.h"

#include <stddef.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#include "test.h"

enum { DRAWS = 256 };

static void varies(void)
{
	uint64_t ones = 0, zeros = 0, seen[DRAWS], start[2];

	memcpy(start, (const void *)getauxval(AT_RANDOM), sizeof start);
	for (int i = 0; i < DRAWS; i++) {
		kbi_random(&seen[i], sizeof seen[i]);
		ones |= seen[i];
		zeros |= ~seen[i];
		for (int j = 0; j < i; j++)
			CHECK(seen[j] != seen[i]);
		CHECK(seen[i] != start[0] && seen[i] != start[1]);
	}
	CHECK_EQ(ones, ~(uint64_t)0);
	CHECK_EQ(zeros, ~(uint64_t)0);
}

/* Makes getrandom return EPERM; there is no file to open. */
static void without_kernel(int fd)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getrandom, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { .len = sizeof code / sizeof *code, .filter = code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		_exit(77);
	dup2(fd, STDERR_FILENO);
	varies();
	_exit(0);
}

int main(void)
{
	const uint64_t key[2] = { 0x0706050403020100, 0x0f0e0d0c0b0a0908 };
	char said[512] = "";
	int p[2], status;

	CHECK_EQ(kbi_random_hash(key, 0x0706050403020100, 0x0f0e0d0c0b0a0908), 0x3f2acc7f57c29bdb);
	varies();
	CHECK_EQ(pipe(p), 0);
	if (fork() == 0)
		without_kernel(p[1]);
	close(p[1]);
	CHECK(wait(&status) > 0);
	CHECK(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		SKIP("no filter of system calls here");
	CHECK_EQ(WEXITSTATUS(status), 0);
	CHECK(read(p[0], said, sizeof said - 1) > 0);
	CHECK(strstr(said, "no random numbers"));
	CHECK(!strstr(strchr(said, '\n'), "no random numbers")); /* only once */
	return 0;
}
