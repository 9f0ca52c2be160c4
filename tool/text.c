/* tool/text.c - text that came from somewhere, made harmless for where it goes: a terminal, a JSON
 * line, a page. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tool.h"

/* Returns the length of the character that begins at s, of n bytes at least 1; 0: it is no
 * UTF-8. */
static size_t character_length(const unsigned char *s, size_t n, uint32_t *code)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t length = s[0] < 0x80 ? 1 : s[0] < 0xc0 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 :
		s[0] < 0xf8 ? 4 : 0;

	if (!length || length > n)
		return 0;
	*code = length == 1 ? s[0] : s[0] & (0x7fu >> length);
	for (size_t i = 1; i < length; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		*code = *code << 6 | (s[i] & 0x3f);
	}
	return *code < least[length] || *code > 0x10ffff ||
		(*code >= 0xd800 && *code < 0xe000) ? 0 : length;
}

/* Returns whether a terminal would obey it, or show the following text elsewhere: controls, marks
 * of direction, line ends. */
static bool is_terminal_command(uint32_t code)
{
	return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x061c ||
		(code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
		(code >= 0x2060 && code <= 0x206f) || code == 0xfeff ||
		(code >= 0xe0000 && code <= 0xe0fff);
}

/* A text, character by character. */
struct piece {
	const unsigned char *at, *end; /* of the text, behind the piece */
	const unsigned char *text;
	size_t length;
	uint32_t code;
	bool is_character; /* else a byte that belongs to none */
	bool is_harmless;
};

static struct piece begin_pieces(const char *text, size_t n)
{
	return (struct piece){ .at = (const unsigned char *)text,
		.end = (const unsigned char *)text + n };
}

static bool next_piece(struct piece *p)
{
	if (p->at == p->end)
		return false;
	p->code = 0;
	p->text = p->at;
	p->length = character_length(p->at, (size_t)(p->end - p->at), &p->code);
	p->is_character = p->length > 0;
	p->is_harmless = p->is_character && !is_terminal_command(p->code);
	p->length += !p->is_character;
	p->at += p->length;
	return true;
}

const char *tool_plain(char *to, size_t size, const char *text, size_t most)
{
	struct piece p = begin_pieces(text, strnlen(text, most));
	size_t at = 0;

	while (at + 5 <= size && next_piece(&p)) {
		if (p.is_harmless) {
			memcpy(to + at, p.text, p.length);
			at += p.length;
		} else { /* a byte at a time */
			at += (size_t)snprintf(to + at, 5, "\\x%02x", *p.text);
			p.at = p.text + 1;
		}
	}
	to[at] = 0;
	return to;
}

void tool_json(FILE *out, const char *text)
{
	struct piece p = begin_pieces(text, strlen(text));

	fputc('"', out);
	while (next_piece(&p)) {
		if (p.code == '"' || p.code == '\\')
			fprintf(out, "\\%c", (int)p.code);
		else if (!p.is_character)
			fputs("\\ufffd", out);
		else if (!p.is_harmless && p.code < 0x10000)
			fprintf(out, "\\u%04x", (unsigned)p.code);
		else
			fwrite(p.text, 1, p.length, out);
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
	struct piece p = begin_pieces(text, strlen(text));

	while (next_piece(&p)) {
		if (!p.is_harmless)
			fputs("&#xfffd;", out);
		else if (strchr("<>&\"'", (int)p.code))
			fprintf(out, "&#%u;", (unsigned)p.code);
		else
			fwrite(p.text, 1, p.length, out);
	}
}
