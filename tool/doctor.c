/* tool/doctor.c - `kochab doctor`: the abilities of this machine and the use that Kochab makes of
 * them. Each probe does the thing itself where possible (a guard page is installed and touched),
 * because version numbers lie: distributions backport, containers forbid. Nothing here starts the
 * runtime. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

#include "arch/arch.h"
#include "base/base.h"
#include "base/option.h"
#include "os/cpu.h"
#include "libc/intercept_wanted.h"
#include "libc/intercept.h"
#include "libc/segment.h"
#include "os/newer.h"
#include "os/sys.h"
#include "os/uring.h"
#include <kochab/version.h>
#include "tool.h"

/* numbers that older kernel headers lack; equal on every machine that we know */
enum {
	DISPATCH = 59, /* PR_SET_SYSCALL_USER_DISPATCH */
	DISPATCH_OFF = 0,
	DISPATCH_INCLUSIVE = 2,
	FSGSBASE_HWCAP2 = 1 << 1,
	MEMBARRIER_QUERY = 0,
	MEMBARRIER_PRIVATE_EXPEDITED = 1 << 3,
	SECCOMP_ACTION_AVAILABLE = 2,
};
#define SECCOMP_TRAP 0x00030000u

enum verdict { INFO, YES, NO };

static bool json;

/* Prints a line of the report. */
__attribute__((format(printf, 3, 4)))
static void print_fact(const char *name, enum verdict verdict, const char *format, ...)
{
	static const char *const marks[] = { "  ", "+ ", "- " };
	static const char *const words[] = { "null", "true", "false" };
	char value[600], shown[1200];
	va_list args;

	va_start(args, format);
	vsnprintf(value, sizeof(value), format, args);
	va_end(args);
	if (json) {
		printf("{\"name\": \"%s\", \"supported\": %s, \"value\": ", name, words[verdict]);
		tool_json_string(value);
		printf("}\n");
	} else {
		printf("%s%-24s %s\n", marks[verdict], name,
			tool_plain(shown, sizeof(shown), value, sizeof(value)));
	}
}

/* Reads the first line of a file, without its newline. Returns false if it cannot be read. */
static bool read_line(const char *path, char *buf, size_t size)
{
	FILE *f = fopen(path, "re");
	bool ok = f != NULL && fgets(buf, (int)size, f) != NULL;

	if (f != NULL)
		fclose(f);
	if (ok)
		buf[strcspn(buf, "\n")] = '\0';
	return ok;
}

/* ---- machine --------------------------------------------------------------------------------- */

static void cpu_model(char *buf, size_t size)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	char line[256];

	snprintf(buf, size, "unknown");
	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		char *colon = strchr(line, ':');

		if (strncmp(line, "model name", 10) != 0 || colon == NULL)
			continue;
		colon[strcspn(colon, "\n")] = '\0';
		snprintf(buf, size, "%s", colon + 2);
		break;
	}
	if (f != NULL)
		fclose(f);
}

#if KBI_HAVE_SEGMENTS
static void check_segments(void)
{
	const char *name = "segment descriptors";

	if (syscall(SYS_modify_ldt, 0, NULL, 0) < 0)
		print_fact(name, NO, "modify_ldt: %s; thread pointers are set as above",
			strerror(errno));
	else if (kbi_segment_filtered())
		print_fact(name, NO,
			"system calls are filtered here; with KOCHAB_SEGMENTS=yes they are tried all the same");
	else
		print_fact(name, YES, "thread pointers of busy threads are set by them %s",
			kbi_tp_segment_pays() ?
			"here, it is twice as fast" :
			"with KOCHAB_SEGMENTS=yes; by default as above, which is as fast here");
}
#endif

static void check_machine(void)
{
	struct utsname u;
	char model[256], clock[64];

	uname(&u);
	cpu_model(model, sizeof(model));
	print_fact("kochab", INFO, "%s, context switch of port %s", KOCHAB_VERSION, KBI_ARCH_NAME);
	print_fact("kernel", INFO, "%s %s %s", u.sysname, u.release, u.machine);
#ifdef __GLIBC__
	print_fact("libc", INFO, "glibc %s", gnu_get_libc_version());
#else
	print_fact("libc", INFO, "not glibc");
#endif
	print_fact("processor", INFO, "%s", model);
	if (read_line("/sys/devices/system/clocksource/clocksource0/current_clocksource", clock,
		sizeof(clock)))
		print_fact("clock source", INFO, "%s", clock);
#if defined(__x86_64__)
	bool fsgsbase = getauxval(AT_HWCAP2) & FSGSBASE_HWCAP2;

	print_fact("fsgsbase", fsgsbase ? YES : NO, "%s", fsgsbase ?
		"thread pointer set in user space" :
		"thread pointer set by arch_prctl: some 100 ns a switch of a thread with its own TLS");
#endif
#if KBI_HAVE_SEGMENTS
	kbi_tp_init(true);
	check_segments();
#endif
}

/* ---- processors and their limits ------------------------------------------------------------- */

static void check_processors(void)
{
	unsigned quota = kbi_cpu_quota();

	print_fact("processors", INFO, "%ld online, %u by affinity", sysconf(_SC_NPROCESSORS_ONLN),
		kbi_cpu_affinity());
	if (quota != 0)
		print_fact("cgroup cpu.max", INFO, "%u processors", quota);
	else
		print_fact("cgroup cpu.max", INFO, "no limit");
	if (kbi_options.vps != 0)
		print_fact("virtual processors", INFO, "%u (KOCHAB_VPS)", kbi_options.vps);
	else
		print_fact("virtual processors", INFO, "%u", kbi_cpu_count());
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Installs a guard in a fresh mapping and lets the kernel write there: EFAULT shows that it
 * works. */
static bool guard_works(int flags, int fd)
{
	long page = sysconf(_SC_PAGESIZE);
	char *p = mmap(NULL, 2 * (size_t)page, PROT_READ | PROT_WRITE, flags, fd, 0);
	int pipes[2] = { -1, -1 };
	bool works = false;

	if (p == MAP_FAILED)
		return false;
	if (madvise(p, (size_t)page, MADV_GUARD_INSTALL) == 0 && pipe2(pipes, O_CLOEXEC) == 0) {
		works = write(pipes[1], p, 1) < 0 && errno == EFAULT && write(pipes[1], p + page, 1) == 1;
		close(pipes[0]);
		close(pipes[1]);
	}
	munmap(p, 2 * (size_t)page);
	return works;
}

static void check_guards(void)
{
	int fd = (int)syscall(SYS_memfd_create, "kochab-doctor", 1u);
	int why = errno;
	bool works = guard_works(MAP_PRIVATE | MAP_ANONYMOUS, -1);

	print_fact("guards, private map", works ? YES : NO, "%s", works ? "MADV_GUARD_INSTALL"
		: "by mprotect: a map each, so vm.max_map_count limits the threads");
	if (fd < 0 || ftruncate(fd, 1 << 16) != 0) {
		print_fact("guards, shared map", NO, "memfd: %s", strerror(fd < 0 ? why : errno));
	} else {
		works = guard_works(MAP_SHARED, fd);
		print_fact("guards, shared map", works ? YES : NO, "%s",
			works ? "MADV_GUARD_INSTALL" : "by mprotect");
	}
	if (fd >= 0)
		close(fd);
}

static volatile unsigned taken_over;

/* The calls that the child below asks for are not made. */
static long take_over(long nr, long a[6], const uintptr_t *frame)
{
	(void)nr, (void)a, (void)frame;
	taken_over++;
	return 0;
}

struct tried {
	const char *why; /* NULL: it works; the child has the parent's texts at the same places */
	struct kbi_intercept_counts counts;
};

/* Runs in a child: intercepts libc's calls there, and makes a call. */
static void try_in_child(const struct kbi_intercept_way *w, int fd)
{
	struct tried t;

	if (w->begin(take_over, getpid(), &t.counts, &t.why) == 0) {
		if (w->here)
			w->here();
		getppid();
		t.why = taken_over ? NULL : "it has no effect";
	}
	kbi_sys(SYS_write, fd, &t, sizeof(t));
	kbi_sys(SYS_exit_group, 0);
}

static struct tried try_way(const struct kbi_intercept_way *w)
{
	struct tried t = { .why = "tried in a child, it ended that" };
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return t;
	fflush(stdout);
	pid = fork();
	if (pid == 0)
		try_in_child(w, ends[1]);
	close(ends[1]);
	if (pid > 0 && read(ends[0], &t, sizeof(t)) == 0)
		errno = 0;
	close(ends[0]);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	return t;
}

/* Returns whether the option libcalls permits the way. */
static bool may_be_taken(const struct kbi_intercept_way *w)
{
	return kbi_options.libcalls == KBI_OPT_LIBCALLS_AUTO ||
		kbi_options.libcalls == (unsigned)(w - kbi_intercept_ways) + 1;
}

/* Returns the way that would be taken, or NULL; *why: the first reason against it. */
static const struct kbi_intercept_way *check_ways(struct tried *all, const char **why)
{
	const struct kbi_intercept_way *taken = NULL;

	*why = NULL;
	for (const struct kbi_intercept_way *w = kbi_intercept_ways; w->name; w++) {
		all[w - kbi_intercept_ways] = try_way(w);
		if (!may_be_taken(w))
			continue;
		if (!all[w - kbi_intercept_ways].why)
			taken = taken ? taken : w;
		else
			*why = *why ? *why : all[w - kbi_intercept_ways].why;
	}
	return taken;
}

/* Prints a call that should be replaced but is not understood. */
static void tell_passed(const struct kbi_intercept_passed *p)
{
	print_fact("    passed over", NO, "%s, at %s+%#lx: the kernel's, %s",
		kbi_intercept_wanted_name(p->nr), p->module, (unsigned long)p->at,
		p->nr == SYS_rt_sigprocmask ?
		"which changes the same mask but opens no signal of ours" :
		"made for one process of several");
}

static void tell_way(const struct kbi_intercept_way *w, const struct tried *t)
{
	char name[32], sites[96] = "";

	snprintf(name, sizeof(name), "  libcalls=%s", w->name);
	if (t->counts.seen)
		snprintf(sites, sizeof(sites),
			": %u of %u system calls replaced, %u trapped, %u passed over", t->counts.replaced,
			t->counts.seen, t->counts.trapped, t->counts.passed);
	print_fact(name, t->why ? NO : YES, "%s%s", t->why ? t->why : "works", t->why ? "" : sites);
	for (unsigned i = 0; i < t->counts.passed && i < KBI_INTERCEPT_PATCH_NAMED; i++)
		tell_passed(&t->counts.first[i]);
}

/* Checks virtual processors as processes: can libc's system calls be intercepted, and is there a
 * space? */
static bool check_processes(void)
{
	struct tried all[KBI_INTERCEPT_WAYS];
	const char *why;
	const struct kbi_intercept_way *taken = check_ways(all, &why);
	int fd = (int)syscall(SYS_memfd_create, "kochab-doctor", 1u);

	if (fd >= 0)
		close(fd);
	if (fd < 0)
		print_fact("process bodies", NO, "no memory file can be made (memfd_create)");
	else if (!taken)
		print_fact("process bodies", NO, "%s", why);
	else
		print_fact("process bodies", YES,
			"libc's system calls are taken over by libcalls=%s", taken->name);
	for (unsigned i = 0; i < KBI_INTERCEPT_WAYS; i++)
		tell_way(&kbi_intercept_ways[i], &all[i]);
	return fd >= 0 && taken != NULL;
}

static void print_limit(const char *name, int which)
{
	struct rlimit l;

	if (getrlimit(which, &l) != 0)
		return;
	if (l.rlim_cur == RLIM_INFINITY)
		print_fact(name, INFO, "unlimited");
	else
		print_fact(name, INFO, "%llu", (unsigned long long)l.rlim_cur);
}

/* Returns whether virtual processors may be processes. */
static bool check_memory(void)
{
	static const struct { const char *name, *path; } settings[] = {
		{ "vm.overcommit_memory", "/proc/sys/vm/overcommit_memory" },
		{ "vm.max_map_count", "/proc/sys/vm/max_map_count" },
		{ "huge pages", "/sys/kernel/mm/transparent_hugepage/enabled" },
		{ "kernel.threads-max", "/proc/sys/kernel/threads-max" },
		{ "kernel.pid_max", "/proc/sys/kernel/pid_max" },
	};
	char value[256];
	bool processes;

	print_fact("memory", INFO, "%lld MiB, pages of %ld bytes",
	     (long long)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) >> 20, sysconf(_SC_PAGESIZE));
	check_guards();
	processes = check_processes();
	for (size_t i = 0; i < kbi_countof(settings); i++) {
		if (read_line(settings[i].path, value, sizeof(value)))
			print_fact(settings[i].name, INFO, "%s", value);
	}
	print_limit("RLIMIT_STACK", RLIMIT_STACK);
	print_limit("RLIMIT_AS", RLIMIT_AS);
	print_limit("RLIMIT_NPROC", RLIMIT_NPROC);
	return processes;
}

/* ---- system calls ---------------------------------------------------------------------------- */

static void check_io_uring(void)
{
	struct kbi_uring u;
	int e = kbi_uring_open(&u, 1);
	char value[16], why[64] = "";

	if (!e) {
		kbi_uring_close(&u);
		print_fact("io_uring", YES,
			"files of kochab/io.h and the drop-in's connect go through it%s",
			kbi_options.io_uring ? "" : ", but for KOCHAB_IO_URING=0");
		return;
	}
	if (e == EPERM && read_line("/proc/sys/kernel/io_uring_disabled", value, sizeof(value)))
		snprintf(why, sizeof(why), " (kernel.io_uring_disabled = %s; else seccomp)", value);
	print_fact("io_uring", NO,
		"%s%s: files of kochab/io.h and the drop-in's connect block kernel threads, by body "
		"hand-off", e == EPERM ? "not permitted" : KBI_HAVE_URING ? strerror(e) :
		"not known to the headers it was built with", why);
}

/* Checks calls that block without another form, which keep their kernel thread: how many may, and
 * does the system permit it? */
static void check_spares(void)
{
	struct rlimit r = { .rlim_cur = RLIM_INFINITY };
	bool enough = getrlimit(RLIMIT_NPROC, &r) != 0 || r.rlim_cur == RLIM_INFINITY ||
		r.rlim_cur >= kbi_options.spares;

	print_fact("spare kernel threads", enough ? YES : NO,
		"up to %llu for threads in calls that block, under the drop-in %u unless set (option "
		"spares)%s; kochab run --stats tells how many there were",
		(unsigned long long)kbi_options.spares, KBI_OPTION_POSIX_SPARES,
		enough ? "" : ", which is more than RLIMIT_NPROC");
}

static void check_futex(void)
{
	unsigned word = 0;
	long n = syscall(SYS_futex, &word, 1 /* FUTEX_WAKE */, 1, NULL, NULL, 0);

	print_fact("futex", n == 0 ? YES : NO, "%s", n == 0 ? "works" : strerror(errno));
	n = syscall(SYS_futex_waitv, NULL, 0, 0, NULL, 0);
	print_fact("futex_waitv", n < 0 && errno == EINVAL ? YES : NO, "%s",
		errno == EINVAL ? "works" : strerror(errno));
}

static void check_membarrier(void)
{
	long commands = syscall(SYS_membarrier, MEMBARRIER_QUERY, 0, 0);
	bool private = commands > 0 && (commands & MEMBARRIER_PRIVATE_EXPEDITED);

	if (commands < 0)
		print_fact("membarrier", NO, "%s", strerror(errno));
	else
		print_fact("membarrier", private ? YES : NO, "commands 0x%lx", commands);
}

static void check_seccomp(void)
{
	unsigned action = SECCOMP_TRAP;
	long n = syscall(SYS_seccomp, SECCOMP_ACTION_AVAILABLE, 0, &action);

	print_fact("seccomp trap", n == 0 ? YES : NO, "%s", n == 0 ? "available" : strerror(errno));
}

/* Returns the exit code of a child that asks for inclusive dispatch of a single page, all calls
 * allowed: 0, or the errno. */
static int inclusive_dispatch(void)
{
	static char selector; /* 0: calls pass */
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		unsigned long page =
			(unsigned long)(uintptr_t)inclusive_dispatch & ~(unsigned long)(KBI_PAGE - 1);

		_exit(prctl(DISPATCH, DISPATCH_INCLUSIVE, page, (unsigned long)KBI_PAGE, &selector) == 0 ?
			0 : errno);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return ECHILD;
	return WEXITSTATUS(status);
}

static void check_dispatch(void)
{
	int n = prctl(DISPATCH, DISPATCH_OFF, 0ul, 0ul, 0ul), error;

	print_fact("syscall user dispatch", n == 0 ? YES : NO, "%s",
		n == 0 ? "works" : strerror(errno));
	if (n != 0)
		return;
	error = inclusive_dispatch();
	print_fact("  inclusive mode", error == 0 ? YES : NO, "%s",
		error == 0 ? "works" : strerror(error));
}

static void check_pidfd(void)
{
	int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

	print_fact("pidfd", fd >= 0 ? YES : NO, "%s", fd >= 0 ? "works" : strerror(errno));
	if (fd >= 0)
		close(fd);
}

static void check_drop_in(void)
{
	char path[PATH_MAX];

	if (!TOOL_HAS_DROP_IN)
		print_fact("drop-in library", NO,
			"it is for glibc: kochab run runs programs without it");
	else if (tool_find_drop_in(path, sizeof(path)))
		print_fact("drop-in library", YES, "%s", path);
	else
		print_fact("drop-in library", NO, "not found: kochab run will not work");
}

static void tell_asked(const char *name, bool found, const char *text)
{
	print_fact(name, found ? YES : NO, "%s", text);
}

static unsigned check_libc(void)
{
#ifdef __GLIBC__
	print_fact("libc's inside", INFO,
		"as the drop-in finds it when a program makes its first thread:");
	return tool_doctor_libc(tell_asked);
#else
	return 0;
#endif
}

/* Prints the last line: the meaning for programs. runs: the results of the program that asked about
 * libc's inside. */
static void print_conclusion(unsigned runs, bool processes)
{
	static const char *const never =
		"statically linked, setuid and 32-bit programs, and musl's, run without it";

	if (!(runs & TOOL_RUNS_THREADS))
		print_fact("in short", NO, "%s", TOOL_HAS_DROP_IN ?
			"unmodified programs will not run on Kochab here, a program that was tried did not; "
			"see the lines above" :
			"unmodified programs run without Kochab here; programs of the native interface run");
	else if (processes && runs & TOOL_RUNS_PROCESSES)
		print_fact("in short", YES,
			"programs will run on Kochab here, also with --body process; %s", never);
	else
		print_fact("in short", YES,
			"programs will run on Kochab here, but not with --body process; %s", never);
}

int tool_doctor(int argc, char **argv)
{
	bool processes;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			printf("usage: kochab doctor [--json]\n\n"
			       "Says what this machine supports (+), what it lacks (-) and what Kochab does "
			       "then.\n"
			       "--json: one object a line; supported is true, false, or null for plain "
			       "facts.\n");
			return TOOL_OK;
		}
		if (strcmp(argv[i], "--make-thread") == 0)
			return tool_make_thread();
		if (strcmp(argv[i], "--json") != 0) {
			tool_say("doctor: %s: no such argument; usage: kochab doctor [--json]", argv[i]);
			return TOOL_USAGE;
		}
		json = true;
	}
	if (kbi_option_load() != 0)
		return TOOL_USAGE;
	check_machine();
	check_processors();
	processes = check_memory();
	check_io_uring();
	check_spares();
	check_futex();
	check_membarrier();
	check_seccomp();
	check_dispatch();
	check_pidfd();
	check_drop_in();
	print_conclusion(check_libc(), processes);
	return TOOL_OK;
}
