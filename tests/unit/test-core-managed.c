/*
 * When a managed address comes and goes: every combination of facts there is, against the
 * invariants M1 to M6 of docs/invariants.md, which say nothing of rules.
 */
#include "agent/core/managed.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define N_BOOLEANS 12
#define N_FACTS ((1U << N_BOOLEANS) * 3)

static struct managed_facts facts_of(unsigned n)
{
	unsigned b = n / 3;

	return (struct managed_facts){
		.kept = b & 1,
		.configured = b & 2,
		.managed = b & 4,
		.leaves = b & 8,
		.wanted = b & 16,
		.grace_over = b & 32,
		.here = b & 64,
		.ours = b & 128,
		.ours_apart = b & 256,
		.others = b & 512,
		.may_add = b & 1024,
		.may_remove = b & 2048,
		.bird = (enum managed_bird)(n % 3),
	};
}

/* The service is configured to have it here, and nobody has sent it away. */
static bool belongs(const struct managed_facts *f)
{
	return f->configured && f->managed && !f->leaves;
}

START_TEST (every_combination) {
	unsigned n_actions[4] = {0};

	for (unsigned n = 0; n < N_FACTS; n++) {
		const struct managed_facts f = facts_of(n);
		const struct managed_verdict v = managed_decide(&f);
		bool removes = v.action == MANAGED_ACTION_REMOVE || v.action == MANAGED_ACTION_TIDY;
		bool packets = f.wanted || f.bird != MANAGED_BIRD_WITHDRAWN || !f.grace_over;

		n_actions[v.action]++;
		/* M1 */
		if (removes)
			ck_assert_msg(f.ours && f.may_remove, "%u: not ours, or just tried", n);
		/* M2 */
		if (v.action == MANAGED_ACTION_REMOVE)
			ck_assert_msg(!packets && !f.kept && !belongs(&f), "%u: too early", n);
		/* M3 */
		if (v.action == MANAGED_ACTION_TIDY)
			ck_assert_msg(f.here && belongs(&f), "%u: the only one", n);
		/* M4 */
		if (removes && f.configured)
			ck_assert_msg(f.managed, "%u: the operator's", n);
		/* M5 */
		if (v.action == MANAGED_ACTION_ADD)
			ck_assert_msg(belongs(&f) && !f.here && !f.others && f.may_add,
				"%u: needless", n);
		/* M6 */
		if (belongs(&f) && !f.here && !f.others && f.may_add)
			ck_assert_msg(v.action == MANAGED_ACTION_ADD, "%u: forgotten", n);
		if (!belongs(&f) && f.ours && !packets && !f.kept && f.may_remove &&
			(!f.configured || f.managed))
			ck_assert_msg(v.action == MANAGED_ACTION_REMOVE, "%u: left behind", n);
	}
	for (size_t i = 0; i < 4; i++)
		ck_assert_uint_gt(n_actions[i], 0);
}
END_TEST

START_TEST (its_states) {
	static const struct {
		const char *state;
		struct managed_facts f;
	} rows[] = {
		{"present", {.configured = true, .managed = true, .here = true, .ours = true}},
		{"others", {.configured = true, .managed = true, .here = true}},
		{"others", {.configured = true, .managed = true, .others = true}},
		{"missing", {.configured = true, .managed = true}},
		{"handed", {.configured = true, .here = true, .ours = true}},
		{"kept", {.configured = true, .managed = true, .leaves = true, .kept = true}},
		{"absent", {.configured = true, .managed = true, .leaves = true}},
		{"others", {.configured = true, .managed = true, .leaves = true, .here = true}},
		{"announced", {.ours = true, .wanted = true}},
		{"bird", {.ours = true}},
		{"bird", {.ours = true, .bird = MANAGED_BIRD_ANNOUNCES, .grace_over = true}},
		{"grace", {.ours = true, .bird = MANAGED_BIRD_WITHDRAWN}},
		{"absent", {.ours = true, .bird = MANAGED_BIRD_WITHDRAWN, .grace_over = true}},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		ck_assert_str_eq(
			managed_state_name(managed_decide(&rows[i].f).state), rows[i].state);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("core-managed");
	TCase *c = tcase_create("managed");
	SRunner *runner;
	int failed;

	tcase_add_test(c, every_combination);
	tcase_add_test(c, its_states);
	suite_add_tcase(suite, c);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
