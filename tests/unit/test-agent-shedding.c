/*
 * The glue of shedding: what it tells the agent and when, and that it rests when there is nothing
 * to do. What is decided is core/shed's, and has its own tests. A reload without memory is made by
 * the linker (CMakeLists.txt, --wrap), for this thread alone.
 */
#include "agent/shedding.h"

#include <arpa/inet.h>
#include <check.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/base/cleanup.h"
#include "agent/system/log.h"
#include "tests/unit/loop.h"

static _Thread_local bool starves;

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

void *__wrap_calloc(size_t n, size_t size)
{
	return starves ? NULL : __real_calloc(n, size);
}

static char path[] = "/tmp/redshank-shedding-XXXXXX";
static sd_event *event;
static struct config *config;
static struct shedding *shedding;
static bool asks_permit;
static unsigned n_read, n_changed, n_permits;

static void on_prefix(void *userdata, size_t service, size_t prefix, struct shedding_prefix *ret)
{
	n_read++;
	*ret = (struct shedding_prefix){.asks_permit = asks_permit, .weight = 100};
}

static void on_own(void *userdata, struct shed_own *ret, struct message_report *report)
{
	*ret = (struct shed_own){.valid = true, .capacity = 1000, .load = 100};
}

static bool on_load(void *userdata, size_t service, size_t prefix, uint64_t *ret)
{
	return false;
}

static size_t on_next_hops(void *userdata, const struct address **ret)
{
	return 0;
}

static enum apply_known on_route(
	void *userdata, size_t service, size_t prefix, const struct address *next_hop)
{
	return APPLY_UNKNOWN;
}

static void on_look(void *userdata, size_t service, size_t prefix)
{
}

static void on_changed(void *userdata)
{
	n_changed++;
}

static void on_permit(void *userdata, size_t service, size_t prefix)
{
	n_permits++;
}

static void on_grant(void *userdata, const char *neighbour, const struct prefix *prefix,
	const struct shed_request *request, const struct shed_answer *answer)
{
}

static const struct shedding_ops ops = {
	.prefix = on_prefix,
	.own = on_own,
	.load = on_load,
	.next_hops = on_next_hops,
	.route = on_route,
	.look = on_look,
	.changed = on_changed,
	.permit = on_permit,
	.grant = on_grant,
};

static unsigned free_port(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	_cleanup_close_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t length = sizeof(a);

	ck_assert_int_eq(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&a, &length), 0);
	return ntohs(a.sin_port);
}

static void load(void)
{
	struct problems problems;
	FILE *f = fopen(path, "we");

	ck_assert_ptr_nonnull(f);
	(void)fprintf(f,
		"{\"node\": \"edge1\", \"services\": {\"dns\": {\"prefixes\": {\"192.0.2.53/32\": "
		"1}}}, \"shed\": {}, \"neighbours\": {\"listen\": \"127.0.0.1:%u\", \"site\": "
		"\"lab\", \"plain\": true, \"members\": {\"edge2\": \"127.0.0.2:9480\"}}}\n",
		free_port());
	(void)fclose(f);
	problems_init(&problems);
	ck_assert_msg(config_load(path, probe_types, &config, &problems) == 0, "%s",
		problems.n > 0 ? problems.items[0].text : "");
	problems_done(&problems);
}

static void setup(void)
{
	struct error error = {""};
	int fd;

	log_init(LOG_CRIT, true);
	(void)strcpy(path + strlen(path) - 6, "XXXXXX");
	fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	(void)close(fd);
	asks_permit = false;
	n_read = n_changed = n_permits = 0;
	load();
	ck_assert_int_ge(sd_event_new(&event), 0);
	ck_assert_msg(shedding_new(&shedding, event, (const struct config *const *)&config, &ops,
			      &error) == 0,
		"%s", error.text);
}

static void teardown(void)
{
	shedding_free(shedding);
	config_free(config);
	event = sd_event_unref(event);
	(void)unlink(path);
}

/* Turns of the loop in so many milliseconds; a hundred where nothing happens in a second. */
static unsigned turns(uint64_t ms)
{
	struct monotime until = monotime_add_ms(clock_monotime(), ms);
	unsigned n = 0;

	for (; !monotime_reached(until, clock_monotime()); n++)
		(void)sd_event_run(event, 10000);
	return n;
}

START_TEST (rests_while_it_does_not_decide) {
	ck_assert_uint_lt(turns(300), 300);
	shedding_start(shedding);
	ck_assert(LOOP_UNTIL(event, n_read > 0, 3000));
	ck_assert_uint_lt(turns(300), 300);
	shedding_stop(shedding);
	ck_assert_uint_lt(turns(1300), 1000);
}
END_TEST

/* What it reports of itself while the agent leaves is not what it was before. */
START_TEST (reads_on_while_it_stops) {
	shedding_start(shedding);
	ck_assert(LOOP_UNTIL(event, n_read > 0, 3000));
	shedding_stop(shedding);
	n_read = 0;
	ck_assert(LOOP_UNTIL(event, n_read > 0, 3000));
	ck_assert_uint_eq(n_changed, 0);
}
END_TEST

START_TEST (a_permit_is_for_one_leaving) {
	shedding_start(shedding);
	asks_permit = true;
	shedding_touch(shedding);
	ck_assert(LOOP_UNTIL(event, n_permits == 1 && n_changed == 1, 3000));
	/* The engine forgot it, and asks again before anybody looked. */
	shedding_touch(shedding);
	ck_assert(LOOP_UNTIL(event, n_permits == 2 && n_changed == 2, 3000));
}
END_TEST

START_TEST (a_reload_without_memory) {
	struct shed_prefix view;

	shedding_start(shedding);
	ck_assert(LOOP_UNTIL(event, n_read > 0, 3000));
	ck_assert(shedding_prefix(shedding, 0, 0, &view));
	starves = true;
	shedding_configure(shedding);
	ck_assert(!shedding_prefix(shedding, 0, 0, &view));
	ck_assert_uint_eq(n_changed, 1);
	ck_assert_uint_lt(turns(300), 300);
	starves = false;
	ck_assert(LOOP_UNTIL(event, shedding_prefix(shedding, 0, 0, &view), 3000));
	ck_assert_uint_eq(n_changed, 2);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("agent-shedding");
	TCase *t = tcase_create("shedding");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, rests_while_it_does_not_decide);
	tcase_add_test(t, reads_on_while_it_stops);
	tcase_add_test(t, a_permit_is_for_one_leaving);
	tcase_add_test(t, a_reload_without_memory);
	suite_add_tcase(s, t);
	runner = srunner_create(s);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
