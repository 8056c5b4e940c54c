#ifndef REDSHANK_BASE_ADDRESS_H
#define REDSHANK_BASE_ADDRESS_H
/* Addresses and prefixes as values. The struct alone is used by core/, the functions by others. */
#include <stdbool.h>
#include <stdint.h>

#include "agent/base/error.h"

enum address_family {
	ADDRESS_FAMILY_IPV4 = 4,
	ADDRESS_FAMILY_IPV6 = 6,
};

struct address {
	enum address_family family;
	uint8_t bytes[16]; /* network order; an IPv4 address uses the first four, the rest are 0 */
};

/* A prefix as BIRD announces it. Bits behind `length` are 0. */
struct prefix {
	struct address address;
	uint8_t length; /* bits, 0 to 32 or 0 to 128 */
};

#define ADDRESS_TEXT_MAX 46 /* INET6_ADDRSTRLEN */
#define PREFIX_TEXT_MAX (ADDRESS_TEXT_MAX + 4)

/* Literals only, as inet_pton(3) reads them. 0, or -EINVAL with the text. */
int address_parse(const char *text, struct address *ret, struct error *ret_error);
const char *address_format(const struct address *a, char buf[ADDRESS_TEXT_MAX]);
bool address_equal(const struct address *a, const struct address *b);

/* "192.0.2.53/32". The length is required, and host bits must be 0. 0, or -EINVAL with the text. */
int prefix_parse(const char *text, struct prefix *ret, struct error *ret_error);
const char *prefix_format(const struct prefix *p, char buf[PREFIX_TEXT_MAX]);
bool prefix_equal(const struct prefix *a, const struct prefix *b);
bool prefix_contains(const struct prefix *p, const struct address *a);
/* True for a /32 or /128. */
bool prefix_is_host(const struct prefix *p);

#endif
