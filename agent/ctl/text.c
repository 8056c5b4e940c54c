#include "agent/ctl/text.h"

#include <assert.h>
#include <err.h>
#include <errno.h>
#include <string.h>
#include <time.h>

#include "agent/base/printable.h"

#define TEXT_LABEL 12 /* columns before labelled text */

/* There is nothing better to do without memory: said, and the end. */
static void check_memory(bool got)
{
	if (got)
		return;
	errno = ENOMEM;
	err(1, NULL);
}

void *text_allocate(size_t size)
{
	void *memory = malloc(size);

	check_memory(memory != NULL);
	return memory;
}

/* --- characters --- */

char *text_escape(const char *s)
{
	size_t n = strlen(s), size = 4 * n + 8; /* each byte may become \xNN */
	char *escaped = text_allocate(size);

	(void)printable_copy(escaped, size, s, n);
	return escaped;
}

size_t text_columns(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		if (((unsigned char)*s & 0xc0) != 0x80)
			n++;
	return n;
}

/* --- colours --- */

static const char *colour_code(enum text_colour colour)
{
	switch (colour) {
	case TEXT_PLAIN:
		return "";
	case TEXT_BOLD:
		return "\033[1m";
	case TEXT_DIM:
		return "\033[2m";
	case TEXT_GREEN:
		return "\033[32m";
	case TEXT_YELLOW:
		return "\033[33m";
	case TEXT_RED:
		return "\033[1;31m";
	}
	abort();
}

void text_colour_on(FILE *out, bool colours, enum text_colour colour)
{
	if (colours)
		(void)fputs(colour_code(colour), out);
}

void text_colour_off(FILE *out, bool colours, enum text_colour colour)
{
	if (colours && colour != TEXT_PLAIN)
		(void)fputs("\033[0m", out);
}

/* `s` is escaped already. */
static void put_escaped(FILE *out, bool colours, enum text_colour colour, const char *s)
{
	text_colour_on(out, colours, colour);
	(void)fputs(s, out);
	text_colour_off(out, colours, colour);
}

void text_put(FILE *out, bool colours, enum text_colour colour, const char *s)
{
	_cleanup_free_ char *escaped = text_escape(s);

	put_escaped(out, colours, colour, escaped);
}

static void put_spaces(FILE *out, size_t n)
{
	(void)fprintf(out, "%*s", (int)n, "");
}

/* How many bytes of s go into a line of `width` columns: up to the last space that fits. */
static size_t line_bytes(const char *s, size_t width)
{
	size_t column = 0, at_space = 0, i = 0;

	for (; s[i]; i++) {
		if (((unsigned char)s[i] & 0xc0) == 0x80)
			continue;
		if (s[i] == ' ')
			at_space = i;
		if (column++ == width)
			return at_space > 0 ? at_space : i;
	}
	return i;
}

static void put_wrapped_escaped(
	FILE *out, bool colours, enum text_colour colour, unsigned indent, const char *s)
{
	do {
		size_t n = line_bytes(s, TEXT_WIDTH - indent);
		_cleanup_free_ char *line = strndup(s, n);

		check_memory(line != NULL);
		put_spaces(out, indent);
		put_escaped(out, colours, colour, line);
		(void)fputc('\n', out);
		s += n;
		while (*s == ' ')
			s++;
	} while (*s);
}

void text_put_wrapped(
	FILE *out, bool colours, enum text_colour colour, unsigned indent, const char *s)
{
	_cleanup_free_ char *escaped = text_escape(s);

	put_wrapped_escaped(out, colours, colour, indent, escaped);
}

static int put_json_bytes(const char *bytes, size_t n, void *userdata)
{
	FILE *out = userdata;

	for (size_t i = 0; i < n; i++)
		if (bytes[i] == 0x7f ? fputs("\\u007f", out) < 0 : fputc(bytes[i], out) == EOF)
			return -1;
	return 0;
}

bool text_put_json(FILE *out, const json_t *value, size_t flags)
{
	return json_dump_callback(value, put_json_bytes, out, flags | JSON_ENSURE_ASCII) == 0;
}

bool text_put_json_line(FILE *out, const json_t *value)
{
	return text_put_json(out, value, JSON_COMPACT) && fputc('\n', out) >= 0 && fflush(out) == 0;
}

bool text_put_json_error(FILE *out, const char *text)
{
	_cleanup_free_ char *escaped = text_escape(text);
	json_auto_t *line = json_pack("{s:s}", "error", escaped);

	return line && text_put_json_line(out, line);
}

void text_put_labelled(
	FILE *out, bool colours, const char *label, enum text_colour colour, const char *s)
{
	_cleanup_free_ char *escaped = text_escape(s);
	size_t first = line_bytes(escaped, TEXT_WIDTH - TEXT_LABEL);
	_cleanup_free_ char *line = strndup(escaped, first);
	const char *rest = escaped + first + strspn(escaped + first, " ");

	check_memory(line != NULL);
	(void)fprintf(out, "  %-*s", TEXT_LABEL - 2, label);
	put_escaped(out, colours, colour, line);
	(void)fputc('\n', out);
	if (*rest)
		put_wrapped_escaped(out, colours, colour, TEXT_LABEL, rest);
}

/* --- times --- */

char *text_age(int64_t seconds)
{
	char *s = NULL;
	int n;

	if (seconds < 0)
		seconds = 0;
	if (seconds < 60)
		n = asprintf(&s, "%llds", (long long)seconds);
	else if (seconds < 3600)
		n = asprintf(&s, "%lldm", (long long)seconds / 60);
	else if (seconds < 86400)
		n = asprintf(&s, "%lldh", (long long)seconds / 3600);
	else
		n = asprintf(&s, "%lldd", (long long)seconds / 86400);
	check_memory(n >= 0);
	return s;
}

int64_t text_parse_time_ms(const char *s)
{
	struct tm tm = {0};
	const char *rest = strptime(s, "%Y-%m-%dT%H:%M:%S", &tm);
	int64_t ms = 0, unit = 100;

	if (!rest)
		return -1;
	if (*rest == '.')
		for (rest++; *rest >= '0' && *rest <= '9'; rest++, unit /= 10)
			ms += unit * (*rest - '0');
	if (strcmp(rest, "Z") != 0)
		return -1;
	return (int64_t)timegm(&tm) * 1000 + ms;
}

int64_t text_parse_time(const char *s)
{
	int64_t ms = text_parse_time_ms(s);

	return ms < 0 ? -1 : ms / 1000;
}

/* --- tables --- */

void text_table_init(struct text_table *t, size_t n_columns)
{
	assert(n_columns > 0 && n_columns <= TEXT_TABLE_COLUMNS_MAX);
	*t = (struct text_table){.n_columns = n_columns, .filled = n_columns};
}

void text_table_done(struct text_table *t)
{
	for (size_t i = 0; i < t->n_rows * t->n_columns; i++)
		free(t->cells[i].text);
	free(t->cells);
	text_table_init(t, t->n_columns);
}

void text_table_add(struct text_table *t, enum text_colour colour, bool right, const char *text)
{
	struct text_cell *cell;

	if (t->filled == t->n_columns) {
		size_t n = (t->n_rows + 1) * t->n_columns;
		struct text_cell *grown = reallocarray(t->cells, n, sizeof(*grown));

		check_memory(grown != NULL);
		memset(grown + t->n_rows * t->n_columns, 0, t->n_columns * sizeof(*grown));
		t->cells = grown;
		t->n_rows++;
		t->filled = 0;
	}
	cell = &t->cells[(t->n_rows - 1) * t->n_columns + t->filled++];
	*cell = (struct text_cell){text_escape(text), colour, right};
}

struct layout {
	size_t width[TEXT_TABLE_COLUMNS_MAX]; /* of the last column: 0, it runs on */
	size_t gap;
	size_t last_at; /* the column in which the last one starts */
	unsigned indent;
};

static size_t layout_sum(const struct text_table *t, const struct layout *l, size_t gap)
{
	size_t sum = l->indent;

	for (size_t i = 0; i + 1 < t->n_columns; i++)
		sum += l->width[i] + gap;
	return sum;
}

/* Room for the last column: its widest cell but for those so long that they are wrapped anyway. */
static size_t layout_last(const struct text_table *t)
{
	size_t widest = 0;

	for (size_t row = 0; row < t->n_rows; row++) {
		size_t n = text_columns(t->cells[(row + 1) * t->n_columns - 1].text);

		if (n > widest && n <= 16)
			widest = n;
	}
	return widest;
}

static void layout_make(struct layout *l, const struct text_table *t, unsigned indent)
{
	size_t last = layout_last(t), sum;

	*l = (struct layout){.gap = 2, .indent = indent};
	for (size_t i = 0; i < t->n_rows * t->n_columns; i++) {
		size_t column = i % t->n_columns, n = text_columns(t->cells[i].text);

		if (column + 1 < t->n_columns && n > l->width[column])
			l->width[column] = n;
	}
	if (layout_sum(t, l, l->gap) + last > TEXT_WIDTH)
		l->gap = 1;
	sum = layout_sum(t, l, l->gap);
	if (sum + last > TEXT_WIDTH) {
		size_t excess = sum + last - TEXT_WIDTH;

		l->width[0] = l->width[0] > excess + 8 ? l->width[0] - excess : 8;
	}
	l->last_at = layout_sum(t, l, l->gap);
}

static void print_last(const struct text_cell *cell, FILE *out, bool colours,
	const struct layout *l, size_t pending)
{
	if (l->last_at + text_columns(cell->text) <= TEXT_WIDTH) {
		if (cell->text[0]) {
			put_spaces(out, pending);
			put_escaped(out, colours, cell->colour, cell->text);
		}
		(void)fputc('\n', out);
		return;
	}
	(void)fputc('\n', out);
	put_wrapped_escaped(out, colours, cell->colour, l->indent + 4, cell->text);
}

void text_table_print(const struct text_table *t, FILE *out, bool colours, unsigned indent)
{
	struct layout l;

	layout_make(&l, t, indent);
	for (size_t row = 0; row < t->n_rows; row++) {
		const struct text_cell *cells = &t->cells[row * t->n_columns];
		size_t pending = indent; /* spaces that are due before the next text */

		for (size_t i = 0; i + 1 < t->n_columns; i++) {
			size_t n = text_columns(cells[i].text);
			bool overflows = i == 0 && n > l.width[0];
			size_t rest = overflows ? 0 : l.width[i] - n;

			if (cells[i].right)
				pending += rest;
			if (n > 0) {
				put_spaces(out, pending);
				put_escaped(out, colours, cells[i].colour, cells[i].text);
				pending = 0;
			}
			if (overflows) {
				(void)fputc('\n', out);
				pending = indent + l.width[0];
			} else if (!cells[i].right) {
				pending += rest;
			}
			pending += l.gap;
		}
		print_last(&cells[t->n_columns - 1], out, colours, &l, pending);
	}
}
