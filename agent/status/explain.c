/*
 * The document that explains.
 *
 * It has the status's keys for what was asked, and beside them what decided (the rule's number,
 * what each check still needs), what BIRD holds (protocols, fragment, sessions, others' routes) and
 * `next`: what the engine and apply wait for, each with the earliest time at which it can happen.
 * Sentences are made by those who show it (agent/ctl/explain_say.c): here are words and numbers.
 *
 * `next` is what follows from the facts as they are now, in this order: the agent leaves; BIRD is
 * connected to or asked; a waiting announcement is due; a fragment, command or `configure` is under
 * way; what leaves gently is withdrawn; an address, an operator's word, the end of the start's
 * spread or outcomes of checks are missing; a check is about to turn.
 * It is empty when everything is as wanted and nothing is about to change.
 */
#include "agent/status/explain.h"

#include <string.h>

#include "agent/base/printable.h"
#include "agent/bird/apply_explain.h"
#include "agent/config/nearest.h"
#include "agent/status/document_private.h"

#define EXPLAIN_OFFERED_MAX 2000 /* names compared with a misspelt one while the loop waits */

/* ---- what was asked for ---- */

struct explain_question {
	const char *name;
	bool is_prefix, is_address;
	struct prefix prefix;
	struct address address;
};

static struct explain_question explain_question(const char *name)
{
	struct explain_question q = {.name = name};

	q.is_prefix = prefix_parse(name, &q.prefix, NULL) == 0;
	q.is_address = address_parse(name, &q.address, NULL) == 0;
	return q;
}

static bool explain_asks_for(const struct explain_question *q, const struct config_prefix *p)
{
	return (q->is_prefix && prefix_equal(&q->prefix, &p->prefix)) ||
	       (q->is_address && prefix_contains(&p->prefix, &q->address));
}

/* Does it ask for the whole service? */
static bool explain_asks_for_service(
	const struct explain_question *q, const struct config_service *service)
{
	return strcmp(q->name, service->name) == 0;
}

static bool explain_concerns(const struct explain_question *q, const struct config_service *service)
{
	if (explain_asks_for_service(q, service))
		return true;
	for (size_t i = 0; i < service->n_prefixes; i++)
		if (explain_asks_for(q, &service->prefixes[i]))
			return true;
	return false;
}

/* ---- checks ---- */

struct explain_need {
	enum check_outcome outcome; /* UNKNOWN: whichever comes first */
	unsigned count, of;	    /* in a row: those that are missing, and all of them */
	struct monotime earliest;   /* never: it does not run */
};

/* When `count` more outcomes can have come. */
static struct monotime explain_earliest(
	const struct document *d, size_t service, size_t index, unsigned count)
{
	const struct check *check = engine_check(d->facts->engine, service, index);
	struct run_view run;

	d->facts->check_view(d->facts->userdata, service, index, &run);
	return monotime_add_ms(run.busy ? d->now : monotime_max(run.next, d->now),
		(count - 1) * check->settings.fast_interval_ms);
}

/* What the check's next change takes. False: it is settled and nothing is under way. `up`: what it
 * needs to come up, settled or not. */
static bool explain_need(
	const struct document *d, size_t service, size_t index, bool up, struct explain_need *ret)
{
	const struct check *check = engine_check(d->facts->engine, service, index);

	switch (check->state) {
	case CHECK_STATE_PENDING:
		*ret = (struct explain_need){.outcome = CHECK_OUTCOME_UNKNOWN, .count = 1, .of = 1};
		break;
	case CHECK_STATE_DOWN:
		if (!up && check->streak == 0)
			return false;
		*ret = (struct explain_need){
			.outcome = CHECK_OUTCOME_GOOD, .of = check_rise(check)};
		break;
	case CHECK_STATE_UP:
		if (check->streak == 0)
			return false;
		*ret = (struct explain_need){
			.outcome = CHECK_OUTCOME_BAD, .of = check->settings.fall};
		break;
	}
	if (check->state != CHECK_STATE_PENDING)
		ret->count = ret->of - check->streak;
	ret->earliest = explain_earliest(d, service, index, ret->count);
	return true;
}

static const char *explain_outcome(const struct explain_need *need)
{
	return need->outcome == CHECK_OUTCOME_UNKNOWN ? "any" : check_outcome_name(need->outcome);
}

static void put_need(struct document *d, size_t service, size_t index)
{
	struct json_writer *w = &d->json;
	struct explain_need need;

	if (!explain_need(d, service, index, true, &need)) {
		json_write_null(w, "needs");
		return;
	}
	json_open_object(w, "needs");
	json_write_string(w, "outcome", explain_outcome(&need));
	json_write_number(w, "count", need.count);
	json_write_number(w, "of", need.of);
	document_put_time(d, "earliest", need.earliest);
	json_close(w);
}

static void put_checks(struct document *d, size_t service)
{
	const struct config_service *s = &d->facts->config->services[service];
	struct json_writer *w = &d->json;

	json_open_object(w, "checks");
	for (size_t i = 0; i < s->n_checks; i++) {
		const struct config_check *c = &s->checks[i];
		struct run_view run;

		d->facts->check_view(d->facts->userdata, service, i, &run);
		json_open_object(w, c->name);
		json_write_string(w, "type", c->type->name);
		document_put_check(d, service, i);
		json_write_bool(w, "running", run.busy);
		json_write_number(w, "interval_ms", c->interval_ms);
		json_write_number(w, "fast_interval_ms", c->fast_interval_ms);
		json_write_number(w, "timeout_ms", c->timeout_ms);
		json_write_number(w, "rise", c->rise);
		json_write_number(w, "fall", c->fall);
		put_need(d, service, i);
		json_close(w);
	}
	json_close(w);
}

/* ---- what happens next ---- */

/* One line of `next`; left open for more keys. */
static void open_next(struct document *d, const char *what, struct monotime at)
{
	json_open_object(&d->json, NULL);
	json_write_string(&d->json, "what", what);
	document_put_time(d, "at", at);
}

static void put_next(struct document *d, const char *what, struct monotime at)
{
	open_next(d, what, at);
	json_close(&d->json);
}

static void put_next_step(struct document *d, const struct apply_explained *e)
{
	switch (e->step) {
	case APPLY_STEP_NONE:
		return;
	case APPLY_STEP_CONNECT:
		put_next(d, "connect", e->at);
		return;
	case APPLY_STEP_ASK:
		put_next(d, "ask", e->at);
		return;
	case APPLY_STEP_WRITE:
		put_next(d, "write", e->at);
		return;
	case APPLY_STEP_COMMAND:
		put_next(d, "command", e->at);
		return;
	case APPLY_STEP_ANSWER:
		put_next(d, "answer", e->at);
		return;
	case APPLY_STEP_CONFIGURE:
		put_next(d, "configure", e->at);
		return;
	case APPLY_STEP_CONFIGURE_RETRY:
		put_next(d, "configure_retry", e->at);
		return;
	case APPLY_STEP_CONFIGURE_TRIAL:
		put_next(d, "configure_trial", MONOTIME_NEVER);
		return;
	}
	abort();
}

static void put_next_check(
	struct document *d, size_t service, size_t index, const struct explain_need *need)
{
	open_next(d, "check", need->earliest);
	json_write_string(
		&d->json, "check", d->facts->config->services[service].checks[index].name);
	json_write_string(&d->json, "outcome", explain_outcome(need));
	json_write_number(&d->json, "count", need->count);
	json_close(&d->json);
}

/* The checks whose outcomes can change what is wanted: those that are missing, or those that are on
 * their way down. */
static void put_next_checks(struct document *d, size_t service, bool missing)
{
	const struct config_service *s = &d->facts->config->services[service];

	for (size_t i = 0; i < s->n_checks; i++) {
		const struct check *check = engine_check(d->facts->engine, service, i);
		struct explain_need need;

		if (missing == (check->state == CHECK_STATE_UP) ||
			!explain_need(d, service, i, missing, &need))
			continue;
		put_next_check(d, service, i, &need);
	}
}

/* The checks that are up, and whose last outcome was bad: one good outcome ends the doubt. */
static void put_next_doubts(struct document *d, size_t service)
{
	for (size_t i = 0; i < d->facts->config->services[service].n_checks; i++) {
		const struct check *check = engine_check(d->facts->engine, service, i);

		if (check->state == CHECK_STATE_UP && check_is_undecided(check))
			put_next_check(d, service, i,
				&(struct explain_need){CHECK_OUTCOME_GOOD, 1, 1,
					explain_earliest(d, service, i, 1)});
	}
}

/* The operator's word ends by the wall clock, as that is set now. */
static void put_next_word(struct document *d, const char *what, const struct word *word)
{
	int64_t us;

	if (!word || word_is_forever(word)) {
		put_next(d, what, MONOTIME_NEVER);
		return;
	}
	us = (int64_t)d->now.us + (word->until.us - d->wall.us);
	put_next(d, what, (struct monotime){us > 0 ? (uint64_t)us : 0});
}

static void put_next_all(
	struct document *d, size_t service, size_t prefix, const struct apply_explained *e)
{
	const struct document_facts *f = d->facts;
	const struct engine_prefix *view = engine_prefix(f->engine, service, prefix);
	struct monotime leaves = engine_leaves(f->engine, service, prefix, d->now);
	struct monotime spread = engine_spread_ends(f->engine);
	bool waits = !monotime_is_never(view->announces_at);

	json_open_array(&d->json, "next");
	if (f->stopping)
		put_next(d, "leave", MONOTIME_NEVER);
	if (waits)
		put_next(d, "announce", view->announces_at);
	put_next_step(d, e);
	if (!monotime_is_never(leaves))
		put_next(d, "withdraw", leaves);
	if (f->stopping || waits) {
		json_close(&d->json);
		return;
	}
	switch (view->reason) {
	case PREFIX_REASON_STOPPING:
		break;
	case PREFIX_REASON_DRAINED:
		put_next_word(d, "operator", document_word(d, WORD_DRAIN, service, prefix));
		break;
	case PREFIX_REASON_FORCED:
		put_next_word(d, "operator", document_word(d, WORD_ANNOUNCE, service, prefix));
		break;
	case PREFIX_REASON_FROZEN:
		put_next_word(d, "thaw", document_freeze(d));
		break;
	case PREFIX_REASON_ADDRESS_MISSING:
		put_next(d, "address", MONOTIME_NEVER);
		put_next_checks(d, service, true);
		break;
	case PREFIX_REASON_FIRST_ROUND:
		if (!monotime_is_never(spread))
			put_next(d, "spread", spread);
		put_next_checks(d, service, true);
		break;
	case PREFIX_REASON_UNHEALTHY:
	case PREFIX_REASON_KEPT_BY_FLOOR:
	case PREFIX_REASON_SHARED_UNHEALTHY:
		put_next_checks(d, service, true);
		break;
	case PREFIX_REASON_IN_DOUBT:
		put_next_doubts(d, service);
		put_next_checks(d, service, true);
		break;
	case PREFIX_REASON_HELD_DOWN:
		put_next(d, "reuse", engine_reuse(f->engine, service));
		break;
	case PREFIX_REASON_SHED:
		put_next(d, "unshed", MONOTIME_NEVER);
		break;
	case PREFIX_REASON_RAMPING:
		put_next(d, "step", engine_next_step(f->engine, service, prefix));
		put_next_checks(d, service, false);
		break;
	case PREFIX_REASON_HEALTHY:
		put_next_checks(d, service, false);
		break;
	}
	json_close(&d->json);
}

/* ---- BIRD ---- */

/* NULL: unknown. */
static const char *explain_seen(enum plan_seen seen)
{
	switch (seen) {
	case PLAN_SEEN_UNKNOWN:
		return NULL;
	case PLAN_SEEN_ABSENT:
		return "absent";
	case PLAN_SEEN_DOWN:
		return "down";
	case PLAN_SEEN_UP:
		return "up";
	}
	abort();
}

static const char *explain_fragment(enum apply_fragment fragment)
{
	switch (fragment) {
	case APPLY_FRAGMENT_TRUE:
		return "true";
	case APPLY_FRAGMENT_PENDING:
		return "pending";
	case APPLY_FRAGMENT_UNWRITABLE:
		return "unwritable";
	case APPLY_FRAGMENT_PUT_BACK:
		return "put_back";
	}
	abort();
}

static void put_protocols(struct document *d, const struct apply_explained *e)
{
	struct json_writer *w = &d->json;

	json_open_object(w, "protocols");
	for (size_t i = 0; i < e->n_protocols; i++) {
		const struct apply_explained_protocol *p = &e->protocols[i];

		json_open_object(w, p->name);
		json_write_string(w, "wanted", p->want_up ? "up" : "down");
		json_write_string(w, "state", explain_seen(p->seen));
		document_put_known(w, "loaded", p->loaded);
		if (p->has_weight)
			json_write_number(w, "weight", p->weight);
		else
			json_write_null(w, "weight");
		json_write_bool(w, "last_resort", p->last_resort);
		json_close(w);
	}
	json_close(w);
}

/* The sessions' names where the export is `which`; null while that is unknown. */
static void put_sessions(struct document *d, const char *key, size_t service, size_t prefix,
	bool read, enum apply_export which)
{
	const struct apply *a = d->facts->apply;
	struct apply_explained_session session;

	if (!read) {
		json_write_null(&d->json, key);
		return;
	}
	json_open_array(&d->json, key);
	for (size_t i = 0; apply_explain_session(a, i, &session); i++)
		if (apply_explain_export(a, service, prefix, i) == which)
			json_write_string(&d->json, NULL, session.name);
	json_close(&d->json);
}

static void put_others(struct document *d, size_t service, size_t prefix, bool read)
{
	struct json_writer *w = &d->json;
	const struct apply *a = d->facts->apply;
	const char *name;
	size_t index = 0;
	bool best = false;

	if (!read) {
		json_write_null(w, "others");
		return;
	}
	json_open_array(w, "others");
	while ((name = apply_explain_other(a, service, prefix, &index, &best)) != NULL) {
		json_open_object(w, NULL);
		json_write_string(w, "protocol", name);
		json_write_bool(w, "best", best);
		json_close(w);
	}
	json_close(w);
	json_write_bool(w, "more_others", apply_explain_more_others(a, service, prefix));
}

/* Where the weight comes from, and why it is another one now. */
static void put_weight(
	struct document *d, const struct config_prefix *p, const struct engine_prefix *view)
{
	const struct words *words = d->facts->words;
	struct json_writer *w = &d->json;
	char name[PREFIX_TEXT_MAX];
	const struct word *word =
		words ? words_find(words, WORD_WEIGHT, prefix_format(&p->prefix, name)) : NULL;

	json_write_string(w, "weight_from",
		word		       ? "operator"
		: p->weight_is_of_node ? "node"
				       : "service");
	json_write_string(w, "weight_by",
		view->weight == (word ? word->weight : p->configured_weight) ? NULL
		: view->graceful					     ? "leave"
									     : "slow_start");
	json_write_number(w, "configured_weight", p->configured_weight);
	if (!word) {
		json_write_null(w, "weight_word");
		return;
	}
	json_open_object(w, "weight_word");
	document_put_word(w, word);
	json_write_number(w, "weight", word->weight);
	json_close(w);
}

static void put_prefix(struct document *d, size_t service, size_t index)
{
	const struct config_prefix *p = &d->facts->config->services[service].prefixes[index];
	const struct engine_prefix *view = engine_prefix(d->facts->engine, service, index);
	struct json_writer *w = &d->json;
	struct apply_explained e;
	char name[PREFIX_TEXT_MAX];

	apply_explain(d->facts->apply, service, index, &e);
	json_open_object(w, prefix_format(&p->prefix, name));
	document_put_prefix(d, service, index, true);
	json_write_number(w, "rule", prefix_reason_rule(view->reason));
	put_weight(d, p, view);
	json_write_number(w, "own_weight", p->own_weight);
	put_protocols(d, &e);
	json_write_bool(w, "reading", e.reading);
	put_sessions(d, "exported_to", service, index, e.read, APPLY_EXPORT_YES);
	put_sessions(d, "not_exported_to", service, index, e.read, APPLY_EXPORT_NO);
	put_others(d, service, index, e.read);
	put_next_all(d, service, index, &e);
	json_close(w);
}

/* ---- the document ---- */

static void put_require(struct json_writer *w, const struct config_service *service)
{
	switch (service->require) {
	case CONFIG_REQUIRE_ALL:
		json_write_string(w, "require", "all");
		return;
	case CONFIG_REQUIRE_ANY:
		json_write_string(w, "require", "any");
		return;
	case CONFIG_REQUIRE_NUMBER:
		json_write_number(w, "require", service->require_number);
		return;
	}
	abort();
}

static void put_fragment(struct document *d, size_t service)
{
	const struct config_service *s = &d->facts->config->services[service];
	struct json_writer *w = &d->json;
	struct apply_explained e;
	char file[4096];

	if (s->n_prefixes == 0) {
		json_write_null(w, "fragment");
		return;
	}
	apply_explain(d->facts->apply, service, 0, &e);
	(void)snprintf(file, sizeof(file), "%s/%s.conf", e.folder, s->name);
	json_open_object(w, "fragment");
	json_write_string(w, "file", file);
	json_write_string(w, "state", explain_fragment(e.fragment));
	json_close(w);
}

static void put_service(struct document *d, const struct explain_question *q, size_t index)
{
	const struct config_service *s = &d->facts->config->services[index];
	struct json_writer *w = &d->json;
	bool whole = explain_asks_for_service(q, s);

	json_open_object(w, s->name);
	json_write_string(w, "health", service_health_name(engine_health(d->facts->engine, index)));
	put_require(w, s);
	json_write_string(w, "on_stop", s->on_stop == CONFIG_ON_STOP_KEEP ? "keep" : "withdraw");
	put_fragment(d, index);
	document_put_repair(d, index);
	put_checks(d, index);
	json_open_object(w, "prefixes");
	for (size_t i = 0; i < s->n_prefixes; i++)
		if (whole || explain_asks_for(q, &s->prefixes[i]))
			put_prefix(d, index, i);
	json_close(w);
	json_close(w);
}

static void put_all_sessions(struct document *d)
{
	struct apply_explained_session session;
	struct json_writer *w = &d->json;

	json_open_object(w, "sessions");
	for (size_t i = 0; apply_explain_session(d->facts->apply, i, &session); i++) {
		json_open_object(w, session.name);
		json_write_bool(w, "up", session.up);
		json_close(w);
	}
	json_close(w);
}

/* The service or prefix that was meant; "" where none is near. A prefix's name is made for it. */
static void explain_nearest(const struct config *config, const char *name, char ret[64])
{
	bool address = strpbrk(name, ".:/") != NULL;
	struct nearest nearest;
	size_t left = EXPLAIN_OFFERED_MAX;

	ret[0] = '\0';
	nearest_init(&nearest, name);
	for (size_t s = 0; s < config->n_services && left > 0; s++) {
		const struct config_service *service = &config->services[s];

		if (!address) {
			nearest_offer(&nearest, service->name);
			left--;
		}
		for (size_t i = 0; address && i < service->n_prefixes && left > 0; i++, left--) {
			const char *before = nearest.best;
			char text[PREFIX_TEXT_MAX];

			nearest_offer(&nearest, prefix_format(&service->prefixes[i].prefix, text));
			if (nearest.best == before)
				continue;
			(void)snprintf(ret, 64, "%s", text);
			nearest.best = ret;
		}
	}
	if (!address && nearest.best)
		(void)snprintf(ret, 64, "%s", nearest.best);
}

char *explain_nothing(const struct config *config, const char *name)
{
	_cleanup_buffer_ struct buffer out = {0};
	char said[4 * EXPLAIN_NAME_MAX], near[64], text[512];
	struct json_writer w;

	buffer_init(&out, 4096);
	json_writer_init(&w, &out);
	(void)printable_copy(said, sizeof(said), name, strlen(name));
	explain_nearest(config, name, near);
	(void)snprintf(text, sizeof(text), "no service and no prefix is called \"%s\"%s%s%s", said,
		near[0] ? "; did you mean \"" : "", near, near[0] ? "\"?" : "");
	json_open_object(&w, NULL);
	json_write_string(&w, "error", text);
	json_write_string(&w, "nearest", near[0] ? near : NULL);
	json_close(&w);
	if (json_writer_error(&w) < 0 || buffer_append(&out, "\n", 1) < 0)
		return NULL;
	return TAKE_PTR(out.data);
}

char *document_explain(const struct document_facts *facts, const char *name, bool *ret_found)
{
	const struct explain_question q = explain_question(name);
	_cleanup_buffer_ struct buffer out = {0};
	struct document d;
	bool found = false;

	for (size_t i = 0; i < facts->config->n_services && !found; i++)
		found = explain_concerns(&q, &facts->config->services[i]);
	*ret_found = found;
	if (!found)
		return explain_nothing(facts->config, name);
	document_begin(&d, &out, facts);
	json_write_string(&d.json, "asked", name);
	put_all_sessions(&d);
	document_put_load(&d);
	document_put_shed_server(&d);
	json_open_object(&d.json, "services");
	for (size_t i = 0; i < facts->config->n_services; i++)
		if (explain_concerns(&q, &facts->config->services[i]))
			put_service(&d, &q, i);
	json_close(&d.json);
	return document_end(&d);
}
