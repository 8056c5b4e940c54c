/*
 * What a reload carries over of shedding: what is out, asked for and given back, permits and
 * promises go along by name, whatever their places are, and what is gone is forgotten. And what is
 * shown of promises, how many records there are, and which reports count.
 */
#include "tests/unit/shed-story.h"

static const char *const reversed_neighbours[NEIGHBOURS] = {"e", "d", "c", "b"};

/* The prefixes from the last to the first, without so many of them and of these neighbours. */
static void configure_with(size_t n_gone_prefixes, const char *const *neighbours, size_t n_gone)
{
	struct shed_prefix_config prefixes[PREFIXES];

	for (size_t v = 0; v < PREFIXES; v++)
		prefixes[v] = (struct shed_prefix_config){
			prefix_names[PREFIXES - 1 - v], 100, prefix_floor, floor_health};
	ck_assert_int_eq(
		shed_configure(shed,
			&(struct shed_config){"a", settings, prefixes, PREFIXES - n_gone_prefixes,
				neighbours, NEIGHBOURS - n_gone},
			now),
		0);
}

static void configure_reversed(size_t n_gone_prefixes, size_t n_gone_neighbours)
{
	configure_with(n_gone_prefixes, reversed_neighbours, n_gone_neighbours);
}

static struct shed_prefix shown(size_t v)
{
	struct shed_prefix p;

	shed_prefix(shed, v, &p, now);
	return p;
}

static struct shed_promise promise_of(size_t v, size_t nth)
{
	struct shed_promise p;

	ck_assert(shed_promise(shed, v, nth, &p));
	return p;
}

static unsigned count_calls(bool give_back)
{
	struct shed_call call;
	unsigned n = 0;

	while (shed_next_call(shed, &call, now))
		n += call.give_back == give_back;
	return n;
}

static enum shed_refusal ask_stay(size_t neighbour, size_t prefix)
{
	return shed_grant(
		shed, &(struct shed_request){neighbour, 1, prefix, 0, SHED_PURPOSE_HEALTH, 1}, now)
		.refused;
}

/* ---- carried over ---- */

START_TEST (what_is_out_goes_along_by_name) {
	size_t v = until_out(), there = PREFIXES - 1 - v;
	struct shed_prefix before = shown(v), after;
	struct shed_promise promises[NEIGHBOURS], p;

	for (size_t k = 0; k < NEIGHBOURS; k++)
		promises[k] = promise_of(v, k);
	configure_reversed(0, 0);
	after = shown(there);
	ck_assert(after.out);
	ck_assert_uint_eq(n_out(), 1);
	ck_assert_uint_eq(after.since.us, before.since.us);
	ck_assert_uint_eq(after.until.us, before.until.us);
	ck_assert_uint_eq(after.order, before.order);
	ck_assert_uint_eq(after.load_moved, before.load_moved);
	ck_assert_uint_eq(after.n_promised, before.n_promised);
	for (size_t k = 0; k < NEIGHBOURS; k++) {
		p = promise_of(there, k);
		ck_assert_uint_eq(p.neighbour, NEIGHBOURS - 1 - promises[k].neighbour);
		ck_assert_uint_eq(p.until.us, promises[k].until.us);
		ck_assert_uint_eq(p.share, promises[k].share);
	}
	ck_assert(!shed_promise(shed, there, NEIGHBOURS, &p));
	/* They are renewed, of those who promised them, and so it stays out. */
	memset(was_out, 0, sizeof(was_out));
	was_out[there] = true;
	pass(30000);
	ck_assert(is_out(there));
}
END_TEST

START_TEST (what_is_gone_is_forgotten) {
	size_t v = until_out();
	struct shed_server s;

	ck_assert_uint_eq(v, PREFIXES - 1);
	for (size_t j = 0; j < NEIGHBOURS; j++)
		tellers[j].n_posts = 0;
	shed_prefix_weight(shed, 0, 7);
	/* without the last: it is the first of the reversed ones that goes, prefix 0 */
	configure_reversed(1, 0);
	ck_assert(is_out(0));
	/* and now the one that is out */
	ck_assert_int_eq(shed_configure(shed,
				 &(struct shed_config){"a", settings,
					 &(struct shed_prefix_config){prefix_names[0], 7, 2, false},
					 1, neighbour_names, NEIGHBOURS},
				 now),
		0);
	shed_server(shed, &s, now);
	ck_assert_uint_eq(s.n_out, 0);
	ck_assert_uint_eq(s.n_sheds, 1); /* it was, and that counts on */
	ck_assert_uint_eq(count_calls(false), 0);
	ck_assert_uint_eq(count_calls(true), 0); /* the promises lapse */
	ck_assert(!shown(0).out);
}
END_TEST

START_TEST (who_is_gone_has_promised_nothing) {
	size_t v = until_out(), there = PREFIXES - 1 - v;

	configure_reversed(0, 2);
	ck_assert_uint_eq(shown(there).n_promised, 2);
	shed_decide(shed, now, 0);
	ck_assert(is_out(there)); /* the floor is two */
	ck_assert_int_eq(
		shed_configure(shed,
			&(struct shed_config){"a", settings,
				&(struct shed_prefix_config){prefix_names[v], 100, 2, false}, 1,
				neighbour_names + 3, 1},
			now),
		0);
	ck_assert_uint_eq(shown(0).n_promised, 1);
	shed_decide(shed, now, 0);
	ck_assert(!is_out(0));
	ck_assert_str_eq(shed_why_name(last(0)), "leases");
}
END_TEST

START_TEST (what_was_promised_goes_along) {
	struct shed_promise p;

	pass(1000);
	ck_assert_int_eq(ask_stay(0, 0), SHED_REFUSAL_NONE);
	ck_assert_int_eq(ask_stay(3, 0), SHED_REFUSAL_NONE);
	ck_assert_int_eq(ask_stay(1, 2), SHED_REFUSAL_NONE);
	configure_reversed(0, 1); /* neighbour 0 is gone */
	ck_assert(!shed_promise(shed, 0, 0, &p));
	p = promise_of(PREFIXES - 1, 0);
	ck_assert(p.given);
	ck_assert_uint_eq(p.neighbour, 0);
	ck_assert_int_eq(p.purpose, SHED_PURPOSE_HEALTH);
	ck_assert_uint_eq(p.until.us, monotime_add_ms(now, settings.lease_ms).us);
	ck_assert(!shed_promise(shed, PREFIXES - 1, 1, &p));
	ck_assert_uint_eq(promise_of(2, 0).neighbour, 2);
	ck_assert_uint_eq(shown(2).n_owed, 1);
	configure_reversed(PREFIXES - 2, 1);
	ck_assert(!shed_promise(shed, 0, 0, &p));
	ck_assert(!shed_promise(shed, 1, 0, &p));
}
END_TEST

START_TEST (what_is_asked_for_goes_along) {
	struct shed_answer granted = {SHED_REFUSAL_NONE, 10000};
	struct shed_call calls[NEIGHBOURS];
	size_t v, n = 0;

	for (size_t j = 0; j < NEIGHBOURS; j++)
		tellers[j].deaf = true;
	load = 90000;
	while (server_why() != SHED_WHY_ASKING)
		pass(STEP_MS);
	for (v = 0; why(v) != SHED_WHY_ASKING; v++)
		ck_assert_uint_lt(v, PREFIXES);
	configure_with(0, neighbour_names, 0);
	v = PREFIXES - 1 - v;
	ck_assert_str_eq(shed_why_name(why(v)), "asking");
	now = monotime_add_ms(now, settings.renew_ms / 2);
	while (n < NEIGHBOURS && shed_next_call(shed, &calls[n], now))
		n++;
	ck_assert_uint_eq(n, NEIGHBOURS);
	for (size_t k = 0; k < n; k++) {
		ck_assert_uint_eq(calls[k].prefix, v);
		ck_assert_uint_eq(calls[k].request, calls[0].request);
		shed_answered(shed, &calls[k], &granted, now);
	}
	tell_reports();
	tell_own();
	ck_assert_uint_eq(shown(v).n_promised, NEIGHBOURS);
	ck_assert(shed_decide(shed, now, 0));
	ck_assert(is_out(v));
}
END_TEST

START_TEST (a_permit_that_is_asked_for_goes_along) {
	struct shed_answer granted = {SHED_REFUSAL_NONE, 10000};
	struct shed_call call;
	struct shed_promise p;

	floor_health = true;
	configure();
	pass(1000);
	for (size_t j = 0; j < NEIGHBOURS; j++)
		tellers[j].deaf = true;
	sick[0] = true;
	shed_leave(shed, 0, true, now);
	shed_leave(shed, 0, true, now); /* once is enough */
	decide();
	p = promise_of(0, NEIGHBOURS - 1);
	ck_assert(!p.given);
	ck_assert_int_eq(p.purpose, SHED_PURPOSE_HEALTH);
	ck_assert_uint_eq(p.until.us, 0);
	configure_reversed(0, 0);
	ck_assert_int_eq(shed_permit(shed, PREFIXES - 1), SHED_PERMIT_WAITING);
	ck_assert_int_eq(shed_permit(shed, 0), SHED_PERMIT_NONE);
	now = monotime_add_ms(now, settings.renew_ms / 2);
	for (unsigned n = 0; n < 2; n++) {
		ck_assert(shed_next_call(shed, &call, now));
		ck_assert_uint_eq(call.prefix, PREFIXES - 1);
		ck_assert_int_eq(call.purpose, SHED_PURPOSE_HEALTH);
		shed_answered(shed, &call, &granted, now);
	}
	ck_assert(shed_decide(shed, now, 0));
	ck_assert_int_eq(shed_permit(shed, PREFIXES - 1), SHED_PERMIT_GRANTED);
}
END_TEST

START_TEST (what_is_given_back_goes_along) {
	size_t v = until_out();
	struct shed_call call;
	unsigned n[NEIGHBOURS] = {0};

	shed_word(shed, v, SHED_WORD_UNSHED, now);
	shed_decide(shed, now, 0);
	ck_assert(!is_out(v));
	configure_reversed(0, 1);
	while (shed_next_call(shed, &call, now)) {
		ck_assert(call.give_back);
		ck_assert_uint_eq(call.prefix, PREFIXES - 1 - v);
		ck_assert_uint_lt(call.neighbour, NEIGHBOURS - 1);
		ck_assert_uint_eq(n[call.neighbour]++, 0);
	}
	ck_assert_uint_eq(n[0] + n[1] + n[2], NEIGHBOURS - 1);
}
END_TEST

/* ---- as many as there are ---- */

/* Asked for and given up, and nobody reads the calls: the record waits for that. */
static void ask_in_vain(size_t v)
{
	shed_word(shed, v, SHED_WORD_SHED, now);
	shed_decide(shed, now, 0);
	shed_word(shed, v, SHED_WORD_UNSHED, now);
	shed_decide(shed, now, 0);
}

START_TEST (without_a_free_record_it_waits) {
	pass(1000);
	for (unsigned i = 0; i < 2 * PREFIXES + 2; i++)
		ask_in_vain(0);
	shed_word(shed, 1, SHED_WORD_SHED, now);
	shed_decide(shed, now, 0);
	ck_assert_int_ne(why(1), SHED_WHY_ASKING);
	(void)count_calls(true); /* this makes room */
	shed_decide(shed, now, 0);
	ck_assert_str_eq(shed_why_name(why(1)), "asking");
}
END_TEST

START_TEST (what_only_gives_back_comes_last) {
	struct shed_prefix_config two[] = {
		{prefix_names[0], 100, 2, false}, {prefix_names[1], 100, 2, false}};

	pass(1000);
	for (unsigned i = 0; i < 2 * PREFIXES + 1; i++)
		ask_in_vain(0);
	shed_word(shed, 0, SHED_WORD_SHED, now);
	shed_decide(shed, now, 0);
	ck_assert_str_eq(shed_why_name(why(0)), "asking");
	ck_assert_int_eq(
		shed_configure(shed,
			&(struct shed_config){"a", settings, two, 2, neighbour_names, NEIGHBOURS},
			now),
		0);
	/* of 2 x 2 + 2 records the one that asks, and five of eleven that end: none is free */
	ck_assert_str_eq(shed_why_name(why(0)), "asking");
	ask_in_vain(0);
	shed_word(shed, 0, SHED_WORD_SHED, now);
	shed_decide(shed, now, 0);
	ck_assert_int_ne(why(0), SHED_WHY_ASKING);
	(void)count_calls(true);
	shed_decide(shed, now, 0);
	ck_assert_str_eq(shed_why_name(why(0)), "asking");
}
END_TEST

START_TEST (without_a_free_record_no_permit) {
	struct shed_promise p;

	floor_health = true;
	configure();
	pass(1000);
	for (unsigned i = 0; i < 2 * PREFIXES; i++) {
		shed_leave(shed, 0, true, now);
		shed_decide(shed, now, 0);
		ck_assert(shed_promise(shed, 0, 0, &p));
		shed_leave(shed, 0, false, now);
		shed_decide(shed, now, 0);
	}
	ck_assert_int_eq(shed_permit(shed, 0), SHED_PERMIT_NONE);
	shed_leave(shed, 0, true, now);
	shed_decide(shed, now, 0);
	ck_assert(!shed_promise(shed, 0, 0, &p)); /* nobody was asked */
	(void)count_calls(true);
	ck_assert_int_eq(shed_permit(shed, 0), SHED_PERMIT_WAITING);
	pass(1000);
	ck_assert_int_eq(shed_permit(shed, 0), SHED_PERMIT_GRANTED);
}
END_TEST

/* ---- permits ---- */

START_TEST (no_floor_no_permit_needed) {
	pass(1000);
	shed_leave(shed, 0, true, now);
	ck_assert(shed_decide(shed, now, 0));
	ck_assert_int_eq(shed_permit(shed, 0), SHED_PERMIT_GRANTED);
}
END_TEST

START_TEST (who_is_the_last_asks_nobody) {
	floor_health = true;
	configure();
	set_floor(); /* one other announces, and the floor is two */
	pass(1000);
	sick[0] = true;
	shed_leave(shed, 0, true, now);
	for (size_t j = 0; j < NEIGHBOURS; j++)
		tellers[j].n_posts = 0;
	pass(5000);
	ck_assert_int_eq(shed_permit(shed, 0), SHED_PERMIT_KEPT);
	ck_assert_uint_eq(tellers[0].n_posts, 0);
	tellers[1].state[0] = SHED_STATE_HEALTHY;
	tellers[2].state[0] = SHED_STATE_KEPT; /* is not asked */
	pass(15000);
	ck_assert_int_eq(shed_permit(shed, 0), SHED_PERMIT_GRANTED);
	ck_assert_uint_gt(tellers[1].n_posts, 0);
	ck_assert_uint_eq(tellers[2].n_posts, 0);
}
END_TEST

START_TEST (what_is_out_already_needs_no_other_permit) {
	size_t v;

	floor_health = true;
	configure();
	v = until_out();
	shed_leave(shed, v, true, now);
	sick[v] = true;
	tell_own();
	ck_assert(shed_decide(shed, now, 0));
	ck_assert_int_eq(shed_permit(shed, v), SHED_PERMIT_GRANTED);
	ck_assert(!is_out(v));
	ck_assert_str_eq(shed_why_name(last(v)), "gone");
	ck_assert_uint_eq(count_calls(true), NEIGHBOURS);
}
END_TEST

START_TEST (who_stays_after_all_gives_permits_back) {
	floor_health = true;
	configure();
	pass(1000);
	for (size_t j = 1; j < NEIGHBOURS; j++)
		tellers[j].deaf = true;
	shed_leave(shed, 0, true, now);
	decide();
	tellers[0].n_deletes = 0;
	shed_leave(shed, 0, false, now);
	decide();
	ck_assert_uint_eq(tellers[0].n_deletes, 1);
	ck_assert_int_eq(shed_permit(shed, 0), SHED_PERMIT_NONE);
}
END_TEST

/* ---- reports, and what is shown ---- */

static struct shed_server server(void)
{
	struct shed_server s;

	shed_server(shed, &s, now);
	return s;
}

START_TEST (an_older_report_says_nothing) {
	struct shed_report_prefix out[PREFIXES] = {0};
	struct shed_report report = {.boot = 1, .valid = true, .capacity = 1, .prefixes = out};

	pass(1000);
	ck_assert_uint_eq(server().n_hot, 0);
	report.load = 2;
	shed_report(shed, 0, &report, (struct monotime){now.us - 1}, now);
	ck_assert_uint_eq(server().n_hot, 0);
	shed_report(shed, 0, &report, now, now);
	ck_assert_uint_eq(server().n_hot, 1);
	report.capacity = 0; /* of nothing no part is known */
	shed_report(shed, 0, &report, now, now);
	ck_assert_uint_eq(server().n_hot, 0);
	now = monotime_add_ms(now, settings.stale_ms + 1);
	ck_assert_uint_eq(server().n_fresh, 0);
}
END_TEST

/* A neighbour may say what it wants; nothing overflows, and nothing is made of it. */
START_TEST (amounts_beyond_all_bounds) {
	struct shed_report_prefix prefixes[PREFIXES];
	struct shed_report report = {.boot = 1,
		.valid = true,
		.capacity = UINT64_MAX,
		.load = UINT64_MAX,
		.spare = UINT64_MAX,
		.willing = true,
		.prefixes = prefixes};

	for (size_t v = 0; v < PREFIXES; v++)
		prefixes[v] =
			(struct shed_report_prefix){UINT16_MAX, UINT16_MAX, SHED_STATE_HEALTHY};
	for (size_t j = 0; j < NEIGHBOURS; j++)
		shed_report(shed, j, &report, now, now);
	ck_assert_uint_eq(server().n_hot, NEIGHBOURS);
	load = 90000;
	decide();
	ck_assert_uint_eq(n_out(), 0);
}
END_TEST

START_TEST (what_is_unknown_is_not_shown_as_load) {
	struct shed_report_prefix prefixes[PREFIXES];
	struct shed_report report;

	pass(1000);
	ck_assert(server().valid);
	ck_assert_uint_eq(server().utilisation_bp, 6000);
	prefix_load[0] = SHED_AMOUNT_MAX;
	tell_own();
	shed_report_own(shed, &report, prefixes, now);
	ck_assert_uint_eq(prefixes[0].load_bp, UINT16_MAX);
	ck_assert(report.willing);
	shed_own(shed, &(struct shed_own){true, 0, 0}, now); /* no capacity */
	shed_report_own(shed, &report, prefixes, now);
	ck_assert(!report.valid && !report.willing);
	ck_assert_uint_eq(report.spare, 0);
	ck_assert_uint_eq(prefixes[1].load_bp, 0);
	ck_assert(!server().valid);
	ck_assert_uint_eq(server().utilisation_bp, 0);
	ck_assert_uint_eq(server().spare, 0);
	settings.receive = false;
	configure();
	tell_own();
	shed_report_own(shed, &report, prefixes, now);
	ck_assert(report.valid && !report.willing);
}
END_TEST

START_TEST (without_a_route_nobody_announces) {
	size_t v = until_out();

	for (size_t j = 0; j < NEIGHBOURS; j++)
		shed_route(shed, j, v, j > 2);
	pass(1000); /* their promises are void: one is too few */
	ck_assert(!is_out(v));
	ck_assert_str_eq(shed_why_name(last(v)), "leases");
	ck_assert_uint_gt(shown(v).until.us, 0);
}
END_TEST

START_TEST (how_long_it_is_left_alone_is_shown) {
	size_t v = until_out();

	shed_word(shed, v, SHED_WORD_UNSHED, now);
	pass(STEP_MS);
	shed_word(shed, v, SHED_WORD_NONE, now);
	load = 95000;
	for (size_t i = 0; i < PREFIXES; i++)
		held[i] = i != v;
	pass(25000);
	ck_assert_str_eq(shed_why_name(why(v)), "back_off");
	ck_assert_uint_gt(shown(v).until.us, now.us);
	ck_assert(!monotime_is_never(shown(v).until));
}
END_TEST

static void add_all(TCase *t)
{
	const TTest *const tests[] = {what_is_out_goes_along_by_name, what_is_gone_is_forgotten,
		who_is_gone_has_promised_nothing, what_was_promised_goes_along,
		what_is_asked_for_goes_along, a_permit_that_is_asked_for_goes_along,
		what_is_given_back_goes_along, without_a_free_record_it_waits,
		what_only_gives_back_comes_last, without_a_free_record_no_permit,
		no_floor_no_permit_needed, who_is_the_last_asks_nobody,
		what_is_out_already_needs_no_other_permit, who_stays_after_all_gives_permits_back,
		an_older_report_says_nothing, amounts_beyond_all_bounds,
		what_is_unknown_is_not_shown_as_load, without_a_route_nobody_announces,
		how_long_it_is_left_alone_is_shown};

	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		tcase_add_test(t, tests[i]);
}

int main(void)
{
	Suite *suite = suite_create("core-shed-reload");
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
