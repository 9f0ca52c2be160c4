/* base/option.c - one table, expanded into defaults, rows, parser and texts.
 * Callers: see option.h. Calls libc's string functions, snprintf, write. Single-threaded: all
 * functions run before the first virtual processor exists. Never switches. */
#include "base/option.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "arch/arch.h"
#include "base/atom.h"
#include "base/cpulist.h"

enum { CPUS_TEXT = 1024 }; /* bytes of a list with its terminator */

struct kbi_options kbi_options = {
#define OPTION(name, tier, env, type, def, min, max, unit, help) .name = (def),
#include "base/option.def"
};

const struct kbi_option kbi_option_table[] = {
#define OPTION(name, tier, env, type, def, min, max, unit, help) \
	{ #name, "KOCHAB_" env, KBI_OPTION_##type, KBI_TIER_##tier, \
	  offsetof(struct kbi_options, name), (def), (min), (max), unit, help },
#include "base/option.def"
	{ NULL, NULL, KBI_OPTION_BOOL, KBI_TIER_USER, 0, 0, 0, 0, NULL, NULL },
};

/* Variables of the command and the tests that are no options. */
static const char *const others[] = { "KOCHAB_LIB", "KOCHAB_BIN" };

extern char **environ;

static bool equals_word(const char *word, size_t n, const char *text)
{
	return strlen(text) == n && memcmp(word, text, n) == 0;
}

/* Reads decimal digits and sets *end behind them. Returns false if there are none or the number
 * does not fit. */
static bool parse_digits(const char *text, uint64_t *value, const char **end)
{
	uint64_t v = 0;
	const char *p = text;

	for (; *p >= '0' && *p <= '9'; p++) {
		if (__builtin_mul_overflow(v, 10u, &v) ||
			__builtin_add_overflow(v, (unsigned)(*p - '0'), &v))
			return false;
	}
	*value = v;
	*end = p;
	return p != text;
}

static bool parse_bool(const char *text, uint64_t *value)
{
	static const char *const words[] = { "0", "1", "no", "yes", "off", "on", "false", "true" };

	for (size_t i = 0; i < kbi_countof(words); i++) {
		if (strcmp(text, words[i]) == 0) {
			*value = i & 1;
			return true;
		}
	}
	return false;
}

static bool parse_size(const char *text, uint64_t *value)
{
	static const char units[] = "KMG";
	const char *end, *unit;

	if (!parse_digits(text, value, &end))
		return false;
	if (*end == '\0')
		return true;
	unit = strchr(units, *end & ~0x20);
	if (unit == NULL || *unit == '\0' || end[1] != '\0')
		return false;
	return !__builtin_mul_overflow(*value, (uint64_t)1 << (10 * (unit - units + 1)), value);
}

static uint64_t unit_ns(const char *unit)
{
	static const struct { const char *name; uint64_t ns; } units[] = {
		{ "ns", 1 }, { "us", 1000 }, { "ms", 1000000 }, { "s", 1000000000 },
	};

	for (size_t i = 0; i < kbi_countof(units); i++) {
		if (strcmp(unit, units[i].name) == 0)
			return units[i].ns;
	}
	return 0;
}

/* Reads a time. Rounds up to whole units of the option, so that a small time does not become 0,
 * which may mean off. */
static bool parse_time(const char *text, const char *unit, uint64_t *value)
{
	const char *end;
	uint64_t ns, own = unit_ns(unit);

	if (!parse_digits(text, value, &end))
		return false;
	if (*end == '\0')
		return true;
	ns = unit_ns(end);
	if (ns == 0 || __builtin_mul_overflow(*value, ns, value) ||
		__builtin_add_overflow(*value, own - 1, value))
		return false;
	*value /= own;
	return true;
}

/* Returns the i-th of the words separated by |, its length in *n; NULL if there is none. */
static const char *nth_word(const char *words, uint64_t i, size_t *n)
{
	for (; i > 0; i--) {
		words = strchr(words, '|');
		if (words == NULL)
			return NULL;
		words++;
	}
	*n = strcspn(words, "|");
	return words;
}

static bool parse_enum(const char *text, const char *words, uint64_t *value)
{
	const char *word;
	size_t n;

	for (uint64_t i = 0; (word = nth_word(words, i, &n)) != NULL; i++) {
		if (equals_word(word, n, text)) {
			*value = i;
			return true;
		}
	}
	return false;
}

/* Reads a list of processors, or a word. */
static bool parse_cpus(const char *text, const char *words, uint64_t *value)
{
	bool is_word = parse_enum(text, words, value);

	if (!is_word || *value)
		*value = (uintptr_t)text;
	return is_word || (strlen(text) < CPUS_TEXT && kbi_cpulist_is_valid(text));
}

int kbi_option_parse(const struct kbi_option *o, const char *text, uint64_t *value)
{
	bool ok = false;

	switch (o->type) {
	case KBI_OPTION_BOOL:
		return parse_bool(text, value) ? 0 : EINVAL;
	case KBI_OPTION_ENUM:
		return parse_enum(text, o->unit, value) ? 0 : EINVAL;
	case KBI_OPTION_CPUS:
		return parse_cpus(text, o->unit, value) ? 0 : EINVAL;
	case KBI_OPTION_UINT: {
		const char *end;

		ok = parse_digits(text, value, &end) && *end == '\0';
		break;
	}
	case KBI_OPTION_SIZE:
		ok = parse_size(text, value);
		break;
	case KBI_OPTION_TIME:
		ok = parse_time(text, o->unit, value);
		break;
	}
	return ok && *value >= o->min && *value <= o->max ? 0 : EINVAL;
}

/* Copies the text: it may lie in the environment, which programs overwrite with their titles. */
static const char *keep_text(const char *text)
{
	static char kept[CPUS_TEXT];

	return text ? strcpy(kept, text) : NULL;
}

void kbi_option_set(const struct kbi_option *o, uint64_t value)
{
	void *field = (char *)&kbi_options + o->offset;

	switch (o->type) {
	case KBI_OPTION_CPUS:
		*(const char **)field = keep_text((const char *)(uintptr_t)value);
		break;
	case KBI_OPTION_BOOL:
		*(bool *)field = value != 0;
		break;
	case KBI_OPTION_SIZE:
		*(uint64_t *)field = value;
		break;
	default:
		*(uint32_t *)field = (uint32_t)value;
		break;
	}
}

uint64_t kbi_option_get(const struct kbi_option *o)
{
	const void *field = (const char *)&kbi_options + o->offset;

	switch (o->type) {
	case KBI_OPTION_BOOL:
		return *(const bool *)field;
	case KBI_OPTION_CPUS:
		return (uintptr_t) * (const char *const *)field;
	case KBI_OPTION_SIZE:
		return *(const uint64_t *)field;
	default:
		return *(const uint32_t *)field;
	}
}

const char *kbi_option_show(const struct kbi_option *o, uint64_t value, char *buf, size_t size)
{
	const char *word;
	size_t n;

	if (o->type == KBI_OPTION_CPUS && value != 0)
		snprintf(buf, size, "%s", (const char *)(uintptr_t)value);
	else if ((o->type == KBI_OPTION_ENUM || o->type == KBI_OPTION_CPUS) &&
		(word = nth_word(o->unit, value, &n)) != NULL)
		snprintf(buf, size, "%.*s", (int)n, word);
	else
		snprintf(buf, size, "%llu", (unsigned long long)value);
	return buf;
}

const char *kbi_option_allowed(const struct kbi_option *o, char *buf, size_t size)
{
	if (o->type == KBI_OPTION_BOOL)
		snprintf(buf, size, "0 or 1");
	else if (o->type == KBI_OPTION_ENUM)
		snprintf(buf, size, "%s", o->unit);
	else if (o->type == KBI_OPTION_CPUS)
		snprintf(buf, size, "%s|LIST, a list of processors such as 0-3,8", o->unit);
	else
		snprintf(buf, size, "%llu to %llu%s%s", (unsigned long long)o->min,
			(unsigned long long)o->max, o->unit[0] != '\0' ? " " : "", o->unit);
	return buf;
}

/* Compares a name with the name of a row. `name` may contain dashes for underscores. */
static bool is_option_name(const char *name, size_t n, const char *row)
{
	if (strlen(row) != n)
		return false;
	for (size_t i = 0; i < n; i++) {
		if ((name[i] == '-' ? '_' : name[i]) != row[i])
			return false;
	}
	return true;
}

const struct kbi_option *kbi_option_find(const char *name, size_t n)
{
	for (const struct kbi_option *o = kbi_option_table; o->name != NULL; o++) {
		if (is_option_name(name, n, o->name))
			return o;
	}
	return NULL;
}

static const struct kbi_option *find_option_by_env(const char *variable, size_t n)
{
	for (const struct kbi_option *o = kbi_option_table; o->name != NULL; o++) {
		if (equals_word(variable, n, o->env))
			return o;
	}
	return NULL;
}

static void write_stderr(const char *text, int length)
{
	ssize_t n = write(STDERR_FILENO, text, (size_t)length);

	(void)n; /* a failure to write cannot be reported */
}

/* Messages not printed yet. A program that uses the options prints them. A program of a shell
 * script that loads libkochab-posix.so and creates no thread prints none. Messages that do not fit
 * are dropped. */
static char untold[1024];
static size_t n_untold;

static __attribute__((format(printf, 1, 2))) void queue_message(const char *format, ...)
{
	size_t room = sizeof(untold) - n_untold;
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(untold + n_untold, room, format, ap);
	va_end(ap);
	if (n > 0 && (size_t)n < room)
		n_untold += (size_t)n;
}

/* A program with more rights than its caller (setuid, setgid, capabilities of its file) ignores the
 * caller's environment except for these variables. They cannot lose, reveal or bypass anything. */
static const char *const harmless[] = { "KOCHAB_HEAP", "KOCHAB_SCHED" };

bool kbi_option_obeys(const struct kbi_option *o)
{
	if (kbi_likely(!getauxval(AT_SECURE)))
		return true;
	for (size_t i = 0; i < kbi_countof(harmless); i++) {
		if (o != NULL && strcmp(o->env, harmless[i]) == 0)
			return true;
	}
	return false;
}

/* True for each option set by the environment. */
static bool is_given[kbi_countof(kbi_option_table)];

/* Reads a NAME=value of ours. Returns 0 or EINVAL. */
static int load_env_entry(const char *entry)
{
	size_t n = strcspn(entry, "=");
	const struct kbi_option *o = find_option_by_env(entry, n);
	char allowed[128];
	uint64_t value;

	if (!kbi_option_obeys(o))
		return 0;
	if (o == NULL) {
		for (size_t i = 0; i < kbi_countof(others); i++) {
			if (equals_word(entry, n, others[i]))
				return 0;
		}
		queue_message("kochab: %.*s: no such option; 'kochab options --all' lists them\n",
			(int)(n < 200 ? n : 200), entry);
		return EINVAL;
	}
	if (entry[n] != '=' || kbi_option_parse(o, entry + n + 1, &value) != 0) {
		queue_message("kochab: %.300s: bad value, allowed: %s\n", entry,
			kbi_option_allowed(o, allowed, sizeof(allowed)));
		return EINVAL;
	}
	kbi_option_set(o, value);
	is_given[o - kbi_option_table] = true;
	return 0;
}

int kbi_option_load_quietly(void)
{
	static a32 stage; /* 0 not begun, 1 loading, 2 loaded */
	static int result;
	uint32_t none = 0;

	/* acquire: pairs with the release store at the end of this function */
	if (a_load_acq(&stage) == 2)
		return result;
	if (!a_cas_acq(&stage, &none, 1)) {
		while (a_load_acq(&stage) != 2)
			kbi_cpu_relax();
		return result;
	}
	for (char **e = environ; e != NULL && *e != NULL; e++) {
		if (strncmp(*e, "KOCHAB_", 7) == 0 && load_env_entry(*e) != 0)
			result = EINVAL;
	}
	a_store_rel(&stage, 2); /* release: pairs with the acquire loads above */
	return result;
}

static void flush_messages(void)
{
	if (n_untold)
		write_stderr(untold, (int)n_untold);
	n_untold = 0;
}

int kbi_option_load(void)
{
	int e = kbi_option_load_quietly();

	if (kbi_unlikely(e))
		flush_messages();
	return e;
}

/* ---- preferences of the program -------------------------------------------------------------- */

/* Returns a hint if the text has a comma in place of a blank; a comma may be part of a value. */
static const char *blank_hint(const char *text)
{
	const char *comma = strchr(text, ',');

	return comma && strchr(comma, '=') ? " (blanks separate options, not commas)" : "";
}

/* Reads a word of length n and returns true if it is good. If `sets`, stores the option's value. */
static bool read_preference(const char *word, size_t n, bool sets)
{
	char text[64 + CPUS_TEXT], allowed[128], *equals;
	const struct kbi_option *o;
	uint64_t value;

	if (n < sizeof(text))
		memcpy(text, word, n);
	text[n < sizeof(text) ? n : 0] = '\0';
	equals = strchr(text, '=');
	o = equals ? kbi_option_find(text, (size_t)(equals - text)) : NULL;
	if (o == NULL) {
		queue_message("kochab: kb_init_with: %.300s: no such option=value%s; "
			"'kochab options --all' lists them\n", text, blank_hint(text));
		return false;
	}
	if (kbi_option_parse(o, equals + 1, &value) != 0) {
		queue_message("kochab: kb_init_with: %.300s: bad value%s, allowed: %s\n", text,
			blank_hint(text), kbi_option_allowed(o, allowed, sizeof(allowed)));
		return false;
	}
	if (sets && !is_given[o - kbi_option_table])
		kbi_option_set(o, value);
	return true;
}

static bool read_preferences(const char *words, bool sets)
{
	static const char blanks[] = " \t\n";
	bool good = true;
	size_t n;

	for (words += strspn(words, blanks); *words != '\0';
		words += n, words += strspn(words, blanks)) {
		n = strcspn(words, blanks);
		good &= read_preference(words, n, sets);
	}
	return good;
}

static struct kbi_options unchanged; /* the options before the last good words */

void kbi_option_prefer_no_more(void)
{
	kbi_options = unchanged;
}

int kbi_option_prefer(const char *words)
{
	int e = kbi_option_load();

	if (e)
		return e;
	if (!read_preferences(words, false)) {
		flush_messages();
		return EINVAL;
	}
	unchanged = kbi_options;
	read_preferences(words, true);
	return 0;
}
