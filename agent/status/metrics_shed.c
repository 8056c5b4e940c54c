/* The families about shedding: a series for the server, for each neighbour, for each prefix. */
#include "agent/status/metrics_shed.h"

#include "agent/base/clock.h"
#include "agent/neighbour/neighbour.h"

#define BP_US 100 /* a basis point of one, as metrics_sample_us() has it: millionths */

/* False where nothing is to be told. */
static bool server_of(const struct document_facts *f, struct shed_server *ret)
{
	if (!f->neighbours || !f->shed_server)
		return false;
	f->shed_server(f->userdata, ret);
	return true;
}

void metrics_shed_prefixes(struct metrics_writer *w, const struct document_facts *f)
{
	struct shed_server s;

	if (server_of(f, &s))
		metrics_sample(w, NULL, NULL, s.n_out);
}

void metrics_shed_want(struct metrics_writer *w, const struct document_facts *f)
{
	struct shed_server s;

	if (server_of(f, &s))
		metrics_sample(w, NULL, NULL, s.want);
}

void metrics_shed_spare(struct metrics_writer *w, const struct document_facts *f)
{
	struct shed_server s;

	if (server_of(f, &s))
		metrics_sample(w, NULL, NULL, s.spare);
}

void metrics_shed_hot(struct metrics_writer *w, const struct document_facts *f)
{
	struct shed_server s;

	if (server_of(f, &s))
		metrics_sample(w, NULL, NULL, s.n_hot);
}

void metrics_shed_alarm(struct metrics_writer *w, const struct document_facts *f)
{
	struct shed_server s;

	if (server_of(f, &s))
		metrics_sample(w, NULL, NULL, s.alarm);
}

void metrics_shed_sheds(struct metrics_writer *w, const struct document_facts *f)
{
	struct shed_server s;

	if (server_of(f, &s))
		metrics_sample(w, NULL, NULL, s.n_sheds);
}

void metrics_shed_restores(struct metrics_writer *w, const struct document_facts *f)
{
	struct shed_server s;

	if (server_of(f, &s))
		metrics_sample(w, NULL, NULL, s.n_restores);
}

void metrics_shed_grants(struct metrics_writer *w, const struct document_facts *f)
{
	struct shed_server s;

	if (!server_of(f, &s))
		return;
	metrics_sample(w, "result", "granted", s.n_granted);
	metrics_sample(w, "result", "refused", s.n_refused);
}

/* One sample for each neighbour whose report is fresh and of which `value` is known. */
static void each(struct metrics_writer *w, const struct neighbours *n,
	bool (*value)(const struct message_report *r, uint64_t *ret), bool is_part)
{
	struct monotime now = clock_monotime();
	struct neighbours_view v;
	uint64_t x = 0;

	for (size_t i = 0; n && i < neighbours_count(n); i++) {
		neighbours_view(n, i, now, &v);
		if (v.state != NEIGHBOURS_FRESH || !value(v.report, &x))
			continue;
		metrics_labels_clear(w);
		metrics_label(w, "neighbour", v.name);
		if (is_part)
			metrics_sample_us(w, x * BP_US);
		else
			metrics_sample(w, NULL, NULL, x);
	}
}

static bool utilisation(const struct message_report *r, uint64_t *ret)
{
	*ret = r->utilisation_bp;
	return r->utilisation_known;
}

static bool spare(const struct message_report *r, uint64_t *ret)
{
	*ret = r->spare;
	return true;
}

static bool willing(const struct message_report *r, uint64_t *ret)
{
	*ret = r->willing;
	return true;
}

static bool want(const struct message_report *r, uint64_t *ret)
{
	*ret = r->want;
	return true;
}

void metrics_shed_neighbour_utilisation(struct metrics_writer *w, const struct document_facts *f)
{
	each(w, f->neighbours, utilisation, true);
}

void metrics_shed_neighbour_spare(struct metrics_writer *w, const struct document_facts *f)
{
	each(w, f->neighbours, spare, false);
}

void metrics_shed_neighbour_willing(struct metrics_writer *w, const struct document_facts *f)
{
	each(w, f->neighbours, willing, false);
}

void metrics_shed_neighbour_want(struct metrics_writer *w, const struct document_facts *f)
{
	each(w, f->neighbours, want, false);
}

void metrics_shed_prefix(
	struct metrics_writer *w, const struct document_facts *f, size_t service, size_t prefix)
{
	struct shed_prefix view;

	if (f->neighbours && f->shed && f->shed(f->userdata, service, prefix, &view))
		metrics_sample(w, NULL, NULL, view.out);
}
