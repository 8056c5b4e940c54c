/* Names of protocols. That BIRD takes them is shown by cases/case-A09-service-names.py. */
#include <check.h>
#include <string.h>

#include "agent/base/cleanup.h"
#include "agent/bird/names.h"

#define LONGEST "abcdefghijklmnopqrstuvwxyz-_0123" /* 32 characters */

static const struct {
	const char *service, *prefix;
	bool last;
	const char *name;
} rows[] = {
	{"dns", "192.0.2.53/32", false, "redshank:dns:192.0.2.53"},
	{"dns", "192.0.2.53/32", true, "redshank:dns:192.0.2.53:last"},
	{"dns", "2001:db8::53/128", false, "redshank:dns:2001:db8::53"},
	{"dns", "2001:db8::53/128", true, "redshank:dns:2001:db8::53:last"},
	/* A length where it is not a host's, never with '/'. */
	{"dns", "192.0.2.0/24", false, "redshank:dns:192.0.2.0-24"},
	{"dns", "2001:db8::/32", true, "redshank:dns:2001:db8::-32:last"},
	{"dns", "0.0.0.0/0", false, "redshank:dns:0.0.0.0-0"},
	{"4", "::1/128", false, "redshank:4:::1"},
	{LONGEST, "192.0.2.153/32", false, "redshank:" LONGEST ":192.0.2.153"},
};

static void parse(const char *text, struct prefix *ret)
{
	struct error error = {""};

	ck_assert_msg(prefix_parse(text, ret, &error) == 0, "%s: %s", text, error.text);
}

START_TEST (as_documented) {
	char buf[NAMES_MAX];
	struct prefix p, back;

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		parse(rows[i].prefix, &p);
		ck_assert_str_eq(
			names_protocol(buf, rows[i].service, &p, rows[i].last), rows[i].name);
		ck_assert(names_prefix(buf, &back) && prefix_equal(&back, &p));
		ck_assert(names_is_last(buf) == rows[i].last);
	}
	ck_assert_str_eq(
		names_family_protocol(buf, "dns", ADDRESS_FAMILY_IPV4, false), "redshank:dns:v4");
	ck_assert_str_eq(names_family_protocol(buf, "dns", ADDRESS_FAMILY_IPV6, true),
		"redshank:dns:v6:last");
	ck_assert_str_eq(names_pattern(buf, "dns"), "redshank:dns:*");
	ck_assert_str_eq(names_pattern(buf, LONGEST), "redshank:" LONGEST ":*");
}
END_TEST

/* 64 characters stand as they are; from 65 on the address is hashed, and the end is kept. */
START_TEST (longest) {
	const char *address = "2001:db8:1111:2222:3333:4444:5555:6666"; /* 38 characters */
	char service[NAMES_SERVICE_MAX + 1], text[PREFIX_TEXT_MAX], buf[NAMES_MAX], hash[9];
	struct prefix p;

	(void)snprintf(text, sizeof(text), "%s/128", address);
	parse(text, &p);
	for (size_t n = 1; n <= NAMES_SERVICE_MAX; n++) {
		memset(service, 's', n);
		service[n] = '\0';
		for (int last = 0; last <= 1; last++) {
			size_t full =
				strlen("redshank:") + n + 1 + strlen(address) + (last ? 5 : 0);
			size_t length = strlen(names_protocol(buf, service, &p, last));
			const char *object = buf + strlen("redshank:") + n + 1;

			ck_assert_uint_eq(
				length, full <= 64 ? full : 9 + n + 1 + 8 + (last ? 5 : 0));
			if (full <= 64)
				ck_assert_int_eq(strncmp(object, address, strlen(address)), 0);
			else
				ck_assert_uint_eq(strspn(object, "0123456789abcdef"), 8);
			if (last)
				ck_assert_str_eq(buf + length - 5, ":last");
			ck_assert(names_is_ours(buf));
		}
	}
	/* Stable: a name is an interface to what BIRD already runs. */
	(void)snprintf(hash, sizeof(hash), "%s",
		strrchr(names_protocol(buf, LONGEST, &p, false), ':') + 1);
	ck_assert_str_eq(hash, "c204b53a");
}
END_TEST

/* The length belongs to what is hashed. */
START_TEST (hash_tells_lengths_apart) {
	char a[NAMES_MAX], b[NAMES_MAX];
	struct prefix p, q;

	parse("2001:db8:1111:2222:3333:4444:5555:0/112", &p);
	parse("2001:db8:1111:2222:3333:4444:5555:0/113", &q);
	ck_assert_str_ne(
		names_protocol(a, LONGEST, &p, false), names_protocol(b, LONGEST, &q, false));
}
END_TEST

static const struct {
	const char *name;
	bool ours;
} ours[] = {
	{"redshank:dns:192.0.2.53", true},
	{"redshank:dns:v4", true},
	{"redshank:dns-alt:2001:db8::53:last", true},
	{"redshank_pipe4", false},
	{"redshank", false},
	{"redshank:", false},
	{"redshank:dns", false},
	{"redshank:dns:", false},
	{"redshank::192.0.2.53", false},
	{"redshank:-dns:192.0.2.53", false},
	{"redshank:d.s:192.0.2.53", false},
	{"redshank:abcdefghijklmnopqrstuvwxyz-_01234:v4", false},
	{"Redshank:dns:192.0.2.53", false},
	{"my:redshank:dns:192.0.2.53", false},
	{"bgp1", false},
	{"", false},
};

START_TEST (is_ours) {
	for (size_t i = 0; i < ELEMENTSOF(ours); i++)
		ck_assert_msg(names_is_ours(ours[i].name) == ours[i].ours, "%s", ours[i].name);
}
END_TEST

/* What a name does not tell is not guessed. */
START_TEST (no_prefix_in_it) {
	static const char *const bad[] = {"redshank:dns:v4", "redshank:dns:v6:last",
		"redshank:dns:12345678", "redshank:dns:192.0.2.1-24", "redshank:dns:192.0.2.53-33",
		"redshank:dns::last", "redshank:dns:-", "redshank::192.0.2.53",
		"redshank:dns:", "dns:192.0.2.53", ""};
	struct prefix p;

	for (size_t i = 0; i < ELEMENTSOF(bad); i++)
		ck_assert_msg(!names_prefix(bad[i], &p), "%s", bad[i]);
}
END_TEST

START_TEST (services) {
	static const char *const good[] = {"a", "4dns", "dns-v4", "dns_v4", "A", LONGEST};
	static const char *const bad[] = {"", "-a", "_a", "a b", "a.b", "a:b", "a/b", "caf\xc3\xa9",
		"x\"; quit", "a*", "a?", LONGEST "4"};

	for (size_t i = 0; i < ELEMENTSOF(good); i++)
		ck_assert(names_service_is_valid(good[i], strlen(good[i])));
	for (size_t i = 0; i < ELEMENTSOF(bad); i++)
		ck_assert_msg(!names_service_is_valid(bad[i], strlen(bad[i])), "%s", bad[i]);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("bird-names");
	TCase *tc = tcase_create("names");
	SRunner *runner;
	int failed;

	tcase_add_test(tc, as_documented);
	tcase_add_test(tc, longest);
	tcase_add_test(tc, no_prefix_in_it);
	tcase_add_test(tc, hash_tells_lengths_apart);
	tcase_add_test(tc, is_ours);
	tcase_add_test(tc, services);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
