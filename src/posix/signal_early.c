/* posix/signal_early.c - signals that are pending for the caller's kernel thread, among them main's
 * from before it was a lightweight thread: main blocks these, and they wait for main, on whichever
 * kernel thread it will be. Contract in signal_priv.h.
 * Callers: signal (start), signal_overrun, signal_dispatcher, signal_sent, sigwait. Calls only the
 * kernel. No locks, never switches. */
#include "posix/signal_priv.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "os/fd.h"
#include "os/sys.h"

enum { EARLY = 64 };
static siginfo_t early[EARLY];
static unsigned n_early;

uint64_t kbi_signal_listed(const char *path, const char *line)
{
	char text[4096];
	const char *at;
	KBI_FD_BRIEFLY();
	long fd = kbi_sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC), n;

	if (fd < 0)
		return 0;
	n = kbi_sys(SYS_read, fd, text, sizeof(text) - 1);
	kbi_sys(SYS_close, fd);
	text[n > 0 ? n : 0] = 0;
	at = strstr(text, line);
	return at ? strtoull(at + strlen(line), NULL, 16) : 0;
}

/* Signals of the process stay with the kernel: if taken, the kernel would give the same signal
 * again. */
uint64_t kbi_signal_own_pending(void)
{
	uint64_t there = 0;

	kbi_sys(SYS_rt_sigpending, &there, KBI_MASK_BYTES);
	return there ? there & kbi_signal_listed("/proc/thread-self/status", "SigPnd:") : 0;
}

void kbi_signal_take_early(void)
{
	static const struct timespec none;
	uint64_t there;

	while (n_early < EARLY && (there = kbi_signal_own_pending())) {
		there &= -there;
		if (kbi_sys(SYS_rt_sigtimedwait, &there, &early[n_early], &none, KBI_MASK_BYTES) <= 0)
			return;
		n_early++;
	}
}

void kbi_signal_give_early(struct kb_thread *main)
{
	for (unsigned i = 0; i < n_early; i++) {
		if (main)
			kbi_signal_put(kbi_signal_to(main), &early[i], false);
		else
			kbi_sys_signal_info(kbi_sys_gettid(), early[i].si_signo, &early[i]);
	}
	n_early = 0;
}
