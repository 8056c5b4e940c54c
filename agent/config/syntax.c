/*
 * JSON text to a tree by jansson (RFC 8259, duplicate keys refused), and its errors in words.
 *
 * jansson counts what it has consumed: the position it gives is that of a token's last byte, and
 * behind it for a byte that is not UTF-8. People look for the start of what is wrong, so the
 * position is walked back to the start of a string. Depth is bounded here, before jansson, because
 * what walks the tree afterwards uses the stack.
 */
#include "agent/config/syntax.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "agent/base/cleanup.h"

struct text {
	const char *name, *data;
	size_t length;
	struct problems *problems;
};

static void report_at(const struct text *t, size_t offset, const char *format, ...) _printf_(3, 4);

static void report_at(const struct text *t, size_t offset, const char *format, ...)
{
	size_t line = 1, column = 1;
	char message[400];
	va_list ap;

	for (size_t i = 0; i < offset && i < t->length; i++) {
		if (t->data[i] == '\n') {
			line++;
			column = 1;
		} else if (((unsigned char)t->data[i] & 0xc0) != 0x80) {
			column++;
		}
	}
	va_start(ap, format);
	(void)vsnprintf(message, sizeof(message), format, ap);
	va_end(ap);
	problems_add(t->problems, PROBLEM_ERROR, "%s:%zu:%zu: %s", t->name, line, column, message);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Of a number or a word without quotes. */
static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '.' || c == '-' || c == '+';
}

/* The byte that is nested too deeply, or length. Strings are skipped. */
static size_t find_too_deep(const struct text *t, unsigned depth_max)
{
	bool in_string = false;
	unsigned depth = 0;

	for (size_t i = 0; i < t->length; i++) {
		char c = t->data[i];

		if (in_string) {
			if (c == '\\')
				i++;
			else if (c == '"')
				in_string = false;
		} else if (c == '"') {
			in_string = true;
		} else if (c == '{' || c == '[') {
			if (++depth > depth_max)
				return i;
		} else if ((c == '}' || c == ']') && depth > 0) {
			depth--;
		}
	}
	return t->length;
}

/* What can be said without a parser, and better than one would. True when something was. */
static bool refuse_early(const struct text *t, unsigned depth_max)
{
	size_t first = 0, deep;

	while (first < t->length && is_blank(t->data[first]))
		first++;
	if (first == t->length) {
		report_at(t, 0, "the file is empty; expected a JSON object");
		return true;
	}
	if (t->length >= 3 && memcmp(t->data, "\xef\xbb\xbf", 3) == 0) {
		report_at(t, 0,
			"the file starts with a byte order mark; save it as UTF-8 without one");
		return true;
	}
	deep = find_too_deep(t, depth_max);
	if (deep < t->length) {
		report_at(t, deep, "objects and lists are nested more than %u deep", depth_max);
		return true;
	}
	return false;
}

/* The start of the string that ends at `end`, or `end` where no string does. */
static size_t string_start(const struct text *t, size_t end)
{
	size_t i = end, backslashes;

	if (end >= t->length || t->data[end] != '"')
		return end;
	while (i > 0) {
		i--;
		if (t->data[i] == '\n')
			return end;
		if (t->data[i] != '"')
			continue;
		for (backslashes = 0; backslashes < i; backslashes++)
			if (t->data[i - 1 - backslashes] != '\\')
				break;
		if (backslashes % 2 == 0)
			return i;
	}
	return end;
}

/* The start of the token that ends at `end`. */
static size_t token_start(const struct text *t, size_t end)
{
	size_t i = string_start(t, end);

	if (i != end || end >= t->length)
		return i;
	while (i > 0 && is_word(t->data[i]) && is_word(t->data[i - 1]))
		i--;
	return i;
}

/* The last \u0000 at or before `end`. */
static size_t escaped_nul(const struct text *t, size_t end)
{
	for (size_t i = end + 1; i-- > 0;)
		if (t->length - i >= 6 && memcmp(t->data + i, "\\u0000", 6) == 0)
			return i;
	return end;
}

static char byte_before(const struct text *t, size_t offset)
{
	while (offset > 0 && is_blank(t->data[offset - 1]))
		offset--;
	return offset > 0 ? t->data[offset - 1] : '\0';
}

/* The usual cause of "X expected near Y", or "". */
static const char *hint_for(const struct text *t, size_t offset)
{
	char c = offset < t->length ? t->data[offset] : '\0';
	char before = byte_before(t, offset);

	if ((c == '}' || c == ']') && before == ',')
		return "; remove the comma before it";
	if (c == '/' || c == '#')
		return "; JSON has no comments";
	if (c == '\'')
		return "; strings stand in double quotes";
	if (c == '0' && t->length - offset > 1 && is_word(t->data[offset + 1]))
		return "; numbers start with another digit";
	if (before == '{' || before == ',')
		return "; keys and strings stand in double quotes";
	if (c == '"' || c == '{' || c == '[')
		return "; a comma or a colon missing before it?";
	return "";
}

/* The token that ends at `end` is a key. */
static bool is_key(const struct text *t, size_t end)
{
	for (size_t i = end + 1; i < t->length; i++)
		if (!is_blank(t->data[i]))
			return t->data[i] == ':';
	return false;
}

/*
 * jansson's text, which ends with the token where it stopped. A string or a word that is no key may
 * be a password without its quotes or its colon, and the line is logged: it is not shown, and the
 * position says where it stands.
 */
static void say_error(const struct text *t, const json_error_t *e, size_t end,
	char ret[JSON_ERROR_TEXT_LENGTH + 32])
{
	const char *near = strstr(e->text, " near '");
	bool quoted = near && near[7] == '"';

	(void)snprintf(ret, JSON_ERROR_TEXT_LENGTH + 32, "%s", e->text);
	if (near && (quoted || isalpha((unsigned char)near[7])) && !is_key(t, end))
		(void)snprintf(ret + (near - e->text), sizeof(" near a string"), "%s",
			quoted ? " near a string" : " near a word");
}

static void report_jansson(const struct text *t, const json_error_t *e)
{
	size_t offset = e->position > 0 ? (size_t)e->position - 1 : 0;
	size_t start = token_start(t, offset);
	char text[JSON_ERROR_TEXT_LENGTH + 32];

	say_error(t, e, offset, text);
	/* Only some codes deserve words of their own; jansson's text serves for the others. */
	switch ((int)json_error_code(e)) {
	case json_error_null_character:
	case json_error_null_byte_in_key:
		report_at(t, escaped_nul(t, offset), "a string must not hold \\u0000");
		return;
	case json_error_duplicate_key:
		report_at(t, start, "the key %.*s stands twice in this object",
			(int)(offset + 1 - start < 100 ? offset + 1 - start : 100),
			t->data + start);
		return;
	case json_error_invalid_utf8:
		/* Here the position is that of the byte itself. */
		offset = (size_t)e->position < t->length ? (size_t)e->position : t->length - 1;
		report_at(t, offset, "byte 0x%02x is not UTF-8",
			(unsigned)(unsigned char)t->data[offset]);
		return;
	case json_error_end_of_input_expected:
		report_at(t, start, "%s; one file holds one object", text);
		return;
	case json_error_premature_end_of_input:
		report_at(t, t->length, "the file ends too early: %s", text);
		return;
	default:
		report_at(t, start, "%s%s", text, hint_for(t, start));
		return;
	}
}

int syntax_parse(const char *name, const char *data, size_t length, unsigned depth_max,
	json_t **ret, struct problems *problems)
{
	const struct text t = {.name = name, .data = data, .length = length, .problems = problems};
	json_error_t e = {0}; /* jansson sets no code where memory ends */
	json_t *tree;

	if (refuse_early(&t, depth_max))
		return -EINVAL;
	/* DECODE_ANY, so that a number at the top is told from a syntax error. */
	tree = json_loadb(data, length, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &e);
	/* Where jansson cannot allocate it often says nothing at all. */
	if (!tree && (json_error_code(&e) == json_error_out_of_memory || e.text[0] == '\0'))
		return -ENOMEM;
	if (!tree) {
		report_jansson(&t, &e);
		return -EINVAL;
	}
	if (!json_is_object(tree)) {
		problems_add(problems, PROBLEM_ERROR, "%s: top level: got %s; expected an object",
			name, json_is_array(tree) ? "a list" : "a single value");
		json_decref(tree);
		return -EINVAL;
	}
	*ret = tree;
	return 0;
}
