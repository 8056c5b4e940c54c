#ifndef REDSHANK_BIRD_CLIENT_H
#define REDSHANK_BIRD_CLIENT_H
/*
 * One connection to BIRD, asynchronous: commands go out, replies come back in order.
 *
 * A client is a way to BIRD that can be lost at any time: the Unix socket (client.c) or the birdc
 * program, once a command (birdc.c), behind the same functions. Every step has a deadline: the
 * greeting, and each reply as a whole, counted from when its command became the oldest one; one
 * that passes closes the connection, and everything that waited is answered with its error. A reply
 * that lies there when the loop is late still counts. The caller reconnects; the client never does
 * by itself. Errors: -ETIMEDOUT, -ECONNRESET (closed), -EBADMSG (not a BIRD, or not a reply), and
 * connect(2)'s own; the text begins with "bird: ".
 *
 * Commands are written as they are sent, without waiting for the replies before them (but for very
 * many, see client_send()): BIRD works them off in order. What must not be pipelined (`configure`)
 * is the caller's to hold back.
 */
#include <stdbool.h>
#include <systemd/sd-event.h>

#include "agent/bird/reply.h"

struct client;

/* `reply` is NULL when the connection was lost first; error is then a negative errno, else 0.
 * Valid during the call. client_free() drops what waits without a call. */
typedef void (*client_reply_fn)(void *userdata, int error, const struct reply *reply);

struct client_ops {
	/* The greeting came and is a BIRD's ("0001 BIRD 2.0.12 ready."); `version` is "2.0.12". */
	void (*greeted)(void *userdata, const char *version);
	/* The connection failed or was closed, or a deadline passed; said once, after every waiting
	 * command was answered. The client may be freed inside the call. */
	void (*lost)(void *userdata, int error, const char *text);
	/* An asynchronous line, without '+' (after `echo all`, which BIRD 3 refuses with 9001). May
	 * be NULL. */
	void (*push)(void *userdata, const char *text);
	void *userdata;
};

/* Of the greeting, and of a command that names no other. */
#define CLIENT_DEADLINE_MS 2000

/* Over the socket. Connects at once (non-blocking); the outcome comes by callback, never inside the
 * call. Heap. 0 or negative errno. */
int client_new_socket(struct client **ret, sd_event *event, const char *socket_path,
	const struct client_ops *ops);

/* By running `birdc -v -s SOCKET COMMAND` for each command, one at a time; no push lines. Greeted
 * when the first run (`show status`) answered. SIGCHLD must be blocked (sd_event_add_child(3)). A
 * BIRD that was restarted is noticed only when its version changed (-ECONNRESET). */
int client_new_birdc(struct client **ret, sd_event *event, const char *socket_path,
	const struct client_ops *ops);

/* May be called inside any callback; none follows. */
void client_free(struct client *c);

/*
 * Sends one command (without newline; asserted to be one line). It is written before this returns
 * unless 1,000 bytes of commands are unanswered: BIRD hangs up when it is given more at once, and
 * the rest follows as it answers. `fn` (or NULL) is called from the loop, never inside the call.
 * `deadline_ms` 0 is CLIENT_DEADLINE_MS. While fewer than 64 are unanswered, a command of less than
 * 96 characters needs no memory. 0, -ENOTCONN (before the greeting, after a loss), -ENOMEM,
 * or -ENOBUFS when more than CLIENT_WAITING_MAX or 1 MiB wait; then `fn` is not called.
 */
int client_send(struct client *c, uint64_t deadline_ms, client_reply_fn fn, void *userdata,
	const char *command_format, ...) __attribute__((format(printf, 5, 6)));
#define CLIENT_WAITING_MAX 4096

/* False from the moment at which the connection is known to be lost, though it was not said yet. */
bool client_is_sound(const struct client *c);

/* Commands sent and not answered. */
size_t client_waiting(const struct client *c);

#endif
