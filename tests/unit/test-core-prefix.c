/*
 * The numbered rules, each both ways: facts under which the rule and every later one would match,
 * and the same facts without the rule's own condition, so that the next one decides.
 */
#include <check.h>
#include <stdlib.h>

#include "agent/core/prefix.h"

#define WITHDRAW PREFIX_WANTED_WITHDRAW
#define DEMOTE PREFIX_WANTED_DEMOTE
#define ANNOUNCE PREFIX_WANTED_ANNOUNCE

struct row {
	const char *proves;
	struct prefix_facts facts;
	enum prefix_wanted wanted;
	enum prefix_reason reason;
};

#define FACTS(stop, says, where, is, spoken, was, ...)                                             \
	{                                                                                          \
		.stopping = (stop), .word = PREFIX_WORD_##says, .address = PREFIX_ADDRESS_##where, \
		.health = SERVICE_HEALTH_##is, .all_spoken = (spoken),                             \
		.found = PREFIX_WANTED_##was, __VA_ARGS__                                          \
	}
#define FROZEN(what) .frozen = true, .held = PREFIX_WANTED_##what

/* clang-format off */
static const struct row rows[] = {
	{"0: stopping goes before everything",
		FACTS(true, FORCED, PRESENT, HEALTHY, true, ANNOUNCE), WITHDRAW, PREFIX_REASON_STOPPING},
	{"0: stopping names itself though a later rule would withdraw, too",
		FACTS(true, DRAINED, MISSING, UNHEALTHY, false, WITHDRAW), WITHDRAW, PREFIX_REASON_STOPPING},
	{"1: drained though healthy",
		FACTS(false, DRAINED, PRESENT, HEALTHY, true, ANNOUNCE), WITHDRAW, PREFIX_REASON_DRAINED},
	{"1: drained goes before address, health and first round",
		FACTS(false, DRAINED, MISSING, UNHEALTHY, false, ANNOUNCE), WITHDRAW, PREFIX_REASON_DRAINED},
	{"1: forced though all speaks against it",
		FACTS(false, FORCED, MISSING, UNHEALTHY, false, WITHDRAW), ANNOUNCE, PREFIX_REASON_FORCED},
	{"1: no word, and the next rule decides",
		FACTS(false, NONE, MISSING, UNHEALTHY, false, ANNOUNCE), WITHDRAW, PREFIX_REASON_ADDRESS_MISSING},
	{"1: frozen, and what is unhealthy stays",
		FACTS(false, NONE, PRESENT, UNHEALTHY, true, WITHDRAW, FROZEN(ANNOUNCE)), ANNOUNCE, PREFIX_REASON_FROZEN},
	{"1: frozen, and what is healthy does not come",
		FACTS(false, NONE, PRESENT, HEALTHY, true, ANNOUNCE, FROZEN(WITHDRAW)), WITHDRAW, PREFIX_REASON_FROZEN},
	{"1: frozen, and the rules want what is held",
		FACTS(false, NONE, PRESENT, UNHEALTHY, true, ANNOUNCE, FROZEN(WITHDRAW)), WITHDRAW, PREFIX_REASON_UNHEALTHY},
	{"1: frozen, and drained all the same",
		FACTS(false, DRAINED, PRESENT, HEALTHY, true, ANNOUNCE, FROZEN(ANNOUNCE)), WITHDRAW, PREFIX_REASON_DRAINED},
	{"1: frozen, and forced all the same",
		FACTS(false, FORCED, PRESENT, UNHEALTHY, true, ANNOUNCE, FROZEN(WITHDRAW)), ANNOUNCE, PREFIX_REASON_FORCED},
	{"1: a freeze holds no dead process",
		FACTS(false, NONE, PRESENT, UNHEALTHY, true, ANNOUNCE, FROZEN(ANNOUNCE), .dead = true), WITHDRAW, PREFIX_REASON_UNHEALTHY},
	{"1: nor a missing address",
		FACTS(false, NONE, MISSING, HEALTHY, true, ANNOUNCE, FROZEN(ANNOUNCE)), WITHDRAW, PREFIX_REASON_ADDRESS_MISSING},
	{"1: nor a stop",
		FACTS(true, NONE, PRESENT, HEALTHY, true, ANNOUNCE, FROZEN(ANNOUNCE)), WITHDRAW, PREFIX_REASON_STOPPING},
	{"2: missing though healthy",
		FACTS(false, NONE, MISSING, HEALTHY, true, ANNOUNCE), WITHDRAW, PREFIX_REASON_ADDRESS_MISSING},
	{"2: missing in the first round",
		FACTS(false, NONE, MISSING, UNDECIDED, false, ANNOUNCE), WITHDRAW, PREFIX_REASON_ADDRESS_MISSING},
	{"2: present, and the next rule decides",
		FACTS(false, NONE, PRESENT, UNHEALTHY, false, ANNOUNCE), WITHDRAW, PREFIX_REASON_UNHEALTHY},
	{"2: unknown says nothing",
		FACTS(false, NONE, UNKNOWN, HEALTHY, true, WITHDRAW), ANNOUNCE, PREFIX_REASON_HEALTHY},
	{"3: unhealthy when all have spoken",
		FACTS(false, NONE, PRESENT, UNHEALTHY, true, ANNOUNCE), WITHDRAW, PREFIX_REASON_UNHEALTHY},
	{"3: unhealthy is decided before all have spoken",
		FACTS(false, NONE, UNKNOWN, UNHEALTHY, false, ANNOUNCE), WITHDRAW, PREFIX_REASON_UNHEALTHY},
	{"3: undecided, and the next rule decides",
		FACTS(false, NONE, PRESENT, UNDECIDED, false, ANNOUNCE), ANNOUNCE, PREFIX_REASON_FIRST_ROUND},
	{"4: found announced",
		FACTS(false, NONE, PRESENT, UNDECIDED, false, ANNOUNCE), ANNOUNCE, PREFIX_REASON_FIRST_ROUND},
	{"4: found demoted",
		FACTS(false, NONE, PRESENT, UNDECIDED, false, DEMOTE), DEMOTE, PREFIX_REASON_FIRST_ROUND},
	{"4: found withdrawn",
		FACTS(false, NONE, PRESENT, UNDECIDED, false, WITHDRAW), WITHDRAW, PREFIX_REASON_FIRST_ROUND},
	{"4: healthy already, and not all have spoken",
		FACTS(false, NONE, PRESENT, HEALTHY, false, WITHDRAW), WITHDRAW, PREFIX_REASON_FIRST_ROUND},
	{"4: all have spoken, and the next rule decides",
		FACTS(false, NONE, PRESENT, HEALTHY, true, WITHDRAW), ANNOUNCE, PREFIX_REASON_HEALTHY},
	{"7: healthy, whatever was found",
		FACTS(false, NONE, PRESENT, HEALTHY, true, DEMOTE), ANNOUNCE, PREFIX_REASON_HEALTHY},
};
/* clang-format on */

START_TEST (rules) {
	const struct row *row = &rows[_i];
	struct prefix_verdict verdict = prefix_decide(&row->facts);

	ck_assert_msg(verdict.wanted == row->wanted && verdict.reason == row->reason,
		"rule %s: it is %s %s, expected %s %s", row->proves,
		prefix_wanted_name(verdict.wanted), prefix_reason_name(verdict.reason),
		prefix_wanted_name(row->wanted), prefix_reason_name(row->reason));
}
END_TEST

START_TEST (numbers_of_the_rules) {
	ck_assert_uint_eq(prefix_reason_rule(PREFIX_REASON_STOPPING), 0);
	ck_assert_uint_eq(prefix_reason_rule(PREFIX_REASON_DRAINED), 1);
	ck_assert_uint_eq(prefix_reason_rule(PREFIX_REASON_FORCED), 1);
	ck_assert_uint_eq(prefix_reason_rule(PREFIX_REASON_FROZEN), 1);
	ck_assert_uint_eq(prefix_reason_rule(PREFIX_REASON_ADDRESS_MISSING), 2);
	ck_assert_uint_eq(prefix_reason_rule(PREFIX_REASON_UNHEALTHY), 3);
	ck_assert_uint_eq(prefix_reason_rule(PREFIX_REASON_FIRST_ROUND), 4);
	ck_assert_uint_eq(prefix_reason_rule(PREFIX_REASON_HEALTHY), 7);
}
END_TEST

START_TEST (names) {
	ck_assert_str_eq(prefix_wanted_name(WITHDRAW), "withdraw");
	ck_assert_str_eq(prefix_wanted_name(DEMOTE), "demote");
	ck_assert_str_eq(prefix_wanted_name(ANNOUNCE), "announce");
	ck_assert_str_eq(prefix_reason_name(PREFIX_REASON_STOPPING), "stopping");
	ck_assert_str_eq(prefix_reason_name(PREFIX_REASON_DRAINED), "drained");
	ck_assert_str_eq(prefix_reason_name(PREFIX_REASON_FORCED), "forced");
	ck_assert_str_eq(prefix_reason_name(PREFIX_REASON_FROZEN), "frozen");
	ck_assert_str_eq(prefix_reason_name(PREFIX_REASON_ADDRESS_MISSING), "address_missing");
	ck_assert_str_eq(prefix_reason_name(PREFIX_REASON_UNHEALTHY), "unhealthy");
	ck_assert_str_eq(prefix_reason_name(PREFIX_REASON_FIRST_ROUND), "first_round");
	ck_assert_str_eq(prefix_reason_name(PREFIX_REASON_HEALTHY), "healthy");
	/* "More attractive" is the order of the enum. */
	ck_assert(WITHDRAW < DEMOTE && DEMOTE < ANNOUNCE);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("core prefix");
	TCase *tests = tcase_create("prefix");
	SRunner *runner;
	int failed;

	tcase_add_loop_test(tests, rules, 0, (int)(sizeof(rows) / sizeof(rows[0])));
	tcase_add_test(tests, names);
	tcase_add_test(tests, numbers_of_the_rules);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
