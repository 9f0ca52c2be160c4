/* core/standstill.h - a virtual processor whose thread waits in the kernel for a lock of libc's, while other threads of its
 * are ready, perhaps the lock's holder: std::mutex held over a call that suspends, in a program that is linked with the
 * native library only. Nothing can be done about it there; a message says it, once.
 * The watcher is a kernel thread that looks once a second while a virtual processor is busy, and sleeps otherwise.
 * Callers: boot. Calls handoff, lookout, os/context. */
#ifndef KBI_STANDSTILL_H
#define KBI_STANDSTILL_H

/* Starts it where nobody else sees to such threads: no quantum, not the drop-in, kernel threads. Once, at start. */
void kbi_standstill_start(void);

#endif
