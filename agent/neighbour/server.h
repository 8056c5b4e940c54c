#ifndef REDSHANK_NEIGHBOUR_SERVER_H
#define REDSHANK_NEIGHBOUR_SERVER_H
/*
 * The neighbours' endpoint: HTTPS in which callers prove who they are before a byte of theirs is
 * read. GET /v1/report, POST and DELETE /v1/grant. libmicrohttpd on an event loop; which loop, and
 * why not the agent's, is neighbour.h's affair.
 */
#include <systemd/sd-event.h>

#include "agent/core/shed.h"
#include "agent/neighbour/message.h"
#include "agent/neighbour/pins.h"

struct server;

struct server_ops {
	/*
	 * A neighbour asks for a grant, or gives it back. The answer is for server_answer(), by
	 * `id`, within two seconds, and not from inside this call. False: too many wait already,
	 * and it is told to ask again.
	 */
	bool (*grant)(
		void *userdata, uint64_t id, const struct message_grant *grant, bool give_back);
	/* A caller was turned away: why, and a text for the log. */
	void (*refused)(void *userdata, enum pins_refusal refusal, const char *text);
	void *userdata;
};

/* Of what is counted. */
enum server_request {
	SERVER_REPORT,	   /* 200 */
	SERVER_GRANTED,	   /* 200 */
	SERVER_REFUSED,	   /* 409 */
	SERVER_GIVEN_BACK, /* 200 */
	SERVER_BAD,	   /* 400, 403, 404, 405, 413 */
	SERVER_BUSY,	   /* 503 */
};
#define SERVER_REQUESTS (SERVER_BUSY + 1)
const char *server_request_name(enum server_request request); /* "report", "granted", ... */

struct server_counts {
	uint64_t connections;		 /* accepted */
	uint64_t turned_away;		 /* without a handshake: too many strangers at once */
	uint64_t refused[PINS_REFUSALS]; /* handshakes; [PINS_WELCOME]: those that were not */
	uint64_t requests[SERVER_REQUESTS];
	unsigned open; /* connections, now */
};

/* Takes the listening socket `fd` over, also when it fails. 0 or negative errno. */
int server_new(struct server **ret, sd_event *event, int fd, const struct server_ops *ops);
void server_free(struct server *s); /* NULL is fine */
DEFINE_CLEANUP_PTR(struct server *, server_free)

/* From now on these are who may speak. Connections made under others are closed as soon as they
 * wait for nothing. Before the first call nobody may. 0 or negative errno, and nothing changed. */
int server_use(struct server *s, struct pins *pins);
/* What GET /v1/report answers; takes `text` over, NULL: 503. */
void server_publish(struct server *s, char *text, size_t n);
/* The answer to a grant; `share` is what was asked for. One that nobody waits for is dropped. */
void server_answer(struct server *s, uint64_t id, const struct shed_answer *answer, uint64_t share);

const struct server_counts *server_counts(const struct server *s);

#endif
