/* A check's history and judgement: rise, fall, deaths, unknown outcomes, the first word, schedule.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/check.h"

/* Outcomes: g good, b bad, x gone, u unknown; a: it has to rise again. States after each of them: p
 * pending, u up, d down. Undecided after each of them: '?' or '.'. */
struct row {
	const char *proves;
	bool prior;
	unsigned rise, fall;
	const char *outcomes;
	const char *states;
	const char *undecided;
};

static const struct row rows[] = {
	{"first: prior up, good is up at once", true, 3, 2, "g", "u", "."},
	{"first: prior up, bad is one of fall", true, 3, 2, "b", "u", "?"},
	{"first: prior up, bad with fall 1 is down", true, 3, 1, "b", "d", "."},
	{"first: prior down, good is one of rise", false, 3, 2, "g", "d", "?"},
	{"first: prior down, good with rise 1 is up", false, 1, 2, "g", "u", "."},
	{"first: prior down, bad is down", false, 3, 2, "b", "d", "."},
	{"first: gone is down, whatever the prior", true, 3, 5, "x", "d", "."},
	{"first: gone is down, whatever the prior", false, 3, 5, "x", "d", "."},
	{"first: unknown has not spoken", true, 3, 2, "uu", "pp", "??"},
	{"first: unknown has not spoken", false, 1, 1, "uug", "ppu", "??."},
	{"fall: in a row", true, 3, 3, "gbbb", "uuud", ".??."},
	{"fall: one good between begins anew", true, 3, 3, "gbbgbbb", "uuuuuud", ".??.??."},
	{"fall 1", true, 3, 1, "gb", "ud", ".."},
	{"fall: more bad stays down and decided", true, 3, 2, "gbbbb", "uuddd", ".?..."},
	{"rise: in a row", false, 3, 2, "bggg", "dddu", ".??."},
	{"rise: one bad between begins anew", false, 3, 2, "bggbggg", "ddddddu", ".??.??."},
	{"rise 1", false, 1, 2, "bg", "du", ".."},
	{"rise: more good stays up and decided", false, 2, 2, "bgggg", "dduuu", ".?..."},
	{"gone: at once, whatever fall", true, 3, 5, "gx", "ud", ".."},
	{"gone: forgets a row of good ones", false, 3, 5, "bggxggg", "ddddddu", ".??.??."},
	{"gone: in the middle of a fall", true, 3, 3, "gbx", "uud", ".?."},
	{"gone: is not one of rise", false, 2, 5, "gxg", "ddd", "?.?"},
	{"unknown: neither counts nor breaks a fall", true, 3, 2, "gbub", "uuud", ".??."},
	{"unknown: neither counts nor breaks a rise", false, 2, 2, "bgug", "dddu", ".??."},
	{"unknown: of a settled check changes nothing", true, 3, 2, "guuu", "uuuu", "...."},
	{"again: rises as from the beginning", true, 2, 2, "gagg", "uddu", ".??."},
	{"again: what was on its way counts no more", false, 3, 2, "bggaggg", "ddddddu", ".?????."},
	{"again: bad words keep it undecided", true, 2, 2, "gabbgg", "uddddu", ".????."},
	{"again: its own death decides", true, 2, 2, "gaxx", "uddd", ".?.."},
	{"again: before the first word it has to rise, whatever the prior", true, 2, 2, "agg",
		"pdu", "??."},
};

static enum check_outcome outcome_of(char c)
{
	switch (c) {
	case 'g':
		return CHECK_OUTCOME_GOOD;
	case 'b':
		return CHECK_OUTCOME_BAD;
	case 'x':
		return CHECK_OUTCOME_GONE;
	default:
		return CHECK_OUTCOME_UNKNOWN;
	}
}

static struct check new_check(unsigned rise, unsigned fall)
{
	struct check_settings settings = {
		.interval_ms = 1000, .fast_interval_ms = 200, .rise = rise, .fall = fall};
	struct check c;

	check_init(&c, &settings, MONOTIME_ZERO);
	return c;
}

START_TEST (rise_and_fall) {
	const struct row *row = &rows[_i];
	struct check c = new_check(row->rise, row->fall);
	char before = 'p';

	ck_assert(check_is_undecided(&c));
	for (size_t i = 0; row->outcomes[i]; i++) {
		struct monotime now = {1000 + i};
		char state = row->states[i];
		char outcome = row->outcomes[i];
		bool changed = outcome == 'a'
				       ? check_rise_again(&c, now)
				       : check_take(&c, outcome_of(outcome), row->prior, now);
		const char *name = check_state_name(c.state);

		ck_assert_msg(name[0] == state, "%s: after %zu of %s it is %s", row->proves, i + 1,
			row->outcomes, name);
		ck_assert_msg(changed == (state != before), "%s: after %zu of %s it returned %d",
			row->proves, i + 1, row->outcomes, changed);
		ck_assert_msg(check_is_undecided(&c) == (row->undecided[i] == '?'),
			"%s: undecided after %zu of %s", row->proves, i + 1, row->outcomes);
		if (changed)
			ck_assert_uint_eq(c.since.us, now.us);
		before = state;
	}
}
END_TEST

/* The prior is asked once: a check that has spoken stands on its own feet. */
START_TEST (prior_counts_for_the_first_word_only) {
	struct check c = new_check(1, 3);

	check_take(&c, CHECK_OUTCOME_BAD, false, MONOTIME_ZERO);
	check_take(&c, CHECK_OUTCOME_BAD, true, MONOTIME_ZERO);
	ck_assert_int_eq(c.state, CHECK_STATE_DOWN);
}
END_TEST

/* Until it has said something of its own. */
START_TEST (falls_along) {
	static const struct {
		const char *outcomes;
		bool along;
	} cases[] = {{"g", false}, {"gb", false}, {"ga", true}, {"gauu", true}, {"gab", false},
		{"gabu", false}, {"gag", false}, {"gagb", false}, {"gax", false}, {"gba", false}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct check c = new_check(2, 2);

		for (const char *o = cases[i].outcomes; *o; o++)
			if (*o == 'a')
				(void)check_rise_again(&c, MONOTIME_ZERO);
			else
				(void)check_take(&c, outcome_of(*o), true, MONOTIME_ZERO);
		ck_assert_msg(check_fell_along(&c) == cases[i].along, "%s", cases[i].outcomes);
	}
}
END_TEST

START_TEST (good_streak_saturates_at_rise) {
	struct check c = new_check(3, 2);

	for (int i = 0; i < 10; i++)
		check_take(&c, CHECK_OUTCOME_GOOD, false, MONOTIME_ZERO);
	ck_assert_uint_eq(c.good_streak, 3);
	check_take(&c, CHECK_OUTCOME_BAD, false, MONOTIME_ZERO);
	ck_assert_uint_eq(c.good_streak, 0);
	ck_assert_uint_eq(c.streak, 1);
}
END_TEST

START_TEST (next_start) {
	struct check c = new_check(2, 2);
	struct monotime started = {5000000};

	/* Undecided: the fast interval, from the start and not from the end. */
	ck_assert_uint_eq(check_next_start(&c, started, (struct monotime){5100000}).us, 5200000);
	/* A run that took longer than the interval: at once, never before now. */
	ck_assert_uint_eq(check_next_start(&c, started, (struct monotime){7000000}).us, 7000000);
	check_take(&c, CHECK_OUTCOME_GOOD, true, started);
	ck_assert_uint_eq(check_next_start(&c, started, (struct monotime){5100000}).us, 6000000);
	check_take(&c, CHECK_OUTCOME_BAD, true, started);
	ck_assert_uint_eq(check_next_start(&c, started, (struct monotime){5100000}).us, 5200000);
	check_take(&c, CHECK_OUTCOME_BAD, true, started);
	ck_assert_uint_eq(check_next_start(&c, started, (struct monotime){5100000}).us, 6000000);
	check_take(&c, CHECK_OUTCOME_GOOD, true, started);
	ck_assert_uint_eq(check_next_start(&c, started, (struct monotime){5100000}).us, 5200000);
}
END_TEST

START_TEST (history_keeps_the_newest) {
	static const char outcomes[] = "gbxu";
	struct check c = new_check(1, 1);
	unsigned total = CHECK_HISTORY_LENGTH + 7;

	for (unsigned i = 0; i < total; i++) {
		check_take(&c, outcome_of(outcomes[i % 4]), false, MONOTIME_ZERO);
		ck_assert_uint_eq(
			c.n_history, i + 1 < CHECK_HISTORY_LENGTH ? i + 1 : CHECK_HISTORY_LENGTH);
	}
	for (unsigned age = 0; age < c.n_history; age++)
		ck_assert_int_eq(
			check_history(&c, age), outcome_of(outcomes[(total - 1 - age) % 4]));
}
END_TEST

START_TEST (names) {
	ck_assert_str_eq(check_state_name(CHECK_STATE_PENDING), "pending");
	ck_assert_str_eq(check_state_name(CHECK_STATE_UP), "up");
	ck_assert_str_eq(check_state_name(CHECK_STATE_DOWN), "down");
	ck_assert_str_eq(check_outcome_name(CHECK_OUTCOME_GOOD), "good");
	ck_assert_str_eq(check_outcome_name(CHECK_OUTCOME_BAD), "bad");
	ck_assert_str_eq(check_outcome_name(CHECK_OUTCOME_GONE), "gone");
	ck_assert_str_eq(check_outcome_name(CHECK_OUTCOME_UNKNOWN), "unknown");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("core check");
	TCase *tests = tcase_create("check");
	SRunner *runner;
	int failed;

	tcase_add_loop_test(tests, rise_and_fall, 0, (int)(sizeof(rows) / sizeof(rows[0])));
	tcase_add_test(tests, prior_counts_for_the_first_word_only);
	tcase_add_test(tests, good_streak_saturates_at_rise);
	tcase_add_test(tests, falls_along);
	tcase_add_test(tests, next_start);
	tcase_add_test(tests, history_keeps_the_newest);
	tcase_add_test(tests, names);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
