/*
 * The document that explains, over an engine, a schedule and a BIRD that say what each test wants:
 * the accessors that explain.c reads are defined here and take the place of the real ones.
 */
#include <check.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/clock.h"
#include "agent/status/explain.h"
#include "tests/unit/cost.h"
#include "tests/unit/fake-facts.h"

static struct apply_explained fake_explained;
static struct run_view fake_run;
static enum apply_export fake_exports[4];
static const char *fake_others[3];

struct monotime engine_reuse(const struct engine *e, size_t service)
{
	return MONOTIME_NEVER;
}

struct monotime engine_next_step(const struct engine *e, size_t service, size_t prefix)
{
	return MONOTIME_NEVER;
}

static struct monotime fake_leaves, fake_spread;

struct monotime engine_leaves(
	const struct engine *e, size_t service, size_t prefix, struct monotime now)
{
	return fake_leaves;
}

struct monotime engine_spread_ends(const struct engine *e)
{
	return fake_spread;
}

struct monotime apply_explain_retry(const struct apply *a)
{
	return MONOTIME_NEVER;
}

void apply_explain(
	const struct apply *a, size_t service, size_t prefix, struct apply_explained *ret)
{
	*ret = fake_explained;
}

enum apply_export apply_explain_export(
	const struct apply *a, size_t service, size_t prefix, size_t session)
{
	return fake_exports[session];
}

const char *apply_explain_other(
	const struct apply *a, size_t service, size_t prefix, size_t *index, bool *ret_best)
{
	if (*index >= ELEMENTSOF(fake_others) || !fake_others[*index])
		return NULL;
	*ret_best = *index == 1;
	return fake_others[(*index)++];
}

bool apply_explain_more_others(const struct apply *a, size_t service, size_t prefix)
{
	return true;
}

static void check_view(void *userdata, size_t service, size_t check, struct run_view *ret)
{
	*ret = fake_run;
}

static const char *check_reason(void *userdata, size_t service, size_t check)
{
	return "";
}

static const struct probe_type type = {.name = "tcp"};
static struct config_prefix configured_prefixes[FAKE_MANY];
static struct config_check configured_checks[2] = {
	{.name = (char *)"process", .type = &type}, {.name = (char *)"port", .type = &type}};
static struct config_service configured_services[] = {
	{.name = (char *)"dns", .prefixes = configured_prefixes, .checks = configured_checks},
	{.name = (char *)"web", .prefixes = configured_prefixes + 10, .checks = configured_checks},
};
static struct config configured = {.node = (char *)"edge1",
	.services = configured_services,
	.n_services = ELEMENTSOF(configured_services)};
static struct document_facts facts = {
	.config = &configured, .check_reason = check_reason, .check_view = check_view};

static void setup(void)
{
	struct monotime now = clock_monotime();

	for (size_t i = 0; i < FAKE_MANY; i++) {
		configured_prefixes[i] = (struct config_prefix){
			.prefix = {.address = {.family = ADDRESS_FAMILY_IPV4,
					   .bytes = {10, 0, (uint8_t)(i / 256),
						   (uint8_t)(i % 256)}},
				.length = 32},
			.own_weight = 100,
			.configured_weight = 100,
			.weight = 100};
		fake_prefixes[i] = (struct engine_prefix){.wanted = PREFIX_WANTED_ANNOUNCE,
			.reason = PREFIX_REASON_HEALTHY,
			.weight = 100,
			.since = now,
			.announces_at = MONOTIME_NEVER};
	}
	for (size_t i = 0; i < ELEMENTSOF(configured_checks); i++)
		fake_checks[i] = (struct check){.state = CHECK_STATE_UP,
			.since = now,
			.settings = {.interval_ms = 1000,
				.fast_interval_ms = 500,
				.rise = 3,
				.fall = 2}};
	configured_services[0].n_prefixes = 2;
	configured_services[0].n_checks = 2;
	configured_services[0].require = CONFIG_REQUIRE_ALL;
	configured_services[1].n_prefixes = 1;
	fake_observed[0] = (struct apply_observed){.announced = APPLY_YES, .exported = 1};
	fake_status = (struct apply_status){.link = APPLY_LINK_UP, .settled = true};
	fake_explained = (struct apply_explained){.protocols = {{.name = "redshank:dns:x",
							  .want_up = true,
							  .seen = PLAN_SEEN_UP,
							  .loaded = APPLY_YES}},
		.n_protocols = 1,
		.folder = "/run/redshank/bird",
		.at = MONOTIME_NEVER,
		.read = true};
	fake_run = (struct run_view){.began = now, .next = monotime_add_ms(now, 1000)};
	n_fake_sessions = 0;
	fake_session_down = 3;
	fake_health = SERVICE_HEALTH_HEALTHY;
	fake_leaves = fake_spread = MONOTIME_NEVER;
	memset(fake_others, 0, sizeof(fake_others));
	facts.stopping = false;
}

static json_t *make(const char *name, bool found)
{
	bool was_found = !found;
	char *text = document_explain(&facts, name, &was_found);
	json_error_t error;
	json_t *document;

	ck_assert_ptr_nonnull(text);
	ck_assert_msg(was_found == found, "%s: %s", name, text);
	ck_assert_int_eq(text[strlen(text) - 1], '\n');
	document = json_loads(text, JSON_REJECT_DUPLICATES, &error);
	ck_assert_msg(document != NULL, "%s at line %d of: %s", error.text, error.line, text);
	free(text);
	return document;
}

/* Follows a path of keys; NULL ends it. */
static const json_t *at(const json_t *from, ...)
{
	va_list ap;
	const char *key;

	va_start(ap, from);
	while ((key = va_arg(ap, const char *)) != NULL) {
		ck_assert_msg(json_object_get(from, key) != NULL, "no key \"%s\"", key);
		from = json_object_get(from, key);
	}
	va_end(ap);
	return from;
}

#define PREFIX(key) at(d, "services", "dns", "prefixes", "10.0.0.0/32", key, NULL)
#define CHECK(key) at(d, "services", "dns", "checks", "port", key, NULL)
#define ck_assert_text(json, text) ck_assert_str_eq(json_string_value(json), text)

/* `next` as one text: "announce", "check port good 2", ... */
static const char *next_of(const json_t *d)
{
	static char text[512];
	const json_t *next;
	size_t i;

	text[0] = '\0';
	json_array_foreach (PREFIX("next"), i, next) {
		char one[128];

		if (json_object_get(next, "check"))
			(void)snprintf(one, sizeof(one), "%s%s %s %s %lld", i ? ", " : "",
				json_string_value(json_object_get(next, "what")),
				json_string_value(json_object_get(next, "check")),
				json_string_value(json_object_get(next, "outcome")),
				(long long)json_integer_value(json_object_get(next, "count")));
		else
			(void)snprintf(one, sizeof(one), "%s%s", i ? ", " : "",
				json_string_value(json_object_get(next, "what")));
		strcat(text, one);
	}
	return text;
}

/* Milliseconds from the document's `time` to one of its times, both below a minute apart. */
static double after_ms(const json_t *d, const json_t *time)
{
	const char *now = json_string_value(at(d, "time", NULL)), *then = json_string_value(time);
	double ms;

	ck_assert_ptr_nonnull(then);
	ms = 1000 * (strtod(then + 17, NULL) - strtod(now + 17, NULL));
	return ms < -30000 ? ms + 60000 : ms;
}

/* ---- what is asked for ---- */

START_TEST (a_service_a_prefix_an_address) {
	static const struct {
		const char *name;
		size_t services, of_dns;
	} rows[] = {
		{"dns", 1, 2},
		{"10.0.0.1/32", 1, 1},
		{"10.0.0.1", 1, 1},
		{"web", 1, 0},
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		json_t *d = make(rows[i].name, true);
		const json_t *services = at(d, "services", NULL);

		ck_assert_uint_eq(json_object_size(services), rows[i].services);
		ck_assert_uint_eq(json_object_size(json_object_get(
					  json_object_get(services, "dns"), "prefixes")),
			rows[i].of_dns);
		ck_assert_text(at(d, "asked", NULL), rows[i].name);
		ck_assert_int_eq(json_integer_value(at(d, "format", NULL)), 1);
		json_decref(d);
	}
}
END_TEST

START_TEST (what_is_not_there) {
	static const struct {
		const char *name, *nearest;
	} rows[] = {
		{"dsn", "dns"},
		{"WEB", "web"},
		{"10.0.0.2/32", "10.0.0.0/32"},
		{"10.0.0.0/31", "10.0.0.0/32"},
		{"fnord", NULL},
		{"", NULL},
		{"\x1b[31m\xff\"\\", NULL},
		{"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", NULL},
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		json_t *d = make(rows[i].name, false);
		const char *error = json_string_value(at(d, "error", NULL));

		if (rows[i].nearest)
			ck_assert_text(at(d, "nearest", NULL), rows[i].nearest);
		else
			ck_assert_msg(json_is_null(at(d, "nearest", NULL)), "row %zu", i);
		ck_assert_ptr_null(strchr(error, '\x1b'));
		ck_assert_int_eq(rows[i].nearest != NULL, strstr(error, "did you mean") != NULL);
		json_decref(d);
	}
}
END_TEST

/* ---- what is told ---- */

START_TEST (rules_weights_and_settings) {
	json_t *d = make("dns", true);

	ck_assert_int_eq(json_integer_value(PREFIX("rule")), 7);
	ck_assert_text(PREFIX("weight_from"), "service");
	ck_assert(json_is_null(PREFIX("weight_by")));
	ck_assert_text(at(d, "services", "dns", "require", NULL), "all");
	ck_assert_text(at(d, "services", "dns", "on_stop", NULL), "withdraw");
	ck_assert_text(
		at(d, "services", "dns", "fragment", "file", NULL), "/run/redshank/bird/dns.conf");
	ck_assert_text(at(d, "services", "dns", "fragment", "state", NULL), "true");
	ck_assert_text(CHECK("type"), "tcp");
	ck_assert(json_is_null(CHECK("needs")));
	ck_assert_str_eq(next_of(d), "");
	json_decref(d);

	configured_prefixes[0].weight_is_of_node = true;
	configured_services[0].require = CONFIG_REQUIRE_NUMBER;
	configured_services[0].require_number = 2;
	fake_prefixes[0].reason = PREFIX_REASON_ADDRESS_MISSING;
	fake_prefixes[0].weight = 1000;
	fake_explained.fragment = APPLY_FRAGMENT_PUT_BACK;
	d = make("dns", true);
	ck_assert_int_eq(json_integer_value(PREFIX("rule")), 2);
	ck_assert_text(PREFIX("weight_from"), "node");
	ck_assert_text(PREFIX("weight_by"), "slow_start");
	ck_assert_int_eq(json_integer_value(PREFIX("own_weight")), 100);
	ck_assert_int_eq(json_integer_value(at(d, "services", "dns", "require", NULL)), 2);
	ck_assert_text(at(d, "services", "dns", "fragment", "state", NULL), "put_back");
	json_decref(d);
	fake_prefixes[0].graceful = true;
	d = make("dns", true);
	ck_assert_text(PREFIX("weight_by"), "leave");
	json_decref(d);
}
END_TEST

START_TEST (protocols_sessions_and_others) {
	json_t *d;

	n_fake_sessions = 4;
	fake_exports[0] = APPLY_EXPORT_YES;
	fake_exports[1] = APPLY_EXPORT_NO;
	fake_exports[2] = fake_exports[3] = APPLY_EXPORT_NO_FAMILY;
	fake_others[0] = "direct1";
	fake_others[1] = "ibgp";
	fake_explained.protocols[1] = (struct apply_explained_protocol){.name = "twin",
		.last_resort = true,
		.seen = PLAN_SEEN_ABSENT,
		.loaded = APPLY_NO,
		.has_weight = true,
		.weight = 65535};
	fake_explained.n_protocols = 2;
	d = make("dns", true);
	ck_assert(json_is_false(at(d, "sessions", "s3", "up", NULL)));
	ck_assert_uint_eq(json_array_size(PREFIX("exported_to")), 1);
	ck_assert_text(json_array_get(PREFIX("exported_to"), 0), "s0");
	ck_assert_uint_eq(json_array_size(PREFIX("not_exported_to")), 1);
	ck_assert_text(json_array_get(PREFIX("not_exported_to"), 0), "s1");
	ck_assert_uint_eq(json_array_size(PREFIX("others")), 2);
	ck_assert(json_is_false(PREFIX("reading")));
	ck_assert(json_is_true(json_object_get(json_array_get(PREFIX("others"), 1), "best")));
	ck_assert(json_is_true(PREFIX("more_others")));
	ck_assert_text(at(PREFIX("protocols"), "redshank:dns:x", "state", NULL), "up");
	ck_assert(json_is_true(at(PREFIX("protocols"), "redshank:dns:x", "loaded", NULL)));
	ck_assert_text(at(PREFIX("protocols"), "twin", "state", NULL), "absent");
	ck_assert(json_is_false(at(PREFIX("protocols"), "twin", "loaded", NULL)));
	ck_assert(json_is_null(at(PREFIX("protocols"), "redshank:dns:x", "weight", NULL)));
	ck_assert_int_eq(
		json_integer_value(at(PREFIX("protocols"), "twin", "weight", NULL)), 65535);
	ck_assert(json_is_true(at(PREFIX("protocols"), "twin", "last_resort", NULL)));
	json_decref(d);

	fake_explained.read = false;
	fake_explained.reading = true;
	fake_explained.protocols[0].seen = PLAN_SEEN_UNKNOWN;
	fake_explained.protocols[0].loaded = APPLY_UNKNOWN;
	d = make("dns", true);
	ck_assert(json_is_true(PREFIX("reading")));
	ck_assert(json_is_null(PREFIX("exported_to")));
	ck_assert(json_is_null(PREFIX("not_exported_to")));
	ck_assert(json_is_null(PREFIX("others")));
	ck_assert(json_is_null(at(PREFIX("protocols"), "redshank:dns:x", "state", NULL)));
	ck_assert(json_is_null(at(PREFIX("protocols"), "redshank:dns:x", "loaded", NULL)));
	json_decref(d);
}
END_TEST

/* ---- what comes next ---- */

START_TEST (each_step_has_its_word) {
	static const struct {
		enum apply_step step;
		const char *next;
	} rows[] = {
		{APPLY_STEP_NONE, ""},
		{APPLY_STEP_CONNECT, "connect"},
		{APPLY_STEP_ASK, "ask"},
		{APPLY_STEP_WRITE, "write"},
		{APPLY_STEP_COMMAND, "command"},
		{APPLY_STEP_ANSWER, "answer"},
		{APPLY_STEP_CONFIGURE, "configure"},
		{APPLY_STEP_CONFIGURE_RETRY, "configure_retry"},
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		json_t *d;

		fake_explained.step = rows[i].step;
		d = make("dns", true);
		ck_assert_str_eq(next_of(d), rows[i].next);
		json_decref(d);
	}
	fake_explained.step = APPLY_STEP_CONNECT;
	fake_explained.at = monotime_add_ms(clock_monotime(), 400);
	{
		json_t *d = make("dns", true);
		double ms = after_ms(d, at(json_array_get(PREFIX("next"), 0), "at", NULL));

		ck_assert_double_gt(ms, 300);
		ck_assert_double_le(ms, 401);
		json_decref(d);
	}
}
END_TEST

START_TEST (each_reason_has_its_next) {
	static const struct {
		enum prefix_reason reason;
		const char *next;
	} rows[] = {
		{PREFIX_REASON_STOPPING, ""},
		{PREFIX_REASON_DRAINED, "operator"},
		{PREFIX_REASON_FORCED, "operator"},
		{PREFIX_REASON_FROZEN, "thaw"},
		{PREFIX_REASON_ADDRESS_MISSING, "address, check port good 3"},
		{PREFIX_REASON_UNHEALTHY, "check port good 3"},
		{PREFIX_REASON_FIRST_ROUND, "check port good 3"},
		{PREFIX_REASON_KEPT_BY_FLOOR, "check port good 3"},
		{PREFIX_REASON_HELD_DOWN, "reuse"},
		{PREFIX_REASON_SHED, "unshed"},
		{PREFIX_REASON_IN_DOUBT, "check process good 1, check port good 3"},
		{PREFIX_REASON_SHARED_UNHEALTHY, "check port good 3"},
		{PREFIX_REASON_RAMPING, "step, check process bad 1"},
		{PREFIX_REASON_HEALTHY, "check process bad 1"},
	};

	fake_checks[0].streak = 1; /* on its way down: the first of two */
	fake_checks[1].state = CHECK_STATE_DOWN;
	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		json_t *d;

		fake_prefixes[0].reason = rows[i].reason;
		d = make("dns", true);
		ck_assert_msg(strcmp(next_of(d), rows[i].next) == 0, "%s: %s",
			prefix_reason_name(rows[i].reason), next_of(d));
		json_decref(d);
	}
}
END_TEST

/* Whatever is out, or about to go, has an end that is told; and one outcome ends a doubt. */
START_TEST (what_is_out_has_a_next) {
	static const struct {
		enum prefix_reason reason;
		bool leaves, spread, stopping;
		const char *next;
	} rows[] = {
		{PREFIX_REASON_IN_DOUBT, false, false, false, "check process good 1"},
		{PREFIX_REASON_FIRST_ROUND, false, true, false, "spread"},
		{PREFIX_REASON_HELD_DOWN, false, true, false, "reuse"},
		{PREFIX_REASON_DRAINED, true, false, false, "withdraw, operator"},
		{PREFIX_REASON_STOPPING, true, false, true, "leave, withdraw"},
	};

	fake_checks[0].streak = 1;
	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		struct monotime soon = monotime_add_ms(clock_monotime(), 700);
		json_t *d;

		fake_prefixes[0].reason = rows[i].reason;
		fake_leaves = rows[i].leaves ? soon : MONOTIME_NEVER;
		fake_spread = rows[i].spread ? soon : MONOTIME_NEVER;
		facts.stopping = rows[i].stopping;
		d = make("dns", true);
		ck_assert_msg(strcmp(next_of(d), rows[i].next) == 0, "%s: %s",
			prefix_reason_name(rows[i].reason), next_of(d));
		json_decref(d);
	}
}
END_TEST

START_TEST (a_waiting_announcement_and_the_end) {
	json_t *d;
	double ms;

	fake_prefixes[0].wanted = PREFIX_WANTED_WITHDRAW;
	fake_prefixes[0].reason = PREFIX_REASON_UNHEALTHY;
	fake_prefixes[0].announces_at = monotime_add_ms(clock_monotime(), 18);
	/* Not required: it holds nothing up. */
	fake_checks[1].state = CHECK_STATE_DOWN;
	d = make("dns", true);
	ck_assert_str_eq(next_of(d), "announce");
	ms = after_ms(d, at(json_array_get(PREFIX("next"), 0), "at", NULL));
	ck_assert_double_gt(ms, 0);
	ck_assert_double_le(ms, 19);
	json_decref(d);

	facts.stopping = true;
	fake_prefixes[0].announces_at = MONOTIME_NEVER;
	fake_explained.step = APPLY_STEP_ANSWER;
	d = make("dns", true);
	ck_assert_str_eq(next_of(d), "leave, answer");
	json_decref(d);
}
END_TEST

/* The earliest time: the next start, and then one at each fast interval. */
START_TEST (when_a_check_can_turn) {
	static const struct {
		enum check_state state;
		unsigned streak;
		bool busy;
		int next_ms;
		const char *outcome; /* NULL: it needs nothing */
		int count, earliest_ms, of;
		unsigned first_rise;
	} rows[] = {
		{CHECK_STATE_UP, 0, false, 700, NULL, 0, 0, 0, 0},
		{CHECK_STATE_UP, 1, false, 300, "bad", 1, 300, 2, 0},
		{CHECK_STATE_DOWN, 0, false, 700, "good", 3, 1700, 3, 0},
		{CHECK_STATE_DOWN, 1, false, 200, "good", 2, 700, 3, 0},
		{CHECK_STATE_DOWN, 2, false, 200, "good", 1, 200, 3, 0},
		{CHECK_STATE_DOWN, 1, true, 0, "good", 2, 500, 3, 0},
		{CHECK_STATE_DOWN, 2, false, -50, "good", 1, 0, 3, 0},
		{CHECK_STATE_DOWN, 2, false, 200, "good", 6, 2700, 8, 8},
		{CHECK_STATE_PENDING, 0, false, 90, "any", 1, 90, 1, 0},
		{CHECK_STATE_PENDING, 0, true, 0, "any", 1, 0, 1, 0},
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		uint64_t now = clock_monotime().us;
		json_t *d;
		double ms;

		fake_checks[1].state = rows[i].state;
		fake_checks[1].streak = rows[i].streak;
		fake_checks[1].settings.first_rise = rows[i].first_rise;
		fake_run = (struct run_view){.busy = rows[i].busy,
			.next = rows[i].busy ? MONOTIME_NEVER
					     : (struct monotime){
						       now + (uint64_t)(rows[i].next_ms * 1000LL)}};
		d = make("dns", true);
		if (!rows[i].outcome) {
			ck_assert(json_is_null(CHECK("needs")));
			json_decref(d);
			continue;
		}
		ck_assert_text(at(CHECK("needs"), "outcome", NULL), rows[i].outcome);
		ck_assert_int_eq(
			json_integer_value(at(CHECK("needs"), "count", NULL)), rows[i].count);
		ck_assert_int_eq(json_integer_value(at(CHECK("needs"), "of", NULL)), rows[i].of);
		ms = after_ms(d, at(CHECK("needs"), "earliest", NULL));
		ck_assert_msg(ms <= rows[i].earliest_ms + 1 && ms > rows[i].earliest_ms - 100,
			"row %zu: %f ms", i, ms);
		json_decref(d);
	}
}
END_TEST

/* Rendered while the loop waits. */
static void explain_of_many(unsigned n)
{
	bool found = false;
	char *text;

	configured_services[0].n_prefixes = n;
	text = document_explain(&facts, "dns", &found);
	ck_assert(text && found);
	free(text);
}

START_TEST (five_thousand_prefixes) {
	json_t *d;

	configured_services[1].n_prefixes = 0;
	n_fake_sessions = 4;
	cost_expect_linear(explain_of_many, FAKE_MANY);
	d = make("dns", true);
	ck_assert_uint_eq(json_object_size(at(d, "services", "dns", "prefixes", NULL)), FAKE_MANY);
	json_decref(d);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("status-explain");
	TCase *tests = tcase_create("explain");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tests, setup, NULL);
	tcase_add_test(tests, a_service_a_prefix_an_address);
	tcase_add_test(tests, what_is_not_there);
	tcase_add_test(tests, rules_weights_and_settings);
	tcase_add_test(tests, protocols_sessions_and_others);
	tcase_add_test(tests, each_step_has_its_word);
	tcase_add_test(tests, each_reason_has_its_next);
	tcase_add_test(tests, what_is_out_has_a_next);
	tcase_add_test(tests, a_waiting_announcement_and_the_end);
	tcase_add_test(tests, when_a_check_can_turn);
	tcase_add_test(tests, five_thousand_prefixes);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
