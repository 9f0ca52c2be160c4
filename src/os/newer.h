/* os/newer.h - numbers and flags of the kernel that are newer than the headers of the oldest system
 * we build on (glibc 2.31, headers of Linux 5.10 or older). The kernel is asked at run time. The
 * numbers are equal on all machines. No unit elsewhere defines these names.
 * Callers: all rooms. */
#ifndef KBI_NEWER_H
#define KBI_NEWER_H

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_io_uring_setup
#define SYS_io_uring_setup 425
#define SYS_io_uring_enter 426
#define SYS_io_uring_register 427
#endif
#ifndef SYS_pidfd_open /* Linux 5.3 */
#define SYS_pidfd_open 434
#endif
#ifndef SYS_clone3
#define SYS_clone3 435
#endif
#ifndef SYS_close_range /* 5.9 */
#define SYS_close_range 436
#endif
#ifndef CLOSE_RANGE_CLOEXEC /* 5.11 */
#define CLOSE_RANGE_CLOEXEC 4u
#endif
#ifndef SYS_openat2 /* 5.6 */
#define SYS_openat2 437
#endif
#ifndef SYS_faccessat2 /* 5.8 */
#define SYS_faccessat2 439
#endif
#ifndef SYS_process_madvise /* 5.10 */
#define SYS_process_madvise 440
#endif
#ifndef SYS_epoll_pwait2 /* 5.11 */
#define SYS_epoll_pwait2 441
#endif
#ifndef SYS_landlock_restrict_self /* 5.13 */
#define SYS_landlock_restrict_self 446
#endif
#ifndef SYS_futex_waitv /* 5.16 */
#define SYS_futex_waitv 449
#endif
#ifndef SYS_futex_wake /* 6.7 */
#define SYS_futex_wake 454
#define SYS_futex_wait 455
#endif
#ifndef SYS_mseal /* 6.10 */
#define SYS_mseal 462
#endif
#ifndef MADV_GUARD_INSTALL /* 6.13 */
#define MADV_GUARD_INSTALL 102
#define MADV_GUARD_REMOVE 103
#endif

#endif
