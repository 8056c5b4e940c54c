/*
 * The glue. It owns the modules and carries facts from one to the other; it decides nothing.
 *
 *   probes, addresses --> engine --> apply --> BIRD
 *                            |          |
 *                           log     status socket
 *
 * Start: apply looks at what BIRD does (at most a second), the engine takes that as found, then the
 * checks begin. Every fact goes the same way: into the engine, engine_decide(), and what is wanted
 * into apply, which writes to BIRD before anything else happens; the log comes after that. From a
 * death to BIRD's socket nothing is allocated (tests/netns/hot-path.py), so that a withdrawal
 * leaves also when no memory is to be had; the loop is helped to come through that, too.
 *
 * Reload: the new configuration is built aside. A check that is configured as before keeps its
 * running probe, and the settings that the probe borrowed move into the new configuration. The old
 * configuration is freed last.
 *
 * Stop: with TERM the engine wants each service by its on_stop, and the agent stays until BIRD has
 * done it or the time is over; with USR2 it leaves at once and BIRD keeps what was true.
 */
#include "agent/agent.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <systemd/sd-event.h>

#include "agent/base/clock.h"
#include "agent/bird/apply.h"
#include "agent/checks.h"
#include "agent/control.h"
#include "agent/core/engine.h"
#include "agent/health.h"
#include "agent/narrate.h"
#include "agent/status/document.h"
#include "agent/status/explain.h"
#include "agent/status/http.h"
#include "agent/system/addresses.h"
#include "agent/system/log.h"
#include "agent/system/notify.h"
#include "agent/system/units.h"
#include "agent/view.h"
#include "agent/watchdog.h"

#define AGENT_STOP_MAX_MS 5000 /* for BIRD to settle; well below TimeoutStopSec */
#define AGENT_EVENTS_AT_ONCE 1024
#define AGENT_STARVED_MS 10
#define AGENT_STARVED_SAY_US 60000000

struct agent {
	sd_event *event;
	char *config_path;
	struct config *config;
	struct engine *engine;
	struct apply *apply;
	struct addresses *addresses;
	struct probe_host host;
	struct http *http;
	struct checks *checks;
	struct watchdog *watchdog;
	struct tally *tally;
	uint64_t generation; /* of the configuration */
	struct control *control;
	sd_event_source *deadline;
	sd_event_source *stop_timer;
	bool ready; /* what BIRD does is known; the engine decides */
	int early;  /* a HUP or TERM that came before that and is to come again; 0: none */
	bool stopping;
	bool withdrew;		/* the stop did, and BIRD was told */
	bool leaving;		/* nothing is waited for any more but the grace */
	char config_error[512]; /* why the configuration on disk was refused; "": it was not */
	struct monotime config_loaded;
};

static const char *agent_check_reason(void *userdata, size_t service, size_t check)
{
	const struct agent *a = userdata;

	return checks_reason(a->checks, service, check);
}

static void agent_count(void *userdata, const struct engine_transition *t)
{
	struct agent *a = userdata;

	tally_transition(a->tally, t);
}

/* ---- what is wanted, carried out ---- */

static void agent_want_all(struct agent *a)
{
	for (size_t s = 0; s < a->config->n_services; s++)
		for (size_t p = 0; p < a->config->services[s].n_prefixes; p++)
			apply_want(a->apply, s, p, engine_prefix(a->engine, s, p)->wanted);
}

static void agent_arm_deadline(struct agent *a)
{
	struct monotime at = engine_deadline(a->engine);

	if (monotime_is_never(at)) {
		(void)sd_event_source_set_enabled(a->deadline, SD_EVENT_OFF);
		return;
	}
	(void)sd_event_source_set_time(a->deadline, at.us);
	(void)sd_event_source_set_enabled(a->deadline, SD_EVENT_ONESHOT);
}

/* The path of a withdrawal: nothing in front of apply_flush() may wait, fork or log. True when
 * something else is wanted now. */
static bool agent_decide(struct agent *a)
{
	const struct narrate_facts facts = {.config = a->config,
		.check_reason = agent_check_reason,
		.count = agent_count,
		.userdata = a};

	bool changed;

	if (!a->ready)
		return false;
	changed = engine_decide(a->engine, clock_monotime());
	if (changed) {
		agent_want_all(a);
		apply_flush(a->apply);
	}
	agent_arm_deadline(a);
	narrate_transitions(a->engine, &facts);
	return changed;
}

/* The operators' words, into the engine. */
static void agent_tell_words(struct agent *a)
{
	const struct words *words = control_words(a->control);
	char name[PREFIX_TEXT_MAX];

	for (size_t s = 0; s < a->config->n_services; s++) {
		const struct config_service *service = &a->config->services[s];

		for (size_t p = 0; p < service->n_prefixes; p++) {
			const char *prefix = prefix_format(&service->prefixes[p].prefix, name);

			engine_word(a->engine, s, p,
				words_cover(words, service->name, prefix) ? PREFIX_WORD_DRAINED
									  : PREFIX_WORD_NONE);
		}
	}
}

/* The weights that operators gave, into the configuration: apply, engine and status read them
 * there. True when one is another now. */
static bool agent_weigh(const struct agent *a, struct config *config)
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

			changed = changed || p->weight != weight;
			p->weight = weight;
		}
	return changed;
}

static int agent_on_deadline(sd_event_source *source, uint64_t us, void *userdata)
{
	(void)agent_decide(userdata);
	return 0;
}

/* ---- facts ---- */

static struct monotime agent_on_report(void *userdata, size_t service, size_t check,
	enum check_outcome outcome, struct monotime started)
{
	struct agent *a = userdata;
	struct monotime now = clock_monotime();

	engine_check_spoke(a->engine, service, check, outcome, now);
	(void)agent_decide(a);
	return check_next_start(engine_check(a->engine, service, check), started, now);
}

static void agent_on_took(void *userdata, size_t service, size_t check, enum check_outcome outcome,
	uint64_t duration_us)
{
	struct agent *a = userdata;

	tally_outcome(a->tally, service, check, outcome, duration_us);
}

static void agent_tell_addresses(struct agent *a)
{
	for (size_t s = 0; s < a->config->n_services; s++) {
		const struct config_service *service = &a->config->services[s];

		for (size_t p = 0; p < service->n_prefixes; p++) {
			enum prefix_address fact = PREFIX_ADDRESS_UNKNOWN;

			switch (addresses_in(a->addresses, &service->prefixes[p].prefix)) {
			case ADDRESSES_UNKNOWN:
				break;
			case ADDRESSES_PRESENT:
				fact = PREFIX_ADDRESS_PRESENT;
				break;
			case ADDRESSES_MISSING:
				fact = PREFIX_ADDRESS_MISSING;
				break;
			}
			if (!service->prefixes[p].address_check)
				fact = PREFIX_ADDRESS_PRESENT;
			engine_address(a->engine, s, p, fact);
		}
	}
}

static void agent_on_addresses(void *userdata)
{
	struct agent *a = userdata;

	agent_tell_addresses(a);
	(void)agent_decide(a);
}

/* ---- start, reload, stop ---- */

static void agent_on_words(void *userdata);

static void agent_on_ready(void *userdata)
{
	struct agent *a = userdata;

	for (size_t s = 0; s < a->config->n_services; s++)
		for (size_t p = 0; p < a->config->services[s].n_prefixes; p++)
			engine_found(a->engine, s, p, apply_found(a->apply, s, p));
	a->ready = true;
	agent_tell_addresses(a);
	agent_on_words(a);
	(void)agent_decide(a);
	agent_want_all(a);
	apply_flush(a->apply);
	checks_start(a->checks);
	notify_ready();
	if (a->early != 0)
		(void)raise(a->early);
	log_notice("watching %zu services", a->config->n_services);
}

/* BIRD did what was wanted of it, or is away: then the fragments say it for when it comes back. */
static bool agent_may_leave(const struct agent *a)
{
	const struct apply_status *status = apply_status(a->apply);

	return status->settled || status->link == APPLY_LINK_AWAY ||
	       status->link == APPLY_LINK_REFUSED;
}

static int agent_on_grace_over(sd_event_source *source, uint64_t us, void *userdata)
{
	struct agent *a = userdata;

	return sd_event_exit(a->event, 0);
}

/* The time is over at which a stop leaves in any case: fn is called then. */
static int agent_stop_timer(struct agent *a, uint64_t ms, sd_event_time_handler_t fn)
{
	a->stop_timer = sd_event_source_disable_unref(a->stop_timer);
	return sd_event_add_time_relative(
		a->event, &a->stop_timer, CLOCK_BOOTTIME, ms * 1000, 1000, fn, a);
}

/* Routers have just been told: queries that were on their way are answered before the agent ends,
 * since what stops after it may be the service. */
static void agent_leave(struct agent *a)
{
	uint64_t grace_ms = a->withdrew ? a->config->stop_grace_ms : 0;

	if (a->leaving)
		return;
	a->leaving = true;
	if (grace_ms == 0 || agent_stop_timer(a, grace_ms, agent_on_grace_over) < 0)
		(void)sd_event_exit(a->event, 0);
}

static void agent_on_changed(void *userdata)
{
	struct agent *a = userdata;

	if (a->stopping && agent_may_leave(a))
		agent_leave(a);
}

/* BIRD throws away what lies unread in a socket that was closed, so this is the last word. */
static int agent_leave_unconfirmed(struct agent *a)
{
	log_warning("stop: BIRD has not confirmed the withdrawal; the fragments say it, and "
		    "`birdc configure` makes BIRD do it");
	return sd_event_exit(a->event, 0);
}

static int agent_on_stop_timeout(sd_event_source *source, uint64_t us, void *userdata)
{
	return agent_leave_unconfirmed(userdata);
}

/* A signal that cannot be acted upon yet is sent again in a second at most. TERM outdoes HUP. */
static int agent_come_again(struct agent *a, int number)
{
	if (a->early != SIGTERM)
		a->early = number;
	return 0;
}

/* TERM, INT. A second one does not wait for BIRD. */
static int agent_on_stop(sd_event_source *source, const struct signalfd_siginfo *si, void *userdata)
{
	struct agent *a = userdata;

	if (a->leaving || (!a->ready && a->early == SIGTERM))
		return sd_event_exit(a->event, 0);
	if (!a->ready) /* What is announced is not known, and would stay without anybody. */
		return agent_come_again(a, SIGTERM);
	if (a->stopping)
		return agent_leave_unconfirmed(a);
	log_notice("stopping: each service by its on_stop");
	a->stopping = true;
	checks_stop(a->checks);
	engine_stop(a->engine);
	a->withdrew = agent_decide(a) && apply_status(a->apply)->link == APPLY_LINK_UP;
	notify_stopping();
	if (agent_may_leave(a)) {
		agent_leave(a);
		return 0;
	}
	return agent_stop_timer(a, AGENT_STOP_MAX_MS, agent_on_stop_timeout);
}

static int agent_on_leave(
	sd_event_source *source, const struct signalfd_siginfo *si, void *userdata)
{
	struct agent *a = userdata;

	log_notice("leaving: BIRD keeps what is announced now");
	notify_stopping();
	return sd_event_exit(a->event, 0);
}

static void agent_check_now(void *userdata)
{
	struct agent *a = userdata;

	log_notice("checking everything now");
	checks_now(a->checks);
}

static int agent_on_check_now(
	sd_event_source *source, const struct signalfd_siginfo *si, void *userdata)
{
	agent_check_now(userdata);
	return 0;
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
		log_warning("reload: `bird` has changed, which takes a restart of the agent");
	if (!agent_same_text(old->status.socket, new->status.socket) ||
		!agent_same_text(old->status.group, new->status.group) ||
		!agent_same_text(old->status.listen, new->status.listen))
		log_warning("reload: `status` has changed, which takes a restart of the agent");
	if (!agent_same_text(old->state, new->state))
		log_warning("reload: `state` has changed, which takes a restart of the agent");
}

static void agent_log_problems(const struct problems *problems)
{
	for (size_t i = 0; i < problems->n; i++)
		log_line(problems->items[i].level == PROBLEM_ERROR ? LOG_ERR : LOG_WARNING,
			"configuration: %s", problems->items[i].text);
	if (problems->n_dropped > 0)
		log_error("configuration: and %zu more problems", problems->n_dropped);
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

/* Swaps the configuration. Everything that can fail comes before anything changes. */
static int agent_swap(struct agent *a, struct config *config)
{
	_cleanup_(tally_freep) struct tally *tally = NULL;
	struct config *old = a->config;
	struct engine_change *engine;
	struct checks_change *checks;
	int r;

	(void)agent_weigh(a, config);
	r = tally_new(&tally, config, a->tally);
	if (r < 0)
		return r;
	r = view_prepare(config, &engine);
	if (r < 0)
		return r;
	r = checks_prepare(a->checks, old, config, &checks);
	if (r < 0) {
		engine_change_free(engine);
		return r;
	}
	r = apply_configure(a->apply, config);
	if (r < 0) {
		engine_change_free(engine);
		checks_change_free(checks);
		return r;
	}
	engine_commit(a->engine, engine);
	checks_commit(a->checks, checks);
	tally_free(a->tally);
	a->tally = TAKE_PTR(tally);
	a->generation++;
	a->config = config;
	agent_tell_words(a);
	agent_tell_addresses(a);
	(void)agent_decide(a);
	agent_want_all(a);
	apply_flush(a->apply);
	checks_start(a->checks);
	config_free(old);
	return 0;
}

static int agent_reload(void *userdata, struct problems *problems)
{
	_cleanup_config_ struct config *config = NULL;
	struct agent *a = userdata;
	int r;

	notify_reloading();
	r = config_load(a->config_path, probe_types, &config, problems);
	agent_log_problems(problems);
	agent_note_load(a, r, problems);
	if (r >= 0) {
		agent_warn_fixed(a->config, config);
		r = agent_swap(a, config);
		agent_note_load(a, r, NULL);
		if (r >= 0)
			(void)TAKE_PTR(config);
	}
	if (r < 0)
		log_error("reload refused: %s; what ran keeps running",
			r == -EINVAL ? "the configuration has errors" : strerror(-r));
	else
		log_notice("reloaded: watching %zu services", a->config->n_services);
	notify_ready();
	return r;
}

/* The same configuration with other weights: checks go on, fragments are rendered anew. */
static int agent_reweigh(struct agent *a)
{
	struct engine_change *engine;
	int r;

	r = view_prepare(a->config, &engine);
	if (r < 0)
		return r;
	r = apply_configure(a->apply, a->config);
	if (r < 0) {
		engine_change_free(engine);
		return r;
	}
	engine_commit(a->engine, engine);
	agent_tell_addresses(a);
	return 0;
}

static void agent_on_words(void *userdata)
{
	struct agent *a = userdata;
	bool reweighed;
	int r;

	if (!a->ready || a->stopping) /* agent_on_ready() looks again */
		return;
	reweighed = agent_weigh(a, a->config);
	r = reweighed ? agent_reweigh(a) : 0;
	if (r < 0)
		log_error("weights: %s; they count from the next reload", strerror(-r));
	agent_tell_words(a);
	(void)agent_decide(a);
	if (reweighed) {
		agent_want_all(a);
		apply_flush(a->apply);
	}
}

static int agent_on_reload(
	sd_event_source *source, const struct signalfd_siginfo *si, void *userdata)
{
	struct agent *a = userdata;
	struct problems problems;

	if (a->stopping)
		return 0;
	if (!a->ready)
		return agent_come_again(a, SIGHUP);
	problems_init(&problems);
	(void)agent_reload(a, &problems);
	problems_done(&problems);
	return 0;
}

/* ---- the agent's life ---- */

static void agent_check_view(void *userdata, size_t service, size_t check, struct run_view *ret)
{
	const struct agent *a = userdata;

	checks_view(a->checks, service, check, ret);
}

static struct document_facts agent_facts(struct agent *a)
{
	return (struct document_facts){
		.config = a->config,
		.engine = a->engine,
		.apply = a->apply,
		.check_reason = agent_check_reason,
		.check_view = agent_check_view,
		.words = control_words(a->control),
		.userdata = a,
		.ready = a->ready,
		.stopping = a->stopping,
		.config_error = a->config_error,
		.config_loaded = a->config_loaded,
	};
}

static char *agent_status(void *userdata)
{
	const struct document_facts facts = agent_facts(userdata);

	return document_status(&facts);
}

static char *agent_explain(void *userdata, const char *name, bool *ret_found)
{
	const struct document_facts facts = agent_facts(userdata);

	return document_explain(&facts, name, ret_found);
}

static const char *agent_busy(void *userdata)
{
	const struct agent *a = userdata;

	if (a->stopping)
		return "the agent is stopping";
	return a->ready ? NULL : "the agent has just started; ask again in a second";
}

static char *agent_command(void *userdata, const char *command, const char *body, size_t n,
	const struct caller *caller, unsigned *ret_status)
{
	struct agent *a = userdata;

	return control_command(a->control, command, body, n, caller, ret_status);
}

static void agent_metrics(void *userdata, struct metrics_facts *ret)
{
	struct agent *a = userdata;

	*ret = (struct metrics_facts){
		.document = agent_facts(a), .tally = a->tally, .generation = a->generation};
}

static bool agent_health(void *userdata, char text[HTTP_HEALTH_MAX])
{
	const struct agent *a = userdata;

	return health_tell(a->checks, a->config, a->ready, a->stopping, text, HTTP_HEALTH_MAX);
}

static int agent_add_signals(struct agent *a)
{
	static const struct {
		int number;
		sd_event_signal_handler_t handler;
	} signals[] = {
		{SIGTERM, agent_on_stop},
		{SIGINT, agent_on_stop},
		{SIGHUP, agent_on_reload},
		{SIGUSR1, agent_on_check_now},
		{SIGUSR2, agent_on_leave},
	};
	sigset_t blocked;

	(void)signal(SIGPIPE, SIG_IGN);
	(void)sigemptyset(&blocked);
	(void)sigaddset(&blocked, SIGCHLD); /* sd_event_add_child() asks for it */
	for (size_t i = 0; i < ELEMENTSOF(signals); i++)
		(void)sigaddset(&blocked, signals[i].number);
	if (sigprocmask(SIG_BLOCK, &blocked, NULL) < 0)
		return -errno;
	for (size_t i = 0; i < ELEMENTSOF(signals); i++) {
		int r = sd_event_add_signal(
			a->event, NULL, signals[i].number, signals[i].handler, a);

		if (r < 0)
			return r;
	}
	return 0;
}

/* Every check may hold a descriptor or two: take what the hard limit gives. */
static void agent_raise_limits(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

/* The loop's queue of what has happened grows when more happens at once than ever before, which is
 * when a host fails and memory may be short. So it is made to grow now: it never shrinks
 * (prioq_put() of systemd). Best effort. */
static void agent_reserve_loop(struct agent *a)
{
	sd_event_source *sources[AGENT_EVENTS_AT_ONCE] = {NULL};

	for (size_t i = 0; i < ELEMENTSOF(sources); i++)
		if (sd_event_add_defer(a->event, &sources[i], NULL, NULL) < 0)
			break;
	for (size_t i = 0; i < ELEMENTSOF(sources); i++)
		sd_event_source_disable_unref(sources[i]);
}

/* Runs until told to stop. Without memory the loop itself may give up: then it is run again, after
 * a moment, since it keeps what has happened. */
static int agent_loop(struct agent *a)
{
	struct monotime said = MONOTIME_ZERO;

	for (;;) {
		int r = sd_event_loop(a->event);

		if (r != -ENOMEM)
			return r;
		if (monotime_since_us(said, clock_monotime()) > AGENT_STARVED_SAY_US) {
			log_error("no memory: the agent looks again every %d ms", AGENT_STARVED_MS);
			said = clock_monotime();
		}
		(void)poll(NULL, 0, AGENT_STARVED_MS);
	}
}

static int agent_init(struct agent *a)
{
	const struct apply_ops apply_ops = {
		.ready = agent_on_ready, .changed = agent_on_changed, .userdata = a};
	const struct checks_ops checks_ops = {
		.report = agent_on_report, .took = agent_on_took, .userdata = a};
	const struct control_ops control_ops = {
		.changed = agent_on_words,
		.check_now = agent_check_now,
		.reload = agent_reload,
		.busy = agent_busy,
		.userdata = a,
	};
	const struct http_ops http_ops = {
		.status = agent_status,
		.explain = agent_explain,
		.metrics = agent_metrics,
		.health = agent_health,
		.command = agent_command,
		.commands = control_commands,
		.userdata = a,
	};
	struct engine_change *change;
	struct error error = {0};
	int r;

	agent_raise_limits();
	r = sd_event_default(&a->event);
	if (r < 0)
		return r;
	agent_reserve_loop(a);
	r = agent_add_signals(a);
	if (r < 0)
		return r;
	r = sd_event_add_time(
		a->event, &a->deadline, CLOCK_BOOTTIME, UINT64_MAX, 1000, agent_on_deadline, a);
	if (r < 0)
		return r;
	(void)sd_event_source_set_enabled(a->deadline, SD_EVENT_OFF);
	(void)sd_event_source_set_description(a->deadline, "engine-deadline");
	r = addresses_new(&a->addresses, a->event, agent_on_addresses, a);
	if (r < 0)
		return r;
	a->host.event = a->event;
	r = units_new(&a->host.units, a->event, NULL);
	if (r < 0)
		return r;
	a->engine = engine_new();
	if (!a->engine)
		return -ENOMEM;
	r = tally_new(&a->tally, a->config, NULL);
	if (r < 0)
		return r;
	r = checks_new(&a->checks, &a->host, a->config, &checks_ops);
	if (r < 0)
		return r;
	r = watchdog_new(
		&a->watchdog, a->event, a->checks, (const struct config *const *)&a->config);
	if (r < 0)
		return r;
	r = control_new(&a->control, a->event, a->config->state,
		(const struct config *const *)&a->config, &control_ops);
	if (r < 0)
		return r;
	(void)agent_weigh(a, a->config);
	r = view_prepare(a->config, &change);
	if (r < 0)
		return r;
	engine_commit(a->engine, change);
	r = apply_new(&a->apply, a->event, &a->config->bird, &apply_ops);
	if (r < 0)
		return r;
	r = apply_configure(a->apply, a->config);
	if (r < 0)
		return r;
	r = http_new(&a->http, a->event, &a->config->status, &http_ops, &error);
	if (r < 0) {
		log_error("%s", error.text);
		return r;
	}
	return apply_start(a->apply);
}

static void agent_done(struct agent *a)
{
	http_free(a->http);
	control_free(a->control);
	watchdog_free(a->watchdog);
	checks_free(a->checks);
	apply_free(a->apply);
	engine_free(a->engine);
	units_free(a->host.units);
	addresses_free(a->addresses);
	tally_free(a->tally);
	sd_event_source_disable_unref(a->deadline);
	sd_event_source_disable_unref(a->stop_timer);
	sd_event_unref(a->event);
	config_free(a->config);
	free(a->config_path);
}

int agent_run(const char *config_path, struct config *config)
{
	_cleanup_(agent_done) struct agent a = {
		.config = config, .config_loaded = clock_monotime()};
	int r;

	a.config_path = strdup(config_path);
	if (!a.config_path)
		return -ENOMEM;
	log_notice("redshankd " REDSHANK_VERSION " starts on %s", config->node);
	r = agent_init(&a);
	if (r >= 0)
		r = agent_loop(&a);
	if (r < 0)
		log_error("cannot go on: %s", strerror(-r));
	return r;
}
