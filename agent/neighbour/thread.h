#ifndef REDSHANK_NEIGHBOUR_THREAD_H
#define REDSHANK_NEIGHBOUR_THREAD_H
/*
 * The neighbours' thread: an event loop of its own on which the endpoint and the asker live, and
 * the two mailboxes between it and the agent's loop. For neighbour.c alone.
 *
 * A mailbox is bounded: of what only the newest counts (a report, a neighbour's trouble) it holds
 * one; of requests a fixed number, and more are refused where they come in. Neither side ever waits
 * for the other: a mailbox is swapped for an empty one under a lock that is held for nothing else,
 * and read without it.
 */
#include <systemd/sd-event.h>

#include "agent/neighbour/asker.h"
#include "agent/neighbour/server.h"

#define THREAD_GRANTS_MAX 128
#define THREAD_CALLS_MAX 128

/* To the thread. */
struct thread_orders {
	struct pins *pins; /* owned; NULL: as before */
	char site[MESSAGE_WORD_MAX];
	char *report; /* owned; NULL: as before */
	size_t report_length;
	bool found_is_new;
	struct address found[ASKER_FOUND_MAX];
	size_t n_found;
	size_t n_calls, n_answers;
	struct asker_call calls[THREAD_CALLS_MAX];
	struct thread_answer {
		uint64_t id;
		struct shed_answer answer;
		uint64_t share;
	} answers[THREAD_GRANTS_MAX];
	bool stop;
};

/* Of one neighbour, since the agent looked last. */
struct thread_peer {
	struct message_report *report; /* owned; NULL: none */
	struct monotime asked;
	unsigned n_reports, n_failures;
	char error[ASKER_ERROR_MAX]; /* the last failure; "": none */
	char where[ASKER_WHERE_MAX]; /* of the report */
};

/* To the agent's loop. */
struct thread_news {
	struct pins *pins; /* owned; what `peers` are indices of; NULL: there are none */
	struct thread_peer peers[CONFIG_MEMBERS_MAX];
	size_t n_grants, n_answered;
	struct thread_grant {
		uint64_t id;
		bool give_back;
		struct message_grant grant;
	} grants[THREAD_GRANTS_MAX];
	struct thread_answered {
		uint64_t id;
		struct shed_answer answer;
	} answered[THREAD_CALLS_MAX];
	unsigned n_refused[PINS_REFUSALS];
	char refused[PINS_REFUSALS][160]; /* the last text of each */
	struct server_counts counts;
	int failed; /* negative errno: new pins could not be used */
};

struct thread;

/* Starts; `fd` is the listening socket, which is taken over, also on failure. `wake` is called on
 * the loop `event` when there is news. 0 or negative errno. */
int thread_new(
	struct thread **ret, sd_event *event, int fd, void (*wake)(void *userdata), void *userdata);
void thread_free(struct thread *t); /* ends it, and waits for that; NULL is fine */
DEFINE_CLEANUP_PTR(struct thread *, thread_free)

/* The orders that are being put together; thread_send() sends them. Between the two calls nothing
 * else is done. */
struct thread_orders *thread_orders(struct thread *t);
void thread_send(struct thread *t);

/* What has come, for the callee to read and, what it wants to keep, to take. Valid until the next
 * call. */
struct thread_news *thread_news(struct thread *t);

/* Microseconds of CPU that the thread has taken. */
uint64_t thread_cpu_us(const struct thread *t);

#endif
