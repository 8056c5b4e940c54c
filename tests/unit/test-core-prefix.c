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

#define IS_HEALTHY .health = SERVICE_HEALTH_HEALTHY
#define IS_UNDECIDED .health = SERVICE_HEALTH_UNDECIDED
#define IS_SHARED .health = SERVICE_HEALTH_UNHEALTHY, .cause = SERVICE_CAUSE_SHARED
#define IS_UNHEALTHY .health = SERVICE_HEALTH_UNHEALTHY, .cause = SERVICE_CAUSE_CHECKS
#define IS_DEAD .health = SERVICE_HEALTH_UNHEALTHY, .cause = SERVICE_CAUSE_DEATH
#define FACTS(stop, says, where, is, spoken, was, ...)                                             \
	{                                                                                          \
		.stopping = (stop), .word = PREFIX_WORD_##says, .address = PREFIX_ADDRESS_##where, \
		IS_##is, .all_spoken = (spoken), .found = PREFIX_WANTED_##was, __VA_ARGS__         \
	}
/* What is announced now, also by the rules alone. */
#define NOW(what) .now = PREFIX_WANTED_##what, .held = PREFIX_WANTED_##what
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
		FACTS(false, NONE, PRESENT, DEAD, true, ANNOUNCE, FROZEN(ANNOUNCE)), WITHDRAW, PREFIX_REASON_UNHEALTHY},
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
	{"0: leaves gently",
		FACTS(true, NONE, PRESENT, HEALTHY, true, ANNOUNCE, .lingers = true, NOW(ANNOUNCE)), ANNOUNCE, PREFIX_REASON_STOPPING},
	{"1: leaves gently by its last resort",
		FACTS(false, DRAINED, PRESENT, HEALTHY, true, ANNOUNCE, .lingers = true, .last_resort = true, NOW(ANNOUNCE)), DEMOTE, PREFIX_REASON_DRAINED},
	{"1: what is demoted is not promoted to leave",
		FACTS(false, DRAINED, PRESENT, HEALTHY, true, ANNOUNCE, .lingers = true, NOW(DEMOTE)), DEMOTE, PREFIX_REASON_DRAINED},
	{"1: nothing gentle where it is unhealthy",
		FACTS(false, DRAINED, PRESENT, UNHEALTHY, true, ANNOUNCE, .lingers = true, NOW(ANNOUNCE)), WITHDRAW, PREFIX_REASON_DRAINED},
	{"1: nor where a floor or a freeze would keep it",
		FACTS(false, DRAINED, PRESENT, UNHEALTHY, true, ANNOUNCE, .lingers = true, .floored = true, .frozen = true, NOW(ANNOUNCE)), WITHDRAW, PREFIX_REASON_DRAINED},
	{"1: nor where its address is missing",
		FACTS(false, DRAINED, MISSING, HEALTHY, true, ANNOUNCE, .lingers = true, NOW(ANNOUNCE)), WITHDRAW, PREFIX_REASON_DRAINED},
	{"3: the floor keeps what is announced",
		FACTS(false, NONE, PRESENT, UNHEALTHY, true, ANNOUNCE, .floored = true, NOW(ANNOUNCE)), ANNOUNCE, PREFIX_REASON_KEPT_BY_FLOOR},
	{"3: demoted, where that can be",
		FACTS(false, NONE, PRESENT, UNHEALTHY, false, ANNOUNCE, .floored = true, .last_resort = true, NOW(ANNOUNCE)), DEMOTE, PREFIX_REASON_KEPT_BY_FLOOR},
	{"3: and brings nothing back",
		FACTS(false, NONE, PRESENT, UNHEALTHY, true, ANNOUNCE, .floored = true, NOW(WITHDRAW)), WITHDRAW, PREFIX_REASON_UNHEALTHY},
	{"3: nor what only an operator had forced",
		FACTS(false, NONE, PRESENT, UNHEALTHY, true, ANNOUNCE, .floored = true, .now = PREFIX_WANTED_ANNOUNCE, .held = PREFIX_WANTED_WITHDRAW), WITHDRAW, PREFIX_REASON_UNHEALTHY},
	{"3: no floor holds the dead",
		FACTS(false, NONE, PRESENT, DEAD, true, ANNOUNCE, .floored = true, NOW(ANNOUNCE)), WITHDRAW, PREFIX_REASON_UNHEALTHY},
	{"3: nor a missing address",
		FACTS(false, NONE, MISSING, UNHEALTHY, true, ANNOUNCE, .floored = true, NOW(ANNOUNCE)), WITHDRAW, PREFIX_REASON_ADDRESS_MISSING},
	{"4: the start's spread, though all have spoken",
		FACTS(false, NONE, PRESENT, HEALTHY, true, WITHDRAW, .spread = true), WITHDRAW, PREFIX_REASON_FIRST_ROUND},
	{"4: goes before what is shared",
		FACTS(false, NONE, PRESENT, SHARED, false, WITHDRAW), WITHDRAW, PREFIX_REASON_FIRST_ROUND},
	{"5: keeps out what is out",
		FACTS(false, NONE, PRESENT, HEALTHY, true, WITHDRAW, .held_down = true, .shed = PREFIX_SHED_DEMOTE, NOW(WITHDRAW)), WITHDRAW, PREFIX_REASON_HELD_DOWN},
	{"5: and takes nothing out",
		FACTS(false, NONE, PRESENT, HEALTHY, true, WITHDRAW, .held_down = true, NOW(ANNOUNCE)), ANNOUNCE, PREFIX_REASON_HEALTHY},
	{"6: shed though healthy",
		FACTS(false, NONE, PRESENT, HEALTHY, true, ANNOUNCE, .shed = PREFIX_SHED_WITHDRAW, NOW(ANNOUNCE)), WITHDRAW, PREFIX_REASON_SHED},
	{"6: by demoting; before what is shared",
		FACTS(false, NONE, PRESENT, SHARED, true, ANNOUNCE, .shed = PREFIX_SHED_DEMOTE, NOW(ANNOUNCE)), DEMOTE, PREFIX_REASON_SHED},
	{"6: and stays so when not all have spoken",
		FACTS(false, NONE, PRESENT, UNDECIDED, false, ANNOUNCE, .shed = PREFIX_SHED_WITHDRAW, NOW(WITHDRAW)), WITHDRAW, PREFIX_REASON_SHED},
	{"7: what is out does not come back in doubt",
		FACTS(false, NONE, PRESENT, HEALTHY, true, WITHDRAW, .doubted = true, .ramps = true, NOW(WITHDRAW)), WITHDRAW, PREFIX_REASON_IN_DOUBT},
	{"7: nor what is demoted",
		FACTS(false, NONE, PRESENT, HEALTHY, true, WITHDRAW, .doubted = true, NOW(DEMOTE)), DEMOTE, PREFIX_REASON_IN_DOUBT},
	{"7: and what is announced stays",
		FACTS(false, NONE, PRESENT, HEALTHY, true, WITHDRAW, .doubted = true, NOW(ANNOUNCE)), ANNOUNCE, PREFIX_REASON_HEALTHY},
	{"7: what all share withdraws nobody",
		FACTS(false, NONE, PRESENT, SHARED, true, ANNOUNCE, NOW(ANNOUNCE)), ANNOUNCE, PREFIX_REASON_SHARED_UNHEALTHY},
	{"7: but demotes",
		FACTS(false, NONE, PRESENT, SHARED, true, ANNOUNCE, .last_resort = true, .ramps = true, NOW(ANNOUNCE)), DEMOTE, PREFIX_REASON_SHARED_UNHEALTHY},
	{"7: on the way to its own weight",
		FACTS(false, NONE, PRESENT, HEALTHY, true, ANNOUNCE, .ramps = true, NOW(ANNOUNCE)), ANNOUNCE, PREFIX_REASON_RAMPING},
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
	ck_assert_uint_eq(prefix_reason_rule(PREFIX_REASON_KEPT_BY_FLOOR), 3);
	ck_assert_uint_eq(prefix_reason_rule(PREFIX_REASON_HELD_DOWN), 5);
	ck_assert_uint_eq(prefix_reason_rule(PREFIX_REASON_SHED), 6);
	ck_assert_uint_eq(prefix_reason_rule(PREFIX_REASON_IN_DOUBT), 7);
	ck_assert_uint_eq(prefix_reason_rule(PREFIX_REASON_SHARED_UNHEALTHY), 7);
	ck_assert_uint_eq(prefix_reason_rule(PREFIX_REASON_RAMPING), 7);
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
	ck_assert_str_eq(prefix_reason_name(PREFIX_REASON_KEPT_BY_FLOOR), "kept_by_floor");
	ck_assert_str_eq(prefix_reason_name(PREFIX_REASON_HELD_DOWN), "held_down");
	ck_assert_str_eq(prefix_reason_name(PREFIX_REASON_SHED), "shed");
	ck_assert_str_eq(prefix_reason_name(PREFIX_REASON_IN_DOUBT), "in_doubt");
	ck_assert_str_eq(prefix_reason_name(PREFIX_REASON_SHARED_UNHEALTHY), "shared_unhealthy");
	ck_assert_str_eq(prefix_reason_name(PREFIX_REASON_RAMPING), "ramping");
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
