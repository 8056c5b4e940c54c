/*
 * The status document, over an engine and a BIRD that say what each test wants: the accessors that
 * document.c reads are defined here and take the place of the real ones at link time.
 */
#include <check.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/clock.h"
#include "agent/judge/verdict.h"
#include "agent/status/document.h"
#include "tests/unit/fake-facts.h"

static const char *fake_reason;

static struct monotime fake_retry;

struct monotime apply_explain_retry(const struct apply *a)
{
	return fake_retry;
}

static struct run_view fake_run;

static void check_view(void *userdata, size_t service, size_t check, struct run_view *ret)
{
	*ret = fake_run;
}

static const char *check_reason(void *userdata, size_t service, size_t check)
{
	return fake_reason;
}

static const uint32_t *fake_durations;
static size_t n_fake_durations;

static size_t check_durations(
	void *userdata, size_t service, size_t check, uint32_t ret_us[CHECK_HISTORY_LENGTH])
{
	for (size_t i = 0; i < n_fake_durations; i++)
		ret_us[i] = fake_durations[i];
	return n_fake_durations;
}

static struct config_prefix configured_prefixes[FAKE_MANY];
static struct config_check configured_check = {.name = (char *)"answers"};
static struct config_service configured_service = {
	.name = (char *)"dns",
	.prefixes = configured_prefixes,
	.n_prefixes = 1,
	.checks = &configured_check,
	.n_checks = 1,
};
static struct config configured = {
	.node = (char *)"edge1", .services = &configured_service, .n_services = 1};
static struct document_facts facts = {.config = &configured,
	.check_reason = check_reason,
	.check_view = check_view,
	.check_durations = check_durations};

static struct document_render *render;

static void setup(void)
{
	fake_observed_each = true;
	n_fake_sessions = 2;
	ck_assert_int_eq(document_render_new(&render), 0);
	struct monotime now = clock_monotime();

	for (size_t i = 0; i < FAKE_MANY; i++) {
		configured_prefixes[i].prefix = (struct prefix){
			.address = {.family = ADDRESS_FAMILY_IPV4,
				.bytes = {10, 0, (uint8_t)(i / 256), (uint8_t)(i % 256)}},
			.length = 32};
		fake_prefixes[i] = (struct engine_prefix){.wanted = PREFIX_WANTED_ANNOUNCE,
			.reason = PREFIX_REASON_HEALTHY,
			.weight = 100,
			.since = {now.us - 90 * 1000000ULL}};
		fake_observed[i] = (struct apply_observed){.announced = APPLY_YES, .exported = 2};
	}
	configured_service.n_prefixes = 1;
	configured_service.n_checks = 1;
	fake_status = (struct apply_status){.link = APPLY_LINK_UP,
		.version = "2.0.12",
		.silent_since = MONOTIME_NEVER,
		.settled = true,
		.sessions = 2,
		.sessions_up = 2,
		.commands_sent = 7};
	fake_checks[0] = (struct check){.state = CHECK_STATE_UP, .since = now};
	fake_run = (struct run_view){.began = MONOTIME_NEVER, .next = MONOTIME_NEVER};
	fake_retry = MONOTIME_NEVER;
	fake_health = SERVICE_HEALTH_HEALTHY;
	fake_reason = "";
	facts.stopping = false;
	facts.config_error = "";
	facts.config_loaded = now;
	facts.ready = true;
	facts.words = NULL;
}

static void teardown(void)
{
	document_render_free(render);
}

/* The whole document, made in steps of no time at all; *ret_steps may be NULL. */
static char *make_text(unsigned *ret_steps)
{
	unsigned steps = 1;
	char *text = NULL;
	size_t length = 0;
	int r;

	while ((r = document_render_step(render, &facts, 0, &text, &length)) > 0)
		steps++;
	ck_assert_int_eq(r, 0);
	ck_assert_uint_eq(strlen(text), length);
	if (ret_steps)
		*ret_steps = steps;
	return text;
}

/* The verdict and the levels in it are what redshankctl judges of the same document. */
static void check_judgement(const json_t *document)
{
	const json_t *said = json_object_get(document, "verdict"), *bird;
	const json_t *service = json_object_get(json_object_get(document, "services"), "dns");
	const char *name;
	struct verdict v;
	json_t *item;

	bird = json_object_get(document, "bird");
	verdict_judge(&v, document);
	ck_assert_str_eq(judge_text(said, "level"), verdict_level_name(v.level));
	ck_assert_str_eq(judge_text(said, "text"), buffer_string(&v.text));
	ck_assert_str_eq(judge_text(said, "command"), v.command);
	ck_assert(json_object_get(said, "command") != NULL);
	verdict_done(&v);
	if (!service)
		return;
	ck_assert_str_eq(judge_text(service, "level"),
		verdict_level_name(judge_service_level(service, bird)));
	json_object_foreach (json_object_get(service, "prefixes"), name, item)
		ck_assert_str_eq(judge_text(item, "level"),
			verdict_level_name(judge_prefix_level(judge_prefix(item, bird))));
	json_object_foreach (json_object_get(service, "checks"), name, item)
		ck_assert_str_eq(judge_text(item, "level"),
			verdict_level_name(judge_check_level(judge_check(service, item))));
}

/* The document as JSON. */
static json_t *make(void)
{
	char *text = make_text(NULL);
	json_error_t error;
	json_t *document;

	ck_assert_ptr_nonnull(text);
	ck_assert_int_eq(text[strlen(text) - 1], '\n');
	document = json_loads(text, JSON_REJECT_DUPLICATES, &error);
	ck_assert_msg(document != NULL, "%s at line %d of: %s", error.text, error.line, text);
	free(text);
	check_judgement(document);
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
#define CHECK(key) at(d, "services", "dns", "checks", "answers", key, NULL)
#define BIRD(key) at(d, "bird", key, NULL)

START_TEST (known_facts_are_told) {
	json_t *d = make();

	ck_assert_int_eq(json_integer_value(at(d, "format", NULL)), 1);
	ck_assert_str_eq(json_string_value(at(d, "version", NULL)), REDSHANK_VERSION);
	ck_assert_str_eq(json_string_value(at(d, "node", NULL)), "edge1");
	ck_assert(json_is_false(at(d, "stopping", NULL)));
	ck_assert(json_is_null(at(d, "config", "error", NULL)));
	ck_assert(json_is_string(at(d, "config", "loaded", NULL)));
	ck_assert(json_is_true(at(d, "ready", NULL)));
	ck_assert_str_eq(json_string_value(BIRD("link")), "up");
	ck_assert_str_eq(json_string_value(BIRD("version")), "2.0.12");
	ck_assert(json_is_true(BIRD("settled")));
	ck_assert_int_eq(json_integer_value(BIRD("sessions")), 2);
	ck_assert_int_eq(json_integer_value(BIRD("commands_sent")), 7);
	ck_assert_str_eq(json_string_value(at(d, "services", "dns", "health", NULL)), "healthy");
	ck_assert_str_eq(json_string_value(PREFIX("wanted")), "announce");
	ck_assert(json_is_true(PREFIX("announced")));
	ck_assert_int_eq(json_integer_value(PREFIX("exported")), 2);
	ck_assert_int_eq(json_integer_value(PREFIX("weight")), 100);
	ck_assert_str_eq(json_string_value(PREFIX("reason")), "healthy");
	ck_assert(json_is_null(PREFIX("elsewhere")));
	ck_assert_str_eq(json_string_value(CHECK("state")), "up");
	ck_assert(json_is_null(CHECK("reason")));
	ck_assert_uint_eq(json_array_size(BIRD("warnings")), 0);
	json_decref(d);
}
END_TEST

/* The second and milliseconds of a time, for differences below a minute. */
static double seconds_of(const json_t *time)
{
	const char *text = json_string_value(time);

	ck_assert_msg(text && strlen(text) == strlen("2026-11-30T03:12:44.120Z"), "not a time");
	return strtod(text + strlen("2026-11-30T03:12:"), NULL);
}

START_TEST (when_a_check_runs) {
	json_t *d = make();
	uint64_t now = clock_monotime().us;
	double last, next;

	ck_assert(json_is_null(CHECK("last")));
	ck_assert(json_is_null(CHECK("next")));
	ck_assert_int_eq(json_integer_value(CHECK("duration_us")), 0);
	json_decref(d);
	fake_run = (struct run_view){
		.began = {now - 200000}, .duration_us = 1234, .next = {now + 800000}};
	d = make();
	last = seconds_of(CHECK("last"));
	next = seconds_of(CHECK("next"));
	ck_assert_double_eq_tol(next < last ? next + 60 - last : next - last, 1.0, 0.0015);
	ck_assert_int_eq(json_integer_value(CHECK("duration_us")), 1234);
	json_decref(d);
}
END_TEST

START_TEST (how_long_checks_took) {
	static const uint32_t us[] = {1200, 0, 4294967295};
	const json_t *durations;
	json_t *d = make();

	ck_assert_uint_eq(json_array_size(CHECK("durations_us")), 0);
	json_decref(d);
	fake_durations = us;
	n_fake_durations = 3;
	d = make();
	n_fake_durations = 0;
	durations = CHECK("durations_us");
	ck_assert_uint_eq(json_array_size(durations), 3);
	ck_assert_int_eq(json_integer_value(json_array_get(durations, 0)), 1200);
	ck_assert(json_is_null(json_array_get(durations, 1)));
	ck_assert_int_eq(json_integer_value(json_array_get(durations, 2)), 4294967295);
	json_decref(d);
}
END_TEST

START_TEST (when_bird_is_tried) {
	json_t *d = make();

	ck_assert(json_is_null(BIRD("next_try")));
	json_decref(d);
	fake_retry = monotime_add_ms(clock_monotime(), 400);
	d = make();
	(void)seconds_of(BIRD("next_try"));
	json_decref(d);
}
END_TEST

START_TEST (warnings_are_told) {
	json_t *d;
	const json_t *second;

	fake_warnings[0] = (struct advise_warning){.code = "outranked", .text = "first"};
	fake_warnings[1] = (struct advise_warning){.code = "kernel_export", .text = "a \"second\""};
	n_fake_warnings = 2;
	d = make();
	n_fake_warnings = 0;
	ck_assert_uint_eq(json_array_size(BIRD("warnings")), 2);
	second = json_array_get(BIRD("warnings"), 1);
	ck_assert_str_eq(json_string_value(json_object_get(second, "code")), "kernel_export");
	ck_assert_str_eq(json_string_value(json_object_get(second, "text")), "a \"second\"");
	json_decref(d);
}
END_TEST

START_TEST (sessions_that_are_down_have_names) {
	json_t *d = make();

	ck_assert_uint_eq(json_array_size(BIRD("sessions_down")), 0);
	json_decref(d);
	fake_session_down = 1;
	d = make();
	fake_session_down = SIZE_MAX;
	ck_assert_uint_eq(json_array_size(BIRD("sessions_down")), 1);
	ck_assert_str_eq(json_string_value(json_array_get(BIRD("sessions_down"), 0)), "s1");
	json_decref(d);
}
END_TEST

START_TEST (unknown_is_null) {
	json_t *d;

	fake_status = (struct apply_status){.link = APPLY_LINK_AWAY,
		.error = "no socket",
		.loss = LOSS_ABSENT,
		.silent_since = MONOTIME_NEVER};
	fake_observed[0] = (struct apply_observed){.announced = APPLY_UNKNOWN, .exported = -1};
	d = make();
	ck_assert_str_eq(json_string_value(BIRD("link")), "away");
	ck_assert_str_eq(json_string_value(BIRD("error")), "no socket");
	ck_assert_str_eq(json_string_value(BIRD("reason")), "absent");
	ck_assert(json_is_null(BIRD("version")));
	ck_assert(json_is_null(BIRD("alarm")));
	ck_assert(json_is_null(BIRD("files_error")));
	ck_assert(json_is_null(BIRD("silent_since")));
	ck_assert(json_is_null(BIRD("sessions_down")));
	ck_assert(json_is_null(BIRD("settled")));
	ck_assert(json_is_null(BIRD("sessions")));
	ck_assert(json_is_null(BIRD("sessions_up")));
	ck_assert(json_is_null(PREFIX("announced")));
	ck_assert(json_is_null(PREFIX("exported")));
	ck_assert_str_eq(json_string_value(PREFIX("wanted")), "announce");
	json_decref(d);
}
END_TEST

START_TEST (withdrawn_and_still_seen) {
	json_t *d;

	fake_prefixes[0].wanted = PREFIX_WANTED_WITHDRAW;
	fake_prefixes[0].reason = PREFIX_REASON_UNHEALTHY;
	fake_observed[0] = (struct apply_observed){
		.announced = APPLY_NO, .exported = 0, .elsewhere = "direct1"};
	fake_health = SERVICE_HEALTH_UNHEALTHY;
	facts.stopping = true;
	facts.config_error = "redshank.json: bad";
	d = make();
	ck_assert_str_eq(json_string_value(PREFIX("wanted")), "withdraw");
	ck_assert(json_is_false(PREFIX("announced")));
	ck_assert(json_is_integer(PREFIX("exported")));
	ck_assert_int_eq(json_integer_value(PREFIX("exported")), 0);
	ck_assert_str_eq(json_string_value(PREFIX("elsewhere")), "direct1");
	ck_assert_str_eq(json_string_value(PREFIX("reason")), "unhealthy");
	ck_assert_str_eq(json_string_value(at(d, "services", "dns", "health", NULL)), "unhealthy");
	ck_assert(json_is_true(at(d, "stopping", NULL)));
	ck_assert_str_eq(json_string_value(at(d, "config", "error", NULL)), "redshank.json: bad");
	json_decref(d);
}
END_TEST

/* Who has drained what stands at the top, also for names that nobody has now; and the word that
 * covers a prefix beside it. */
START_TEST (drains_are_told) {
	struct word items[] = {
		{.name = "gone", .who = "uid 7 (pid 8)", .since = {0}, .until = {1780000000000000}},
		{.name = "dns", .reason = "new \"disks\"", .who = "root", .until = WORDS_FOREVER},
		{.name = "", .who = "root", .until = {1780000000000000}},
		{.kind = WORD_ANNOUNCE, .name = "dns", .who = "bob", .until = {1780000000000000}},
		{.kind = WORD_FREEZE, .name = "", .who = "eve", .until = WORDS_FOREVER},
	};
	struct words words = {.items = items, .n = 2};
	const json_t *drains;
	json_t *d;

	d = make();
	ck_assert(json_is_null(PREFIX("drain")));
	ck_assert_uint_eq(json_array_size(at(d, "drains", NULL)), 0);
	json_decref(d);
	facts.words = &words;
	d = make();
	drains = at(d, "drains", NULL);
	ck_assert_uint_eq(json_array_size(drains), 2);
	ck_assert_str_eq(json_string_value(json_object_get(json_array_get(drains, 0), "until")),
		"2026-05-28T20:26:40.000Z");
	ck_assert(json_is_false(json_object_get(json_array_get(drains, 0), "configured")));
	ck_assert(json_is_null(json_object_get(json_array_get(drains, 0), "reason")));
	ck_assert(json_is_true(json_object_get(json_array_get(drains, 1), "configured")));
	ck_assert(json_is_null(json_object_get(json_array_get(drains, 1), "until")));
	ck_assert_str_eq(json_string_value(json_object_get(PREFIX("drain"), "name")), "dns");
	ck_assert_str_eq(
		json_string_value(json_object_get(PREFIX("drain"), "reason")), "new \"disks\"");
	json_decref(d);
	words = (struct words){.items = items + 3, .n = 2};
	d = make();
	ck_assert(json_is_null(PREFIX("drain")));
	ck_assert_uint_eq(json_array_size(at(d, "drains", NULL)), 0);
	ck_assert_str_eq(json_string_value(json_object_get(PREFIX("announce"), "who")), "bob");
	ck_assert(json_is_true(
		json_object_get(json_array_get(at(d, "announces", NULL), 0), "configured")));
	ck_assert_str_eq(json_string_value(at(d, "freeze", "who", NULL)), "eve");
	ck_assert(json_is_null(at(d, "freeze", "until", NULL)));
	ck_assert_ptr_nonnull(strstr(
		json_string_value(at(d, "verdict", "text", NULL)), "the server is frozen by eve"));
	json_decref(d);
	words = (struct words){.items = items + 2, .n = 1};
	d = make();
	ck_assert(json_is_null(PREFIX("announce")));
	ck_assert(json_is_null(at(d, "freeze", NULL)));
	ck_assert(json_is_null(json_object_get(PREFIX("drain"), "name")));
	ck_assert(json_is_object(PREFIX("drain")));
	ck_assert(json_is_true(
		json_object_get(json_array_get(at(d, "drains", NULL), 0), "configured")));
	json_decref(d);
}
END_TEST

START_TEST (outcomes_stand_newest_last) {
	static const char *const expected[] = {"good", "unknown", "bad", "gone"};
	const struct check_settings settings = {
		.interval_ms = 1000, .fast_interval_ms = 500, .rise = 3, .fall = 2};
	struct monotime now = clock_monotime();
	const json_t *outcomes;
	json_t *d;

	check_init(&fake_checks[0], &settings, now);
	check_take(&fake_checks[0], CHECK_OUTCOME_GOOD, true, now);
	check_take(&fake_checks[0], CHECK_OUTCOME_UNKNOWN, true, now);
	check_take(&fake_checks[0], CHECK_OUTCOME_BAD, true, now);
	check_take(&fake_checks[0], CHECK_OUTCOME_GONE, true, now);
	fake_reason = "process 4242 is gone";
	d = make();
	outcomes = CHECK("outcomes");
	ck_assert_uint_eq(json_array_size(outcomes), ELEMENTSOF(expected));
	for (size_t i = 0; i < ELEMENTSOF(expected); i++)
		ck_assert_str_eq(json_string_value(json_array_get(outcomes, i)), expected[i]);
	ck_assert_str_eq(json_string_value(CHECK("state")), "down");
	ck_assert_str_eq(json_string_value(CHECK("reason")), "process 4242 is gone");
	json_decref(d);
}
END_TEST

/* make() holds the levels in the document against what redshankctl judges of it. */
START_TEST (a_check_that_says_nothing_is_judged) {
	const struct check_settings settings = {
		.interval_ms = 1000, .fast_interval_ms = 500, .rise = 3, .fall = 2};
	struct monotime now = clock_monotime();
	json_t *d;

	check_init(&fake_checks[0], &settings, now);
	for (unsigned i = 0; i < CHECK_HISTORY_LENGTH + 3; i++) {
		check_take(&fake_checks[0], i == 0 ? CHECK_OUTCOME_GOOD : CHECK_OUTCOME_UNKNOWN,
			true, now);
		d = make();
		ck_assert_str_eq(
			json_string_value(CHECK("level")), i < CHECK_SILENT ? "good" : "look");
		json_decref(d);
	}
	check_take(&fake_checks[0], CHECK_OUTCOME_GOOD, true, now);
	d = make();
	ck_assert_str_eq(json_string_value(CHECK("level")), "good");
	json_decref(d);
}
END_TEST

START_TEST (times_are_wall_times_in_utc) {
	char expected[CLOCK_TEXT_MAX];
	const char *since;
	json_t *d = make();

	clock_format((struct walltime){clock_walltime().us - 90 * 1000000LL}, expected);
	since = json_string_value(PREFIX("since"));
	ck_assert_uint_eq(strlen(since), strlen("2026-11-30T03:12:44.120Z"));
	/* To the minute, and the next one if it has just begun. */
	if (strncmp(since, expected, 16) != 0) {
		clock_format((struct walltime){clock_walltime().us - 91 * 1000000LL}, expected);
		ck_assert_int_eq(strncmp(since, expected, 16), 0);
	}
	ck_assert_str_gt(json_string_value(at(d, "time", NULL)), since);
	json_decref(d);

	fake_prefixes[0].since = MONOTIME_NEVER;
	d = make();
	ck_assert(json_is_null(PREFIX("since")));
	json_decref(d);
}
END_TEST

/* Each pair: what came from outside, and what a JSON parser reads back. */
START_TEST (hostile_text_stays_valid_json) {
	static const struct {
		const char *in, *out;
	} rows[] = {
		{"quote \" backslash \\ slash /", "quote \" backslash \\ slash /"},
		{"tab\tnewline\ncr\r bell\a del\x7f", "tab\tnewline\ncr\r bell\a del\x7f"},
		{"\x1b[31mred", "\x1b[31mred"},
		{"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x90\xa6",
			"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x90\xa6"},
		{"bad \xff\xfe.", "bad \xef\xbf\xbd\xef\xbf\xbd."},
		{"cut \xe2\x82", "cut \xef\xbf\xbd\xef\xbf\xbd"},
		{"overlong \xc0\xaf \xe0\x80\xaf", "overlong \xef\xbf\xbd\xef\xbf\xbd "
						   "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
		{"surrogate \xed\xa0\x80", "surrogate \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
		{"too high \xf4\x90\x80\x80",
			"too high \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		json_t *d;

		fake_reason = rows[i].in;
		(void)snprintf(fake_status.alarm, sizeof(fake_status.alarm), "%s", rows[i].in);
		d = make();
		ck_assert_str_eq(json_string_value(CHECK("reason")), rows[i].out);
		ck_assert_str_eq(json_string_value(BIRD("alarm")), rows[i].out);
		json_decref(d);
	}
}
END_TEST

START_TEST (nothing_configured) {
	json_t *d;

	configured_service.n_prefixes = configured_service.n_checks = 0;
	d = make();
	ck_assert_uint_eq(json_object_size(at(d, "services", "dns", "prefixes", NULL)), 0);
	ck_assert_uint_eq(json_object_size(at(d, "services", "dns", "checks", NULL)), 0);
	json_decref(d);
	configured.n_services = 0;
	d = make();
	ck_assert_uint_eq(json_object_size(at(d, "services", NULL)), 0);
	json_decref(d);
	configured.n_services = 1;
}
END_TEST

/* The loop does other things between the steps: none writes more than a few prefixes. */
START_TEST (five_thousand_prefixes_in_steps) {
	struct monotime start;
	unsigned steps;
	json_t *d;

	configured_service.n_prefixes = FAKE_MANY;
	for (size_t i = 0; i < FAKE_MANY; i++)
		fake_prefixes[i].since.us += i / 100;
	start = clock_monotime();
	free(make_text(&steps));
	(void)printf("5,000 prefixes: %u steps, %llu us\n", steps,
		(unsigned long long)monotime_since_us(start, clock_monotime()));
	ck_assert_uint_gt(steps, FAKE_MANY / 20);
	d = make();
	ck_assert_uint_eq(json_object_size(at(d, "services", "dns", "prefixes", NULL)), FAKE_MANY);
	json_decref(d);
}
END_TEST

static void step_to_the_middle(void)
{
	char *text = NULL;
	size_t length;

	for (int i = 0; i < 10; i++)
		ck_assert_int_eq(document_render_step(render, &facts, 0, &text, &length), 1);
}

/* What was written of another configuration is thrown away. */
START_TEST (another_configuration_in_the_middle) {
	json_t *d;

	configured_service.n_prefixes = FAKE_MANY;
	step_to_the_middle();
	configured_service.n_prefixes = 1;
	facts.generation++;
	d = make();
	ck_assert_uint_eq(json_object_size(at(d, "services", "dns", "prefixes", NULL)), 1);
	json_decref(d);
}
END_TEST

/* What changes while it is written is in it from the beginning, but it is finished in the end also
 * where something always changes. */
START_TEST (something_changes_in_the_middle) {
	unsigned steps = 1;
	char *text = NULL;
	size_t length;
	json_t *d;
	int r;

	configured_service.n_prefixes = FAKE_MANY;
	step_to_the_middle();
	fake_prefixes[0].wanted = PREFIX_WANTED_WITHDRAW;
	facts.revision++;
	d = make();
	ck_assert_str_eq(json_string_value(PREFIX("wanted")), "withdraw");
	json_decref(d);
	while ((r = document_render_step(render, &facts, 0, &text, &length)) > 0) {
		facts.revision++;
		ck_assert_uint_lt(steps++, FAKE_MANY);
	}
	ck_assert_int_eq(r, 0);
	free(text);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("status-document");
	TCase *tests = tcase_create("document");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, known_facts_are_told);
	tcase_add_test(tests, how_long_checks_took);
	tcase_add_test(tests, when_a_check_runs);
	tcase_add_test(tests, when_bird_is_tried);
	tcase_add_test(tests, warnings_are_told);
	tcase_add_test(tests, sessions_that_are_down_have_names);
	tcase_add_test(tests, unknown_is_null);
	tcase_add_test(tests, withdrawn_and_still_seen);
	tcase_add_test(tests, drains_are_told);
	tcase_add_test(tests, outcomes_stand_newest_last);
	tcase_add_test(tests, a_check_that_says_nothing_is_judged);
	tcase_add_test(tests, times_are_wall_times_in_utc);
	tcase_add_test(tests, hostile_text_stays_valid_json);
	tcase_add_test(tests, nothing_configured);
	tcase_add_test(tests, five_thousand_prefixes_in_steps);
	tcase_add_test(tests, another_configuration_in_the_middle);
	tcase_add_test(tests, something_changes_in_the_middle);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
