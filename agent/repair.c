/*
 * The doing of repairs: core/repair.c decides.
 *
 * One item for each service that has a `restart`. A fact may have changed after each decision of
 * the engine, so each is stepped then, which costs some comparisons; what a step asks for is done
 * from the timer, since repairs_look() stands behind a withdrawal and other withdrawals may be due.
 * The timer and every answer of systemd come at a lower priority than a death.
 *
 * The log gets each attempt and what came of it, and once an episode each reason for which the unit
 * is left alone: what repeats, however often, is said once.
 */
#include "agent/repair.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "agent/base/clock.h"
#include "agent/events/events.h"
#include "agent/repair_keep.h"

#define REPAIR_PRIORITY (SD_EVENT_PRIORITY_NORMAL + 10)
#define REPAIR_TEXT_MAX 160

struct repair_item {
	struct repairs *repairs;
	size_t service; /* in the configuration */
	char *unit;
	bool *triggers; /* of the service's checks, in their order */
	size_t n_checks;
	struct repair repair;
	enum repair_do todo; /* from the timer */
	struct units_call *call;
	unsigned told; /* bits of enum repair_state that this episode's log has */
	char text[REPAIR_TEXT_MAX];
	uint64_t results[REPAIR_N_RESULTS];
};

struct repairs {
	sd_event *event;
	struct units *units;
	struct engine *engine;
	const struct config *config;
	char *folder; /* of the fragments, as at the start: another one takes a restart */
	sd_event_source *timer;
	struct repair_item **items; /* of the services in their order; NULL where there is none */
	size_t n;
	bool holds; /* the bus */
	bool stopped;
};

struct repairs_change {
	struct repair_item **items; /* NULL: none, or the old one's */
	size_t *old;		    /* index of the service that was called so, or SIZE_MAX */
	bool *same;		    /* the same checks trigger there */
	size_t n;
};

DEFINE_CLEANUP_PTR(struct repairs *, repairs_free)
DEFINE_CLEANUP_PTR(struct repairs_change *, repairs_change_free)

/* ---- items ---- */

static void item_free(struct repair_item *item)
{
	if (!item)
		return;
	units_call_free(item->call);
	repair_done_with(&item->repair);
	free(item->triggers);
	free(item->unit);
	free(item);
}

DEFINE_CLEANUP_PTR(struct repair_item *, item_free)

static bool is_trigger(const struct config_restart *restart, const char *check)
{
	for (size_t i = 0; i < restart->checks.n; i++)
		if (strcmp(restart->checks.items[i], check) == 0)
			return true;
	return false;
}

/* How long a check that triggers takes to rise, at most, after a restart that helped. */
static uint64_t settle_ms(const struct config_service *service)
{
	uint64_t most = 0;

	for (size_t i = 0; i < service->n_checks; i++) {
		const struct config_check *c = &service->checks[i];
		uint64_t next =
			c->fast_interval_ms > c->timeout_ms ? c->fast_interval_ms : c->timeout_ms;
		uint64_t ms = c->interval_ms + c->timeout_ms + (c->rise - 1) * next;

		if (is_trigger(service->restart, c->name) && ms > most)
			most = ms;
	}
	return most;
}

static struct repair_item *item_new(const struct config_service *service)
{
	_cleanup_(item_freep) struct repair_item *item = calloc(1, sizeof(*item));
	const struct repair_settings settings = {
		.delay_ms = service->restart->delay_ms,
		.per_ms = service->restart->per_ms,
		.limit = (size_t)service->restart->limit,
		.settle_ms = settle_ms(service),
	};

	if (!item || repair_init(&item->repair, &settings, clock_monotime()) < 0)
		return NULL;
	item->unit = strdup(service->restart->unit);
	item->n_checks = service->n_checks;
	item->triggers = calloc(service->n_checks + 1, sizeof(*item->triggers));
	if (!item->unit || !item->triggers)
		return NULL;
	for (size_t i = 0; i < service->n_checks; i++)
		item->triggers[i] = is_trigger(service->restart, service->checks[i].name);
	return TAKE_PTR(item);
}

/* The same unit and settings: what is under way goes on, where the same checks trigger. */
static bool item_same(const struct repair_item *a, const struct repair_item *b)
{
	const struct repair_settings *x = &a->repair.settings, *y = &b->repair.settings;

	return strcmp(a->unit, b->unit) == 0 && x->delay_ms == y->delay_ms &&
	       x->per_ms == y->per_ms && x->limit == y->limit && x->settle_ms == y->settle_ms;
}

/* By their names, wherever they stand. */
static bool triggers_same(const struct config_restart *a, const struct config_restart *b)
{
	for (size_t i = 0; i < a->checks.n; i++)
		if (!is_trigger(b, a->checks.items[i]))
			return false;
	for (size_t i = 0; i < b->checks.n; i++)
		if (!is_trigger(a, b->checks.items[i]))
			return false;
	return true;
}

static const struct config_service *item_service(const struct repair_item *item)
{
	return &item->repairs->config->services[item->service];
}

/* ---- facts ---- */

static enum repair_trigger item_trigger(const struct repair_item *item)
{
	enum repair_trigger trigger = REPAIR_TRIGGER_UP;

	for (size_t i = 0; i < item->n_checks; i++)
		if (item->triggers[i])
			trigger = repair_trigger_worse(trigger,
				repair_trigger_of(
					engine_check(item->repairs->engine, item->service, i)));
	return trigger;
}

/* An operator has taken it out as a whole, or frozen the server. */
static bool item_held(const struct repair_item *item)
{
	const struct config_service *service = item_service(item);

	if (engine_is_frozen(item->repairs->engine))
		return true;
	for (size_t i = 0; i < service->n_prefixes; i++) {
		const struct engine_prefix *p =
			engine_prefix(item->repairs->engine, item->service, i);

		if (p->reason != PREFIX_REASON_DRAINED &&
			!(p->reason == PREFIX_REASON_FORCED && p->wanted == PREFIX_WANTED_WITHDRAW))
			return false;
	}
	return service->n_prefixes > 0;
}

/* ---- the log ---- */

/* Why the unit is left alone: once an episode each. */
static void say_state(struct repair_item *item)
{
	const char *name = item_service(item)->name;
	const struct repair *r = &item->repair;
	unsigned bit = 1U << r->state;
	const struct event_fields fields = {
		.service = name, .unit = item->unit, .reason = item->text};

	if (r->state == REPAIR_STATE_IDLE)
		item->told = 0;
	if (item->told & bit)
		return;
	item->told |= bit;
	switch (r->state) {
	case REPAIR_STATE_IDLE:
	case REPAIR_STATE_WAITING:
	case REPAIR_STATE_ASKING:
	case REPAIR_STATE_RESTARTING:
		return;
	case REPAIR_STATE_HELD:
		event_say(LOG_INFO, EVENT_REPAIR_LEFT, &fields,
			"service %s: %s is not restarted while it is %s", name, item->unit,
			engine_is_frozen(item->repairs->engine) ? "frozen" : "drained");
		return;
	case REPAIR_STATE_STOPPED:
		event_say(LOG_INFO, EVENT_REPAIR_LEFT, &fields,
			"service %s: %s was stopped, or ended with success (%s): it is not "
			"restarted",
			name, item->unit, item->text);
		return;
	case REPAIR_STATE_LEFT:
		event_say(LOG_INFO, EVENT_REPAIR_LEFT, &fields,
			"service %s: %s is left to systemd (%s)", name, item->unit, item->text);
		return;
	case REPAIR_STATE_EXHAUSTED:
		event_say(LOG_WARNING, EVENT_REPAIR_FAILED, &fields,
			"service %s: %s was restarted %zu times within %" PRIu64
			" s and did not get well: left alone until that is over",
			name, item->unit, r->settings.limit, r->settings.per_ms / 1000);
		return;
	case REPAIR_STATE_UNKNOWN:
		event_say(LOG_WARNING, EVENT_REPAIR_FAILED, &fields,
			"service %s: %s cannot be restarted while systemd does not answer: %s",
			name, item->unit, item->text);
		return;
	case REPAIR_STATE_MISSING:
		event_say(LOG_WARNING, EVENT_REPAIR_FAILED, &fields,
			"service %s: %s cannot be restarted: systemd has no such unit that can "
			"be started (%s)",
			name, item->unit, item->text);
		return;
	case REPAIR_STATE_DENIED:
		event_say(LOG_WARNING, EVENT_REPAIR_FAILED, &fields,
			"service %s: %s was not restarted: systemd does not let us: %s (a "
			"polkit rule has to name the unit; docs/repair.md)",
			name, item->unit, item->text);
		return;
	}
	abort();
}

static void say_attempt(const struct repair_item *item, bool restart)
{
	const struct event_fields fields = {
		.service = item_service(item)->name, .unit = item->unit, .reason = item->text};

	event_say(LOG_NOTICE, EVENT_REPAIR, &fields, "service %s: %s %s, attempt %zu of %zu (%s)",
		item_service(item)->name, restart ? "restarting" : "starting", item->unit,
		repair_attempts(&item->repair, clock_monotime()), item->repair.settings.limit,
		item->text);
}

static void say_result(const struct repair_item *item, enum repair_result result)
{
	const char *name = item_service(item)->name;
	uint64_t next_s = monotime_since_us(clock_monotime(), item->repair.next) / 1000000;
	const struct event_fields fields = {.service = name,
		.unit = item->unit,
		.to = repair_result_name(result),
		.reason = item->text};

	if (result == REPAIR_RESULT_DENIED || result == REPAIR_RESULT_MISSING)
		return; /* a state of its own */
	if (result == REPAIR_RESULT_DONE)
		event_say(LOG_NOTICE, EVENT_REPAIR_DONE, &fields,
			"service %s: %s was started; its prefixes return when its checks have "
			"risen",
			name, item->unit);
	else
		event_say(LOG_WARNING, EVENT_REPAIR_FAILED, &fields,
			"service %s: %s was not started: %s (%s); looked at again in %" PRIu64 " s",
			name, item->unit, repair_result_name(result), item->text, next_s);
}

/* ---- steps ---- */

static void repairs_arm(struct repairs *r)
{
	struct monotime next = MONOTIME_NEVER;

	for (size_t i = 0; i < r->n; i++) {
		if (!r->items[i])
			continue;
		next = monotime_min(next, r->items[i]->todo != REPAIR_DO_NOTHING
						  ? MONOTIME_ZERO
						  : repair_deadline(&r->items[i]->repair));
	}
	if (!monotime_is_never(next))
		(void)sd_event_source_set_time(r->timer, next.us);
	(void)sd_event_source_set_enabled(
		r->timer, monotime_is_never(next) || r->stopped ? SD_EVENT_OFF : SD_EVENT_ONESHOT);
}

static void item_step(struct repair_item *item)
{
	enum repair_trigger trigger = item_trigger(item);
	/* Of a service that is well nobody asks: this comes with each outcome of a check. */
	const struct repair_facts facts = {
		trigger, trigger != REPAIR_TRIGGER_UP && item_held(item)};
	enum repair_state before = item->repair.state;
	enum repair_do what = repair_step(&item->repair, &facts, clock_monotime());

	if (before == REPAIR_STATE_RESTARTING && item->repair.state != before) {
		units_call_free(item->call);
		item->call = NULL;
		(void)snprintf(item->text, sizeof(item->text), "its job has no end");
		item->results[item->repair.last_result]++;
		say_result(item, item->repair.last_result);
	}
	if (what != REPAIR_DO_NOTHING)
		item->todo = what;
	else if (item->repair.state != REPAIR_STATE_ASKING)
		item->todo = REPAIR_DO_NOTHING;
	say_state(item);
}

void repairs_look(struct repairs *r)
{
	bool any = false;

	if (r->stopped)
		return;
	for (size_t i = 0; i < r->n; i++)
		if (r->items[i]) {
			item_step(r->items[i]);
			any = true;
		}
	if (any)
		repairs_arm(r);
}

void repairs_stop(struct repairs *r)
{
	r->stopped = true;
	/* An order that was given is systemd's; a question is followed by nothing any more. */
	for (size_t i = 0; i < r->n; i++) {
		struct repair_item *item = r->items[i];

		if (!item || item->repair.state != REPAIR_STATE_ASKING)
			continue;
		units_call_free(item->call);
		item->call = NULL;
		item->todo = REPAIR_DO_NOTHING;
	}
	repairs_arm(r);
}

/* ---- systemd ---- */

static enum repair_result result_of(enum units_job_end end)
{
	switch (end) {
	case UNITS_JOB_DONE:
		return REPAIR_RESULT_DONE;
	case UNITS_JOB_FAILED:
		return REPAIR_RESULT_FAILED;
	case UNITS_JOB_TIMED_OUT:
		return REPAIR_RESULT_TIMED_OUT;
	case UNITS_JOB_CANCELLED:
		return REPAIR_RESULT_CANCELLED;
	case UNITS_JOB_DENIED:
		return REPAIR_RESULT_DENIED;
	case UNITS_JOB_NO_UNIT:
		return REPAIR_RESULT_MISSING;
	case UNITS_JOB_REFUSED:
		return REPAIR_RESULT_REFUSED;
	case UNITS_JOB_UNANSWERED:
		return REPAIR_RESULT_UNANSWERED;
	}
	abort();
}

/* Attempts outlive the agent. */
static void repairs_keep(const struct repairs *r)
{
	repair_keep(r, r->config, r->folder);
}

static void item_ended(struct repair_item *item, enum units_job_end end, const char *text)
{
	enum repair_result result = result_of(end);

	(void)snprintf(item->text, sizeof(item->text), "%s", text);
	item->results[result]++;
	if (result == REPAIR_RESULT_DONE)
		engine_restarted(
			item->repairs->engine, item->service, item->repair.last, clock_monotime());
	repair_done(&item->repair, result, clock_monotime());
	if (result == REPAIR_RESULT_DENIED || result == REPAIR_RESULT_MISSING)
		repairs_keep(item->repairs); /* it was none */
	say_result(item, result);
	repairs_look(item->repairs);
}

static void on_ended(void *userdata, enum units_job_end end, const char *text)
{
	struct repair_item *item = userdata;

	item->call = NULL;
	item_ended(item, end, text);
}

static void item_order(struct repair_item *item, enum repair_do what)
{
	enum units_order order =
		what == REPAIR_DO_START ? UNITS_ORDER_START : UNITS_ORDER_TRY_RESTART;
	int r;

	say_attempt(item, what == REPAIR_DO_RESTART);
	/* First, so that an agent which dies of this very moment has counted it. */
	repairs_keep(item->repairs);
	r = units_order(&item->call, item->repairs->units, order, item->unit, on_ended, item);
	if (r < 0)
		item_ended(item, UNITS_JOB_UNANSWERED,
			r == -ENOTCONN ? "the system bus is away" : strerror(-r));
}

static void item_found(struct repair_item *item, enum repair_unit unit, uint64_t active_us)
{
	enum repair_do what = repair_found(&item->repair, unit, active_us, clock_monotime());

	if (what != REPAIR_DO_NOTHING)
		item_order(item, what);
	repairs_look(item->repairs);
}

/* systemd's times are of CLOCK_MONOTONIC. */
static uint64_t now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void on_answered(void *userdata, const struct units_facts *f, const char *why)
{
	struct repair_item *item = userdata;
	struct repair_properties p;
	uint64_t now = now_us();

	item->call = NULL;
	if (!f) {
		(void)snprintf(item->text, sizeof(item->text), "%s", why);
		item_found(item, REPAIR_UNIT_UNKNOWN, 0);
		return;
	}
	p = (struct repair_properties){
		.load_state = f->load_state,
		.active_state = f->active_state,
		.sub_state = f->sub_state,
		.result = f->result,
		.job = f->job,
		.active_enter_us = f->active_enter_us,
		.active_exit_us = f->active_exit_us,
		.main_start_us = f->main_start_us,
		.main_exit_us = f->main_exit_us,
	};
	if (strcmp(f->load_state, "loaded") != 0)
		(void)snprintf(item->text, sizeof(item->text), "%s", f->load_state);
	else
		(void)snprintf(item->text, sizeof(item->text), "%s, %s%s%s%s", f->active_state,
			f->sub_state, strcmp(f->active_state, "failed") == 0 ? ", " : "",
			strcmp(f->active_state, "failed") == 0 ? f->result : "",
			f->job ? ", a job is queued" : "");
	item_found(item, repair_judge(&p), now > f->active_enter_us ? now - f->active_enter_us : 0);
}

static void item_ask(struct repair_item *item)
{
	int r;

	units_call_free(item->call);
	item->call = NULL;
	r = units_ask(&item->call, item->repairs->units, item->unit, on_answered, item);
	if (r >= 0)
		return;
	(void)snprintf(item->text, sizeof(item->text), "%s",
		r == -ENOTCONN ? "the system bus is away" : strerror(-r));
	item_found(item, REPAIR_UNIT_UNKNOWN, 0);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct repairs *r = userdata;

	if (r->stopped)
		return 0;
	repairs_look(r);
	for (size_t i = 0; i < r->n; i++) {
		struct repair_item *item = r->items[i];

		if (!item || item->todo == REPAIR_DO_NOTHING)
			continue;
		assert(item->todo == REPAIR_DO_ASK);
		item->todo = REPAIR_DO_NOTHING;
		item_ask(item);
	}
	repairs_arm(r);
	return 0;
}

/* ---- life ---- */

void repairs_change_free(struct repairs_change *change)
{
	if (!change)
		return;
	for (size_t i = 0; i < change->n; i++)
		item_free(change->items[i]);
	free(change->items);
	free(change->old);
	free(change->same);
	free(change);
}

/* Where the service was before; SIZE_MAX: nowhere. */
static size_t find_old(const struct repairs *r, const char *service)
{
	for (size_t i = 0; i < r->n; i++)
		if (r->items[i] && strcmp(item_service(r->items[i])->name, service) == 0)
			return i;
	return SIZE_MAX;
}

int repairs_prepare(
	const struct repairs *r, const struct config *config, struct repairs_change **ret)
{
	_cleanup_(repairs_change_freep) struct repairs_change *change = calloc(1, sizeof(*change));

	if (!change)
		return -ENOMEM;
	change->items = calloc(config->n_services + 1, sizeof(struct repair_item *));
	change->old = calloc(config->n_services + 1, sizeof(*change->old));
	change->same = calloc(config->n_services + 1, sizeof(*change->same));
	if (!change->items || !change->old || !change->same)
		return -ENOMEM;
	for (size_t i = 0; i < config->n_services; i++) {
		change->n = i + 1;
		change->old[i] = SIZE_MAX;
		if (!config->services[i].restart)
			continue;
		change->items[i] = item_new(&config->services[i]);
		if (!change->items[i])
			return -ENOMEM;
		change->old[i] = find_old(r, config->services[i].name);
		if (change->old[i] != SIZE_MAX)
			change->same[i] =
				triggers_same(item_service(r->items[change->old[i]])->restart,
					config->services[i].restart);
	}
	*ret = TAKE_PTR(change);
	return 0;
}

/* The old item where it is the same, else the new one with what the old one has behind it: of
 * another unit nothing counts. */
static struct repair_item *item_choose(
	struct repair_item *new, struct repair_item **old, bool same_triggers)
{
	struct repair_item *item = *old;

	if (same_triggers && item_same(item, new)) {
		bool *triggers = item->triggers;

		item->triggers = new->triggers;
		item->n_checks = new->n_checks;
		new->triggers = triggers;
		*old = NULL;
		item_free(new);
		return item;
	}
	if (strcmp(item->unit, new->unit) == 0) {
		repair_adopt(&new->repair, &item->repair, clock_monotime());
		memcpy(new->results, item->results, sizeof(new->results));
	}
	return new;
}

void repairs_commit(struct repairs *r, const struct config *config, struct repairs_change *change)
{
	bool any = false;

	for (size_t i = 0; i < change->n; i++) {
		if (!change->items[i])
			continue;
		if (change->old[i] != SIZE_MAX)
			change->items[i] = item_choose(
				change->items[i], &r->items[change->old[i]], change->same[i]);
		change->items[i]->service = i;
		change->items[i]->repairs = r;
		any = true;
	}
	for (size_t i = 0; i < r->n; i++)
		item_free(r->items[i]);
	free(r->items);
	r->items = TAKE_PTR(change->items);
	r->n = change->n;
	change->n = 0;
	r->config = config;
	repairs_change_free(change);
	if (any && !r->holds)
		units_hold(r->units);
	else if (!any && r->holds)
		units_unhold(r->units);
	r->holds = any;
	repairs_arm(r);
}

int repairs_new(struct repairs **ret, sd_event *event, struct units *units, struct engine *engine,
	const struct config *config)
{
	_cleanup_(repairs_freep) struct repairs *r = calloc(1, sizeof(*r));
	struct repairs_change *change;
	int e;

	if (!r)
		return -ENOMEM;
	r->event = sd_event_ref(event);
	r->units = units;
	r->engine = engine;
	r->folder = strdup(config->bird.fragments);
	if (!r->folder)
		return -ENOMEM;
	e = sd_event_add_time(event, &r->timer, CLOCK_BOOTTIME, UINT64_MAX, 1000, on_timer, r);
	if (e < 0)
		return e;
	(void)sd_event_source_set_description(r->timer, "repair");
	(void)sd_event_source_set_priority(r->timer, REPAIR_PRIORITY);
	(void)sd_event_source_set_enabled(r->timer, SD_EVENT_OFF);
	e = repairs_prepare(r, config, &change);
	if (e < 0)
		return e;
	repairs_commit(r, config, change);
	repair_recall(r, r->folder);
	*ret = TAKE_PTR(r);
	return 0;
}

void repairs_free(struct repairs *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->n; i++)
		item_free(r->items[i]);
	free(r->items);
	if (r->holds)
		units_unhold(r->units);
	sd_event_source_disable_unref(r->timer);
	sd_event_unref(r->event);
	free(r->folder);
	free(r);
}

void repairs_remember(
	struct repairs *r, const char *service, const char *unit, struct monotime attempt)
{
	size_t i = find_old(r, service);

	if (i != SIZE_MAX && strcmp(r->items[i]->unit, unit) == 0)
		repair_remember(&r->items[i]->repair, attempt, clock_monotime());
}

bool repairs_view(const struct repairs *r, size_t service, struct repair_view *ret)
{
	const struct repair_item *item = service < r->n ? r->items[service] : NULL;

	if (!item)
		return false;
	*ret = (struct repair_view){item->unit, &item->repair, item->text, item->results};
	return true;
}
