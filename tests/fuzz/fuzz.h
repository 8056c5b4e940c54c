#ifndef REDSHANK_TESTS_FUZZ_H
#define REDSHANK_TESTS_FUZZ_H
/*
 * What the fuzz targets share: the entry point, memory that ends exactly where the input does (so
 * that a step behind it is seen), and what any text for people has to be.
 *
 * A target whose parser is a static function includes that file whole, as "x.c": the parser stays
 * where it belongs, and what the linker then finds twice it takes once, from the target.
 */
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/cleanup.h"

#define FUZZ_SEPARATOR 0x1e /* record separator: between the parts of one input */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A copy with a NUL behind it; heap. */
static inline char *fuzz_copy(const void *data, size_t size)
{
	char *copy = malloc(size + 1);

	assert(copy);
	if (size > 0)
		memcpy(copy, data, size);
	copy[size] = '\0';
	return copy;
}

/* Takes the text up to the next separator, or all of it, off the input: heap, with a NUL. */
static inline char *fuzz_next(const uint8_t **data, size_t *size)
{
	const uint8_t *end = *size > 0 ? memchr(*data, FUZZ_SEPARATOR, *size) : NULL;
	size_t n = end ? (size_t)(end - *data) : *size;
	char *text = fuzz_copy(*data, n);

	*data += end ? n + 1 : n;
	*size -= end ? n + 1 : n;
	return text;
}

/* No byte that steers a terminal but, where `lines`, the end of a line. */
static inline void fuzz_assert_printable(const char *text, bool lines)
{
	for (const char *c = text; *c; c++)
		assert(((unsigned char)*c >= ' ' && *c != 0x7f) || (lines && *c == '\n'));
}

/* A number that is the input's own, for what is not worth a byte of it. */
static inline uint32_t fuzz_hash(const uint8_t *data, size_t size)
{
	uint32_t hash = 2166136261U; /* FNV-1a */

	for (size_t i = 0; i < size; i++)
		hash = (uint32_t)((hash ^ data[i]) * (uint64_t)16777619U);
	return hash;
}

#endif
