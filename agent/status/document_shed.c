/*
 * Shedding in the documents: the server as a whole, and each prefix with what stands in its way,
 * who has promised and until when. docs/status.md has the keys, docs/shedding.md the words. Only
 * where neighbours are configured; else null.
 */
#include <string.h>

#include "agent/neighbour/neighbour.h"
#include "agent/status/document_private.h"

/* Of shedding zero is never, too. */
static void put_time(struct document *d, const char *key, struct monotime t)
{
	document_put_time(d, key, t.us == 0 ? MONOTIME_NEVER : t);
}

/* NULL: nobody, or one who is configured no more. */
static const char *neighbour_name(const struct document *d, size_t index)
{
	const struct neighbours *n = d->facts->neighbours;

	return n && index < neighbours_count(n) ? neighbours_name(n, index) : NULL;
}

static void put_settings(struct json_writer *w, const struct config *config)
{
	const struct shed_settings s = config_shed_settings(config);

	json_write_bool(w, "enabled", s.enabled);
	json_write_bool(w, "receive", s.receive);
	json_write_string(w, "mode", shed_mode_name(s.mode));
	json_write_number(w, "hot", s.hot_bp);
	json_write_number(w, "accept", s.accept_bp);
	json_write_number(w, "target", s.target_bp);
	json_write_number(w, "release", s.release_bp);
}

void document_put_shed_server(struct document *d)
{
	const struct document_facts *f = d->facts;
	struct json_writer *w = &d->json;
	struct shed_server s;

	if (!f->neighbours || !f->shed_server) {
		json_write_null(w, "shed");
		return;
	}
	f->shed_server(f->userdata, &s);
	json_open_object(w, "shed");
	put_settings(w, f->config);
	json_write_string(w, "why", shed_why_name(s.why));
	if (s.valid)
		json_write_number(w, "utilisation", s.utilisation_bp);
	else
		json_write_null(w, "utilisation");
	json_write_number(w, "want", s.want);
	json_write_number(w, "spare", s.spare);
	json_write_number(w, "out", s.n_out);
	json_write_number(w, "neighbours", neighbours_count(f->neighbours));
	json_write_number(w, "neighbours_fresh", s.n_fresh);
	json_write_number(w, "neighbours_hot", s.n_hot);
	json_write_number(w, "sheds", s.n_sheds);
	json_write_number(w, "restores", s.n_restores);
	json_write_number(w, "granted", s.n_granted);
	json_write_number(w, "refused", s.n_refused);
	json_write_bool(w, "alarm", s.alarm);
	json_close(w);
}

/* ---- one prefix ---- */

static void put_word(struct document *d, size_t service, size_t index)
{
	const struct config_prefix *p = &d->facts->config->services[service].prefixes[index];
	const struct words *words = d->facts->words;
	struct json_writer *w = &d->json;
	const struct word *word = NULL;
	char name[PREFIX_TEXT_MAX];

	if (words && words->n > 0) {
		(void)prefix_format(&p->prefix, name);
		word = words_find(words, WORD_UNSHED, name);
		if (!word)
			word = words_find(words, WORD_SHED, name);
	}
	if (!word) {
		json_write_null(w, "word");
		return;
	}
	json_open_object(w, "word");
	json_write_string(w, "word", word->kind == WORD_SHED ? "shed" : "unshed");
	document_put_word(w, word);
	json_close(w);
}

static void put_promises(struct document *d, size_t service, size_t index)
{
	const struct document_facts *f = d->facts;
	struct json_writer *w = &d->json;
	struct shed_promise p;

	json_open_array(w, "promises");
	for (size_t i = 0; f->promise && f->promise(f->userdata, service, index, i, &p); i++) {
		json_open_object(w, NULL);
		json_write_string(w, "neighbour", neighbour_name(d, p.neighbour));
		json_write_bool(w, "given", p.given);
		json_write_string(w, "purpose", shed_purpose_name(p.purpose));
		json_write_number(w, "share", p.share);
		json_write_string(w, "refused",
			p.refused == SHED_REFUSAL_NONE ? NULL : shed_refusal_name(p.refused));
		put_time(d, "until", p.until);
		json_close(w);
	}
	json_close(w);
}

/* What a report says of the prefix. They are in the order of their bytes, and explained is one
 * prefix at a time, or a service: not worth a search of halves. */
static const struct message_prefix *find_reported(
	const struct message_report *report, const struct prefix *prefix)
{
	for (size_t i = 0; report && i < report->n_prefixes; i++)
		if (prefix_equal(&report->prefixes[i].prefix, prefix))
			return &report->prefixes[i];
	return NULL;
}

static void put_others(struct document *d, size_t service, size_t index)
{
	const struct prefix *prefix = &d->facts->config->services[service].prefixes[index].prefix;
	const struct neighbours *n = d->facts->neighbours;
	struct json_writer *w = &d->json;
	struct neighbours_view view;

	json_open_array(w, "neighbours");
	for (size_t i = 0; i < neighbours_count(n); i++) {
		const struct message_prefix *p;

		neighbours_view(n, i, d->now, &view);
		p = find_reported(view.report, prefix);
		if (!p)
			continue;
		json_open_object(w, NULL);
		json_write_string(w, "neighbour", view.name);
		json_write_string(w, "report", neighbours_state_name(view.state));
		json_write_string(w, "state", shed_state_name(p->state));
		if (p->weight_known)
			json_write_number(w, "weight", p->weight);
		else
			json_write_null(w, "weight");
		json_write_bool(w, "willing", view.report->willing);
		json_write_number(w, "spare", view.report->spare);
		json_close(w);
	}
	json_close(w);
}

void document_put_shed(struct document *d, size_t service, size_t index, bool whole)
{
	const struct document_facts *f = d->facts;
	const struct config_service *s = &f->config->services[service];
	struct json_writer *w = &d->json;
	struct shed_prefix view;

	if (!f->neighbours || !f->shed || !f->shed(f->userdata, service, index, &view)) {
		json_write_null(w, "shed");
		return;
	}
	json_open_object(w, "shed");
	json_write_bool(w, "out", view.out);
	json_write_string(w, "mode", shed_mode_name(view.mode));
	json_write_string(w, "why", shed_why_name(view.why));
	put_time(d, "since", view.since);
	put_time(d, "until", view.until);
	json_write_string(w, "neighbour", neighbour_name(d, view.neighbour));
	json_write_number(w, "floor", s->floor > 0 ? (uint64_t)s->floor : 1);
	json_write_number(w, "promised", view.n_promised);
	json_write_number(w, "owed", view.n_owed);
	json_write_number(w, "load_moved", view.load_moved);
	json_write_number(w, "order", view.order);
	json_write_string(w, "last",
		view.last == SHED_WHY_NEW || view.last_at.us == 0 ? NULL
								  : shed_why_name(view.last));
	put_time(d, "last_at", view.last_at);
	put_word(d, service, index);
	if (whole) {
		put_promises(d, service, index);
		put_others(d, service, index);
	}
	json_close(w);
}
