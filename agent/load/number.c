/*
 * See the header. Formats: RFC 8259; the text format 0.0.4 of Prometheus
 * (prometheus.io/docs/instrumenting/exposition_formats), and what OpenMetrics 1.0 adds to a line.
 */
#include "agent/load/number.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "agent/base/printable.h"

#define SHOWN_MAX 64 /* of a text in an error */

static const char *shown(const char *text, size_t n, char buf[SHOWN_MAX])
{
	return printable_copy(buf, SHOWN_MAX, text, n);
}

static int set_number(double number, uint64_t *ret_milli, struct error *ret_error)
{
	if (!isfinite(number))
		return error_set(ret_error, EBADMSG, "not a finite number");
	if (number < 0)
		return error_set(ret_error, EBADMSG, "%g is negative", number);
	if (number * 1000 > (double)NUMBER_MAX)
		return error_set(ret_error, EBADMSG, "%g is too large", number);
	*ret_milli = (uint64_t)(number * 1000);
	return 0;
}

/* What strtod(3) reads and Prometheus writes: no hexadecimal, no blanks in front. Ends at `end`. */
static bool take_double(const char *text, const char **end, double *ret)
{
	char *after;

	if (text[0] == '\0' || strchr(" \t\n\v\f\r", text[0]))
		return false;
	*ret = strtod(text, &after);
	if (after == text || memchr(text, 'x', (size_t)(after - text)) ||
		memchr(text, 'X', (size_t)(after - text)))
		return false;
	*end = after;
	return true;
}

/* ---- text ---- */

static int find_in_text(const struct number_text *t, uint64_t *ret_milli, struct error *ret_error)
{
	const char *text = t->text + strspn(t->text, " \t\r\n"), *end;
	char buf[SHOWN_MAX];
	double number;

	if (!*text)
		return error_set(ret_error, ENOENT, "nothing there; expected a number");
	if (!take_double(text, &end, &number) || end[strspn(end, " \t\r\n")])
		return error_set(ret_error, EBADMSG, "\"%s\"; expected one number alone",
			shown(text, strcspn(text, "\n"), buf));
	return set_number(number, ret_milli, ret_error);
}

/* ---- JSON ---- */

/* The next part of a path, without its backslashes; false where it is too long. */
static bool take_part(const char **path, char *part, size_t size)
{
	size_t n = 0;

	for (; **path && **path != '.'; (*path)++) {
		if (**path == '\\' && (*path)[1])
			(*path)++;
		if (n + 1 == size)
			return false;
		part[n++] = **path;
	}
	part[n] = '\0';
	return true;
}

static json_t *step_into(json_t *at, const char *part)
{
	char *end;
	unsigned long index;

	if (json_is_object(at))
		return json_object_get(at, part);
	if (!json_is_array(at) || part[0] < '0' || part[0] > '9' || strlen(part) > 9)
		return NULL;
	index = strtoul(part, &end, 10);
	return *end ? NULL : json_array_get(at, index);
}

static int find_in_json(
	const struct number_text *t, const char *key, uint64_t *ret_milli, struct error *ret_error)
{
	static const char *const kinds[] = {[JSON_OBJECT] = "an object",
		[JSON_ARRAY] = "a list",
		[JSON_STRING] = "a string",
		[JSON_INTEGER] = "",
		[JSON_REAL] = "",
		[JSON_TRUE] = "true",
		[JSON_FALSE] = "false",
		[JSON_NULL] = "null"};
	const char *path = key;
	json_t *at = t->tree;
	char part[256], buf[SHOWN_MAX];

	for (bool more = true; more && at; path += more) {
		at = take_part(&path, part, sizeof(part)) ? step_into(at, part) : NULL;
		more = *path == '.';
	}
	if (!at)
		return error_set(
			ret_error, ENOENT, "nothing at \"%s\"", shown(key, strlen(key), buf));
	if (!json_is_number(at))
		return error_set(ret_error, EBADMSG, "%s at \"%s\"; expected a number",
			kinds[json_typeof(at)], shown(key, strlen(key), buf));
	return set_number(json_number_value(at), ret_milli, ret_error);
}

/* ---- Prometheus ---- */

/* One label in the braces of a series. */
struct label {
	const char *name, *value; /* the value as it is written, with its escapes */
	size_t name_length, value_length;
};

/* Reads NAME="VALUE" and the comma behind. `at` is behind the brace, or behind the last one; false
 * at the closing brace and where the form is another. */
static bool take_label(const char **at, struct label *ret)
{
	const char *c = *at + strspn(*at, " \t");

	ret->name = c;
	ret->name_length = strcspn(c, "=\"{},\n \t");
	c += ret->name_length;
	/* cppcheck-suppress nullPointerRedundantCheck ; it takes the sum for the pointer */
	c += strspn(c, " \t");
	if (ret->name_length == 0 || *c != '=')
		return false;
	c++;
	c += strspn(c, " \t");
	if (*c != '"')
		return false;
	ret->value = ++c;
	for (; *c && *c != '"' && *c != '\n'; c++)
		if (*c == '\\' && c[1] && c[1] != '\n')
			c++;
	if (*c != '"')
		return false;
	ret->value_length = (size_t)(c - ret->value);
	c++;
	c += strspn(c, " \t");
	if (*c == ',')
		c++;
	else if (*c != '}')
		return false;
	*at = c;
	return true;
}

static bool same(const char *a, size_t a_length, const char *b, size_t b_length)
{
	return a_length == b_length && memcmp(a, b, a_length) == 0;
}

/* The labels behind the opening brace hold this one, too. */
static bool has_label(const char *labels, const struct label *wanted)
{
	struct label label;

	while (take_label(&labels, &label))
		if (same(label.name, label.name_length, wanted->name, wanted->name_length) &&
			same(label.value, label.value_length, wanted->value, wanted->value_length))
			return true;
	return false;
}

/* Every label of `key`, a NAME{...}, is among those of the line. */
static bool has_labels(const char *key, const char *labels)
{
	struct label wanted;

	while (take_label(&key, &wanted))
		if (!labels || !has_label(labels, &wanted))
			return false;
	return true;
}

/* Behind the closing brace, or NULL. */
static const char *skip_labels(const char *labels)
{
	struct label label;

	while (take_label(&labels, &label))
		continue;
	labels += strspn(labels, " \t");
	return *labels == '}' ? labels + 1 : NULL;
}

/* Where the name ends, and its labels begin behind a brace (NULL: there are none). */
static size_t name_of(const char *series, const char **ret_labels)
{
	size_t n = strcspn(series, "{ \t\n"), blanks = strspn(series + n, " \t");

	*ret_labels = series[n + blanks] == '{' ? series + n + blanks + 1 : NULL;
	return n;
}

static int check_series(const char *key, struct error *ret_error)
{
	const char *labels, *end;
	size_t n = name_of(key, &labels);
	char buf[SHOWN_MAX];

	end = labels ? skip_labels(labels) : key + n;
	if (n == 0 || !end || *end)
		return error_set(ret_error, EBADMSG,
			"\"%s\"; expected a series such as requests_total{code=\"200\"}",
			shown(key, strlen(key), buf));
	return 0;
}

static int find_in_page(
	const struct number_text *t, const char *key, uint64_t *ret_milli, struct error *ret_error)
{
	const char *wanted, *labels, *end, *line = t->text;
	size_t length = name_of(key, &wanted);
	double sum = 0, number;
	bool found = false;
	char buf[SHOWN_MAX];
	int r = check_series(key, ret_error);

	for (; r == 0 && *line; line += strcspn(line, "\n"), line += *line == '\n') {
		size_t n = name_of(line, &labels);

		if (line[0] == '#' || !same(line, n, key, length) ||
			(wanted && !has_labels(wanted, labels)))
			continue;
		end = labels ? skip_labels(labels) : line + n;
		if (end)
			end += strspn(end, " \t");
		if (!end || !take_double(end, &end, &number) || !strchr(" \t\r\n", *end))
			return error_set(ret_error, EBADMSG, "\"%s\"; expected SERIES VALUE",
				shown(line, strcspn(line, "\n"), buf));
		sum += number;
		found = true;
	}
	if (r < 0)
		return r;
	if (!found)
		return error_set(
			ret_error, ENOENT, "no series \"%s\"", shown(key, strlen(key), buf));
	return set_number(sum, ret_milli, ret_error);
}

/* ---- all ---- */

int number_open(struct number_text *t, enum config_format format, const char *text, size_t length,
	struct error *ret_error)
{
	struct number_text opened = {.format = format, .text = text, .length = length};
	json_error_t error = {0};

	if (memchr(text, '\0', length))
		return error_set(ret_error, EBADMSG, "a NUL byte in it");
	if (format == CONFIG_FORMAT_JSON) {
		/* As reals, so that a number beyond 64 bits elsewhere in it does no harm. */
		opened.tree = json_loadb(text, length,
			JSON_DECODE_ANY | JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, &error);
		if (!opened.tree)
			return error_set(ret_error, EBADMSG, "no JSON: line %d, column %d: %.*s",
				error.line, error.column, SHOWN_MAX, error.text);
	}
	*t = opened;
	return 0;
}

void number_close(struct number_text *t)
{
	json_decref(t->tree);
	*t = (struct number_text){0};
}

int number_find(
	const struct number_text *t, const char *key, uint64_t *ret_milli, struct error *ret_error)
{
	switch (t->format) {
	case CONFIG_FORMAT_TEXT:
		return find_in_text(t, ret_milli, ret_error);
	case CONFIG_FORMAT_JSON:
		return find_in_json(t, key, ret_milli, ret_error);
	case CONFIG_FORMAT_PROMETHEUS:
		return find_in_page(t, key, ret_milli, ret_error);
	}
	abort();
}
