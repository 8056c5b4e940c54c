/*
 * The addresses of this host, in a network namespace of its own and with the real ip(8): come, go,
 * twice the same, tentative and dadfailed, and a kernel that has more to say than we read (A23).
 */
#include "agent/system/addresses.h"

#include <check.h>
#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/system/address_change.h"
#include "agent/system/log.h"
#include "tests/unit/cost.h"
#include "tests/unit/descriptors.h"
#include "tests/unit/loop.h"

static sd_event *event;
static struct addresses *addresses;
static unsigned n_changed;

static void changed(void *userdata)
{
	n_changed++;
}

static void ip(const char *arguments)
{
	char line[256];

	(void)snprintf(line, sizeof(line), "ip %s", arguments);
	ck_assert_msg(system(line) == 0, "%s", line);
}

static void setup(void)
{
	log_init(LOG_CRIT, true);
	n_changed = 0;
	ck_assert_int_eq(unshare(CLONE_NEWNET), 0);
	ip("link set lo up");
	ck_assert_int_ge(sd_event_new(&event), 0);
	ck_assert_int_eq(addresses_new(&addresses, event, changed, NULL), 0);
}

static void teardown(void)
{
	addresses_free(addresses);
	addresses = NULL;
	event = sd_event_unref(event);
}

static enum addresses_answer in(const char *text)
{
	struct prefix p;

	ck_assert_int_eq(prefix_parse(text, &p, NULL), 0);
	return addresses_in(addresses, &p);
}

static void expect(const char *prefix, enum addresses_answer answer)
{
	ck_assert_msg(LOOP_UNTIL(event, in(prefix) == answer, 3000), "%s is %d, expected %d",
		prefix, (int)in(prefix), (int)answer);
}

START_TEST (what_is_there_at_the_start) {
	ck_assert_int_eq(in("127.0.0.1/32"), ADDRESSES_PRESENT);
	ck_assert_int_eq(in("127.0.0.0/8"), ADDRESSES_PRESENT);
	ck_assert_int_eq(in("::1/128"), ADDRESSES_PRESENT);
	ck_assert_int_eq(in("192.0.2.53/32"), ADDRESSES_MISSING);
	/* An address does not hold what its length spans. */
	ck_assert_int_eq(in("127.0.0.2/32"), ADDRESSES_MISSING);
	ck_assert_int_eq(in("0.0.0.0/0"), ADDRESSES_PRESENT);
	ck_assert_int_eq(in("::/0"), ADDRESSES_PRESENT);
	ck_assert_int_eq(in("255.255.255.255/32"), ADDRESSES_MISSING);
}
END_TEST

START_TEST (it_comes_and_goes) {
	ip("addr add 192.0.2.53/32 dev lo");
	expect("192.0.2.53/32", ADDRESSES_PRESENT);
	ck_assert_uint_eq(n_changed, 1);
	ck_assert_int_eq(in("192.0.2.0/24"), ADDRESSES_PRESENT);
	ck_assert_int_eq(in("192.0.2.52/32"), ADDRESSES_MISSING);
	ck_assert_int_eq(in("192.0.2.54/32"), ADDRESSES_MISSING);
	ip("addr del 192.0.2.53/32 dev lo");
	expect("192.0.2.53/32", ADDRESSES_MISSING);
	ck_assert_uint_eq(n_changed, 2);
	ip("addr add 2001:db8::53/128 dev lo nodad");
	expect("2001:db8::53/128", ADDRESSES_PRESENT);
	ck_assert_int_eq(in("2001:db8::/32"), ADDRESSES_PRESENT);
	ip("addr del 2001:db8::53/128 dev lo");
	expect("2001:db8::53/128", ADDRESSES_MISSING);
}
END_TEST

START_TEST (the_interface_does_not_matter) {
	ip("link add v0 type veth peer name v1");
	ip("addr add 192.0.2.53/32 dev lo");
	ip("addr add 192.0.2.53/32 dev v0");
	ip("addr add 192.0.2.53/24 dev v0");
	expect("192.0.2.53/32", ADDRESSES_PRESENT);
	ip("addr del 192.0.2.53/32 dev lo");
	ip("addr del 192.0.2.53/24 dev v0");
	LOOP_FOR(event, 50);
	ck_assert_int_eq(in("192.0.2.53/32"), ADDRESSES_PRESENT);
	ip("link del v0");
	expect("192.0.2.53/32", ADDRESSES_MISSING);
}
END_TEST

/* With a peer, the peer's address is not ours. */
START_TEST (a_point_to_point_peer) {
	ip("link add v0 type veth peer name v1");
	ip("addr add 192.0.2.1 peer 192.0.2.2 dev v0");
	ip("addr add 2001:db8::1 peer 2001:db8::2 dev v0 nodad");
	expect("192.0.2.1/32", ADDRESSES_PRESENT);
	expect("2001:db8::1/128", ADDRESSES_PRESENT);
	ck_assert_int_eq(in("192.0.2.2/32"), ADDRESSES_MISSING);
	ck_assert_int_eq(in("2001:db8::2/128"), ADDRESSES_MISSING);
	/* The kernel has it once for each peer. */
	ip("addr add 192.0.2.1 peer 192.0.2.3 dev v0");
	ip("addr del 192.0.2.1 peer 192.0.2.2 dev v0");
	ip("addr add 192.0.2.4/32 dev v0");
	expect("192.0.2.4/32", ADDRESSES_PRESENT);
	ck_assert_int_eq(in("192.0.2.1/32"), ADDRESSES_PRESENT);
	ip("addr del 192.0.2.1 peer 192.0.2.3 dev v0");
	expect("192.0.2.1/32", ADDRESSES_MISSING);
}
END_TEST

START_TEST (tentative_then_usable) {
	ip("link add v0 type veth peer name v1");
	ip("link set v0 up");
	ip("link set v1 up");
	ip("addr add 2001:db8::53/64 dev v0");
	LOOP_FOR(event, 30);
	ck_assert_int_eq(in("2001:db8::53/128"), ADDRESSES_MISSING);
	expect("2001:db8::53/128", ADDRESSES_PRESENT);
}
END_TEST

START_TEST (dadfailed) {
	ip("link add v0 type veth peer name v1");
	ip("link set v0 up");
	ip("link set v1 up");
	ip("addr add 2001:db8::53/64 dev v1 nodad");
	expect("2001:db8::53/128", ADDRESSES_PRESENT);
	ip("addr add 2001:db8::53/64 dev v0");
	ck_assert(
		LOOP_UNTIL(event, system("ip -6 addr show dev v0 | grep -q dadfailed") == 0, 5000));
	ip("addr del 2001:db8::53/64 dev v1");
	expect("2001:db8::53/128", ADDRESSES_MISSING);
	/* A dump says the same as the changes. */
	addresses_free(addresses);
	ck_assert_int_eq(addresses_new(&addresses, event, changed, NULL), 0);
	ck_assert_int_eq(in("2001:db8::53/128"), ADDRESSES_MISSING);
}
END_TEST

static struct address address_of(const char *text)
{
	struct address a;

	ck_assert_int_eq(address_parse(text, &a, NULL), 0);
	return a;
}

static bool is_usable(const struct address *a, uint32_t interface)
{
	struct addresses_held held;

	addresses_held(addresses, a, interface, &held);
	return held.here_usable;
}

/* What we add has our mark, whoever asks, and is told from what others have added beside it. */
START_TEST (ours_and_others) {
	static const char *const texts[] = {"192.0.2.53", "2001:db8::53"};
	uint32_t lo = if_nametoindex("lo");
	struct address none;

	for (size_t i = 0; i < 2; i++) {
		const struct address a = address_of(texts[i]);
		struct addresses_held held;
		struct addresses_place place;
		char line[80];
		size_t at = 0;

		ck_assert_int_eq(address_change_add(&a, lo), 0);
		ck_assert_int_eq(address_change_add(&a, lo), -EEXIST);
		/* IPv6 tells of it a moment later. */
		ck_assert(addresses_await(addresses, 2000));
		ck_assert(LOOP_UNTIL(event, is_usable(&a, lo), 2000));
		addresses_held(addresses, &a, lo, &held);
		ck_assert(held.known && held.here && held.here_usable && held.ours);
		ck_assert(!held.others && !held.ours_apart);
		addresses_held(addresses, &a, lo + 1, &held);
		ck_assert(!held.here && held.ours && held.ours_apart);
		ck_assert(addresses_marked(addresses, &at, &place));
		ck_assert(address_equal(&place.address, &a) && place.interface == lo);
		ck_assert(!addresses_marked(addresses, &at, &place));
		/* A dump says the same as the changes. */
		addresses_free(addresses);
		ck_assert_int_eq(addresses_new(&addresses, event, changed, NULL), 0);
		addresses_held(addresses, &a, lo, &held);
		ck_assert(held.here_usable && held.ours && !held.others);
		ck_assert_int_eq(address_change_remove(&place), 0);
		ck_assert_int_eq(address_change_remove(&place), -EADDRNOTAVAIL);
		ck_assert(LOOP_UNTIL(event, !is_usable(&a, lo), 2000));
		ck_assert(!addresses_await(addresses, 0));
		(void)snprintf(
			line, sizeof(line), "addr add %s dev lo%s", texts[i], i ? " nodad" : "");
		ip(line);
		ck_assert(LOOP_UNTIL(event, is_usable(&a, lo), 2000));
		addresses_held(addresses, &a, lo, &held);
		ck_assert(held.here && held.others && !held.ours);
	}
	none = address_of("192.0.2.1");
	ck_assert_int_eq(address_change_add(&none, 4711), -ENODEV);
}
END_TEST

static void batch(const char *verb, unsigned n)
{
	FILE *f = popen("ip -batch -", "we");

	ck_assert_ptr_nonnull(f);
	for (unsigned i = 0; i < n; i++)
		(void)fprintf(f, "addr %s 10.0.%u.%u/32 dev lo\n", verb, i / 256, i % 256);
	ck_assert_int_eq(pclose(f), 0);
}

static void looked_up(unsigned n)
{
	struct prefix p = {.address.family = ADDRESS_FAMILY_IPV4, .length = 32};

	p.address.bytes[0] = 10;
	for (unsigned i = 0; i < n; i++) {
		p.address.bytes[2] = (uint8_t)(i / 256);
		p.address.bytes[3] = (uint8_t)(i % 256);
		ck_assert(addresses_in(addresses, &p) == ADDRESSES_PRESENT);
	}
}

/* 6,000 changes while nobody reads: the socket overflows, and a dump makes up for it. */
START_TEST (lost_changes) {
	uint64_t few_ns, many_ns;

	batch("add", 6000);
	expect("10.0.23.111/32", ADDRESSES_PRESENT);
	ck_assert_int_eq(in("10.0.23.112/32"), ADDRESSES_MISSING);
	many_ns = cost_ns(looked_up, 500);
	batch("del", 6000);
	expect("10.0.0.0/16", ADDRESSES_MISSING);
	batch("add", 500);
	expect("10.0.1.243/32", ADDRESSES_PRESENT);
	few_ns = cost_ns(looked_up, 500);
	/* Looked for one after the other it would be twelve times as much. */
	ck_assert_msg(many_ns < 4 * few_ns, "%llu ns, and %llu ns among 6,000",
		(unsigned long long)few_ns, (unsigned long long)many_ns);
	batch("del", 500);
	expect("10.0.0.0/16", ADDRESSES_MISSING);
	ck_assert_uint_lt(n_changed, 50);
}
END_TEST

/* What is missing does not become unknown by our own trouble, for that would announce it. */
START_TEST (a_dump_that_fails_leaves_what_was_known) {
	rlim_t before;

	batch("add", 6000);
	before = descriptors_limit(3);
	/* The first of the changes are read, the last were lost. */
	expect("10.0.0.0/32", ADDRESSES_PRESENT);
	LOOP_FOR(event, 20);
	ck_assert_int_eq(in("127.0.0.1/32"), ADDRESSES_PRESENT);
	ck_assert_int_eq(in("192.0.2.53/32"), ADDRESSES_MISSING);
	(void)descriptors_limit(before);
	expect("10.0.23.111/32", ADDRESSES_PRESENT);
}
END_TEST

static void change_frees(void *userdata)
{
	addresses_free(addresses);
	addresses = NULL;
	n_changed++;
}

START_TEST (it_may_be_freed_in_its_callback) {
	addresses_free(addresses);
	ck_assert_int_eq(addresses_new(&addresses, event, change_frees, NULL), 0);
	ip("addr add 192.0.2.53/32 dev lo");
	ck_assert(LOOP_UNTIL(event, n_changed == 1, 1000));
	LOOP_FOR(event, 20);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("system-addresses");
	TCase *c = tcase_create("addresses");
	SRunner *runner;
	int failed;

	tcase_set_timeout(c, 30);
	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, what_is_there_at_the_start);
	tcase_add_test(c, it_comes_and_goes);
	tcase_add_test(c, the_interface_does_not_matter);
	tcase_add_test(c, a_point_to_point_peer);
	tcase_add_test(c, tentative_then_usable);
	tcase_add_test(c, dadfailed);
	tcase_add_test(c, ours_and_others);
	tcase_add_test(c, lost_changes);
	tcase_add_test(c, a_dump_that_fails_leaves_what_was_known);
	tcase_add_test(c, it_may_be_freed_in_its_callback);
	suite_add_tcase(suite, c);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
