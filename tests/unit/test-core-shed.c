/*
 * Shedding told as stories: one server, four neighbours that report and answer as the story says,
 * and time in steps of half a second. Each story is one rule of docs/shedding.md, seen from both
 * sides.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/shed.h"

#define PREFIXES 5
#define NEIGHBOURS 4
#define CAPACITY 100000
#define STEP_MS 500

static const char *const neighbour_names[NEIGHBOURS] = {"b", "c", "d", "e"};
static const char *const prefix_names[PREFIXES] = {
	"192.0.2.1/32", "192.0.2.2/32", "192.0.2.3/32", "192.0.2.4/32", "192.0.2.5/32"};

/* What the story says of a neighbour. */
struct teller {
	bool silent; /* sends no reports */
	bool deaf;   /* answers no calls */
	enum shed_refusal refuses;
	uint64_t load, spare;
	uint32_t want;
	enum shed_state state[PREFIXES];
	uint16_t weight[PREFIXES];
	unsigned n_posts, n_deletes;
	uint64_t last_share;
};

static struct shed *shed;
static struct shed_settings settings;
static struct teller tellers[NEIGHBOURS];
static struct monotime now, reported;
static uint64_t load, prefix_load[PREFIXES];
static bool load_follows; /* own load falls and rises with what is out */
static bool sick[PREFIXES], held[PREFIXES], leaving[PREFIXES], was_out[PREFIXES];
static unsigned prefix_floor;
static bool floor_health;

static void configure(void)
{
	struct shed_prefix_config prefixes[PREFIXES];

	for (size_t v = 0; v < PREFIXES; v++)
		prefixes[v] = (struct shed_prefix_config){
			prefix_names[v], 100, prefix_floor, floor_health};
	ck_assert_int_eq(shed_configure(shed,
				 &(struct shed_config){"a", settings, prefixes, PREFIXES,
					 neighbour_names, NEIGHBOURS},
				 now),
		0);
}

static void begin(void)
{
	settings = shed_settings_default();
	settings.enabled = true;
	memset(tellers, 0, sizeof(tellers));
	memset(sick, 0, sizeof(sick));
	memset(held, 0, sizeof(held));
	memset(leaving, 0, sizeof(leaving));
	memset(was_out, 0, sizeof(was_out));
	now = (struct monotime){1000000000};
	reported = MONOTIME_ZERO;
	prefix_floor = 2;
	floor_health = false;
	load_follows = true;
	load = 60000;
	for (size_t v = 0; v < PREFIXES; v++)
		prefix_load[v] = 4000 + 2000 * v;
	for (size_t j = 0; j < NEIGHBOURS; j++) {
		tellers[j].load = 50000;
		tellers[j].spare = 32000;
		for (size_t v = 0; v < PREFIXES; v++) {
			tellers[j].state[v] = SHED_STATE_HEALTHY;
			tellers[j].weight[v] = 100;
		}
	}
	shed = shed_new(MONOTIME_ZERO);
	ck_assert_ptr_nonnull(shed);
	configure();
}

static void end(void)
{
	shed_free(shed);
	shed = NULL;
}

static bool is_out(size_t v)
{
	struct shed_prefix p;

	shed_prefix(shed, v, &p, now);
	return p.out;
}

static unsigned n_out(void)
{
	unsigned n = 0;

	for (size_t v = 0; v < PREFIXES; v++)
		n += is_out(v);
	return n;
}

static enum shed_why why(size_t v)
{
	struct shed_prefix p;

	shed_prefix(shed, v, &p, now);
	return p.why;
}

static enum shed_why last(size_t v)
{
	struct shed_prefix p;

	shed_prefix(shed, v, &p, now);
	return p.last;
}

static enum shed_why server_why(void)
{
	struct shed_server s;

	shed_server(shed, &s, now);
	return s.why;
}

static void tell_reports(void)
{
	struct shed_report_prefix prefixes[PREFIXES];

	for (size_t j = 0; j < NEIGHBOURS; j++) {
		for (size_t v = 0; v < PREFIXES; v++)
			prefixes[v] = (struct shed_report_prefix){
				tellers[j].weight[v], 500, (uint8_t)tellers[j].state[v]};
		if (!tellers[j].silent)
			shed_report(shed, j,
				&(struct shed_report){
					.boot = 1,
					.valid = true,
					.capacity = CAPACITY,
					.load = tellers[j].load,
					.spare = tellers[j].spare,
					.willing = true,
					.want = tellers[j].want,
					.prefixes = prefixes,
				},
				now, now);
	}
}

static void tell_own(void)
{
	shed_own(shed, &(struct shed_own){true, CAPACITY, load}, now);
	for (size_t v = 0; v < PREFIXES; v++)
		shed_prefix_facts(shed, v,
			&(struct shed_prefix_facts){
				.announced = !is_out(v),
				.healthy = !sick[v],
				.leaving = leaving[v],
				.held = held[v],
				.counted = true,
				.load = is_out(v) ? 0 : prefix_load[v],
			});
}

static void answer_calls(void)
{
	struct shed_call call;

	while (shed_next_call(shed, &call, now)) {
		struct teller *t = &tellers[call.neighbour];
		struct shed_answer answer = {t->refuses, 10000};

		t->n_posts += !call.give_back;
		t->n_deletes += call.give_back;
		if (call.give_back || t->deaf)
			continue;
		t->last_share = call.share;
		shed_answered(shed, &call, &answer, now);
	}
}

static void follow_load(void)
{
	for (size_t v = 0; v < PREFIXES; v++) {
		bool out = is_out(v);

		if (load_follows && out != was_out[v])
			load += out ? -prefix_load[v] : prefix_load[v];
		was_out[v] = out;
	}
}

static void decide(void)
{
	tell_own();
	shed_decide(shed, now, 0);
	follow_load();
	answer_calls();
}

static void pass(uint64_t ms)
{
	for (; ms >= STEP_MS; ms -= STEP_MS) {
		now = monotime_add_ms(now, STEP_MS);
		tell_reports();
		decide();
	}
}

/* Hot, and one prefix out. */
static size_t until_out(void)
{
	load = 90000;
	for (int i = 0; i < 60 && n_out() == 0; i++)
		pass(STEP_MS);
	for (size_t v = 0; v < PREFIXES; v++) {
		if (is_out(v))
			return v;
	}
	ck_abort_msg("nothing was shed: %s", shed_why_name(server_why()));
	return 0;
}

static void expect_no_shed(enum shed_why expected)
{
	load = 90000;
	pass(15000);
	ck_assert_uint_eq(n_out(), 0);
	ck_assert_str_eq(shed_why_name(server_why()), shed_why_name(expected));
}

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

static void set_floor(void)
{
	for (size_t j = 1; j < NEIGHBOURS; j++)
		tellers[j].state[0] = tellers[j].state[1] = tellers[j].state[2] =
			tellers[j].state[3] = tellers[j].state[4] = SHED_STATE_OUT;
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

static const struct obstacle_row obstacle_rows[] = {
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
	shed_free(shed);
	shed = shed_new(now);
	configure();
	pass(5000);
	ck_assert_int_eq(ask(0, 0, 100, 1), SHED_REFUSAL_STARTING);
	ck_assert_int_eq(ask(0, 0, 0, 1), SHED_REFUSAL_NONE);
	pass(9000);
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

START_TEST (the_order_of_the_limits) {
	struct shed_fault fault = {0};

	ck_assert(shed_settings_check(&settings, &fault));
	settings.accept_bp = settings.hot_bp;
	ck_assert(!shed_settings_check(&settings, &fault));
	ck_assert_str_eq(fault.low, "accept");
	ck_assert_str_eq(fault.high, "hot");
	settings = shed_settings_default();
	settings.guard_ms = settings.lease_ms;
	ck_assert(!shed_settings_check(&settings, &fault));
	ck_assert_str_eq(fault.low, "guard");
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
}
END_TEST

static void add_all(TCase *t)
{
	const TTest *const tests[] = {cool_server_sheds_nothing, hot_for_six_seconds_first,
		the_smallest_that_covers_the_excess, the_largest_where_none_covers, off_is_off,
		not_alone, the_whole_site_hot_absorbs, its_turn, not_after_its_start,
		not_with_a_late_timer, a_worse_weight_receives_nothing,
		the_floor_is_met_by_others_who_only_stay, never_the_last_prefix,
		never_more_than_half, all_must_have_promised, the_margin_is_asked_for,
		a_refusal_ends_it_and_it_waits, the_tier_changes_while_it_asks,
		cool_again_while_it_asks, an_answer_to_an_old_question_is_nobodys,
		leases_count_from_sending_less_guard_and_drift,
		fewer_than_the_floor_promise_and_it_returns,
		who_reports_that_it_left_has_no_promise, frozen_it_returns_at_once_when_it_wakes,
		the_room_is_asked_for_until_it_shows, last_out_first_back,
		it_returns_only_where_it_fits, no_effect_twice_returns_everything,
		a_receiver_that_rose_too_much, the_budget_of_a_server, the_budget_of_a_prefix,
		by_hand_with_promises, by_hand_under_the_floor, unshed_brings_back_and_holds,
		it_promises_no_more_than_it_has, room_is_kept_for_a_while_after_a_promise,
		why_it_refuses, what_it_asks_for_it_does_not_promise,
		newly_started_it_has_no_room_to_promise, a_promise_ends_by_itself,
		a_promise_with_room_ends_too, it_leaves_with_permits, without_permits_it_stays,
		one_permit_too_few, what_it_promised_it_keeps_first,
		newly_started_it_may_have_promised, a_reload_keeps_what_is_out, its_report,
		the_guard, the_order_of_the_limits, every_word_is_one};

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
