/*
 * libFuzzer target of the words that many keys and requests hold: addresses, prefixes, durations,
 * ADDRESS:PORT, names that are looked for.
 *
 * Besides what the sanitizers see: what was read prints, and the print reads back as the same.
 */
#include "agent/base/printable.h"
#include "agent/config/duration.h"
#include "agent/config/nearest.h"
#include "agent/system/tcp.h"
#include "agent/base/address.h"
#include "tests/fuzz/fuzz.h"

static void addresses(const char *text)
{
	char address_text[ADDRESS_TEXT_MAX], prefix_text[PREFIX_TEXT_MAX];
	struct error error = {""};
	struct address a, b;
	struct prefix p, q;

	if (address_parse(text, &a, &error) == 0) {
		assert(address_parse(address_format(&a, address_text), &b, NULL) == 0);
		assert(address_equal(&a, &b));
	} else {
		assert(error.text[0]);
	}
	if (prefix_parse(text, &p, &error) == 0) {
		assert(prefix_parse(prefix_format(&p, prefix_text), &q, NULL) == 0);
		assert(prefix_equal(&p, &q) && prefix_contains(&p, &p.address));
	}
}

static void sockets(const char *text)
{
	struct sockaddr_storage a = {0}, b = {0};
	char printed[TCP_TEXT_MAX];
	socklen_t n = 0, m = 0;

	if (tcp_address(text, &a, &n) < 0)
		return;
	assert(tcp_address(tcp_format(&a, printed), &b, &m) == 0 && n == m);
	assert(tcp_same_host(&a, &b) && tcp_is_loopback(&a) == tcp_is_loopback(&b));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *text = fuzz_copy(data, size);
	char printed[DURATION_TEXT_MAX], small[8 + 64];
	size_t room = 8 + fuzz_hash(data, size) % 64;
	struct nearest nearest;
	uint64_t ms, again;

	addresses(text);
	sockets(text);
	if (duration_parse(text, &ms) == 0) {
		assert(ms <= DURATION_MS_MAX);
		assert(duration_parse(duration_format(ms, printed), &again) == 0 && ms == again);
	}
	nearest_init(&nearest, text);
	nearest_offer(&nearest, "interval");
	nearest_offer(&nearest, text);
	fuzz_assert_printable(printable_copy(small, room, text, size), false);
	assert(strlen(small) < room);
	return 0;
}
