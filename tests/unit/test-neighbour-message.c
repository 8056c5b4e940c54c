/* Messages between agents: what is said, and that what is not understood is no room. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "agent/neighbour/message.h"

static struct message_report *read_report(const char *text)
{
	struct message_report *r = NULL;
	struct error error = {""};

	ck_assert_msg(message_report_read(text, strlen(text), &r, &error) == 0, "%s: %s", text,
		error.text);
	return r;
}

static struct prefix prefix_of(const char *text)
{
	struct prefix p;

	ck_assert_int_eq(prefix_parse(text, &p, NULL), 0);
	return p;
}

/* Exactly this text: other versions of the agent read it. */
static const char whole[] =
	"{\"version\":1,\"node\":\"edge2.example.net\",\"site\":\"ams1\",\"boot\":4711,"
	"\"capacity\":1000000,\"load\":700000,\"utilisation\":7310,\"willing\":true,\"spare\":"
	"89000,\"want\":3,"
	"\"signals\":{\"cpu\":7310,\"psi_cpu\":40},\"sheds\":[\"192.0.2.9/32\"],"
	"\"prefixes\":{\"192.0.2.53/32\":{\"state\":\"healthy\",\"weight\":100,\"load\":42000},"
	"\"2001:db8::53/128\":{\"state\":\"out\"}}}\n";

START_TEST (report_as_documented) {
	_cleanup_report_ struct message_report *r = read_report(whole);
	_cleanup_buffer_ struct buffer out = {0};
	const struct prefix v4 = prefix_of("192.0.2.53/32"), v6 = prefix_of("2001:db8::53/128"),
			    other = prefix_of("192.0.2.54/32");

	ck_assert_str_eq(r->node, "edge2.example.net");
	ck_assert_uint_eq(r->spare, 89000);
	ck_assert_uint_eq(r->utilisation_bp, 7310);
	ck_assert_uint_eq(r->n_signals, 2);
	ck_assert_uint_eq(r->n_sheds, 1);
	ck_assert_int_eq(message_report_find(r, &v4)->state, SHED_STATE_HEALTHY);
	ck_assert_uint_eq(message_report_find(r, &v4)->load, 42000);
	ck_assert_int_eq(message_report_find(r, &v6)->state, SHED_STATE_OUT);
	ck_assert(!message_report_find(r, &v6)->load_known);
	ck_assert_ptr_null(message_report_find(r, &other));
	buffer_init(&out, MESSAGE_REPORT_MAX);
	ck_assert_int_eq(message_report_write(r, &out), 0);
	ck_assert_str_eq(buffer_string(&out), whole);
}
END_TEST

#define ROOM "\"node\":\"e\",\"capacity\":100,\"willing\":true,\"spare\":50"

/* Each row is a report that is read; only the first has room. */
static const struct {
	const char *text;
	uint64_t spare;
} rooms[] = {
	{"{" ROOM "}", 50},
	{"{" ROOM ",\"version\":99,\"from_the_future\":{\"a\":[1]}}", 50},
	{"{\"node\":\"e\"}", 0},
	{"{\"node\":\"e\",\"capacity\":100,\"spare\":50}", 0},
	{"{\"node\":\"e\",\"capacity\":100,\"willing\":1,\"spare\":50}", 0},
	{"{\"node\":\"e\",\"capacity\":100,\"willing\":\"true\",\"spare\":50}", 0},
	{"{\"node\":\"e\",\"willing\":true,\"spare\":50}", 0},
	{"{\"node\":\"e\",\"capacity\":0,\"willing\":true,\"spare\":0}", 0},
	{"{\"node\":\"e\",\"capacity\":100,\"willing\":true,\"spare\":101}", 0},
	{"{\"node\":\"e\",\"capacity\":100,\"willing\":true,\"spare\":-1}", 0},
	{"{\"node\":\"e\",\"capacity\":100,\"willing\":true,\"spare\":50.0}", 0},
	{"{\"node\":\"e\",\"capacity\":100,\"willing\":true,\"spare\":\"50\"}", 0},
	{"{\"node\":\"e\",\"capacity\":9000000000000000000,\"willing\":true,\"spare\":50}", 0},
};

START_TEST (what_is_not_understood_is_no_room) {
	for (size_t i = 0; i < ELEMENTSOF(rooms); i++) {
		_cleanup_report_ struct message_report *r = read_report(rooms[i].text);

		ck_assert_msg(r->spare == rooms[i].spare, "%s", rooms[i].text);
	}
}
END_TEST

START_TEST (odd_values) {
	_cleanup_report_ struct message_report *r = read_report(
		"{\"node\":\"e\",\"utilisation\":99999999999,\"want\":-3,\"boot\":0,"
		"\"signals\":{\"a b\":1,\"ok\":5,\"real\":0.5},\"sheds\":[1,\"x\",\"::1/128\"],"
		"\"prefixes\":{\"192.0.2.1\":{},\"192.0.2.1/32\":7,\"192.0.2.2/32\":{\"state\":"
		"\"later\",\"weight\":65536,\"load\":null},\"2001:db8::/32\":{\"state\":"
		"\"healthy\"},\"2001:DB8:0::/32\":{\"state\":\"healthy\"}}}");
	const struct prefix twice = prefix_of("2001:db8::/32"), later = prefix_of("192.0.2.2/32");

	ck_assert_uint_eq(r->utilisation_bp, MESSAGE_BP_MAX);
	ck_assert_uint_eq(r->want, 0);
	ck_assert_uint_eq(r->boot, 0);
	ck_assert_uint_eq(r->n_signals, 1);
	ck_assert_uint_eq(r->n_sheds, 1);
	ck_assert_uint_eq(r->n_prefixes, 2);
	ck_assert_int_eq(message_report_find(r, &twice)->state, SHED_STATE_OUT);
	ck_assert_int_eq(message_report_find(r, &later)->state, SHED_STATE_OUT);
	ck_assert(!message_report_find(r, &later)->weight_known);
}
END_TEST

static const char *const no_reports[] = {
	"",
	"[]",
	"7",
	"{",
	"{}",
	"{\"node\":\"\"}",
	"{\"node\":\"a b\"}",
	"{\"node\":\"-a\"}",
	"{\"node\":7}",
	"{\"node\":\"e\",\"node\":\"f\"}",
	"{\"node\":\"e\",\"spare\":1,\"spare\":2}",
	"{\"node\":\"e\"} {}",
	"{\"node\":\"e\\u0000f\"}",
	"{\"node\":\"e\",\"x\":99999999999999999999}",
};

START_TEST (no_report_at_all) {
	_cleanup_free_ char *big = calloc(1, MESSAGE_REPORT_MAX + 2);
	struct message_report *r = NULL;
	struct error error = {""};

	for (size_t i = 0; i < ELEMENTSOF(no_reports); i++)
		ck_assert_msg(message_report_read(
				      no_reports[i], strlen(no_reports[i]), &r, &error) == -EBADMSG,
			"%s", no_reports[i]);
	memset(big, ' ', MESSAGE_REPORT_MAX + 1);
	memcpy(big, "{\"node\":\"e\"}", 12);
	ck_assert_int_eq(message_report_read(big, MESSAGE_REPORT_MAX + 1, &r, &error), -EBADMSG);
	ck_assert_int_eq(message_report_read(big, MESSAGE_REPORT_MAX, &r, &error), 0);
	message_report_free(r);
}
END_TEST

static const char grant_text[] =
	"{\"version\":1,\"node\":\"edge1\",\"boot\":12,\"prefix\":\"192.0.2.53/32\","
	"\"share\":21000,\"purpose\":\"health\",\"request\":3}\n";

START_TEST (grants) {
	_cleanup_buffer_ struct buffer out = {0};
	struct message_grant g;
	struct error error = {""};

	ck_assert_int_eq(message_grant_read(grant_text, strlen(grant_text), &g, &error), 0);
	ck_assert_int_eq(g.purpose, SHED_PURPOSE_HEALTH);
	ck_assert_uint_eq(g.share, 21000);
	buffer_init(&out, MESSAGE_GRANT_MAX);
	ck_assert_int_eq(message_grant_write(&g, &out), 0);
	ck_assert_str_eq(buffer_string(&out), grant_text);
}
END_TEST

/* Which key is wrong is said: the last of the good ones, and what it then is. */
static const struct {
	const char *text, *key;
} bad_grants[] = {
	{"{\"node\":\"a/b\"}", "`node`"},
	{"{\"node\":\"a\"}", "`boot`"},
	{"{\"node\":\"a\",\"boot\":1,\"prefix\":\"192.0.2.1\"}", "`prefix`"},
	{"{\"node\":\"a\",\"boot\":1,\"prefix\":\"::1/128\",\"share\":-1}", "`share`"},
	{"{\"node\":\"a\",\"boot\":1,\"prefix\":\"::1/128\",\"share\":1,\"purpose\":\"fun\"}",
		"`purpose`"},
	{"{\"node\":\"a\",\"boot\":1,\"prefix\":\"::1/128\",\"share\":1,\"purpose\":\"shed\"}",
		"`request`"},
	{"{\"node\":\"a\",\"boot\":1,\"boot\":1}", "duplicate"},
};

START_TEST (wrong_grants) {
	for (size_t i = 0; i < ELEMENTSOF(bad_grants); i++) {
		struct error error = {""};
		struct message_grant g;

		ck_assert_int_eq(message_grant_read(bad_grants[i].text, strlen(bad_grants[i].text),
					 &g, &error),
			-EBADMSG);
		ck_assert_msg(strstr(error.text, bad_grants[i].key), "%s: %s", bad_grants[i].text,
			error.text);
	}
}
END_TEST

static enum shed_refusal refusal_of(const char *text, bool granted)
{
	struct shed_answer a;

	message_answer_read(text, strlen(text), granted, 5, &a);
	ck_assert((a.refused == SHED_REFUSAL_NONE) == (a.lease_ms > 0));
	return a.refused;
}

START_TEST (answers) {
	_cleanup_buffer_ struct buffer out = {0};
	const struct shed_answer no = {.refused = SHED_REFUSAL_HOT}, yes = {.lease_ms = 10000};

	ck_assert_int_eq(refusal_of("{\"granted\":5,\"lease_ms\":10000}", true), SHED_REFUSAL_NONE);
	ck_assert_int_eq(
		refusal_of("{\"granted\":4,\"lease_ms\":10000}", true), SHED_REFUSAL_NO_ROOM);
	ck_assert_int_eq(
		refusal_of("{\"granted\":5,\"lease_ms\":60001}", true), SHED_REFUSAL_UNWILLING);
	ck_assert_int_eq(refusal_of("{\"granted\":5}", true), SHED_REFUSAL_UNWILLING);
	ck_assert_int_eq(refusal_of("", true), SHED_REFUSAL_UNWILLING);
	ck_assert_int_eq(
		refusal_of("{\"refused\":\"no_room\",\"granted\":5,\"lease_ms\":10000}", false),
		SHED_REFUSAL_NO_ROOM);
	ck_assert_int_eq(refusal_of("{\"refused\":\"granted\"}", false), SHED_REFUSAL_UNWILLING);
	ck_assert_int_eq(refusal_of("{\"refused\":\"<b>\"}", false), SHED_REFUSAL_UNWILLING);
	buffer_init(&out, 1000);
	ck_assert_int_eq(message_answer_write(&no, 5, &out), 0);
	ck_assert_int_eq(message_answer_write(&yes, 5, &out), 0);
	ck_assert_str_eq(
		buffer_string(&out), "{\"refused\":\"hot\"}\n{\"granted\":5,\"lease_ms\":10000}\n");
}
END_TEST

/* By our own order of prefixes; what cannot be compared takes no part. */
START_TEST (digest_for_the_decision) {
	_cleanup_report_ struct message_report *r = read_report(
		"{\"node\":\"e\",\"boot\":7,\"capacity\":1000,\"load\":600,\"willing\":true,"
		"\"spare\":9,"
		"\"sheds\":[\"192.0.2.9/32\"],\"prefixes\":{"
		"\"192.0.2.1/32\":{\"state\":\"healthy\",\"weight\":65535,\"load\":250},"
		"\"192.0.2.2/32\":{\"state\":\"kept\",\"weight\":1,\"load\":5000},"
		"\"192.0.2.3/32\":{\"state\":\"healthy\",\"load\":1}}}");
	const struct prefix ours[] = {prefix_of("192.0.2.3/32"), prefix_of("192.0.2.2/32"),
		prefix_of("192.0.2.1/32"), prefix_of("192.0.2.4/32")};
	struct shed_report_prefix p[ELEMENTSOF(ours)];
	struct shed_report d;

	message_report_digest(r, ours, ELEMENTSOF(ours), &d, p);
	ck_assert(d.valid && d.willing && d.spare == 9 && d.n_sheds == 1 && d.boot == 7);
	ck_assert_uint_eq(p[0].state, SHED_STATE_OUT);
	ck_assert_uint_eq(p[1].state, SHED_STATE_KEPT);
	ck_assert_uint_eq(p[1].load_bp, 10000);
	ck_assert_uint_eq(p[2].state, SHED_STATE_HEALTHY);
	ck_assert_uint_eq(p[2].weight, 65535);
	ck_assert_uint_eq(p[2].load_bp, 2500);
	ck_assert_uint_eq(p[3].state, SHED_STATE_OUT);
	r->load_known = false;
	message_report_digest(r, ours, ELEMENTSOF(ours), &d, p);
	ck_assert(!d.valid && !d.willing && d.spare == 0);
}
END_TEST

static int add(void *userdata, const char *name, const char *address)
{
	return buffer_printf(userdata, "%s=%s ", name, address);
}

START_TEST (a_file_of_members) {
	const char *good = "{\"edge2\":\"192.0.2.2:9480\",\"e3\":\"[::1]:9480\"}";
	static const char *const bad[] = {
		"[]", "{\"a b\":\"192.0.2.2:9480\"}", "{\"a\":1}", "{\"a\":\"x\",\"a\":\"y\"}"};
	_cleanup_buffer_ struct buffer out = {0};
	struct error error = {""};

	buffer_init(&out, 1000);
	ck_assert_int_eq(message_members_read(good, strlen(good), add, &out, &error), 0);
	ck_assert_str_eq(buffer_string(&out), "edge2=192.0.2.2:9480 e3=[::1]:9480 ");
	for (size_t i = 0; i < ELEMENTSOF(bad); i++)
		ck_assert_int_eq(
			message_members_read(bad[i], strlen(bad[i]), add, &out, &error), -EBADMSG);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("neighbour-message");
	TCase *t = tcase_create("message");
	SRunner *runner;
	int failed;

	tcase_add_test(t, report_as_documented);
	tcase_add_test(t, what_is_not_understood_is_no_room);
	tcase_add_test(t, odd_values);
	tcase_add_test(t, no_report_at_all);
	tcase_add_test(t, grants);
	tcase_add_test(t, wrong_grants);
	tcase_add_test(t, answers);
	tcase_add_test(t, digest_for_the_decision);
	tcase_add_test(t, a_file_of_members);
	suite_add_tcase(s, t);
	runner = srunner_create(s);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
