/*
 * The lives of the two connections. The one that commands is made first; when BIRD has greeted it
 * and is one that we speak to, the one that reads is made. Either may be lost at any time: it is
 * made again after 10 ms, doubling to a second, and at once when the socket appears. A BIRD 1.x is
 * not sent a byte; it is greeted again every second, in case it was replaced.
 */
#include "agent/bird/apply_state.h"

#include <errno.h>
#include <string.h>
#include <sys/inotify.h>

#include "agent/base/clock.h"
#include "agent/events/events.h"

#define LINK_RETRY_MIN_MS 10
#define LINK_RETRY_MAX_MS 1000
#define LINK_REFUSED_MS 1000
#define LINK_LOG_EVERY 60 /* attempts, for those who read only the end of a log */

static void link_drop(struct apply_way *way)
{
	client_free(TAKE_PTR(way->client));
	way->greeted = false;
}

static void link_set(struct apply *a, enum apply_link link, enum loss loss, const char *error)
{
	if (a->status.link != link || strcmp(a->status.error, error) != 0)
		apply_say_changed(a);
	a->status.link = link;
	a->status.loss = loss;
	(void)snprintf(a->status.error, sizeof(a->status.error), "%s", error);
}

/* A BIRD that hangs: its socket takes connections, or is full of them, and nobody answers. Its
 * sessions live on, until its neighbours' hold times are over. */
static void link_set_silent(struct apply *a, bool silent)
{
	if (!silent)
		a->status.silent_since = MONOTIME_NEVER;
	else if (monotime_is_never(a->status.silent_since))
		a->status.silent_since = clock_monotime();
}

/* ---- what the clients say ---- */

static enum loss link_count(struct apply *a, enum loss loss)
{
	a->status.losses[loss]++;
	return loss;
}

static void link_retry(struct apply *a, struct apply_way *way, uint64_t least_ms)
{
	uint64_t ms = LINK_RETRY_MIN_MS << (way->failures < 7 ? way->failures : 7);

	if (ms > LINK_RETRY_MAX_MS)
		ms = LINK_RETRY_MAX_MS;
	if (ms < least_ms)
		ms = least_ms;
	way->failures++;
	way->retry = monotime_add_ms(clock_monotime(), ms);
	apply_wake_at(a, way->retry);
}

/* What waited on it is answered or given up; whatever was known of BIRD is not any more. */
static void link_forget(struct apply *a)
{
	apply_commands_lost(a);
	link_drop(&a->reading);
	apply_read_lost(a);
	a->reading.retry = MONOTIME_NEVER;
	a->status.settled = false;
}

static void link_command_lost(void *userdata, int error, const char *text)
{
	struct apply *a = userdata;
	bool was_up = a->command.greeted;
	/* Not a BIRD at all: another program's socket, or one that speaks otherwise. */
	bool strange = error == -EBADMSG && !was_up;
	enum loss loss = link_count(a, loss_of(error));

	link_drop(&a->command);
	link_forget(a);
	if (was_up)
		a->command.failures = 0;
	if (strcmp(a->status.error, text) != 0 || a->command.failures % LINK_LOG_EVERY == 0)
		event_say(LOG_WARNING, EVENT_BIRD_AWAY,
			&(const struct event_fields){.to = loss_name(loss), .reason = text},
			"bird: away: %s", text);
	link_set_silent(a, loss_is_silence(loss));
	link_set(a, strange ? APPLY_LINK_REFUSED : APPLY_LINK_AWAY, loss, text);
	link_retry(a, &a->command, strange ? LINK_REFUSED_MS : 0);
	apply_round_soon(a);
}

static void link_reading_lost(void *userdata, int error, const char *text)
{
	struct apply *a = userdata;
	bool was_up = a->reading.greeted;
	enum loss loss = link_count(a, loss_of(error));

	link_drop(&a->reading);
	apply_read_lost(a);
	if (was_up)
		a->reading.failures = 0;
	event_say(a->reading.failures == 0 ? LOG_INFO : LOG_DEBUG, EVENT_BIRD_AWAY,
		&(const struct event_fields){.to = loss_name(loss), .reason = text},
		"bird: the reading connection was lost: %s", text);
	link_set(a, APPLY_LINK_GREETING, loss, text);
	link_retry(a, &a->reading, 0);
	apply_round_soon(a);
}

static bool link_speaks_to(const char *version)
{
	return !(version[0] == '0' || version[0] == '1') || version[1] != '.';
}

static void link_command_greeted(void *userdata, const char *version)
{
	struct apply *a = userdata;
	char text[sizeof(a->status.error)];

	(void)snprintf(a->status.version, sizeof(a->status.version), "%s", version);
	if (!link_speaks_to(version)) {
		(void)snprintf(text, sizeof(text),
			"bird: %s is a BIRD %s; 2.0.12 or newer is needed (nothing was sent to it)",
			a->socket, version);
		if (strcmp(text, a->status.error) != 0)
			event_say(LOG_ERR, EVENT_BIRD_TROUBLE, NULL, "%s", text);
		link_drop(&a->command);
		link_set(a, APPLY_LINK_REFUSED, link_count(a, LOSS_TOO_OLD), text);
		link_retry(a, &a->command, LINK_REFUSED_MS);
		return;
	}
	if (a->command.failures > 0)
		event_say(LOG_NOTICE, EVENT_BIRD_CONNECTED, NULL,
			"bird: connected to BIRD %s, after %u failed attempt%s", version,
			a->command.failures, a->command.failures == 1 ? "" : "s");
	else
		event_say(LOG_INFO, EVENT_BIRD_CONNECTED, NULL, "bird: connected to BIRD %s",
			version);
	link_set_silent(a, false);
	a->command.greeted = true;
	a->command.failures = 0;
	a->unconfirmed = a->status_wanted = true;
	a->reading.retry = MONOTIME_ZERO;
	link_set(a, APPLY_LINK_GREETING, LOSS_NONE, "");
	apply_round_soon(a);
}

static void link_reading_greeted(void *userdata, const char *version)
{
	struct apply *a = userdata;

	a->reading.greeted = true;
	a->life_unbroken = false;
	apply_read_greeted(a);
}

static void link_reading_push(void *userdata, const char *text)
{
	apply_read_push(userdata, text);
}

/* ---- the socket ---- */

static void link_on_socket(struct apply *a, const struct inotify_event *e)
{
	const char *slash = strrchr(a->socket, '/');

	if (e->len == 0 || !slash || strcmp(e->name, slash + 1) != 0 || a->command.client)
		return;
	a->command.failures = 0; /* BIRD binds before it listens: the next attempts come soon */
	a->command.retry = MONOTIME_ZERO;
	apply_round_soon(a);
}

static void link_watch_socket(struct apply *a)
{
	_cleanup_free_ char *folder = strdup(a->socket);
	char *slash = folder ? strrchr(folder, '/') : NULL;

	if ((a->socket_watch.apply && !a->socket_watch.lost) || !slash || slash == folder)
		return;
	*slash = '\0';
	/* A missing folder is no trouble: there is the back-off. */
	(void)apply_watch_start(a, &a->socket_watch, folder, IN_CREATE | IN_MOVED_TO,
		link_on_socket, "bird-socket");
}

/* Not even an attempt was possible: no descriptors, no memory, a path that is no socket's. */
static void link_cannot(struct apply *a, struct apply_way *way, int error)
{
	char text[sizeof(a->status.error)];

	(void)snprintf(text, sizeof(text), "bird: connect: %s", strerror(-error));
	if (way->failures == 0)
		event_say(LOG_ERR, EVENT_BIRD_TROUBLE, NULL, "%s", text);
	link_set(a, way == &a->command ? APPLY_LINK_AWAY : APPLY_LINK_GREETING,
		link_count(a, LOSS_FAILED), text);
	link_retry(a, way, 0);
}

static void link_connect(struct apply *a, struct apply_way *way, const struct client_ops *ops)
{
	int r;

	way->retry = MONOTIME_NEVER;
	r = a->birdc ? client_new_birdc(&way->client, a->event, a->socket, ops)
		     : client_new_socket(&way->client, a->event, a->socket, ops);
	if (r < 0) {
		way->client = NULL;
		link_cannot(a, way, r);
	}
}

void apply_link_round(struct apply *a)
{
	const struct client_ops command = {
		.greeted = link_command_greeted, .lost = link_command_lost, .userdata = a};
	const struct client_ops reading = {.greeted = link_reading_greeted,
		.lost = link_reading_lost,
		.push = link_reading_push,
		.userdata = a};
	struct monotime now = clock_monotime();

	if (!a->started)
		return;
	if (!a->command.client && monotime_reached(a->command.retry, now)) {
		link_watch_socket(a);
		link_connect(a, &a->command, &command);
	}
	if (a->command.greeted && !a->reading.client && monotime_reached(a->reading.retry, now))
		link_connect(a, &a->reading, &reading);
	if (!a->command.client)
		apply_wake_at(a, a->command.retry);
	else if (!a->reading.client)
		apply_wake_at(a, a->reading.retry);
}

/* The first observation of a connection is complete. */
void apply_link_observed(struct apply *a)
{
	if (a->observed_once)
		return;
	a->observed_once = true;
	a->reading.failures = 0;
	advise_connected(a->advise, a->reading.client);
	link_set(a, APPLY_LINK_UP, LOSS_NONE, "");
	apply_become_ready(a, true);
}

int apply_link_start(struct apply *a)
{
	a->command.retry = MONOTIME_ZERO;
	a->reading.retry = MONOTIME_NEVER;
	apply_round_soon(a);
	return 0;
}

void apply_link_stop(struct apply *a)
{
	link_drop(&a->command);
	link_drop(&a->reading);
	apply_drop_jobs(a);
	apply_commands_lost(a);
	apply_watch_stop(&a->socket_watch);
	apply_watch_stop(&a->folder_watch);
	apply_watch_stop(&a->refused_watch);
}
