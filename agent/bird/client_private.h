#ifndef REDSHANK_BIRD_CLIENT_PRIVATE_H
#define REDSHANK_BIRD_CLIENT_PRIVATE_H
/*
 * What the two ways to BIRD share (client.c) and what each brings along (the socket in client.c,
 * the program in birdc.c). Included by these two files only.
 *
 * The shared part keeps the commands in order, runs one deadline, parses replies and calls back. A
 * link moves bytes: it takes commands and hands what comes to client_input().
 *
 * Life: every callback runs between client_enter() and client_leave(); client_free() inside one
 * closes the link at once and frees the memory in the outermost client_leave(). After any of the
 * functions here that can call back, a link looks at client_is_over() before it goes on.
 */
#include <stdbool.h>
#include <stdint.h>

#include "agent/bird/client.h"

/* Bytes of a command with its NUL. BIRD reads into a buffer of 1,024 and takes a full one without a
 * newline for the end of the connection (see CLIENT_BATCH_MAX in client.c). */
#define CLIENT_COMMAND_MAX 1000

/* Commands that can be under way without memory being had for them, each of so many bytes with its
 * NUL: `disable "redshank:..."` of the longest name has 75. */
#define CLIENT_SPARES 64
#define CLIENT_SPARE_SIZE 96

struct client_command {
	struct client_command *next;
	bool spare; /* goes back to client.spares */
	uint64_t deadline_ms;
	client_reply_fn fn; /* NULL: nobody wants to know */
	void *userdata;
	char text[]; /* without newline */
};

struct client_link {
	/* Takes one command that was put at the tail of the queue. 0 or negative errno: then the
	 * command is taken back. Must not call back. */
	int (*send)(struct client *c, const struct client_command *command);
	/* A reply came to this command; called before the owner hears it. NULL: of no interest.
	 * Must not call back. */
	void (*answered)(struct client *c, const struct client_command *command);
	/* Reads whatever has come, before a deadline is held against BIRD. May call back. */
	void (*receive)(struct client *c);
	/* Closes; the client stays. Called once. Must not call back. */
	void (*close)(struct client *c);
};

struct client {
	const struct client_link *link;
	void *state; /* the link's own */
	sd_event *event;
	char *path; /* of BIRD's socket */
	struct client_ops ops;
	struct reply_parser *parser;
	struct client_command *head, **tail; /* sent and not answered, the oldest first */
	size_t waiting;
	struct client_command *spares; /* a list; of CLIENT_SPARE_SIZE each */
	sd_event_source *deadline;     /* of the greeting, then of the head */
	uint64_t deadline_at;	       /* CLOCK_BOOTTIME, us */
	bool extended;		       /* it was seen late and moved */
	sd_event_source *loss;	       /* defers what was found inside a call of the owner's */
	struct error loss_text;
	int loss_error;
	bool greeted, lost, freed;
	unsigned entered;
};

/* A client without a link; the caller sets it up and then calls client_begin(). */
int client_new(struct client **ret, sd_event *event, const char *socket_path,
	const struct client_ops *ops, const struct client_link *link, void *state);
/* The deadline of the greeting begins. */
void client_begin(struct client *c);

void client_enter(struct client *c);
void client_leave(struct client *c);
static inline bool client_is_over(const struct client *c)
{
	return c->lost || c->freed;
}

/* Bytes as BIRD's socket would send them. May call back, and may lose the connection. */
void client_input(struct client *c, const char *data, size_t n);
/* Answers all that wait, says lost, closes. May call back. */
void client_lose(struct client *c, int error, const char *format, ...) _printf_(3, 4);
/* The same, from the loop: for where callbacks are not allowed. The first one counts. */
void client_lose_later(struct client *c, int error, const char *format, ...) _printf_(3, 4);

#endif
