#include "agent/status/json.h"

#include <assert.h>
#include <string.h>

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

void json_writer_init(struct json_writer *w, struct buffer *out)
{
	*w = (struct json_writer){.out = out};
}

void json_writer_init_line(struct json_writer *w, struct buffer *out)
{
	*w = (struct json_writer){.out = out, .one_line = true};
}

int json_writer_error(const struct json_writer *w)
{
	return w->error;
}

static void put(struct json_writer *w, const char *data, size_t n)
{
	if (w->error == 0)
		w->error = buffer_append(w->out, data, n);
}

static void put_text(struct json_writer *w, const char *text)
{
	put(w, text, strlen(text));
}

/*
 * Length of the well-formed UTF-8 sequence at s, or 0 (RFC 3629 section 4: no overlong forms, no
 * surrogates, nothing above U+10FFFF).
 */
static size_t utf8_length(const unsigned char *s)
{
	unsigned char low = 0x80, high = 0xbf;
	size_t n;

	if (s[0] < 0x80)
		return 1;
	if (s[0] >= 0xc2 && s[0] <= 0xdf)
		n = 2;
	else if (s[0] >= 0xe0 && s[0] <= 0xef)
		n = 3;
	else if (s[0] >= 0xf0 && s[0] <= 0xf4)
		n = 4;
	else
		return 0;
	if (s[0] == 0xe0)
		low = 0xa0;
	else if (s[0] == 0xed)
		high = 0x9f;
	else if (s[0] == 0xf0)
		low = 0x90;
	else if (s[0] == 0xf4)
		high = 0x8f;
	if (s[1] < low || s[1] > high)
		return 0;
	for (size_t i = 2; i < n; i++)
		if (s[i] < 0x80 || s[i] > 0xbf)
			return 0;
	return n;
}

static bool is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

/* One character that is not plain; returns how many bytes of s it took. */
static size_t put_special(struct json_writer *w, const unsigned char *s)
{
	char escaped[8];
	size_t n;

	if (*s == '"' || *s == '\\') {
		(void)snprintf(escaped, sizeof(escaped), "\\%c", *s);
		put_text(w, escaped);
		return 1;
	}
	if (*s < 0x20 || *s == 0x7f) {
		(void)snprintf(escaped, sizeof(escaped), "\\u%04x", *s);
		put_text(w, escaped);
		return 1;
	}
	n = utf8_length(s);
	if (n == 0) {
		put_text(w, REPLACEMENT);
		return 1;
	}
	put(w, (const char *)s, n);
	return n;
}

static void put_string(struct json_writer *w, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;

	put(w, "\"", 1);
	while (*s) {
		const unsigned char *start = s;

		while (is_plain(*s))
			s++;
		if (s > start)
			put(w, (const char *)start, (size_t)(s - start));
		if (*s)
			s += put_special(w, s);
	}
	put(w, "\"", 1);
}

static void put_newline(struct json_writer *w)
{
	static const char spaces[2 * JSON_DEPTH_MAX + 1] = "                        ";

	put(w, "\n", 1);
	put(w, spaces, 2 * (size_t)w->depth);
}

/* The comma, the place and the key of what comes next. */
static void begin_value(struct json_writer *w, const char *key)
{
	bool in_array = w->depth > 0 && w->closer_is_array[w->depth - 1];

	assert((key == NULL) == (w->depth == 0 || in_array));
	if (w->has_member[w->depth])
		put(w, ",", 1);
	if ((in_array || w->one_line) && w->has_member[w->depth])
		put(w, " ", 1);
	else if (!in_array && !w->one_line && w->depth > 0)
		put_newline(w);
	w->has_member[w->depth] = true;
	if (key) {
		put_string(w, key);
		put(w, ": ", 2);
	}
}

static void json_open(struct json_writer *w, const char *key, bool array)
{
	begin_value(w, key);
	assert(w->depth < JSON_DEPTH_MAX);
	put(w, array ? "[" : "{", 1);
	w->closer_is_array[w->depth++] = array;
	w->has_member[w->depth] = false;
}

void json_open_object(struct json_writer *w, const char *key)
{
	json_open(w, key, false);
}

void json_open_array(struct json_writer *w, const char *key)
{
	json_open(w, key, true);
}

void json_close(struct json_writer *w)
{
	bool array, had_members;

	assert(w->depth > 0);
	had_members = w->has_member[w->depth];
	array = w->closer_is_array[--w->depth];
	if (had_members && !array && !w->one_line)
		put_newline(w);
	put(w, array ? "]" : "}", 1);
}

void json_write_string(struct json_writer *w, const char *key, const char *value)
{
	if (!value) {
		json_write_null(w, key);
		return;
	}
	begin_value(w, key);
	put_string(w, value);
}

void json_write_number(struct json_writer *w, const char *key, uint64_t value)
{
	char digits[24];

	(void)snprintf(digits, sizeof(digits), "%llu", (unsigned long long)value);
	begin_value(w, key);
	put_text(w, digits);
}

void json_write_milli(struct json_writer *w, const char *key, uint64_t milli)
{
	char digits[32];
	int n = snprintf(digits, sizeof(digits), "%llu.%03u", (unsigned long long)milli / 1000,
		(unsigned)(milli % 1000));

	while (digits[n - 1] == '0')
		digits[--n] = '\0';
	if (digits[n - 1] == '.')
		digits[--n] = '\0';
	begin_value(w, key);
	put_text(w, digits);
}

void json_write_bool(struct json_writer *w, const char *key, bool value)
{
	begin_value(w, key);
	put_text(w, value ? "true" : "false");
}

void json_write_null(struct json_writer *w, const char *key)
{
	begin_value(w, key);
	put_text(w, "null");
}
