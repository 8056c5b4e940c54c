/*
 * The metrics as documents that are shared: which of the two formats a scraper gets, and what the
 * renders of both of them cost, which the metrics themselves tell.
 */
#include "agent/status/scrape.h"

#include <errno.h>
#include <stdlib.h>

struct scrape_document {
	struct scrape *scrape;
	enum metrics_format format;
	struct shared *shared;
	struct metrics_render render;
	bool rendering;
};

struct scrape {
	struct scrape_ops ops;
	struct scrape_document documents[METRICS_FORMATS];
};

static void scrape_facts(const struct scrape *s, struct metrics_facts *ret)
{
	*ret = (struct metrics_facts){0};
	s->ops.facts(s->ops.userdata, ret);
	for (size_t f = 0; f < METRICS_FORMATS; f++) {
		ret->renders += shared_renders(s->documents[f].shared);
		ret->render_us += shared_render_us(s->documents[f].shared);
	}
}

static void document_end(struct scrape_document *d)
{
	if (d->rendering)
		metrics_done(&d->render);
	d->rendering = false;
}

static void on_begin(void *userdata)
{
	struct scrape_document *d = userdata;
	struct metrics_facts facts;

	document_end(d);
	scrape_facts(d->scrape, &facts);
	metrics_begin(&d->render, d->format, facts.document.generation);
	d->rendering = true;
}

static int on_step(void *userdata, uint64_t budget_us, char **ret_text, size_t *ret_length)
{
	struct scrape_document *d = userdata;
	struct metrics_facts facts;
	int r;

	scrape_facts(d->scrape, &facts);
	r = metrics_step(&d->render, &facts, budget_us, ret_text, ret_length);
	if (r <= 0)
		document_end(d);
	return r;
}

static void on_resumed(void *userdata)
{
	const struct scrape_document *d = userdata;

	d->scrape->ops.resumed(d->scrape->ops.userdata);
}

enum shared_answer scrape_ask(
	struct scrape *s, struct MHD_Connection *connection, struct MHD_Response **ret)
{
	enum metrics_format format = metrics_negotiate(
		MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT));

	return s->ops.facts ? shared_ask(s->documents[format].shared, connection, ret)
			    : SHARED_FAILED;
}

void scrape_forget(struct scrape *s, const struct MHD_Connection *connection)
{
	for (size_t f = 0; f < METRICS_FORMATS; f++)
		shared_forget(s->documents[f].shared, connection);
}

void scrape_resume_all(struct scrape *s)
{
	if (!s)
		return;
	for (size_t f = 0; f < METRICS_FORMATS; f++)
		shared_resume_all(s->documents[f].shared);
}

void scrape_free(struct scrape *s)
{
	if (!s)
		return;
	for (size_t f = 0; f < METRICS_FORMATS; f++) {
		document_end(&s->documents[f]);
		shared_free(s->documents[f].shared);
	}
	free(s);
}

int scrape_new(struct scrape **ret, sd_event *event, int64_t priority, const struct scrape_ops *ops)
{
	struct scrape *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->ops = *ops;
	for (size_t f = 0; f < METRICS_FORMATS; f++) {
		struct scrape_document *d = &s->documents[f];
		const struct shared_ops shared_ops = {
			.name = "metrics",
			.content_type = metrics_content_type((enum metrics_format)f),
			.fresh_ms = SCRAPE_FRESH_MS,
			.begin = on_begin,
			.step = on_step,
			.resumed = on_resumed,
			.userdata = d,
		};
		int r;

		d->scrape = s;
		d->format = (enum metrics_format)f;
		r = shared_new(&d->shared, event, priority, &shared_ops);
		if (r < 0) {
			scrape_free(s);
			return r;
		}
	}
	*ret = s;
	return 0;
}
