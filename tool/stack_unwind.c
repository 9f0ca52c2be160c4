/* tool/stack_unwind.c - backtraces by elfutils' libdwfl. Contract in stack.h. A thread that is
 * parked has its registers on its stack, as the switch has left them (src/arch/<machine>/ctx.h):
 * this file gives them to libdwfl. A thread that runs, or is in a call, has the registers of its
 * kernel thread, which libdwfl stops for a moment (ptrace). If the command was built without the
 * headers of elfutils, it says so. */
#include "stack.h"
#include "tool.h"

#if __has_include(<elfutils/libdwfl.h>) && __has_include(<libelf.h>)
#include <dlfcn.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arch/arch.h"

/* The functions of the libraries that this file calls. */
#define FUNCTIONS(F) \
	F(dwfl_begin) F(dwfl_linux_proc_report) F(dwfl_report_end) F(dwfl_linux_proc_find_elf) \
	F(dwfl_standard_find_debuginfo) F(dwfl_attach_state) F(dwfl_getthread_frames) \
	F(dwfl_thread_state_registers) \
	F(dwfl_thread_state_register_pc) F(dwfl_frame_pc) F(dwfl_addrmodule) F(dwfl_module_addrinfo) \
	F(dwfl_module_info) F(dwfl_module_getsrc) F(dwfl_lineinfo) F(dwfl_errmsg) \
	F(dwfl_linux_proc_attach) \
	F(dwfl_core_file_report) F(dwfl_build_id_find_elf) F(dwfl_frame_thread) F(dwfl_end) \
	F(dwfl_core_file_attach)
static struct {
#define F(name) __typeof__(&name) name;
	FUNCTIONS(F)
#undef F
	__typeof__(&elf_begin) elf_begin;
	__typeof__(&elf_version) elf_version;
} dw;

static bool open_libraries(void)
{
	void *libdw = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL),
		*libelf = dlopen("libelf.so.1", RTLD_NOW | RTLD_LOCAL);
	bool all = libdw != NULL && libelf != NULL;

	if (!all) {
		tool_say("stack: %s: elfutils' library is needed; on Debian the package libdw1", dlerror());
		return false;
	}
#define F(name) all = all && (dw.name = (__typeof__(&name))(uintptr_t)dlsym(libdw, #name)) != NULL;
	FUNCTIONS(F)
#undef F
	all = all &&
		(dw.elf_begin = (__typeof__(&elf_begin))(uintptr_t)dlsym(libelf, "elf_begin")) != NULL &&
		(dw.elf_version =
			(__typeof__(&elf_version))(uintptr_t)dlsym(libelf, "elf_version")) != NULL;
	if (!all)
		tool_say("stack: libdw.so.1: too old");
	return all;
}

/* ---- parked threads ---- */

/* Registers by their numbers in DWARF, and where they lie from the stack pointer up; the stack
 * pointer behind them. */
static const struct {
	unsigned number, at;
} saved[] = {
#if defined(__x86_64__)
	{ 6, KBI_FRAME_RBP },
#elif defined(__aarch64__)
	{ 19, 0 }, { 20, 8 }, { 21, 16 }, { 22, 24 }, { 23, 32 }, { 24, 40 }, { 25, 48 }, { 26, 56 },
	{ 27, 64 }, { 28, 72 },
	{ 29, 80 }, { 30, 88 },
#elif defined(__riscv)
	{ 1, KBI_FRAME_RA }, { 8, 8 }, { 9, 16 }, { 18, 24 }, { 19, 32 }, { 20, 40 }, { 21, 48 },
	{ 22, 56 }, { 23, 64 },
	{ 24, 72 }, { 25, 80 }, { 26, 88 }, { 27, 96 },
#else
	{ 0, 0 },
#endif
};
#if defined(__x86_64__)
enum { IS_KNOWN = true, SP = 7, PC_AT = KBI_FRAME_RIP, SIZE = KBI_FRAME_SIZE };
#elif defined(__aarch64__)
enum { IS_KNOWN = true, SP = 31, PC_AT = 88, SIZE = KBI_FRAME_SIZE };
#elif defined(__riscv)
enum { IS_KNOWN = true, SP = 2, PC_AT = KBI_FRAME_RA, SIZE = KBI_FRAME_SIZE };
#else
enum { IS_KNOWN = false, SP = 0, PC_AT = 0, SIZE = 8 };
#endif

/* The parked thread that is unwound, and the part of its stack that was read at once. */
static struct {
	const struct look *l;
	uint64_t sp;
	size_t n;
	char stack[16384];
} now;

static uint64_t word_at(uint64_t at)
{
	uint64_t word = 0;

	if (at - now.sp < now.n && now.n - (at - now.sp) >= sizeof(word))
		memcpy(&word, now.stack + (at - now.sp), sizeof(word));
	return word;
}

static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread)
{
	(void)dwfl;
	(void)arg;
	if (*thread != NULL)
		return 0;
	*thread = &now;
	return 1;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *arg, void **thread)
{
	(void)dwfl;
	(void)tid;
	(void)arg;
	*thread = &now;
	return true;
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr at, Dwarf_Word *word, void *arg)
{
	(void)dwfl;
	(void)arg;
	if (at - now.sp < now.n && now.n - (at - now.sp) >= sizeof(uint64_t)) {
		*word = word_at(at);
		return true;
	}
	return look_read(now.l, at, word, sizeof(*word));
}

static bool set_registers(Dwfl_Thread *thread, void *arg)
{
	Dwarf_Word sp = now.sp + SIZE;

	(void)arg;
	for (size_t i = 0; i < sizeof(saved) / sizeof(*saved); i++) {
		Dwarf_Word word = word_at(now.sp + saved[i].at);

		if (!dw.dwfl_thread_state_registers(thread, (int)saved[i].number, 1, &word))
			return false;
	}
	if (!dw.dwfl_thread_state_registers(thread, SP, 1, &sp))
		return false;
	dw.dwfl_thread_state_register_pc(thread, word_at(now.sp + PC_AT));
	return true;
}

static const Dwfl_Thread_Callbacks parked = {
	.next_thread = next_thread,
	.get_thread = get_thread,
	.memory_read = read_memory,
	.set_initial_registers = set_registers,
};

static Dwfl *modules; /* of the process: names, and parked threads */

/* ---- kernel threads ---- */

/* The process that was asked last. Where virtual processors are processes, kernel threads belong to
 * several processes. */
static struct {
	int pid;
	Dwfl *dwfl;
} kernel;

static char *no_folder; /* of debug information, beside the usual ones */

static Dwfl_Callbacks callbacks_of(bool core)
{
	return (Dwfl_Callbacks){
		.find_elf = core ? dw.dwfl_build_id_find_elf : dw.dwfl_linux_proc_find_elf,
		.find_debuginfo = dw.dwfl_standard_find_debuginfo,
		.debuginfo_path = &no_folder,
	};
}

static Dwfl *report_process(int pid)
{
	static Dwfl_Callbacks c; /* it stays the caller's */
	Dwfl *dwfl;

	c = callbacks_of(false);
	dwfl = dw.dwfl_begin(&c);
	if (dwfl != NULL && dw.dwfl_linux_proc_report(dwfl, pid) == 0 &&
		dw.dwfl_report_end(dwfl, NULL, NULL) == 0)
		return dwfl;
	tool_say("stack: %s", dw.dwfl_errmsg(-1));
	return NULL;
}

static Elf *core_elf;

static Dwfl *report_core(const char *file)
{
	static Dwfl_Callbacks c;
	Dwfl *dwfl;
	int fd = open(file, O_RDONLY | O_CLOEXEC);

	c = callbacks_of(true);
	dw.elf_version(EV_CURRENT);
	core_elf = fd >= 0 ? dw.elf_begin(fd, ELF_C_READ_MMAP, NULL) : NULL;
	dwfl = core_elf != NULL ? dw.dwfl_begin(&c) : NULL;
	if (dwfl != NULL && dw.dwfl_core_file_report(dwfl, core_elf, NULL) >= 0 &&
		dw.dwfl_report_end(dwfl, NULL, NULL) == 0)
		return dwfl;
	tool_say("stack: %s: %s", file, dw.dwfl_errmsg(-1));
	return NULL;
}

static Dwfl *kernel_of(const struct look *l, int tid, const char *core)
{
	int pid = look_process(l, tid);

	if (kernel.dwfl != NULL && kernel.pid == pid)
		return kernel.dwfl;
	if (kernel.dwfl != NULL)
		dw.dwfl_end(kernel.dwfl);
	kernel.pid = pid;
	kernel.dwfl = core != NULL ? report_core(core) : report_process(pid);
	if (kernel.dwfl != NULL && (core != NULL ? dw.dwfl_core_file_attach(kernel.dwfl, core_elf) < 0 :
		dw.dwfl_linux_proc_attach(kernel.dwfl, pid, false) != 0)) {
		dw.dwfl_end(kernel.dwfl);
		kernel.dwfl = NULL;
	}
	return kernel.dwfl;
}

/* ---- frames ---- */

static uint64_t frames[STACK_FRAMES];

static int take_frame(Dwfl_Frame *frame, void *arg)
{
	uint32_t *n = arg;
	Dwarf_Addr pc;
	bool stands;

	if (!dw.dwfl_frame_pc(frame, &pc, &stands) || *n == STACK_FRAMES)
		return DWARF_CB_ABORT;
	if (pc == 0)
		return DWARF_CB_ABORT;
	frames[(*n)++] = pc;
	return DWARF_CB_OK;
}

static const char *core_file;

bool stack_begin(const struct look *l, const char *file)
{
	unsetenv("DEBUGINFOD_URLS"); /* nothing is fetched */
	if (!open_libraries())
		return false;
	core_file = file;
	now.l = l;
	modules = file != NULL ? report_core(file) : report_process(l->pid);
	if (modules == NULL)
		return false;
	if (dw.dwfl_attach_state(modules, NULL, 1, &parked, NULL))
		return true;
	tool_say("stack: %s", dw.dwfl_errmsg(-1));
	return false;
}

static bool read_stack(const struct look *l, uint64_t sp)
{
	now.sp = sp;
	for (now.n = sizeof(now.stack); now.n >= SIZE; now.n /= 2)
		if (look_read(l, sp, now.stack, now.n))
			return true;
	now.n = 0;
	return false;
}

void stack_unwind(const struct look *l, struct stack_trace *trace)
{
	const struct kb_thread *t = &l->thread[trace->thread];
	enum kbi_task_kind kind = look_kind(t);
	uint64_t sp = look_stack(t);
	int tid = look_tid(l, t);
	Dwfl *of = NULL;
	uint32_t n = 0;

	if (kind == KBI_TASK_FOREIGN)
		trace->why = "a kernel thread of its own";
	else if (kind == KBI_TASK_DONE)
		trace->why = "has ended and waits to be joined";
	else if (kind == KBI_TASK_NEW || kbi_task_is(&t->task, KBI_TASK_NOT_STARTED))
		trace->why = "has not run yet";
	else if (tid != 0 && (of = kernel_of(l, tid, core_file)) == NULL)
		trace->why = "its kernel thread may not be looked at";
	else if (tid == 0 && (kind == KBI_TASK_RUNNING || kind == KBI_TASK_BLOCKED))
		trace->why = "its kernel thread is not known";
	else if (tid == 0 && (sp == 0 || !IS_KNOWN || !read_stack(l, sp)))
		trace->why = "its stack cannot be read";
	if (trace->why != NULL)
		return;
	if (tid != 0)
		dw.dwfl_getthread_frames(of, tid, take_frame, &n);
	else
		dw.dwfl_getthread_frames(modules, 1, take_frame, &n);
	if (n == 0)
		trace->why = "its frames are not known";
	trace->pc = malloc((n + 1) * sizeof(*trace->pc));
	trace->n = trace->pc != NULL ? n : 0;
	if (trace->n > 0)
		memcpy(trace->pc, frames, n * sizeof(*trace->pc));
}

/* Returns a name of C++ as the source has it, to be freed; NULL: it is none, or there is no
 * libstdc++ here. */
static char *demangled_name(const char *name)
{
	enum { LONGEST = 4096 };
	static char *(*demangle)(const char *name, char *to, size_t *size, int *status);
	static bool is_asked;
	void *library;
	int status;

	if (strncmp(name, "_Z", 2) != 0 || strnlen(name, LONGEST) == LONGEST)
		return NULL;
	library = is_asked ? NULL : dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);
	if (library != NULL)
		demangle = (__typeof__(demangle))(uintptr_t)dlsym(library, "__cxa_demangle");
	is_asked = true;
	return demangle != NULL ? demangle(name, NULL, NULL, &status) : NULL;
}

/* Writes "name+offset" as it may be shown. */
static void add_name(const char *name, uint64_t off, char *to, size_t size)
{
	enum { MOST = 400 };
	char shown[4 * MOST + 8], *source = demangled_name(name);

	snprintf(to, size, "%s+%#llx", tool_plain(shown, sizeof(shown), source != NULL ? source : name,
		MOST), (unsigned long long)off);
	free(source);
}

const char *stack_words(uint64_t pc, bool call, char *to, size_t size)
{
	Dwfl_Module *m = dw.dwfl_addrmodule(modules, pc - call);
	const char *file = NULL, *name = NULL, *source = NULL, *slash;
	char function[1700], module[256], where[512];
	GElf_Off off = 0;
	GElf_Sym symbol;
	Dwfl_Line *line;
	int number = 0;

	if (m == NULL) {
		snprintf(to, size, "%#llx", (unsigned long long)pc);
		return to;
	}
	file = dw.dwfl_module_info(m, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
	name = dw.dwfl_module_addrinfo(m, pc - call, &off, &symbol, NULL, NULL, NULL);
	line = dw.dwfl_module_getsrc(m, pc - call);
	if (line != NULL)
		source = dw.dwfl_lineinfo(line, NULL, &number, NULL, NULL, NULL);
	slash = file != NULL ? strrchr(file, '/') : NULL;
	tool_plain(module, sizeof(module), slash != NULL ? slash + 1 : file != NULL ? file : "?",
		sizeof(module));
	if (name != NULL) {
		add_name(name, off + call, function, sizeof(function));
		snprintf(to, size, "%s (%s)", function, module);
	} else {
		snprintf(to, size, "%#llx (%s)", (unsigned long long)pc, module);
	}
	if (source != NULL)
		snprintf(to + strlen(to), size - strlen(to), " %s:%d",
			tool_plain(where, sizeof(where), source, 120), number);
	return to;
}

#else

bool stack_begin(const struct look *l, const char *file)
{
	(void)l;
	(void)file;
	tool_say("stack: this command was built without elfutils; install libdw-dev and build it "
		"again");
	return false;
}

void stack_unwind(const struct look *l, struct stack_trace *trace)
{
	(void)l;
	trace->why = "no elfutils";
}

const char *stack_words(uint64_t pc, bool call, char *to, size_t size)
{
	(void)call;
	snprintf(to, size, "%#llx", (unsigned long long)pc);
	return to;
}

#endif
