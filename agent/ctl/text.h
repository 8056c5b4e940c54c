#ifndef REDSHANK_CTL_TEXT_H
#define REDSHANK_CTL_TEXT_H
/*
 * Text for a terminal of 80 columns: cells, tables, escaped strings, times as people say them.
 * Whatever the agent tells may come from a stranger (an exec check's output, BIRD's messages): it
 * passes text_escape() before it meets a terminal.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "agent/base/cleanup.h"

#define TEXT_WIDTH 80

enum text_colour {
	TEXT_PLAIN,
	TEXT_BOLD,
	TEXT_DIM,
	TEXT_GREEN,
	TEXT_YELLOW,
	TEXT_RED,
};

/*
 * A copy in which what could steer a terminal is visible: control characters (also DEL and the C1
 * ones), what turns the direction of writing, and what is not UTF-8, each byte as \xNN. Heap; exits
 * with a message when there is no memory, as every function here.
 */
char *text_escape(const char *s);
/* Columns of escaped text, one for each character. */
size_t text_columns(const char *s);

void text_colour_on(FILE *out, bool colours, enum text_colour colour);
void text_colour_off(FILE *out, bool colours, enum text_colour colour);
/* Writes escaped `s` in a colour. */
void text_put(FILE *out, bool colours, enum text_colour colour, const char *s);
/* Writes escaped `s`, broken at spaces so that no line passes TEXT_WIDTH where that is possible.
 * Each line starts with `indent` spaces and ends with a newline. */
void text_put_wrapped(
	FILE *out, bool colours, enum text_colour colour, unsigned indent, const char *s);

/* The same with a label before the first line, all lines behind the longest of the labels. */
void text_put_labelled(
	FILE *out, bool colours, const char *label, enum text_colour colour, const char *s);

/* A value as JSON for programs that, unlike jansson's own, holds no byte that a terminal would take
 * for more than a letter: ASCII, and DEL as \u007f. `flags` are jansson's. False where `out` fails.
 */
bool text_put_json(FILE *out, const json_t *value, size_t flags);
/* The same on a line of its own, which is flushed: of a stream, whose reader waits for it. */
bool text_put_json_line(FILE *out, const json_t *value);
/* Such a line that is {"error": TEXT}, whatever the bytes of `text` are. */
bool text_put_json_error(FILE *out, const char *text);

/* Never NULL: exits with a message when there is no memory. */
void *text_allocate(size_t size);

/* "12s", "3m", "5h", "2d": one unit, rounded down; heap. */
char *text_age(int64_t seconds);
/* Parses RFC 3339 in UTC ("2026-11-30T03:12:44.120Z"); seconds since the epoch, or -1. */
int64_t text_parse_time(const char *s);
/* The same in milliseconds. */
int64_t text_parse_time_ms(const char *s);

#define TEXT_TABLE_COLUMNS_MAX 8

struct text_cell {
	char *text; /* owned, escaped */
	enum text_colour colour;
	bool right; /* aligned */
};

/* Rows of cells under a head; columns are as wide as their widest cell. */
struct text_table {
	size_t n_columns;
	size_t n_rows;
	struct text_cell *cells; /* owned; n_rows * n_columns */
	size_t filled;		 /* cells of the last row that are set */
};

void text_table_init(struct text_table *t, size_t n_columns);
void text_table_done(struct text_table *t);
#define _cleanup_text_table_ _cleanup_(text_table_done)
/* The next cell, from left to right, row by row. `text` is escaped and copied. */
void text_table_add(struct text_table *t, enum text_colour colour, bool right, const char *text);
/*
 * Prints the rows, each line indented. Columns stand two spaces apart, or one where the table would
 * not fit otherwise. A first cell too long even then has a line of its own, its row below it; a
 * last cell that does not fit is wrapped on lines of its own.
 */
void text_table_print(const struct text_table *t, FILE *out, bool colours, unsigned indent);

#endif
