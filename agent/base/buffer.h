#ifndef REDSHANK_BASE_BUFFER_H
#define REDSHANK_BASE_BUFFER_H
/*
 * A buffer that grows up to a stated maximum. Whatever outsiders can make grow goes through one of
 * these: past the maximum an append fails with -E2BIG and leaves the buffer as it was.
 * The data is always followed by a NUL that does not count as length.
 */
#include <stddef.h>

#include "agent/base/cleanup.h"

struct buffer {
	char *data; /* owned; NULL until the first append */
	size_t length;
	size_t allocated;
	size_t maximum;
};

void buffer_init(struct buffer *b, size_t maximum);
/* Uses `memory`, `size` bytes of the caller's, and no other: no append needs memory. Not to be
 * released with buffer_done(). */
void buffer_init_fixed(struct buffer *b, char *memory, size_t size);
void buffer_done(struct buffer *b);
/* Forgets the data and keeps the memory. */
void buffer_clear(struct buffer *b);
/* Drops the first n bytes. n <= length. */
void buffer_consume(struct buffer *b, size_t n);
/* Room for n more bytes: to append them cannot fail. 0, -E2BIG past the maximum, -ENOMEM. */
int buffer_reserve(struct buffer *b, size_t n);
/* 0, -E2BIG past the maximum, -ENOMEM. */
int buffer_append(struct buffer *b, const void *data, size_t n);
int buffer_append_string(struct buffer *b, const char *s);
int buffer_printf(struct buffer *b, const char *format, ...) _printf_(2, 3);
/* The data as a string, "" when empty. Valid until the next change. */
const char *buffer_string(const struct buffer *b);

/* For a local; declare it with `= { 0 }`, so that a return before buffer_init() releases nothing.
 */
#define _cleanup_buffer_ _cleanup_(buffer_done)

#endif
