/*
 * What the judgement reads of the document, as a tree: a dozen keys of the hundreds, so that it
 * costs a fraction of writing the document. The document itself is text from the start and never a
 * tree (json.h).
 *
 * Names and texts are taken as they are, valid UTF-8 or not: the writer cleans what the judgement
 * says of them, as it does everywhere else.
 */
#include "agent/status/judged.h"

#include <stdlib.h>

#include "agent/bird/apply_explain.h"
#include "agent/neighbour/neighbour.h"

#define JUDGED_SESSIONS_MAX 64

static void put(json_t *object, const char *key, json_t *value)
{
	/* Takes the value over, also where it fails: then the key is missing, and unknown. */
	(void)json_object_set_new_nocheck(object, key, value);
}

static void put_text(json_t *object, const char *key, const char *text)
{
	if (text && text[0])
		put(object, key, json_string_nocheck(text));
}

static void put_sessions_down(json_t *bird, const struct apply *apply)
{
	struct apply_explained_session session;
	json_t *down = json_array();
	size_t n = 0;

	for (size_t i = 0; apply_explain_session(apply, i, &session); i++)
		if (!session.up && n++ < JUDGED_SESSIONS_MAX)
			(void)json_array_append_new(down, json_string_nocheck(session.name));
	put(bird, "sessions_down", down);
}

static void put_bird(json_t *document, const struct document_facts *facts)
{
	const struct apply_status *s = apply_status(facts->apply);
	json_t *bird = json_object();
	char text[CLOCK_TEXT_MAX];

	put_text(bird, "link", document_link_name(s->link));
	put_text(bird, "error", s->error);
	put_text(bird, "alarm", s->alarm);
	put_text(bird, "files_error", s->files_error);
	if (!monotime_is_never(s->silent_since))
		put_text(bird, "silent_since",
			document_format_time(
				s->silent_since, clock_monotime(), clock_walltime(), text));
	if (s->link == APPLY_LINK_UP) {
		put(bird, "sessions", json_integer((json_int_t)s->sessions));
		put(bird, "sessions_up", json_integer((json_int_t)s->sessions_up));
		put_sessions_down(bird, facts->apply);
	}
	put(document, "bird", bird);
}

/* A word about the whole server; NULL: nobody has said it. */
static json_t *word_of_all(const struct document_facts *facts, enum word_kind kind)
{
	const struct word *word = facts->words ? words_find(facts->words, kind, "") : NULL;
	char text[CLOCK_TEXT_MAX];
	json_t *said;

	if (!word)
		return NULL;
	said = json_object();
	put_text(said, "who", word->who);
	put_text(said, "reason", word->reason);
	if (!word_is_forever(word))
		put_text(said, "until", clock_format(word->until, text));
	return said;
}

static void put_words(json_t *document, const struct document_facts *facts)
{
	json_t *freeze = word_of_all(facts, WORD_FREEZE), *drain = word_of_all(facts, WORD_DRAIN);
	json_t *drains;

	if (freeze)
		put(document, "freeze", freeze);
	if (!drain)
		return;
	drains = json_array();
	(void)json_array_append_new(drains, drain);
	put(document, "drains", drains);
}

/* What judge_shed() reads. */
static void put_shed(json_t *document, const struct document_facts *facts)
{
	const struct shed_settings settings = config_shed_settings(facts->config);
	struct neighbours_totals totals;
	struct shed_server server;
	json_t *shed, *neighbours;

	if (!facts->neighbours || !facts->shed_server)
		return;
	facts->shed_server(facts->userdata, &server);
	shed = json_object();
	put(shed, "alarm", json_boolean(server.alarm));
	put(shed, "enabled", json_boolean(settings.enabled));
	put(shed, "hot", json_integer(settings.hot_bp));
	put(shed, "utilisation", json_integer(server.utilisation_bp));
	put(shed, "out", json_integer(server.n_out));
	put_text(shed, "why", shed_why_name(server.why));
	put(shed, "neighbours", json_integer((json_int_t)neighbours_count(facts->neighbours)));
	put(shed, "neighbours_fresh", json_integer(server.n_fresh));
	put(document, "shed", shed);
	neighbours_totals(facts->neighbours, &totals);
	neighbours = json_object();
	put_text(neighbours, "error", totals.error);
	put_text(neighbours, "warning", totals.warning);
	put(document, "neighbours", neighbours);
}

void judged_init(struct judged *j, const struct document_facts *facts)
{
	json_t *config = json_object(), *state = json_object();

	j->document = json_object();
	put_bird(j->document, facts);
	put_text(config, "error", facts->config_error);
	put(j->document, "config", config);
	put_text(state, "error", facts->state_error);
	put(j->document, "state", state);
	put(j->document, "stopping", json_boolean(facts->stopping));
	put_words(j->document, facts);
	put_shed(j->document, facts);
	put(j->document, "services", json_object());
}

bool judged_release(struct judged *j)
{
	json_t *services = json_object_get(j->document, "services");
	void *first = json_object_iter(services);

	return first && json_object_del(services, json_object_iter_key(first)) == 0;
}

void judged_done(struct judged *j)
{
	json_decref(j->document);
	j->document = NULL;
}

static json_t *known(enum apply_known what)
{
	switch (what) {
	case APPLY_UNKNOWN:
		return json_null();
	case APPLY_NO:
		return json_false();
	case APPLY_YES:
		return json_true();
	}
	abort();
}

static json_t *judged_prefix(const struct document_facts *facts, size_t service, size_t index)
{
	const struct engine_prefix *wanted = engine_prefix(facts->engine, service, index);
	const struct apply_observed *seen = apply_observed(facts->apply, service, index);
	json_t *prefix = json_object();

	put_text(prefix, "wanted", prefix_wanted_name(wanted->wanted));
	put_text(prefix, "reason", prefix_reason_name(wanted->reason));
	put_text(prefix, "elsewhere", seen->elsewhere);
	put(prefix, "settling", json_boolean(document_is_settling(wanted, clock_monotime())));
	put(prefix, "announced", known(seen->announced));
	if (seen->exported >= 0)
		put(prefix, "exported", json_integer(seen->exported));
	return prefix;
}

void judged_add_prefix(
	json_t *its, const struct document_facts *facts, size_t service, size_t index)
{
	const struct config_service *configured = &facts->config->services[service];
	char name[PREFIX_TEXT_MAX];

	put(json_object_get(its, "prefixes"),
		prefix_format(&configured->prefixes[index].prefix, name),
		judged_prefix(facts, service, index));
}

/* As many as the judgement looks at; none where the last one says that the check speaks. */
static json_t *judged_outcomes(const struct check *check)
{
	json_t *outcomes;

	if (check->n_history < CHECK_SILENT || check_history(check, 0) != CHECK_OUTCOME_UNKNOWN)
		return NULL;
	outcomes = json_array();
	for (unsigned age = CHECK_SILENT; age > 0; age--)
		(void)json_array_append_new(
			outcomes, json_string(check_outcome_name(check_history(check, age - 1))));
	return outcomes;
}

void judged_add_check(json_t *its, const struct document_facts *facts, size_t service, size_t index)
{
	const struct check *is = engine_check(facts->engine, service, index);
	json_t *check = json_object();

	put_text(check, "state", check_state_name(is->state));
	put(check, "outcomes", judged_outcomes(is));
	put(json_object_get(its, "checks"), facts->config->services[service].checks[index].name,
		check);
}

json_t *judged_add_service(struct judged *j, const struct document_facts *facts, size_t index)
{
	const struct config_service *configured = &facts->config->services[index];
	json_t *service = json_object();

	put_text(service, "health", service_health_name(engine_health(facts->engine, index)));
	put(service, "prefixes", json_object());
	put(service, "checks", json_object());
	put(json_object_get(j->document, "services"), configured->name, service);
	return json_object_get(json_object_get(j->document, "services"), configured->name);
}

static void put_level(struct json_writer *w, const json_t *judged, enum judge_level level)
{
	json_write_string(w, "level", judged ? verdict_level_name(level) : NULL);
}

void judged_put_service(struct judged *j, struct json_writer *w, json_t *service)
{
	enum judge_level level = judge_service_level(service, json_object_get(j->document, "bird"));

	put_level(w, service, level);
	put(service, JUDGE_MEMO, json_integer(level));
}

void judged_put_prefix(struct judged *j, struct json_writer *w, json_t *service, const char *name)
{
	const json_t *prefix = json_object_get(json_object_get(service, "prefixes"), name);

	put_level(w, prefix,
		judge_prefix_level(judge_prefix(prefix, json_object_get(j->document, "bird"))));
}

void judged_put_check(struct judged *j, struct json_writer *w, json_t *service, const char *name)
{
	const json_t *check = json_object_get(json_object_get(service, "checks"), name);

	put_level(w, check, judge_check_level(judge_check(service, check)));
}

void judged_put_verdict(struct judged *j, struct json_writer *w)
{
	struct verdict v;

	if (!j->document) {
		json_write_null(w, "verdict");
		return;
	}
	verdict_judge(&v, j->document);
	json_open_object(w, "verdict");
	json_write_string(w, "level", verdict_level_name(v.level));
	json_write_string(w, "text", buffer_string(&v.text));
	json_write_string(w, "command", v.command[0] ? v.command : NULL);
	json_close(w);
	verdict_done(&v);
}
