/* libc/intercept.c - the ways to intercept libc's system calls. Contract in intercept.h. */
#include "libc/intercept.h"

#include <errno.h>
#include <stddef.h>

#include "base/option.h"
#include "libc/asked.h"
#include "libc/intercept_seccomp.h"
#include "libc/intercept_sud.h"
#include "libc/intercept_wanted.h"

static int seccomp_begin(kbi_intercept_call *call, int pid, struct kbi_intercept_counts *c,
	const char **why)
{
	(void)pid;
	*c = (struct kbi_intercept_counts){ 0 };
	return kbi_intercept_seccomp_begin(call, why);
}

static int dispatch_begin(kbi_intercept_call *call, int pid, struct kbi_intercept_counts *c,
	const char **why)
{
	(void)pid;
	*c = (struct kbi_intercept_counts){ 0 };
	return kbi_intercept_sud_begin(call, why);
}

const struct kbi_intercept_way kbi_intercept_ways[KBI_INTERCEPT_WAYS + 1] = {
	{ "patch", kbi_intercept_patch_replace, NULL, NULL, kbi_intercept_patch_undo, false },
	{ "dispatch", dispatch_begin, kbi_intercept_sud_here, kbi_intercept_sud_not_here,
		kbi_intercept_sud_undo, false },
	{ "seccomp", seccomp_begin, kbi_intercept_seccomp_here, NULL, kbi_intercept_seccomp_undo,
		true },
	{ NULL, NULL, NULL, NULL, NULL, false },
};

static const struct kbi_intercept_way *way;

static bool is_wanted_way(const struct kbi_intercept_way *w)
{
	return kbi_options.libcalls == KBI_OPT_LIBCALLS_AUTO ||
		kbi_options.libcalls == (uint32_t)(w - kbi_intercept_ways) + 1;
}

void kbi_intercept_prepare(void)
{
	if (is_wanted_way(&kbi_intercept_ways[0]))
		kbi_intercept_patch_prepare();
}

/* Reports the counts. A way that catches all calls counts none. */
static void report_call_counts(const struct kbi_intercept_counts *c)
{
	const char *what = "system calls";

	if (!c->seen)
		kbi_asked_found(what, "taken over by %s", way->name);
	else if (!c->grave)
		kbi_asked_found(what, "%u, replaced %u, trapped %u, passed over %u", c->seen, c->replaced,
			c->trapped, c->passed);
	else
		kbi_asked_missed(what,
			"%u of %u were not understood and stay the kernel's, the first %s, at %s+%#lx: what "
			"they do is done by one process of several", c->grave, c->seen,
			kbi_intercept_wanted_name(c->first_grave.nr), c->first_grave.module,
			(unsigned long)c->first_grave.at);
}

/* Tries the ways in order. If several do not work, *why tells the first reason. */
int kbi_intercept_begin(kbi_intercept_call *call, int pid, const char **why)
{
	struct kbi_intercept_counts counts;
	const char *first = NULL;
	int e = ENOTSUP;

	for (const struct kbi_intercept_way *w = kbi_intercept_ways; w->name && e; w++) {
		if (!is_wanted_way(w))
			continue;
		e = w->begin(call, pid, &counts, why);
		if (!e)
			way = w;
		else if (!first)
			first = *why;
	}
	if (e)
		*why = first;
	else
		report_call_counts(&counts);
	return e;
}

const char *kbi_intercept_taken(void)
{
	return way ? way->name : NULL;
}

bool kbi_intercept_stays(void)
{
	return way && way->stays;
}

void kbi_intercept_here(bool child)
{
	if (way && way->here && !(child && way->stays))
		way->here();
}

void kbi_intercept_not_here(void)
{
	if (way && way->not_here)
		way->not_here();
}

void kbi_intercept_undo(void)
{
	if (way)
		way->undo();
	way = NULL;
}
