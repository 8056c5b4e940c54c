#include "agent/base/buffer.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>

void buffer_init(struct buffer *b, size_t maximum)
{
	*b = (struct buffer){.maximum = maximum};
}

void buffer_init_fixed(struct buffer *b, char *memory, size_t size)
{
	assert(size > 0);
	memory[0] = '\0';
	*b = (struct buffer){.data = memory, .allocated = size, .maximum = size - 1};
}

void buffer_done(struct buffer *b)
{
	free(b->data);
	buffer_init(b, b->maximum);
}

void buffer_clear(struct buffer *b)
{
	b->length = 0;
	if (b->data)
		b->data[0] = '\0';
}

void buffer_consume(struct buffer *b, size_t n)
{
	assert(n <= b->length);
	if (n == 0)
		return;
	memmove(b->data, b->data + n, b->length - n + 1);
	b->length -= n;
}

int buffer_reserve(struct buffer *b, size_t n)
{
	size_t want;
	char *grown;

	if (n > b->maximum - b->length)
		return -E2BIG;
	if (b->length + n + 1 <= b->allocated)
		return 0;
	want = b->allocated ? b->allocated : 256;
	while (want < b->length + n + 1)
		want *= 2;
	if (want > b->maximum + 1)
		want = b->maximum + 1;
	grown = realloc(b->data, want);
	if (!grown)
		return -ENOMEM;
	b->data = grown;
	b->allocated = want;
	return 0;
}

int buffer_append(struct buffer *b, const void *data, size_t n)
{
	int r = buffer_reserve(b, n);

	if (r < 0)
		return r;
	if (n > 0)
		memcpy(b->data + b->length, data, n);
	b->length += n;
	b->data[b->length] = '\0';
	return 0;
}

int buffer_append_string(struct buffer *b, const char *s)
{
	return buffer_append(b, s, strlen(s));
}

int buffer_printf(struct buffer *b, const char *format, ...)
{
	va_list ap;
	int n, r;

	va_start(ap, format);
	n = vsnprintf(NULL, 0, format, ap);
	va_end(ap);
	if (n < 0)
		return -EINVAL;
	r = buffer_reserve(b, (size_t)n);
	if (r < 0)
		return r;
	va_start(ap, format);
	(void)vsnprintf(b->data + b->length, (size_t)n + 1, format, ap);
	va_end(ap);
	b->length += (size_t)n;
	return 0;
}

const char *buffer_string(const struct buffer *b)
{
	return b->data ? b->data : "";
}
