/* tool/space.c - `kochab space`: lists, inspects and removes named spaces. It does not attach: it
 * reads the file, so a damaged file does no harm. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "space/file.h"
#include "space/life.h"
#include "space/place.h"
#include "tool.h"

struct view {
	int fd;
	struct kbi_space_head head;
};

static const char *const type_names[] = {
	"?", "memory", "event", "channel", "semaphore", "mutex", "condition", "rwlock", "barrier",
};

static const char *reason_of_error(int e)
{
	switch (e) {
	case EBADMSG: return "it is no space, damaged or cut short";
	case EPROTO: return "made by another version of Kochab or another machine";
	case EXDEV: return "of another pid namespace";
	default: return strerror(e);
	}
}

/* Opens a view. folder: the folder that the name is in; -1: anywhere. */
static int open_view(int folder, const char *name, struct view *v)
{
	int e = folder < 0 ? kbi_space_file_open(name, false, KBI_SPACE_FILE_ANYBODYS, &v->fd) :
			     kbi_space_file_open_in(folder, name, &v->fd);

	if (e)
		return e;
	e = kbi_space_file_head(v->fd, &v->head);
	if (e)
		close(v->fd);
	return e;
}

static bool read_proc(const struct view *v, unsigned slot, struct kbi_space_proc *p)
{
	off_t at = KBI_SPACE_TABLE + (off_t)(slot * sizeof *p);

	return pread(v->fd, p, sizeof *p, at) == (ssize_t)sizeof *p &&
		a_load_rlx(&p->state) != KBI_SPACE_FREE;
}

static bool is_alive(struct kbi_space_proc *p)
{
	return !kbi_space_life_is_over(a_load_rlx(&p->pid), a_load_rlx(&p->start));
}

static unsigned count_processes(const struct view *v)
{
	struct kbi_space_proc p;
	unsigned n = 0;

	for (unsigned i = 0; i < KBI_SPACE_PROCS; i++)
		n += read_proc(v, i, &p) && is_alive(&p);
	return n;
}

/* Returns names that other programs have given as they may be shown; valid until the next call. */
static const char *shown_name(const char *name, size_t most)
{
	static char text[4 * 256 + 1];

	return tool_plain(text, sizeof text, name, most);
}

/* ---- list ------------------------------------------------------------------------------------ */

/* Lists a file of a folder: its space is asked for by this name. */
static void list_space_file(int folder, const char *file, const char *name, const char *path,
	bool json)
{
	struct view v;
	int e = open_view(folder, file, &v);
	uint64_t size = e ? 0 : a_load_rlx(&v.head.size), used = e ? 0 : a_load_rlx(&v.head.used);
	unsigned n = e ? 0 : count_processes(&v);

	if (json) {
		printf("{\"name\": ");
		tool_json_string(name);
		printf(", \"path\": ");
		tool_json_string(path);
		if (e) {
			printf(", \"error\": ");
			tool_json_string(reason_of_error(e));
			puts("}");
		} else {
			printf(", \"size\": %" PRIu64 ", \"used\": %" PRIu64 ", \"limit\": %" PRIu64, size,
				used, v.head.limit);
			printf(", \"processes\": %u, \"objects\": %u}\n", n, a_load_rlx(&v.head.n_things));
		}
	} else if (e) {
		printf("%-24s %s\n", shown_name(name, SIZE_MAX), reason_of_error(e));
	} else {
		printf("%-24s %8" PRIu64 " KiB of %8" PRIu64 ", ", shown_name(name, SIZE_MAX),
			size / 1024, v.head.limit / 1024);
		printf("%u process%s, %u objects\n", n, n == 1 ? "" : "es", a_load_rlx(&v.head.n_things));
	}
	if (!e)
		close(v.fd);
}

/* Returns whether the name leads to this file of the folder. */
static bool leads_to(const char *name, int folder, const char *file)
{
	struct stat st, found;
	int fd;
	bool same;

	if (kbi_space_place_is_path(name) || kbi_space_file_open(name, false, KBI_SPACE_FILE_OURS, &fd))
		return false;
	same = fstat(fd, &found) == 0 && fstatat(folder, file, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		st.st_dev == found.st_dev && st.st_ino == found.st_ino;
	kbi_space_file_close(fd);
	return same;
}

/* Lists files, which are opened in the folder that was read: its owner may put something else in
 * its place meanwhile. A space is asked for by its name, or, where the name leads elsewhere or is
 * none, by its path. */
static void list_files(DIR *dir, enum kbi_space_place place, uint32_t user, bool json)
{
	const char *prefix = place == KBI_SPACE_SHARED ? KBI_SPACE_PLACE_PREFIX : "";
	char path[KBI_SPACE_PLACE_PATH];
	struct dirent *d;

	while ((d = readdir(dir))) {
		const char *name = d->d_name + strlen(prefix);

		if (strncmp(d->d_name, prefix, strlen(prefix)) || strcmp(d->d_name, ".") == 0 ||
			strcmp(d->d_name, "..") == 0 ||
			kbi_space_place_path(place, name, user, path, sizeof path))
			continue;
		list_space_file(dirfd(dir), d->d_name,
			leads_to(name, dirfd(dir), d->d_name) ? name : path, path, json);
	}
	closedir(dir);
}

/* Lists a user's folder, under the conditions for making a space there; a folder with two paths is
 * shown once. */
static void list_folder(enum kbi_space_place place, uint32_t user, bool json)
{
	static struct stat seen;
	struct stat st;
	int folder, fd;
	DIR *dir;

	if (kbi_space_place_open(place, user, false, &folder))
		return;
	fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	close(folder);
	if (fd < 0)
		return;
	if (fstat(fd, &st) || (st.st_dev == seen.st_dev && st.st_ino == seen.st_ino)) {
		close(fd);
		return;
	}
	seen = st;
	dir = fdopendir(fd);
	if (dir)
		list_files(dir, place, user, json);
	else
		close(fd);
}

/* Lists folders of other users, which root may see: entries of `in` that are this prefix and a
 * uid. */
static void list_others(const char *in, const char *prefix, enum kbi_space_place place, bool json)
{
	DIR *dir = geteuid() == 0 ? opendir(in) : NULL;
	struct dirent *d;

	while (dir && (d = readdir(dir))) {
		char *end, *from = d->d_name + strlen(prefix);
		unsigned long user = strncmp(d->d_name, prefix, strlen(prefix)) == 0 ?
			strtoul(from, &end, 10) : 0;

		if (user && user < UINT32_MAX && !*end)
			list_folder(place, (uint32_t)user, json);
	}
	if (dir)
		closedir(dir);
}

static int list_spaces(bool json)
{
	DIR *shared = opendir(KBI_SPACE_PLACE_SHARED);

	for (int place = 0; place < KBI_SPACE_SHARED; place++)
		list_folder((enum kbi_space_place)place, geteuid(), json);
	list_others("/run/user", "", KBI_SPACE_RUN_USER, json);
	list_others(KBI_SPACE_PLACE_SHARED, "kochab-", KBI_SPACE_OF_USER, json);
	if (!shared) {
		tool_say("space: %s: %s", KBI_SPACE_PLACE_SHARED, strerror(errno));
		return TOOL_FAILED;
	}
	list_files(shared, KBI_SPACE_SHARED, 0, json);
	return TOOL_OK;
}

/* ---- inspect --------------------------------------------------------------------------------- */

static void show_ends(const struct kbi_space_thing *t, unsigned end, const char *what)
{
	uint64_t mask = a_load_rlx(&t->ends[end]);

	printf(", %s", what);
	if (!mask)
		printf(" none%s", a_load_rlx(&t->flags) & KBI_SPACE_DIED << end ?
			" (the last one died)" : "");
	for (unsigned i = 0; i < KBI_SPACE_PROCS; i++)
		if (mask >> i & 1)
			printf(" #%u", i);
}

static void show_thing(const struct kbi_space_thing *t)
{
	unsigned type = t->type < sizeof type_names / sizeof *type_names ? t->type : 0;

	printf("  %-10s %s: ", type_names[type], shown_name(t->name, KBI_SPACE_NAME));
	switch (t->type) {
	case KBI_SPACE_MEMORY:
		printf("%" PRIu64 " bytes at offset %" PRIu64, t->capacity, t->buffer);
		break;
	case KBI_SPACE_EVENT:
		printf("%u notifications", (unsigned)a_load_rlx(&t->event.word));
		show_ends(t, 0, "waiting");
		show_ends(t, 1, "notifying");
		break;
	case KBI_SPACE_CHAN:
		printf("%" PRIu64 " of %" PRIu64 " elements of %u bytes", t->chan.tail - t->chan.head,
			t->capacity, t->size);
		show_ends(t, 0, "receivers");
		show_ends(t, 1, "senders");
		break;
	case KBI_SPACE_SEM:
		printf("value %u", a_load_rlx(&t->sem.value));
		break;
	case KBI_SPACE_MUTEX:
		if (a_load_rlx(&t->mutex.owner))
			printf("held by #%u", a_load_rlx(&t->mutex.owner) - 1);
		else
			printf("free");
		break;
	case KBI_SPACE_RWLOCK:
		printf("%u readers, %s", a_load_rlx(&t->rwlock.readers),
			a_load_rlx(&t->rwlock.writer) ? "a writer" : "no writer");
		break;
	case KBI_SPACE_BARRIER:
		printf("%u of %u to come", t->barrier.left, t->size);
		break;
	default:
		break;
	}
	printf("%s%s%s\n", a_load_rlx(&t->flags) & KBI_SPACE_LOST ? ", not recoverable" : "",
	       a_load_rlx(&t->flags) & KBI_SPACE_BROKEN ? ", an owner died" : "",
	       a_load_rlx(&t->queue[0].head) || a_load_rlx(&t->queue[1].head) ? ", threads wait" : "");
}

/* Prints the objects. The chain leads from newer to older objects, which lie lower and apart: so a
 * damaged chain ends, too, and soon. */
static void show_things(const struct view *v)
{
	uint64_t at = a_load_rlx(&v->head.things), before = a_load_rlx(&v->head.size);
	struct kbi_space_thing t;

	for (; at >= KBI_SPACE_FIRST && at % KBI_CACHE_LINE == 0 && at < before &&
		before - at >= sizeof t;) {
		before = at;
		if (pread(v->fd, &t, sizeof t, (off_t)at) != (ssize_t)sizeof t)
			return;
		show_thing(&t);
		at = a_load_rlx(&t.next);
	}
}

static int inspect_space(const char *name)
{
	struct view v;
	struct kbi_space_proc p;
	int e = open_view(-1, name, &v);

	if (e) {
		tool_say("space: %s: %s", name, reason_of_error(e));
		return TOOL_FAILED;
	}
	printf("%s: ", shown_name(name, SIZE_MAX));
	printf("made by Kochab %s, layout %u\n", shown_name(v.head.build, sizeof v.head.build),
		v.head.layout);
	printf("  %" PRIu64 " bytes, %" PRIu64 " in use, may grow to %" PRIu64,
		a_load_rlx(&v.head.size), a_load_rlx(&v.head.used), v.head.limit);
	printf("; address %#" PRIx64 "%s\n", v.head.address, v.head.fixed ? " (fixed)" : "");
	printf("  %u processes died in it\n", a_load_rlx(&v.head.crashes));
	for (unsigned i = 0; i < KBI_SPACE_PROCS; i++)
		if (read_proc(&v, i, &p))
			printf("  #%u process %u %s%s\n", i, a_load_rlx(&p.pid),
				shown_name(p.name, sizeof p.name), is_alive(&p) ? "" : ", dead");
	show_things(&v);
	close(v.fd);
	return TOOL_OK;
}

/* ---- remove ---------------------------------------------------------------------------------- */

static int remove_space(const char *name, bool force)
{
	struct view v;
	int e = open_view(-1, name, &v);
	unsigned n = 0;

	if (!e) {
		n = count_processes(&v);
		close(v.fd);
	}
	if (e != ENOENT && force) /* also a link or a socket: only its name goes */
		e = 0;
	if (n && !force) {
		tool_say("space: %s: %u process%s attached; --force removes its name all the same", name, n,
			 n == 1 ? " is" : "es are");
		return TOOL_FAILED;
	}
	if (!e)
		e = kb_space_unlink(name);
	if (e) {
		tool_say("space: %s: %s", name, reason_of_error(e));
		return TOOL_FAILED;
	}
	return TOOL_OK;
}

static int print_space_usage(FILE *out, int code)
{
	fprintf(out, "usage: kochab space list [--json]\n"
		     "       kochab space inspect NAME\n"
		     "       kochab space remove [--force] NAME...\n\n"
		     "Named spaces: memory that programs share, and in which their threads wait for each "
		     "other.\n"
		     "remove: not while processes are attached, nor what is no space, unless --force.\n");
	return code;
}

static bool is_command(const char *word)
{
	return strcmp(word, "list") == 0 || strcmp(word, "inspect") == 0 || strcmp(word, "remove") == 0;
}

static bool asks_for_help(const char *word)
{
	return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

int tool_space(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "", *more = argc > 2 ? argv[2] : "";
	bool option = strncmp(more, "--", 2) == 0;
	bool is_list = strcmp(what, "list") == 0, is_remove = strcmp(what, "remove") == 0;
	int code = TOOL_OK;

	if (asks_for_help(what) || (is_command(what) && asks_for_help(more)))
		return print_space_usage(stdout, TOOL_OK);
	if (*what && !is_command(what)) {
		tool_say("space: %s: no such %s; 'kochab space --help' lists them", what,
			*what == '-' ? "option" : "command");
		return TOOL_USAGE;
	}
	if (option && strcmp(more, is_remove ? "--force" : is_list ? "--json" : "") != 0) {
		tool_say("space %s: %s: no such option; see 'kochab space --help'", what, more);
		return TOOL_USAGE;
	}
	if (is_list && argc == 2 + option)
		return list_spaces(option);
	if (strcmp(what, "inspect") == 0 && argc == 3)
		return inspect_space(more);
	if (!is_remove || argc < 3 + option)
		return print_space_usage(stderr, TOOL_USAGE);
	for (int i = 2 + option; i < argc; i++)
		if (remove_space(argv[i], option) != TOOL_OK)
			code = TOOL_FAILED;
	return code;
}
