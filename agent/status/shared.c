/*
 * The render runs from a deferred source that stays on until it is through. Between two slices the
 * loop looks at everything else first, so a death waits for one slice at most. After a document
 * comes a rest (pace.h): however many ask without end, a tenth of the loop is what they get.
 *
 * A suspended connection is resumed when its document lies there; libmicrohttpd then calls the
 * handler of the request again, which finds it due. A failure is remembered as long as a document
 * would be, so that nobody waits twice.
 */
#include "agent/status/shared.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/clock.h"
#include "agent/status/pace.h"
#include "agent/system/log.h"

#define SHARED_SLICE_US 500
#define SHARED_REST_MAX_US 200000

enum place_state {
	PLACE_FREE,
	PLACE_WAITS, /* for a document that has not begun */
	PLACE_UNDER, /* for the one that is being rendered */
	PLACE_DUE,   /* resumed: gets the newest, or its failure */
};

struct shared_place {
	enum place_state state;
	struct MHD_Connection *connection;
};

struct shared {
	struct shared_ops ops;
	sd_event_source *render_source; /* deferred: on while something is rendered */
	sd_event_source *begin_source;	/* a time: when the next one may begin */
	struct pace pace;
	struct monotime rests_until;
	struct MHD_Response *newest; /* our reference; NULL: there is none, or it failed */
	struct monotime fresh_until; /* of `newest`, or of its failure */
	uint64_t took_us;	     /* of the one that is being rendered */
	struct shared_place places[SHARED_WAITING_MAX];
	unsigned alive;
	uint64_t renders, render_us;
};

/* The body of one response; freed by libmicrohttpd with its last reader. */
struct shared_document {
	struct shared *shared;
	char *text;
};

static void document_free(void *userdata)
{
	struct shared_document *d = userdata;

	assert(d->shared->alive > 0);
	d->shared->alive--;
	free(d->text);
	free(d);
}

/* Takes `text` over. NULL without memory. */
static struct MHD_Response *make_response(struct shared *s, char *text, size_t length)
{
	struct shared_document *d = calloc(1, sizeof(*d));
	struct MHD_Response *response = NULL;

	if (d) {
		*d = (struct shared_document){s, text};
		response = MHD_create_response_from_buffer_with_free_callback_cls(
			length, text, document_free, d);
	}
	if (!response) {
		free(text);
		free(d);
		return NULL;
	}
	s->alive++;
	if (MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, s->ops.content_type) ==
			MHD_YES &&
		MHD_add_response_header(response, MHD_HTTP_HEADER_VARY, "Accept") == MHD_YES &&
		MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store") ==
			MHD_YES &&
		MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close") == MHD_YES)
		return response;
	MHD_destroy_response(response);
	return NULL;
}

/* --- who asks --- */

static struct shared_place *place_of(struct shared *s, const struct MHD_Connection *connection)
{
	for (size_t i = 0; i < SHARED_WAITING_MAX; i++)
		if (s->places[i].state != PLACE_FREE && s->places[i].connection == connection)
			return &s->places[i];
	return NULL;
}

static struct shared_place *place_free(struct shared *s)
{
	for (size_t i = 0; i < SHARED_WAITING_MAX; i++)
		if (s->places[i].state == PLACE_FREE)
			return &s->places[i];
	return NULL;
}

static bool is_any(const struct shared *s, enum place_state state)
{
	for (size_t i = 0; i < SHARED_WAITING_MAX; i++)
		if (s->places[i].state == state)
			return true;
	return false;
}

static void places_move(struct shared *s, enum place_state from, enum place_state to)
{
	for (size_t i = 0; i < SHARED_WAITING_MAX; i++) {
		if (s->places[i].state != from)
			continue;
		s->places[i].state = to;
		if (to == PLACE_DUE)
			MHD_resume_connection(s->places[i].connection);
	}
}

void shared_resume_all(struct shared *s)
{
	if (!s)
		return;
	places_move(s, PLACE_UNDER, PLACE_DUE);
	places_move(s, PLACE_WAITS, PLACE_DUE);
}

void shared_forget(struct shared *s, const struct MHD_Connection *connection)
{
	struct shared_place *place = place_of(s, connection);

	if (place)
		*place = (struct shared_place){.state = PLACE_FREE};
}

/* --- the render --- */

/* Lets the next document begin when somebody waits for it and the rest is over. */
static int arm_begin(struct shared *s)
{
	int r;

	r = sd_event_source_set_time(s->begin_source, s->rests_until.us);
	return r < 0 ? r : sd_event_source_set_enabled(s->begin_source, SD_EVENT_ONESHOT);
}

/* `response`: NULL where it failed. */
static void render_end(struct shared *s, struct MHD_Response *response)
{
	struct monotime now = clock_monotime();
	uint64_t rest_us = pace_rest_us(&s->pace, now, s->took_us, SHARED_REST_MAX_US);

	(void)sd_event_source_set_enabled(s->render_source, SD_EVENT_OFF);
	if (s->newest)
		MHD_destroy_response(s->newest);
	s->newest = response;
	s->fresh_until = monotime_add_ms(now, s->ops.fresh_ms);
	s->rests_until = (struct monotime){now.us + rest_us};
	s->renders++;
	places_move(s, PLACE_UNDER, PLACE_DUE);
	if (s->ops.fresh_ms > 0)
		places_move(s, PLACE_WAITS, PLACE_DUE);
	if (is_any(s, PLACE_WAITS) && arm_begin(s) < 0)
		places_move(s, PLACE_WAITS, PLACE_DUE); /* an older one is better than none */
	s->ops.resumed(s->ops.userdata);
}

static int on_render(sd_event_source *source, void *userdata)
{
	struct shared *s = userdata;
	struct monotime began = clock_monotime();
	uint64_t began_us = clock_cpu_us();
	char *text = NULL;
	size_t length = 0;
	int r = s->ops.step(s->ops.userdata, SHARED_SLICE_US, &text, &length);

	s->took_us += clock_cpu_us() - began_us;
	s->render_us += monotime_since_us(began, clock_monotime());
	if (r > 0)
		return 0;
	if (r < 0)
		log_warning("status: %s: %s", s->ops.name, strerror(-r));
	render_end(s, r < 0 ? NULL : make_response(s, text, length));
	return 0;
}

static int on_begin(sd_event_source *source, uint64_t us, void *userdata)
{
	struct shared *s = userdata;

	if (!is_any(s, PLACE_WAITS)) /* they went away */
		return 0;
	places_move(s, PLACE_WAITS, PLACE_UNDER);
	s->took_us = 0;
	if (s->ops.begin)
		s->ops.begin(s->ops.userdata);
	(void)sd_event_source_set_enabled(s->render_source, SD_EVENT_ON);
	return 0;
}

static bool is_rendering(const struct shared *s)
{
	int on = SD_EVENT_OFF;

	return sd_event_source_get_enabled(s->render_source, &on) > 0;
}

enum shared_answer shared_ask(
	struct shared *s, struct MHD_Connection *connection, struct MHD_Response **ret)
{
	struct shared_place *place = place_of(s, connection);
	bool due = place && place->state == PLACE_DUE;

	assert(!place || due);
	if (due)
		*place = (struct shared_place){.state = PLACE_FREE};
	if (due || !monotime_reached(s->fresh_until, clock_monotime()) ||
		s->alive >= SHARED_DOCUMENTS_MAX) {
		*ret = s->newest;
		return s->newest ? SHARED_READY : SHARED_FAILED;
	}
	place = place_free(s);
	if (!place || (!is_rendering(s) && arm_begin(s) < 0))
		return SHARED_FAILED;
	*place = (struct shared_place){PLACE_WAITS, connection};
	MHD_suspend_connection(connection);
	return SHARED_SUSPENDED;
}

/* --- life --- */

uint64_t shared_renders(const struct shared *s)
{
	return s->renders;
}

uint64_t shared_render_us(const struct shared *s)
{
	return s->render_us;
}

void shared_free(struct shared *s)
{
	if (!s)
		return;
	sd_event_source_disable_unref(s->render_source);
	sd_event_source_disable_unref(s->begin_source);
	if (s->newest)
		MHD_destroy_response(s->newest);
	free(s);
}

static int add_sources(struct shared *s, sd_event *event, int64_t priority)
{
	int r;

	r = sd_event_add_defer(event, &s->render_source, on_render, s);
	if (r < 0)
		return r;
	(void)sd_event_source_set_enabled(s->render_source, SD_EVENT_OFF);
	(void)sd_event_source_set_description(s->render_source, s->ops.name);
	r = sd_event_source_set_priority(s->render_source, priority);
	if (r < 0)
		return r;
	r = sd_event_add_time(event, &s->begin_source, CLOCK_BOOTTIME, UINT64_MAX, 1, on_begin, s);
	if (r < 0)
		return r;
	(void)sd_event_source_set_enabled(s->begin_source, SD_EVENT_OFF);
	(void)sd_event_source_set_description(s->begin_source, s->ops.name);
	return sd_event_source_set_priority(s->begin_source, priority);
}

int shared_new(struct shared **ret, sd_event *event, int64_t priority, const struct shared_ops *ops)
{
	struct shared *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->ops = *ops;
	r = add_sources(s, event, priority);
	if (r < 0) {
		shared_free(s);
		return r;
	}
	*ret = s;
	return 0;
}
