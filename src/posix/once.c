/* posix/once.c - pthread_once and call_once. An exception, a cancellation or pthread_exit that
 * leaves the function makes the flag new again, and the next caller runs the function
 * (std::call_once relies on that). An unwinder that passes our frames finds the cleanup attribute,
 * by -fexceptions; an unwinder that has ended earlier, in code without unwind tables, jumps to the
 * buffer which is registered with libc, as it does for pthread_cleanup_push in C. Callers:
 * programs. May switch. */
#include "posix/posix.h"

#include "sync/once.h"

#if !defined(__EXCEPTIONS)
#error "the unwinder does not see the cleanup without -fexceptions"
#endif

_Static_assert(sizeof(kb_once_t) <= sizeof(pthread_once_t), "it lies in libc's bytes");
_Static_assert(sizeof(kb_once_t) <= sizeof(once_flag), "it lies in libc's bytes");
_Static_assert(PTHREAD_ONCE_INIT == 0, "static initialisers");

struct run {
	kb_once_t *once;
	/* false before our constructor: a sanitizer begins earlier, and its setjmp has no original
	 * then */
	bool jumps;
	bool done, over;
	__pthread_unwind_buf_t jump KBI_ALIGNED(16);
};

static void end_once_call(struct run **at)
{
	struct run *r = *at;

	if (r->jumps)
		__pthread_unregister_cancel(&r->jump);
	r->over = true;
	if (r->done)
		kbi_once_done(r->once);
	else
		kbi_once_abort(r->once);
}

/* Calls fn, in a frame below that of the buffer: an exception must meet the cleanup, and a jump
 * must not. */
static KBI_NOINLINE void call_once_function(struct run *run, void (*fn)(void))
{
	struct run *r __attribute__((cleanup(end_once_call))) = run;

	fn();
	r->done = true;
}

static KBI_NOINLINE void run_once(kb_once_t *once, void (*fn)(void))
{
	struct run r = { .once = once, .jumps = kbi_posix_started };

	/* also reached after end_once_call, by an unwinder that began with this buffer */
	if (r.jumps && kbi_posix_setjmp(r.jump.__cancel_jmp_buf, 0)) {
		if (!r.over)
			kbi_once_abort(r.once);
		__pthread_unwind_next(&r.jump);
	}
	if (r.jumps)
		__pthread_register_cancel(&r.jump);
	call_once_function(&r, fn);
}

KBI_POSIX_API int pthread_once(pthread_once_t *flag, void (*fn)(void))
{
	kb_once_t *once = (kb_once_t *)(void *)flag;

	if (kbi_unlikely(kbi_posix_forked))
		kbi_orphan_once(once);
	if (kbi_once_begin(once))
		run_once(once, fn);
	kbi_signal_resumed();
	return 0;
}

KBI_POSIX_ALIAS(__pthread_once, pthread_once);

KBI_POSIX_API void call_once(once_flag *flag, void (*fn)(void))
{
	pthread_once((pthread_once_t *)(void *)flag, fn);
}
