#include "agent/base/address.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <string.h>

int address_parse(const char *text, struct address *ret, struct error *ret_error)
{
	struct address a = {.family = ADDRESS_FAMILY_IPV4};

	if (inet_pton(AF_INET, text, a.bytes) == 1) {
		*ret = a;
		return 0;
	}
	a = (struct address){.family = ADDRESS_FAMILY_IPV6};
	if (inet_pton(AF_INET6, text, a.bytes) == 1) {
		*ret = a;
		return 0;
	}
	return error_set(ret_error, EINVAL,
		"expected an IPv4 or IPv6 address literal, such as 192.0.2.53 or 2001:db8::53");
}

const char *address_format(const struct address *a, char buf[ADDRESS_TEXT_MAX])
{
	int family = a->family == ADDRESS_FAMILY_IPV4 ? AF_INET : AF_INET6;
	const char *text = inet_ntop(family, a->bytes, buf, ADDRESS_TEXT_MAX);

	assert(text);
	return buf;
}

bool address_equal(const struct address *a, const struct address *b)
{
	return a->family == b->family && memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

static uint8_t prefix_full_length(enum address_family family)
{
	return family == ADDRESS_FAMILY_IPV4 ? 32 : 128;
}

/* True when a and b agree in their first `length` bits. */
static bool bits_equal(const uint8_t *a, const uint8_t *b, unsigned length)
{
	unsigned rest = length % 8;

	if (memcmp(a, b, length / 8) != 0)
		return false;
	if (rest == 0)
		return true;
	return (a[length / 8] ^ b[length / 8]) >> (8 - rest) == 0;
}

static bool host_bits_clear(const struct prefix *p)
{
	for (unsigned bit = p->length; bit < prefix_full_length(p->address.family); bit++)
		if (p->address.bytes[bit / 8] & (0x80U >> bit % 8))
			return false;
	return true;
}

int prefix_parse(const char *text, struct prefix *ret, struct error *ret_error)
{
	char address[ADDRESS_TEXT_MAX];
	const char *slash = strchr(text, '/');
	struct prefix p = {0};
	unsigned length = 0;
	const char *c;

	if (!slash)
		return error_set(ret_error, EINVAL,
			"expected a length behind the address, such as 192.0.2.53/32 or "
			"2001:db8::53/128");
	if ((size_t)(slash - text) >= sizeof(address))
		return error_set(ret_error, EINVAL, "expected an address and a length");
	memcpy(address, text, (size_t)(slash - text));
	address[slash - text] = '\0';
	if (address_parse(address, &p.address, ret_error) < 0)
		return -EINVAL;
	for (c = slash + 1; *c >= '0' && *c <= '9' && c - slash <= 3; c++)
		length = length * 10 + (unsigned)(*c - '0');
	if (c == slash + 1 || *c != '\0' || (slash[1] == '0' && slash[2] != '\0') ||
		length > prefix_full_length(p.address.family))
		return error_set(ret_error, EINVAL, "expected a length from 0 to %u",
			prefix_full_length(p.address.family));
	p.length = (uint8_t)length;
	if (!host_bits_clear(&p))
		return error_set(
			ret_error, EINVAL, "expected no bits set behind the first %u", length);
	*ret = p;
	return 0;
}

const char *prefix_format(const struct prefix *p, char buf[PREFIX_TEXT_MAX])
{
	char address[ADDRESS_TEXT_MAX];

	(void)snprintf(
		buf, PREFIX_TEXT_MAX, "%s/%u", address_format(&p->address, address), p->length);
	return buf;
}

bool prefix_equal(const struct prefix *a, const struct prefix *b)
{
	return a->length == b->length && address_equal(&a->address, &b->address);
}

bool prefix_contains(const struct prefix *p, const struct address *a)
{
	return p->address.family == a->family && bits_equal(p->address.bytes, a->bytes, p->length);
}

bool prefix_is_host(const struct prefix *p)
{
	return p->length == prefix_full_length(p->address.family);
}
