/* core/source.c - the source of events. Contract in source.h. */
#include "core/source.h"

struct kbi_source kbi_source;
