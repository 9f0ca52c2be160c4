/* posix/uring_owner.c - contract in uring_owner.h. liburing makes its system calls by its own
 * instructions; its functions that are about the calling kernel thread, or wait, are defined here,
 * in front of liburing, and call it. The threads of a program that contains a liburing of its own
 * are kernel threads (posix/creator_module). A ring made by a system call whose number is in a
 * variable goes unnoticed when it is made; but a ring must be mapped before use, and that is
 * noticed. Runs on the caller. Calls the loader at a first use. A function that waits may
 * switch. */
#include "posix/uring_owner.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "core/yield.h"
#include "os/newer.h"
#include "os/sys.h"
#include "posix/bind.h"
#include "posix/call_priv.h"

/* Values of newer kernels' headers. */
enum {
	/* IORING_SETUP_R_DISABLED: the thread that enables the ring is its single issuer */
	STARTS_DISABLED = 1 << 6,
	SINGLE_ISSUER = 1 << 12,
	DEFER_TASKRUN = 1 << 13,
	ENABLE_RINGS = 12, /* IORING_REGISTER_ENABLE_RINGS */
	RING_FDS = 20,	   /* IORING_REGISTER_RING_FDS */
	BY_TABLE = 1u << 31,
	REQUESTS = 0x10000000, /* IORING_OFF_SQES: offset of the requests in a ring's file */
};

static void keep_ring_thread(void)
{
	kbi_bind_self("an io_uring for one thread", KBI_BIND_WATCHED);
}

void kbi_uring_owner_sets_up(uint32_t flags)
{
	kbi_posix_me.ring_told = 1;
	if (flags & (SINGLE_ISSUER | DEFER_TASKRUN) && !(flags & STARTS_DISABLED))
		keep_ring_thread();
}

void kbi_uring_owner_registers(uint32_t operation)
{
	operation &= ~BY_TABLE;
	if (operation == ENABLE_RINGS || operation == RING_FDS)
		keep_ring_thread();
}

/* ---- rings that were made unnoticed ------------------------------------------------------- */

static bool is_ring_descriptor(int fd)
{
	static const char ring[] = "anon_inode:[io_uring]";
	char path[32], file[sizeof(ring)];

	snprintf(path, sizeof(path), "/proc/thread-self/fd/%d", fd);
	return kbi_sys(SYS_readlinkat, AT_FDCWD, path, file, sizeof(file), 0, 0) == sizeof(ring) - 1 &&
	       memcmp(file, ring, sizeof(ring) - 1) == 0;
}

static long probe_ring(int fd)
{
	return kbi_sys(SYS_io_uring_enter, fd, 0, 0, 0, 0, 0);
}

/* Asks about the ring on the kernel thread on which the call that made the ring blocked, and which
 * the caller would leave at its next call of the library; keeps it if the ring is for this kernel
 * thread. */
static long probe_ring_away(int fd)
{
	long r;

	kbi_handoff_begin(KBI_HANDOFF_SURELY);
	r = probe_ring(fd);
	if (r == 0)
		keep_ring_thread();
	kbi_handoff_end();
	return r;
}

/* Handles a ring that the thread has mapped: the ring may be for a single kernel thread. Since it
 * made the ring the thread may have lost its turn and be on another kernel thread: then it yields
 * until it is back. A disabled ring belongs to no thread yet. */
static void check_mapped_ring(int fd)
{
	enum { TURNS = 1000 };
	const struct kbi_task *self = kbi_self_raw();
	bool told = kbi_posix_me.ring_told;

	kbi_posix_me.ring_told = 0;
	if (told || !self || !is_ring_descriptor(fd))
		return;
	if (kbi_handoff_is_away(kbi_thread_of((struct kbi_task *)(uintptr_t)self)) &&
		probe_ring_away(fd) != -EEXIST)
		return;
	if (!kbi_posix_light() || !kbi_call_may_wait())
		return;
	for (int turn = 0; turn < TURNS; turn++) {
		long r = probe_ring(fd);

		if (r == 0)
			keep_ring_thread();
		if (r != -EEXIST)
			return;
		kbi_yield_now();
	}
}

KBI_POSIX_API void *mmap(void *at, size_t bytes, int rights, int flags, int fd, off_t offset)
{
	void *p;

	/* acquire: pairs with the release in kbi_libc_look_up; an allocator may call before that */
	if (kbi_unlikely(!a_load_acq(&kbi_libc_ready))) {
		long r = kbi_sys(SYS_mmap, at, bytes, rights, flags, fd, offset);

		if (r >= 0 || r < -4095)
			return (void *)r;
		errno = (int)-r;
		return MAP_FAILED;
	}
	p = kbi_libc()->mmap(at, bytes, rights, flags, fd, offset);
	if (kbi_unlikely(offset == REQUESTS && fd >= 0) && p != MAP_FAILED)
		check_mapped_ring(fd);
	return p;
}

KBI_POSIX_ALIAS(mmap64, mmap);

/* ---- liburing's functions ----------------------------------------------------------------- */

/* Returns the function that the caller would have found without us: behind us, or among the
 * libraries that its own module needs. */
static void *find_liburing_function(const char *name, const void *caller, aptr *known)
{
	void *f = a_load_rlx(known);

	if (!f)
		f = dlsym(RTLD_NEXT, name);
	if (!f)
		return dlsym(kbi_link_order_object(caller), name);
	a_store_rlx(known, f);
	return f;
}

int io_uring_queue_init(unsigned entries, void *ring, unsigned flags);
int io_uring_queue_init_params(unsigned entries, void *ring, void *params);
int io_uring_queue_init_mem(unsigned entries, void *ring, void *params, void *memory, size_t bytes);
int io_uring_enable_rings(void *ring);
int io_uring_register_ring_fd(void *ring);
int io_uring_setup(unsigned entries, void *params);
int io_uring_register(unsigned fd, unsigned operation, const void *arg, unsigned n);

#define ORIGINAL(name) \
	static aptr known; \
	__typeof__(&name) f = (__typeof__(&name))(uintptr_t)find_liburing_function(#name, \
		__builtin_return_address(0), &known)

/* Returns the flags in struct io_uring_params. */
static uint32_t flags_of_params(const void *params)
{
	return ((const uint32_t *)params)[2];
}

KBI_POSIX_API int io_uring_queue_init(unsigned entries, void *ring, unsigned flags)
{
	ORIGINAL(io_uring_queue_init);

	kbi_uring_owner_sets_up(flags);
	return f ? f(entries, ring, flags) : -ENOSYS;
}

KBI_POSIX_API int io_uring_queue_init_params(unsigned entries, void *ring, void *params)
{
	ORIGINAL(io_uring_queue_init_params);

	kbi_uring_owner_sets_up(flags_of_params(params));
	return f ? f(entries, ring, params) : -ENOSYS;
}

KBI_POSIX_API int io_uring_queue_init_mem(unsigned entries, void *ring, void *params, void *memory,
	size_t bytes)
{
	ORIGINAL(io_uring_queue_init_mem);

	kbi_uring_owner_sets_up(flags_of_params(params));
	return f ? f(entries, ring, params, memory, bytes) : -ENOSYS;
}

KBI_POSIX_API int io_uring_enable_rings(void *ring)
{
	ORIGINAL(io_uring_enable_rings);

	kbi_uring_owner_registers(ENABLE_RINGS);
	return f ? f(ring) : -ENOSYS;
}

KBI_POSIX_API int io_uring_register_ring_fd(void *ring)
{
	ORIGINAL(io_uring_register_ring_fd);

	kbi_uring_owner_registers(RING_FDS);
	return f ? f(ring) : -ENOSYS;
}

KBI_POSIX_API int io_uring_setup(unsigned entries, void *params)
{
	ORIGINAL(io_uring_setup);

	if (params)
		kbi_uring_owner_sets_up(flags_of_params(params));
	return f ? f(entries, params) : -ENOSYS;
}

KBI_POSIX_API int io_uring_register(unsigned fd, unsigned operation, const void *arg, unsigned n)
{
	ORIGINAL(io_uring_register);

	kbi_uring_owner_registers(operation);
	return f ? f(fd, operation, arg, n) : -ENOSYS;
}

/* ---- waiting ------------------------------------------------------------------------------ */

int __io_uring_get_cqe(void *ring, void **cqe, unsigned submit, unsigned n, void *mask);
int io_uring_wait_cqes(void *ring, void **cqe, unsigned n, void *limit, void *mask);
int io_uring_wait_cqe_timeout(void *ring, void **cqe, void *limit);
int io_uring_submit_and_wait(void *ring, unsigned n);
int io_uring_submit_and_wait_timeout(void *ring, void **cqe, unsigned n, void *limit, void *mask);
int io_uring_enter(unsigned fd, unsigned submit, unsigned n, unsigned flags, void *mask);
int io_uring_enter2(unsigned fd, unsigned submit, unsigned n, unsigned flags, void *mask,
	size_t bytes);

/* Defines a function that waits, with the virtual processor lent. The runtime's own signals do not
 * end the call. */
#define WAITS(name, parameters, arguments) \
	KBI_POSIX_API int name parameters \
	{ \
		uint32_t before = kbi_posix_me.handled; \
		int r; \
		ORIGINAL(name); \
\
		if (!f) \
			return -ENOSYS; \
		if (!kbi_call_may_wait()) \
			return f arguments; \
		KBI_CALL_BLOCKING(false); \
		do \
			r = f arguments; \
		while (r == -EINTR && kbi_posix_me.handled == before); \
		return r; \
	}

WAITS(__io_uring_get_cqe, (void *ring, void **cqe, unsigned submit, unsigned n, void *mask),
	(ring, cqe, submit, n, mask))
WAITS(io_uring_wait_cqes, (void *ring, void **cqe, unsigned n, void *limit, void *mask),
	(ring, cqe, n, limit, mask))
WAITS(io_uring_wait_cqe_timeout, (void *ring, void **cqe, void *limit), (ring, cqe, limit))
WAITS(io_uring_submit_and_wait, (void *ring, unsigned n), (ring, n))
WAITS(io_uring_submit_and_wait_timeout,
	(void *ring, void **cqe, unsigned n, void *limit, void *mask),
	(ring, cqe, n, limit, mask))
WAITS(io_uring_enter, (unsigned fd, unsigned submit, unsigned n, unsigned flags, void *mask),
	(fd, submit, n, flags, mask))
WAITS(io_uring_enter2, (unsigned fd, unsigned submit, unsigned n, unsigned flags, void *mask,
	size_t bytes),
	(fd, submit, n, flags, mask, bytes))
