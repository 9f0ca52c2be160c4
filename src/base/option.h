/* base/option.h - the knobs: kbi_options.<name>, read once from KOCHAB_* variables. The rows are in
 * base/option.def. Before kbi_option_load all hold their defaults; after it they are constant.
 * Callers: core/boot or the preload constructor (load); everybody (read); the command (table).
 * Calls: libc's snprintf and write only: no memory, no stdio, so it may run in a constructor. */
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

#define CHOICES(name, ...) enum kbi_option_##name { __VA_ARGS__ };
#include "base/option.def"

typedef bool kbi_option_type_BOOL;
typedef uint32_t kbi_option_type_UINT;
typedef uint64_t kbi_option_type_SIZE;
typedef uint32_t kbi_option_type_TIME;
typedef uint32_t kbi_option_type_ENUM;
typedef const char *kbi_option_type_CPUS;

struct kbi_options {
#define OPTION(name, env, type, def, min, max, unit, help) kbi_option_type_##type name;
#include "base/option.def"
};

extern KBI_HIDDEN struct kbi_options kbi_options;

/* The option spares under the drop-in, unless it is set: threads that wait for other processes have kernel threads. */
enum { KBI_OPTION_POSIX_SPARES = 2048, KBI_OPTION_POSIX_SPARE_PROCESSES = 256 };

/* A row of the table. */
struct kbi_option {
	const char *name; /* as in the struct */
	const char *env;  /* KOCHAB_... */
	enum kbi_option_type type;
	uint32_t offset; /* of the value in struct kbi_options */
	uint64_t def, min, max;
	const char *unit; /* ENUM, CPUS: the words, with | between them */
	const char *help;
};

/* Ends with a row whose name is NULL. */
extern KBI_HIDDEN const struct kbi_option kbi_option_table[];

/* Reads the environment. EINVAL: a KOCHAB_* variable is unknown or its value is bad; standard error says
 * which and what is allowed. Later calls return what the first did. Single-threaded. In a program with more rights than its
 * caller (AT_SECURE) all is passed over in silence but for options that can do no harm. */
int kbi_option_load(void);
/* The same without a word: the next call of kbi_option_load says it. */
int kbi_option_load_quietly(void);
/* Options that the program prefers, "name=value" and blanks between them; what the environment has set stays.
 * EINVAL: as kbi_option_load; nothing is set then. Single-threaded, after or before it. */
int kbi_option_prefer(const char *words);
/* All is as before the last call of it that returned 0. Single-threaded. */
void kbi_option_prefer_no_more(void);
/* The option, or (NULL) a variable that is none, may come from the environment here: it is looked at. */
bool kbi_option_obeys(const struct kbi_option *o);
/* The row of `name` (length n; dashes count as underscores), or NULL. */
const struct kbi_option *kbi_option_find(const char *name, size_t n);
/* Reads one value. EINVAL: it is bad. Of CPUS it is the address of the text, 0 for the first of the words. */
int kbi_option_parse(const struct kbi_option *o, const char *text, uint64_t *value);
/* Stores a value that kbi_option_parse gave, before anything else reads it. */
void kbi_option_set(const struct kbi_option *o, uint64_t value);
uint64_t kbi_option_get(const struct kbi_option *o);
/* Text of a value, and of what is allowed; cut at size. buf is returned. */
const char *kbi_option_show(const struct kbi_option *o, uint64_t value, char *buf, size_t size);
const char *kbi_option_allowed(const struct kbi_option *o, char *buf, size_t size);

#endif
