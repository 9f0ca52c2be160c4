/* os/random.h - numbers that nobody is to guess, and a keyed hash of two words (SipHash-2-4, Aumasson and Bernstein 2012).
 * Any kernel thread, also before main; no locks. Callers: os, mem. */
#ifndef KBI_RANDOM_H
#define KBI_RANDOM_H

#include "base/base.h"

/* From the kernel: getrandom, else /dev/urandom. Where it gives nothing (early at boot, behind a filter of system calls):
 * from the bytes that it gave the process at its start, through the hash, so that these bytes cannot be found from the
 * result: libc's canary is among them. That is told once, as a message. */
void kbi_random(void *p, size_t n);

/* Without the key a result tells nothing about any other result. */
uint64_t kbi_random_hash(const uint64_t key[2], uint64_t a, uint64_t b);

#endif
