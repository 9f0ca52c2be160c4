/* tool/text.c - text that came from somewhere, made harmless for where it goes: a terminal, a JSON line, a page. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tool.h"

/* The character that begins at s, of n bytes at least 1: its length, 0 if it is no UTF-8. */
static size_t character(const unsigned char *s, size_t n, uint32_t *code)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t length = s[0] < 0x80 ? 1 : s[0] < 0xc0 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf8 ? 4 : 0;

	if (!length || length > n)
		return 0;
	*code = length == 1 ? s[0] : s[0] & (0x7fu >> length);
	for (size_t i = 1; i < length; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		*code = *code << 6 | (s[i] & 0x3f);
	}
	return *code < least[length] || *code > 0x10ffff || (*code >= 0xd800 && *code < 0xe000) ? 0 : length;
}

/* A terminal would do something by it, or show what follows elsewhere: controls, marks of direction, line ends. */
static bool commands(uint32_t code)
{
	return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x061c || (code >= 0x200b && code <= 0x200f) ||
	       (code >= 0x2028 && code <= 0x202e) || (code >= 0x2060 && code <= 0x206f) || code == 0xfeff ||
	       (code >= 0xe0000 && code <= 0xe0fff);
}

const char *tool_plain(char *to, size_t size, const char *text, size_t most)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t n = strnlen(text, most), at = 0;

	while (n > 0 && at + 5 <= size) {
		uint32_t code = 0;
		size_t length = character(s, n, &code);

		if (length && !commands(code)) {
			memcpy(to + at, s, length);
			at += length;
		} else {
			at += (size_t)snprintf(to + at, 5, "\\x%02x", *s);
			length = 1;
		}
		s += length;
		n -= length;
	}
	to[at] = 0;
	return to;
}

void tool_json(FILE *out, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t n = strlen(text);

	fputc('"', out);
	while (n > 0) {
		uint32_t code = 0;
		size_t length = character(s, n, &code);

		if (code == '"' || code == '\\')
			fprintf(out, "\\%c", (int)code);
		else if (!length)
			fputs("\\ufffd", out);
		else if (commands(code) && code < 0x10000)
			fprintf(out, "\\u%04x", (unsigned)code);
		else
			fwrite(s, 1, length, out);
		length += !length;
		s += length;
		n -= length;
	}
	fputc('"', out);
}

void tool_json_string(const char *text)
{
	tool_json(stdout, text);
}

void tool_json_number(FILE *out, double x)
{
	if (isfinite(x))
		fprintf(out, "%.9g", x);
	else
		fputs("null", out);
}

void tool_html(FILE *out, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t n = strlen(text);

	while (n > 0) {
		uint32_t code = 0;
		size_t length = character(s, n, &code);

		if (!length || commands(code))
			fputs("&#xfffd;", out);
		else if (strchr("<>&\"'", (int)code))
			fprintf(out, "&#%u;", (unsigned)code);
		else
			fwrite(s, 1, length, out);
		length += !length;
		s += length;
		n -= length;
	}
}
