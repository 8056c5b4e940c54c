/*
 * GET /metrics and /healthz of the status server under its own loop, asked by raw sockets: one
 * render for all who ask, other work between its slices, and clients and servers that end in the
 * middle of it. The accessors that metrics.c reads are defined here.
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/base/buffer.h"
#include "agent/base/clock.h"
#include "agent/status/http.h"
#include "tests/unit/fake-facts.h"

#define PREFIXES 4000
#define CLIENTS 20
#define ANSWER_MAX (32 * 1024 * 1024)

static struct config_prefix prefixes[PREFIXES];
static struct config_service service = {
	.name = (char *)"dns", .prefixes = prefixes, .n_prefixes = PREFIXES};
static struct config config = {.node = (char *)"edge1", .services = &service, .n_services = 1};
static struct tally *tally;
static unsigned slices;

static void metrics(void *userdata, struct metrics_facts *ret)
{
	slices++;
	*ret = (struct metrics_facts){.document = {.config = &config}, .tally = tally};
}

#define STATUS_STEPS 4
static unsigned status_steps, statuses;

/* "1\n" for the first one, and so on. */
static int status(void *userdata, uint64_t budget_us, char **ret_text, size_t *ret_length)
{
	if (++status_steps % STATUS_STEPS > 0)
		return 1;
	*ret_length = (size_t)asprintf(ret_text, "%u\n", ++statuses);
	return 0;
}

static bool healthy;

static bool health(void *userdata, char text[HTTP_HEALTH_MAX])
{
	(void)snprintf(text, HTTP_HEALTH_MAX, "%s\n", healthy ? "ok" : "late: check a/b");
	return healthy;
}

static char directory[] = "/tmp/redshank-scrape-XXXXXX";
static char socket_path[sizeof(directory) + 16];
static sd_event *event;
static struct http *http;

static void setup(void)
{
	const struct http_ops ops = {.status = status, .metrics = metrics, .health = health};
	const struct config_status settings = {.socket = socket_path};
	struct error error = {{0}};

	for (size_t i = 0; i < PREFIXES; i++)
		prefixes[i].prefix = (struct prefix){
			.address = {.family = ADDRESS_FAMILY_IPV4,
				.bytes = {10, 0, (uint8_t)(i / 256), (uint8_t)(i % 256)}},
			.length = 32};
	fake_health = SERVICE_HEALTH_HEALTHY;
	slices = status_steps = statuses = 0;
	ck_assert_int_eq(tally_new(&tally, &config, NULL), 0);
	ck_assert_int_ge(sd_event_new(&event), 0);
	ck_assert_msg(http_new(&http, event, &settings, &ops, &error) == 0, "%s", error.text);
}

static void teardown(void)
{
	http_free(http);
	sd_event_unref(event);
	tally_free(tally);
}

static int ask(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	char request[128];
	int n = snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path);

	strcpy(address.sun_path, socket_path);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	ck_assert_int_eq(write(fd, request, (size_t)n), n);
	return fd;
}

/* What has come. True at the end of it. */
static bool take(int fd, struct buffer *answer)
{
	static char piece[65536];

	for (;;) {
		ssize_t n = read(fd, piece, sizeof(piece));

		if (n == 0)
			return true;
		if (n < 0)
			return errno != EAGAIN;
		ck_assert_int_eq(buffer_append(answer, piece, (size_t)n), 0);
	}
}

/* Runs the loop until all of them are answered to the end. */
static void take_all(int *fds, struct buffer *answers, size_t n)
{
	struct monotime end = monotime_add_ms(clock_monotime(), 20000);
	size_t done = 0;

	for (size_t i = 0; i < n; i++)
		buffer_init(&answers[i], ANSWER_MAX);
	while (done < n) {
		ck_assert_msg(!monotime_reached(end, clock_monotime()), "no answer");
		ck_assert_int_ge(sd_event_run(event, 10000), 0);
		for (size_t i = 0; i < n; i++)
			if (fds[i] >= 0 && take(fds[i], &answers[i])) {
				close(fds[i]);
				fds[i] = -1;
				done++;
			}
	}
}

static bool starts(const struct buffer *answer, const char *with)
{
	return strncmp(buffer_string(answer), with, strlen(with)) == 0;
}

START_TEST (all_who_ask_share_one) {
	struct buffer answers[CLIENTS];
	int fds[CLIENTS];

	for (size_t i = 0; i < CLIENTS; i++)
		fds[i] = ask("/metrics");
	take_all(fds, answers, CLIENTS);
	for (size_t i = 0; i < CLIENTS; i++) {
		const char *said = strstr(answers[i].data, "\nredshank_metrics_renders_total ");

		ck_assert(starts(&answers[i], "HTTP/1.1 200 OK\r\n"));
		ck_assert_ptr_nonnull(said);
		/* More than one where this machine is so busy that they do not meet. */
		ck_assert_int_lt(atoi(strchr(said, ' ')), CLIENTS / 2);
		buffer_done(&answers[i]);
	}
}
END_TEST

static unsigned turns_while_rendering;

static int on_other_work(sd_event_source *source, uint64_t us, void *userdata)
{
	turns_while_rendering += slices > 0;
	(void)sd_event_source_set_time_relative(source, 100);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

START_TEST (other_work_goes_on) {
	struct buffer answer;
	sd_event_source *source = NULL;
	int fd = ask("/metrics");

	turns_while_rendering = 0;
	ck_assert_int_ge(sd_event_add_time_relative(
				 event, &source, CLOCK_MONOTONIC, 0, 1, on_other_work, NULL),
		0);
	take_all(&fd, &answer, 1);
	(void)printf("%u slices, %u turns of other work\n", slices, turns_while_rendering);
	ck_assert_uint_gt(slices, 4);
	ck_assert_uint_gt(turns_while_rendering, slices / 2);
	sd_event_source_disable_unref(source);
	buffer_done(&answer);
}
END_TEST

static void run_to_the_middle(void)
{
	struct monotime end = monotime_add_ms(clock_monotime(), 10000);

	while (slices < 3) {
		ck_assert(!monotime_reached(end, clock_monotime()));
		ck_assert_int_ge(sd_event_run(event, 10000), 0);
	}
}

START_TEST (the_server_ends_in_the_middle) {
	int fd = ask("/metrics");

	run_to_the_middle();
	close(fd); /* teardown() ends the server, with a connection suspended */
}
END_TEST

START_TEST (clients_go_in_the_middle) {
	struct buffer answer;
	int gone = ask("/metrics"), other = ask("/metrics");

	run_to_the_middle();
	close(gone);
	take_all(&other, &answer, 1);
	ck_assert(starts(&answer, "HTTP/1.1 200 OK\r\n"));
	buffer_done(&answer);
}
END_TEST

START_TEST (one_status_for_all_who_ask_at_once) {
	struct buffer answers[CLIENTS];
	int fds[CLIENTS];

	for (size_t i = 0; i < CLIENTS; i++)
		fds[i] = ask("/v1/status");
	take_all(fds, answers, CLIENTS);
	for (size_t i = 0; i < CLIENTS; i++) {
		ck_assert(starts(&answers[i], "HTTP/1.1 200 OK\r\n"));
		buffer_done(&answers[i]);
	}
	/* Each is accepted in a turn of its own, and the document has a few turns, too. */
	ck_assert_uint_le(statuses, CLIENTS / 2);
}
END_TEST

/* Whoever asks after a change sees it: no document is handed out that began before the question. */
START_TEST (a_status_begins_after_the_question) {
	struct monotime end = monotime_add_ms(clock_monotime(), 10000);
	struct buffer answers[2];
	int fds[2] = {ask("/v1/status"), -1};

	while (status_steps < 2) {
		ck_assert(!monotime_reached(end, clock_monotime()));
		ck_assert_int_ge(sd_event_run(event, 10000), 0);
	}
	fds[1] = ask("/v1/status");
	take_all(fds, answers, 2);
	for (size_t i = 0; i < 2; i++) {
		ck_assert_ptr_nonnull(
			strstr(answers[i].data, i == 0 ? "\r\n\r\n1\n" : "\r\n\r\n2\n"));
		buffer_done(&answers[i]);
	}
}
END_TEST

/* How often this thread has gone to sleep of itself, whatever else the machine had to do. */
static long sleeps(void)
{
	struct rusage usage;

	ck_assert_int_eq(getrusage(RUSAGE_THREAD, &usage), 0);
	return usage.ru_nvcsw;
}

/* Clients who ask again as soon as they are answered: there is always something to do for them, and
 * the loop sleeps all the same, again and again. */
START_TEST (who_never_rests_leaves_the_loop) {
	struct monotime began = clock_monotime();
	long before = sleeps();
	struct buffer answer;
	unsigned answers = 0;
	int fds[CLIENTS];

	for (size_t i = 0; i < CLIENTS; i++)
		fds[i] = ask("/healthz");
	while (answers < 1000) {
		ck_assert(!monotime_reached(monotime_add_ms(began, 20000), clock_monotime()));
		ck_assert_int_ge(sd_event_run(event, 10000), 0);
		for (size_t i = 0; i < CLIENTS; i++) {
			buffer_init(&answer, ANSWER_MAX);
			if (take(fds[i], &answer)) {
				close(fds[i]);
				fds[i] = ask("/healthz");
				answers++;
			}
			buffer_done(&answer);
		}
	}
	(void)printf("%u answers, %ld sleeps\n", answers, sleeps() - before);
	ck_assert_int_gt(sleeps() - before, 10);
	for (size_t i = 0; i < CLIENTS; i++)
		close(fds[i]);
}
END_TEST

START_TEST (health_in_words) {
	struct buffer answer;
	int fd;

	for (int i = 0; i < 2; i++) {
		healthy = i == 0;
		fd = ask("/healthz");
		take_all(&fd, &answer, 1);
		ck_assert(starts(&answer, healthy ? "HTTP/1.1 200 " : "HTTP/1.1 503 "));
		ck_assert_ptr_nonnull(strstr(
			answer.data, healthy ? "\r\n\r\nok\n" : "\r\n\r\nlate: check a/b\n"));
		buffer_done(&answer);
	}
	fd = ask("/nothing");
	take_all(&fd, &answer, 1);
	buffer_done(&answer);
	fd = ask("/metrics");
	take_all(&fd, &answer, 1);
	ck_assert_ptr_nonnull(strstr(answer.data, "{path=\"/healthz\",code=\"200\"} 1\n"));
	ck_assert_ptr_nonnull(strstr(answer.data, "{path=\"/healthz\",code=\"503\"} 1\n"));
	ck_assert_ptr_nonnull(strstr(answer.data, "{path=\"other\",code=\"404\"} 1\n"));
	buffer_done(&answer);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("status-scrape");
	TCase *tests = tcase_create("scrape");
	SRunner *runner;
	int failed;

	if (!mkdtemp(directory))
		return EXIT_FAILURE;
	(void)snprintf(socket_path, sizeof(socket_path), "%s/sock", directory);
	tcase_set_timeout(tests, 30);
	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, all_who_ask_share_one);
	tcase_add_test(tests, other_work_goes_on);
	tcase_add_test(tests, the_server_ends_in_the_middle);
	tcase_add_test(tests, clients_go_in_the_middle);
	tcase_add_test(tests, one_status_for_all_who_ask_at_once);
	tcase_add_test(tests, a_status_begins_after_the_question);
	tcase_add_test(tests, who_never_rests_leaves_the_loop);
	tcase_add_test(tests, health_in_words);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	(void)unlink(socket_path);
	(void)rmdir(directory);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
