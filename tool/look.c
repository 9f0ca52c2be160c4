/* tool/look.c - finds Kochab's tables in another process, or in a core file, and copies its
 * threads. Contract in look.h. The way: the module's program headers in memory, its note, the
 * record of core/outside, the tables. */
#include "look.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/procfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tool.h"

enum { HEADERS = 64, NOTES = 4096, PAGE = 4096, CORE_NOTES = 64 << 20, AT_ONCE = 4096, MANY = 512 };

/* ---- reading ---- */

static int by_address(const void *a, const void *b)
{
	uint64_t x = ((const struct look_segment *)a)->at, y = ((const struct look_segment *)b)->at;

	return (x > y) - (x < y);
}

/* Returns the segment that has the address, NULL: none. The segments are in order. */
static const struct look_segment *segment_of(const struct look *l, uint64_t at)
{
	unsigned low = 0, high = l->n_segments;

	while (low < high) {
		unsigned middle = low + (high - low) / 2;

		if (l->segment[middle].end <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return low < l->n_segments && l->segment[low].at <= at ? &l->segment[low] : NULL;
}

static bool read_core(const struct look *l, uint64_t at, char *to, size_t n)
{
	while (n > 0) {
		const struct look_segment *s = segment_of(l, at);
		size_t some;

		if (s == NULL)
			return false;
		some = n < s->end - at ? n : (size_t)(s->end - at);
		if (pread(l->core, to, some, (off_t)(s->offset + (at - s->at))) != (ssize_t)some)
			return false;
		at += some;
		to += some;
		n -= some;
	}
	return true;
}

bool look_read(const struct look *l, uint64_t at, void *to, size_t n)
{
	struct iovec here = { to, n }, there = { (void *)(uintptr_t)at, n };

	if (l->core >= 0)
		return read_core(l, at, to, n);
	return process_vm_readv(l->pid, &here, 1, &there, 1, 0) == (ssize_t)n;
}

/* A call ends at the first address that cannot be read. The next call begins behind that
 * address. */
void look_read_many(const struct look *l, const uint64_t *at, unsigned count, void *to, size_t n)
{
	struct iovec there[MANY];

	memset(to, 0, count * n);
	for (unsigned i = 0; i < count;) {
		unsigned some = count - i < MANY ? count - i : MANY;
		struct iovec here = { (char *)to + i * n, some * n };
		ssize_t got = 0;

		if (l->core >= 0) {
			read_core(l, at[i], (char *)to + i * n, n);
			i++;
			continue;
		}
		for (unsigned k = 0; k < some; k++)
			there[k] = (struct iovec){ (void *)(uintptr_t)at[i + k], n };
		got = process_vm_readv(l->pid, &here, 1, there, some, 0);
		if (got < 0)
			got = 0;
		i += (unsigned)((size_t)got / n);
		if ((size_t)got < some * n) { /* a part of it may have come */
			memset((char *)to + i * n, 0, n);
			i++;
		}
	}
}

static enum look_found note_failure(struct look *l, enum look_found found, const char *why)
{
	snprintf(l->why, sizeof(l->why), "%s", why);
	return found;
}

/* ---- a module: is there the note? ---- */

/* Searches notes in memory. Returns the address of the record, 0: no note leads to a record. */
static uint64_t find_note(const struct look *l, uint64_t at, uint64_t size)
{
	char notes[NOTES];
	size_t n = size < NOTES ? (size_t)size : NOTES, i = 0;

	if (!look_read(l, at, notes, n))
		return 0;
	while (n - i >= sizeof(ElfW(Nhdr))) {
		ElfW(Nhdr) h;
		size_t name, content;
		int32_t way;

		memcpy(&h, notes + i, sizeof(h));
		if (h.n_namesz > NOTES || h.n_descsz > NOTES)
			return 0;
		name = i + sizeof(h);
		content = name + ((h.n_namesz + 3u) & ~3u);
		i = content + ((h.n_descsz + 3u) & ~3u);
		if (i > n)
			return 0;
		if (h.n_type != KBI_OUTSIDE_TYPE || h.n_namesz != sizeof(KBI_OUTSIDE_NOTE) ||
			h.n_descsz != sizeof(way) ||
			memcmp(notes + name, KBI_OUTSIDE_NOTE, sizeof(KBI_OUTSIDE_NOTE)) != 0)
			continue;
		memcpy(&way, notes + content, sizeof(way));
		return at + content + (uint64_t)(int64_t)way;
	}
	return 0;
}

/* Returns the record's address, 0: the module at `base` has no record. */
static uint64_t find_record(const struct look *l, uint64_t base)
{
	ElfW(Ehdr) e;
	ElfW(Phdr) p[HEADERS];
	uint64_t bias = base, found = 0;

	if (!look_read(l, base, &e, sizeof(e)) || memcmp(e.e_ident, ELFMAG, SELFMAG) != 0 ||
		e.e_phentsize != sizeof(*p) || e.e_phnum > HEADERS || e.e_phoff > 16 * PAGE ||
		!look_read(l, base + e.e_phoff, p, e.e_phnum * sizeof(*p)))
		return 0;
	for (unsigned i = 0; i < e.e_phnum; i++)
		if (p[i].p_type == PT_LOAD && p[i].p_offset < PAGE) {
			bias = base - (p[i].p_vaddr - p[i].p_offset);
			break;
		}
	for (unsigned i = 0; i < e.e_phnum && found == 0; i++)
		if (p[i].p_type == PT_NOTE)
			found = find_note(l, bias + p[i].p_vaddr, p[i].p_memsz);
	return found;
}

static bool read_vps(struct look *l)
{
	unsigned n;
	struct kbi_vp **list;
	uint64_t at[LOOK_VPS];

	free(l->vp);
	l->vp = NULL;
	l->n_vps = 0;
	if (!look_read(l, (uintptr_t)l->outside.n_vps, &n, sizeof(n)) || n > LOOK_VPS ||
	    !look_read(l, (uintptr_t)l->outside.vps, &list, sizeof(list)) ||
	    !look_read(l, (uintptr_t)list, at, n * sizeof(*at)))
		return false;
	l->vp = calloc(n + 1, sizeof(*l->vp));
	for (unsigned i = 0; l->vp != NULL && i < n; i++) {
		_Alignas(struct kbi_vp) char copy[sizeof(struct kbi_vp)];
		struct kbi_vp *vp = (struct kbi_vp *)(void *)copy;
		struct kbi_sched_vp s;

		if (!look_read(l, at[i], copy, sizeof(copy)))
			break;
		l->vp[i] = (struct look_vp){ vp->id, (int)a_load_rlx(&vp->tid), UINT32_MAX,
			(uintptr_t)vp->cur,
					     kbi_vp_turns(vp), vp->n_sleeps };
		if (look_read(l, (uintptr_t)vp->s, &s, sizeof(s)))
			l->vp[i].idle = a_load_rlx(&s.idle);
		l->n_vps = i + 1;
	}
	return l->n_vps == n;
}

/* Checks the tables of the module at `base`, which has the record. */
static enum look_found take_record(struct look *l, uint64_t base, uint64_t record)
{
	struct kbi_outside *o = &l->outside;
	struct kbi_sys_from from;
	a32 meter;
	char version[sizeof(o->build.version) * 4 + 8];

	if (!look_read(l, record, o, sizeof(*o)) || memcmp(o->build.magic, "Kochab", 6) != 0)
		return note_failure(l, LOOK_ABSENT, "no Kochab");
	if (memcmp(&o->build, &kbi_outside.build, sizeof(o->build)) != 0) {
		snprintf(l->why, sizeof(l->why),
			"it runs another build of Kochab (%s) than this command (%s)",
			tool_plain(version, sizeof(version), o->build.version, sizeof(o->build.version)),
			kbi_outside.build.version);
		return LOOK_OTHER;
	}
	if (!look_read(l, (uintptr_t)o->options, &l->options, sizeof(l->options)) ||
	    !look_read(l, (uintptr_t)o->from, &from, sizeof(from)) ||
	    !look_read(l, (uintptr_t)o->meter, &meter, sizeof(meter)) ||
	    !look_read(l, (uintptr_t)o->table, &l->table, sizeof(l->table)) ||
	    !look_read(l, (uintptr_t)o->workers, &l->workers, sizeof(l->workers)) || !read_vps(l))
		return note_failure(l, LOOK_DENIED, "Kochab's tables cannot be read");
	l->processes = from.processes;
	l->metered = a_load_rlx(&meter) == KBI_METER_ON && l->table.charged != NULL;
	l->base = base;
	return l->n_vps > 0 ? LOOK_FOUND :
		note_failure(l, LOOK_IDLE, "it has Kochab's library, but no thread on it yet");
}

/* A process may have two copies of Kochab, a preloaded and a linked copy: the copy that has begun
 * counts. */
static enum look_found try_module(struct look *l, uint64_t base, enum look_found before)
{
	uint64_t record = find_record(l, base);
	char why[LOOK_TEXT];
	enum look_found found;

	if (record == 0)
		return before;
	snprintf(why, sizeof(why), "%s", l->why);
	found = take_record(l, base, record);
	if (found == LOOK_FOUND || before == LOOK_ABSENT)
		return found;
	note_failure(l, before, why);
	return before;
}

/* ---- a process ---- */

/* Returns kernel.yama.ptrace_scope; 0: the kernel has no Yama, or anything of the user's may be
 * read. */
static int ptrace_scope(void)
{
	char text[16];

	look_proc((int)getpid(), "../sys/kernel/yama/ptrace_scope", text, sizeof(text));
	return (int)strtol(text, NULL, 10);
}

/* Returns whether this command has CAP_SYS_PTRACE, which root lacks in most containers. */
static bool has_ptrace(void)
{
	enum { PTRACE = 19 };
	char text[4096];
	const char *line = look_proc((int)getpid(), "status", text, sizeof(text)) > 0 ?
		strstr(text, "\nCapEff:") : NULL;

	return line != NULL && strtoull(line + 8, NULL, 16) >> PTRACE & 1;
}

/* Notes why the memory may not be read: by a rule for all, or for lack of rights of this
 * command. */
static enum look_found note_denial(struct look *l, int e)
{
	int scope = ptrace_scope();

	if (e == ENOENT || e == ESRCH)
		return note_failure(l, LOOK_DENIED, "no such process");
	if (e != EPERM && e != EACCES)
		return note_failure(l, LOOK_DENIED, strerror(e));
	if (scope >= 3)
		return note_failure(l, LOOK_DENIED,
			"its memory may not be read: kernel.yama.ptrace_scope is 3, which forbids that to all");
	if (has_ptrace())
		return note_failure(l, LOOK_DENIED,
			"its memory may not be read, although this command has CAP_SYS_PTRACE: it is in "
			"another user namespace, or a security module forbids it");
	if (geteuid() == 0)
		return note_failure(l, LOOK_DENIED,
			"its memory may not be read: root has no CAP_SYS_PTRACE here, as in containers that "
			"are run without --cap-add SYS_PTRACE");
	if (scope > 0)
		return note_failure(l, LOOK_DENIED,
			"its memory may not be read: kernel.yama.ptrace_scope leaves that to root");
	return note_failure(l, LOOK_DENIED,
		"its memory may not be read, for that needs the rights of ptrace: of its user or root");
}

static bool may_be_kochab_file(const char *path, const char *exe)
{
	const char *slash = strrchr(path, '/');

	return strcmp(path, exe) == 0 || (slash != NULL && strncmp(slash + 1, "libkochab", 9) == 0);
}

enum look_found look_open(struct look *l, int pid)
{
	char name[64], line[PATH_MAX + 128], exe[PATH_MAX] = "";
	enum look_found found = LOOK_ABSENT;
	bool can_read = false;
	FILE *maps;
	ssize_t n;
	ElfW(Ehdr) e;

	*l = (struct look){ .pid = pid, .core = -1 };
	snprintf(name, sizeof(name), "/proc/%d/exe", pid);
	n = readlink(name, exe, sizeof(exe) - 1);
	if (n > 0)
		exe[n] = '\0';
	snprintf(name, sizeof(name), "/proc/%d/maps", pid);
	maps = fopen(name, "re");
	if (maps == NULL)
		return note_denial(l, errno);
	note_failure(l, LOOK_ABSENT, "it does not run on Kochab");
	errno = 0;
	while (found != LOOK_FOUND && fgets(line, sizeof(line), maps) != NULL) {
		uint64_t at, offset;
		char *path = strchr(line, '/');

		line[strcspn(line, "\n")] = '\0';
		if (path == NULL || sscanf(line, "%" SCNx64 "-%*x %*s %" SCNx64, &at, &offset) != 2 ||
			offset != 0 || !may_be_kochab_file(path, exe))
			continue;
		errno = 0;
		if (!look_read(l, at, &e, sizeof(e)) &&
			(errno == EPERM || errno == EACCES || errno == ESRCH)) {
			found = note_denial(l, errno);
			break;
		}
		can_read = true;
		found = try_module(l, at, found);
	}
	if (!can_read && found == LOOK_ABSENT && errno != 0)
		found = note_denial(l, errno);
	fclose(maps);
	return found;
}

void look_close(struct look *l)
{
	free(l->segment);
	free(l->vp);
	free(l->thread);
	if (l->core >= 0)
		close(l->core);
}

/* ---- a core file ---- */

/* NT_FILE: count, page size, so many of start, end, offset; then the names. */
static enum look_found try_files(struct look *l, const char *note, size_t size)
{
	enum look_found found = LOOK_ABSENT;
	uint64_t count, row[3];
	size_t name;

	if (size < 16)
		return found;
	memcpy(&count, note, sizeof(count));
	if (count > (size - 16) / sizeof(row))
		return found;
	name = 16 + count * sizeof(row);
	for (uint64_t i = 0; i < count && name < size && found != LOOK_FOUND; i++) {
		memcpy(row, note + 16 + i * sizeof(row), sizeof(row));
		if (row[2] == 0)
			found = try_module(l, row[0], found);
		name += strnlen(note + name, size - name) + 1;
	}
	return found;
}

static enum look_found read_core_notes(struct look *l, const char *notes, size_t n)
{
	for (size_t i = 0; n - i >= sizeof(ElfW(Nhdr));) {
		ElfW(Nhdr) h;
		size_t content;

		memcpy(&h, notes + i, sizeof(h));
		if (h.n_namesz > n || h.n_descsz > n)
			break;
		content = i + sizeof(h) + ((h.n_namesz + 3u) & ~3u);
		i = content + ((h.n_descsz + 3u) & ~3u);
		if (i > n)
			break;
		if (h.n_type == NT_PRPSINFO && h.n_descsz >= sizeof(struct elf_prpsinfo))
			l->pid = ((const struct elf_prpsinfo *)(const void *)(notes + content))->pr_pid;
		if (h.n_type == NT_FILE)
			return try_files(l, notes + content, h.n_descsz);
	}
	return LOOK_ABSENT;
}

static bool read_segments(struct look *l, const ElfW(Ehdr) *e, ElfW(Phdr) *notes)
{
	l->segment = calloc(e->e_phnum + 1u, sizeof(*l->segment));
	for (unsigned i = 0; l->segment != NULL && i < e->e_phnum; i++) {
		ElfW(Phdr) p;

		if (pread(l->core, &p, sizeof(p), (off_t)(e->e_phoff + i * sizeof(p))) !=
			(ssize_t)sizeof(p))
			return false;
		if (p.p_type == PT_NOTE && notes->p_filesz == 0)
			*notes = p;
		if (p.p_type == PT_LOAD && p.p_filesz > 0 && p.p_vaddr + p.p_filesz > p.p_vaddr)
			l->segment[l->n_segments++] =
				(struct look_segment){ p.p_vaddr, p.p_vaddr + p.p_filesz, p.p_offset };
	}
	if (l->segment != NULL)
		qsort(l->segment, l->n_segments, sizeof(*l->segment), by_address);
	return l->segment != NULL;
}

enum look_found look_open_core(struct look *l, const char *file)
{
	ElfW(Phdr) notes = { .p_filesz = 0 };
	enum look_found found = LOOK_ABSENT;
	ElfW(Ehdr) e;
	char *text;

	*l = (struct look){ .core = open(file, O_RDONLY | O_CLOEXEC) };
	if (l->core < 0)
		return note_failure(l, LOOK_DENIED, strerror(errno));
	if (pread(l->core, &e, sizeof(e), 0) != (ssize_t)sizeof(e) ||
		memcmp(e.e_ident, ELFMAG, SELFMAG) != 0 || e.e_type != ET_CORE ||
		e.e_phentsize != sizeof(notes) || !read_segments(l, &e, &notes) ||
		notes.p_filesz > CORE_NOTES)
		return note_failure(l, LOOK_DENIED,
			"neither the number of a process nor a core file");
	note_failure(l, LOOK_ABSENT, "it did not run on Kochab, or not all of it is in the file");
	text = malloc(notes.p_filesz + 1);
	if (text != NULL && pread(l->core, text, notes.p_filesz, (off_t)notes.p_offset) ==
		(ssize_t)notes.p_filesz)
		found = read_core_notes(l, text, notes.p_filesz);
	free(text);
	return found;
}

/* ---- threads ---- */

static bool is_thread(const struct kb_thread *t, uint32_t index)
{
	return look_kind(t) != KBI_TASK_FREE && t->task.index == index;
}

static bool make_thread_room(struct look *l, uint32_t *room)
{
	struct kb_thread *more;

	if (l->n + AT_ONCE <= *room)
		return true;
	*room = *room < AT_ONCE ? 2 * AT_ONCE : 2 * *room;
	more = aligned_alloc(_Alignof(struct kb_thread), (size_t)*room * sizeof(*more));
	if (more == NULL)
		return false;
	if (l->n > 0)
		memcpy((void *)more, l->thread, l->n * sizeof(*more));
	free(l->thread);
	l->thread = more;
	return true;
}

bool look_threads(struct look *l)
{
	uint32_t used = a_load_rlx(&l->table.used), limit = used < LOOK_MOST ? used : LOOK_MOST,
		room = 0;
	uint64_t at = (uintptr_t)l->table.at;

	l->cut = limit < used;
	for (uint32_t first = 0; first < limit; first += AT_ONCE) {
		uint32_t n = limit - first < AT_ONCE ? limit - first : AT_ONCE, kept = l->n;

		if (!make_thread_room(l, &room)) {
			snprintf(l->why, sizeof(l->why), "no memory for its threads");
			return false;
		}
		if (!look_read(l, at + (uint64_t)first * sizeof(*l->thread), l->thread + l->n,
			n * sizeof(*l->thread))) {
			l->cut = true;
			break;
		}
		for (uint32_t i = 0; i < n; i++)
			if (is_thread(l->thread + l->n + i, first + i))
				memmove((void *)(l->thread + kept++), l->thread + l->n + i, sizeof(*l->thread));
		l->n = kept;
	}
	if (l->n > 0)
		return true;
	snprintf(l->why, sizeof(l->why), "its threads cannot be read");
	return false;
}

const struct kb_thread *look_at_index(const struct look *l, uint32_t index)
{
	uint32_t low = 0, high = l->n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (l->thread[middle].task.index < index)
			low = middle + 1;
		else
			high = middle;
	}
	return low < l->n && l->thread[low].task.index == index ? &l->thread[low] : NULL;
}

const struct kb_thread *look_at_address(const struct look *l, uint64_t address)
{
	uint64_t off = address - (uintptr_t)l->table.at;

	return off % sizeof(struct kb_thread) == 0 && off / sizeof(struct kb_thread) < LOOK_MOST ?
		       look_at_index(l, (uint32_t)(off / sizeof(struct kb_thread))) : NULL;
}

const char *look_state(const struct kb_thread *t)
{
	static const char *const names[] = {
		[KBI_TASK_FREE] = "free",       [KBI_TASK_NEW] = "new",
		[KBI_TASK_READY] = "ready",     [KBI_TASK_WAIVED] = "moving",
		[KBI_TASK_RUNNING] = "running", [KBI_TASK_WAITING] = "waiting",
		[KBI_TASK_DONE] = "ended",      [KBI_TASK_FOREIGN] = "kernel thread",
		[KBI_TASK_BLOCKED] = "blocked",
	};
	unsigned kind = (unsigned)look_kind(t);

	return kind < sizeof(names) / sizeof(*names) ? names[kind] : "damaged";
}

const char *look_name(const struct kb_thread *t, char to[LOOK_NAME])
{
	return tool_plain(to, LOOK_NAME, t->named || t->is_main ? t->name : "", sizeof(t->name));
}

size_t look_proc(int pid, const char *what, char *to, size_t size)
{
	char path[64];
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, what);
	f = fopen(path, "re");
	n = f != NULL ? fread(to, 1, size - 1, f) : 0;
	if (f != NULL)
		fclose(f);
	to[n] = '\0';
	return n;
}

int look_parent(int pid)
{
	char text[1024];
	const char *behind;
	int parent;

	look_proc(pid, "stat", text, sizeof(text));
	behind = strrchr(text, ')'); /* of its name, which may be anything */
	return behind != NULL && sscanf(behind + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

int look_process(const struct look *l, int tid)
{
	char path[64];
	int parent;

	snprintf(path, sizeof(path), "/proc/%d/task/%d", l->pid, tid);
	if (l->core >= 0 || access(path, F_OK) == 0)
		return l->pid;
	parent = l->processes ? look_parent(tid) : 0;
	return parent > 1 && (parent == l->pid || parent == look_parent(l->pid)) ? tid : 0;
}

/* Returns the number, or 0 if no kernel thread of the program has it: the program's memory may hold
 * any number. */
static int checked_tid(const struct look *l, int tid)
{
	return tid > 0 && look_process(l, tid) != 0 ? tid : 0;
}

int look_tid(const struct look *l, const struct kb_thread *t)
{
	enum kbi_task_kind kind = look_kind(t);
	unsigned vp = kbi_state_vp(a_load_rlx(&t->task.state));
	_Alignas(struct kbi_worker) char copy[sizeof(struct kbi_worker)];
	struct kbi_worker *worker = (struct kbi_worker *)(void *)copy;

	if (kind == KBI_TASK_RUNNING && vp < l->n_vps)
		return checked_tid(l, l->vp[vp].tid);
	if (kind == KBI_TASK_BLOCKED && t->worker > 0 &&
	    look_read(l, (uint64_t)(uintptr_t)l->workers + (uint64_t)t->worker * sizeof(*worker), copy,
	    sizeof(copy)) && (uintptr_t)a_load_rlx(&worker->guest) == look_address(l, t))
		return checked_tid(l, (int)a_load_rlx(&worker->tid));
	return 0;
}

uint64_t look_stack(const struct kb_thread *t)
{
	enum kbi_task_kind kind = look_kind(t);
	uint64_t sp = (uintptr_t)t->task.ctx.sp;

	if ((kind != KBI_TASK_WAITING && kind != KBI_TASK_READY && kind != KBI_TASK_WAIVED) ||
		sp < PAGE || sp % 8 != 0 || kbi_task_is(&t->task, KBI_TASK_NOT_STARTED))
		return 0;
	return sp;
}

uint64_t *look_charged(const struct look *l)
{
	uint32_t n = l->n > 0 ? l->thread[l->n - 1].task.index + 1 : 0;
	uint64_t *charged = l->metered ? malloc(((size_t)n + 1) * sizeof(*charged)) : NULL;

	if (charged != NULL && look_read(l, (uintptr_t)l->table.charged, charged,
		(size_t)n * sizeof(*charged)))
		return charged;
	free(charged);
	return NULL;
}
