/* The families about neighbours: a series for each neighbour, or one for the endpoint. */
#include "agent/status/metrics_neighbours.h"

#include "agent/base/clock.h"

/* One sample for each neighbour of which `value` is known. */
static void each(struct metrics_writer *w, const struct neighbours *n,
	bool (*value)(const struct neighbours_view *v, struct monotime now, uint64_t *ret),
	bool is_time)
{
	struct monotime now = clock_monotime();
	struct neighbours_view v;
	uint64_t x = 0;

	for (size_t i = 0; i < neighbours_count(n); i++) {
		neighbours_view(n, i, now, &v);
		if (!value(&v, now, &x))
			continue;
		metrics_labels_clear(w);
		metrics_label(w, "neighbour", v.name);
		if (is_time)
			metrics_sample_us(w, x);
		else
			metrics_sample(w, NULL, NULL, x);
	}
}

static bool fresh(const struct neighbours_view *v, struct monotime now, uint64_t *ret)
{
	*ret = v->state == NEIGHBOURS_FRESH;
	return true;
}

static bool age(const struct neighbours_view *v, struct monotime now, uint64_t *ret)
{
	*ret = monotime_since_us(v->asked, now);
	return v->report != NULL;
}

static bool reports(const struct neighbours_view *v, struct monotime now, uint64_t *ret)
{
	*ret = v->n_reports;
	return true;
}

static bool failures(const struct neighbours_view *v, struct monotime now, uint64_t *ret)
{
	*ret = v->n_failures;
	return true;
}

void metrics_neighbours_fresh(struct metrics_writer *w, const struct neighbours *n)
{
	each(w, n, fresh, false);
}

void metrics_neighbours_age(struct metrics_writer *w, const struct neighbours *n)
{
	each(w, n, age, true);
}

void metrics_neighbours_reports(struct metrics_writer *w, const struct neighbours *n)
{
	each(w, n, reports, false);
}

void metrics_neighbours_failures(struct metrics_writer *w, const struct neighbours *n)
{
	each(w, n, failures, false);
}

void metrics_neighbours_refused(struct metrics_writer *w, const struct neighbours *n)
{
	struct neighbours_totals t;

	neighbours_totals(n, &t);
	metrics_labels_clear(w);
	for (unsigned i = PINS_WELCOME + 1; i < PINS_REFUSALS; i++)
		metrics_sample(
			w, "reason", pins_refusal_name((enum pins_refusal)i), t.server.refused[i]);
	metrics_sample(w, "reason", "turned_away", t.server.turned_away);
}

void metrics_neighbours_requests(struct metrics_writer *w, const struct neighbours *n)
{
	struct neighbours_totals t;

	neighbours_totals(n, &t);
	metrics_labels_clear(w);
	for (unsigned i = 0; i < SERVER_REQUESTS; i++)
		metrics_sample(w, "result", server_request_name((enum server_request)i),
			t.server.requests[i]);
}

void metrics_neighbours_connections(struct metrics_writer *w, const struct neighbours *n)
{
	struct neighbours_totals t;

	neighbours_totals(n, &t);
	metrics_sample(w, NULL, NULL, t.server.open);
}

void metrics_neighbours_cpu(struct metrics_writer *w, const struct neighbours *n)
{
	struct neighbours_totals t;

	neighbours_totals(n, &t);
	metrics_sample_us(w, t.thread_cpu_us);
}

void metrics_neighbours_expires(struct metrics_writer *w, const struct neighbours *n)
{
	struct neighbours_totals t;

	neighbours_totals(n, &t);
	if (t.certificate_expires.us > 0)
		metrics_sample_us(w, (uint64_t)t.certificate_expires.us);
}

void metrics_neighbours_error(struct metrics_writer *w, const struct neighbours *n)
{
	struct neighbours_totals t;

	neighbours_totals(n, &t);
	metrics_sample(w, NULL, NULL, t.error[0] != '\0');
}
