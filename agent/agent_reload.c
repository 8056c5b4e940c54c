/*
 * A new configuration, and the operators' words, carried into every module. The new configuration
 * is built aside: what can fail comes first, then all change together (agent_swap()). A check that
 * is configured as before keeps its running probe, and the settings that the probe borrowed move
 * into the new configuration. The old one is freed last.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "agent/agent_private.h"
#include "agent/base/clock.h"
#include "agent/bird/deadman.h"
#include "agent/core_dump.h"
#include "agent/events/events.h"
#include "agent/system/notify.h"
#include "agent/view.h"

/* The operators' words, into the engine. */
static void agent_tell_words(struct agent *a)
{
	const struct words *words = control_words(a->control);
	char name[PREFIX_TEXT_MAX];

	engine_freeze(a->engine, words_find(words, WORD_FREEZE, "") != NULL);
	for (size_t s = 0; s < a->config->n_services; s++) {
		const struct config_service *service = &a->config->services[s];

		for (size_t p = 0; p < service->n_prefixes; p++) {
			const char *prefix = prefix_format(&service->prefixes[p].prefix, name);

			engine_word(a->engine, s, p,
				words_cover(words, WORD_DRAIN, service->name, prefix)
					? PREFIX_WORD_DRAINED
				: words_cover(words, WORD_ANNOUNCE, service->name, prefix)
					? PREFIX_WORD_FORCED
					: PREFIX_WORD_NONE);
		}
	}
}

/* The weights that operators gave, into the configuration: apply, engine and status read them
 * there. True when one is another now. */
bool agent_weigh(const struct agent *a, struct config *config)
{
	const struct words *words = control_words(a->control);
	bool changed = false;
	char name[PREFIX_TEXT_MAX];

	for (size_t s = 0; s < config->n_services; s++)
		for (size_t i = 0; i < config->services[s].n_prefixes; i++) {
			struct config_prefix *p = &config->services[s].prefixes[i];
			const struct word *word =
				words_find(words, WORD_WEIGHT, prefix_format(&p->prefix, name));
			uint32_t weight = word ? word->weight : p->configured_weight;

			changed = changed || p->weight != weight || p->weight_of_word != !!word;
			p->weight = weight;
			p->weight_of_word = word != NULL;
		}
	return changed;
}

int agent_prepare(const struct agent *a, const struct config *config, struct engine_change **ret)
{
	bool promised = config->neighbours && (!a->shedding || shedding_neighbours(a->shedding));

	return view_prepare(config, promised, ret);
}

static bool agent_same_text(const char *a, const char *b)
{
	return (!a && !b) || (a && b && strcmp(a, b) == 0);
}

static bool agent_same_sessions(const struct schema_strings *a, const struct schema_strings *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (strcmp(a->items[i], b->items[i]) != 0)
			return false;
	return true;
}

/* What a reload does not change: the ways in and out of the agent. Said, not ignored. */
static void agent_warn_fixed(const struct config *old, const struct config *new)
{
	if (!agent_same_text(old->bird.socket, new->bird.socket) ||
		!agent_same_text(old->bird.fragments, new->bird.fragments) ||
		old->bird.control != new->bird.control ||
		!agent_same_sessions(&old->bird.sessions, &new->bird.sessions))
		event_say(LOG_WARNING, EVENT_CONFIG_PROBLEM, NULL,
			"reload: `bird` has changed, which takes a restart of the agent");
	if (!agent_same_text(old->status.socket, new->status.socket) ||
		!agent_same_text(old->status.group, new->status.group) ||
		!agent_same_text(old->status.listen, new->status.listen))
		event_say(LOG_WARNING, EVENT_CONFIG_PROBLEM, NULL,
			"reload: `status` has changed, which takes a restart of the agent");
	if (!agent_same_text(old->state, new->state))
		event_say(LOG_WARNING, EVENT_CONFIG_PROBLEM, NULL,
			"reload: `state` has changed, which takes a restart of the agent");
}

static void agent_log_problems(const struct problems *problems)
{
	for (size_t i = 0; i < problems->n; i++)
		event_say(problems->items[i].level == PROBLEM_ERROR ? LOG_ERR : LOG_WARNING,
			EVENT_CONFIG_PROBLEM, NULL, "configuration: %s", problems->items[i].text);
	if (problems->n_dropped > 0)
		event_say(LOG_ERR, EVENT_CONFIG_PROBLEM, NULL,
			"configuration: and %zu more problems", problems->n_dropped);
}

/* What the newest load came to: a refused one would keep the agent from its next start. */
static void agent_note_load(struct agent *a, int r, const struct problems *problems)
{
	const char *text = r < 0 ? strerror(-r) : "";

	for (size_t i = 0; r < 0 && problems && i < problems->n; i++) {
		if (problems->items[i].level != PROBLEM_ERROR)
			continue;
		text = problems->items[i].text;
		break;
	}
	(void)snprintf(a->config_error, sizeof(a->config_error), "%s", text);
	if (r >= 0)
		a->config_loaded = clock_monotime();
}

/* For when the agent is gone for good. Without it, redshank-deadman goes by the list before. */
void agent_write_deadman(struct agent *a)
{
	struct deadman_restore sheds[SHED_OUT_MAX];
	size_t n = agent_list_sheds(a, sheds, ELEMENTSOF(sheds));
	struct error error = {0};

	if (deadman_write(a->config, apply_socket(a->apply), apply_folder(a->apply), sheds, n,
		    &error) < 0)
		event_say(LOG_WARNING, EVENT_AGENT_TROUBLE, NULL,
			"%s; redshank-deadman would go by an older list, or by none", error.text);
}

/* A reload that drops too much of what is announced is more likely a mistake: false, with the names
 * among the problems. By the guard that runs, not by that of the new configuration. */
static bool agent_reload_is_fit(
	const struct agent *a, const struct engine_change *change, struct problems *problems)
{
	struct guard_count count = engine_change_count(a->engine, change);
	char name[PREFIX_TEXT_MAX];

	if (!guard_refuses(&count, (unsigned)a->config->reload_guard))
		return true;
	problems_add(problems, PROBLEM_ERROR,
		"it no longer has %zu of the %zu prefixes that are announced now, which is more "
		"than "
		"reload_guard (%" PRId64
		" %%) lets go; `redshankctl reload --force` does it all the "
		"same",
		count.n_dropped, count.n_announced, a->config->reload_guard);
	for (size_t s = 0; s < a->config->n_services; s++)
		for (size_t p = 0; p < a->config->services[s].n_prefixes; p++)
			if (engine_change_drops(a->engine, change, s, p))
				problems_add(problems, PROBLEM_ERROR,
					"would be withdrawn: %s of %s",
					prefix_format(
						&a->config->services[s].prefixes[p].prefix, name),
					a->config->services[s].name);
	return false;
}

/* Swaps the configuration. Everything that can fail comes before anything changes. */
static int agent_swap(struct agent *a, struct config *config, bool force, struct problems *problems)
{
	_cleanup_(tally_freep) struct tally *tally = NULL;
	struct config *old = a->config;
	struct engine_change *engine;
	struct checks_change *checks;
	struct repairs_change *repairs;
	int r;

	(void)agent_weigh(a, config);
	r = tally_new(&tally, config, a->tally);
	if (r < 0)
		return r;
	r = agent_prepare(a, config, &engine);
	if (r < 0)
		return r;
	if (!force && !agent_reload_is_fit(a, engine, problems)) {
		engine_change_free(engine);
		return -EPERM;
	}
	r = checks_prepare(a->checks, old, config, &checks);
	if (r < 0) {
		engine_change_free(engine);
		return r;
	}
	r = repairs_prepare(a->repairs, config, &repairs);
	if (r < 0) {
		engine_change_free(engine);
		checks_change_free(checks);
		return r;
	}
	r = agent_apply(a, config, engine);
	if (r < 0) {
		engine_change_free(engine);
		checks_change_free(checks);
		repairs_change_free(repairs);
		return r;
	}
	agent_warn_fixed(old, config);
	a->unweighed = false;
	engine_commit(a->engine, engine);
	checks_commit(a->checks, checks);
	tally_free(a->tally);
	a->tally = TAKE_PTR(tally);
	a->generation++;
	a->config = config;
	a->dress_first = true;
	repairs_commit(a->repairs, config, repairs);
	managed_configure(a->managed);
	agent_tell_words(a);
	agent_tell_addresses(a);
	agent_configure_shedding(a);
	agent_tell_sheds(a);
	(void)agent_decide(a);
	a->dress_first = false;
	agent_dress(a);
	agent_want_all(a);
	apply_flush(a->apply);
	checks_start(a->checks);
	agent_write_deadman(a);
	agent_tell_shed_events(a);
	config_free(old);
	return 0;
}

int agent_reload(void *userdata, bool force, struct problems *problems)
{
	_cleanup_config_ struct config *config = NULL;
	struct agent *a = userdata;
	int r;

	notify_reloading();
	r = config_load(a->config_path, probe_types, &config, problems);
	if (r >= 0) {
		core_dump_allow(config);
		r = agent_swap(a, config, force, problems);
		if (r >= 0)
			(void)TAKE_PTR(config);
	}
	agent_log_problems(problems);
	agent_note_load(a, r, problems);
	if (r < 0)
		event_say(LOG_ERR, EVENT_CONFIG_REFUSED, NULL,
			"reload refused: %s; what ran keeps running",
			r == -EINVAL  ? "the configuration has errors"
			: r == -EPERM ? "it would withdraw too much"
				      : strerror(-r));
	else
		event_say(LOG_NOTICE, EVENT_CONFIG_LOADED, NULL, "reloaded: watching %zu services",
			a->config->n_services);
	notify_ready();
	return r;
}

int agent_reweigh(struct agent *a)
{
	struct engine_change *engine;
	int r;

	r = agent_prepare(a, a->config, &engine);
	if (r < 0)
		return r;
	a->unweighed = false;
	engine_commit(a->engine, engine);
	agent_tell_addresses(a);
	return 0;
}

void agent_on_words(void *userdata)
{
	struct agent *a = userdata;
	int r;

	if (!a->ready || a->stopping) /* agent_on_ready() looks again */
		return;
	a->unweighed = agent_weigh(a, a->config) || a->unweighed;
	r = a->unweighed ? agent_reweigh(a) : 0;
	if (r < 0)
		event_say(LOG_ERR, EVENT_AGENT_TROUBLE, NULL,
			"weights: %s; tried again with the next decision", strerror(-r));
	agent_tell_words(a);
	(void)agent_decide(a);
	shedding_touch(a->shedding);
}

int agent_on_reload(sd_event_source *source, const struct signalfd_siginfo *si, void *userdata)
{
	struct agent *a = userdata;
	struct event_fields fields = {0};
	char who[CALLER_TEXT_MAX];
	struct problems problems;

	if (a->stopping)
		return 0;
	if (!a->ready)
		return agent_come_again(a, SIGHUP);
	fields.who = agent_signalled_by(si, who);
	event_say(LOG_NOTICE, EVENT_RELOAD, &fields, "reload: by %s",
		who[0] ? who : "a signal that came early");
	problems_init(&problems);
	(void)agent_reload(a, false, &problems);
	problems_done(&problems);
	return 0;
}
