/* space/file.c - the file of a space. Contract in file.h.
 * Callers: see file.h. Uses raw system calls: the drop-in defines libc's names. Never switches. */
#include "space/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/san.h"
#include "core/process.h"
#include "os/fd.h"
#include "os/lock.h"
#include "os/random.h"
#include "space/life.h"
#include "space/place.h"

enum {
	GROW = 1 << 20,          /* bytes added at a time */
	DEFAULT_LIMIT = 64 << 20,
	BLOCK = 4096,
	LOOK_NS = 1000000, /* ns between two checks of the lock's holder */
	NAP_NS = 50000,
	RELAXES = 64,
};

#define MOST_BYTES (UINT64_C(1) << 40) /* most bytes of a space */

static a32 here;

/* ---- what kind of file ----------------------------------------------------------------------- */

/* Hashes sizes and offsets that must agree; a machine with a different byte order
 * reads a different number. */
static uint32_t hash_space_abi(void)
{
	const uint32_t facts[] =
		{ KBI_SPACE_PROCS, KBI_SPACE_RECORDS, KBI_SPACE_CHUNKS, sizeof(void *), 0x01020304,
		KBI_SPACE_FIRST, sizeof(struct kbi_space_proc), sizeof(struct kbi_space_record),
		sizeof(struct kbi_space_thing), offsetof(struct kbi_space_thing, how) };
	uint32_t h = 2166136261u;

	for (unsigned i = 0; i < kbi_countof(facts); i++)
		for (unsigned b = 0; b < 4; b++)
			h = (h ^ ((const uint8_t *)&facts[i])[b]) * 16777619u;
	return h;
}

uint64_t kbi_space_file_pid_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) ? 0 : (uint64_t)st.st_ino;
}

static long read_at(int fd, void *buf, size_t n)
{
	return kbi_sys(SYS_pread64, fd, buf, n, 0);
}

/* Returns whether the sizes in the head are sound. All sizes that the file names can be reserved,
 * so no sum of them wraps. */
static bool is_sound_head(const struct kbi_space_head *h, uint64_t bytes)
{
	uint64_t size = a_load_rlx(&h->size), used = a_load_rlx(&h->used);

	return size <= bytes && size >= KBI_SPACE_FIRST && size <= h->limit &&
		used >= KBI_SPACE_FIRST && used <= size &&
	       used % KBI_CACHE_LINE == 0 && h->limit <= MOST_BYTES && h->limit % KBI_SPACE_GAP == 0 &&
	       h->address % KBI_SPACE_GAP == 0 && h->address >= KBI_SPACE_GAP * 2 &&
		h->address <= UINTPTR_MAX - h->limit;
}

int kbi_space_file_head(int fd, struct kbi_space_head *head)
{
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return EBADMSG;
	if (read_at(fd, head, sizeof *head) != sizeof *head ||
			memcmp(head->magic, KBI_SPACE_MAGIC, sizeof head->magic))
		return EBADMSG;
	if (head->layout != KBI_SPACE_LAYOUT || head->abi != hash_space_abi())
		return EPROTO;
	if (!is_sound_head(head, (uint64_t)st.st_size))
		return EBADMSG;
	return head->pid_namespace != kbi_space_file_pid_namespace() ? EXDEV : 0;
}

/* ---- making it ------------------------------------------------------------------------------- */

static int move_fd_high(int fd)
{
	long high = kbi_sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, KBI_FD_FROM);

	if (high < 0) {
		kbi_fd_keep(fd);
		return fd;
	}
	kbi_sys(SYS_close, fd);
	kbi_fd_keep((int)high);
	return (int)high;
}

/* Reserves blocks for bytes [from, to), so that no access finds the file system full. */
static int reserve_file_blocks(int fd, uint64_t from, uint64_t to)
{
	static const char zeros[BLOCK];
	long e;

	do
		e = kbi_sys(SYS_fallocate, fd, 0, from, to - from);
	while (e == -EINTR);
	if (e != -EOPNOTSUPP && e != -ENOSYS)
		return (int)-e;
	while (from < to) { /* a file system that cannot promise blocks: writing makes them */
		long n = kbi_sys(SYS_pwrite64, fd, zeros, to - from < BLOCK ? to - from : BLOCK, from);

		if (n < 0 && n != -EINTR)
			return (int)-n;
		from += n > 0 ? (uint64_t)n : 0;
	}
	return 0;
}

static uint64_t round_up_to_unit(uint64_t n, uint64_t unit)
{
	return (n + unit - 1) / unit * unit;
}

/* Chooses an address for a name: high, where neither loaders nor heaps go, and
 * different for each name. */
static uint64_t choose_address(const char *name)
{
	uint64_t h = 1469598103934665603u;

	for (; *name; name++)
		h = (h ^ (uint8_t)*name) * 1099511628211u;
	return KBI_SAN_MAP_FROM + (h >> 28 & (KBI_SAN ? 0x3f : 0xfff)) * UINT64_C(0x100000000);
}

static int fill_head(struct kbi_space_head *h, const kb_space_config_t *c, const char *name)
{
	uint64_t least = round_up_to_unit(KBI_SPACE_FIRST, KBI_SPACE_GAP),
		size = round_up_to_unit(c->size, KBI_SPACE_GAP);

	memcpy(h->magic, KBI_SPACE_MAGIC, sizeof h->magic);
	h->layout = KBI_SPACE_LAYOUT;
	h->abi = hash_space_abi();
	snprintf(h->build, sizeof h->build, "%s", KOCHAB_VERSION);
	h->limit = round_up_to_unit(c->limit ? c->limit :
		c->size > DEFAULT_LIMIT ? c->size : DEFAULT_LIMIT, KBI_SPACE_GAP);
	h->address = c->address ? c->address : choose_address(name);
	h->fixed = c->flags & KB_SPACE_FIXED;
	h->pid_namespace = kbi_space_file_pid_namespace();
	a_store_rlx(&h->size, size < least ? least : size);
	a_store_rlx(&h->used, KBI_SPACE_FIRST);
	if (h->limit < a_load_rlx(&h->size) || h->limit > MOST_BYTES || c->address % KBI_SPACE_GAP ||
	    (c->address && c->address < KBI_SPACE_GAP * 2) || (c->flags & ~(unsigned)KB_SPACE_FIXED) ||
		c->mode & ~0777u)
		return EINVAL;
	return 0;
}

static int write_head(int fd, const kb_space_config_t *c, const char *name)
{
	struct kbi_space_head h = { .layout = 0 };
	int e = fill_head(&h, c, name);

	if (!e)
		e = reserve_file_blocks(fd, 0, a_load_rlx(&h.size));
	if (!e && kbi_sys(SYS_pwrite64, fd, &h, sizeof h, 0) != sizeof h)
		e = EIO;
	return e;
}

void kbi_space_file_close(int fd)
{
	kbi_fd_let(fd);
	kbi_sys(SYS_close, fd);
}

/* Makes the file under a temporary name. It gets its own name when it is complete. */
static int create_at(const struct kbi_space_spot *spot, const char *name,
	const kb_space_config_t *c, int *fd)
{
	char temp[KBI_SPACE_PLACE_PATH + 48];
	uint64_t random[2];
	long f;
	int e;

	kbi_random(random, sizeof random);
	snprintf(temp, sizeof temp, "%s.new.%016llx%016llx", spot->name, (unsigned long long)random[0],
		 (unsigned long long)random[1]);
	f = kbi_sys(SYS_openat, spot->folder, temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
		0600);
	if (f < 0)
		return (int)-f;
	*fd = (int)f;
	e = write_head(*fd, c, name);
	if (!e && c->mode)
		e = (int)-kbi_sys(SYS_fchmod, *fd, c->mode);
	if (!e)
		e = (int)-kbi_sys(SYS_linkat, spot->folder, temp, spot->folder, spot->name, 0);
	kbi_sys(SYS_unlinkat, spot->folder, temp, 0);
	if (e)
		kbi_sys(SYS_close, *fd);
	else
		*fd = move_fd_high(*fd);
	return e;
}

static int create_in(enum kbi_space_place place, const char *name, const kb_space_config_t *c,
	int *fd)
{
	struct kbi_space_spot spot;
	int e = kbi_space_place_enter(place, name, (uint32_t)kbi_sys(SYS_geteuid), true, &spot);

	if (e)
		return e;
	e = create_at(&spot, name, c, fd);
	kbi_space_place_leave(&spot);
	return e;
}

static bool is_existing_space(const char *name)
{
	int fd, e = kbi_space_file_open(name, false, KBI_SPACE_FILE_OURS, &fd);

	if (!e)
		kbi_space_file_close(fd);
	return e != ENOENT;
}

/* A mode with rights for other users goes to the shared place: it would mean nothing in a
 * folder of the user's own. */
int kbi_space_file_create(const char *name, const kb_space_config_t *config, int *fd)
{
	kb_space_config_t c = config ? *config : (kb_space_config_t){ 0 };
	int e = kbi_space_place_check(name);

	if (e)
		return e;
	if (kbi_space_place_is_path(name))
		return create_in(KBI_SPACE_SHARED, name, &c, fd);
	if (is_existing_space(name))
		return EEXIST;
	if (c.mode & 077)
		return create_in(KBI_SPACE_SHARED, name, &c, fd);
	e = ENOENT;
	/* where a session's folder is too small, the next place may have room */
	for (int place = 0; place < KBI_SPACE_SHARED &&
			(e == ENOENT || e == EPERM || e == ENOSPC); place++)
		e = create_in((enum kbi_space_place)place, name, &c, fd);
	return e;
}

static bool is_file_owned_by(const struct stat *st, long owner)
{
	if (owner == KBI_SPACE_FILE_OURS)
		return st->st_uid == 0 || st->st_uid == (uint32_t)kbi_sys(SYS_geteuid);
	return owner == KBI_SPACE_FILE_ANYBODYS || st->st_uid == (uint32_t)owner;
}

/* Inspects the file at that place without opening it: opening a device or a pipe has effects of its
 * own. Returns an O_PATH descriptor, or a negated errno value. */
static int inspect_spot(const struct kbi_space_spot *spot, long owner, struct stat *st)
{
	long f = kbi_sys(SYS_openat, spot->folder, spot->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	int e;

	if (f < 0)
		return (int)f;
	e = fstat((int)f, st) ? errno : is_file_owned_by(st, owner) ? 0 : EPERM;
	if (!e && !S_ISREG(st->st_mode))
		e = S_ISLNK(st->st_mode) ? ELOOP : EBADMSG;
	if (!e)
		return (int)f;
	kbi_sys(SYS_close, f);
	return -e;
}

/* Opens by the descriptor of the inspection, which no process can exchange; without
 * /proc by the name again. */
static long open_inspected_spot(const struct kbi_space_spot *spot, int looked, int flags)
{
	char path[32];
	long f;

	snprintf(path, sizeof path, "/proc/self/fd/%d", looked);
	f = kbi_sys(SYS_openat, AT_FDCWD, path, flags);
	return f == -ENOENT ? kbi_sys(SYS_openat, spot->folder, spot->name, flags | O_NOFOLLOW) : f;
}

static int open_at(const struct kbi_space_spot *spot, bool write, long owner, int *fd)
{
	struct stat looked_at, st;
	int looked = inspect_spot(spot, owner, &looked_at);
	long f;

	if (looked < 0)
		return -looked;
	f = open_inspected_spot(spot, looked,
		(write ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	kbi_sys(SYS_close, looked);
	if (f < 0)
		return (int)-f;
	if (fstat((int)f, &st) || st.st_dev != looked_at.st_dev || st.st_ino != looked_at.st_ino) {
		kbi_sys(SYS_close, f);
		return EPERM;
	}
	*fd = move_fd_high((int)f);
	return 0;
}

int kbi_space_file_open_in(int folder, const char *name, int *fd)
{
	struct kbi_space_spot spot = { .folder = folder };

	if (strlen(name) >= sizeof spot.name)
		return ENAMETOOLONG;
	strcpy(spot.name, name);
	return open_at(&spot, false, KBI_SPACE_FILE_ANYBODYS, fd);
}

static int open_in(enum kbi_space_place place, const char *name, bool write, long owner, int *fd)
{
	uint32_t me = (uint32_t)kbi_sys(SYS_geteuid), user = owner < 0 ? me : (uint32_t)owner;
	struct kbi_space_spot spot;
	int e = kbi_space_place_enter(place, name, user, false, &spot);

	if (e) /* no folder, or no sound folder: the name does not exist there */
		return ENOENT;
	e = open_at(&spot, write, owner, fd);
	/* whatever another user has put there, a file that cannot be opened, a link or a
	 * socket, counts as missing */
	if (e == EPERM && owner == KBI_SPACE_FILE_OURS && !kbi_space_place_is_path(name))
		e = ENOENT;
	/* that user's folder is closed to us */
	if (e == EACCES && place != KBI_SPACE_SHARED && user != me)
		e = ENOENT;
	kbi_space_place_leave(&spot);
	return e;
}

int kbi_space_file_open(const char *name, bool write, long owner, int *fd)
{
	int e = kbi_space_place_check(name);

	if (e)
		return e;
	e = ENOENT;
	for (int place = 0; place < KBI_SPACE_PLACES && e == ENOENT; place++)
		e = open_in((enum kbi_space_place)place, name, write, owner, fd);
	return e;
}

int kbi_space_file_unlink(const char *name)
{
	struct kbi_space_spot spot;
	int e = kbi_space_place_check(name);

	if (e)
		return e;
	e = ENOENT;
	for (int place = 0; place < KBI_SPACE_PLACES && e == ENOENT; place++) {
		if (kbi_space_place_enter((enum kbi_space_place)place, name, (uint32_t)kbi_sys(SYS_geteuid),
				false, &spot))
			continue;
		e = (int)-kbi_sys(SYS_unlinkat, spot.folder, spot.name, 0);
		kbi_space_place_leave(&spot);
	}
	return e;
}

/* Stats the file. False also if the program has closed our descriptor or reused its number. */
static bool is_space_file(const struct kb_space *s, struct stat *st)
{
	return fstat(s->fd, st) == 0 && st->st_dev == s->device && st->st_ino == s->inode;
}

/* ---- mapping --------------------------------------------------------------------------------- */

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

/* Claims address space for gap and limit. NULL: that place is taken, or (at is
 * NULL) there is no space. */
static char *claim_address_range(char *at, size_t bytes)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at ? MAP_FIXED_NOREPLACE : 0);
	char *p = kbi_san_may_map(at, bytes) ? mmap(at, bytes, PROT_NONE, flags, -1, 0) : MAP_FAILED;

	if (p == MAP_FAILED)
		return NULL;
	if (at && p != at) { /* a kernel that takes the address for a hint */
		munmap(p, bytes);
		return NULL;
	}
	return p;
}

int kbi_space_file_map(int fd, const struct kbi_space_head *head, bool fixed, struct kb_space **out)
{
	size_t bytes = KBI_SPACE_GAP + head->limit;
	char *low = claim_address_range((char *)(uintptr_t)head->address - KBI_SPACE_GAP, bytes);
	struct kb_space *s;
	struct stat st;

	if (!low && (fixed || head->fixed))
		return EADDRINUSE;
	if (!low)
		low = claim_address_range(NULL, bytes);
	if (!low)
		return ENOMEM;
	if (mmap(low, KBI_SPACE_GAP, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
			-1, 0) == MAP_FAILED ||
	    mmap(low + KBI_SPACE_GAP, head->limit, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
		0) == MAP_FAILED || fstat(fd, &st)) {
		int e = errno;

		munmap(low, bytes);
		return e;
	}
	s = (struct kb_space *)(void *)low;
	/* a child of fork is not attached; but virtual processors that are processes
	 * begin as a copy of a process */
	if (kbi_process_supervisor())
		s->inherited = head->limit;
	else
		madvise(low + KBI_SPACE_GAP, head->limit, MADV_DONTFORK);
	s->head = (struct kbi_space_head *)(void *)(low + KBI_SPACE_GAP);
	s->fd = fd;
	s->device = st.st_dev;
	s->inode = st.st_ino;
	s->limit = head->limit;
	s->intended = head->address;
	s->owner = st.st_uid;
	a_store_rlx(&s->least, a_load_rlx(&head->size));
	*out = s;
	return 0;
}

void kbi_space_file_unmap(struct kb_space *s)
{
	munmap(s, KBI_SPACE_GAP + s->limit);
}

void kbi_space_file_shut(struct kb_space *s)
{
	struct stat st;

	if (is_space_file(s, &st))
		kbi_space_file_close(s->fd);
	else
		kbi_fd_let(s->fd);
}

void kbi_space_file_forked(struct kb_space *s)
{
	kbi_space_file_shut(s);
	if (s->inherited)
		kbi_sys(SYS_munmap, s->head, s->inherited);
}

/* ---- lock and growth ------------------------------------------------------------------------- */

void kbi_space_file_lock_here(void)
{
	kbi_lock_take(&here);
}

void kbi_space_file_unlock_here(void)
{
	kbi_lock_leave(&here);
}

void kbi_space_file_let_here(void)
{
	a_store_rlx(&here, 0);
}

/* Tries to take the lock. True: this process holds it now. A word that names this process has no
 * holder, since the caller has the lock of this process. */
static bool grab_file_lock(struct kb_space *s, uint64_t *holder)
{
	*holder = 0;
	/* acquire: pairs with the release in kbi_space_file_unlock; all stores of
	 * a dead holder are visible */
	return a_cas_acq(&s->head->lock, holder, s->identity) || *holder == s->identity;
}

static bool take_file_lock_from_dead(struct kb_space *s, uint64_t holder)
{
	/* acquire: as in grab_file_lock; pairs with the release in kbi_space_file_unlock */
	return kbi_space_life_is_gone(holder) && a_cas_acq(&s->head->lock, &holder, s->identity);
}

static int acquire_file_lock(struct kb_space *s)
{
	const struct timespec nap = { 0, NAP_NS };
	uint64_t holder, began = 0, look = 0;

	for (unsigned n = 0; !grab_file_lock(s, &holder); n++) {
		uint64_t now;

		if (n < RELAXES) {
			kbi_cpu_relax();
			continue;
		}
		now = kbi_sys_now();
		began = began ? began : now;
		if (now >= look && take_file_lock_from_dead(s, holder))
			return 0;
		look = now >= look ? now + LOOK_NS : look;
		if (now - began >= KBI_SPACE_PATIENT)
			return EPROTO;
		kbi_sys(SYS_nanosleep, &nap, NULL);
	}
	return 0;
}

int kbi_space_file_lock(struct kb_space *s)
{
	int e;

	kbi_space_file_lock_here();
	e = acquire_file_lock(s);
	if (e)
		kbi_space_file_unlock_here();
	return e;
}

void kbi_space_file_unlock(struct kb_space *s)
{
	/* release: pairs with the acquire in grab_file_lock */
	a_store_rel(&s->head->lock, 0);
	kbi_space_file_unlock_here();
}

bool kbi_space_file_is_whole(const struct kb_space *s, uint64_t size)
{
	struct stat st;

	return !is_space_file(s, &st) || (uint64_t)st.st_size >= size;
}

static void raise_least_bytes(struct kb_space *s, uint64_t bytes)
{
	uint64_t least = a_load_rlx(&s->least);

	while (least < bytes && !a_cas_rlx(&s->least, &least, bytes))
		;
}

void *kbi_space_file_at(struct kb_space *s, uint64_t at, uint64_t bytes)
{
	struct stat st;

	if (at > s->limit || bytes > s->limit - at || !is_space_file(s, &st) ||
			at + bytes > (uint64_t)st.st_size)
		return NULL;
	raise_least_bytes(s, (uint64_t)st.st_size < s->limit ? (uint64_t)st.st_size : s->limit);
	return kbi_space_place(s, at);
}

/* Grows the file. A truncated file is not lengthened again: there would be zeros where other
 * processes' queues were. */
static int grow_space_file(struct kb_space *s, uint64_t size, uint64_t to)
{
	uint64_t want = round_up_to_unit(to, GROW);
	struct stat st;
	int e;

	if (to > s->limit)
		return EMFILE;
	if (!is_space_file(s, &st))
		return EBADF;
	if ((uint64_t)st.st_size < size)
		return EBADMSG;
	if (want > s->limit)
		want = s->limit;
	e = reserve_file_blocks(s->fd, size, want);
	if (e == ENOSPC && want > round_up_to_unit(to, BLOCK)) {
		want = round_up_to_unit(to, BLOCK);
		e = reserve_file_blocks(s->fd, size, want);
	}
	if (!e)
		/* release: pairs with the acquire in kb_space_info */
		a_store_rel(&s->head->size, want);
	if (!e)
		raise_least_bytes(s, want);
	return e;
}

int kbi_space_file_alloc(struct kb_space *s, uint64_t bytes, uint64_t *at)
{
	struct kbi_space_head *h = s->head;
	uint64_t used = a_load_rlx(&h->used), size = a_load_rlx(&h->size);
	int e = 0;

	if (used < KBI_SPACE_FIRST || used < s->used_before || used % KBI_CACHE_LINE || used > size ||
			size > s->limit)
		return EPROTO;
	if (bytes > s->limit)
		return EMFILE;
	bytes = round_up_to_unit(bytes, KBI_CACHE_LINE);
	if (used + bytes > size)
		e = grow_space_file(s, size, used + bytes);
	if (e)
		return e;
	if (!kbi_space_at(s, used, bytes))
		return EBADMSG;
	*at = used;
	s->used_before = used + bytes;
	a_store_rlx(&h->used, used + bytes);
	return 0;
}
