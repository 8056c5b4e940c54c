/*
 * What the stories in tests/scenario do not tell of the engine: the order and the bound of its
 * transitions, what a caller must not do, and that thousands of prefixes cost what they should.
 * The rules in time are in tests/scenario/ *.scenario, the invariants in property-engine.c.
 */
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/core/engine.h"
#include "tests/unit/cost.h"

#define MANY 5000

static const struct engine_check_config process = {
	"process", "one", {.interval_ms = 1000, .fast_interval_ms = 500, .rise = 1, .fall = 1}};
static const struct engine_prefix_config dns_prefixes[] = {
	{.name = "192.0.2.53/32", .weight = 100, .address_check = true},
	{.name = "192.0.2.54/32", .weight = 200, .address_check = true},
};

static struct engine *new_engine(uint64_t coalesce_ms)
{
	struct engine_service_config dns = {.name = "dns",
		.require = {SERVICE_REQUIRE_ALL, 0},
		.checks = &process,
		.n_checks = 1,
		.prefixes = dns_prefixes,
		.n_prefixes = 2};
	struct engine_config config = {coalesce_ms, &dns, 1};
	struct engine *e = engine_new();

	ck_assert_ptr_nonnull(e);
	ck_assert_int_eq(engine_configure(e, &config, MONOTIME_ZERO), 0);
	return e;
}

static struct engine_transition next_transition(struct engine *e)
{
	struct engine_transition t;

	ck_assert(engine_next_transition(e, &t));
	return t;
}

/* ---- transitions ---- */

START_TEST (transitions_come_in_order) {
	struct engine *e = new_engine(0);
	struct monotime now = {1000};
	struct engine_transition t;

	engine_found(e, 0, 0, PREFIX_WANTED_ANNOUNCE);
	ck_assert(!engine_next_transition(e, &t));
	engine_check_spoke(e, 0, 0, CHECK_OUTCOME_GOOD, now);
	ck_assert(engine_decide(e, now));

	t = next_transition(e);
	ck_assert_int_eq(t.kind, ENGINE_TRANSITION_CHECK);
	ck_assert_int_eq(t.from, CHECK_STATE_PENDING);
	ck_assert_int_eq(t.to, CHECK_STATE_UP);
	ck_assert_uint_eq(t.when.us, now.us);
	t = next_transition(e);
	ck_assert_int_eq(t.kind, ENGINE_TRANSITION_SERVICE);
	ck_assert_int_eq(t.from, SERVICE_HEALTH_UNDECIDED);
	ck_assert_int_eq(t.to, SERVICE_HEALTH_HEALTHY);
	/* Announced as before: only the reason is new. */
	t = next_transition(e);
	ck_assert_int_eq(t.kind, ENGINE_TRANSITION_PREFIX);
	ck_assert_uint_eq(t.index, 0);
	ck_assert_int_eq(t.from, PREFIX_WANTED_ANNOUNCE);
	ck_assert_int_eq(t.to, PREFIX_WANTED_ANNOUNCE);
	ck_assert_int_eq(t.reason, PREFIX_REASON_HEALTHY);
	t = next_transition(e);
	ck_assert_uint_eq(t.index, 1);
	ck_assert_int_eq(t.from, PREFIX_WANTED_WITHDRAW);
	ck_assert_int_eq(t.to, PREFIX_WANTED_ANNOUNCE);
	ck_assert(!engine_next_transition(e, &t));
	ck_assert(!engine_decide(e, now));
	engine_free(e);
}
END_TEST

/* Nobody reads: the oldest are dropped, the newest are there, in their order. */
START_TEST (transitions_are_bounded) {
	struct engine *e = new_engine(0);
	struct engine_transition t, last = {.when = MONOTIME_ZERO};
	const unsigned flaps = 10000;
	unsigned n = 0;

	for (unsigned i = 1; i <= flaps; i++) {
		struct monotime now = {i};

		engine_check_spoke(e, 0, 0, i % 2 ? CHECK_OUTCOME_GOOD : CHECK_OUTCOME_BAD, now);
		engine_decide(e, now);
	}
	while (engine_next_transition(e, &t)) {
		ck_assert(!monotime_before(t.when, last.when));
		last = t;
		n++;
	}
	ck_assert_uint_eq(last.when.us, flaps);
	ck_assert_uint_ge(n, 8); /* what two decisions about everything can change */
	ck_assert_uint_le(n, 1000);
	engine_free(e);
}
END_TEST

START_TEST (a_reload_drops_unread_transitions) {
	struct engine *e = new_engine(0);
	struct engine_config nothing = {0, NULL, 0};
	struct engine_transition t;

	engine_check_spoke(e, 0, 0, CHECK_OUTCOME_GOOD, MONOTIME_ZERO);
	engine_decide(e, MONOTIME_ZERO);
	ck_assert_int_eq(engine_configure(e, &nothing, MONOTIME_ZERO), 0);
	ck_assert(!engine_next_transition(e, &t));
	ck_assert(!engine_decide(e, MONOTIME_ZERO));
	engine_free(e);
}
END_TEST

/* ---- facts ---- */

START_TEST (found_comes_before_the_first_decision) {
	struct engine *e = new_engine(0);

	engine_found(e, 0, 0, PREFIX_WANTED_ANNOUNCE);
	ck_assert_int_eq(engine_prefix(e, 0, 0)->wanted, PREFIX_WANTED_ANNOUNCE);
	engine_decide(e, MONOTIME_ZERO);
	engine_found(e, 0, 0, PREFIX_WANTED_WITHDRAW);
	engine_found(e, 0, 1, PREFIX_WANTED_ANNOUNCE);
	engine_address(e, 0, 0, PREFIX_ADDRESS_PRESENT);
	engine_decide(e, MONOTIME_ZERO);
	ck_assert_int_eq(engine_prefix(e, 0, 0)->wanted, PREFIX_WANTED_ANNOUNCE);
	ck_assert_int_eq(engine_prefix(e, 0, 1)->wanted, PREFIX_WANTED_WITHDRAW);
	engine_free(e);
}
END_TEST

/* A window without an end is an announcement that never comes, not one that comes at once. */
START_TEST (an_endless_window_never_ends) {
	struct engine *e = new_engine(UINT64_MAX);

	engine_check_spoke(e, 0, 0, CHECK_OUTCOME_GOOD, MONOTIME_ZERO);
	ck_assert(!engine_decide(e, (struct monotime){1}));
	ck_assert(!engine_decide(e, (struct monotime){UINT64_MAX - 1}));
	ck_assert_int_eq(engine_prefix(e, 0, 0)->wanted, PREFIX_WANTED_WITHDRAW);
	ck_assert(monotime_is_never(engine_deadline(e)));
	engine_free(e);
}
END_TEST

START_TEST (an_empty_engine_decides_nothing) {
	struct engine *e = engine_new();

	ck_assert(!engine_decide(e, MONOTIME_ZERO));
	ck_assert(monotime_is_never(engine_deadline(e)));
	engine_stop(e);
	ck_assert(!engine_decide(e, MONOTIME_ZERO));
	engine_free(e);
	engine_free(NULL);
}
END_TEST

/* ---- what a reload would drop ---- */

START_TEST (a_change_says_what_it_drops) {
	struct engine_service_config dns = {.name = "dns",
		.require = {SERVICE_REQUIRE_ALL, 0},
		.checks = &process,
		.n_checks = 1,
		.prefixes = dns_prefixes + 1,
		.n_prefixes = 1};
	struct engine_config one = {0, &dns, 1}, none = {0, NULL, 0};
	struct engine *e = new_engine(0);
	struct engine_change *change;
	struct guard_count count;

	ck_assert_int_eq(engine_prepare(&change, &one, MONOTIME_ZERO), 0);
	count = engine_change_count(e, change); /* nothing is announced: nothing is lost */
	ck_assert_uint_eq(count.n_announced, 0);
	ck_assert_uint_eq(count.n_dropped, 0);
	ck_assert(!engine_change_drops(e, change, 0, 0));

	engine_found(e, 0, 0, PREFIX_WANTED_DEMOTE);
	engine_found(e, 0, 1, PREFIX_WANTED_ANNOUNCE);
	count = engine_change_count(e, change);
	ck_assert_uint_eq(count.n_announced, 2);
	ck_assert_uint_eq(count.n_dropped, 1);
	ck_assert(engine_change_drops(e, change, 0, 0));
	ck_assert(!engine_change_drops(e, change, 0, 1));
	engine_change_free(change);

	ck_assert_int_eq(engine_prepare(&change, &none, MONOTIME_ZERO), 0);
	ck_assert_uint_eq(engine_change_count(e, change).n_dropped, 2);
	engine_commit(e, change);
	ck_assert_int_eq(engine_prepare(&change, &one, MONOTIME_ZERO), 0);
	ck_assert_uint_eq(engine_change_count(e, change).n_announced, 0);
	engine_change_free(change);
	engine_free(e);
}
END_TEST

/* ---- leaving ---- */

static struct engine *leaving_engine(bool keep_on_stop)
{
	struct engine_service_config dns = {.name = "dns",
		.keep_on_stop = keep_on_stop,
		.leave = {.graceful_ms = 10000},
		.checks = &process,
		.n_checks = 1,
		.prefixes = dns_prefixes,
		.n_prefixes = 2};
	struct engine_config config = {0, &dns, 1};
	struct engine *e = engine_new();

	ck_assert_int_eq(engine_configure(e, &config, MONOTIME_ZERO), 0);
	engine_check_spoke(e, 0, 0, CHECK_OUTCOME_GOOD, MONOTIME_ZERO);
	ck_assert(engine_decide(e, MONOTIME_ZERO));
	return e;
}

START_TEST (a_stop_can_be_hurried) {
	struct engine *e = leaving_engine(false);
	struct monotime begin = {1000000}, ends = {11000000}, soon = {2000000};

	ck_assert_uint_eq(engine_left(e, begin).us, 0);
	engine_hurry(e, begin); /* nothing leaves: nothing goes */
	ck_assert(!engine_decide(e, begin));
	engine_word(e, 0, 0, PREFIX_WORD_DRAINED);
	ck_assert(engine_decide(e, begin));
	ck_assert_uint_eq(engine_left(e, begin).us, ends.us);
	ck_assert_uint_eq(engine_leaves(e, 0, 0, begin).us, ends.us);
	ck_assert(monotime_is_never(engine_leaves(e, 0, 1, begin)));
	ck_assert_uint_eq(engine_deadline(e).us, ends.us);
	engine_stop(e);
	ck_assert(engine_decide(e, soon));
	ck_assert_uint_eq(engine_left(e, soon).us, 12000000);
	ck_assert(engine_prefix(e, 0, 0)->graceful && engine_prefix(e, 0, 1)->graceful);

	engine_hurry(e, soon);
	ck_assert(engine_decide(e, soon));
	ck_assert_int_eq(engine_prefix(e, 0, 0)->wanted, PREFIX_WANTED_WITHDRAW);
	ck_assert_int_eq(engine_prefix(e, 0, 1)->wanted, PREFIX_WANTED_WITHDRAW);
	ck_assert_uint_eq(engine_left(e, soon).us, 0);
	ck_assert(monotime_is_never(engine_leaves(e, 0, 0, soon)));
	ck_assert(monotime_is_never(engine_deadline(e)));
	engine_free(e);
}
END_TEST

/* What an operator wants announced, or gone at once, does so whatever was shed. */
START_TEST (a_word_goes_before_the_end_of_a_shed) {
	struct engine *e = leaving_engine(true);
	struct monotime now = {1000000};

	for (size_t k = 0; k < 2; k++)
		engine_shed(e, 0, k, PREFIX_SHED_WITHDRAW);
	ck_assert(engine_decide(e, now));
	ck_assert_int_eq(engine_prefix(e, 0, 0)->reason, PREFIX_REASON_SHED);
	for (size_t k = 0; k < 2; k++)
		engine_shed(e, 0, k, PREFIX_SHED_NONE);
	engine_word(e, 0, 1, PREFIX_WORD_DRAINED);
	engine_stop(e);
	ck_assert(engine_decide(e, now));
	ck_assert_int_eq(engine_prefix(e, 0, 0)->wanted, PREFIX_WANTED_ANNOUNCE);
	ck_assert_int_eq(engine_prefix(e, 0, 1)->wanted, PREFIX_WANTED_WITHDRAW);
	engine_free(e);
}
END_TEST

START_TEST (a_freeze_is_told_once) {
	struct engine *e = leaving_engine(false);

	ck_assert(!engine_is_frozen(e));
	engine_freeze(e, true);
	engine_freeze(e, true);
	ck_assert(engine_is_frozen(e));
	engine_check_spoke(e, 0, 0, CHECK_OUTCOME_BAD, MONOTIME_ZERO);
	ck_assert(engine_decide(e, MONOTIME_ZERO));
	ck_assert_int_eq(engine_prefix(e, 0, 0)->wanted, PREFIX_WANTED_ANNOUNCE);
	ck_assert_int_eq(engine_prefix(e, 0, 0)->reason, PREFIX_REASON_FROZEN);
	engine_freeze(e, false);
	ck_assert(!engine_is_frozen(e));
	ck_assert(engine_decide(e, MONOTIME_ZERO));
	ck_assert_int_eq(engine_prefix(e, 0, 0)->wanted, PREFIX_WANTED_WITHDRAW);
	engine_free(e);
}
END_TEST

/* ---- what is shown of time ---- */

START_TEST (it_tells_when_time_changes_something) {
	struct engine_service_config dns = {.name = "dns",
		.slow_start = {.from = 1000, .steps = 4, .for_ms = 8000},
		.hold_down = {1000, 1500, 750, 1000, 10000},
		.checks = &process,
		.n_checks = 1,
		.prefixes = dns_prefixes,
		.n_prefixes = 2};
	struct engine_config config = {0, &dns, 1};
	struct engine *e = engine_new();

	ck_assert_int_eq(engine_configure(e, &config, MONOTIME_ZERO), 0);
	ck_assert(monotime_is_never(engine_next_step(e, 0, 0)));
	ck_assert(monotime_is_never(engine_spread_ends(e)));
	engine_spread(e, 0, MONOTIME_ZERO);
	ck_assert_uint_eq(engine_spread_ends(e).us, 0);
	engine_check_spoke(e, 0, 0, CHECK_OUTCOME_GOOD, MONOTIME_ZERO);
	engine_decide(e, MONOTIME_ZERO);
	ck_assert(monotime_is_never(engine_spread_ends(e)));
	ck_assert_uint_eq(engine_next_step(e, 0, 0).us, 2000000);
	engine_decide(e, (struct monotime){2000000});
	ck_assert_uint_eq(engine_next_step(e, 0, 1).us, 4000000);
	ck_assert(monotime_is_never(engine_reuse(e, 0)));
	for (unsigned i = 1; i <= 4; i++) { /* two flaps: 2000 is above 1500 */
		engine_check_spoke(e, 0, 0, i % 2 ? CHECK_OUTCOME_BAD : CHECK_OUTCOME_GOOD,
			(struct monotime){2000000 + i});
		engine_decide(e, (struct monotime){2000000 + i});
	}
	ck_assert_int_eq(engine_prefix(e, 0, 0)->reason, PREFIX_REASON_HELD_DOWN);
	ck_assert_uint_eq(engine_reuse(e, 0).us, engine_deadline(e).us);
	ck_assert_uint_gt(engine_reuse(e, 0).us, 3000000); /* 750 of 2000: 1.4 half-lives */
	ck_assert_uint_lt(engine_reuse(e, 0).us, 4000000);
	engine_free(e);
}
END_TEST

/* ---- callers' mistakes ---- */

static void index_of_a_service(struct engine *e)
{
	(void)engine_health(e, 1);
}

static void index_of_a_check(struct engine *e)
{
	engine_check_spoke(e, 0, 1, CHECK_OUTCOME_GOOD, MONOTIME_ZERO);
}

static void index_of_a_prefix(struct engine *e)
{
	engine_word(e, 0, 2, PREFIX_WORD_DRAINED);
}

static void configure_two(struct engine *e, const struct engine_service_config *a,
	const struct engine_service_config *b)
{
	struct engine_service_config services[2] = {*a, *b};
	struct engine_config config = {0, services, 2};

	(void)engine_configure(e, &config, MONOTIME_ZERO);
}

static void prefix_in_two_services(struct engine *e)
{
	struct engine_service_config a = {.name = "a", .prefixes = dns_prefixes, .n_prefixes = 1};
	struct engine_service_config b = {.name = "b", .prefixes = dns_prefixes, .n_prefixes = 1};

	configure_two(e, &a, &b);
}

static void service_twice(struct engine *e)
{
	struct engine_service_config a = {.name = "a"};

	configure_two(e, &a, &a);
}

static void rise_of_zero(struct engine *e)
{
	struct engine_check_config check = {"check", "one",
		{.interval_ms = 1000, .fast_interval_ms = 500, .rise = 0, .fall = 1}};
	struct engine_service_config a = {.name = "a", .checks = &check, .n_checks = 1};

	configure_two(e, &a, &(struct engine_service_config){.name = "b"});
}

static void age_beyond_history(struct engine *e)
{
	(void)check_history(engine_check(e, 0, 0), 0);
}

static void (*const mistakes[])(struct engine *e) = {
	index_of_a_service,
	index_of_a_check,
	index_of_a_prefix,
	prefix_in_two_services,
	service_twice,
	rise_of_zero,
	age_beyond_history,
};

START_TEST (mistakes_are_asserted) {
	int status;
	pid_t child = fork();

	if (child == 0) {
		(void)!freopen("/dev/null", "w", stderr);
		mistakes[_i](new_engine(0));
		_exit(0);
	}
	ck_assert_int_gt(child, 0);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT,
		"mistake %d ended with status %#x", _i, (unsigned)status);
}
END_TEST

/* ---- many prefixes ---- */

static char many_names[MANY][24];
static struct engine_prefix_config many_prefixes[MANY];

static struct engine_config many_config(unsigned n, struct engine_service_config *service)
{
	for (unsigned i = 0; i < n; i++) {
		(void)snprintf(many_names[i], sizeof(many_names[i]), "10.%u.%u.%u/32",
			i / 65536 % 256, i / 256 % 256, i % 256);
		many_prefixes[i] = (struct engine_prefix_config){
			.name = many_names[i], .weight = 100, .address_check = true};
	}
	*service = (struct engine_service_config){.name = "dns",
		.require = {SERVICE_REQUIRE_ALL, 0},
		.checks = &process,
		.n_checks = 1,
		.prefixes = many_prefixes,
		.n_prefixes = n};
	return (struct engine_config){0, service, 1};
}

/* All of its n prefixes are announced. */
static struct engine *engine_of_many(unsigned n)
{
	struct engine_service_config service;
	struct engine_config config = many_config(n, &service);
	struct engine *e = engine_new();

	ck_assert_int_eq(engine_configure(e, &config, MONOTIME_ZERO), 0);
	engine_check_spoke(e, 0, 0, CHECK_OUTCOME_GOOD, MONOTIME_ZERO);
	ck_assert(engine_decide(e, MONOTIME_ZERO));
	return e;
}

static void require_all(const struct engine *e, enum prefix_wanted wanted)
{
	for (unsigned i = 0; i < MANY; i++)
		ck_assert_int_eq(engine_prefix(e, 0, i)->wanted, wanted);
}

static unsigned transitions(struct engine *e)
{
	struct engine_transition t;
	unsigned n = 0;

	while (engine_next_transition(e, &t))
		n++;
	return n;
}

static struct engine *few, *many; /* of MANY / COST_TIMES prefixes, and of MANY */

static struct engine *of(unsigned n)
{
	return n == MANY ? many : few;
}

/* Nothing is new: outcomes that say the same, and time. */
static void nothing_new(unsigned n)
{
	for (unsigned i = 1; i <= 1000; i++) {
		struct monotime now = {i * 1000000UL};

		engine_check_spoke(of(n), 0, 0, CHECK_OUTCOME_GOOD, now);
		engine_address(of(n), 0, i % n, PREFIX_ADDRESS_UNKNOWN);
		ck_assert(!engine_decide(of(n), now));
	}
}

static void a_death_and_the_return(unsigned n)
{
	struct engine *e = of(n);

	engine_check_spoke(e, 0, 0, CHECK_OUTCOME_GONE, MONOTIME_ZERO);
	ck_assert(engine_decide(e, MONOTIME_ZERO));
	ck_assert_int_eq(engine_prefix(e, 0, n - 1)->wanted, PREFIX_WANTED_WITHDRAW);
	/* One decision about everything loses no transition. */
	ck_assert_uint_eq(transitions(e), n + 2);
	while (engine_prefix(e, 0, n - 1)->wanted == PREFIX_WANTED_WITHDRAW) {
		engine_check_spoke(e, 0, 0, CHECK_OUTCOME_GOOD, MONOTIME_ZERO);
		(void)engine_decide(e, MONOTIME_ZERO);
	}
	(void)transitions(e);
}

START_TEST (many_prefixes_decide_fast) {
	few = engine_of_many(MANY / COST_TIMES);
	many = engine_of_many(MANY);
	(void)transitions(few);
	(void)transitions(many);
	cost_expect_constant(nothing_new, MANY);
	cost_expect_linear(a_death_and_the_return, MANY);
	require_all(many, PREFIX_WANTED_ANNOUNCE);
	engine_free(few);
	engine_free(many);
}
END_TEST

static void boot_and_reload(unsigned n)
{
	struct engine_service_config service;
	struct engine_config config = many_config(n, &service);
	struct engine *e = engine_of_many(n);

	ck_assert_int_eq(engine_configure(e, &config, MONOTIME_ZERO), 0);
	ck_assert(!engine_decide(e, MONOTIME_ZERO));
	ck_assert_int_eq(engine_prefix(e, 0, n - 1)->wanted, PREFIX_WANTED_ANNOUNCE);
	engine_free(e);
}

/* Names are not compared each with each. */
START_TEST (many_prefixes_reload_fast) {
	cost_expect_linear(boot_and_reload, MANY);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("core engine");
	TCase *tests = tcase_create("engine");
	SRunner *runner;
	int failed;

	tcase_add_test(tests, transitions_come_in_order);
	tcase_add_test(tests, transitions_are_bounded);
	tcase_add_test(tests, a_reload_drops_unread_transitions);
	tcase_add_test(tests, found_comes_before_the_first_decision);
	tcase_add_test(tests, an_endless_window_never_ends);
	tcase_add_test(tests, an_empty_engine_decides_nothing);
	tcase_add_test(tests, a_change_says_what_it_drops);
	tcase_add_test(tests, a_stop_can_be_hurried);
	tcase_add_test(tests, a_word_goes_before_the_end_of_a_shed);
	tcase_add_test(tests, a_freeze_is_told_once);
	tcase_add_test(tests, it_tells_when_time_changes_something);
	tcase_add_loop_test(
		tests, mistakes_are_asserted, 0, (int)(sizeof(mistakes) / sizeof(mistakes[0])));
	tcase_add_test(tests, many_prefixes_decide_fast);
	tcase_add_test(tests, many_prefixes_reload_fast);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
