/* base/cpulist.c - lists of processors. Contract in cpulist.h. */
#include "base/cpulist.h"

static bool read_number(const char **at, unsigned *n)
{
	const char *p = *at;

	for (*n = 0; *p >= '0' && *p <= '9' && *n < KBI_CPUS; p++)
		*n = 10 * *n + (unsigned)(*p - '0');
	if (p == *at || *n >= KBI_CPUS)
		return false;
	*at = p;
	return true;
}

bool kbi_cpulist_next(const char **list, unsigned *first, unsigned *last)
{
	const char *p = *list;

	if (!read_number(&p, first))
		return false;
	*last = *first;
	if (*p == '-' && (p++, !read_number(&p, last) || *last < *first))
		return false;
	if (*p == ',' && p[1])
		p++;
	else if (*p == '\n' && !p[1]) /* as at the end of a file of the kernel */
		p++;
	else if (*p)
		return false;
	*list = p;
	return true;
}

bool kbi_cpulist_is_valid(const char *list)
{
	unsigned first, last, n = 0;

	while (kbi_cpulist_next(&list, &first, &last))
		n++;
	return n && !*list;
}
