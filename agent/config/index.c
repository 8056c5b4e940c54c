/*
 * Prefixes as keys of objects. JSON tells "2001:db8::53/128" from "2001:DB8:0::53/128"; people and
 * BIRD do not, so prefixes are compared as what they are.
 */
#include "agent/config/index.h"

#include <string.h>

bool index_add(struct index *ix, struct report *r, const struct index_entry *entry)
{
	struct index_entry *grown;

	if (ix->n == ix->allocated) {
		size_t want = ix->allocated ? 2 * ix->allocated : 64;

		grown = reallocarray(ix->entries, want, sizeof(*grown));
		if (!grown)
			return report_no_memory(r);
		ix->entries = grown;
		ix->allocated = want;
	}
	ix->entries[ix->n] = *entry;
	ix->entries[ix->n].order = ix->n;
	ix->n++;
	return true;
}

static int compare_prefixes(const struct prefix *a, const struct prefix *b)
{
	if (a->address.family != b->address.family)
		return a->address.family < b->address.family ? -1 : 1;
	if (a->length != b->length)
		return a->length < b->length ? -1 : 1;
	return memcmp(a->address.bytes, b->address.bytes, sizeof(a->address.bytes));
}

static int compare_entries(const void *a, const void *b)
{
	const struct index_entry *x = a, *y = b;
	int c = compare_prefixes(&x->prefix, &y->prefix);

	if (c != 0)
		return c;
	return x->order < y->order ? -1 : x->order > y->order;
}

void index_sort(struct index *ix)
{
	if (ix->n > 0)
		qsort(ix->entries, ix->n, sizeof(*ix->entries), compare_entries);
}

const struct index_entry *index_find(const struct index *ix, const struct prefix *prefix)
{
	size_t low = 0, high = ix->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int c = compare_prefixes(&ix->entries[middle].prefix, prefix);

		if (c == 0)
			return &ix->entries[middle];
		if (c < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

void index_done(struct index *ix)
{
	free(ix->entries);
	*ix = (struct index){0};
}

/*
 * Why BIRD would take the prefix into a static protocol and then ignore it ("Ignoring bogus route",
 * seen with 2.0.12; nest/rt-table.c, lib/ip.c: ip4_classify, ip6_classify), or NULL. A length of 0
 * it would announce: that is the default route, and never an anycast service.
 */
static const char *unannounceable(const struct prefix *p)
{
	static const uint8_t zero[15];
	const uint8_t *b = p->address.bytes;

	if (p->length == 0)
		return "this is the default route";
	if (p->address.family == ADDRESS_FAMILY_IPV4) {
		if (b[0] == 0 || memcmp(b, "\xff\xff\xff\xff", 4) == 0)
			return "BIRD ignores it as no host's address";
		if (b[0] == 127)
			return "BIRD never announces loopback addresses";
		return b[0] >= 224 && b[0] < 240 ? "BIRD never announces multicast addresses"
						 : NULL;
	}
	if (b[0] == 0xff)
		return "BIRD never announces multicast addresses";
	if (b[0] == 0xfe && (b[1] & 0xc0) == 0x80)
		return "BIRD never announces link-local addresses";
	if (memcmp(b, zero, 15) == 0 && b[15] <= 1 && p->length == 128)
		return "BIRD never announces loopback addresses";
	return memcmp(b, zero, 12) == 0 && b[12] == 127 ? "BIRD never announces loopback addresses"
							: NULL;
}

/* The key's address without its host bits, or with the length that is missing, as a hint. "" where
 * no address can be made out. */
static void hint_for(const char *key, char *buf, size_t size)
{
	char text[ADDRESS_TEXT_MAX], network[PREFIX_TEXT_MAX];
	const char *slash = strchrnul(key, '/');
	struct prefix host = {0}, net;
	unsigned full, length;

	buf[0] = '\0';
	if ((size_t)(slash - key) >= sizeof(text))
		return;
	memcpy(text, key, (size_t)(slash - key));
	text[slash - key] = '\0';
	if (address_parse(text, &host.address, NULL) < 0)
		return;
	full = host.address.family == ADDRESS_FAMILY_IPV4 ? 32 : 128;
	length = *slash ? (unsigned)strtoul(slash + 1, NULL, 10) : full;
	if (!*slash || length >= full) {
		(void)snprintf(buf, size, "; did you mean \"%s/%u\"?", text, full);
		return;
	}
	net = host;
	net.length = (uint8_t)length;
	for (unsigned bit = length; bit < full; bit++)
		net.address.bytes[bit / 8] &= (uint8_t) ~(0x80U >> bit % 8);
	(void)snprintf(buf, size, "; did you mean the host \"%s/%u\" or the network \"%s\"?", text,
		full, prefix_format(&net, network));
}

bool index_parse_key(struct report *r, const struct path *path, struct prefix *ret)
{
	char shown[VALUE_TEXT_MAX], hint[200];
	static const char word[] = "expected ";
	const char *why, *expected;
	struct prefix prefix;
	struct error error;

	if (prefix_parse(path->key, &prefix, &error) < 0) {
		expected = error.text;
		if (strncmp(expected, word, strlen(word)) == 0)
			expected += strlen(word);
		hint_for(path->key, hint, sizeof(hint));
		report_got(r, path, text_format(path->key, shown), "%s%s", expected, hint);
		return false;
	}
	why = unannounceable(&prefix);
	if (why) {
		report_got(r, path, text_format(path->key, shown), "an anycast prefix; %s", why);
		return false;
	}
	*ret = prefix;
	return true;
}
