/*
 * The neighbours in the status document: who they are, what each last said, and who was turned
 * away. What a neighbour says is its own word, and as old as `asked`; whether it counts is `state`.
 */
#include "agent/neighbour/neighbour.h"
#include "agent/status/document_private.h"

static void put_report(struct json_writer *w, const struct message_report *r)
{
	json_open_object(w, "report");
	json_write_number(w, "version", r->version);
	if (r->utilisation_known)
		json_write_number(w, "utilisation", r->utilisation_bp);
	else
		json_write_null(w, "utilisation");
	json_write_number(w, "capacity", r->capacity);
	if (r->load_known)
		json_write_number(w, "load", r->load);
	else
		json_write_null(w, "load");
	json_write_bool(w, "willing", r->willing);
	json_write_number(w, "spare", r->spare);
	json_write_number(w, "want", r->want);
	json_write_number(w, "sheds", r->n_sheds);
	json_write_number(w, "prefixes", r->n_prefixes);
	json_close(w);
}

static void put_member(struct document *d, const struct neighbours_view *v)
{
	struct json_writer *w = &d->json;

	json_open_object(w, v->name);
	json_write_string(w, "address", v->address);
	json_write_string(w, "from", v->of_file ? "file" : "members");
	json_write_string(w, "state", neighbours_state_name(v->state));
	document_put_time(d, "asked", v->report ? v->asked : MONOTIME_NEVER);
	json_write_string(w, "error", document_null_if_empty(v->error));
	json_write_number(w, "reports", v->n_reports);
	json_write_number(w, "failures", v->n_failures);
	if (v->report)
		put_report(w, v->report);
	else
		json_write_null(w, "report");
	json_close(w);
}

static void put_refused(struct json_writer *w, const struct server_counts *c)
{
	json_open_object(w, "refused");
	for (unsigned i = PINS_WELCOME + 1; i < PINS_REFUSALS; i++)
		json_write_number(w, pins_refusal_name((enum pins_refusal)i), c->refused[i]);
	json_write_number(w, "turned_away", c->turned_away);
	json_close(w);
}

void document_put_neighbours(struct document *d)
{
	const struct neighbours *n = d->facts->neighbours;
	struct json_writer *w = &d->json;
	struct neighbours_totals totals;
	struct neighbours_view view;
	char text[CLOCK_TEXT_MAX];

	if (!n) {
		json_write_null(w, "neighbours");
		return;
	}
	neighbours_totals(n, &totals);
	json_open_object(w, "neighbours");
	json_write_string(w, "error", document_null_if_empty(totals.error));
	json_write_string(w, "warning", document_null_if_empty(totals.warning));
	json_write_string(w, "certificate_expires",
		totals.certificate_expires.us > 0 ? clock_format(totals.certificate_expires, text)
						  : NULL);
	json_write_number(w, "connections", totals.server.open);
	put_refused(w, &totals.server);
	json_open_object(w, "members");
	for (size_t i = 0; i < neighbours_count(n); i++) {
		neighbours_view(n, i, d->now, &view);
		put_member(d, &view);
	}
	json_close(w);
	json_close(w);
}
