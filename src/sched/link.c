/* sched/link.c - the longer functions of the links. Contract in link.h. */
#include "sched/link.h"

void kbi_link_init(struct kbi_links *l, unsigned vps)
{
	for (unsigned d = 1; d < vps; d = vps <= KBI_LINK_MESH ? d + 1 : d * 2)
		l->distance[l->n++] = d;
}

bool kbi_link_take(struct kbi_links *l, uint32_t most, struct kbi_packet *p)
{
	for (unsigned k = 0; k < l->n; k++) {
		/* acquire: pairs with the release in kbi_link_publish; slot and tasks are seen as their
		 * sender left them */
		if ((uint32_t)a_load_acq(&l->tail[k]) == l->taken[k])
			continue;
		*p = l->slot[k][l->taken[k] % KBI_LINK_SLOTS];
		if (p->n > most)
			continue;
		l->taken[k]++;
		a_store_rlx(&l->taken_tasks, a_load_rlx(&l->taken_tasks) + p->n);
		return true;
	}
	return false;
}

void kbi_link_release(struct kbi_links *l)
{
	for (unsigned k = 0; k < l->n; k++)
		if (a_load_rlx(&l->head[k]) != l->taken[k])
			kbi_ring_release(&l->head[k], l->taken[k]);
	/* tasks that came after kbi_link_count have been taken, too */
	if ((int32_t)(a_load_rlx(&l->taken_tasks) - a_load_rlx(&l->counted)) > 0)
		a_store_rlx(&l->counted, a_load_rlx(&l->taken_tasks));
}
