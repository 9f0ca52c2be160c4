/* os/random.c - contract in random.h. */
#include "os/random.h"

#include <fcntl.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/random.h>

#include "base/atom.h"
#include "os/sys.h"

/* ---- the hash -------------------------------------------------------------------------------- */

static inline uint64_t rotate_left(uint64_t x, unsigned bits)
{
	return x << bits | x >> (64 - bits);
}

static inline void mix_state(uint64_t v[4], unsigned rounds)
{
	while (rounds--) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = rotate_left(v[1], 13) ^ v[0];
		v[3] = rotate_left(v[3], 16) ^ v[2];
		v[0] = rotate_left(v[0], 32);
		v[2] += v[1];
		v[0] += v[3];
		v[1] = rotate_left(v[1], 17) ^ v[2];
		v[3] = rotate_left(v[3], 21) ^ v[0];
		v[2] = rotate_left(v[2], 32);
	}
}

static inline void absorb_word(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	mix_state(v, 2);
	v[0] ^= word;
}

/* Hashes the words as a message of 16 bytes. The last word contains the length, as the definition
 * requires. */
uint64_t kbi_random_hash(const uint64_t key[2], uint64_t a, uint64_t b)
{
	uint64_t v[4] = { key[0] ^ UINT64_C(0x736f6d6570736575), key[1] ^ UINT64_C(0x646f72616e646f6d),
			  key[0] ^ UINT64_C(0x6c7967656e657261), key[1] ^ UINT64_C(0x7465646279746573) };

	absorb_word(v, a);
	absorb_word(v, b);
	absorb_word(v, (uint64_t)16 << 56);
	v[2] ^= 0xff;
	mix_state(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* ---- sources of random bytes ----------------------------------------------------------------- */

static bool fill_from_kernel(void *p, size_t n)
{
	long r, fd;

	r = kbi_sys(SYS_getrandom, p, n, GRND_NONBLOCK);
	if (r == (long)n)
		return true;
	fd = kbi_sys(SYS_openat, AT_FDCWD, "/dev/urandom", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return false;
	r = kbi_sys(SYS_read, fd, p, n);
	kbi_sys(SYS_close, fd);
	return r == (long)n;
}

static void fill_from_start(char *p, size_t n)
{
	static a64 count;
	static a32 told;
	const void *random = (const void *)getauxval(AT_RANDOM);
	uint64_t key[2] = { (uintptr_t)p, (uintptr_t)&count };

	if (random)
		memcpy(key, random, sizeof key);
	/* pairs with itself in another thread: the first caller prints */
	if (!a_xchg_acqrel(&told, 1))
		kbi_sys_message("the kernel gives no random numbers (getrandom, /dev/urandom): those of "
			"the start are used");
	while (n > 0) {
		uint64_t word = kbi_random_hash(key, a_add_rlx(&count, 1), kbi_sys_now());
		size_t part = n < sizeof word ? n : sizeof word;

		memcpy(p, &word, part);
		p += part;
		n -= part;
	}
}

void kbi_random(void *p, size_t n)
{
	if (!fill_from_kernel(p, n))
		fill_from_start(p, n);
}
