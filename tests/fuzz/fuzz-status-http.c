/*
 * libFuzzer target of the status server: the input is what a client sends, on a real socket to the
 * real server on a real loop. libmicrohttpd reads HTTP; what is ours is what it calls: paths,
 * queries, bodies of commands, streams.
 *
 * Besides what the sanitizers see: every client is rid of in the end, an answer is one of HTTP's,
 * and what the operations get is within what http.h says.
 */
#include "agent/status/http.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/events/events.h"
#include "tests/fuzz/fuzz.h"

static char socket_path[108];
static sd_event *event;
static struct http *http;

static int render(void *userdata, uint64_t budget_us, char **ret_text, size_t *ret_length)
{
	*ret_text = strdup("{}\n");
	*ret_length = 3;
	return *ret_text ? 0 : -ENOMEM;
}

static char *explain(void *userdata, const char *name, bool *ret_found)
{
	assert(name[0] && strlen(name) <= HTTP_NAME_MAX);
	*ret_found = name[0] == 'd';
	return strdup("{}\n");
}

static char *command(void *userdata, const char *name, const char *body, size_t n,
	const struct caller *caller, unsigned *ret_status)
{
	assert(strcmp(name, "drain") == 0 && n <= HTTP_BODY_MAX && body[n] == '\0');
	assert(caller->may_change);
	*ret_status = n % 2 ? 409 : 200;
	return strdup("{}\n");
}

static void remove_socket(void)
{
	(void)unlink(socket_path);
}

static void set_up(void)
{
	static const char *const commands[] = {"drain", NULL};
	static const struct http_ops ops = {
		.status = render, .explain = explain, .command = command, .commands = commands};
	static struct config_status settings;
	struct error error = {""};

	log_init(LOG_EMERG, true);
	assert(events_init() == 0);
	event_say(LOG_NOTICE, EVENT_CHECK_NOW, NULL, "an event");
	(void)snprintf(socket_path, sizeof(socket_path), "/tmp/redshank-fuzz-%d", (int)getpid());
	settings.socket = socket_path;
	assert(sd_event_new(&event) >= 0);
	assert(http_new(&http, event, &settings, &ops, &error) == 0);
	(void)atexit(remove_socket);
}

static int connect_server(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", socket_path);
	assert(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	return fd;
}

/* Until the server has hung up, or says no more. What it said last is thrown away. */
static size_t read_answer(int fd, char start[16])
{
	size_t n = 0;

	for (unsigned quiet = 0; quiet < 4;) {
		char piece[4096];
		ssize_t got;

		(void)sd_event_run(event, quiet ? 2000 : 0);
		got = recv(fd, piece, sizeof(piece), 0);
		if (got == 0 || (got < 0 && errno != EAGAIN))
			break;
		quiet = got < 0 ? quiet + 1 : 0;
		for (ssize_t i = 0; i < got; i++, n++)
			if (n < 15)
				start[n] = piece[i];
	}
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char start[16] = "";
	int fd;

	if (!http)
		set_up();
	if (size == 0 || size > 16384)
		return 0;
	fd = connect_server();
	(void)!send(fd, data, size, MSG_NOSIGNAL);
	(void)shutdown(fd, SHUT_WR);
	if (read_answer(fd, start) > 0)
		assert(strncmp(start, "HTTP/1.", 7) == 0);
	(void)close(fd);
	while (sd_event_run(event, 0) > 0)
		;
	return 0;
}
