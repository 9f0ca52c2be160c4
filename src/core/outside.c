/* core/outside.c - the record and the note. Contract in outside.h. */
#include "core/outside.h"

#include <kochab/version.h>

#define PLACE(type, member) (uint16_t)offsetof(struct type, member)

const struct kbi_outside kbi_outside = {
	.build = {
		.magic = "Kochab1",
		.version = KOCHAB_VERSION,
		.size = {
			sizeof(struct kbi_outside), sizeof(struct kb_thread), sizeof(struct kbi_task),
			sizeof(struct kbi_vp), sizeof(struct kbi_worker), sizeof(struct kbi_options),
			sizeof(struct kbi_sys_from), sizeof(struct kbi_descriptor_table),
		},
		.place = {
			PLACE(kbi_task, ctx), PLACE(kbi_task, state), PLACE(kbi_task, awaits),
			PLACE(kbi_task, index), PLACE(kbi_task, flags), PLACE(kb_thread, fn),
			PLACE(kb_thread, join), PLACE(kb_thread, rest), PLACE(kb_thread, worker),
			PLACE(kb_thread, name), PLACE(kb_thread, number), PLACE(kbi_vp, cur),
			PLACE(kbi_vp, tid), PLACE(kbi_vp, id), PLACE(kbi_vp, s), PLACE(kbi_worker, tid),
			PLACE(kbi_worker, guest), PLACE(kbi_sched_vp, idle), PLACE(kbi_options, sched),
			PLACE(kbi_descriptor_table, charged),
		},
	},
	.table = &kbi_descriptor_table,
	.vps = &kbi_vps,
	.n_vps = &kbi_vp_n,
	.options = &kbi_options,
	.from = &kbi_sys_from,
	.workers = &kbi_workers,
	.meter = &kbi_meter_state,
};

__asm__(".pushsection .note.kochab.outside,\"a\",%note\n"
	"\t.balign 4\n"
	"\t.long 7, 4, 2\n" /* lengths of name and content, KBI_OUTSIDE_TYPE */
	"\t.asciz \"" KBI_OUTSIDE_NOTE "\"\n"
	"\t.balign 4\n"
	"\t.long kbi_outside - .\n"
	"\t.popsection\n");
_Static_assert(sizeof(KBI_OUTSIDE_NOTE) == 7 && KBI_OUTSIDE_TYPE == 2, "as the note has it");
