/*
 * The two text formats of metrics. They differ in the name that TYPE and HELP have for a counter
 * (OpenMetrics: without _total) and in "# EOF"; bounds of buckets are written alike, see
 * agent/base/histogram.c.
 */
#include "agent/status/metrics_text.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#define LABELS_MAX 4096
#define NUMBER_SIZE 32
#define REPLACEMENT "\xef\xbf\xbd"

/* --- what is asked for --- */

static const char *skip_blanks(const char *s)
{
	return s + strspn(s, " \t");
}

/* The value of parameter `name` in "type/subtype; a=b; q=0.5" up to `end`. NULL: there is none. */
static const char *parameter(const char *s, const char *end, const char *name)
{
	size_t n = strlen(name);

	while ((s = memchr(s, ';', (size_t)(end - s))) != NULL) {
		s = skip_blanks(s + 1);
		if (strncasecmp(s, name, n) == 0 && s[n] == '=')
			return s + n + 1;
	}
	return NULL;
}

/* Thousandths, by RFC 9110 section 12.4.2; what is not a weight counts as none. */
static unsigned quality(const char *s, const char *end)
{
	const char *q = parameter(s, end, "q");
	unsigned thousandths, digit = 100;

	if (!q)
		return 1000;
	if (*q == '1')
		return 1000;
	if (*q != '0')
		return 0;
	thousandths = 0;
	if (q[1] == '.')
		for (q += 2; *q >= '0' && *q <= '9' && digit > 0; q++, digit /= 10)
			thousandths += (unsigned)(*q - '0') * digit;
	return thousandths;
}

static bool is_type(const char *s, const char *end, const char *type)
{
	size_t n = strlen(type);

	return (size_t)(end - s) >= n && strncasecmp(s, type, n) == 0 &&
	       strchr(" \t;,", s[n]) != NULL;
}

enum metrics_format metrics_negotiate(const char *accept)
{
	unsigned openmetrics = 0, text = 0;

	for (const char *s = accept; s && *s;) {
		const char *end = s + strcspn(s, ","), *version;
		unsigned q;

		s = skip_blanks(s);
		q = s < end ? quality(s, end) : 0;
		version = s < end ? parameter(s, end, "version") : NULL;
		if (is_type(s, end, "application/openmetrics-text")) {
			if (!version || strncmp(version, "1.0.0", 5) == 0)
				openmetrics = q > openmetrics ? q : openmetrics;
		} else if (is_type(s, end, "text/plain")) {
			text = q > text ? q : text;
		}
		s = *end ? end + 1 : end;
	}
	return openmetrics > 0 && openmetrics >= text ? METRICS_OPENMETRICS : METRICS_TEXT;
}

const char *metrics_content_type(enum metrics_format format)
{
	switch (format) {
	case METRICS_TEXT:
		return "text/plain; version=0.0.4; charset=utf-8";
	case METRICS_OPENMETRICS:
		return "application/openmetrics-text; version=1.0.0; charset=utf-8";
	}
	abort();
}

/* --- pieces --- */

void metrics_writer_init(struct metrics_writer *w, struct buffer *out, enum metrics_format format)
{
	*w = (struct metrics_writer){.out = out, .format = format};
	buffer_init(&w->labels, LABELS_MAX);
}

void metrics_writer_done(struct metrics_writer *w)
{
	buffer_done(&w->labels);
}

static void put_to(struct metrics_writer *w, struct buffer *b, const char *data, size_t n)
{
	int r = w->error < 0 ? w->error : buffer_append(b, data, n);

	if (r < 0)
		w->error = r;
}

static void put(struct metrics_writer *w, const char *data, size_t n)
{
	put_to(w, w->out, data, n);
}

static void put_string(struct metrics_writer *w, const char *s)
{
	put(w, s, strlen(s));
}

/* Ends where buf ends; returns where it begins. */
static char *number_text(char buf[NUMBER_SIZE], uint64_t value)
{
	size_t at = NUMBER_SIZE;

	do {
		buf[--at] = (char)('0' + value % 10);
		value /= 10;
	} while (value > 0);
	return buf + at;
}

/* The digits behind the point that are needed, with it: "", ".5", ".000501". Returns how many
 * bytes.
 */
static size_t fraction_text(char buf[8], uint64_t us)
{
	size_t n = 7;

	buf[0] = '.';
	for (size_t i = 6; i > 0; i--, us /= 10)
		buf[i] = (char)('0' + us % 10);
	while (n > 1 && buf[n - 1] == '0')
		n--;
	return n > 1 ? n : 0;
}

/* --- families --- */

void metrics_family(
	struct metrics_writer *w, const char *name, enum metrics_kind kind, const char *help)
{
	static const char *const kinds[] = {"gauge", "counter", "histogram"};
	size_t n = strlen(name);

	w->name = name;
	w->name_length = n;
	if (kind == METRICS_COUNTER && w->format == METRICS_OPENMETRICS)
		n -= strlen("_total");
	put_string(w, "# HELP ");
	put(w, name, n);
	put_string(w, " ");
	put_string(w, help);
	put_string(w, "\n# TYPE ");
	put(w, name, n);
	put_string(w, " ");
	put_string(w, kinds[kind]);
	put_string(w, "\n");
	metrics_labels_clear(w);
}

void metrics_labels_clear(struct metrics_writer *w)
{
	buffer_clear(&w->labels);
}

/* Bytes of the character at s, by RFC 3629; 0: it is none. */
static size_t utf8_length(const unsigned char *s)
{
	static const struct {
		unsigned char first, last, low, high; /* of the first and of the second byte */
		size_t n;
	} rows[] = {
		{0xc2, 0xdf, 0x80, 0xbf, 2},
		{0xe0, 0xe0, 0xa0, 0xbf, 3},
		{0xe1, 0xec, 0x80, 0xbf, 3},
		{0xed, 0xed, 0x80, 0x9f, 3},
		{0xee, 0xef, 0x80, 0xbf, 3},
		{0xf0, 0xf0, 0x90, 0xbf, 4},
		{0xf1, 0xf3, 0x80, 0xbf, 4},
		{0xf4, 0xf4, 0x80, 0x8f, 4},
	};

	if (*s < 0x80)
		return 1;
	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		if (*s < rows[i].first || *s > rows[i].last)
			continue;
		if (s[1] < rows[i].low || s[1] > rows[i].high)
			return 0;
		for (size_t k = 2; k < rows[i].n; k++)
			if ((s[k] & 0xc0) != 0x80)
				return 0;
		return rows[i].n;
	}
	return 0;
}

static void put_escaped(struct metrics_writer *w, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;

	while (*s) {
		size_t plain = 0, n;

		while (s[plain] && s[plain] < 0x80 && s[plain] != '\\' && s[plain] != '"' &&
			s[plain] != '\n')
			plain++;
		put_to(w, &w->labels, (const char *)s, plain);
		s += plain;
		if (!*s)
			return;
		n = utf8_length(s);
		if (n > 1)
			put_to(w, &w->labels, (const char *)s, n);
		else if (n == 0)
			put_to(w, &w->labels, REPLACEMENT, strlen(REPLACEMENT));
		else
			put_to(w, &w->labels, *s == '\n' ? "\\n" : *s == '"' ? "\\\"" : "\\\\", 2);
		s += n > 0 ? n : 1;
	}
}

void metrics_label(struct metrics_writer *w, const char *name, const char *value)
{
	if (w->labels.length > 0)
		put_to(w, &w->labels, ",", 1);
	put_to(w, &w->labels, name, strlen(name));
	put_to(w, &w->labels, "=\"", 2);
	put_escaped(w, value);
	put_to(w, &w->labels, "\"", 1);
}

/* --- samples --- */

static char *copy(char *to, const char *from, size_t n)
{
	memcpy(to, from, n);
	return to + n;
}

static char *copy_string(char *to, const char *from)
{
	return copy(to, from, strlen(from));
}

/* NAME_SUFFIX{LABELS,LAST="VALUE"} NUMBER: put together in place, with one look at the room, since
 * this is where the time of a document goes. */
static void put_line(struct metrics_writer *w, const char *suffix, const char *last,
	const char *last_value, const char *number, size_t number_length)
{
	size_t most = w->name_length + strlen(suffix) + w->labels.length + number_length + 16 +
		      (last ? strlen(last) + strlen(last_value) : 0);
	int r = w->error < 0 ? w->error : buffer_reserve(w->out, most);
	char *p;

	if (r < 0) {
		w->error = r;
		return;
	}
	p = copy(w->out->data + w->out->length, w->name, w->name_length);
	p = copy_string(p, suffix);
	if (w->labels.length > 0 || last) {
		*p++ = '{';
		if (w->labels.length > 0)
			p = copy(p, w->labels.data, w->labels.length);
		if (last) {
			if (w->labels.length > 0)
				*p++ = ',';
			p = copy_string(p, last);
			p = copy(p, "=\"", 2);
			p = copy_string(p, last_value);
			*p++ = '"';
		}
		*p++ = '}';
	}
	*p++ = ' ';
	p = copy(p, number, number_length);
	*p++ = '\n';
	*p = '\0';
	w->out->length = (size_t)(p - w->out->data);
}

static void put_number_line(struct metrics_writer *w, const char *suffix, const char *last,
	const char *last_value, uint64_t value)
{
	char buf[NUMBER_SIZE], *p = number_text(buf, value);

	put_line(w, suffix, last, last_value, p, (size_t)(buf + NUMBER_SIZE - p));
}

void metrics_sample(
	struct metrics_writer *w, const char *last, const char *last_value, uint64_t value)
{
	put_number_line(w, "", last, last_value, value);
}

static void put_seconds_line(struct metrics_writer *w, const char *suffix, uint64_t us)
{
	char buf[NUMBER_SIZE], text[NUMBER_SIZE + 8];
	char *whole = number_text(buf, us / 1000000);
	size_t n = (size_t)(buf + NUMBER_SIZE - whole);

	memcpy(text, whole, n);
	put_line(w, suffix, NULL, NULL, text, n + fraction_text(text + n, us % 1000000));
}

void metrics_sample_us(struct metrics_writer *w, uint64_t us)
{
	put_seconds_line(w, "", us);
}

void metrics_sample_histogram(struct metrics_writer *w, const struct histogram *h)
{
	static const char *const bounds[] = {
		"0.0005", "0.001", "0.005", "0.01", "0.05", "0.1", "0.5", "2.5"};
	uint64_t sum = 0;

	_Static_assert(ELEMENTSOF(bounds) == HISTOGRAM_BUCKETS, "a text for each bound");
	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
		sum += h->buckets[i];
		put_number_line(w, "_bucket", "le", bounds[i], sum);
	}
	put_number_line(w, "_bucket", "le", "+Inf", h->count);
	put_seconds_line(w, "_sum", h->sum_us);
	put_number_line(w, "_count", NULL, NULL, h->count);
}

void metrics_finish(struct metrics_writer *w)
{
	if (w->format == METRICS_OPENMETRICS)
		put_string(w, "# EOF\n");
}
