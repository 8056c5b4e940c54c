/*
 * Who wants to shed and who holds promises, told as stories. Each is one rule of docs/shedding.md,
 * seen from both sides.
 */
#include "tests/unit/shed-story.h"

/* ---- want ---- */

START_TEST (cool_server_sheds_nothing) {
	load = 84000;
	pass(60000);
	ck_assert_uint_eq(n_out(), 0);
	ck_assert_int_eq(server_why(), SHED_WHY_COOL);
}
END_TEST

START_TEST (hot_for_six_seconds_first) {
	load = 90000;
	pass(5500);
	ck_assert_uint_eq(n_out(), 0);
	ck_assert_int_eq(server_why(), SHED_WHY_NOT_YET);
	pass(3000);
	ck_assert_uint_eq(n_out(), 1);
}
END_TEST

START_TEST (the_smallest_that_covers_the_excess) {
	prefix_load[0] = 26000; /* 15,000 over target: covered by prefixes 0 and 4 */
	prefix_load[4] = 16000;
	ck_assert_uint_eq(until_out(), 4);
	ck_assert_uint_eq(n_out(), 1);
}
END_TEST

START_TEST (the_largest_where_none_covers) {
	ck_assert_uint_eq(until_out(), 4);
}
END_TEST

START_TEST (off_is_off) {
	settings.enabled = false;
	configure();
	expect_no_shed(SHED_WHY_OFF);
}
END_TEST

START_TEST (not_alone) {
	tellers[0].silent = tellers[1].silent = tellers[2].silent = true;
	expect_no_shed(SHED_WHY_ALONE);
}
END_TEST

START_TEST (the_whole_site_hot_absorbs) {
	tellers[0].load = tellers[1].load = 86000;
	expect_no_shed(SHED_WHY_SITE_HOT);
}
END_TEST

START_TEST (its_turn) {
	tellers[2].want = 1000;
	expect_no_shed(SHED_WHY_NOT_TOP);
	tellers[2].want = 0;
	pass(4000);
	ck_assert_uint_eq(n_out(), 1);
}
END_TEST

START_TEST (who_wants_for_ever_is_not_waited_for) {
	tellers[2].want = UINT32_MAX;
	load = 90000;
	pass(20000);
	ck_assert_uint_eq(n_out(), 0);
	pass(15000);
	ck_assert_uint_eq(n_out(), 1);
}
END_TEST

START_TEST (not_after_its_start) {
	shed_free(shed);
	shed = shed_new(now);
	configure();
	load = 90000;
	pass(12500);
	ck_assert_uint_eq(n_out(), 0);
	ck_assert_int_eq(server_why(), SHED_WHY_STARTING);
	pass(5000);
	ck_assert_uint_eq(n_out(), 1);
}
END_TEST

START_TEST (not_with_a_late_timer) {
	load = 90000;
	pass(5000);
	now = monotime_add_ms(now, 4000);
	pass(2500);
	ck_assert_uint_eq(n_out(), 0);
	ck_assert_int_eq(server_why(), SHED_WHY_LATE);
	pass(6000);
	ck_assert_uint_eq(n_out(), 1);
}
END_TEST

/* ---- candidates ---- */

struct obstacle_row {
	enum shed_why expected;
	void (*set)(void);
};

static void set_sick(void)
{
	for (size_t v = 0; v < PREFIXES; v++)
		sick[v] = true;
}

static void set_held(void)
{
	for (size_t v = 0; v < PREFIXES; v++)
		held[v] = true;
}

static void set_small(void)
{
	for (size_t v = 0; v < PREFIXES; v++)
		prefix_load[v] = 800;
}

static void set_large(void)
{
	for (size_t v = 0; v < PREFIXES; v++)
		prefix_load[v] = 28000;
}

static void set_stale(void)
{
	pass(1000);
	tellers[0].silent = true;
}

static void set_warm(void)
{
	tellers[0].load = tellers[1].load = tellers[2].load = 83000;
}

static void set_no_room(void)
{
	tellers[3].spare = 100;
}

static void set_promised(void)
{
	for (size_t v = 0; v < PREFIXES; v++)
		shed_grant(shed, &(struct shed_request){0, 1, v, 0, SHED_PURPOSE_SHED, v + 1}, now);
}

static void set_nothing(void)
{
	for (size_t v = 0; v < PREFIXES; v++)
		prefix_load[v] = 0;
	settings.pick_min_bp = 0;
	configure();
}

static void set_uncounted(void)
{
	uncounted = true;
}

static void set_unwilling(void)
{
	tellers[3].unwilling = true;
}

/* Too much for one that is warm: 3 % of its capacity. */
static void set_much_for_the_warm(void)
{
	tellers[0].load = 83000;
	for (size_t v = 0; v < PREFIXES; v++)
		prefix_load[v] = 13000;
}

/* Nobody knows how much they can take. */
static void set_unknown_loads(void)
{
	tellers[0].invalid = tellers[1].invalid = tellers[2].invalid = true;
}

static const struct obstacle_row obstacle_rows[] = {
	{SHED_WHY_TOO_SMALL, set_nothing},
	{SHED_WHY_UNCOUNTED, set_uncounted},
	{SHED_WHY_NO_ROOM, set_unwilling},
	{SHED_WHY_TIER_HOT, set_much_for_the_warm},
	{SHED_WHY_TIER_HOT, set_unknown_loads},
	{SHED_WHY_NOT_ANNOUNCED, set_sick},
	{SHED_WHY_HELD, set_held},
	{SHED_WHY_TOO_SMALL, set_small},
	{SHED_WHY_TOO_LARGE, set_large},
	{SHED_WHY_FLOOR, set_floor},
	{SHED_WHY_TIER_UNKNOWN, set_stale},
	{SHED_WHY_TIER_HOT, set_warm},
	{SHED_WHY_NO_ROOM, set_no_room},
	{SHED_WHY_PROMISED, set_promised},
};

START_TEST (obstacles) {
	const struct obstacle_row *row = &obstacle_rows[_i];

	load = 90000;
	pass(500);
	row->set();
	pass(9000);
	ck_assert_str_eq(shed_why_name(why(0)), shed_why_name(row->expected));
	ck_assert_uint_eq(n_out(), 0);
}
END_TEST

START_TEST (a_worse_weight_receives_nothing) {
	for (size_t v = 0; v < PREFIXES; v++) {
		tellers[0].weight[v] = 200;
		tellers[0].load = 84000; /* warm and without room, but not of the tier */
		tellers[0].spare = 0;
	}
	until_out();
	ck_assert_uint_eq(tellers[0].n_posts, 0);
}
END_TEST

START_TEST (the_floor_is_met_by_others_who_only_stay) {
	for (size_t v = 0; v < PREFIXES; v++)
		tellers[0].weight[v] = tellers[1].weight[v] = tellers[2].weight[v] = 200;
	until_out();
	ck_assert_uint_gt(tellers[3].last_share, 0);
	ck_assert_uint_gt(tellers[0].n_posts, 0);
	ck_assert_uint_eq(tellers[0].last_share, 0);
	ck_assert_uint_eq(tellers[2].n_posts, 0);
}
END_TEST

START_TEST (never_the_last_prefix) {
	for (size_t v = 1; v < PREFIXES; v++)
		sick[v] = true;
	load = 90000;
	pass(20000);
	ck_assert_uint_eq(n_out(), 0);
	ck_assert_int_eq(why(0), SHED_WHY_LAST_PREFIX);
}
END_TEST

START_TEST (never_more_than_half) {
	struct shed_server s;

	for (size_t v = 0; v < PREFIXES; v++)
		prefix_load[v] = 27000;
	load_follows = false; /* as if new load came in its place */
	settings.noise_bp = 2000;
	configure();
	load = 90000;
	pass(400000);
	ck_assert_uint_eq(n_out(), 2); /* 3 x 27,000 would be of 90,000 + 54,000 */
	shed_server(shed, &s, now);
	ck_assert_uint_eq(s.n_restores, 0); /* not for the guard to find */
}
END_TEST

/* ---- asking ---- */

START_TEST (all_must_have_promised) {
	tellers[2].deaf = true;
	load = 90000;
	pass(12000);
	ck_assert_uint_eq(n_out(), 0);
	ck_assert_int_eq(why(4), SHED_WHY_ASKING);
	pass(10000);
	ck_assert_int_eq(last(4), SHED_WHY_TIMEOUT);
	ck_assert_uint_ge(tellers[0].n_deletes, 1);
}
END_TEST

START_TEST (the_margin_is_asked_for) {
	until_out();
	ck_assert_uint_eq(tellers[0].last_share, 12000 * 12 / 10 / 4);
}
END_TEST

START_TEST (a_refusal_ends_it_and_it_waits) {
	tellers[1].refuses = SHED_REFUSAL_NO_ROOM;
	load = 90000;
	pass(8000);
	ck_assert_int_eq(last(4), SHED_WHY_REFUSED);
	ck_assert_int_eq(server_why(), SHED_WHY_WAITING);
	tellers[1].refuses = SHED_REFUSAL_NONE;
	pass(20000);
	ck_assert_uint_eq(n_out(), 1);
}
END_TEST

/* Another one has its turn, though the refused one would fit best. */
START_TEST (what_is_refused_is_not_all) {
	refused_prefix = 4;
	load = 90000;
	pass(60000);
	ck_assert_uint_ge(n_out(), 1);
	ck_assert(!is_out(4));
}
END_TEST

START_TEST (the_tier_changes_while_it_asks) {
	tellers[2].deaf = true;
	load = 90000;
	pass(8000);
	ck_assert_int_eq(why(4), SHED_WHY_ASKING);
	tellers[3].state[4] = SHED_STATE_OUT;
	pass(500);
	ck_assert_int_eq(last(4), SHED_WHY_TIER_CHANGED);
}
END_TEST

START_TEST (cool_again_while_it_asks) {
	tellers[2].deaf = true;
	load = 90000;
	pass(8000);
	load = 70000;
	pass(500);
	ck_assert_int_eq(last(4), SHED_WHY_COOL);
}
END_TEST

/* Whoever froze the server, or took the prefix in hand, did it before anything was out. */
START_TEST (held_while_it_asks) {
	tellers[2].deaf = true;
	load = 90000;
	pass(8000);
	ck_assert_int_eq(why(4), SHED_WHY_ASKING);
	for (size_t v = 0; v < PREFIXES; v++)
		held[v] = true;
	tellers[2].deaf = false;
	pass(20000);
	ck_assert_uint_eq(n_out(), 0);
	ck_assert_int_eq(last(4), SHED_WHY_HELD);
	ck_assert_int_eq(why(4), SHED_WHY_HELD);
}
END_TEST

START_TEST (an_answer_to_an_old_question_is_nobodys) {
	struct shed_call call = {0};

	tellers[2].deaf = true;
	load = 90000;
	pass(6000);
	now = monotime_add_ms(now, STEP_MS);
	tell_reports();
	tell_own();
	shed_decide(shed, now, 0);
	while (shed_next_call(shed, &call, now) && call.neighbour != 2)
		;
	call.request--;
	shed_answered(shed, &call, &(struct shed_answer){SHED_REFUSAL_NONE, 10000}, now);
	pass(2000);
	ck_assert_uint_eq(n_out(), 0);
}
END_TEST

/* ---- keeping ---- */

START_TEST (leases_count_from_sending_less_guard_and_drift) {
	size_t v = until_out();
	struct shed_promise p;
	struct monotime sent = now;

	ck_assert(shed_promise(shed, v, 0, &p));
	ck_assert_uint_eq((p.until.us - 7800 * 1000) % (STEP_MS * 1000), 0); /* a step's moment */
	ck_assert_uint_le(p.until.us, monotime_add_ms(sent, 10000 - 2000 - 200).us);
	ck_assert_uint_ge(p.until.us, monotime_add_ms(sent, 10000 - 2000 - 200 - 1000).us);
}
END_TEST

/* A promise for a minute is one for as long as was asked: whoever gave it may be gone by then. */
START_TEST (nobody_promises_for_longer_than_asked) {
	size_t v = until_out();
	struct shed_call call;

	now = monotime_add_ms(now, 2500);
	tell_own();
	shed_decide(shed, now, 0);
	while (shed_next_call(shed, &call, now))
		shed_answered(shed, &call, &(struct shed_answer){SHED_REFUSAL_NONE, 60000}, now);
	ck_assert(is_out(v));
	for (size_t j = 0; j < NEIGHBOURS; j++)
		tellers[j].deaf = true;
	pass(9000);
	ck_assert(!is_out(v));
}
END_TEST

START_TEST (fewer_than_the_floor_promise_and_it_returns) {
	size_t v = until_out();

	tellers[0].deaf = tellers[1].deaf = true;
	pass(30000);
	ck_assert(is_out(v));
	tellers[2].deaf = true;
	pass(10000);
	ck_assert(!is_out(v));
	ck_assert_int_eq(last(v), SHED_WHY_LEASES);
	pass(60000);
	ck_assert_int_eq(why(v), SHED_WHY_BACK_OFF);
}
END_TEST

START_TEST (who_reports_that_it_left_has_no_promise) {
	size_t v = until_out();

	for (size_t j = 0; j < 3; j++)
		tellers[j].state[v] = SHED_STATE_OUT;
	pass(500);
	ck_assert(!is_out(v));
}
END_TEST

START_TEST (frozen_it_returns_at_once_when_it_wakes) {
	size_t v = until_out();

	now = monotime_add_ms(now, 60000);
	decide();
	ck_assert(!is_out(v));
}
END_TEST

START_TEST (the_room_is_asked_for_until_it_shows) {
	until_out();
	pass(11000);
	ck_assert_uint_gt(tellers[0].last_share, 0);
	pass(4000);
	ck_assert_uint_eq(tellers[0].last_share, 0);
}
END_TEST

/* ---- back ---- */

START_TEST (last_out_first_back) {
	size_t first = until_out(), second = PREFIXES;

	load = 90000;
	pass(60000);
	ck_assert_uint_ge(n_out(), 2);
	for (size_t v = 0; v < PREFIXES; v++) {
		struct shed_prefix p;

		shed_prefix(shed, v, &p, now);
		if (p.out && p.order == n_out())
			second = v;
	}
	load = 30000;
	pass(299000);
	ck_assert(is_out(first) && is_out(second));
	for (int i = 0; i < 1000 && is_out(second); i++)
		pass(STEP_MS);
	ck_assert(is_out(first) && !is_out(second));
	ck_assert_int_eq(last(second), SHED_WHY_RELEASED);
	pass(55000);
	ck_assert(is_out(first));
}
END_TEST

START_TEST (it_returns_only_where_it_fits) {
	size_t v = until_out();

	load = 72000 - prefix_load[v] * 12 / 10 + 500;
	pass(600000);
	ck_assert(is_out(v));
	load -= 1000;
	pass(1000);
	ck_assert(!is_out(v));
}
END_TEST

START_TEST (no_effect_twice_returns_everything) {
	struct shed_server s;

	load_follows = false;
	load = 90000;
	pass(60000);
	shed_server(shed, &s, now);
	ck_assert_uint_eq(n_out(), 0);
	ck_assert_int_eq(s.why, SHED_WHY_STOPPED);
	ck_assert(s.alarm);
	pass(3500000);
	ck_assert_uint_eq(n_out(), 0);
	load = 60000;
	pass(100000);
	shed_server(shed, &s, now);
	ck_assert(!s.alarm);
}
END_TEST

START_TEST (a_receiver_that_rose_too_much) {
	size_t v = until_out();

	tellers[1].load = 70000;
	pass(15000);
	tellers[1].load = 86000;
	pass(8000);
	ck_assert(!is_out(v));
	ck_assert_int_eq(last(v), SHED_WHY_RECEIVER_ROSE);
	pass(3000000);
	ck_assert(!is_out(v));
}
END_TEST

START_TEST (the_budget_of_a_server) {
	unsigned n;

	settings.server_changes = 2;
	settings.noise_bp = 2000;
	configure();
	load_follows = true;
	for (int i = 0; i < 400; i++) {
		load = 95000;
		pass(1000);
	}
	n = n_out();
	ck_assert_uint_eq(n, 2);
	ck_assert_int_eq(server_why(), SHED_WHY_BUDGET);
}
END_TEST

START_TEST (the_budget_of_a_prefix) {
	size_t v = until_out();

	settings.back_off_ms = settings.leave_alone_ms = 1000;
	configure();
	for (size_t j = 0; j < NEIGHBOURS; j++)
		tellers[j].deaf = true;
	pass(12000);
	ck_assert(!is_out(v));
	for (size_t j = 0; j < NEIGHBOURS; j++)
		tellers[j].deaf = false;
	for (size_t i = 0; i < PREFIXES; i++)
		held[i] = i != v;
	load = 90000;
	pass(40000);
	ck_assert_int_eq(why(v), SHED_WHY_BUDGET);
	pass(900000);
	ck_assert(is_out(v));
}
END_TEST

static void add_all(TCase *t)
{
	const TTest *const tests[] = {cool_server_sheds_nothing, hot_for_six_seconds_first,
		the_smallest_that_covers_the_excess, the_largest_where_none_covers, off_is_off,
		not_alone, the_whole_site_hot_absorbs, its_turn,
		who_wants_for_ever_is_not_waited_for, not_after_its_start, not_with_a_late_timer,
		a_worse_weight_receives_nothing, the_floor_is_met_by_others_who_only_stay,
		never_the_last_prefix, never_more_than_half, all_must_have_promised,
		the_margin_is_asked_for, a_refusal_ends_it_and_it_waits,
		the_tier_changes_while_it_asks, cool_again_while_it_asks, held_while_it_asks,
		what_is_refused_is_not_all, an_answer_to_an_old_question_is_nobodys,
		leases_count_from_sending_less_guard_and_drift,
		nobody_promises_for_longer_than_asked, fewer_than_the_floor_promise_and_it_returns,
		who_reports_that_it_left_has_no_promise, frozen_it_returns_at_once_when_it_wakes,
		the_room_is_asked_for_until_it_shows, last_out_first_back,
		it_returns_only_where_it_fits, no_effect_twice_returns_everything,
		a_receiver_that_rose_too_much, the_budget_of_a_server, the_budget_of_a_prefix};

	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		tcase_add_test(t, tests[i]);
	tcase_add_loop_test(t, obstacles, 0, sizeof(obstacle_rows) / sizeof(obstacle_rows[0]));
}

int main(void)
{
	Suite *suite = suite_create("core-shed");
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
