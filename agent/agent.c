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
 * Reload and operators' words: agent_reload.c. Stop: agent_stop.c. Status socket: agent_surface.c.
 */
#include "agent/agent.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <systemd/sd-event.h>

#include "agent/agent_private.h"
#include "agent/base/clock.h"
#include "agent/core_dump.h"
#include "agent/events/events.h"
#include "agent/narrate.h"
#include "agent/system/log.h"
#include "agent/system/notify.h"
#include "agent/system/units.h"

const char *agent_check_reason(void *userdata, size_t service, size_t check)
{
	const struct agent *a = userdata;
	const struct check *c = engine_check(a->engine, service, check);

	/* Where it was asked in vain since, that is what a person has to know. */
	if (check_fell_along(c) && check_history(c, 0) == CHECK_OUTCOME_GOOD)
		return "has to rise again, for a process of the service has died";
	return checks_reason(a->checks, service, check);
}

static void agent_count(void *userdata, const struct engine_transition *t)
{
	struct agent *a = userdata;

	tally_transition(a->tally, t);
	a->revision++;
	if (t->kind == ENGINE_TRANSITION_CHECK &&
		check_fell_along(engine_check(a->engine, t->service, t->index)))
		checks_now(a->checks, t->service, t->index);
}

/* ---- what is wanted, carried out ---- */

void agent_want_all(struct agent *a)
{
	for (size_t s = 0; s < a->config->n_services; s++)
		for (size_t p = 0; p < a->config->services[s].n_prefixes; p++)
			apply_want(a->apply, s, p, engine_prefix(a->engine, s, p)->wanted);
}

/* What the engine announces prefixes with, into the configuration. True when something differed. */
static bool agent_put_on(
	const struct agent *a, struct config *config, const struct engine_change *change)
{
	bool changed = false;

	for (size_t s = 0; s < config->n_services; s++)
		for (size_t i = 0; i < config->services[s].n_prefixes; i++) {
			struct config_prefix *p = &config->services[s].prefixes[i];
			const struct engine_prefix *view =
				change ? engine_change_prefix(a->engine, change, s, i)
				       : engine_prefix(a->engine, s, i);

			changed = changed || p->announced_weight != view->weight ||
				  p->graceful != view->graceful;
			p->announced_weight = view->weight;
			p->graceful = view->graceful;
		}
	return changed;
}

int agent_apply(struct agent *a, struct config *config, const struct engine_change *change)
{
	(void)agent_put_on(a, config, change);
	return apply_configure(a->apply, config);
}

void agent_dress(struct agent *a)
{
	if (!agent_put_on(a, a->config, NULL) && !a->undressed)
		return;
	a->undressed = agent_apply(a, a->config, NULL) < 0;
	agent_want_all(a);
	apply_flush(a->apply);
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

static void agent_told(
	void *userdata, size_t service, enum event_kind kind, const struct event_fields *fields)
{
	struct agent *a = userdata;

	hooks_tell(a->hooks, service, kind, fields);
}

/* The path of a withdrawal: nothing in front of apply_flush() may wait, fork or log. True when
 * something else is wanted now. */
bool agent_decide(struct agent *a)
{
	const struct narrate_facts facts = {.config = a->config,
		.check_reason = agent_check_reason,
		.count = agent_count,
		.told = agent_told,
		.userdata = a};

	bool changed;

	if (!a->ready)
		return false;
	changed = engine_decide(a->engine, clock_monotime());
	if (changed && a->dress_first)
		agent_dress(a);
	if (changed) {
		agent_want_all(a);
		apply_flush(a->apply);
	}
	if (changed || a->undressed)
		agent_dress(a);
	agent_arm_deadline(a);
	narrate_transitions(a->engine, &facts);
	repairs_look(a->repairs);
	if (changed) {
		shedding_touch(a->shedding);
		managed_touch(a->managed);
	}
	if (a->unweighed && agent_reweigh(a) >= 0) /* it is weighed then: once */
		return agent_decide(a) || changed;
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

void agent_tell_addresses(struct agent *a)
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
	managed_touch(a->managed);
}

/* ---- start ---- */

/* 0 to `most`, without waiting for randomness: a host that has just booted may have none yet, and
 * then its clock is as good. */
static uint64_t agent_draw(uint64_t most)
{
	uint64_t drawn;

	if (getrandom(&drawn, sizeof(drawn), GRND_NONBLOCK) != sizeof(drawn))
		drawn = clock_monotime().us;
	return drawn % (most + 1);
}

static void agent_on_ready(void *userdata)
{
	struct agent *a = userdata;

	for (size_t s = 0; s < a->config->n_services; s++)
		for (size_t p = 0; p < a->config->services[s].n_prefixes; p++)
			engine_found(a->engine, s, p, apply_found(a->apply, s, p));
	if (a->config->start.spread_ms > 0)
		engine_spread(a->engine, agent_draw(a->config->start.spread_ms), clock_monotime());
	a->ready = true;
	agent_tell_addresses(a);
	a->dress_first = true;
	agent_on_words(a);
	(void)agent_decide(a);
	a->dress_first = false;
	agent_want_all(a);
	apply_flush(a->apply);
	checks_start(a->checks);
	agent_write_deadman(a);
	shedding_start(a->shedding);
	managed_ready(a->managed);
	notify_ready();
	if (a->early != 0)
		(void)raise(a->early);
	event_say(LOG_NOTICE, EVENT_CONFIG_LOADED, NULL, "watching %zu services",
		a->config->n_services);
}

int agent_come_again(struct agent *a, int number)
{
	if (a->early != SIGTERM)
		a->early = number;
	return 0;
}

void agent_check_now(void *userdata)
{
	struct agent *a = userdata;

	checks_all_now(a->checks);
}

static int agent_on_check_now(
	sd_event_source *source, const struct signalfd_siginfo *si, void *userdata)
{
	char who[CALLER_TEXT_MAX];
	const struct event_fields fields = {.who = agent_signalled_by(si, who)};

	event_say(LOG_NOTICE, EVENT_CHECK_NOW, &fields, "check now: by %s", who);
	agent_check_now(userdata);
	return 0;
}

/* ---- the agent's life ---- */

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

static int agent_new_addresses(struct agent *a)
{
	const struct managed_modules modules = {
		.config = (const struct config *const *)&a->config,
		.engine = (const struct engine *const *)&a->engine,
		.apply = (const struct apply *const *)&a->apply,
		.control = (const struct control *const *)&a->control,
		.addresses = &a->addresses,
	};
	const struct managed_ops ops = {.changed = agent_on_addresses, .userdata = a};
	int r;

	r = addresses_new(&a->addresses, a->event, agent_on_addresses, a);
	if (r < 0)
		return r;
	return managed_new(&a->managed, a->event, &modules, &ops);
}

/* Checks may speak to the very addresses that are managed, and rule 2 looks for them. */
static int agent_start(struct agent *a)
{
	managed_start(a->managed);
	return apply_start(a->apply);
}

static int agent_new_control(struct agent *a)
{
	const struct control_ops control_ops = {
		.changed = agent_on_words,
		.check_now = agent_check_now,
		.reload = agent_reload,
		.busy = agent_busy,
		.cannot_shed = agent_cannot_shed,
		.weight_waits = agent_weight_waits,
		.userdata = a,
	};

	return control_new(&a->control, a->event, a->config->state,
		(const struct config *const *)&a->config, &control_ops);
}

static int agent_init(struct agent *a)
{
	const struct apply_ops apply_ops = {
		.ready = agent_on_ready, .changed = agent_on_changed, .userdata = a};
	const struct checks_ops checks_ops = {
		.report = agent_on_report, .took = agent_on_took, .userdata = a};
	struct http_ops http_ops = agent_http_ops;
	struct engine_change *change;
	struct error error = {0};
	int r;

	http_ops.userdata = a;
	agent_raise_limits();
	r = sd_event_default(&a->event);
	if (r < 0)
		return r;
	r = loop_new(&a->loop, a->event);
	if (r < 0)
		return r;
	r = agent_add_signals(a);
	if (r < 0)
		return r;
	r = sd_event_add_time(
		a->event, &a->deadline, CLOCK_BOOTTIME, UINT64_MAX, 1000, agent_on_deadline, a);
	if (r < 0)
		return r;
	(void)sd_event_source_set_enabled(a->deadline, SD_EVENT_OFF);
	(void)sd_event_source_set_description(a->deadline, "engine-deadline");
	r = agent_new_addresses(a);
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
	r = hooks_new(&a->hooks, a->event, (const struct config *const *)&a->config);
	if (r < 0)
		return r;
	r = repairs_new(&a->repairs, a->event, a->host.units, a->engine, a->config);
	if (r < 0)
		return r;
	r = watchdog_new(
		&a->watchdog, a->event, a->checks, (const struct config *const *)&a->config);
	if (r < 0)
		return r;
	r = agent_new_control(a);
	if (r < 0)
		return r;
	(void)agent_weigh(a, a->config);
	r = agent_prepare(a, a->config, &change);
	if (r < 0)
		return r;
	engine_commit(a->engine, change);
	r = apply_new(&a->apply, a->event, &a->config->bird, &apply_ops);
	if (r < 0)
		return r;
	r = agent_apply(a, a->config, NULL);
	if (r < 0)
		return r;
	r = document_render_new(&a->status);
	if (r < 0)
		return r;
	r = agent_new_shedding(a, &error);
	if (r < 0) {
		log_error("%s", error.text);
		return r;
	}
	r = http_new(&a->http, a->event, &a->config->status, &http_ops, &error);
	if (r < 0) {
		log_error("%s", error.text);
		return r;
	}
	return agent_start(a);
}

static void agent_done(struct agent *a)
{
	http_free(a->http);
	shedding_free(a->shedding);
	managed_free(a->managed);
	load_free(a->load);
	document_render_free(a->status);
	control_free(a->control);
	watchdog_free(a->watchdog);
	checks_free(a->checks);
	apply_free(a->apply);
	repairs_free(a->repairs);
	hooks_free(a->hooks);
	engine_free(a->engine);
	units_free(a->host.units);
	addresses_free(a->addresses);
	tally_free(a->tally);
	sd_event_source_disable_unref(a->deadline);
	sd_event_source_disable_unref(a->stop_timer);
	loop_free(a->loop);
	sd_event_unref(a->event);
	config_free(a->config);
	free(a->config_path);
	events_done();
}

int agent_run(const char *config_path, struct config *config)
{
	_cleanup_(agent_done) struct agent a = {
		.config = config, .config_loaded = clock_monotime()};
	int r;

	a.config_path = strdup(config_path);
	if (!a.config_path)
		return -ENOMEM;
	core_dump_allow(config);
	if (events_init() < 0)
		log_warning("no memory: events are not kept");
	event_say(LOG_NOTICE, EVENT_AGENT_STARTED, NULL,
		"redshankd " REDSHANK_VERSION " starts on %s", config->node);
	r = agent_init(&a);
	if (r >= 0)
		r = loop_run(a.loop);
	if (r < 0)
		event_say(LOG_ERR, EVENT_AGENT_TROUBLE, NULL, "cannot go on: %s", strerror(-r));
	return r;
}
