#ifndef REDSHANK_STATUS_JSON_H
#define REDSHANK_STATUS_JSON_H
/*
 * Writes JSON text (RFC 8259) straight into a buffer, indented by two spaces, or on
 * one line.
 *
 * A document of 5,000 prefixes is written while the agent's loop waits for it, so no tree is built
 * for it first. Commas and closing brackets are the writer's; the caller only says what comes next.
 * Text from outside is made valid: what is not UTF-8 (RFC 3629) becomes U+FFFD, control characters
 * are escaped. The first failure sticks and is told by json_writer_error(). No name here may be one
 * of jansson's (json_string, json_null, ...), which lives in the same program.
 */
#include <stdbool.h>
#include <stdint.h>

#include "agent/base/buffer.h"

#define JSON_DEPTH_MAX 12

struct json_writer {
	struct buffer *out; /* borrowed */
	int error;
	unsigned depth;
	bool one_line;
	bool closer_is_array[JSON_DEPTH_MAX];
	bool has_member[JSON_DEPTH_MAX + 1];
};

void json_writer_init(struct json_writer *w, struct buffer *out);
/* The same, all on one line. */
void json_writer_init_line(struct json_writer *w, struct buffer *out);
/* 0, -E2BIG, -ENOMEM. */
int json_writer_error(const struct json_writer *w);

/* `key` is NULL inside an array and for the outermost value. */
void json_open_object(struct json_writer *w, const char *key);
/* An array is written on one line: it holds short words. */
void json_open_array(struct json_writer *w, const char *key);
/* Closes the innermost object or array. */
void json_close(struct json_writer *w);

/* NULL is null. */
void json_write_string(struct json_writer *w, const char *key, const char *value);
void json_write_number(struct json_writer *w, const char *key, uint64_t value);
/* Thousandths, as a number without zeros at its end: 1500 is 1.5. */
void json_write_milli(struct json_writer *w, const char *key, uint64_t milli);
void json_write_bool(struct json_writer *w, const char *key, bool value);
void json_write_null(struct json_writer *w, const char *key);

#endif
