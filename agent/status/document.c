/*
 * The status document.
 *
 * It sets three kinds of knowledge side by side and never mixes them: what is configured, what the
 * engine wants and why, and what BIRD was read to be doing. Where BIRD is away, its facts are null,
 * never a guess from what was wanted.
 *
 * Written straight into text, in steps of a part of a millisecond: with 5,000 prefixes it takes
 * several of the loop's. docs/status.md describes every key; whoever adds one adds it there.
 */
#include "agent/status/document.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/bird/apply_explain.h"
#include "agent/status/document_private.h"
#include "agent/status/judged.h"

#define DOCUMENT_FORMAT 1

const char *document_format_time(
	struct monotime t, struct monotime now, struct walltime wall, char text[CLOCK_TEXT_MAX])
{
	return clock_format((struct walltime){wall.us + ((int64_t)t.us - (int64_t)now.us)}, text);
}

void document_put_time(struct document *d, const char *key, struct monotime t)
{
	if (monotime_is_never(t)) {
		json_write_null(&d->json, key);
		return;
	}
	if (t.us != d->last.us || !d->last_text[0]) {
		d->last = t;
		(void)document_format_time(t, d->now, d->wall, d->last_text);
	}
	json_write_string(&d->json, key, d->last_text);
}

const char *document_link_name(enum apply_link link)
{
	switch (link) {
	case APPLY_LINK_AWAY:
		return "away";
	case APPLY_LINK_GREETING:
		return "greeting";
	case APPLY_LINK_UP:
		return "up";
	case APPLY_LINK_REFUSED:
		return "refused";
	}
	abort();
}

static void put_warnings(struct document *d)
{
	const struct advise_warning *warnings;
	size_t n = apply_warnings(d->facts->apply, &warnings);

	json_open_array(&d->json, "warnings");
	for (size_t i = 0; i < n; i++) {
		json_open_object(&d->json, NULL);
		json_write_string(&d->json, "code", warnings[i].code);
		json_write_string(&d->json, "text", warnings[i].text);
		json_close(&d->json);
	}
	json_close(&d->json);
}

#define DOCUMENT_SESSIONS_MAX 64

static void put_sessions_down(struct document *d)
{
	struct apply_explained_session session;
	size_t n = 0;

	json_open_array(&d->json, "sessions_down");
	for (size_t i = 0; apply_explain_session(d->facts->apply, i, &session); i++)
		if (!session.up && n++ < DOCUMENT_SESSIONS_MAX)
			json_write_string(&d->json, NULL, session.name);
	json_close(&d->json);
}

static void put_bird(struct document *d)
{
	const struct apply_status *s = apply_status(d->facts->apply);
	bool up = s->link == APPLY_LINK_UP;
	struct json_writer *w = &d->json;

	json_open_object(w, "bird");
	json_write_string(w, "link", document_link_name(s->link));
	json_write_string(w, "version", document_null_if_empty(s->version));
	json_write_string(w, "error", document_null_if_empty(s->error));
	json_write_string(w, "reason", loss_name(s->loss));
	document_put_time(d, "silent_since", s->silent_since);
	json_write_string(w, "alarm", document_null_if_empty(s->alarm));
	json_write_string(w, "files_error", document_null_if_empty(s->files_error));
	put_warnings(d);
	if (up) {
		json_write_bool(w, "settled", s->settled);
		json_write_number(w, "sessions", s->sessions);
		json_write_number(w, "sessions_up", s->sessions_up);
		put_sessions_down(d);
	} else {
		json_write_null(w, "settled");
		json_write_null(w, "sessions");
		json_write_null(w, "sessions_up");
		json_write_null(w, "sessions_down");
	}
	json_write_number(w, "commands_sent", s->commands_sent);
	json_write_number(w, "repairs", s->repairs);
	json_write_number(w, "fragments_repaired", s->fragments_repaired);
	document_put_time(d, "next_try", apply_explain_retry(d->facts->apply));
	json_close(w);
}

void document_put_known(struct json_writer *w, const char *key, enum apply_known known)
{
	switch (known) {
	case APPLY_UNKNOWN:
		json_write_null(w, key);
		return;
	case APPLY_NO:
		json_write_bool(w, key, false);
		return;
	case APPLY_YES:
		json_write_bool(w, key, true);
		return;
	}
	abort();
}

const struct word *document_word(
	const struct document *d, enum word_kind kind, size_t service, size_t index)
{
	const struct config_service *s = &d->facts->config->services[service];
	char name[PREFIX_TEXT_MAX];

	if (!d->facts->words || d->facts->words->n == 0)
		return NULL;
	return words_cover(
		d->facts->words, kind, s->name, prefix_format(&s->prefixes[index].prefix, name));
}

const struct word *document_freeze(const struct document *d)
{
	return d->facts->words ? words_find(d->facts->words, WORD_FREEZE, "") : NULL;
}

void document_put_word(struct json_writer *w, const struct word *word)
{
	char text[CLOCK_TEXT_MAX];

	json_write_string(w, "name", document_null_if_empty(word->name));
	json_write_string(w, "reason", document_null_if_empty(word->reason));
	json_write_string(w, "who", word->who);
	json_write_string(w, "since", clock_format(word->since, text));
	json_write_string(
		w, "until", word_is_forever(word) ? NULL : clock_format(word->until, text));
}

static void put_word(struct document *d, const char *key, const struct word *word)
{
	if (!word) {
		json_write_null(&d->json, key);
		return;
	}
	json_open_object(&d->json, key);
	document_put_word(&d->json, word);
	json_close(&d->json);
}

static bool is_configured(const struct config *config, const char *name)
{
	char text[PREFIX_TEXT_MAX];

	for (size_t s = 0; s < config->n_services; s++) {
		const struct config_service *service = &config->services[s];

		if (strcmp(service->name, name) == 0)
			return true;
		for (size_t i = 0; i < service->n_prefixes; i++)
			if (strcmp(prefix_format(&service->prefixes[i].prefix, text), name) == 0)
				return true;
	}
	return name[0] == '\0';
}

static void put_words(struct document *d, const char *key, enum word_kind kind)
{
	const struct words *words = d->facts->words;
	struct json_writer *w = &d->json;

	json_open_array(w, key);
	for (size_t i = 0; words && i < words->n; i++) {
		if (words->items[i].kind != kind)
			continue;
		json_open_object(w, NULL);
		document_put_word(w, &words->items[i]);
		if (kind == WORD_WEIGHT)
			json_write_number(w, "weight", words->items[i].weight);
		json_write_bool(
			w, "configured", is_configured(d->facts->config, words->items[i].name));
		json_close(w);
	}
	json_close(w);
}

bool document_is_settling(const struct engine_prefix *wanted, struct monotime now)
{
	return !monotime_is_never(wanted->since) &&
	       !monotime_reached(monotime_add_ms(wanted->since, DOCUMENT_SETTLING_MS), now);
}

void document_put_prefix(struct document *d, size_t service, size_t index, bool whole)
{
	const struct engine_prefix *wanted = engine_prefix(d->facts->engine, service, index);
	const struct apply_observed *seen = apply_observed(d->facts->apply, service, index);
	struct json_writer *w = &d->json;

	json_write_string(w, "wanted", prefix_wanted_name(wanted->wanted));
	document_put_known(w, "announced", seen->announced);
	if (seen->exported < 0)
		json_write_null(w, "exported");
	else
		json_write_number(w, "exported", (uint64_t)seen->exported);
	json_write_number(w, "weight", wanted->weight);
	json_write_bool(w, "graceful", wanted->graceful);
	json_write_string(w, "reason", prefix_reason_name(wanted->reason));
	document_put_time(d, "since", wanted->since);
	json_write_bool(w, "settling", document_is_settling(wanted, d->now));
	json_write_string(w, "elsewhere", document_null_if_empty(seen->elsewhere));
	document_put_address(d, service, index);
	put_word(d, "drain", document_word(d, WORD_DRAIN, service, index));
	put_word(d, "announce", document_word(d, WORD_ANNOUNCE, service, index));
	document_put_shed(d, service, index, whole);
	document_put_prefix_load(d, service, index);
}

static void put_durations(struct document *d, size_t service, size_t index)
{
	const struct document_facts *f = d->facts;
	uint32_t us[CHECK_HISTORY_LENGTH];
	size_t n = 0;

	if (f->check_durations)
		n = f->check_durations(f->userdata, service, index, us);
	json_open_array(&d->json, "durations_us");
	for (size_t i = 0; i < n; i++)
		if (us[i] > 0)
			json_write_number(&d->json, NULL, us[i]);
		else
			json_write_null(&d->json, NULL);
	json_close(&d->json);
}

void document_put_check(struct document *d, size_t service, size_t index)
{
	const struct document_facts *f = d->facts;
	const struct check *check = engine_check(f->engine, service, index);
	struct json_writer *w = &d->json;
	struct run_view run;

	f->check_view(f->userdata, service, index, &run);
	json_write_string(w, "state", check_state_name(check->state));
	json_write_string(
		w, "reason", document_null_if_empty(f->check_reason(f->userdata, service, index)));
	json_open_array(w, "outcomes");
	for (unsigned age = check->n_history; age > 0; age--)
		json_write_string(w, NULL, check_outcome_name(check_history(check, age - 1)));
	json_close(w);
	put_durations(d, service, index);
	document_put_time(d, "since", check->since);
	document_put_time(d, "last", run.began);
	json_write_number(w, "duration_us", run.duration_us);
	document_put_time(d, "next", run.next);
}

/* --- the status, in steps --- */

#define RENDER_ITEMS 16	   /* between two looks at the clock */
#define RENDER_AGAIN_MAX 3 /* times it begins anew because something has changed */

enum render_at {
	RENDER_BEGIN,
	RENDER_SERVICE,
	RENDER_JUDGE_PREFIX, /* a service is judged as a whole before it is written */
	RENDER_JUDGE_CHECK,
	RENDER_HEAD,
	RENDER_PREFIX,
	RENDER_CHECK,
	RENDER_VERDICT,
	RENDER_RELEASE,
	RENDER_END,
};

struct document_render {
	struct document d;
	struct buffer out;
	struct judged judged;
	enum render_at at; /* what comes next, of which one */
	size_t service, item;
	json_t *its; /* of `service`, in the judgement; borrowed */
	uint64_t generation, revision;
	unsigned again;
};

int document_render_new(struct document_render **ret)
{
	struct document_render *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	*ret = r;
	return 0;
}

void document_render_free(struct document_render *r)
{
	if (!r)
		return;
	judged_done(&r->judged);
	buffer_done(&r->out);
	free(r);
}

static void render_begin(struct document_render *r, const struct document_facts *facts)
{
	judged_done(&r->judged);
	buffer_done(&r->out);
	document_begin(&r->d, &r->out, facts);
	judged_init(&r->judged, facts);
	document_put_load(&r->d);
	document_put_neighbours(&r->d);
	document_put_shed_server(&r->d);
	json_open_object(&r->d.json, "services");
	r->generation = facts->generation;
	r->revision = facts->revision;
	r->service = 0;
	r->at = RENDER_SERVICE;
}

static void render_go(struct document_render *r, enum render_at at)
{
	r->at = at;
	r->item = 0;
}

static void render_service(struct document_render *r)
{
	if (r->service == r->d.facts->config->n_services) {
		json_close(&r->d.json);
		render_go(r, RENDER_VERDICT);
		return;
	}
	r->its = judged_add_service(&r->judged, r->d.facts, r->service);
	render_go(r, RENDER_JUDGE_PREFIX);
}

static void render_head(struct document_render *r)
{
	struct json_writer *w = &r->d.json;

	json_open_object(w, r->d.facts->config->services[r->service].name);
	json_write_string(
		w, "health", service_health_name(engine_health(r->d.facts->engine, r->service)));
	judged_put_service(&r->judged, w, r->its);
	document_put_repair(&r->d, r->service);
	json_open_object(w, "prefixes");
	render_go(r, RENDER_PREFIX);
}

static void render_prefix(struct document_render *r)
{
	const struct config_service *service = &r->d.facts->config->services[r->service];
	struct json_writer *w = &r->d.json;
	char name[PREFIX_TEXT_MAX];

	if (r->item == service->n_prefixes) {
		json_close(w);
		json_open_object(w, "checks");
		render_go(r, RENDER_CHECK);
		return;
	}
	json_open_object(w, prefix_format(&service->prefixes[r->item].prefix, name));
	document_put_prefix(&r->d, r->service, r->item++, false);
	judged_put_prefix(&r->judged, w, r->its, name);
	json_close(w);
}

static void render_check(struct document_render *r)
{
	const struct config_service *service = &r->d.facts->config->services[r->service];
	struct json_writer *w = &r->d.json;
	const char *name;

	if (r->item == service->n_checks) {
		json_close(w);
		json_close(w);
		r->service++;
		render_go(r, RENDER_SERVICE);
		return;
	}
	name = service->checks[r->item].name;
	json_open_object(w, name);
	document_put_check(&r->d, r->service, r->item++);
	judged_put_check(&r->judged, w, r->its, name);
	json_close(w);
}

/* Writes what comes next. */
static void render_next(struct document_render *r)
{
	const struct document_facts *facts = r->d.facts;

	switch (r->at) {
	case RENDER_BEGIN:
		render_begin(r, facts);
		return;
	case RENDER_SERVICE:
		render_service(r);
		return;
	case RENDER_JUDGE_PREFIX:
		if (r->item == facts->config->services[r->service].n_prefixes)
			render_go(r, RENDER_JUDGE_CHECK);
		else
			judged_add_prefix(r->its, facts, r->service, r->item++);
		return;
	case RENDER_JUDGE_CHECK:
		if (r->item == facts->config->services[r->service].n_checks)
			render_go(r, RENDER_HEAD);
		else
			judged_add_check(r->its, facts, r->service, r->item++);
		return;
	case RENDER_HEAD:
		render_head(r);
		return;
	case RENDER_PREFIX:
		render_prefix(r);
		return;
	case RENDER_CHECK:
		render_check(r);
		return;
	case RENDER_VERDICT:
		judged_put_verdict(&r->judged, &r->d.json);
		r->at = RENDER_RELEASE;
		return;
	case RENDER_RELEASE:
		if (!judged_release(&r->judged))
			r->at = RENDER_END;
		return;
	case RENDER_END:
		return;
	}
	abort();
}

/* It goes over all of a service, or of them all. */
static bool is_whole(enum render_at at)
{
	return at == RENDER_HEAD || at == RENDER_VERDICT || at == RENDER_RELEASE;
}

int document_render_step(struct document_render *r, const struct document_facts *facts,
	uint64_t budget_us, char **ret_text, size_t *ret_length)
{
	struct monotime began = clock_monotime();
	enum render_at at;
	unsigned n = 0;

	r->d.facts = facts;
	if (r->at != RENDER_BEGIN &&
		(r->generation != facts->generation ||
			(r->revision != facts->revision && r->again++ < RENDER_AGAIN_MAX)))
		r->at = RENDER_BEGIN;
	while (r->at != RENDER_END) {
		at = r->at;
		render_next(r);
		if ((++n % RENDER_ITEMS == 0 || is_whole(at) || is_whole(r->at)) &&
			monotime_since_us(began, clock_monotime()) >= budget_us)
			return 1;
	}
	r->at = RENDER_BEGIN;
	r->again = 0;
	*ret_text = document_end(&r->d);
	if (!*ret_text)
		return json_writer_error(&r->d.json) < 0 ? json_writer_error(&r->d.json) : -ENOMEM;
	*ret_length = strlen(*ret_text);
	return 0;
}

/* --- what every document has --- */

void document_begin(struct document *d, struct buffer *out, const struct document_facts *facts)
{
	struct json_writer *w = &d->json;

	*d = (struct document){.facts = facts, .now = clock_monotime(), .wall = clock_walltime()};
	buffer_init(out, DOCUMENT_MAX);
	json_writer_init(w, out);
	json_open_object(w, NULL);
	json_write_number(w, "format", DOCUMENT_FORMAT);
	json_write_string(w, "version", REDSHANK_VERSION);
	json_write_string(w, "node", facts->config->node);
	document_put_time(d, "time", d->now);
	json_write_bool(w, "ready", facts->ready);
	json_write_bool(w, "stopping", facts->stopping);
	json_open_object(w, "config");
	json_write_string(w, "error", document_null_if_empty(facts->config_error));
	document_put_time(d, "loaded", facts->config_loaded);
	json_close(w);
	json_open_object(w, "state");
	json_write_string(w, "error", document_null_if_empty(facts->state_error));
	json_close(w);
	put_bird(d);
	put_words(d, "drains", WORD_DRAIN);
	put_words(d, "weights", WORD_WEIGHT);
	put_words(d, "announces", WORD_ANNOUNCE);
	put_words(d, "sheds", WORD_SHED);
	put_words(d, "unsheds", WORD_UNSHED);
	put_word(d, "freeze", document_freeze(d));
}

char *document_end(struct document *d)
{
	struct buffer *out = d->json.out;

	json_close(&d->json);
	if (json_writer_error(&d->json) < 0 || buffer_append(out, "\n", 1) < 0)
		return NULL;
	return TAKE_PTR(out->data);
}
