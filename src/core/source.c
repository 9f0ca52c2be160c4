/* core/source.c - the one source of events. Contract in source.h. */
#include "core/source.h"

struct kbi_source kbi_source;
