/* posix/proc.c - contract in proc.h. A program that checks whether its own threads run, as
 * intercept_sud does once a second, would take threads without such files for dead. */
#include "posix/proc.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "core/handoff.h"
#include "core/vp.h"
#include "core/worker_pool.h"
#include "os/fd.h"
#include "os/sys.h"
#include "posix/bind.h"
#include "posix/naming.h"

enum { PROC_MAGIC = 0x9fa0, TEXT = 16384, NAME = 16 };

/* ---- which thread ------------------------------------------------------------------------- */

struct place {
	struct kb_thread *t;
	uint32_t number;
	bool as_process;  /* /proc/NUMBER, not .../task/NUMBER */
	const char *rest; /* the text after the number */
};

static const char *text_after_prefix(const char *path, const char *prefix)
{
	size_t n = strlen(prefix);

	return strncmp(path, prefix, n) == 0 ? path + n : NULL;
}

static bool is_component_end(const char *at)
{
	return !*at || *at == '/';
}

/* Returns a number made of all digits up to the end of the component; 0: there is none. Keeps
 * errno, which strtol does not. */
static long number_at(const char *at, const char **end)
{
	enum { MOST = 10 };
	long n = 0;
	int i;

	for (i = 0; i < MOST && at[i] >= '0' && at[i] <= '9'; i++)
		n = n * 10 + (at[i] - '0');
	*end = at + i;
	return i && *at != '0' && is_component_end(*end) ? n : 0;
}

/* True if the number is this process's or one of its threads'. */
static bool is_process(long number)
{
	return number && (number == getpid() || kbi_bind_find(number));
}

static bool find_numbered_thread(const char *at, bool as_process, struct place *p)
{
	long number = number_at(at, &p->rest);

	p->t = number ? kbi_bind_find(number) : NULL;
	p->number = (uint32_t)number;
	p->as_process = as_process;
	return p->t && !(as_process && p->t->is_main);
}

/* Finds the thread for a path; `path` is the text after /proc/. */
static bool find_in_proc_path(const char *path, struct place *p)
{
	const char *at, *end;

	at = text_after_prefix(path, "thread-self/");
	if (at) {
		p->t = kbi_bind_is_light() ? kbi_thread_of(kbi_self_raw()) : NULL;
		p->number = kbi_signal_to(p->t).number;
		p->as_process = false;
		p->rest = at - 1;
		return p->t;
	}
	at = text_after_prefix(path, "self/task/");
	if (at)
		return find_numbered_thread(at, false, p);
	if (!is_process(number_at(path, &end)))
		return false;
	at = text_after_prefix(end, "/task/");
	return at ? find_numbered_thread(at, false, p) : find_numbered_thread(path, true, p);
}

/* Finds the thread for a name relative to an open directory of /proc. */
static bool find_in_proc_dir(int dir, const char *path, struct place *p)
{
	struct statfs fs;

	return find_numbered_thread(path, false, p) && !p->t->is_main &&
		kbi_sys(SYS_fstatfs, dir, &fs) == 0 && fs.f_type == PROC_MAGIC;
}

static bool find_path_thread(int dir, const char *path, struct place *p)
{
	const char *at;

	if (*path == '/') {
		at = text_after_prefix(path, "/proc/");
		return kbi_unlikely(at != NULL) && find_in_proc_path(at, p);
	}
	return kbi_unlikely(*path >= '1' && *path <= '9') && dir >= 0 &&
		find_in_proc_dir(dir, path, p);
}

/* ---- which kernel thread ------------------------------------------------------------------ */

/* Returns the kernel thread whose files are shown for t's: one in an equal state, or that of the
 * virtual processor t was on last. */
static int shown_tid(const struct kb_thread *t)
{
	/* acquire: pairs with the release in kbi_handoff_begin */
	int kind = kbi_state_kind(a_load_acq(&t->task.state)),
		tid = kind == KBI_TASK_WAITING ? kbi_worker_pool_idle_tid() : 0;

	return tid ? tid : kbi_bind_shown(t);
}

/* Like shown_tid, but main has the process's first kernel thread unless that has been changed for a
 * thread that keeps it. */
static int shown_tid_or_main(const struct kb_thread *t)
{
	const struct kbi_worker *first = kbi_worker_of_tid(getpid());
	int kept = kbi_bind_kept(t);

	if (kept)
		return kept;
	return t->is_main && !(first && a_load_rlx(&first->changed)) ? getpid() : shown_tid(t);
}

static bool format_kernel_path(const struct place *p, struct kbi_proc_path *to)
{
	int tid = shown_tid_or_main(p->t), process = kbi_sys_from.processes ? tid : getpid();

	if (p->as_process)
		return snprintf(to->text, sizeof(to->text), "/proc/%d%s", tid,
			p->rest) < (int)sizeof(to->text);
	return snprintf(to->text, sizeof(to->text), "/proc/%d/task/%d%s", process, tid,
		p->rest) < (int)sizeof(to->text);
}

/* ---- copies ------------------------------------------------------------------------------- */

static size_t read_all(const char *path, char *text, size_t room)
{
	KBI_FD_BRIEFLY();
	int fd = (int)kbi_sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	size_t n = 0;
	long r;

	if (fd < 0)
		return 0;
	while (n < room - 1 && (r = kbi_sys(SYS_read, fd, text + n, room - 1 - n)) > 0)
		n += (size_t)r;
	kbi_sys(SYS_close, fd);
	text[n] = 0;
	return n;
}

static void write_all(int fd, const char *text, size_t n)
{
	long r;

	for (; n && (r = kbi_sys(SYS_write, fd, text, n)) > 0; text += r)
		n -= (size_t)r;
}

static void write_text(int fd, const char *text)
{
	write_all(fd, text, strlen(text));
}

static int shown_number(const struct kb_thread *t)
{
	return (int)a_load_rlx(&t->number);
}

/* The text begins with `PID (name) ...` or `name (PID, ...`: copies the rest after name and
 * number. */
static void copy_stat(int fd, const char *text, const char *name, const struct kb_thread *t)
{
	const char *rest = strrchr(text, ')');
	char head[NAME + 32];

	snprintf(head, sizeof(head), "%d (%s", shown_number(t), name);
	write_text(fd, head);
	write_text(fd, rest ? rest : text);
}

static void copy_sched(int fd, const char *text, const char *name, const struct kb_thread *t)
{
	const char *rest = strstr(text, ", #threads");
	char head[NAME + 32];

	snprintf(head, sizeof(head), "%s (%d", name, shown_number(t));
	write_text(fd, head);
	write_text(fd, rest ? rest : text);
}

/* Copies a line, with the thread's own values. NSpid has a number for each namespace, of which the
 * last is replaced. */
static void copy_line(int fd, const char *line, size_t n, const char *name,
	const struct kb_thread *t)
{
	char own[64];

	if (text_after_prefix(line, "Name:"))
		snprintf(own, sizeof(own), "Name:\t%s\n", name);
	else if (text_after_prefix(line, "Pid:"))
		snprintf(own, sizeof(own), "Pid:\t%d\n", shown_number(t));
	else if (text_after_prefix(line, "Tgid:"))
		snprintf(own, sizeof(own), "Tgid:\t%d\n", getpid());
	else if (text_after_prefix(line, "NSpid:"))
		snprintf(own, sizeof(own), "NSpid:\t%d\n", shown_number(t));
	else if (text_after_prefix(line, "SigBlk:"))
		/* its kernel thread may block all signals while it is in a call */
		snprintf(own, sizeof(own), "SigBlk:\t%016llx\n",
			(unsigned long long)a_load_rlx(&t->signals.mask));
	else {
		write_all(fd, line, n);
		return;
	}
	write_text(fd, own);
}

static void copy_status(int fd, const char *text, const char *name, const struct kb_thread *t)
{
	size_t n;

	for (; *text; text += n) {
		n = strcspn(text, "\n");
		n += text[n] == '\n';
		copy_line(fd, text, n, name, t);
	}
}

static void copy_name(int fd, const char *text, const char *name, const struct kb_thread *t)
{
	(void)text;
	(void)t;
	write_text(fd, name);
	write_text(fd, "\n");
}

static const struct copied {
	const char *file;
	void (*copy)(int fd, const char *text, const char *name, const struct kb_thread *t);
} copies[] = {
	{ "/comm", copy_name },
	{ "/stat", copy_stat },
	{ "/status", copy_status },
	{ "/sched", copy_sched },
};

/* Returns how to copy the file, or NULL. Main's name and number are the kernel's, so only the file
 * with its signal mask is copied. */
static const struct copied *copied_as(const struct place *p)
{
	for (size_t i = 0; i < kbi_countof(copies); i++)
		if (strcmp(copies[i].file, p->rest) == 0)
			return !p->t->is_main || copies[i].copy == copy_status ? &copies[i] : NULL;
	return NULL;
}

static int make_copy(const struct place *p, const struct copied *c, const char *path)
{
	char *text, name[NAME] = "";
	int fd;

	text = malloc(TEXT);
	fd = text ? (int)kbi_sys(SYS_memfd_create, "proc", MFD_CLOEXEC) : -ENOMEM;
	if (fd >= 0 && read_all(path, text, TEXT)) {
		kbi_thread_attrs_name(p->t, name);
		c->copy(fd, text, name, p->t);
		kbi_sys(SYS_lseek, fd, 0, SEEK_SET);
	}
	free(text);
	return fd;
}

/* Returns the descriptor of a copy; negative: there is no copy. */
static int copy_of(const struct place *p, const struct copied *c, enum kbi_proc_how how,
	const char *path)
{
	if (how == KBI_PROC_READ)
		return make_copy(p, c, path);
	return c->copy == copy_name ? kbi_naming_file((struct kbi_signal_to){ p->t, p->number }) : -1;
}

/* True if the thread has ended: then the answer may be about the descriptor's next thread. */
static bool has_ended(const struct place *p)
{
	return &p->t->task != kbi_self_raw() &&
		!kbi_bind_has((struct kbi_signal_to){ p->t, p->number });
}

/* ---- paths -------------------------------------------------------------------------------- */

void kbi_proc_done(const struct kbi_proc_path *p)
{
	if (p->fd >= 0)
		kbi_sys(SYS_close, p->fd);
}

bool kbi_proc_other(int dir, const char *path, enum kbi_proc_how how, struct kbi_proc_path *p)
{
	const struct copied *c;
	struct place at;
	int saved = errno;

	p->fd = -1;
	if (kbi_likely(!find_path_thread(dir, path, &at)) || !format_kernel_path(&at, p)) {
		errno = saved;
		return false;
	}
	c = how == KBI_PROC_NAMED ? NULL : copied_as(&at);
	if (c)
		p->fd = copy_of(&at, c, how, p->text);
	if (kbi_unlikely(has_ended(&at))) {
		kbi_proc_done(p);
		errno = saved;
		return false;
	}
	if (p->fd >= 0) /* the process's first kernel thread may have a different descriptor table */
		snprintf(p->text, sizeof(p->text), "/proc/thread-self/fd/%d", p->fd);
	errno = saved;
	return true;
}

bool kbi_proc_opens(int dir, const char *path, int how, int *r)
{
	struct kbi_proc_path p;
	long fd;

	if (!kbi_bind_is_readable(path) ||
	    kbi_likely(!kbi_proc_other(dir, path,
	    (how & O_ACCMODE) == O_RDONLY ? KBI_PROC_READ : KBI_PROC_WRITTEN, &p)))
		return false;
	if (p.fd >= 0)
		how &= ~(O_NOFOLLOW | O_TRUNC | O_CREAT | O_EXCL);
	fd = kbi_sys(SYS_openat, AT_FDCWD, p.text, how, 0);
	kbi_proc_done(&p);
	*r = kbi_posix_answer(fd);
	return true;
}

bool kbi_proc_is_list(int dir, const char *path)
{
	const char *at = *path == '/' ? text_after_prefix(path, "/proc/") : NULL, *end;

	(void)dir;
	if (kbi_likely(!at))
		return false;
	end = text_after_prefix(at, "self");
	if (!end)
		end = text_after_prefix(at, "thread-self");
	if (!end && is_process(number_at(at, &end)))
		at = end;
	end = end ? text_after_prefix(end, "/task") : NULL;
	return end && (!*end || strcmp(end, "/") == 0) && kbi_vp_n && !kbi_posix_forked;
}

long kbi_proc_link(const char *path, char *to, size_t room)
{
	char text[64];
	int n;

	if (kbi_likely(strcmp(path, "/proc/thread-self") != 0) || !kbi_bind_is_light())
		return -1;
	n = snprintf(text, sizeof(text), "%d/task/%d", getpid(), kbi_bind_number());
	if ((size_t)n > room)
		n = (int)room;
	memcpy(to, text, (size_t)n);
	return n;
}
