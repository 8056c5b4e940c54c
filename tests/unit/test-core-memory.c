/*
 * A reload without memory: whichever allocation fails, the old configuration goes on untouched and
 * nothing leaks. The linker puts the two functions below between core/ and the allocator
 * (CMakeLists.txt, --wrap).
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>

#include "agent/core/engine.h"
#include "agent/core/shed.h"

static long fails_after = -1; /* so many more allocations succeed; negative: all do */

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);

static bool fails(void)
{
	return fails_after >= 0 && fails_after-- == 0;
}

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}

static const struct engine_check_config checks[] = {
	{"process", "one", {.interval_ms = 1000, .fast_interval_ms = 500, .rise = 1, .fall = 1}},
	{"answers", "one", {.interval_ms = 1000, .fast_interval_ms = 500, .rise = 2, .fall = 2}},
};
static const struct engine_prefix_config prefixes[] = {
	{.name = "192.0.2.53/32", .weight = 100, .address_check = true},
	{.name = "192.0.2.54/32", .weight = 100, .address_check = true},
};
static const struct engine_service_config services[] = {
	{.name = "dns", .checks = checks, .n_checks = 2, .prefixes = prefixes, .n_prefixes = 1},
	{.name = "web", .checks = checks, .n_checks = 1, .prefixes = prefixes + 1, .n_prefixes = 1},
};

START_TEST (an_engine_needs_memory) {
	fails_after = 0;
	ck_assert_ptr_null(engine_new());
	ck_assert_int_eq(fails_after, -1);
}
END_TEST

START_TEST (a_reload_fails_whole) {
	struct engine_config config = {0, services, 1}, next = {0, services, 2};
	struct engine *e = engine_new();
	long n_allocations = 0;
	struct engine_transition t;

	ck_assert_int_eq(engine_configure(e, &config, MONOTIME_ZERO), 0);
	engine_found(e, 0, 0, PREFIX_WANTED_ANNOUNCE);
	engine_check_spoke(e, 0, 0, CHECK_OUTCOME_GOOD, MONOTIME_ZERO);
	for (;; n_allocations++) {
		int r;

		fails_after = n_allocations;
		r = engine_configure(e, &next, MONOTIME_ZERO);
		if (fails_after >= 0)
			break; /* none was left to fail */
		ck_assert_int_eq(r, -ENOMEM);
		ck_assert_int_eq(engine_check(e, 0, 0)->state, CHECK_STATE_UP);
		ck_assert_int_eq(engine_prefix(e, 0, 0)->wanted, PREFIX_WANTED_ANNOUNCE);
	}
	fails_after = -1;
	/* change, services, 2 x (name, checks, labels, prefixes), texts, index, transitions */
	ck_assert_int_eq(n_allocations, 2 + 2 * 4 + 3 * 2 + 2 + 2);
	ck_assert_int_eq(engine_check(e, 0, 0)->state, CHECK_STATE_UP);
	ck_assert_int_eq(engine_check(e, 1, 0)->state, CHECK_STATE_PENDING);
	ck_assert(!engine_next_transition(e, &t));
	engine_free(e);
}
END_TEST

/* What was not read is still there when the reload failed. */
START_TEST (a_failed_reload_keeps_transitions) {
	struct engine_config config = {0, services, 1};
	struct engine *e = engine_new();
	struct engine_transition t;

	ck_assert_int_eq(engine_configure(e, &config, MONOTIME_ZERO), 0);
	engine_check_spoke(e, 0, 1, CHECK_OUTCOME_GONE, MONOTIME_ZERO);
	fails_after = 0;
	ck_assert_int_eq(engine_configure(e, &config, MONOTIME_ZERO), -ENOMEM);
	ck_assert(engine_next_transition(e, &t));
	ck_assert_int_eq(t.to, CHECK_STATE_DOWN);
	engine_free(e);
}
END_TEST

/* The second step needs none; a change that is not taken leaves all as it was. */
START_TEST (what_is_prepared_needs_no_memory) {
	struct engine_config config = {0, services, 1}, next = {0, services, 2};
	struct engine *e = engine_new();
	struct engine_change *change;
	bool asked_for;

	ck_assert_int_eq(engine_configure(e, &config, MONOTIME_ZERO), 0);
	engine_check_spoke(e, 0, 0, CHECK_OUTCOME_GONE, MONOTIME_ZERO);
	ck_assert_int_eq(engine_prepare(&change, &next, MONOTIME_ZERO), 0);
	engine_change_free(change);
	ck_assert_int_eq(engine_prepare(&change, &next, MONOTIME_ZERO), 0);
	fails_after = 0;
	engine_commit(e, change);
	asked_for = fails_after != 0;
	fails_after = -1;
	ck_assert(!asked_for);
	ck_assert_int_eq(engine_check(e, 0, 0)->state, CHECK_STATE_DOWN);
	ck_assert_int_eq(engine_check(e, 1, 0)->state, CHECK_STATE_PENDING);
	engine_free(e);
	engine_change_free(NULL);
}
END_TEST

/* The same of shedding: what it owes and what is out outlives a reload that fails. */
START_TEST (shedding_fails_whole) {
	static const struct shed_prefix_config two[] = {
		{"192.0.2.53/32", 100, 1, true}, {"192.0.2.54/32", 100, 1, false}};
	static const char *const names[] = {"b", "c"};
	struct shed_config config = {"a", shed_settings_default(), two, 1, names, 1};
	struct shed_config next = {"a", shed_settings_default(), two, 2, names, 2};
	struct shed_request request = {0, 1, 0, 0, SHED_PURPOSE_HEALTH, 1};
	struct monotime now = {1000000000};
	struct shed_promise promise;
	long n_allocations = 0;
	struct shed *s;

	fails_after = 0;
	ck_assert_ptr_null(shed_new(MONOTIME_ZERO));
	shed_free(NULL);
	fails_after = -1;
	s = shed_new(MONOTIME_ZERO);
	ck_assert_int_eq(shed_configure(s, &config, now), 0);
	shed_prefix_facts(s, 0, &(struct shed_prefix_facts){.announced = true, .healthy = true});
	ck_assert_int_eq(shed_grant(s, &request, now).refused, SHED_REFUSAL_NONE);
	for (;; n_allocations++) {
		int r;

		fails_after = n_allocations;
		r = shed_configure(s, &next, now);
		if (fails_after >= 0)
			break; /* none was left to fail */
		ck_assert_int_eq(r, -ENOMEM);
		ck_assert(shed_promise(s, 0, 0, &promise));
		ck_assert(promise.given);
	}
	fails_after = -1;
	ck_assert_int_eq(n_allocations, 2 + 7 + 2 + 2); /* maps, arrays, names */
	ck_assert(shed_promise(s, 0, 0, &promise));
	ck_assert(!shed_promise(s, 1, 0, &promise));
	shed_free(s);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("core memory");
	TCase *tests = tcase_create("memory");
	SRunner *runner;
	int failed;

	tcase_add_test(tests, an_engine_needs_memory);
	tcase_add_test(tests, a_reload_fails_whole);
	tcase_add_test(tests, a_failed_reload_keeps_transitions);
	tcase_add_test(tests, what_is_prepared_needs_no_memory);
	tcase_add_test(tests, shedding_fails_whole);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
