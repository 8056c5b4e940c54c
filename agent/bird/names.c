/*
 * The one place that knows how our protocols are called in BIRD. Pure: text in, text out. Called by
 * the fragment's text, by the commands that apply sends, and where BIRD's answers are read.
 */
#include "agent/bird/names.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define NAMES_START "redshank:"
#define NAMES_LAST ":last"

/* FNV-1a, 64 bits (http://www.isthe.com/chongo/tech/comp/fnv/), folded to 32. */
static uint32_t names_hash(const char *text)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (; *text; text++) {
		h ^= (uint8_t)*text;
		h *= UINT64_C(0x100000001b3);
	}
	return (uint32_t)(h ^ h >> 32);
}

static const char *names_build(
	char buf[NAMES_MAX], const char *service, const char *object, const char *suffix)
{
	int n;

	assert(strlen(service) <= NAMES_SERVICE_MAX);
	n = snprintf(buf, NAMES_MAX, NAMES_START "%s:%s%s", service, object, suffix);
	if (n >= NAMES_MAX)
		n = snprintf(buf, NAMES_MAX, NAMES_START "%s:%08x%s", service, names_hash(object),
			suffix);
	assert(n > 0 && n < NAMES_MAX);
	return buf;
}

const char *names_protocol(
	char buf[NAMES_MAX], const char *service, const struct prefix *prefix, bool last_resort)
{
	char address[ADDRESS_TEXT_MAX], object[PREFIX_TEXT_MAX + 1];

	address_format(&prefix->address, address);
	if (prefix_is_host(prefix))
		(void)snprintf(object, sizeof(object), "%s", address);
	else
		(void)snprintf(object, sizeof(object), "%s-%u", address, prefix->length);
	return names_build(buf, service, object, last_resort ? NAMES_LAST : "");
}

const char *names_family_protocol(
	char buf[NAMES_MAX], const char *service, enum address_family family, bool last_resort)
{
	return names_build(buf, service, family == ADDRESS_FAMILY_IPV4 ? "v4" : "v6",
		last_resort ? NAMES_LAST : "");
}

const char *names_pattern(char buf[NAMES_MAX], const char *service)
{
	return names_build(buf, service, "*", "");
}

static bool names_is_alphanumeric(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool names_service_is_valid(const char *service, size_t n)
{
	if (n == 0 || n > NAMES_SERVICE_MAX || !names_is_alphanumeric(service[0]))
		return false;
	for (size_t i = 1; i < n; i++)
		if (!names_is_alphanumeric(service[i]) && service[i] != '_' && service[i] != '-')
			return false;
	return true;
}

bool names_is_ours(const char *name)
{
	const char *service, *end;

	if (strncmp(name, NAMES_START, strlen(NAMES_START)) != 0)
		return false;
	service = name + strlen(NAMES_START);
	end = strchr(service, ':');
	return end && end[1] && names_service_is_valid(service, (size_t)(end - service));
}

bool names_is_last(const char *name)
{
	size_t n = strlen(name), last = strlen(NAMES_LAST);

	return n > last && strcmp(name + n - last, NAMES_LAST) == 0;
}

bool names_prefix(const char *name, struct prefix *ret)
{
	char text[NAMES_MAX];
	struct prefix p;
	char *dash;

	if (!names_is_ours(name) || strlen(name) >= sizeof(text))
		return false;
	(void)snprintf(text, sizeof(text), "%s", strchr(name + strlen(NAMES_START), ':') + 1);
	if (names_is_last(text))
		text[strlen(text) - strlen(NAMES_LAST)] = '\0';
	dash = strchr(text, '-');
	if (dash) {
		*dash = '/';
		return prefix_parse(text, ret, NULL) == 0;
	}
	if (address_parse(text, &p.address, NULL) < 0)
		return false;
	p.length = p.address.family == ADDRESS_FAMILY_IPV4 ? 32 : 128;
	*ret = p;
	return true;
}
