/* base/option.h - the options: kbi_options.<name>, read once from KOCHAB_* variables. The rows are
 * in base/option.def. Before kbi_option_load all options hold their defaults; after it they are
 * constant.
 * Callers: core/boot or the preload constructor (load); all units (read); the command (table).
 * Calls only snprintf and write of libc: no memory, no stdio, so it may run in a constructor. */
#ifndef KBI_OPTION_H
#define KBI_OPTION_H

#include "base/base.h"

enum kbi_option_type {
	KBI_OPTION_BOOL,
	KBI_OPTION_UINT,
	KBI_OPTION_SIZE,
	KBI_OPTION_TIME,
	KBI_OPTION_ENUM,
	KBI_OPTION_CPUS,
};

/* Who cares about an option. The order is that of the lists. */
enum kbi_option_tier { KBI_TIER_USER, KBI_TIER_OPERATOR, KBI_TIER_LABORATORY, KBI_TIERS };

#define CHOICES(name, ...) enum kbi_option_##name { __VA_ARGS__ };
#include "base/option.def"

typedef bool kbi_option_type_BOOL;
typedef uint32_t kbi_option_type_UINT;
typedef uint64_t kbi_option_type_SIZE;
typedef uint32_t kbi_option_type_TIME;
typedef uint32_t kbi_option_type_ENUM;
typedef const char *kbi_option_type_CPUS;

struct kbi_options {
#define OPTION(name, tier, env, type, def, min, max, unit, help) kbi_option_type_##type name;
#include "base/option.def"
};

extern KBI_HIDDEN struct kbi_options kbi_options;

/* Defaults of the option spares (idle workers) under the drop-in: there, threads that wait for
 * processes outside the program hold kernel threads. */
enum { KBI_OPTION_POSIX_SPARES = 2048, KBI_OPTION_POSIX_SPARE_PROCESSES = 256 };

/* A row of the table. */
struct kbi_option {
	const char *name; /* as in the struct */
	const char *env;  /* KOCHAB_... */
	enum kbi_option_type type;
	enum kbi_option_tier tier;
	uint32_t offset; /* of the value, in struct kbi_options */
	uint64_t def, min, max;
	const char *unit; /* ENUM, CPUS: the words, separated by | */
	const char *help;
};

/* Ends with a row whose name is NULL. */
extern KBI_HIDDEN const struct kbi_option kbi_option_table[];

/* Reads the environment. Returns 0, or EINVAL if a KOCHAB_* variable is unknown or its value is
 * bad; standard error then names the variable and the allowed values. Later calls return the result
 * of the first call. Single-threaded. A program with more rights than its caller (AT_SECURE)
 * silently ignores all options that could do harm. */
int kbi_option_load(void);
/* Does the work of kbi_option_load without a message; the next call of kbi_option_load prints the
 * message. */
int kbi_option_load_quietly(void);
/* Sets options that the program prefers: "name=value", separated by blanks. Values from the
 * environment stay. Returns 0, or EINVAL as kbi_option_load; no option is set then.
 * Single-threaded, before or after kbi_option_load. */
int kbi_option_prefer(const char *words);
/* Undoes the last call of kbi_option_prefer that returned 0. Single-threaded. */
void kbi_option_prefer_no_more(void);
/* Returns true if this program reads option o (NULL: an unknown variable) from the environment. */
bool kbi_option_obeys(const struct kbi_option *o);
/* Returns the row of `name` (length n; dashes count as underscores), or NULL. */
const struct kbi_option *kbi_option_find(const char *name, size_t n);
/* Reads a value. Returns 0, or EINVAL if the text is bad. For CPUS the value is the address of the
 * text, or 0 for the first word. */
int kbi_option_parse(const struct kbi_option *o, const char *text, uint64_t *value);
/* Stores a value that kbi_option_parse returned. Call before any unit reads the option. */
void kbi_option_set(const struct kbi_option *o, uint64_t value);
uint64_t kbi_option_get(const struct kbi_option *o);
/* Write the text of a value and of the allowed values, cut at size. Return buf. */
const char *kbi_option_show(const struct kbi_option *o, uint64_t value, char *buf, size_t size);
const char *kbi_option_allowed(const struct kbi_option *o, char *buf, size_t size);

#endif
