/* os/random.h - unpredictable numbers, and a keyed hash of two words (SipHash-2-4, Aumasson and
 * Bernstein 2012). Any kernel thread may call, also before main; no locks.
 * Callers: os, libc/segment, mem, space/file. */
#ifndef KBI_RANDOM_H
#define KBI_RANDOM_H

#include "base/base.h"

/* Fills p with n random bytes from the kernel: getrandom, else /dev/urandom. If the kernel gives
 * none (early at boot, behind a filter of system calls), hashes the random bytes that the kernel
 * gave the process at its start. These bytes cannot be found from the result: libc's canary is
 * among them. Prints a message once in this case. */
void kbi_random(void *p, size_t n);

/* Returns the keyed hash of a and b. Without the key a result tells nothing about other results. */
uint64_t kbi_random_hash(const uint64_t key[2], uint64_t a, uint64_t b);

#endif
