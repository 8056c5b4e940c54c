/*
 * The render runs from a deferred source that stays on until it is through. Between two slices the
 * loop looks at everything else first, so a death waits for one slice at most.
 *
 * A suspended connection is resumed when the document lies there; libmicrohttpd then calls the
 * handler of the request again, which finds it fresh. A failure is remembered as long as a document
 * would be, so that nobody waits twice.
 */
#include "agent/status/scrape.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "agent/base/clock.h"
#include "agent/system/log.h"

#define SCRAPE_SLICE_US 500

struct scrape_slot {
	struct MHD_Response *newest; /* our reference, or NULL */
	struct monotime fresh_until; /* of `newest`, or of its failure */
	bool wanted;
};

struct scrape {
	struct scrape_ops ops;
	sd_event_source *source;
	struct scrape_slot slots[METRICS_FORMATS];
	struct metrics_render render;
	bool rendering;
	struct MHD_Connection *waiting[SCRAPE_WAITING_MAX];
	size_t n_waiting;
	unsigned alive;
	uint64_t renders, render_us;
};

/* The body of one response; freed by libmicrohttpd with its last reader. */
struct scrape_document {
	struct scrape *scrape;
	char *text;
};

static void document_free(void *userdata)
{
	struct scrape_document *d = userdata;

	assert(d->scrape->alive > 0);
	d->scrape->alive--;
	free(d->text);
	free(d);
}

/* Takes `text` over. NULL without memory. */
static struct MHD_Response *make_response(
	struct scrape *s, enum metrics_format format, char *text, size_t length)
{
	struct scrape_document *d = calloc(1, sizeof(*d));
	struct MHD_Response *response = NULL;

	if (d) {
		*d = (struct scrape_document){s, text};
		response = MHD_create_response_from_buffer_with_free_callback_cls(
			length, text, document_free, d);
	}
	if (!response) {
		free(text);
		free(d);
		return NULL;
	}
	s->alive++;
	if (MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
		    metrics_content_type(format)) == MHD_YES &&
		MHD_add_response_header(response, MHD_HTTP_HEADER_VARY, "Accept") == MHD_YES &&
		MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store") ==
			MHD_YES &&
		MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close") == MHD_YES)
		return response;
	MHD_destroy_response(response);
	return NULL;
}

/* Every waiting connection asks again; those whose format is not there yet wait again. */
void scrape_resume_all(struct scrape *s)
{
	size_t n = s->n_waiting;

	s->n_waiting = 0;
	for (size_t i = 0; i < n; i++)
		MHD_resume_connection(s->waiting[i]);
}

static void render_end(struct scrape *s, struct MHD_Response *response)
{
	struct scrape_slot *slot = &s->slots[s->render.writer.format];

	metrics_done(&s->render);
	s->rendering = false;
	if (slot->newest)
		MHD_destroy_response(slot->newest);
	slot->newest = response;
	slot->fresh_until = monotime_add_ms(clock_monotime(), SCRAPE_FRESH_MS);
	slot->wanted = false;
	s->renders++;
	scrape_resume_all(s);
	s->ops.resumed(s->ops.userdata);
}

static void render_slice(struct scrape *s)
{
	struct metrics_facts facts = {0};
	char *text = NULL;
	size_t length = 0;
	int r;

	s->ops.facts(s->ops.userdata, &facts);
	facts.renders = s->renders;
	facts.render_us = s->render_us;
	r = metrics_step(&s->render, &facts, SCRAPE_SLICE_US, &text, &length);
	if (r > 0)
		return;
	if (r < 0)
		log_warning("status: metrics: %s", strerror(-r));
	render_end(s, r < 0 ? NULL : make_response(s, s->render.writer.format, text, length));
}

static int on_defer(sd_event_source *source, void *userdata)
{
	struct scrape *s = userdata;
	struct monotime began = clock_monotime();
	struct metrics_facts facts = {0};

	for (int f = 0; f < METRICS_FORMATS && !s->rendering; f++) {
		if (!s->slots[f].wanted)
			continue;
		s->ops.facts(s->ops.userdata, &facts);
		metrics_begin(&s->render, (enum metrics_format)f, facts.generation);
		s->rendering = true;
	}
	if (!s->rendering) {
		(void)sd_event_source_set_enabled(s->source, SD_EVENT_OFF);
		return 0;
	}
	render_slice(s);
	s->render_us += monotime_since_us(began, clock_monotime());
	return 0;
}

static bool is_fresh(const struct scrape_slot *slot)
{
	return !monotime_reached(slot->fresh_until, clock_monotime());
}

enum scrape_answer scrape_ask(
	struct scrape *s, struct MHD_Connection *connection, struct MHD_Response **ret)
{
	enum metrics_format format = metrics_negotiate(
		MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT));
	struct scrape_slot *slot = &s->slots[format];

	if (!s->ops.facts)
		return SCRAPE_FAILED;
	if (is_fresh(slot) || s->alive >= SCRAPE_DOCUMENTS_MAX) {
		*ret = slot->newest;
		return slot->newest ? SCRAPE_READY : SCRAPE_FAILED;
	}
	if (s->n_waiting == SCRAPE_WAITING_MAX ||
		sd_event_source_set_enabled(s->source, SD_EVENT_ON) < 0)
		return SCRAPE_FAILED;
	slot->wanted = true;
	s->waiting[s->n_waiting++] = connection;
	MHD_suspend_connection(connection);
	return SCRAPE_SUSPENDED;
}

void scrape_free(struct scrape *s)
{
	if (!s)
		return;
	sd_event_source_disable_unref(s->source);
	for (size_t f = 0; f < METRICS_FORMATS; f++)
		if (s->slots[f].newest)
			MHD_destroy_response(s->slots[f].newest);
	if (s->rendering)
		metrics_done(&s->render);
	free(s);
}

int scrape_new(struct scrape **ret, sd_event *event, int64_t priority, const struct scrape_ops *ops)
{
	struct scrape *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->ops = *ops;
	r = sd_event_add_defer(event, &s->source, on_defer, s);
	if (r >= 0)
		r = sd_event_source_set_enabled(s->source, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_source_set_priority(s->source, priority);
	if (r < 0) {
		scrape_free(s);
		return r;
	}
	(void)sd_event_source_set_description(s->source, "status-metrics");
	*ret = s;
	return 0;
}
