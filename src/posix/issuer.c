/* posix/issuer.c - contract in issuer.h. liburing makes its system calls by its own instructions; those of its functions
 * that are about the calling kernel thread are defined here, in front of it, and call it. The threads of a program that has
 * a liburing of its own inside are kernel threads (posix/caller). Runs on the caller. Calls the loader at a first use.
 * Never switches. */
#include "posix/issuer.h"

#include <dlfcn.h>
#include <errno.h>

#include "posix/bind.h"

/* As in newer kernels' headers. */
enum {
	STARTS_DISABLED = 1 << 6, /* IORING_SETUP_R_DISABLED: who enables it is the one */
	SINGLE_ISSUER = 1 << 12,
	DEFER_TASKRUN = 1 << 13,
	ENABLE_RINGS = 12, /* IORING_REGISTER_ENABLE_RINGS */
	RING_FDS = 20,	   /* IORING_REGISTER_RING_FDS */
	BY_TABLE = 1u << 31,
};

static void keep(void)
{
	kbi_bind_self("an io_uring for one thread", KBI_BIND_WATCHED);
}

void kbi_issuer_sets_up(uint32_t flags)
{
	if (flags & (SINGLE_ISSUER | DEFER_TASKRUN) && !(flags & STARTS_DISABLED))
		keep();
}

void kbi_issuer_registers(uint32_t operation)
{
	operation &= ~BY_TABLE;
	if (operation == ENABLE_RINGS || operation == RING_FDS)
		keep();
}

/* ---- liburing's -------------------------------------------------------------------------------------------- */

/* What the caller would have found without us: behind us, or among what its own module needs. */
static void *original(const char *name, const void *caller)
{
	void *behind = dlsym(RTLD_NEXT, name);

	return behind ? behind : dlsym(kbi_place_object(caller), name);
}

int io_uring_queue_init(unsigned entries, void *ring, unsigned flags);
int io_uring_queue_init_params(unsigned entries, void *ring, void *params);
int io_uring_queue_init_mem(unsigned entries, void *ring, void *params, void *memory, size_t bytes);
int io_uring_enable_rings(void *ring);
int io_uring_register_ring_fd(void *ring);
int io_uring_setup(unsigned entries, void *params);
int io_uring_register(unsigned fd, unsigned operation, const void *arg, unsigned n);

#define ORIGINAL(name) __typeof__(&name) f = (__typeof__(&name))(uintptr_t)original(#name, __builtin_return_address(0))

/* struct io_uring_params */
static uint32_t flags_in(const void *params)
{
	return ((const uint32_t *)params)[2];
}

KBI_POSIX_API int io_uring_queue_init(unsigned entries, void *ring, unsigned flags)
{
	ORIGINAL(io_uring_queue_init);

	kbi_issuer_sets_up(flags);
	return f ? f(entries, ring, flags) : -ENOSYS;
}

KBI_POSIX_API int io_uring_queue_init_params(unsigned entries, void *ring, void *params)
{
	ORIGINAL(io_uring_queue_init_params);

	kbi_issuer_sets_up(flags_in(params));
	return f ? f(entries, ring, params) : -ENOSYS;
}

KBI_POSIX_API int io_uring_queue_init_mem(unsigned entries, void *ring, void *params, void *memory, size_t bytes)
{
	ORIGINAL(io_uring_queue_init_mem);

	kbi_issuer_sets_up(flags_in(params));
	return f ? f(entries, ring, params, memory, bytes) : -ENOSYS;
}

KBI_POSIX_API int io_uring_enable_rings(void *ring)
{
	ORIGINAL(io_uring_enable_rings);

	kbi_issuer_registers(ENABLE_RINGS);
	return f ? f(ring) : -ENOSYS;
}

KBI_POSIX_API int io_uring_register_ring_fd(void *ring)
{
	ORIGINAL(io_uring_register_ring_fd);

	kbi_issuer_registers(RING_FDS);
	return f ? f(ring) : -ENOSYS;
}

KBI_POSIX_API int io_uring_setup(unsigned entries, void *params)
{
	ORIGINAL(io_uring_setup);

	if (params)
		kbi_issuer_sets_up(flags_in(params));
	return f ? f(entries, params) : -ENOSYS;
}

KBI_POSIX_API int io_uring_register(unsigned fd, unsigned operation, const void *arg, unsigned n)
{
	ORIGINAL(io_uring_register);

	kbi_issuer_registers(operation);
	return f ? f(fd, operation, arg, n) : -ENOSYS;
}
