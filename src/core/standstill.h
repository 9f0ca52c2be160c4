/* core/standstill.h - finds a virtual processor whose thread waits in the kernel for a lock of
 * libc's, while other threads of the VP are ready, perhaps the lock's holder: std::mutex held over
 * a call that suspends, in a program that is linked with the native library only. Nothing can be
 * done about it there; a message is printed, once. The watcher is a kernel thread that looks once a
 * second while a virtual processor is busy, and sleeps otherwise.
 * Callers: boot. Calls handoff, sysmon, libc/context. */
#ifndef KBI_STANDSTILL_H
#define KBI_STANDSTILL_H

/* Starts the watcher where such threads are not handled otherwise: no quantum, not the drop-in,
 * kernel threads as workers. Once, at start. */
void kbi_standstill_start(void);

#endif
