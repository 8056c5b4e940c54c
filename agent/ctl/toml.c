/*
 * Debian 12 has no library of C for TOML. What birdwatcher needs of the language is little, so this
 * reads that much, by recursive descent without recursion: a list holds no lists here. Each step
 * takes a position and moves it; the first error ends the run.
 */
#include "agent/ctl/toml.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "agent/ctl/import_parts.h"
#include "agent/ctl/text.h"

struct parser {
	const char *c;
	unsigned line;
	struct error error;
	json_t *root;
	json_t *here; /* the table whose keys follow; borrowed from root */
	char *word;   /* what was read last, as long as the text */
};

static bool fail(struct parser *p, const char *format, ...) _printf_(2, 3);
static bool fail(struct parser *p, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(p->error.text, sizeof(p->error.text), format, ap);
	va_end(ap);
	return false;
}

static json_t *node_new(const char *kind, json_t *what, unsigned line)
{
	json_t *node = import_json(json_object());

	import_set(node, "line", json_integer(line));
	import_set(node, kind, what);
	return node;
}

static void skip_blanks(struct parser *p)
{
	p->c += strspn(p->c, " \t");
}

/* Blanks, comments and ends of lines. */
static void skip_lines(struct parser *p)
{
	for (;;) {
		p->c += strspn(p->c, " \t\r");
		if (*p->c == '#')
			p->c += strcspn(p->c, "\n");
		if (*p->c != '\n')
			return;
		p->line++;
		p->c++;
	}
}

static bool end_of_line(struct parser *p)
{
	skip_blanks(p);
	if (*p->c == '#')
		p->c += strcspn(p->c, "\n");
	if (*p->c == '\r')
		p->c++;
	if (*p->c && *p->c != '\n')
		return fail(p, "got \"%.32s\"; expected the end of the line", p->c);
	return true;
}

/* --- strings --- */

static size_t put_utf8(char *out, uint32_t code)
{
	if (code < 0x80) {
		out[0] = (char)code;
		return 1;
	}
	if (code < 0x800) {
		out[0] = (char)(0xc0 | code >> 6);
		out[1] = (char)(0x80 | (code & 0x3f));
		return 2;
	}
	if (code < 0x10000) {
		out[0] = (char)(0xe0 | code >> 12);
		out[1] = (char)(0x80 | (code >> 6 & 0x3f));
		out[2] = (char)(0x80 | (code & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | code >> 18);
	out[1] = (char)(0x80 | (code >> 12 & 0x3f));
	out[2] = (char)(0x80 | (code >> 6 & 0x3f));
	out[3] = (char)(0x80 | (code & 0x3f));
	return 4;
}

/* Behind "\u" or "\U". */
static bool read_code(struct parser *p, size_t digits, size_t *n)
{
	uint32_t code = 0;

	for (size_t i = 0; i < digits; i++, p->c++) {
		char c = *p->c;

		if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')))
			return fail(p, "an escape of %zu hexadecimal digits with fewer", digits);
		code = code << 4 | (uint32_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
	}
	if (code == 0 || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		return fail(p, "an escape that is no character");
	*n += put_utf8(p->word + *n, code);
	return true;
}

static bool read_escape(struct parser *p, size_t *n)
{
	static const char letters[] = "btnfr\"\\", meanings[] = "\b\t\n\f\r\"\\";
	char c = *p->c;
	const char *found = c ? strchr(letters, c) : NULL;

	if (c == 'u' || c == 'U') {
		p->c++;
		return read_code(p, c == 'u' ? 4 : 8, n);
	}
	if (!found)
		return fail(p, "an escape \\%.1s, which TOML does not have", c < 0 ? "?" : p->c);
	p->word[(*n)++] = meanings[found - letters];
	p->c++;
	return true;
}

/* "..." or '...', into p->word. */
static bool read_string(struct parser *p)
{
	char quote = *p->c;
	size_t n = 0;

	if (p->c[1] == quote && p->c[2] == quote)
		return fail(p,
			"a string in three quotes, which this converter does not read; write "
			"it on one line in one quote");
	for (p->c++; *p->c != quote;) {
		if (*p->c == '\0' || *p->c == '\n')
			return fail(p, "a string that does not end on its line");
		if (*p->c == '\\' && quote == '"') {
			p->c++;
			if (!read_escape(p, &n))
				return false;
		} else {
			p->word[n++] = *p->c++;
		}
	}
	p->c++;
	p->word[n] = '\0';
	return true;
}

/* --- keys --- */

static bool is_bare(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-';
}

/* One part of a key, into p->word. */
static bool read_key_part(struct parser *p)
{
	size_t n = 0;

	skip_blanks(p);
	if (*p->c == '"' || *p->c == '\'')
		return read_string(p);
	while (is_bare(*p->c))
		p->word[n++] = *p->c++;
	p->word[n] = '\0';
	if (n == 0)
		return fail(p, "got \"%.32s\"; expected a key", p->c);
	return true;
}

/* The table `name` of `table`, made where there is none. NULL: a value has that name. */
static json_t *enter(struct parser *p, json_t *table, const char *name)
{
	json_t *children = json_object_get(table, "table"), *child;

	child = json_object_get(children, name);
	if (!child) {
		child = node_new("table", import_json(json_object()), p->line);
		import_set(children, name, child);
	}
	if (!json_object_get(child, "table")) {
		(void)fail(p, "%.64s is a value, and no table", name);
		return NULL;
	}
	return child;
}

/* A dotted key: enters all of its parts but the last, which stays in p->word. NULL: an error. */
static json_t *read_key(struct parser *p, json_t *table)
{
	for (unsigned depth = 1;; depth++) {
		if (!read_key_part(p))
			return NULL;
		skip_blanks(p);
		if (*p->c != '.')
			return table;
		if (depth == TOML_DEPTH_MAX) {
			(void)fail(p, "a key of more than %d parts", TOML_DEPTH_MAX);
			return NULL;
		}
		p->c++;
		table = enter(p, table, p->word);
		if (!table)
			return NULL;
	}
}

static bool read_header(struct parser *p)
{
	json_t *table;

	if (p->c[1] == '[')
		return fail(p, "a list of tables ([[...]]), which birdwatcher does not have");
	p->c++;
	table = read_key(p, p->root);
	if (!table)
		return false;
	if (*p->c != ']')
		return fail(p, "got \"%.32s\"; expected \"]\"", p->c);
	p->c++;
	table = enter(p, table, p->word);
	if (!table)
		return false;
	if (json_object_get(table, "header"))
		return fail(p, "the table [%.64s] stands here twice", p->word);
	import_set(table, "header", json_true());
	import_set(table, "line", json_integer(p->line));
	p->here = table;
	return end_of_line(p);
}

/* --- values --- */

static json_t *read_number(struct parser *p)
{
	char digits[32];
	size_t n = 0;
	int64_t value;

	for (; strchr("+-_0123456789", *p->c) && *p->c; p->c++)
		if (*p->c != '_' && n + 1 < sizeof(digits))
			digits[n++] = *p->c;
	digits[n] = '\0';
	if (is_bare(*p->c) || *p->c == '.' || *p->c == ':' || !import_integer(digits, &value)) {
		(void)fail(p, "a number that is none, or none that this converter reads (a string "
			      "such as \"10s\" stands in quotes)");
		return NULL;
	}
	return import_json(json_integer(value));
}

static json_t *read_scalar(struct parser *p)
{
	if (*p->c == '"' || *p->c == '\'')
		return read_string(p) ? import_json(json_string(p->word)) : NULL;
	if (strncmp(p->c, "true", 4) == 0 && !is_bare(p->c[4])) {
		p->c += 4;
		return json_true();
	}
	if (strncmp(p->c, "false", 5) == 0 && !is_bare(p->c[5])) {
		p->c += 5;
		return json_false();
	}
	if (*p->c && strchr("+-0123456789", *p->c))
		return read_number(p);
	(void)fail(p,
		"got \"%.32s\"; expected a string in quotes, a whole number, true, false or a list "
		"of strings",
		p->c);
	return NULL;
}

static json_t *read_list(struct parser *p)
{
	json_t *list = import_json(json_array()), *item;

	for (p->c++;;) {
		skip_lines(p);
		if (*p->c == ']')
			break;
		item = read_scalar(p);
		if (!item) {
			json_decref(list);
			return NULL;
		}
		import_append(list, item);
		skip_lines(p);
		if (*p->c == ',') {
			p->c++;
		} else if (*p->c != ']') {
			(void)fail(p, "got \"%.32s\"; expected \",\" or \"]\"", p->c);
			json_decref(list);
			return NULL;
		}
	}
	p->c++;
	return list;
}

static bool read_pair(struct parser *p)
{
	json_t *table = read_key(p, p->here), *children, *value;
	_cleanup_free_ char *name = NULL;
	unsigned line = p->line;

	if (!table)
		return false;
	name = import_copy(p->word, strlen(p->word));
	children = json_object_get(table, "table");
	if (*p->c != '=')
		return fail(p, "got \"%.32s\"; expected KEY = VALUE", p->c);
	if (json_object_get(children, name))
		return fail(p, "%.64s stands here twice", name);
	p->c++;
	skip_blanks(p);
	value = *p->c == '[' ? read_list(p) : read_scalar(p);
	if (!value)
		return false;
	import_set(children, name, node_new("value", value, line));
	return end_of_line(p);
}

json_t *toml_parse(const char *text, unsigned *ret_line, struct error *ret_error)
{
	struct parser p = {.c = text, .line = 1};
	_cleanup_free_ char *word = text_allocate(strlen(text) + 8);
	bool good = true;

	p.word = word;
	p.root = p.here = node_new("table", import_json(json_object()), 1);
	skip_lines(&p);
	while (good && *p.c) {
		good = *p.c == '[' ? read_header(&p) : read_pair(&p);
		if (good)
			skip_lines(&p);
	}
	if (good)
		return p.root;
	*ret_line = p.line;
	*ret_error = p.error;
	json_decref(p.root);
	return NULL;
}
