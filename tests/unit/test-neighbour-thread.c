/* The mailboxes of the neighbours' thread: a request comes through, and no counter ever falls. */
#include <arpa/inet.h>
#include <check.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/base/cleanup.h"
#include "agent/neighbour/thread.h"
#include "tests/unit/loop.h"

static char names[2][16] = {"edge2", "127.0.0.2:9480"};
static char *members[] = {names[0], names[1], NULL};
static char own[] = "127.0.0.1:9480", site[] = "lab";
static const struct config_neighbours config = {
	.listen = own,
	.site = site,
	.plain = true,
	.members = {.items = members, .n = ELEMENTSOF(members) - 1},
};

static struct sockaddr_in address;
static sd_event *event;
static struct thread *thread;
static bool woken;

static int listening(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	socklen_t length = sizeof(address);

	address = (struct sockaddr_in){
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	ck_assert_int_eq(listen(fd, 8), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &length), 0);
	return fd;
}

/* Asks for a grant as edge2 and does not wait for the answer. */
static int ask(void)
{
	static const char body[] = "{\"node\": \"edge2\", \"boot\": 7, \"prefix\": "
				   "\"192.0.2.53/32\", \"share\": 50, \"purpose\": \"shed\", "
				   "\"request\": 1}";
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char text[512];
	int n = snprintf(text, sizeof(text),
		"POST /v1/grant HTTP/1.1\r\nHost: edge1\r\nContent-Length: %zu\r\n\r\n%s",
		strlen(body), body);

	ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	ck_assert_int_eq(send(fd, text, (size_t)n, 0), n);
	return fd;
}

static void on_wake(void *userdata)
{
	*(bool *)userdata = true;
}

/* The status of the answer to a question for the report; 0: none. A moment later, since strangers
 * may ask only so often. */
static int report_status(void)
{
	static const char text[] = "GET /v1/report HTTP/1.1\r\nHost: edge1\r\n\r\n";
	_cleanup_close_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char got[512] = "";
	int status = 0;

	LOOP_FOR(event, 100);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	ck_assert_int_eq(send(fd, text, strlen(text), 0), (ssize_t)strlen(text));
	if (recv(fd, got, sizeof(got) - 1, 0) > 0)
		ck_assert_int_eq(sscanf(got, "HTTP/1.1 %d", &status), 1);
	return status;
}

static void publish(void)
{
	struct thread_orders *orders = thread_orders(thread);

	free(orders->report);
	orders->report = strdup("{}\n");
	orders->report_length = 3;
	thread_send(thread);
}

/* Owns what a test begins with, which ends with stop(). */
static void start(void)
{
	struct thread_orders *orders;
	struct error error = {""};
	struct pins *pins;

	woken = false;
	ck_assert_int_ge(sd_event_new(&event), 0);
	ck_assert_int_eq(pins_new(&pins, &config, "edge1", &error), 0);
	ck_assert_int_eq(thread_new(&thread, event, listening(), on_wake, &woken), 0);
	orders = thread_orders(thread);
	orders->pins = pins;
	(void)snprintf(orders->site, sizeof(orders->site), "lab");
	thread_send(thread);
}

static void stop(void)
{
	thread_free(thread);
	sd_event_unref(event);
}

/* The thread lives on where the agent's loop hangs: what it said then is not told as of now. */
START_TEST (an_agent_that_hangs_reports_nothing) {
	ck_assert(LOOP_UNTIL(event, (publish(), report_status() == 200), 10000));
	ck_assert(LOOP_UNTIL(event, report_status() == 503, 10000));
	ck_assert(LOOP_UNTIL(event, (publish(), report_status() == 200), 10000));
}
END_TEST

START_TEST (counts_that_never_fall) {
	_cleanup_close_ int caller = -1;
	struct thread_news *news;

	caller = ask();
	ck_assert(LOOP_UNTIL(event, woken && (news = thread_news(thread))->n_grants > 0, 10000));
	ck_assert_str_eq(news->grants[0].grant.node, "edge2");
	ck_assert_uint_eq(news->counts.connections, 1);
	for (int i = 0; i < 3; i++)
		ck_assert_uint_ge(thread_news(thread)->counts.connections, 1);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("neighbour-thread");
	TCase *t = tcase_create("mailboxes");
	SRunner *runner;
	int failed;

	tcase_add_test(t, counts_that_never_fall);
	tcase_add_test(t, an_agent_that_hangs_reports_nothing);
	tcase_add_checked_fixture(t, start, stop);
	tcase_set_timeout(t, 40);
	suite_add_tcase(s, t);
	runner = srunner_create(s);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
