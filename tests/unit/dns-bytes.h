#ifndef REDSHANK_TESTS_DNS_BYTES_H
#define REDSHANK_TESTS_DNS_BYTES_H
/* DNS messages written byte by byte, wrong ones too. Not by ldns, which is what is tested. */
#include <check.h>
#include <stdint.h>
#include <string.h>

struct bytes {
	uint8_t data[65535];
	size_t n;
};

static inline void put(struct bytes *b, const void *data, size_t n)
{
	ck_assert_uint_le(b->n + n, sizeof(b->data));
	memcpy(b->data + b->n, data, n);
	b->n += n;
}

static inline void put8(struct bytes *b, unsigned v)
{
	uint8_t byte = (uint8_t)v;

	put(b, &byte, 1);
}

static inline void put16(struct bytes *b, unsigned v)
{
	put8(b, v >> 8);
	put8(b, v & 255);
}

/* "example.net", without escapes; "" is the root. */
static inline void put_name(struct bytes *b, const char *name)
{
	while (*name) {
		size_t n = strcspn(name, ".");

		put8(b, (unsigned)n);
		put(b, name, n);
		name += n + (name[n] == '.');
	}
	put8(b, 0);
}

static inline void put_pointer(struct bytes *b, size_t target)
{
	put16(b, 0xc000 | (unsigned)target);
}

#define DNS_QR 0x8000U
#define DNS_AA 0x0400U
#define DNS_TC 0x0200U
#define DNS_RD 0x0100U

static inline void put_header(
	struct bytes *b, unsigned id, unsigned flags, unsigned questions, unsigned answers)
{
	b->n = 0;
	put16(b, id);
	put16(b, flags);
	put16(b, questions);
	put16(b, answers);
	put16(b, 0);
	put16(b, 0);
}

static inline void put_question(struct bytes *b, const char *name, unsigned type)
{
	put_name(b, name);
	put16(b, type);
	put16(b, 1);
}

/* What follows an owner's name. */
static inline void put_rest(struct bytes *b, unsigned type, const void *rdata, size_t n)
{
	put16(b, type);
	put16(b, 1);
	put16(b, 0);
	put16(b, 60);
	put16(b, (unsigned)n);
	put(b, rdata, n);
}

#endif
