/* posix/attribute.c - changes that a thread makes to its kernel thread. Contract in attribute.h.
 * Before the change the caller gets a kernel thread of its own (posix/bind), unless nothing would
 * change or all threads are to get the change (by flags of seccomp and Landlock). */
#include "posix/attribute.h"

#include <errno.h>
#include <linux/prctl.h>
#include <string.h>
#include <sys/syscall.h>

#include "libc/broadcast.h"
#include "libc/segment.h"
#include "os/newer.h"
#include "os/sys.h"
#include "posix/bind.h"

/* ---- prctl -------------------------------------------------------------------------------- */

/* Numbers that not every header has. */
enum {
	SVE_SET_VL = 50,
	PAC_RESET_KEYS = 54,
	SET_TAGGED_ADDR_CTRL = 55,
	SET_IO_FLUSHER = 57,
	SET_SYSCALL_USER_DISPATCH = 59,
	PAC_SET_ENABLED_KEYS = 60,
	SCHED_CORE = 62,
	SME_SET_VL = 63,
	RISCV_V_SET_CONTROL = 69,
	RISCV_SET_ICACHE_FLUSH_CTX = 71,
	PPC_SET_DEXCR = 73,
	SET_SHADOW_STACK_STATUS = 75,
	LOCK_SHADOW_STACK_STATUS = 76,
};
enum { SCHED_CORE_GET = 0 };

/* Returns why the option needs a kernel thread of the caller's own: at a switch the runtime would
 * have to set it again, or cannot; 0: it is the process's, or cannot be set. */
static uint32_t prctl_why(int option, unsigned long a)
{
	switch (option) {
	case PR_SET_NO_NEW_PRIVS:
		return kbi_sys(SYS_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? 0 : KBI_BIND_MODEST;
	case PR_SET_TIMERSLACK:
		return kbi_sys(SYS_prctl, PR_GET_TIMERSLACK, 0, 0, 0, 0) == (long)a ? 0 : KBI_BIND_TURNED;
	case PR_CAP_AMBIENT:
		return a == PR_CAP_AMBIENT_IS_SET ? 0 : KBI_BIND_CHANGED;
	case SCHED_CORE:
		return a == SCHED_CORE_GET ? 0 : KBI_BIND_CHANGED;
	case SET_SYSCALL_USER_DISPATCH:
		return KBI_BIND_ALONE;
	/* where virtual processors are processes it is a process's state, the parent is the first
	 * process, and it would mean something else */
	case PR_SET_PDEATHSIG:
		return kbi_sys_from.processes ? 0 : KBI_BIND_ALONE;
	case PR_SET_UNALIGN:
	case PR_SET_KEEPCAPS:
	case PR_SET_FPEMU:
	case PR_SET_FPEXC:
	case PR_SET_TIMING:
	case PR_SET_ENDIAN:
	case PR_SET_SECCOMP:
	case PR_CAPBSET_DROP:
	case PR_SET_TSC:
	case PR_SET_SECUREBITS:
	case PR_MCE_KILL:
	case PR_SET_FP_MODE:
	case SVE_SET_VL:
	case PR_SET_SPECULATION_CTRL:
	case PAC_RESET_KEYS:
	case SET_TAGGED_ADDR_CTRL:
	case SET_IO_FLUSHER:
	case PAC_SET_ENABLED_KEYS:
	case SME_SET_VL:
	case RISCV_V_SET_CONTROL:
	case RISCV_SET_ICACHE_FLUSH_CTX:
	case PPC_SET_DEXCR:
	case SET_SHADOW_STACK_STATUS:
	case LOCK_SHADOW_STACK_STATUS:
		return KBI_BIND_CHANGED;
	default:
		return 0;
	}
}

static bool bind_for_change(const char *call, uint32_t why, long *r)
{
	if (!why || kbi_bind_change(call, (enum kbi_bind_why)why))
		return true;
	*r = -EAGAIN;
	return false;
}

bool kbi_attribute_may_set(int option, unsigned long a, long *r)
{
	/* the filter may forbid system calls that we make unknown to the program */
	if (option == PR_SET_SECCOMP)
		kbi_segment_close();
	return bind_for_change("prctl", prctl_why(option, a), r);
}

/* ---- for all threads at once -------------------------------------------------------------- */

/* Makes the call in all processes of the program; the kernel applies it to all kernel threads of a
 * process. */
static long call_in_every_process(long n, const long *a)
{
	struct kbi_broadcast_call c = { .nr = n, .rights = true, .pointer = -1 };

	if (!kbi_sys_from.processes || !kbi_broadcast_has_me())
		return kbi_sys(n, a[0], a[1], a[2], a[3], a[4], a[5]);
	memcpy(c.arg, a, sizeof(c.arg));
	return kbi_broadcast(&c);
}

/* Makes the call for all threads. With the filter or domain all get the caller's no_new_privs, as
 * the kernel's threads do. */
static long call_for_all_threads(long n, const long *a)
{
	static const long modest[6] = { PR_SET_NO_NEW_PRIVS, 1 };
	long r;

	if (kbi_sys_from.processes && kbi_sys(SYS_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
		call_in_every_process(SYS_prctl, modest);
	r = call_in_every_process(n, a);
	if (r == 0)
		kbi_bind_undo(KBI_BIND_MODEST);
	return r;
}

/* ---- seccomp, Landlock -------------------------------------------------------------------- */

enum { SET_MODE_STRICT, SET_MODE_FILTER, FILTER_TSYNC = 1 };

static bool seccomp_by_number(const long *a, long *r)
{
	if (a[0] != SET_MODE_STRICT && a[0] != SET_MODE_FILTER)
		return false; /* it only asks */
	kbi_segment_close();
	if (a[0] == SET_MODE_FILTER && a[1] & FILTER_TSYNC) {
		*r = call_for_all_threads(SYS_seccomp, a);
		return true;
	}
	return !bind_for_change("seccomp", KBI_BIND_CHANGED, r);
}

enum { LANDLOCK_TSYNC = 1 << 3 };

static bool landlock_by_number(const long *a, long *r)
{
	if (!(a[1] & LANDLOCK_TSYNC))
		return !bind_for_change("landlock_restrict_self", KBI_BIND_CHANGED, r);
	*r = call_for_all_threads(SYS_landlock_restrict_self, a);
	return true;
}

/* ---- keyrings ----------------------------------------------------------------------------- */

enum { JOIN_SESSION_KEYRING = 1, SET_REQKEY_KEYRING = 14 };

/* True for KEY_SPEC_THREAD_KEYRING and KEY_SPEC_PROCESS_KEYRING, which are made when they are first
 * named. */
static bool is_callers_keyring(long id)
{
	return (int)id == -1 || (int)id == -2;
}

static uint32_t keys_why(long n, const long *a)
{
	bool changes;

	if (n == SYS_keyctl)
		changes = a[0] == JOIN_SESSION_KEYRING || a[0] == SET_REQKEY_KEYRING ||
			is_callers_keyring(a[1]) ||
			  is_callers_keyring(a[2]);
	else
		changes = is_callers_keyring(a[n == SYS_add_key ? 4 : 3]);
	return changes ? KBI_BIND_CHANGED : 0;
}

/* ---- by number ---------------------------------------------------------------------------- */

#ifdef SYS_arch_prctl
/* codes of arch_prctl */
enum { SET_GS = 0x1001, SET_CPUID = 0x1012, SHADOW_STACK = 0x5001, SHADOW_STACK_LAST = 0x5004 };

static uint32_t arch_why(long code)
{
	bool is = code == SET_GS || code == SET_CPUID ||
		(code >= SHADOW_STACK && code <= SHADOW_STACK_LAST);

	return is ? KBI_BIND_CHANGED : 0;
}
#endif

/* 0 if the call only asks, or changes nothing. */
static uint32_t personality_why(unsigned long persona)
{
	return persona == 0xffffffff || kbi_sys(SYS_personality, 0xffffffffu) == (long)persona ? 0
		: KBI_BIND_TURNED;
}

/* 0 if the call changes nothing: setfsuid and setfsgid return the current value for an invalid
 * number. */
static uint32_t files_why(long n, long id)
{
	return (uint32_t)id == UINT32_MAX ||
		kbi_sys(n, -1) == (long)(uint32_t)id ? 0 : KBI_BIND_CHANGED;
}

static uint32_t why_by_number(long n, const long *a)
{
	switch (n) {
	case SYS_setresuid:
	case SYS_setresgid:
	case SYS_setreuid:
	case SYS_setregid:
	case SYS_setuid:
	case SYS_setgid:
	case SYS_setgroups:
	case SYS_unshare:
	case SYS_setns:
	case SYS_capset:
#ifdef SYS_iopl
	case SYS_iopl:
	case SYS_ioperm:
#endif
		return KBI_BIND_CHANGED;
	case SYS_setfsuid:
	case SYS_setfsgid:
		return files_why(n, a[0]);
	case SYS_personality:
		return personality_why((unsigned long)a[0]);
	case SYS_keyctl:
	case SYS_add_key:
	case SYS_request_key:
		return keys_why(n, a);
#ifdef SYS_arch_prctl
	case SYS_arch_prctl:
		return arch_why(a[0]);
#endif
	default:
		return 0;
	}
}

/* ---- memory policy ------------------------------------------------------------------------ */

/* Handles set_mempolicy. hwloc, and so MPI, sets a policy as a test and then sets it back. No
 * message is printed: a program that sets a policy to keep it hardly minds its kernel thread. */
static bool policy_by_number(const long *a, long *r)
{
	enum { UNKNOWN, PLAIN, GIVEN };
	static a32 at_first; /* the policy at the program's start */

	if (a_load_rlx(&at_first) == UNKNOWN) {
		int mode = -1;

		kbi_sys(SYS_get_mempolicy, &mode, NULL, 0, NULL, 0);
		a_store_rlx(&at_first, mode == 0 ? PLAIN : GIVEN);
	}
	if (a[0] == 0 && a_load_rlx(&at_first) == PLAIN) {
		*r = kbi_sys(SYS_set_mempolicy, a[0], a[1], a[2]);
		if (*r == 0)
			kbi_bind_undo(KBI_BIND_POLICY);
		return true;
	}
	if (kbi_bind_self(NULL, KBI_BIND_POLICY))
		return false;
	*r = -EAGAIN;
	return true;
}

bool kbi_attribute_by_number(long n, const long *a, long *r)
{
	switch (n) {
	case SYS_prctl:
		return !kbi_attribute_may_set((int)a[0], (unsigned long)a[1], r);
	case SYS_seccomp:
		return seccomp_by_number(a, r);
	case SYS_landlock_restrict_self:
		return landlock_by_number(a, r);
	case SYS_set_mempolicy:
		return policy_by_number(a, r);
	default:
		return !bind_for_change("syscall()", why_by_number(n, a), r);
	}
}

/* ---- functions ---------------------------------------------------------------------------- */

KBI_POSIX_API int unshare(int flags)
{
	return kbi_bind_change("unshare", KBI_BIND_CHANGED) ? kbi_libc()->unshare(flags) : -1;
}

KBI_POSIX_API int setns(int fd, int type)
{
	return kbi_bind_change("setns", KBI_BIND_CHANGED) ? kbi_libc()->setns(fd, type) : -1;
}

KBI_POSIX_API int capset(void *header, const void *data)
{
	return kbi_bind_change("capset", KBI_BIND_CHANGED) ? kbi_libc()->capset(header, data) : -1;
}

/* These two report no failure: they return the previous value. */
KBI_POSIX_API int setfsuid(uid_t id)
{
	bool may = !files_why(SYS_setfsuid, (long)id) || kbi_bind_change("setfsuid", KBI_BIND_CHANGED);

	return kbi_libc()->setfsuid(may ? id : (uid_t)-1);
}

KBI_POSIX_API int setfsgid(gid_t id)
{
	bool may = !files_why(SYS_setfsgid, (long)id) || kbi_bind_change("setfsgid", KBI_BIND_CHANGED);

	return kbi_libc()->setfsgid(may ? id : (gid_t)-1);
}

KBI_POSIX_API int personality(unsigned long persona)
{
	if (personality_why(persona) && !kbi_bind_change("personality", KBI_BIND_TURNED))
		return -1;
	return kbi_libc()->personality(persona);
}

KBI_POSIX_API int ioperm(unsigned long from, unsigned long n, int on)
{
	return kbi_bind_change("ioperm", KBI_BIND_CHANGED) ? kbi_libc()->ioperm(from, n, on) : -1;
}

KBI_POSIX_API int iopl(int level)
{
	return kbi_bind_change("iopl", KBI_BIND_CHANGED) ? kbi_libc()->iopl(level) : -1;
}
