/* core/outside.h - a record that tells a reader outside (`kochab ps`) where the tables are, in
 * the program's memory or in a core file. The library, or the program that it is linked into,
 * has an ELF note "Kochab" with the distance from there to this record, so no symbol and no
 * debug information is needed. Reader and program have the same structures if `build` is the
 * same. Nothing of the runtime reads the record. */
#ifndef KBI_OUTSIDE_H
#define KBI_OUTSIDE_H

#include "base/option.h"
#include "core/descriptor.h"
#include "core/meter.h"
#include "core/vp.h"
#include "core/worker_pool.h"
#include "os/sys.h"

/* The note's name; its content: an int32_t, the record's address less the int32_t's address. */
#define KBI_OUTSIDE_NOTE "Kochab"
enum { KBI_OUTSIDE_TYPE = 2 };  /* 1 is os/sys's */

/* Constant. A reader uses only the sizes, and members of structures at the places here. */
struct kbi_outside_build {
	char magic[8];
	char version[24];
	uint16_t size[8];
	uint16_t place[20];
};

struct kbi_outside {
	struct kbi_outside_build build;
	const struct kbi_descriptor_table *table;
	struct kbi_vp ***vps;
	const unsigned *n_vps;
	const struct kbi_options *options;
	const struct kbi_sys_from *from;
	struct kbi_worker **workers;
	const a32 *meter; /* kbi_meter_state */
};

extern const KBI_HIDDEN struct kbi_outside kbi_outside;

#endif
