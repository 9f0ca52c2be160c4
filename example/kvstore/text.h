/* text.h - numbers, names and patterns as Redis writes and reads them. */
#ifndef KVSTORE_TEXT_H
#define KVSTORE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TEXT_INT = 21 }; /* a 64-bit number in decimal digits, and its sign */

/* Decimal, nothing around it, no zeros in front; false: it is not, or does not fit. */
bool text_to_int(const char *s, size_t n, int64_t *value);

/* Writes at most TEXT_INT bytes, without a NUL; how many. */
size_t text_from_int(char *s, int64_t value);

/* Is the word this one, in capitals or not? `upper` is in capitals. */
bool text_is(const char *s, size_t n, const char *upper);

/* Does the string match the pattern? * ? [abc] [a-c] [^a] and \ before a character that means itself. */
bool text_matches(const char *pattern, size_t pn, const char *s, size_t n);

#endif
