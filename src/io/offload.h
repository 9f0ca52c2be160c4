/* io/offload.h - system calls that may block, made by kernel threads of ours: where there is no io_uring. At most
 * io_threads of them; they come as work does and end when there has been none for a while. Callers: async. */
#ifndef KBI_OFFLOAD_H
#define KBI_OFFLOAD_H

#include "sync/waitq.h"

struct kbi_offload {
	long nr, arg[6];
	/* the rest is set by kbi_offload_call */
	struct kbi_offload *next;
	struct kbi_task *task;
	long result;
	a32 state;
};

/* True: o->result is the system call's, or -ETIMEDOUT or what until.stop said if its time came before it had begun.
 * False: there is no kernel thread to be had. */
KBI_SWITCHES bool kbi_offload_call(struct kbi_offload *o, struct kbi_until until);

#endif
