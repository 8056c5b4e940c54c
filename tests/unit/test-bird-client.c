/*
 * The client against a BIRD played by the test: a listening socket whose other end says what no
 * real BIRD can be made to say on demand. Client and test share one thread; the loop runs only
 * inside until(), so that what happens inside a call of the client's is told from what comes later.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "agent/base/clock.h"
#include "agent/bird/client.h"

#define GREETING "0001 BIRD 2.0.12 ready.\n"
#define PATIENCE_MS 30000

/* What to do to the client inside a callback. */
enum act {
	ACT_NOTHING,
	ACT_FREE_IN_GREETED,
	ACT_FREE_IN_REPLY,
	ACT_FREE_IN_PUSH,
	ACT_FREE_IN_LOST,
	ACT_SEND_IN_REPLY, /* once */
};

static struct {
	sd_event *event;
	char folder[64], path[96];
	int listener, peer; /* the fake's ends */
	struct client *client;
	enum act act;
	/* What was called back, in order: "greeted 2.0.12", "1 = 0003 text", "1 ! -104", ... */
	struct buffer log;
	char lost_text[512];
	unsigned greeted, replies, failed, pushes, lost;
	int lost_error, send_inside;
} t;

static void free_now(void)
{
	client_free(t.client);
	t.client = NULL;
}

static void on_greeted(void *userdata, const char *version)
{
	t.greeted++;
	ck_assert_int_eq(buffer_printf(&t.log, "greeted %s\n", version), 0);
	if (t.act == ACT_FREE_IN_GREETED)
		free_now();
}

static void on_reply(void *userdata, int error, const struct reply *reply)
{
	if (reply) {
		ck_assert_int_eq(error, 0);
		t.replies++;
		ck_assert_int_eq(buffer_printf(&t.log, "%s = %04d %s\n", (const char *)userdata,
					 reply->code, reply->text),
			0);
	} else {
		t.failed++;
		t.send_inside = client_send(t.client, 0, on_reply, NULL, "show status");
		ck_assert_int_eq(
			buffer_printf(&t.log, "%s ! %d\n", (const char *)userdata, error), 0);
	}
	if (t.act == ACT_FREE_IN_REPLY)
		free_now();
	if (t.act == ACT_SEND_IN_REPLY) {
		t.act = ACT_NOTHING;
		t.send_inside = client_send(t.client, 0, on_reply, (void *)"inside", "inside");
	}
}

static void on_push(void *userdata, const char *text)
{
	t.pushes++;
	ck_assert_int_eq(buffer_printf(&t.log, "push %s\n", text), 0);
	if (t.act == ACT_FREE_IN_PUSH)
		free_now();
}

static void on_lost(void *userdata, int error, const char *text)
{
	t.lost++;
	t.lost_error = error;
	(void)snprintf(t.lost_text, sizeof(t.lost_text), "%s", text);
	t.send_inside = client_send(t.client, 0, on_reply, NULL, "show status");
	ck_assert_int_eq(buffer_printf(&t.log, "lost %d\n", error), 0);
	if (t.act == ACT_FREE_IN_LOST)
		free_now();
}

static const struct client_ops ops = {
	.greeted = on_greeted, .lost = on_lost, .push = on_push, .userdata = &t};

static void setup(void)
{
	memset(&t, 0, sizeof(t));
	t.listener = t.peer = -1;
	buffer_init(&t.log, 1U << 20);
	ck_assert_int_ge(sd_event_new(&t.event), 0);
	(void)snprintf(t.folder, sizeof(t.folder), "/tmp/redshank-client-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(t.folder));
	(void)snprintf(t.path, sizeof(t.path), "%s/bird.ctl", t.folder);
}

static void teardown(void)
{
	client_free(t.client);
	closep(&t.peer);
	closep(&t.listener);
	(void)unlink(t.path);
	(void)rmdir(t.folder);
	buffer_done(&t.log);
	sd_event_unref(t.event);
}

static uint64_t now_ms(void)
{
	return clock_monotime().us / 1000;
}

/* Runs the loop until *counter reaches n. */
static void until(const unsigned *counter, unsigned n)
{
	uint64_t end = now_ms() + PATIENCE_MS;

	while (*counter < n) {
		ck_assert_msg(now_ms() < end, "waited in vain; so far:\n%s", buffer_string(&t.log));
		ck_assert_int_ge(sd_event_run(t.event, 10000), 0);
	}
}

/* Lets whatever is ready happen. */
static void drain(void)
{
	while (sd_event_run(t.event, 0) > 0)
		;
}

static void listen_here(int backlog)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	(void)snprintf(a.sun_path, sizeof(a.sun_path), "%s", t.path);
	t.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_ge(t.listener, 0);
	ck_assert_int_eq(bind(t.listener, (struct sockaddr *)&a, sizeof(a)), 0);
	ck_assert_int_eq(listen(t.listener, backlog), 0);
}

static void say_n(const char *data, size_t n)
{
	ck_assert_int_eq(send(t.peer, data, n, MSG_NOSIGNAL), (ssize_t)n);
}

static void say(const char *text)
{
	say_n(text, strlen(text));
}

/* Connected, and nothing said yet. */
static void connect_client(void)
{
	listen_here(4);
	ck_assert_int_eq(client_new_socket(&t.client, t.event, t.path, &ops), 0);
	t.peer = accept4(t.listener, NULL, NULL, SOCK_CLOEXEC);
	ck_assert_int_ge(t.peer, 0);
}

static void connect_and_greet(void)
{
	connect_client();
	say(GREETING);
	until(&t.greeted, 1);
	buffer_clear(&t.log);
}

#define SEND(tag, deadline_ms) \
	ck_assert_int_eq(client_send(t.client, deadline_ms, on_reply, (void *)(tag), "%s", tag), 0)

/* What lies in the socket now, the loop not having run. */
static void assert_heard(const char *text)
{
	char heard[512];
	ssize_t n = recv(t.peer, heard, sizeof(heard) - 1, MSG_DONTWAIT);

	ck_assert_int_ge(n, 0);
	heard[n] = '\0';
	ck_assert_str_eq(heard, text);
}

static void assert_log(const char *text)
{
	ck_assert_str_eq(buffer_string(&t.log), text);
}

static void assert_lost(int error, const char *part)
{
	ck_assert_int_eq(t.lost_error, error);
	ck_assert_msg(strstr(t.lost_text, part), "\"%s\" in \"%s\"", part, t.lost_text);
	ck_assert_int_eq(t.send_inside, -ENOTCONN);
	drain();
	ck_assert_uint_eq(t.lost, 1);
}

/* --- greeting --- */

START_TEST (greeting) {
	connect_client();
	ck_assert_uint_eq(t.greeted + t.lost, 0);
	ck_assert_int_eq(client_send(t.client, 0, on_reply, NULL, "show status"), -ENOTCONN);
	for (const char *c = "0001 BIRD 2.0.12 ready."; *c; c++) {
		say_n(c, 1);
		drain();
	}
	ck_assert_uint_eq(t.greeted, 0);
	say("\n");
	until(&t.greeted, 1);
	assert_log("greeted 2.0.12\n");
	ck_assert_uint_eq(client_waiting(t.client), 0);
}
END_TEST

START_TEST (greeting_of_bird_1) {
	connect_client();
	say("0001 BIRD 1.6.8 ready.\n");
	until(&t.greeted, 1);
	assert_log("greeted 1.6.8\n");
}
END_TEST

static const struct {
	const char *said;
	const char *part;
} no_greetings[] = {
	{"0001 FRR 8.4 ready.\n", "expected a BIRD's greeting, got: \"0001 FRR 8.4 ready.\""},
	{"0001 BIRD  ready.\n", "greeting"},
	{"0001 BIRD 2.0.12-with-a-version-that-does-not-end ready.\n", "greeting"},
	{"0001 BIRD \n", "greeting"},
	{"0000 \n", "greeting"},
	{"8007 Access denied\n", "\"8007 Access denied\""},
	{"SSH-2.0-OpenSSH_9.2\r\n", "SSH-2.0-OpenSSH_9.2"},
	{"\x16\x03\x01\n", "\\x16\\x03\\x01"},
	{"0001 BIRD \x1b[2J ready.\n0000", "BIRD \\x1b[2J"},
};

START_TEST (greeting_of_something_else) {
	connect_client();
	say(no_greetings[_i].said);
	until(&t.lost, 1);
	assert_lost(-EBADMSG, no_greetings[_i].part);
	ck_assert_uint_eq(t.greeted, 0);
}
END_TEST

START_TEST (greeting_never_comes) {
	uint64_t began = now_ms();

	connect_client();
	until(&t.lost, 1);
	assert_lost(-ETIMEDOUT, "no greeting within 2000 ms");
	ck_assert_uint_ge(now_ms() - began, CLIENT_DEADLINE_MS);
	ck_assert_uint_lt(now_ms() - began, CLIENT_DEADLINE_MS + 5000);
}
END_TEST

START_TEST (closed_before_greeting) {
	connect_client();
	say("0001 BIRD");
	closep(&t.peer);
	t.peer = -1;
	until(&t.lost, 1);
	assert_lost(-ECONNRESET, "closed before its greeting");
}
END_TEST

/* --- connecting --- */

START_TEST (nobody_there) {
	ck_assert_int_eq(client_new_socket(&t.client, t.event, t.path, &ops), 0);
	ck_assert_uint_eq(t.lost, 0);
	until(&t.lost, 1);
	assert_lost(-ENOENT, "No such file or directory (is BIRD running");
	ck_assert_ptr_nonnull(strstr(t.lost_text, t.path));
}
END_TEST

START_TEST (nobody_listens) {
	listen_here(1);
	closep(&t.listener);
	t.listener = -1;
	ck_assert_int_eq(client_new_socket(&t.client, t.event, t.path, &ops), 0);
	until(&t.lost, 1);
	assert_lost(-ECONNREFUSED, "Connection refused (BIRD does not run");
}
END_TEST

START_TEST (not_allowed) {
	uid_t before = geteuid();

	listen_here(1);
	ck_assert_int_eq(chmod(t.path, 0), 0);
	if (before == 0) {
		ck_assert_int_eq(chmod(t.folder, 0755), 0);
		ck_assert_int_eq(seteuid(65534), 0);
	}
	ck_assert_int_eq(client_new_socket(&t.client, t.event, t.path, &ops), 0);
	ck_assert_int_eq(seteuid(before), 0);
	until(&t.lost, 1);
	assert_lost(-EACCES, "Permission denied (is the agent in group bird?)");
}
END_TEST

START_TEST (backlog_is_full) {
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int others[8];
	size_t n = 0;

	listen_here(0);
	(void)snprintf(a.sun_path, sizeof(a.sun_path), "%s", t.path);
	do {
		ck_assert_uint_lt(n, ELEMENTSOF(others));
		others[n] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	} while (connect(others[n++], (struct sockaddr *)&a, sizeof(a)) == 0);
	ck_assert_int_eq(client_new_socket(&t.client, t.event, t.path, &ops), 0);
	until(&t.lost, 1);
	assert_lost(-EAGAIN, "takes no more connections");
	while (n > 0)
		closep(&others[--n]);
}
END_TEST

START_TEST (path_too_long) {
	char path[200];

	memset(path, 'a', sizeof(path));
	path[sizeof(path) - 1] = '\0';
	ck_assert_int_eq(client_new_socket(&t.client, t.event, path, &ops), -ENAMETOOLONG);
}
END_TEST

/* --- commands --- */

START_TEST (written_inside_the_call) {
	connect_and_greet();
	ck_assert_int_eq(
		client_send(t.client, 0, on_reply, (void *)"a", "disable \"%s\"", "x:*"), 0);
	assert_heard("disable \"x:*\"\n");
	ck_assert_uint_eq(client_waiting(t.client), 1);
	say("0009-x:1: disabled\n0000 \n");
	until(&t.replies, 1);
	assert_log("a = 0000 \n");
	ck_assert_uint_eq(client_waiting(t.client), 0);
}
END_TEST

START_TEST (answered_in_order) {
	connect_and_greet();
	SEND("a", 0);
	SEND("b", 0);
	SEND("c", 0);
	assert_heard("a\nb\nc\n");
	ck_assert_uint_eq(client_waiting(t.client), 3);
	say("+one\n0003 x\n0002-y\n+two\n0004 y\n+three\n8002 z\n+four\n");
	until(&t.pushes, 4);
	assert_log(
		"push one\na = 0003 x\npush two\nb = 0004 y\npush three\nc = 8002 z\npush four\n");
	ck_assert_uint_eq(t.lost, 0);
}
END_TEST

START_TEST (sent_inside_a_callback) {
	connect_and_greet();
	t.act = ACT_SEND_IN_REPLY;
	SEND("a", 0);
	SEND("b", 0);
	say("0000 1\n0000 2\n");
	until(&t.replies, 2);
	ck_assert_int_eq(t.send_inside, 0);
	assert_heard("a\nb\ninside\n");
	say("0000 3\n");
	until(&t.replies, 3);
	assert_log("a = 0000 1\nb = 0000 2\ninside = 0000 3\n");
}
END_TEST

START_TEST (reply_nobody_asked_for) {
	connect_and_greet();
	say("0003 Reconfigured\n");
	until(&t.lost, 1);
	assert_lost(-EBADMSG, "nobody asked for: \"0003 Reconfigured\"");
}
END_TEST

START_TEST (garbage_in_a_reply) {
	connect_and_greet();
	SEND("a", 0);
	SEND("b", 0);
	say("0003-x\nwhat?\n0000 \n");
	until(&t.lost, 1);
	assert_lost(-EBADMSG, "\"what?\"");
	assert_log("a ! -74\nb ! -74\nlost -74\n");
}
END_TEST

/* Takes what lies in the socket; how many commands and, in *ret_bytes, how many bytes that is. */
static unsigned hear(size_t *ret_bytes)
{
	static char heard[65536];
	unsigned commands = 0;
	ssize_t n;

	*ret_bytes = 0;
	drain();
	while ((n = recv(t.peer, heard, sizeof(heard), MSG_DONTWAIT)) > 0) {
		*ret_bytes += (size_t)n;
		for (ssize_t i = 0; i < n; i++)
			commands += heard[i] == '\n';
		ck_assert_int_eq(heard[n - 1], '\n');
		drain();
	}
	ck_assert_int_eq(errno, EAGAIN);
	return commands;
}

/* BIRD's own buffer holds 1,024 bytes and is emptied when all in it is answered: a full one makes
 * it close the connection. So it gets no more before it has answered everything. */
START_TEST (given_in_batches) {
	unsigned answered = 0;
	size_t bytes;

	connect_and_greet();
	for (unsigned i = 0; i < 300; i++)
		ck_assert_int_eq(
			client_send(t.client, 0, on_reply, NULL,
				"show route 10.0.%u.%u/32 table redshank4 all", i / 256, i % 256),
			0);
	while (answered < 300) {
		unsigned batch = hear(&bytes);

		ck_assert_uint_ge(batch, 1);
		ck_assert_uint_le(bytes, 1000);
		for (unsigned i = 1; i < batch; i++)
			say("8001 Network not found\n");
		answered += batch - 1;
		until(&t.replies, answered);
		ck_assert_uint_eq(hear(&bytes), 0);
		say("8001 Network not found\n");
		until(&t.replies, ++answered);
	}
	ck_assert_uint_eq(t.lost, 0);
}
END_TEST

/* A command that leaves no room for another one goes alone; what waits is bounded. */
START_TEST (long_commands) {
	char line[900];
	unsigned sent = 0;
	size_t bytes;
	int r;

	connect_and_greet();
	memset(line, 'x', sizeof(line));
	line[sizeof(line) - 1] = '\0';
	while ((r = client_send(t.client, 0, on_reply, NULL, "%s", line)) == 0)
		sent++;
	ck_assert_int_eq(r, -ENOBUFS);
	ck_assert_uint_eq(client_waiting(t.client), sent);
	for (unsigned i = 1; i <= sent; i++) {
		ck_assert_uint_eq(hear(&bytes), 1);
		ck_assert_uint_eq(bytes, sizeof(line));
		say("0000 \n");
		until(&t.replies, i);
	}
	ck_assert_uint_eq(hear(&bytes), 0);
	ck_assert_uint_eq(t.lost, 0);
}
END_TEST

START_TEST (too_many_waiting) {
	connect_and_greet();
	for (unsigned i = 0; i < CLIENT_WAITING_MAX; i++)
		ck_assert_int_eq(client_send(t.client, 0, NULL, NULL, "x"), 0);
	ck_assert_int_eq(client_send(t.client, 0, on_reply, NULL, "x"), -ENOBUFS);
	ck_assert_uint_eq(client_waiting(t.client), CLIENT_WAITING_MAX);
	say("0000 \n");
	while (client_waiting(t.client) == CLIENT_WAITING_MAX)
		ck_assert_int_ge(sd_event_run(t.event, 1000000), 1);
	ck_assert_int_eq(client_send(t.client, 0, NULL, NULL, "x"), 0);
}
END_TEST

/* --- deadlines --- */

START_TEST (silence) {
	uint64_t began;

	connect_and_greet();
	began = now_ms();
	SEND("a", 60);
	SEND("b", 0);
	until(&t.lost, 1);
	ck_assert_uint_ge(now_ms() - began, 60);
	ck_assert_uint_lt(now_ms() - began, 5000);
	assert_lost(-ETIMEDOUT, "no reply to `a` within 60 ms");
	assert_log("a ! -110\nb ! -110\nlost -110\n");
	ck_assert_uint_eq(client_waiting(t.client), 0);
}
END_TEST

START_TEST (dripping) {
	uint64_t began;

	connect_and_greet();
	began = now_ms();
	SEND("a", 100);
	while (!t.lost) {
		ck_assert_uint_lt(now_ms() - began, 10000);
		(void)send(t.peer, "0002-x\n", 7, MSG_NOSIGNAL);
		ck_assert_int_ge(sd_event_run(t.event, 10000), 0);
		(void)poll(NULL, 0, 5);
	}
	ck_assert_uint_ge(now_ms() - began, 99);
	assert_lost(-ETIMEDOUT, "no reply to `a`");
}
END_TEST

/* The time of a command runs while it is the oldest, not while BIRD works off those before it. */
START_TEST (time_begins_at_the_head) {
	uint64_t answered;

	connect_and_greet();
	SEND("a", 2000);
	SEND("b", 150);
	for (uint64_t end = now_ms() + 200; now_ms() < end;)
		ck_assert_int_ge(sd_event_run(t.event, 10000), 0);
	ck_assert_uint_eq(t.lost, 0);
	answered = now_ms();
	say("0000 \n");
	until(&t.replies, 1);
	ck_assert_uint_eq(t.lost, 0);
	until(&t.lost, 1);
	ck_assert_uint_ge(now_ms() - answered, 150);
	ck_assert_uint_lt(now_ms() - answered, 10000);
	assert_lost(-ETIMEDOUT, "no reply to `b` within 150 ms");
}
END_TEST

static int say_two_replies(sd_event_source *source, uint64_t usec, void *userdata)
{
	say("0000 1\n0000 2\n");
	return 0;
}

/*
 * The loop, not BIRD, was late: the replies lie there when the deadline is looked at. They are said
 * by a timer that goes first, so that the loop has not seen them when it comes to the deadline.
 */
START_TEST (late_loop) {
	sd_event_source *first;

	connect_and_greet();
	SEND("a", 20);
	SEND("b", 20);
	ck_assert_int_ge(sd_event_add_time_relative(
				 t.event, &first, CLOCK_BOOTTIME, 1000, 1, say_two_replies, NULL),
		0);
	ck_assert_int_ge(sd_event_source_set_priority(first, -10), 0);
	(void)poll(NULL, 0, 60);
	drain();
	assert_log("a = 0000 1\nb = 0000 2\n");
	ck_assert_uint_eq(t.lost, 0);
	sd_event_source_unref(first);
}
END_TEST

/* Everything stood still (a suspended machine), BIRD as well: it gets the lost time back, once. */
START_TEST (all_stood_still) {
	uint64_t began;

	connect_and_greet();
	SEND("a", 1000);
	(void)poll(NULL, 0, 2100);
	for (uint64_t end = now_ms() + 50; now_ms() < end;)
		ck_assert_int_ge(sd_event_run(t.event, 10000), 0);
	ck_assert_uint_eq(t.lost, 0);
	say("0000 1\n");
	until(&t.replies, 1);
	/* A BIRD that hangs is found out all the same. */
	SEND("b", 150);
	(void)poll(NULL, 0, 1000);
	began = now_ms();
	until(&t.lost, 1);
	ck_assert_uint_ge(now_ms() - began, 140);
	ck_assert_uint_lt(now_ms() - began, 5000);
}
END_TEST

/* An idle connection has no deadline. */
START_TEST (idle) {
	connect_and_greet();
	SEND("a", 50);
	say("0000 \n");
	until(&t.replies, 1);
	for (uint64_t end = now_ms() + 2200; now_ms() < end;)
		ck_assert_int_ge(sd_event_run(t.event, 100000), 0);
	ck_assert_uint_eq(t.lost, 0);
}
END_TEST

/* --- loss --- */

START_TEST (closed_in_mid_reply) {
	connect_and_greet();
	SEND("a", 0);
	SEND("b", 0);
	say("0000 \n0002-Reading configuration\n000");
	closep(&t.peer);
	t.peer = -1;
	until(&t.lost, 1);
	assert_lost(-ECONNRESET, "closed before the reply to `b`");
	assert_log("a = 0000 \nb ! -104\nlost -104\n");
}
END_TEST

START_TEST (closed_while_idle) {
	uint64_t began;

	connect_and_greet();
	closep(&t.peer);
	t.peer = -1;
	began = now_ms();
	until(&t.lost, 1);
	ck_assert_uint_lt(now_ms() - began, CLIENT_DEADLINE_MS);
	assert_lost(-ECONNRESET, "closed by BIRD");
}
END_TEST

START_TEST (closed_when_sending) {
	connect_and_greet();
	closep(&t.peer);
	t.peer = -1;
	SEND("a", 0);
	/* Nothing is told inside the call, and nothing more is taken. */
	assert_log("");
	ck_assert_int_eq(client_send(t.client, 0, on_reply, NULL, "b"), -ENOTCONN);
	until(&t.lost, 1);
	ck_assert_uint_eq(t.failed, 1);
	drain();
	ck_assert_uint_eq(t.lost, 1);
}
END_TEST

/* --- freed inside callbacks (the sanitizer judges) --- */

START_TEST (freed_in_greeted) {
	connect_client();
	t.act = ACT_FREE_IN_GREETED;
	say(GREETING "+x\n0000 \n");
	until(&t.greeted, 1);
	drain();
	assert_log("greeted 2.0.12\n");
}
END_TEST

START_TEST (freed_in_reply) {
	connect_and_greet();
	t.act = ACT_FREE_IN_REPLY;
	SEND("a", 0);
	SEND("b", 0);
	say("0000 \n+x\n0000 \nnonsense\n");
	until(&t.replies, 1);
	drain();
	assert_log("a = 0000 \n");
}
END_TEST

START_TEST (freed_in_failure) {
	connect_and_greet();
	t.act = ACT_FREE_IN_REPLY;
	SEND("a", 0);
	SEND("b", 0);
	closep(&t.peer);
	t.peer = -1;
	until(&t.failed, 1);
	drain();
	assert_log("a ! -104\n");
}
END_TEST

START_TEST (freed_in_push) {
	connect_and_greet();
	t.act = ACT_FREE_IN_PUSH;
	SEND("a", 0);
	say("+x\n+y\n0000 \n");
	until(&t.pushes, 1);
	drain();
	assert_log("push x\n");
}
END_TEST

START_TEST (freed_in_lost) {
	connect_and_greet();
	t.act = ACT_FREE_IN_LOST;
	SEND("a", 20);
	until(&t.lost, 1);
	drain();
	assert_log("a ! -110\nlost -110\n");
}
END_TEST

START_TEST (freed_before_it_was_lost) {
	ck_assert_int_eq(client_new_socket(&t.client, t.event, t.path, &ops), 0);
	free_now();
	drain();
	ck_assert_uint_eq(t.lost, 0);
}
END_TEST

/* --- */

static void add_tests(TCase *tc)
{
	tcase_add_test(tc, greeting);
	tcase_add_test(tc, greeting_of_bird_1);
	tcase_add_loop_test(tc, greeting_of_something_else, 0, ELEMENTSOF(no_greetings));
	tcase_add_test(tc, greeting_never_comes);
	tcase_add_test(tc, closed_before_greeting);
	tcase_add_test(tc, nobody_there);
	tcase_add_test(tc, nobody_listens);
	tcase_add_test(tc, not_allowed);
	tcase_add_test(tc, backlog_is_full);
	tcase_add_test(tc, path_too_long);
	tcase_add_test(tc, written_inside_the_call);
	tcase_add_test(tc, answered_in_order);
	tcase_add_test(tc, sent_inside_a_callback);
	tcase_add_test(tc, reply_nobody_asked_for);
	tcase_add_test(tc, garbage_in_a_reply);
	tcase_add_test(tc, given_in_batches);
	tcase_add_test(tc, long_commands);
	tcase_add_test(tc, too_many_waiting);
	tcase_add_test(tc, silence);
	tcase_add_test(tc, dripping);
	tcase_add_test(tc, time_begins_at_the_head);
	tcase_add_test(tc, late_loop);
	tcase_add_test(tc, all_stood_still);
	tcase_add_test(tc, idle);
	tcase_add_test(tc, closed_in_mid_reply);
	tcase_add_test(tc, closed_while_idle);
	tcase_add_test(tc, closed_when_sending);
	tcase_add_test(tc, freed_in_greeted);
	tcase_add_test(tc, freed_in_reply);
	tcase_add_test(tc, freed_in_failure);
	tcase_add_test(tc, freed_in_push);
	tcase_add_test(tc, freed_in_lost);
	tcase_add_test(tc, freed_before_it_was_lost);
}

int main(void)
{
	Suite *suite = suite_create("bird-client");
	TCase *tc = tcase_create("client");
	SRunner *runner;
	int failed;

	(void)signal(SIGPIPE, SIG_DFL); /* the client must not need it ignored */
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 50);
	add_tests(tc);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
