/* text.c - numbers, names and patterns. No allocation; a pattern of many stars costs pattern x string, not more. */
#include "text.h"

bool text_to_int(const char *s, size_t n, int64_t *value)
{
	bool minus = n > 0 && s[0] == '-';
	uint64_t v = 0, limit = (uint64_t)INT64_MAX + minus;

	s += minus;
	n -= minus;
	if (n == 0 || n > 19 || (s[0] == '0' && (n > 1 || minus)))
		return false;
	for (; n > 0; n--, s++) {
		if (*s < '0' || *s > '9')
			return false;
		v = v * 10 + (uint64_t)(*s - '0');
	}
	if (v > limit)
		return false;
	*value = (int64_t)(minus ? 0 - v : v);
	return true;
}

size_t text_from_int(char *s, int64_t value)
{
	char digit[TEXT_INT];
	uint64_t v = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
	size_t n = 0, size = 0;

	do {
		digit[n++] = (char)('0' + v % 10);
		v /= 10;
	} while (v > 0);
	if (value < 0)
		s[size++] = '-';
	while (n > 0)
		s[size++] = digit[--n];
	return size;
}

static char capital(char c)
{
	return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

bool text_is(const char *s, size_t n, const char *upper)
{
	for (; n > 0; n--, s++, upper++)
		if (*upper == '\0' || capital(*s) != *upper)
			return false;
	return *upper == '\0';
}

/* A set [...] at p: is c in it? *end is behind the set. */
static bool in_set(const char *p, const char *last, unsigned char c, const char **end)
{
	bool no = ++p < last && *p == '^', found = false;

	p += no;
	for (; p < last && *p != ']'; p++) {
		unsigned char from, to;

		if (*p == '\\' && p + 1 < last)
			p++;
		from = to = (unsigned char)*p;
		if (last - p > 2 && p[1] == '-') {
			p += 2;
			to = (unsigned char)*p;
		}
		if (from > to ? c >= to && c <= from : c >= from && c <= to)
			found = true;
	}
	*end = p < last ? p + 1 : last;
	return found != no;
}

/* One step of the pattern other than a star against one character; *next is behind the step. */
static bool one(const char *p, const char *last, char c, const char **next)
{
	if (*p == '[')
		return in_set(p, last, (unsigned char)c, next);
	if (*p == '\\' && p + 1 < last)
		p++;
	else if (*p == '?')
		return *next = p + 1, true;
	*next = p + 1;
	return *p == c;
}

/* After a mismatch only the last star needs to take one character more. */
bool text_matches(const char *pattern, size_t pn, const char *s, size_t n)
{
	const char *p = pattern, *plast = pattern + pn, *last = s + n;
	const char *star = NULL, *from = NULL, *next;

	while (s < last) {
		if (p < plast && *p == '*') {
			star = ++p;
			from = s;
		} else if (p < plast && one(p, plast, *s, &next)) {
			p = next;
			s++;
		} else if (star != NULL) {
			p = star;
			s = ++from;
		} else {
			return false;
		}
	}
	while (p < plast && *p == '*')
		p++;
	return p == plast;
}
