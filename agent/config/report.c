/*
 * Builds the one form of a problem: FILE: PATH: got VALUE; expected EXPECTED.
 *
 * Values and keys are shown as JSON with everything outside ASCII escaped: a Cyrillic letter in
 * a key that looks right, a zero-width space or a terminal's escape sequence must be seen by the
 * person who looks for the fault. The length is bounded everywhere, because a file may hold a key
 * of 4 MiB.
 *
 * A problem is printed, and at a reload logged, for people who may not read the file. So what is a
 * secret by its key is named and not shown, and so is the user's part of a URL.
 */
#include "agent/config/report.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "agent/config/sources.h"

/* Characters of a key or string that are shown. */
#define SHOWN_MAX 60

static bool is_plain_key(const char *key)
{
	size_t n = strspn(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");

	return n > 0 && key[n] == '\0' && n <= SHOWN_MAX;
}

/* JSON text is ASCII here, so that any cut is between characters; the quote is put back. */
static void shorten_quoted(char *text)
{
	if (strlen(text) > SHOWN_MAX)
		memcpy(text + SHOWN_MAX - 4, "...\"", 5);
}

/* Where user and password of a URL stand in the text: from *ret_start on, n bytes. 0: nowhere. */
static size_t url_user(const char *text, size_t *ret_start)
{
	const char *scheme = strstr(text, "://"), *user = scheme ? scheme + 3 : NULL;
	size_t authority = user ? strcspn(user, "/?#") : 0, n = authority;

	/* The last @: a password may hold others. */
	while (n > 0 && user[n - 1] != '@')
		n--;
	*ret_start = user ? (size_t)(user - text) : 0;
	return n > 0 ? n - 1 : 0;
}

static const char *plain_format(const char *text, char buf[VALUE_TEXT_MAX])
{
	/* A character takes at most 12 bytes escaped, so the cut leaves enough to be shown. */
	size_t length = strnlen(text, SHOWN_MAX);
	_cleanup_free_ char *dumped = NULL;
	json_t *value;

	while (text[length] != '\0' && length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80)
		length--;
	value = json_stringn(text, length);
	if (value)
		dumped = json_dumps(value, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
	json_decref(value);
	if (!dumped) {
		(void)snprintf(buf, VALUE_TEXT_MAX, "a string");
		return buf;
	}
	if (text[length] != '\0' && strlen(dumped) <= SHOWN_MAX)
		(void)snprintf(buf, VALUE_TEXT_MAX, "%.*s...\"", (int)strlen(dumped) - 1, dumped);
	else {
		shorten_quoted(dumped);
		(void)snprintf(buf, VALUE_TEXT_MAX, "%s", dumped);
	}
	return buf;
}

static const char *word(const char *text, char *buf, size_t size)
{
	(void)snprintf(buf, size, "%s", text);
	return buf;
}

const char *text_format(const char *text, char buf[VALUE_TEXT_MAX])
{
	_cleanup_free_ char *masked = NULL;
	size_t start, n = url_user(text, &start);

	if (n == 0)
		return plain_format(text, buf);
	if (asprintf(&masked, "%.*s***%s", (int)start, text, text + start + n) < 0) {
		masked = NULL;
		return word("a string", buf, VALUE_TEXT_MAX);
	}
	return plain_format(masked, buf);
}

/*
 * services.S.checks.C.headers, env, send or body, or what lies in it: nobody but the service behind
 * the check, and who may read the file, should see it. By the path and not by the table, since two
 * files are merged before any table is asked.
 */
static bool path_is_secret(const struct path *path)
{
	static const char *const secrets[] = {"headers", "env", "send", "body"};
	const struct path *steps[PATH_DEPTH_MAX];
	size_t n = 0;

	for (; path && n < PATH_DEPTH_MAX; path = path->parent)
		steps[n++] = path;
	if (n < 5 || !steps[n - 1]->key || strcmp(steps[n - 1]->key, "services") != 0 ||
		!steps[n - 3]->key || strcmp(steps[n - 3]->key, "checks") != 0 ||
		!steps[n - 5]->key)
		return false;
	for (size_t i = 0; i < ELEMENTSOF(secrets); i++)
		if (strcmp(steps[n - 5]->key, secrets[i]) == 0)
			return true;
	return false;
}

const char *value_at_format(const struct path *path, json_t *value, char buf[VALUE_TEXT_MAX])
{
	if (!value || json_is_object(value) || json_is_array(value) || !path_is_secret(path))
		return value_format(value, buf);
	return word(json_is_string(value) ? "a string" : "a value", buf, VALUE_TEXT_MAX);
}

const char *value_format(json_t *value, char buf[VALUE_TEXT_MAX])
{
	_cleanup_free_ char *dumped = NULL;

	if (!value)
		return word("nothing", buf, VALUE_TEXT_MAX);
	if (json_is_string(value))
		return text_format(json_string_value(value), buf);
	if (json_is_object(value))
		return word(json_object_size(value) ? "an object" : "an empty object", buf,
			VALUE_TEXT_MAX);
	if (json_is_array(value))
		return word(
			json_array_size(value) ? "a list" : "an empty list", buf, VALUE_TEXT_MAX);
	/* Nine digits tell 10.5 from 10 and do not show 0.1 as 0.10000000000000001. */
	dumped = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));
	(void)snprintf(buf, VALUE_TEXT_MAX, "%s", dumped ? dumped : "a number");
	return buf;
}

static size_t append(char *buf, size_t used, const char *format, ...) _printf_(3, 4);

static size_t append(char *buf, size_t used, const char *format, ...)
{
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(buf + used, PATH_TEXT_MAX - used, format, ap);
	va_end(ap);
	if (n < 0)
		return used;
	return used + (size_t)n < PATH_TEXT_MAX ? used + (size_t)n : PATH_TEXT_MAX - 1;
}

const char *path_format(const struct path *path, char buf[PATH_TEXT_MAX])
{
	const struct path *steps[PATH_DEPTH_MAX];
	size_t n = 0, used = 0;
	char shown[VALUE_TEXT_MAX];

	if (!path)
		return word("top level", buf, PATH_TEXT_MAX);
	for (; path && n < PATH_DEPTH_MAX; path = path->parent)
		steps[n++] = path;
	buf[0] = '\0';
	while (n-- > 0) {
		if (!steps[n]->key)
			used = append(buf, used, "[%zu]", steps[n]->index);
		else if (is_plain_key(steps[n]->key))
			used = append(buf, used, "%s%s", used ? "." : "", steps[n]->key);
		else
			used = append(buf, used, "[%s]", text_format(steps[n]->key, shown));
	}
	return buf;
}

static void report(struct report *r, enum problem_level level, const struct path *path,
	const char *got, const char *format, va_list ap)
{
	_cleanup_free_ char *text = NULL;
	char where[PATH_TEXT_MAX];
	const char *file;

	/* A file of 4 MiB can hold 300,000 mistakes: they are counted, not written. */
	if (report_is_full(r)) {
		problems_add(r->problems, level, "and more");
		return;
	}
	file = sources_origin(r->sources, path);
	if (vasprintf(&text, format, ap) < 0) {
		text = NULL;
		(void)report_no_memory(r);
	}
	(void)path_format(path, where);
	if (got)
		problems_add(r->problems, level, "%s: %s: got %s; expected %s", file, where, got,
			text ? text : "something else");
	else
		problems_add(r->problems, level, "%s: %s: %s", file, where, text ? text : "");
}

void report_got(
	struct report *r, const struct path *path, const char *got, const char *expected, ...)
{
	va_list ap;

	va_start(ap, expected);
	report(r, PROBLEM_ERROR, path, got, expected, ap);
	va_end(ap);
}

void report_value(
	struct report *r, const struct path *path, json_t *value, const char *expected, ...)
{
	char got[VALUE_TEXT_MAX];
	va_list ap;

	va_start(ap, expected);
	report(r, PROBLEM_ERROR, path, value_at_format(path, value, got), expected, ap);
	va_end(ap);
}

void report_warning(struct report *r, const struct path *path, const char *text, ...)
{
	va_list ap;

	va_start(ap, text);
	report(r, PROBLEM_WARNING, path, NULL, text, ap);
	va_end(ap);
}

size_t report_count(const struct report *r)
{
	return r->problems->n_errors;
}

bool report_is_full(const struct report *r)
{
	return r->problems->n >= PROBLEMS_MAX;
}

bool report_no_memory(struct report *r)
{
	r->failed = -ENOMEM;
	return false;
}
