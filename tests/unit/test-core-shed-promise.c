/*
 * Who promises, the floor for health, the operator's hand, and what stands around the decision,
 * told as stories like those of test-core-shed.c.
 */
#include "tests/unit/shed-story.h"

/* ---- the operator ---- */

START_TEST (by_hand_with_promises) {
	shed_word(shed, 1, SHED_WORD_SHED, now);
	tellers[0].deaf = true;
	pass(2000);
	ck_assert(!is_out(1));
	tellers[0].deaf = false;
	pass(2000);
	ck_assert(is_out(1));
	ck_assert_int_eq(why(1), SHED_WHY_OPERATOR);
	pass(900000);
	ck_assert(is_out(1));
	shed_word(shed, 1, SHED_WORD_NONE, now);
	pass(500);
	ck_assert(!is_out(1));
}
END_TEST

START_TEST (by_hand_under_the_floor) {
	set_floor();
	shed_word(shed, 1, SHED_WORD_SHED, now);
	pass(5000);
	ck_assert(!is_out(1));
	ck_assert_int_eq(why(1), SHED_WHY_FLOOR);
}
END_TEST

/* What an operator wants, and neighbours refuse, is not in the way of what the load wants. */
START_TEST (by_hand_in_vain) {
	refused_prefix = 0;
	shed_word(shed, 0, SHED_WORD_SHED, now);
	load = 90000;
	pass(120000);
	ck_assert(!is_out(0));
	ck_assert_uint_ge(n_out(), 1);
}
END_TEST

START_TEST (by_hand_one_after_the_other) {
	refused_prefix = 0;
	for (size_t v = 0; v < 3; v++)
		shed_word(shed, v, SHED_WORD_SHED, now);
	pass(120000);
	ck_assert(!is_out(0) && is_out(1) && is_out(2));
}
END_TEST

/* By hand no load need be known, and none in the sum: the guard stands there all the same. */
START_TEST (by_hand_never_the_last_prefix) {
	uncounted = true;
	for (size_t v = 0; v + 1 < PREFIXES; v++)
		shed_word(shed, v, SHED_WORD_SHED, now);
	pass(10000);
	ck_assert_uint_eq(n_out(), PREFIXES - 1);
	sick[PREFIXES - 1] = true;
	pass(STEP_MS);
	ck_assert_uint_eq(n_out(), PREFIXES - 2);
	ck_assert_int_eq(last(PREFIXES - 2), SHED_WHY_GUARD);
}
END_TEST

START_TEST (unshed_brings_back_and_holds) {
	size_t v = until_out();

	shed_word(shed, v, SHED_WORD_UNSHED, now);
	pass(500);
	ck_assert(!is_out(v));
	ck_assert_int_eq(last(v), SHED_WHY_UNSHED);
	load = 95000;
	pass(21000);
	ck_assert_int_eq(why(v), SHED_WHY_HELD);
}
END_TEST

/* ---- the receiver ---- */

static enum shed_refusal ask(size_t neighbour, size_t prefix, uint64_t share, uint64_t request)
{
	return shed_grant(shed,
		&(struct shed_request){neighbour, 1, prefix, share, SHED_PURPOSE_SHED, request},
		now)
		.refused;
}

START_TEST (it_promises_no_more_than_it_has) {
	pass(1000); /* 82,000 accepted, 60,000 carried */
	ck_assert_int_eq(ask(0, 0, 12000, 1), SHED_REFUSAL_NONE);
	ck_assert_int_eq(ask(1, 1, 12000, 1), SHED_REFUSAL_NO_ROOM);
	ck_assert_int_eq(ask(1, 1, 10000, 1), SHED_REFUSAL_NONE);
	ck_assert_int_eq(ask(2, 2, 1, 1), SHED_REFUSAL_NO_ROOM);
	ck_assert_int_eq(ask(0, 0, 12000, 1), SHED_REFUSAL_NONE); /* renewed */
	ck_assert_int_eq(ask(0, 0, 0, 1), SHED_REFUSAL_NONE);	  /* it shows by now */
	ck_assert_int_eq(ask(2, 2, 12000, 1), SHED_REFUSAL_NONE);
}
END_TEST

START_TEST (room_is_kept_for_a_while_after_a_promise) {
	pass(1000);
	ck_assert_int_eq(ask(0, 0, 22000, 1), SHED_REFUSAL_NONE);
	pass(12000);
	ck_assert_int_eq(ask(1, 1, 22000, 1), SHED_REFUSAL_NO_ROOM);
	pass(20000);
	ck_assert_int_eq(ask(1, 1, 22000, 1), SHED_REFUSAL_NONE);
	shed_give_back(shed, &(struct shed_request){1, 1, 1, 0, SHED_PURPOSE_SHED, 1}, now);
	ck_assert_int_eq(ask(2, 2, 22000, 1), SHED_REFUSAL_NONE);
}
END_TEST

START_TEST (why_it_refuses) {
	pass(1000);
	sick[0] = leaving[1] = true;
	decide();
	ck_assert_int_eq(ask(0, 0, 100, 1), SHED_REFUSAL_NOT_ANNOUNCED);
	ck_assert_int_eq(ask(0, 1, 100, 1), SHED_REFUSAL_LEAVING);
	ck_assert_int_eq(ask(0, 99, 100, 1), SHED_REFUSAL_NOT_ANNOUNCED);
	ck_assert_int_eq(ask(0, 2, 100, 7), SHED_REFUSAL_NONE);
	ck_assert_int_eq(ask(0, 2, 100, 6), SHED_REFUSAL_STALE);
	load = 86000;
	decide();
	ck_assert_int_eq(ask(0, 3, 100, 1), SHED_REFUSAL_HOT);
	ck_assert_int_eq(ask(0, 3, 0, 1), SHED_REFUSAL_NONE); /* only to stay */
	shed_own(shed, &(struct shed_own){false, 0, 0}, now);
	ck_assert_int_eq(ask(0, 4, 100, 1), SHED_REFUSAL_UNWILLING);
}
END_TEST

START_TEST (what_it_asks_for_it_does_not_promise) {
	tellers[2].deaf = true;
	load = 90000;
	pass(8000);
	ck_assert_int_eq(why(4), SHED_WHY_ASKING);
	ck_assert_int_eq(ask(0, 4, 0, 1), SHED_REFUSAL_SHEDDING);
}
END_TEST

START_TEST (newly_started_it_has_no_room_to_promise) {
	struct shed_server s;

	shed_free(shed);
	shed = shed_new(now);
	configure();
	pass(5000);
	shed_server(shed, &s, now);
	ck_assert_uint_eq(s.spare, 0);
	ck_assert_int_eq(ask(0, 0, 100, 1), SHED_REFUSAL_STARTING);
	ck_assert_int_eq(ask(0, 0, 0, 1), SHED_REFUSAL_NONE);
	pass(9000);
	shed_server(shed, &s, now);
	ck_assert_uint_eq(s.spare, 22000);
	ck_assert_int_eq(ask(1, 0, 100, 1), SHED_REFUSAL_NONE);
}
END_TEST

START_TEST (a_promise_ends_by_itself) {
	struct shed_prefix p;

	pass(1000);
	ask(0, 4, 0, 1);
	pass(9500);
	shed_prefix(shed, 4, &p, now);
	ck_assert_uint_eq(p.n_owed, 1);
	pass(1000);
	shed_prefix(shed, 4, &p, now);
	ck_assert_uint_eq(p.n_owed, 0);
}
END_TEST

START_TEST (a_promise_with_room_ends_too) {
	pass(1000);
	ask(0, 4, 5000, 1);
	load = 90000;
	held[0] = held[1] = held[2] = held[3] = true;
	pass(9000);
	ck_assert_int_eq(why(4), SHED_WHY_PROMISED);
	pass(6000);
	ck_assert(is_out(4));
}
END_TEST

/* ---- the floor for health ---- */

static void begin_health(void)
{
	floor_health = true;
	configure();
	pass(1000);
	sick[0] = true;
	shed_leave(shed, 0, true, now);
}

START_TEST (it_leaves_with_permits) {
	begin_health();
	ck_assert_int_eq(shed_permit(shed, 0), SHED_PERMIT_WAITING);
	pass(1000);
	ck_assert_int_eq(shed_permit(shed, 0), SHED_PERMIT_GRANTED);
	shed_leave(shed, 0, false, now);
	ck_assert_int_eq(shed_permit(shed, 0), SHED_PERMIT_NONE);
}
END_TEST

START_TEST (without_permits_it_stays) {
	for (size_t j = 0; j < NEIGHBOURS; j++)
		tellers[j].refuses = SHED_REFUSAL_NOT_ANNOUNCED;
	begin_health();
	pass(2500);
	ck_assert_int_eq(shed_permit(shed, 0), SHED_PERMIT_KEPT);
	for (size_t j = 0; j < 2; j++)
		tellers[j].refuses = SHED_REFUSAL_NONE;
	pass(10000);
	ck_assert_int_eq(shed_permit(shed, 0), SHED_PERMIT_GRANTED);
}
END_TEST

START_TEST (one_permit_too_few) {
	for (size_t j = 1; j < NEIGHBOURS; j++)
		tellers[j].deaf = true;
	begin_health();
	pass(60000);
	ck_assert_int_eq(shed_permit(shed, 0), SHED_PERMIT_KEPT);
}
END_TEST

START_TEST (what_it_promised_it_keeps_first) {
	floor_health = true;
	configure();
	pass(1000);
	ask(0, 0, 0, 1);
	sick[0] = true;
	shed_leave(shed, 0, true, now);
	pass(9000);
	ck_assert_int_eq(shed_permit(shed, 0), SHED_PERMIT_KEPT);
	ck_assert_int_eq(ask(0, 0, 0, 1), SHED_REFUSAL_LEAVING);
	pass(3000);
	ck_assert_int_eq(shed_permit(shed, 0), SHED_PERMIT_GRANTED);
}
END_TEST

START_TEST (newly_started_it_may_have_promised) {
	shed_free(shed);
	shed = shed_new(now);
	begin_health();
	pass(11000);
	ck_assert_int_eq(shed_permit(shed, 0), SHED_PERMIT_KEPT);
	pass(3000);
	ck_assert_int_eq(shed_permit(shed, 0), SHED_PERMIT_GRANTED);
}
END_TEST

/* ---- reload, report, guard, settings, words ---- */

START_TEST (a_reload_keeps_what_is_out) {
	size_t v = until_out();

	configure();
	ck_assert(is_out(v));
	pass(60000);
	ck_assert(is_out(v));
}
END_TEST

START_TEST (its_report) {
	struct shed_report_prefix prefixes[PREFIXES];
	struct shed_report report;
	size_t v = until_out();

	pass(1000);
	shed_report_own(shed, &report, prefixes, now);
	ck_assert_int_eq(prefixes[v].state, SHED_STATE_OUT);
	ck_assert_int_eq(prefixes[0].state, SHED_STATE_HEALTHY);
	ck_assert_uint_eq(report.n_sheds, 1);
	load = 60000;
	pass(500);
	ask(0, 0, 2000, 1);
	shed_report_own(shed, &report, prefixes, now);
	ck_assert_uint_eq(report.spare, 20000);
}
END_TEST

START_TEST (the_guard) {
	struct shed_guard_prefix p[] = {
		{true, true, 1, 2, 10}, {true, true, 2, 2, 10}, {true, true, 3, 2, 10}};

	ck_assert_uint_eq(shed_guard(p, 3, 100, 5000), 1); /* the last prefix: the last shed */
	ck_assert(p[0].out && p[1].out && !p[2].out);
	p[0].others = 0; /* the last announcer */
	ck_assert_uint_eq(shed_guard(p, 3, 100, 5000), 1);
	ck_assert(!p[0].out && p[1].out);
	p[0] = (struct shed_guard_prefix){true, true, 1, 2, 30};
	p[1] = (struct shed_guard_prefix){true, true, 2, 2, 30};
	ck_assert_uint_eq(shed_guard(p, 3, 100, 5000), 1); /* more than half */
	ck_assert(p[0].out && !p[1].out);
	ck_assert_uint_eq(shed_guard(p, 3, 100, 5000), 0);
}
END_TEST

/* Each limit broken alone is named, with what came; nothing else is. */
#define LIMIT(field, value, low, high)                                                  \
	{                                                                               \
		offsetof(struct shed_settings, field),                                  \
			sizeof(((struct shed_settings *)NULL)->field), value, low, high \
	}
static const struct {
	size_t offset, size;
	uint64_t value;
	const char *low, *high; /* high NULL: a range of its own */
} limit_rows[] = {
	LIMIT(release_bp, 99, "release", NULL),
	LIMIT(release_bp, 7500, "release", "target"),
	LIMIT(target_bp, 8200, "target", "accept"),
	LIMIT(accept_bp, 8500, "accept", "hot"),
	LIMIT(hot_bp, 20001, "hot", NULL),
	LIMIT(margin_bp, 10001, "margin", NULL),
	LIMIT(drift_bp, 2001, "drift", NULL),
	LIMIT(pick_min_bp, 3000, "pick_min", "pick_max"),
	LIMIT(pick_max_bp, 10001, "pick_max", NULL),
	LIMIT(most_bp, 0, "most", NULL),
	LIMIT(most_bp, 5001, "most", NULL),
	LIMIT(site_hot_bp, 10001, "site_hot", NULL),
	LIMIT(lease_ms, 0, "lease", NULL),
	LIMIT(lease_ms, 3600001, "lease", NULL),
	LIMIT(guard_ms, 10000, "guard", "lease"),
	LIMIT(renew_ms, 7800, "renew", "lease"), /* 10,000 less 2 % and 2,000 */
	LIMIT(stale_ms, 300000, "stale_after", "forget_after"),
	LIMIT(visible_ms, 20001, "visible", NULL),
	LIMIT(wait_max_ms, 2999, "wait", NULL),
	LIMIT(in_flight, 0, "in_flight", NULL),
	LIMIT(in_flight, SHED_OUT_MAX / 2 + 1, "in_flight", NULL),
	LIMIT(server_changes, SHED_CHANGES_MAX + 1, "server_changes", NULL),
	LIMIT(prefix_changes, SHED_PREFIX_CHANGES_MAX + 1, "prefix_changes", NULL),
};

START_TEST (the_order_of_the_limits) {
	struct shed_fault fault = {0};

	ck_assert(shed_settings_check(&settings, &fault));
	ck_assert_ptr_null(fault.low);
	memcpy((char *)&settings + limit_rows[_i].offset, &limit_rows[_i].value,
		limit_rows[_i].size); /* the low bytes: as every machine that this runs on */
	ck_assert(!shed_settings_check(&settings, &fault));
	ck_assert_str_eq(fault.low, limit_rows[_i].low);
	ck_assert_pstr_eq(fault.high, limit_rows[_i].high);
	ck_assert(fault.high ? fault.low_value >= fault.high_value
			     : fault.low_value < fault.limit_low ||
				       fault.low_value > fault.limit_high);
}
END_TEST

START_TEST (every_word_is_one) {
	for (unsigned i = 0; i < SHED_WHY_COUNT; i++) {
		ck_assert_ptr_nonnull(shed_why_name((enum shed_why)i));
		for (unsigned j = 0; j < i; j++)
			ck_assert_str_ne(
				shed_why_name((enum shed_why)i), shed_why_name((enum shed_why)j));
	}
	for (unsigned i = 0; i < SHED_REFUSAL_COUNT; i++)
		ck_assert_uint_eq(shed_refusal_parse(shed_refusal_name((enum shed_refusal)i)), i);
	ck_assert_uint_eq(shed_refusal_parse("hot air"), SHED_REFUSAL_COUNT);
	ck_assert_str_eq(shed_mode_name(SHED_MODE_WITHDRAW), "withdraw");
	ck_assert_str_eq(shed_mode_name(SHED_MODE_DEMOTE), "demote");
	ck_assert_str_eq(shed_purpose_name(SHED_PURPOSE_SHED), "shed");
	ck_assert_str_eq(shed_purpose_name(SHED_PURPOSE_HEALTH), "health");
	ck_assert_str_eq(shed_state_name(SHED_STATE_OUT), "out");
	ck_assert_str_eq(shed_state_name(SHED_STATE_KEPT), "kept");
	ck_assert_str_eq(shed_state_name(SHED_STATE_HEALTHY), "healthy");
	ck_assert_str_eq(shed_permit_name(SHED_PERMIT_NONE), "none");
	ck_assert_str_eq(shed_permit_name(SHED_PERMIT_WAITING), "waiting");
	ck_assert_str_eq(shed_permit_name(SHED_PERMIT_GRANTED), "granted");
	ck_assert_str_eq(shed_permit_name(SHED_PERMIT_KEPT), "kept");
}
END_TEST

static void add_all(TCase *t)
{
	const TTest *const tests[] = {by_hand_with_promises, by_hand_under_the_floor,
		by_hand_in_vain, by_hand_one_after_the_other, by_hand_never_the_last_prefix,
		unshed_brings_back_and_holds, it_promises_no_more_than_it_has,
		room_is_kept_for_a_while_after_a_promise, why_it_refuses,
		what_it_asks_for_it_does_not_promise, newly_started_it_has_no_room_to_promise,
		a_promise_ends_by_itself, a_promise_with_room_ends_too, it_leaves_with_permits,
		without_permits_it_stays, one_permit_too_few, what_it_promised_it_keeps_first,
		newly_started_it_may_have_promised, a_reload_keeps_what_is_out, its_report,
		the_guard, every_word_is_one};

	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		tcase_add_test(t, tests[i]);
	tcase_add_loop_test(
		t, the_order_of_the_limits, 0, (int)(sizeof(limit_rows) / sizeof(limit_rows[0])));
}

int main(void)
{
	Suite *suite = suite_create("core-shed-promise");
	TCase *stories = tcase_create("stories");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(stories, begin, end);
	add_all(stories);
	suite_add_tcase(suite, stories);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed > 0;
}
