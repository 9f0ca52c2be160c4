/* base/option: defaults, good and bad values of every type, unknown variables, the messages. Each
 * case runs kbi_option_load in a child of its own, because loading happens once.
 * matrix: none */
#include "base/option.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct outcome {
	int result;
	struct kbi_options options;
	char message[600];
};

static struct outcome load_with(const char *variable, const char *value)
{
	struct outcome out = { 0 };
	int data[2], err[2], status;
	ssize_t n;
	pid_t pid;

	CHECK(pipe(data) == 0 && pipe(err) == 0);
	pid = fork();
	if (pid == 0) {
		clearenv();
		if (variable != NULL)
			setenv(variable, value, 1);
		dup2(err[1], STDERR_FILENO);
		out.result = kbi_option_load();
		CHECK_EQ(out.result, kbi_option_load());
		out.options = kbi_options;
		n = write(data[1], &out, sizeof(out));
		_exit(n == sizeof(out) ? 0 : 1);
	}
	close(data[1]);
	close(err[1]);
	CHECK_EQ(read(data[0], &out, sizeof(out)), (ssize_t)sizeof(out));
	n = read(err[0], out.message, sizeof(out.message) - 1);
	out.message[n > 0 ? n : 0] = '\0';
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	close(data[0]);
	close(err[0]);
	return out;
}

static void good(const char *variable, const char *value, const char *name, uint64_t expect)
{
	struct outcome out = load_with(variable, value);
	struct kbi_options defaults = kbi_options;
	const struct kbi_option *o = kbi_option_find(name, strlen(name));

	CHECK(o != NULL);
	if (out.result != 0)
		printf("%s", out.message);
	CHECK_EQ(out.result, 0);
	CHECK_EQ(strlen(out.message), 0);
	kbi_options = out.options;
	CHECK_EQ(kbi_option_get(o), expect);
	kbi_options = defaults;
}

static void bad(const char *variable, const char *value, const char *allowed)
{
	struct outcome out = load_with(variable, value);
	const char *m = out.message, *end = m + strlen(m) - 1;

	CHECK_EQ(out.result, EINVAL);
	if (!strstr(m, variable) || !strstr(m, value) || !strstr(m, allowed) ||
		strchr(m, '\n') != end) {
		printf("%s=%s said: %s\n", variable, value, out.message);
		exit(1);
	}
}

int main(void)
{
	struct outcome out = load_with(NULL, NULL);

	CHECK_EQ(out.result, 0);
	CHECK_EQ(out.options.vps, 0);
	CHECK_EQ(out.options.sched, KBI_OPT_SCHED_ROTATOR);
	CHECK_EQ(out.options.stack_size, 65536);
	CHECK_EQ(out.options.fsgsbase, true);

	good("KOCHAB_VPS", "1024", "vps", 1024);
	bad("KOCHAB_VPS", "1025", "0 to 1024");
	bad("KOCHAB_VPS", "", "0 to 1024");
	bad("KOCHAB_VPS", "-1", "0 to 1024");
	bad("KOCHAB_VPS", "4x", "0 to 1024");
	bad("KOCHAB_VPS", "18446744073709551620", "0 to 1024");
	good("KOCHAB_SCHED", "rotator-paper", "sched", KBI_OPT_SCHED_ROTATOR_PAPER);
	good("KOCHAB_SCHED", "steal", "sched", KBI_OPT_SCHED_STEAL);
	bad("KOCHAB_SCHED", "rot", "rotator|rotator-paper|lb2|steal");
	bad("KOCHAB_SCHED", "rotator|lb2", "rotator|rotator-paper|lb2|steal");
	good("KOCHAB_LB2_LOCK", "semop", "lb2_lock", KBI_OPT_LB2_LOCK_SEMOP);
	good("KOCHAB_STACK_SIZE", "64K", "stack_size", 65536);
	good("KOCHAB_STACK_SIZE", "1g", "stack-size", 1u << 30);
	bad("KOCHAB_STACK_SIZE", "16383", "16384 to");
	bad("KOCHAB_STACK_SIZE", "1T", "16384 to");
	bad("KOCHAB_STACK_SIZE", "99999999999999999999G", "16384 to");
	good("KOCHAB_SPIN_US", "70", "spin_us", 70);
	good("KOCHAB_SPIN_US", "1ms", "spin_us", 1000);
	good("KOCHAB_SPIN_US", "1ns", "spin_us", 1);
	bad("KOCHAB_SPIN_US", "1h", "0 to 1000000 us");
	bad("KOCHAB_TICK_MS", "2s", "0 to 1000 ms");
	good("KOCHAB_FSGSBASE", "off", "fsgsbase", 0);
	bad("KOCHAB_FSGSBASE", "2", "0 or 1");
	bad("KOCHAB_NO_SUCH_KNOB", "", "kochab options");
	bad("KOCHAB_BIND", "0-", "none|cores|LIST");
	bad("KOCHAB_BIND", "3-1", "none|cores|LIST");
	bad("KOCHAB_BIND", "0,,1", "none|cores|LIST");
	bad("KOCHAB_BIND", "9999", "none|cores|LIST");
	bad("KOCHAB_BIND", "core", "none|cores|LIST");
	good("KOCHAB_LIB", "/somewhere", "vps", 0);
	CHECK(kbi_option_find("vp", 2) == NULL);
	return 0;
}
