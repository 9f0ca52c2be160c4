/* space/space.c - creating, attaching, detaching. Contract in kochab/space.h.
 * Callers: programs. Calls file, member, note, thing. Runs on the caller's stack, np
 * > 0 while a lock is held. */
#include <kochab/space.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/option.h"
#include "core/boot.h"
#include "core/preempt.h"
#include "core/wait.h"
#include "os/sys.h"
#include "space/member.h"
#include "space/thing.h"

static a32 hooked;

/* Detaches in good order when the process ends by exit. */
static void detach_at_exit(void)
{
	struct kb_space *s;

	for (unsigned i = 0; i < KBI_SPACE_NOTE_AT_ONCE; i++)
		if ((s = kbi_space_note_space(i)) && kbi_space_file_is_whole(s, a_load_rlx(&s->least)))
			kbi_space_member_exit(s);
}

/* Forgets the spaces in the child of fork, which has none of them in its memory. */
static void forget_spaces_in_child(void)
{
	struct kb_space *s;

	kbi_space_file_let_here();
	for (unsigned i = 0; i < KBI_SPACE_NOTE_AT_ONCE; i++)
		if ((s = kbi_space_note_space(i))) {
			kbi_space_note_leave(s);
			kbi_space_member_forked(s);
			kbi_space_file_forked(s);
		}
}

/* Explains, in the handler of SIGBUS, that memory of a space is missing. */
static void explain_space_fault(uintptr_t address)
{
	struct kb_space *s;

	for (unsigned i = 0; i < KBI_SPACE_NOTE_AT_ONCE; i++) {
		if (!(s = kbi_space_note_space(i)) || address - (uintptr_t)s->head >= s->limit)
			continue;
		if (!kbi_space_file_is_whole(s, a_load_rlx(&s->least)))
			kbi_sys_message("space %s: its file was truncated by somebody", s->name);
		else
			kbi_sys_message("space %s: no memory at %p, byte %zu of its file", s->name,
				kbi_sys_shown((void *)address), (size_t)(address - (uintptr_t)s->head));
	}
}

static void explain_faults(void)
{
	/* release: pairs with the acquire in core/preempt */
	a_store_rel(&kbi_preempt_explain, (void *)(uintptr_t)explain_space_fault);
	kbi_preempt_watch_memory();
}

static void install_space_hooks(void)
{
	if (a_xchg_acqrel(&hooked, 1)) /* pairs with itself */
		return;
	atexit(detach_at_exit);
	explain_faults();
}

/* Registers the fork handler before there are threads: a fork that has begun during the first
 * attach would miss it. */
__attribute__((constructor)) static void register_fork_handler(void)
{
	pthread_atfork(NULL, NULL, forget_spaces_in_child);
}

/* Returns whether this process is attached to the same file; two threads may try at once. */
static bool is_attached(const struct kb_space *s)
{
	struct kb_space *o;

	for (unsigned i = 0; i < KBI_SPACE_NOTE_AT_ONCE; i++)
		if ((o = kbi_space_note_space(i)) && o->device == s->device && o->inode == s->inode)
			return true;
	return false;
}

static int register_space(struct kb_space *s)
{
	int e = 0;

	kbi_space_file_lock_here();
	if (is_attached(s))
		e = EALREADY;
	else if (!kbi_space_note_enter(s))
		e = EMFILE;
	kbi_space_file_unlock_here();
	return e;
}

static int attach_space_file(int fd, const char *name, unsigned flags, kb_space_t **space)
{
	struct kbi_space_head head;
	struct kb_space *s;
	int e = kbi_space_file_head(fd, &head);

	if (!e)
		e = kbi_space_file_map(fd, &head, flags & KB_SPACE_FIXED, &s);
	if (e)
		return e;
	s->slot = KBI_SPACE_PROCS; /* no entry yet */
	snprintf(s->name, sizeof s->name, "%s", name);
	install_space_hooks();
	e = register_space(s);
	if (!e) {
		e = kbi_space_member_join(s);
		if (e)
			kbi_space_note_leave(s);
	}
	if (e) {
		kbi_space_thing_forget(s);
		kbi_space_file_unmap(s);
	} else {
		*space = s;
	}
	return e;
}

/* Starts virtual processors that are processes first: later they would lack the mapping,
 * and find kernel threads. */
static int begin_processes(void)
{
	kbi_option_load();
	return kbi_options.body == KBI_OPT_BODY_PROCESS ? kbi_boot() : 0;
}

static int attach_or_close(int fd, const char *name, unsigned flags, kb_space_t **space)
{
	int e = attach_space_file(fd, name, flags, space);

	if (e)
		kbi_space_file_close(fd);
	return e;
}

static int create_and_attach(kb_space_t **space, const char *name, const kb_space_config_t *config)
{
	int fd, e = kbi_space_file_create(name, config, &fd);

	if (e)
		return e;
	e = attach_or_close(fd, name, config ? config->flags : 0, space);
	if (e)
		kb_space_unlink(name);
	return e;
}

/* Both functions run with np > 0: they hold a lock of this process at times, which spins. */
int kb_space_create(kb_space_t **space, const char *name, const kb_space_config_t *config)
{
	struct kbi_task *self;
	int e = begin_processes();

	if (e)
		return e;
	self = kbi_self();
	kbi_np_enter(self);
	e = create_and_attach(space, name, config);
	kbi_np_leave(self);
	return e;
}

static int open_and_attach(kb_space_t **space, const char *name, unsigned flags, long owner)
{
	int fd, e = kbi_space_file_open(name, true, owner, &fd);

	return e ? e : attach_or_close(fd, name, flags, space);
}

static int attach_owned(kb_space_t **space, const char *name, unsigned flags, long owner)
{
	struct kbi_task *self;
	int e = flags & ~(unsigned)KB_SPACE_FIXED ? EINVAL : begin_processes();

	if (e)
		return e;
	self = kbi_self();
	kbi_np_enter(self);
	e = open_and_attach(space, name, flags, owner);
	kbi_np_leave(self);
	return e;
}

int kb_space_attach(kb_space_t **space, const char *name, unsigned flags)
{
	return attach_owned(space, name, flags, KBI_SPACE_FILE_OURS);
}

int kb_space_attach_of(kb_space_t **space, const char *name, unsigned flags, uint32_t owner)
{
	return attach_owned(space, name, flags, (long)owner);
}

int kb_space_detach(kb_space_t *s)
{
	struct kbi_task *self = kbi_self();

	if (s->pid != (uint32_t)getpid()) /* a child of fork: it is not attached */
		return ESRCH;
	if (a_load_rlx(&s->used) || kbi_space_note_any(s))
		return EBUSY;
	kbi_np_enter(self);
	kbi_space_member_leave(s);
	kbi_space_note_leave(s);
	kbi_space_thing_forget(s);
	kbi_space_file_shut(s);
	kbi_space_file_unmap(s);
	kbi_np_leave(self);
	return 0;
}

int kb_space_unlink(const char *name)
{
	return kbi_space_file_unlink(name);
}

uint64_t kb_space_offset(const kb_space_t *s, const void *address)
{
	return kbi_space_offset(s, address);
}

void *kb_space_pointer(const kb_space_t *s, uint64_t offset)
{
	return offset < s->limit ? kbi_space_place(s, offset) : NULL;
}

void kb_space_info(const kb_space_t *s, kb_space_info_t *info)
{
	struct kbi_space_head *h = s->head;

	*info = (kb_space_info_t){
		/* acquire: pairs with the release in grow_space_file (file.c) */
		.size = a_load_acq(&h->size),
		.used = a_load_rlx(&h->used),
		.limit = s->limit,
		.address = (uintptr_t)h,
		.fixed = (uintptr_t)h == s->intended,
		.objects = a_load_rlx(&h->n_things),
		.crashes = a_load_rlx(&h->crashes),
		.owner = s->owner,
	};
	for (uint32_t i = 0; i < KBI_SPACE_PROCS; i++)
		info->processes += a_load_rlx(&kbi_space_proc(s, i)->state) != KBI_SPACE_FREE;
}

int kb_space_memory_open(kb_space_t *s, const char *name, size_t bytes, void **memory)
{
	struct kbi_space_wish w = { .type = KBI_SPACE_MEMORY, .capacity = bytes, .buffer = bytes };
	struct kbi_space_hold *h;
	int e = bytes ? kbi_space_thing_open(s, name, &w, &h) : EINVAL;

	if (!e)
		*memory = h->buffer;
	return e;
}
