/* os/fd.c - contract in fd.h. */
#include "os/fd.h"

#include <fcntl.h>

#include "os/sys.h"

a32 kbi_fd_lowest = { KBI_FD_FROM };

void kbi_fd_note(int fd)
{
	uint32_t now = a_load_rlx(&kbi_fd_lowest);

	while ((uint32_t)fd < now && !a_cas_rlx(&kbi_fd_lowest, &now, (uint32_t)fd))
		;
}

int kbi_fd_move(int fd)
{
	long high = kbi_sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, KBI_FD_FROM);

	if (high < 0) {
		kbi_fd_note(fd);
		return fd;
	}
	kbi_sys(SYS_close, fd);
	return (int)high;
}
