/*
 * The metrics as text, over an engine and a BIRD that say what each test wants: the accessors that
 * metrics.c reads are defined here and take the place of the real ones at link time.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/clock.h"
#include "agent/events/events.h"
#include "agent/status/metrics.h"
#include "tests/unit/fake-facts.h"

static const struct probe_type type_tcp = {.name = "tcp"}, type_dns = {.name = "dns"};
static struct config_prefix configured_prefixes[FAKE_MANY];
static struct config_check configured_checks[] = {{.name = (char *)"port", .type = &type_tcp},
	{.name = (char *)"answers", .type = &type_dns},
	{.name = (char *)"port2", .type = &type_tcp}};
static struct config_service configured_services[] = {
	{.name = (char *)"dns",
		.prefixes = configured_prefixes,
		.n_prefixes = 1,
		.checks = configured_checks,
		.n_checks = ELEMENTSOF(configured_checks)},
	{.name = (char *)"web", .prefixes = configured_prefixes + 1, .n_prefixes = 1},
};
static struct config configured = {.node = (char *)"edge1",
	.services = configured_services,
	.n_services = ELEMENTSOF(configured_services)};
static struct tally *tally;
static struct metrics_facts facts;

static void setup(void)
{
	for (size_t i = 0; i < FAKE_MANY; i++) {
		configured_prefixes[i].prefix = (struct prefix){
			.address = {.family = ADDRESS_FAMILY_IPV4,
				.bytes = {10, 0, (uint8_t)(i / 256), (uint8_t)(i % 256)}},
			.length = 32};
		fake_prefixes[i] = (struct engine_prefix){.wanted = PREFIX_WANTED_ANNOUNCE,
			.reason = PREFIX_REASON_HEALTHY,
			.weight = 100};
	}
	configured_services[0].n_prefixes = 1;
	fake_observed[0] = (struct apply_observed){.announced = APPLY_YES, .exported = 2};
	fake_status = (struct apply_status){.link = APPLY_LINK_UP, .version = "2.0.12"};
	fake_checks[0] = fake_checks[1] = fake_checks[2] = (struct check){.state = CHECK_STATE_UP};
	fake_health = SERVICE_HEALTH_HEALTHY;
	n_fake_warnings = n_fake_sessions = 0;
	configured.node = (char *)"edge1";
	ck_assert_int_eq(tally_new(&tally, &configured, NULL), 0);
	facts = (struct metrics_facts){
		.document = {.config = &configured, .ready = true}, .tally = tally};
}

static void teardown(void)
{
	tally_free(tally);
}

/* The whole document, made in slices of no time at all. */
static char *make_as(enum metrics_format format)
{
	struct metrics_render render;
	char *text = NULL;
	size_t length = 0;
	int r;

	metrics_begin(&render, format, facts.document.generation);
	while ((r = metrics_step(&render, &facts, 0, &text, &length)) > 0)
		;
	metrics_done(&render);
	ck_assert_int_eq(r, 0);
	ck_assert_uint_eq(strlen(text), length);
	return text;
}

/* What `family` has: from its HELP to the next one. */
static char *family_of(const char *text, const char *family)
{
	char help[128];
	const char *at, *end;

	(void)snprintf(help, sizeof(help), "# HELP %s ", family);
	at = strstr(text, help);
	ck_assert_msg(at != NULL, "no family %s", family);
	at = strstr(at, "\n# TYPE ");
	ck_assert_ptr_nonnull(at);
	end = strstr(at + 1, "\n# HELP ");
	return strndup(at + 1, end ? (size_t)(end - at) : strlen(at + 1));
}

#define EXPECT_FAMILY(family, expected)                              \
	do {                                                         \
		char *text_ = make_as(METRICS_TEXT);                 \
		char *found_ = family_of(text_, "redshank_" family); \
		ck_assert_str_eq(found_, expected);                  \
		free(found_);                                        \
		free(text_);                                         \
	} while (0)

#define DNS "service=\"dns\",prefix=\"10.0.0.0/32\""
#define WEB "service=\"web\",prefix=\"10.0.0.1/32\""

/* By name, but no more series than a bound. */
START_TEST (sessions) {
	char *text, *found;

	n_fake_sessions = 2;
	fake_session_down = 0;
	EXPECT_FAMILY("bird_session_up", "# TYPE redshank_bird_session_up gauge\n"
					 "redshank_bird_session_up{session=\"s0\"} 0\n"
					 "redshank_bird_session_up{session=\"s1\"} 1\n");
	n_fake_sessions = 1000;
	text = make_as(METRICS_TEXT);
	found = family_of(text, "redshank_bird_session_up");
	ck_assert_ptr_nonnull(strstr(found, "{session=\"s63\"}"));
	ck_assert_ptr_null(strstr(found, "{session=\"s64\"}"));
	free(found);
	free(text);
	fake_status.link = APPLY_LINK_AWAY;
	EXPECT_FAMILY("bird_session_up", "# TYPE redshank_bird_session_up gauge\n");
}
END_TEST

START_TEST (the_loop_and_the_configuration) {
	struct histogram turns = {.count = 0};

	histogram_add(&turns, 20000);
	facts.turns = &turns;
	facts.document.config_error = "redshank.json:1:2: no";
	facts.document.config_loaded = clock_monotime();
	EXPECT_FAMILY(
		"config_error", "# TYPE redshank_config_error gauge\nredshank_config_error 1\n");
	EXPECT_FAMILY("loop_lateness_seconds", "# TYPE redshank_loop_lateness_seconds histogram\n");
	EXPECT_FAMILY("loop_turn_duration_seconds",
		"# TYPE redshank_loop_turn_duration_seconds histogram\n"
		"redshank_loop_turn_duration_seconds_bucket{le=\"0.0005\"} 0\n"
		"redshank_loop_turn_duration_seconds_bucket{le=\"0.001\"} 0\n"
		"redshank_loop_turn_duration_seconds_bucket{le=\"0.005\"} 0\n"
		"redshank_loop_turn_duration_seconds_bucket{le=\"0.01\"} 0\n"
		"redshank_loop_turn_duration_seconds_bucket{le=\"0.05\"} 1\n"
		"redshank_loop_turn_duration_seconds_bucket{le=\"0.1\"} 1\n"
		"redshank_loop_turn_duration_seconds_bucket{le=\"0.5\"} 1\n"
		"redshank_loop_turn_duration_seconds_bucket{le=\"2.5\"} 1\n"
		"redshank_loop_turn_duration_seconds_bucket{le=\"+Inf\"} 1\n"
		"redshank_loop_turn_duration_seconds_sum 0.02\n"
		"redshank_loop_turn_duration_seconds_count 1\n");
}
END_TEST

START_TEST (prefixes) {
	fake_prefixes[1].wanted = PREFIX_WANTED_DEMOTE;
	fake_prefixes[1].reason = PREFIX_REASON_DRAINED;
	EXPECT_FAMILY("prefix_wanted",
		"# TYPE redshank_prefix_wanted gauge\n"
		"redshank_prefix_wanted{" DNS "} 1\nredshank_prefix_wanted{" WEB "} 1\n");
	EXPECT_FAMILY("prefix_demoted",
		"# TYPE redshank_prefix_demoted gauge\n"
		"redshank_prefix_demoted{" DNS "} 0\nredshank_prefix_demoted{" WEB "} 1\n");
	EXPECT_FAMILY("prefix_exported_sessions", "# TYPE redshank_prefix_exported_sessions gauge\n"
						  "redshank_prefix_exported_sessions{" DNS "} 2\n"
						  "redshank_prefix_exported_sessions{" WEB "} 2\n");
	EXPECT_FAMILY("prefix_weight",
		"# TYPE redshank_prefix_weight gauge\n"
		"redshank_prefix_weight{" DNS "} 100\nredshank_prefix_weight{" WEB "} 100\n");
	configured.n_services = 1;
	EXPECT_FAMILY("prefix_reason",
		"# TYPE redshank_prefix_reason gauge\n"
		"redshank_prefix_reason{" DNS ",reason=\"stopping\"} 0\n"
		"redshank_prefix_reason{" DNS ",reason=\"drained\"} 0\n"
		"redshank_prefix_reason{" DNS ",reason=\"forced\"} 0\n"
		"redshank_prefix_reason{" DNS ",reason=\"frozen\"} 0\n"
		"redshank_prefix_reason{" DNS ",reason=\"address_missing\"} 0\n"
		"redshank_prefix_reason{" DNS ",reason=\"unhealthy\"} 0\n"
		"redshank_prefix_reason{" DNS ",reason=\"kept_by_floor\"} 0\n"
		"redshank_prefix_reason{" DNS ",reason=\"first_round\"} 0\n"
		"redshank_prefix_reason{" DNS ",reason=\"held_down\"} 0\n"
		"redshank_prefix_reason{" DNS ",reason=\"shed\"} 0\n"
		"redshank_prefix_reason{" DNS ",reason=\"in_doubt\"} 0\n"
		"redshank_prefix_reason{" DNS ",reason=\"shared_unhealthy\"} 0\n"
		"redshank_prefix_reason{" DNS ",reason=\"ramping\"} 0\n"
		"redshank_prefix_reason{" DNS ",reason=\"healthy\"} 1\n");
	configured.n_services = 2;
	fake_prefixes[0].wanted = PREFIX_WANTED_WITHDRAW;
	EXPECT_FAMILY("prefix_wanted",
		"# TYPE redshank_prefix_wanted gauge\n"
		"redshank_prefix_wanted{" DNS "} 0\nredshank_prefix_wanted{" WEB "} 1\n");
}
END_TEST

START_TEST (unknown_has_no_sample) {
	fake_observed[0] = (struct apply_observed){.announced = APPLY_UNKNOWN, .exported = -1};
	fake_status = (struct apply_status){.link = APPLY_LINK_AWAY};
	EXPECT_FAMILY("prefix_announced", "# TYPE redshank_prefix_announced gauge\n");
	EXPECT_FAMILY("prefix_exported", "# TYPE redshank_prefix_exported gauge\n");
	EXPECT_FAMILY("prefix_elsewhere", "# TYPE redshank_prefix_elsewhere gauge\n");
	EXPECT_FAMILY("bird_sessions", "# TYPE redshank_bird_sessions gauge\n");
	EXPECT_FAMILY("bird_info", "# TYPE redshank_bird_info gauge\n");
	EXPECT_FAMILY("bird_up", "# TYPE redshank_bird_up gauge\nredshank_bird_up 0\n");
	EXPECT_FAMILY("bird_silent", "# TYPE redshank_bird_silent gauge\nredshank_bird_silent 1\n");
	fake_status.silent_since = MONOTIME_NEVER;
	EXPECT_FAMILY("bird_silent", "# TYPE redshank_bird_silent gauge\nredshank_bird_silent 0\n");
	fake_observed[0] = (struct apply_observed){.announced = APPLY_NO, .exported = 0};
	configured.n_services = 1;
	EXPECT_FAMILY("prefix_announced",
		"# TYPE redshank_prefix_announced gauge\nredshank_prefix_announced{" DNS "} 0\n");
	EXPECT_FAMILY("prefix_exported",
		"# TYPE redshank_prefix_exported gauge\nredshank_prefix_exported{" DNS "} 0\n");
	configured.n_services = 2;
}
END_TEST

#define LOST(reason, n) "redshank_bird_connections_lost_total{reason=\"" reason "\"} " n "\n"

/* Every word is there from the start, so that the first loss is an increase. */
START_TEST (losses_by_why) {
	static const char all[] = LOST("absent", "2") LOST("refused", "0") LOST("denied", "0")
		LOST("full", "0") LOST("closed", "0") LOST("silent", "0") LOST("garbled", "0")
			LOST("too_old", "0") LOST("failed", "3");
	char expected[1024];

	fake_status.losses[LOSS_ABSENT] = 2;
	fake_status.losses[LOSS_FAILED] = 3;
	(void)snprintf(expected, sizeof(expected),
		"# TYPE redshank_bird_connections_lost_total counter\n%s", all);
	EXPECT_FAMILY("bird_connections_lost_total", expected);
}
END_TEST

START_TEST (checks_are_counted) {
	const struct engine_transition transition = {.kind = ENGINE_TRANSITION_CHECK, .index = 1};

	tally_outcome(tally, 0, 0, CHECK_OUTCOME_GOOD, 500); /* a bound is in its bucket */
	tally_outcome(tally, 0, 2, CHECK_OUTCOME_BAD, 501);  /* another check of this type */
	tally_outcome(tally, 0, 2, CHECK_OUTCOME_BAD, 3000000);
	tally_outcome(tally, 0, 1, CHECK_OUTCOME_GONE, 0); /* between two attempts */
	tally_transition(tally, &transition);
	EXPECT_FAMILY("check_outcomes_total",
		"# TYPE redshank_check_outcomes_total counter\n"
		"redshank_check_outcomes_total{service=\"dns\",check=\"port\",outcome=\"good\"} 1\n"
		"redshank_check_outcomes_total{service=\"dns\",check=\"port\",outcome=\"bad\"} 0\n"
		"redshank_check_outcomes_total{service=\"dns\",check=\"port\",outcome=\"gone\"} 0\n"
		"redshank_check_outcomes_total{service=\"dns\",check=\"port\",outcome=\"unknown\"} "
		"0\n"
		"redshank_check_outcomes_total{service=\"dns\",check=\"answers\",outcome=\"good\"} "
		"0\n"
		"redshank_check_outcomes_total{service=\"dns\",check=\"answers\",outcome=\"bad\"} "
		"0\n"
		"redshank_check_outcomes_total{service=\"dns\",check=\"answers\",outcome=\"gone\"} "
		"1\n"
		"redshank_check_outcomes_total{service=\"dns\",check=\"answers\",outcome="
		"\"unknown\"} "
		"0\n"
		"redshank_check_outcomes_total{service=\"dns\",check=\"port2\",outcome=\"good\"} "
		"0\n"
		"redshank_check_outcomes_total{service=\"dns\",check=\"port2\",outcome=\"bad\"} 2\n"
		"redshank_check_outcomes_total{service=\"dns\",check=\"port2\",outcome=\"gone\"} "
		"0\n"
		"redshank_check_outcomes_total{service=\"dns\",check=\"port2\",outcome=\"unknown\"}"
		" "
		"0\n");
	EXPECT_FAMILY("check_transitions_total",
		"# TYPE redshank_check_transitions_total counter\n"
		"redshank_check_transitions_total{service=\"dns\",check=\"port\"} 0\n"
		"redshank_check_transitions_total{service=\"dns\",check=\"answers\"} 1\n"
		"redshank_check_transitions_total{service=\"dns\",check=\"port2\"} 0\n");
#define TCP "{service=\"dns\",type=\"tcp\""
#define ANSWERS "{service=\"dns\",type=\"dns\""
#define NAME "redshank_check_duration_seconds"
	EXPECT_FAMILY("check_duration_seconds",
		"# TYPE " NAME " histogram\n" NAME "_bucket" TCP ",le=\"0.0005\"} 1\n" NAME
		"_bucket" TCP ",le=\"0.001\"} 2\n" NAME "_bucket" TCP ",le=\"0.005\"} 2\n" NAME
		"_bucket" TCP ",le=\"0.01\"} 2\n" NAME "_bucket" TCP ",le=\"0.05\"} 2\n" NAME
		"_bucket" TCP ",le=\"0.1\"} 2\n" NAME "_bucket" TCP ",le=\"0.5\"} 2\n" NAME
		"_bucket" TCP ",le=\"2.5\"} 2\n" NAME "_bucket" TCP ",le=\"+Inf\"} 3\n" NAME
		"_sum" TCP "} 3.001001\n" NAME "_count" TCP "} 3\n" NAME "_bucket" ANSWERS
		",le=\"0.0005\"} 0\n" NAME "_bucket" ANSWERS ",le=\"0.001\"} 0\n" NAME
		"_bucket" ANSWERS ",le=\"0.005\"} 0\n" NAME "_bucket" ANSWERS
		",le=\"0.01\"} 0\n" NAME "_bucket" ANSWERS ",le=\"0.05\"} 0\n" NAME
		"_bucket" ANSWERS ",le=\"0.1\"} 0\n" NAME "_bucket" ANSWERS ",le=\"0.5\"} 0\n" NAME
		"_bucket" ANSWERS ",le=\"2.5\"} 0\n" NAME "_bucket" ANSWERS ",le=\"+Inf\"} 0\n" NAME
		"_sum" ANSWERS "} 0\n" NAME "_count" ANSWERS "} 0\n");
}
END_TEST

START_TEST (counters_outlive_a_reload) {
	struct config_service swapped[] = {configured_services[1], configured_services[0]};
	struct config next = {.node = configured.node, .services = swapped, .n_services = 2};
	const struct engine_transition moves[] = {
		{.kind = ENGINE_TRANSITION_SERVICE, .to = SERVICE_HEALTH_UNHEALTHY},
		{.kind = ENGINE_TRANSITION_PREFIX, .from = PREFIX_WANTED_ANNOUNCE},
		{.kind = ENGINE_TRANSITION_PREFIX, .from = PREFIX_WANTED_WITHDRAW}, /* a reason */
	};
	struct tally *later;

	swapped[1].n_checks = 2; /* port2 is gone */
	tally_outcome(tally, 0, 1, CHECK_OUTCOME_GOOD, 700);
	tally_outcome(tally, 0, 2, CHECK_OUTCOME_GOOD, 700);
	for (size_t i = 0; i < ELEMENTSOF(moves); i++)
		tally_transition(tally, &moves[i]);
	ck_assert_int_eq(tally_new(&later, &next, tally), 0);
	ck_assert_uint_eq(later->services[1].checks[1].outcomes[CHECK_OUTCOME_GOOD], 1);
	ck_assert_uint_eq(later->services[1].checks[0].outcomes[CHECK_OUTCOME_GOOD], 0);
	ck_assert_uint_eq(later->services[1].durations[0].histogram.count, 1);
	ck_assert_uint_eq(later->services[1].durations[1].histogram.count, 1);
	ck_assert_uint_eq(later->services[1].transitions[SERVICE_HEALTH_UNHEALTHY], 1);
	ck_assert_uint_eq(later->services[1].prefixes[0].transitions[PREFIX_WANTED_WITHDRAW], 1);
	ck_assert_uint_eq(later->services[0].transitions[SERVICE_HEALTH_UNHEALTHY], 0);
	ck_assert_uint_eq(later->services[0].prefixes[0].transitions[PREFIX_WANTED_WITHDRAW], 0);
	tally_free(later);
}
END_TEST

START_TEST (warnings_by_code) {
	fake_warnings[0].code = "outranked";
	fake_warnings[1].code = "kernel_export";
	fake_warnings[2].code = "outranked";
	n_fake_warnings = 3;
	EXPECT_FAMILY("bird_warnings", "# TYPE redshank_bird_warnings gauge\n"
				       "redshank_bird_warnings{code=\"outranked\"} 2\n"
				       "redshank_bird_warnings{code=\"kernel_export\"} 1\n");
}
END_TEST

START_TEST (requests_by_path_and_code) {
	static const struct metrics_requests requests[] = {{"/metrics", 200, 7}, {"other", 404, 1}};

	facts.requests = requests;
	facts.n_requests = ELEMENTSOF(requests);
	EXPECT_FAMILY("http_requests_total",
		"# TYPE redshank_http_requests_total counter\n"
		"redshank_http_requests_total{path=\"/metrics\",code=\"200\"} 7\n"
		"redshank_http_requests_total{path=\"other\",code=\"404\"} 1\n");
}
END_TEST

START_TEST (events_and_their_streams) {
	facts.streams = 3;
	facts.slow_streams = 2;
	ck_assert_int_eq(events_init(), 0);
	event_say(LOG_INFO, EVENT_CHECK, NULL, "x");
	EXPECT_FAMILY(
		"events_total", "# TYPE redshank_events_total counter\nredshank_events_total 1\n");
	events_done();
	event_say(LOG_INFO, EVENT_CHECK, NULL, "x");
	EXPECT_FAMILY("events_lost_total",
		"# TYPE redshank_events_lost_total counter\nredshank_events_lost_total 1\n");
	EXPECT_FAMILY(
		"event_streams", "# TYPE redshank_event_streams gauge\nredshank_event_streams 3\n");
	EXPECT_FAMILY("event_streams_slow_total",
		"# TYPE redshank_event_streams_slow_total counter\n"
		"redshank_event_streams_slow_total 2\n");
}
END_TEST

/* Each pair: what came from outside, and how it stands in the document. */
START_TEST (hostile_labels) {
	static const struct {
		const char *in, *out;
	} rows[] = {
		{"MacBook 14\" C:\\x\n\xc3\xa9", "MacBook 14\\\" C:\\\\x\\n\xc3\xa9"},
		{"tab\there\r", "tab\there\r"},
		{"\xff\xfe.", "\xef\xbf\xbd\xef\xbf\xbd."},
		{"cut \xe2\x82", "cut \xef\xbf\xbd\xef\xbf\xbd"},
		{"overlong \xc0\xaf", "overlong \xef\xbf\xbd\xef\xbf\xbd"},
		{"surrogate \xed\xa0\x80", "surrogate \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
		{"too high \xf4\x90\x80\x80",
			"too high \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
		{"\xe2\x82\xac \xf0\x9f\x90\xa6", "\xe2\x82\xac \xf0\x9f\x90\xa6"},
		{"", ""},
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		char expected[256];

		configured.node = (char *)rows[i].in;
		(void)snprintf(expected, sizeof(expected),
			"# TYPE redshank_build_info gauge\nredshank_build_info{version=\"%s\","
			"node=\"%s\"} 1\n",
			REDSHANK_VERSION, rows[i].out);
		EXPECT_FAMILY("build_info", expected);
	}
}
END_TEST

START_TEST (openmetrics_differs_where_it_must) {
	char *text = make_as(METRICS_OPENMETRICS), *counters, *end = text + strlen(text);

	ck_assert_str_eq(end - strlen("\n# EOF\n"), "\n# EOF\n");
	counters = family_of(text, "redshank_bird_repairs");
	ck_assert_str_eq(
		counters, "# TYPE redshank_bird_repairs counter\nredshank_bird_repairs_total 0\n");
	free(counters);
	free(text);
	text = make_as(METRICS_TEXT);
	ck_assert_int_eq(text[strlen(text) - 1], '\n');
	ck_assert_ptr_null(strstr(text, "# EOF"));
	free(text);
}
END_TEST

START_TEST (what_accept_asks_for) {
	static const struct {
		const char *accept;
		enum metrics_format format;
	} rows[] = {
		{NULL, METRICS_TEXT},
		{"", METRICS_TEXT},
		{"*/*", METRICS_TEXT},
		{"text/plain", METRICS_TEXT},
		{"application/openmetrics-text", METRICS_OPENMETRICS},
		{"Application/OpenMetrics-Text; version=1.0.0", METRICS_OPENMETRICS},
		/* Prometheus 2.42 */
		{"application/openmetrics-text;version=1.0.0,application/openmetrics-text;version="
		 "0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
			METRICS_OPENMETRICS},
		{"application/openmetrics-text;version=0.0.1", METRICS_TEXT},
		{"application/openmetrics-text;q=0", METRICS_TEXT},
		{"application/openmetrics-text;q=0.000,*/*", METRICS_TEXT},
		{"application/openmetrics-text;q=0.3, text/plain;q=0.4", METRICS_TEXT},
		{"text/plain;q=0.35,application/openmetrics-text ; q=0.4", METRICS_OPENMETRICS},
		{"application/openmetrics-textile", METRICS_TEXT},
		{",;,application/openmetrics-text;", METRICS_OPENMETRICS},
		{";q", METRICS_TEXT},
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++)
		ck_assert_msg(
			metrics_negotiate(rows[i].accept) == rows[i].format, "%s", rows[i].accept);
}
END_TEST

START_TEST (process_facts) {
	char *text = make_as(METRICS_TEXT), *at;

	at = strstr(text, "\nredshank_process_start_time_seconds ");
	ck_assert_ptr_nonnull(at);
	ck_assert_double_eq_tol(strtod(strchr(at, ' '), NULL),
		(double)clock_walltime().us / 1e6 - 30, 30); /* less than a minute old */
	at = strstr(text, "\nredshank_process_resident_memory_bytes ");
	ck_assert_ptr_nonnull(at);
	ck_assert_uint_gt(strtoull(strchr(at, ' '), NULL, 10), 100000);
	at = strstr(text, "\nredshank_process_open_fds ");
	ck_assert_ptr_nonnull(at);
	ck_assert_uint_ge(strtoull(strchr(at, ' '), NULL, 10), 3);
	free(text);
}
END_TEST

/* A reload in the middle: what was written is of things that are gone. */
START_TEST (another_configuration_begins_anew) {
	struct metrics_render render;
	char *text = NULL, *whole;
	size_t length;
	int r;

	metrics_begin(&render, METRICS_TEXT, 0);
	configured_services[0].n_prefixes = 100;
	ck_assert_int_eq(metrics_step(&render, &facts, 0, &text, &length), 1);
	for (int i = 0; i < 5; i++)
		ck_assert_int_eq(metrics_step(&render, &facts, 0, &text, &length), 1);
	configured_services[0].n_prefixes = 1;
	facts.document.generation++;
	while ((r = metrics_step(&render, &facts, 0, &text, &length)) > 0)
		;
	ck_assert_int_eq(r, 0);
	metrics_done(&render);
	whole = family_of(text, "redshank_prefix_wanted");
	ck_assert_str_eq(whole, "# TYPE redshank_prefix_wanted gauge\n"
				"redshank_prefix_wanted{" DNS "} 1\n"
				"redshank_prefix_wanted{" WEB "} 1\n");
	ck_assert_ptr_null(
		strstr(strstr(text, "# HELP redshank_ready ") + 1, "# HELP redshank_ready "));
	free(whole);
	free(text);
}
END_TEST

/* With no time left a slice is a few prefixes, and the rest waits for the next. */
START_TEST (slices_are_short) {
	struct metrics_render render;
	char *text = NULL;
	size_t length, slices = 0;
	int r;

	configured_services[0].n_prefixes = FAKE_MANY - 1;
	tally_free(tally);
	ck_assert_int_eq(tally_new(&tally, &configured, NULL), 0);
	facts.tally = tally;
	metrics_begin(&render, METRICS_TEXT, 0);
	do {
		r = metrics_step(&render, &facts, 0, &text, &length);
		slices++;
	} while (r > 0);
	metrics_done(&render);
	ck_assert_int_eq(r, 0);
	(void)printf("5,000 prefixes: %zu slices, %zu bytes\n", slices, length);
	/* Each prefix is in a dozen families, at most some dozens of them in a slice. */
	ck_assert_uint_gt(slices, 12 * FAKE_MANY / 64);
	free(text);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("status-metrics");
	TCase *tests = tcase_create("metrics");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, sessions);
	tcase_add_test(tests, the_loop_and_the_configuration);
	tcase_add_test(tests, prefixes);
	tcase_add_test(tests, unknown_has_no_sample);
	tcase_add_test(tests, losses_by_why);
	tcase_add_test(tests, checks_are_counted);
	tcase_add_test(tests, counters_outlive_a_reload);
	tcase_add_test(tests, warnings_by_code);
	tcase_add_test(tests, requests_by_path_and_code);
	tcase_add_test(tests, events_and_their_streams);
	tcase_add_test(tests, hostile_labels);
	tcase_add_test(tests, openmetrics_differs_where_it_must);
	tcase_add_test(tests, what_accept_asks_for);
	tcase_add_test(tests, process_facts);
	tcase_add_test(tests, another_configuration_begins_anew);
	tcase_add_test(tests, slices_are_short);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
