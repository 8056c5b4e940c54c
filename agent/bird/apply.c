/*
 * What others call: the configuration, what is wanted, flush, and what was found. See
 * apply_state.h for how the parts work together.
 *
 * The path of a withdrawal is apply_want() and the first loop of apply_flush(): a rename and a
 * write for each service that is withdrawn as a whole, without allocating anything. Everything else
 * is left to a round. Where a part of a service is withdrawn its text must be made first, by a
 * round at once; what that could not do (no memory) is then done here without the text.
 *
 * A new configuration. Services are matched by name, prefixes also across services, so that what
 * BIRD does for a prefix stays what is wanted of it until the engine says otherwise. The protocols
 * that a new configuration does not claim become PLAN_WANT_GONE and keep the prefixes that they
 * announce: see apply_is_replaced() for a service that is renamed.
 */
#include "agent/bird/apply.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "agent/base/clock.h"
#include "agent/bird/apply_state.h"
#include "agent/events/events.h"

/* ---- rounds and timers ---- */

/* Behind what comes in. A deferred source counts as pending since it was made (libsystemd 252), so
 * one that is enabled again and again goes before all others of its priority, for ever: a round
 * that asked for the next one kept the loss of the connection, whose news it waited for, from being
 * told. */
#define APPLY_PRIORITY_ROUND (SD_EVENT_PRIORITY_NORMAL + 1)

void apply_round_soon(struct apply *a)
{
	(void)sd_event_source_set_enabled(a->round, SD_EVENT_ONESHOT);
}

void apply_say_changed(struct apply *a)
{
	(void)sd_event_source_set_enabled(a->changed, SD_EVENT_ONESHOT);
}

void apply_wake_at(struct apply *a, struct monotime when)
{
	if (!monotime_before(when, a->wake_at))
		return;
	a->wake_at = when;
	(void)sd_event_source_set_time(a->wake, when.us);
	(void)sd_event_source_set_enabled(a->wake, SD_EVENT_ONESHOT);
}

void apply_set_alarm(struct apply *a, const char *format, ...)
{
	char text[sizeof(a->status.alarm)];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (strcmp(text, a->status.alarm) != 0)
		apply_say_changed(a);
	memcpy(a->status.alarm, text, sizeof(text));
}

static int apply_on_round(sd_event_source *source, void *userdata)
{
	apply_round(userdata);
	return 0;
}

static int apply_on_changed(sd_event_source *source, void *userdata)
{
	struct apply *a = userdata;

	if (a->ops.changed)
		a->ops.changed(a->ops.userdata);
	return 0;
}

static int apply_on_wake(sd_event_source *source, uint64_t us, void *userdata)
{
	struct apply *a = userdata;

	a->wake_at = MONOTIME_NEVER;
	apply_round(a);
	return 0;
}

static int apply_on_poll(sd_event_source *source, uint64_t us, void *userdata)
{
	apply_send_status(userdata);
	return 0;
}

/* The slow look at everything, and the pulse of what is tried again. */
static int apply_on_tick(sd_event_source *source, uint64_t us, void *userdata)
{
	struct apply *a = userdata;
	bool large = a->n_protocols > APPLY_LARGE && a->told_of_changes;
	bool silent = a->status.link == APPLY_LINK_UP && !a->birdc && !a->told_of_changes;
	uint64_t ms = large ? APPLY_TICK_LARGE_MS : silent ? APPLY_TICK_SILENT_MS : APPLY_TICK_MS;

	if (a->ready && a->flushed)
		apply_files_tick(a);
	if (a->status.link == APPLY_LINK_UP) {
		a->observe_wanted = a->status_wanted = true;
		if (large || ++a->ticks % APPLY_TICKS_FULL == 0)
			apply_read_some(a);
		apply_check_slowly(a);
	}
	(void)sd_event_source_set_time_relative(source, ms * 1000);
	(void)sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
	apply_round(a);
	return 0;
}

static void apply_on_advice(void *userdata)
{
	apply_say_changed(userdata);
}

static int apply_on_ready_timer(sd_event_source *source, uint64_t us, void *userdata)
{
	apply_become_ready(userdata, false);
	return 0;
}

/* ---- life ---- */

static int apply_add_timer(
	struct apply *a, sd_event_source **ret, const char *name, sd_event_time_handler_t fn)
{
	int r = sd_event_add_time(a->event, ret, CLOCK_BOOTTIME, 0, 1000, fn, a);

	if (r < 0)
		return r;
	(void)sd_event_source_set_description(*ret, name);
	return sd_event_source_set_enabled(*ret, SD_EVENT_OFF);
}

static int apply_add_defer(
	struct apply *a, sd_event_source **ret, const char *name, sd_event_handler_t fn)
{
	int r = sd_event_add_defer(a->event, ret, fn, a);

	if (r < 0)
		return r;
	(void)sd_event_source_set_description(*ret, name);
	return sd_event_source_set_enabled(*ret, SD_EVENT_OFF);
}

static int apply_copy(struct apply *a, const struct config_bird *bird)
{
	a->socket = strdup(bird->socket);
	a->folder = strdup(bird->fragments);
	a->birdc = bird->control == CONFIG_CONTROL_BIRDC;
	a->sessions_wanted = calloc(bird->sessions.n + 1, sizeof(char *));
	if (!a->socket || !a->folder || !a->sessions_wanted)
		return -ENOMEM;
	for (size_t i = 0; i < bird->sessions.n; i++) {
		a->sessions_wanted[i] = strdup(bird->sessions.items[i]);
		if (!a->sessions_wanted[i])
			return -ENOMEM;
		a->n_sessions_wanted++;
	}
	return 0;
}

DEFINE_CLEANUP_PTR(struct apply *, apply_free)

int apply_new(struct apply **ret, sd_event *event, const struct config_bird *bird,
	const struct apply_ops *ops)
{
	struct advise_ops advise = {.changed = apply_on_advice};
	_cleanup_(apply_freep) struct apply *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return -ENOMEM;
	a->event = sd_event_ref(event);
	a->ops = *ops;
	a->folder_fd = -1;
	a->wake_at = a->check_at = a->retry = a->reread_at = MONOTIME_NEVER;
	a->command.retry = a->reading.retry = MONOTIME_NEVER;
	a->configure_took_ms = UINT64_MAX;
	a->sessions_version = 1; /* 0: a prefix that was not read */
	a->status.link = APPLY_LINK_AWAY;
	a->status.silent_since = MONOTIME_NEVER;
	advise.userdata = a;
	if ((r = apply_copy(a, bird)) < 0 || (r = apply_commands_init(a)) < 0 ||
		(r = advise_new(&a->advise, event, a->sessions_wanted, a->n_sessions_wanted, false,
			 &advise)) < 0 ||
		(r = apply_add_defer(a, &a->round, "bird-round", apply_on_round)) < 0 ||
		(r = apply_add_defer(a, &a->changed, "bird-changed", apply_on_changed)) < 0 ||
		(r = sd_event_source_set_priority(a->round, APPLY_PRIORITY_ROUND)) < 0 ||
		(r = apply_add_timer(a, &a->wake, "bird-wake", apply_on_wake)) < 0 ||
		(r = apply_add_timer(a, &a->poll, "bird-poll", apply_on_poll)) < 0 ||
		(r = apply_add_timer(a, &a->tick, "bird-tick", apply_on_tick)) < 0 ||
		(r = apply_add_timer(a, &a->ready_timer, "bird-ready", apply_on_ready_timer)) < 0)
		return r;
	if (a->birdc)
		advise_be_frugal(a->advise);
	*ret = TAKE_PTR(a);
	return 0;
}

static void apply_service_done(struct apply_service *s)
{
	free(s->prefixes);
	free(s->protocols);
	free(s->text);
	free(s->good);
}

static void apply_strings_free(char **list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(list[i]);
	free(list);
}

void apply_free(struct apply *a)
{
	if (!a)
		return;
	apply_link_stop(a);
	apply_commands_done(a);
	advise_free(a->advise);
	sd_event_source_disable_unref(a->round);
	sd_event_source_disable_unref(a->changed);
	sd_event_source_disable_unref(a->wake);
	sd_event_source_disable_unref(a->poll);
	sd_event_source_disable_unref(a->tick);
	sd_event_source_disable_unref(a->ready_timer);
	for (size_t i = 0; i < a->n_services; i++)
		apply_service_done(&a->services[i]);
	for (size_t i = 0; i < a->n_protocols; i++)
		apply_protocol_free(a->protocols[i]);
	if (a->folder_fd >= 0)
		(void)close(a->folder_fd);
	apply_strings_free(a->sessions_wanted, a->n_sessions_wanted);
	apply_strings_free(a->orphans, a->n_orphans);
	apply_strings_free(a->strangers, a->n_strangers);
	free(a->services);
	free(a->protocols);
	free(a->sessions);
	free(a->refused_file);
	free(a->socket);
	free(a->folder);
	sd_event_unref(a->event);
	free(a);
}

int apply_start(struct apply *a)
{
	assert(a->config && !a->started);
	a->started = true;
	(void)apply_files_open(a); /* Without a folder BIRD is watched all the same. */
	apply_files_adopt(a);
	(void)sd_event_source_set_time_relative(a->tick, APPLY_TICK_MS * 1000ULL);
	(void)sd_event_source_set_enabled(a->tick, SD_EVENT_ONESHOT);
	(void)sd_event_source_set_time_relative(a->ready_timer, APPLY_READY_MS * 1000ULL);
	(void)sd_event_source_set_enabled(a->ready_timer, SD_EVENT_ONESHOT);
	return apply_link_start(a);
}

/* ---- a new configuration ---- */

/* What is known of a prefix by the configuration before, sorted by prefix. */
struct apply_known_prefix {
	struct prefix prefix;
	const struct apply_prefix *state;
};

static int apply_compare_known(const void *x, const void *y)
{
	const struct apply_known_prefix *a = x, *b = y;
	int order = (int)a->prefix.address.family - (int)b->prefix.address.family;

	if (order == 0)
		order = memcmp(a->prefix.address.bytes, b->prefix.address.bytes,
			sizeof(a->prefix.address.bytes));
	return order != 0 ? order : (int)a->prefix.length - (int)b->prefix.length;
}

static int apply_known_prefixes(
	const struct apply *a, struct apply_known_prefix **ret, size_t *ret_n)
{
	struct apply_known_prefix *list;
	size_t n = 0;

	for (size_t s = 0; s < a->n_services; s++)
		n += a->services[s].config->n_prefixes;
	list = calloc(n + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	n = 0;
	for (size_t s = 0; s < a->n_services; s++)
		for (size_t i = 0; i < a->services[s].config->n_prefixes; i++)
			list[n++] = (struct apply_known_prefix){
				a->services[s].config->prefixes[i].prefix,
				&a->services[s].prefixes[i]};
	qsort(list, n, sizeof(*list), apply_compare_known);
	*ret = list;
	*ret_n = n;
	return 0;
}

/* Everything that a service of the new configuration needs memory for. */
static int apply_service_init(struct apply_service *s, const struct config_service *config,
	const struct apply_known_prefix *known, size_t n_known)
{
	(void)snprintf(s->name, sizeof(s->name), "%s", config->name);
	s->config = config;
	s->stale = true;
	s->prefixes = calloc(config->n_prefixes + 1, sizeof(*s->prefixes));
	if (!s->prefixes)
		return -ENOMEM;
	for (size_t i = 0; i < config->n_prefixes; i++) {
		const struct apply_known_prefix key = {.prefix = config->prefixes[i].prefix};
		const struct apply_known_prefix *before =
			n_known > 0
				? bsearch(&key, known, n_known, sizeof(*known), apply_compare_known)
				: NULL;

		s->prefixes[i].observed.exported = -1;
		if (!before)
			continue;
		s->prefixes[i] = *before->state;
		s->prefixes[i].read_wanted = s->prefixes[i].reading = false;
		s->prefixes[i].reread_at = MONOTIME_ZERO;
	}
	return 0;
}

/* The file and what is known of it go over to the service of the same name. */
static void apply_service_inherit(struct apply_service *s, struct apply_service *from)
{
	s->wanted_at = from->wanted_at;
	s->changed = from->changed;
	s->dirty = from->dirty;
	s->check_file = from->check_file;
	s->withdrawn = from->withdrawn;
	s->ready = from->ready;
	s->put_back = false; /* what is wanted now is another text: it is tried */
	s->text = TAKE_PTR(from->text);
	s->text_hash = from->text_hash;
	s->ready_hash = from->ready_hash;
	s->good = TAKE_PTR(from->good);
	s->text_is_good = from->text_is_good;
	s->sent = from->sent;
	s->repairs = from->repairs;
	s->repaired = from->repaired;
}

/* What a protocol announces, for when the configuration no longer has it. */
static int apply_hold(struct apply_protocol *p)
{
	struct prefix *held = calloc(p->n_prefixes + 1, sizeof(*held));
	size_t n = 0;

	if (!held)
		return -ENOMEM;
	for (size_t i = p->first_prefix; i < p->first_prefix + p->n_prefixes; i++)
		if (apply_protocol_holds(p, i) &&
			p->service->prefixes[i].wanted != PREFIX_WANTED_WITHDRAW)
			held[n++] = p->service->config->prefixes[i].prefix;
	free(p->held);
	p->held = held;
	p->n_held = n;
	return 0;
}

static void apply_disown_unclaimed(struct apply *a)
{
	for (size_t i = 0; i < a->n_protocols; i++) {
		struct apply_protocol *p = a->protocols[i];

		if (p->claimed || p->want == PLAN_WANT_GONE)
			continue;
		p->want = PLAN_WANT_GONE;
		p->service = NULL;
		p->reached = false;
		p->strikes = p->attempts = 0;
		p->not_before = MONOTIME_ZERO;
		p->reads_left = 0;
	}
}

static struct apply_service *apply_service_named(
	struct apply_service *services, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(services[i].name, name) == 0)
			return &services[i];
	return NULL;
}

/* The fragments of services that go are removed by the next round. */
static int apply_add_orphans(struct apply *a, struct apply_service *services, size_t n)
{
	char **larger = reallocarray(a->orphans, a->n_orphans + a->n_services + 1, sizeof(*larger));

	if (!larger)
		return -ENOMEM;
	a->orphans = larger;
	for (size_t i = 0; i < a->n_services; i++) {
		if (apply_service_named(services, n, a->services[i].name))
			continue;
		larger[a->n_orphans] = strdup(a->services[i].name);
		if (!larger[a->n_orphans])
			return -ENOMEM;
		a->n_orphans++;
	}
	return 0;
}

static void apply_take_services(struct apply *a, struct apply_service *services, size_t n)
{
	for (size_t i = 0; i < a->n_services; i++) {
		struct apply_service *old = &a->services[i];
		struct apply_service *new = apply_service_named(services, n, old->name);

		if (new)
			apply_service_inherit(new, old);
		apply_service_done(old);
	}
	free(a->services);
	a->services = services;
	a->n_services = n;
}

/* Everything that a configuration needs memory for. */
static int apply_prepare(struct apply *a, const struct config *config,
	struct apply_service *services, struct apply_prepared *prepared)
{
	_cleanup_free_ struct apply_known_prefix *known = NULL;
	size_t n_known = 0, n = config->n_services;
	int r = 0;

	if (a->config)
		r = apply_known_prefixes(a, &known, &n_known);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = apply_service_init(&services[i], &config->services[i], known, n_known);
	for (size_t i = 0; r == 0 && i < n; i++) {
		r = apply_prepare_protocols(a, &services[i], &prepared[i]);
		if (r < 0 && r != -ENOMEM) {
			event_say(LOG_ERR, EVENT_BIRD_TROUBLE,
				&(const struct event_fields){.service = services[i].name},
				"bird: service %s: %s", services[i].name, strerror(-r));
			r = 0; /* It has no protocols then; the others have. */
		}
	}
	for (size_t i = 0; r == 0 && i < a->n_protocols; i++)
		if (a->protocols[i]->service)
			r = apply_hold(a->protocols[i]);
	return r < 0 ? r : apply_add_orphans(a, services, n);
}

static void apply_commit(struct apply *a, const struct config *config,
	struct apply_service *services, struct apply_prepared *prepared)
{
	for (size_t i = 0; i < a->n_protocols; i++)
		a->protocols[i]->claimed = false;
	apply_take_services(a, services, config->n_services);
	a->config = config;
	advise_configure(a->advise, config);
	a->generation++;
	a->reads_wanted = 0;
	a->read_service = a->read_prefix = a->tick_service = a->tick_prefix = 0;
	for (size_t i = 0; i < a->n_services; i++)
		apply_take_protocols(&a->services[i], &prepared[i]);
	apply_disown_unclaimed(a);
	apply_want_read_all(a);
	apply_round_soon(a);
}

int apply_configure(struct apply *a, const struct config *config)
{
	struct apply_service *services = calloc(config->n_services + 1, sizeof(*services));
	struct apply_prepared *prepared = calloc(config->n_services + 1, sizeof(*prepared));
	size_t n_orphans = a->n_orphans;
	int r = services && prepared ? apply_prepare(a, config, services, prepared) : -ENOMEM;

	if (r == 0) {
		apply_commit(a, config, services, prepared);
	} else {
		for (size_t i = 0; services && i < config->n_services; i++)
			apply_service_done(&services[i]);
		free(services);
		while (a->n_orphans > n_orphans)
			free(a->orphans[--a->n_orphans]);
	}
	for (size_t i = 0; prepared && i < config->n_services; i++)
		apply_prepared_done(&prepared[i]);
	free(prepared);
	return r;
}

/* ---- what was found ---- */

/* Is what BIRD announces by this protocol what the agent before wanted? Its fragment says so: which
 * part of a family is announced, and that what is up should not be. Its last `disable` may be lost:
 * BIRD throws away what lies unread in a socket that was closed. */
static bool apply_was_wanted(
	const struct apply_service *s, const struct apply_protocol *p, size_t prefix)
{
	const char *block = s->text ? apply_text_block(s->text, p->name) : NULL;

	if (p->family_protocol)
		return apply_files_found(s, prefix) != PREFIX_WANTED_WITHDRAW;
	return !block || apply_text_is_up(block);
}

static enum prefix_wanted apply_found_in_bird(
	const struct apply *a, const struct apply_service *s, size_t prefix)
{
	enum prefix_wanted found = PREFIX_WANTED_WITHDRAW;
	const struct prefix *which = &s->config->prefixes[prefix].prefix;

	for (size_t i = 0; i < s->n_protocols; i++) {
		const struct apply_protocol *p = s->protocols[i];

		if (p->seen != PLAN_SEEN_UP || !apply_protocol_holds(p, prefix))
			continue;
		if (!apply_was_wanted(s, p, prefix))
			continue;
		if (!p->last_resort)
			return PREFIX_WANTED_ANNOUNCE;
		found = PREFIX_WANTED_DEMOTE;
	}
	/* The service had another name when the agent was here last. */
	for (size_t i = 0; i < a->n_protocols; i++) {
		const struct apply_protocol *p = a->protocols[i];

		if (p->want != PLAN_WANT_GONE || p->seen != PLAN_SEEN_UP)
			continue;
		for (size_t k = 0; k < p->n_held; k++) {
			if (!prefix_equal(&p->held[k], which))
				continue;
			if (!p->last_resort || !s->config->prefixes[prefix].last_resort)
				return PREFIX_WANTED_ANNOUNCE;
			found = PREFIX_WANTED_DEMOTE;
		}
	}
	return found;
}

void apply_become_ready(struct apply *a, bool bird_answered)
{
	if (a->ready)
		return;
	for (size_t s = 0; s < a->n_services; s++) {
		struct apply_service *service = &a->services[s];

		for (size_t i = 0; i < service->config->n_prefixes; i++) {
			struct apply_prefix *p = &service->prefixes[i];

			p->found = bird_answered ? apply_found_in_bird(a, service, i)
						 : apply_files_found(service, i);
			p->wanted = p->found;
		}
		service->stale = true;
	}
	a->ready = true;
	(void)sd_event_source_set_enabled(a->ready_timer, SD_EVENT_OFF);
	if (!bird_answered)
		event_say(LOG_WARNING, EVENT_BIRD_AWAY, NULL,
			"bird: does not answer (%s): what its fragments say is taken as found",
			a->status.error[0] ? a->status.error : "no greeting yet");
	if (a->ops.ready)
		a->ops.ready(a->ops.userdata);
}

enum prefix_wanted apply_found(const struct apply *a, size_t service, size_t prefix)
{
	assert(a->ready && service < a->n_services);
	assert(prefix < a->services[service].config->n_prefixes);
	return a->services[service].prefixes[prefix].found;
}

/* ---- what is wanted ---- */

void apply_look(struct apply *a, size_t service, size_t prefix)
{
	apply_want_read(a, &a->services[service], prefix);
	apply_round_soon(a);
}

void apply_want(struct apply *a, size_t service, size_t prefix, enum prefix_wanted wanted)
{
	struct apply_service *s = &a->services[service];

	assert(service < a->n_services && prefix < s->config->n_prefixes);
	if (s->prefixes[prefix].wanted == wanted)
		return;
	if (!s->changed)
		s->wanted_at = clock_monotime();
	s->withdraws = s->withdraws || wanted < s->prefixes[prefix].wanted;
	s->prefixes[prefix].wanted = wanted;
	s->changed = true;
}

static bool apply_is_all_withdrawn(const struct apply_service *s)
{
	for (size_t i = 0; i < s->config->n_prefixes; i++)
		if (s->prefixes[i].wanted != PREFIX_WANTED_WITHDRAW)
			return false;
	return true;
}

/* One rename, one command. */
static void apply_withdraw_service(struct apply *a, struct apply_service *s)
{
	bool any = false, renamed = apply_files_withdraw(a, s);
	char pattern[NAMES_MAX];

	for (size_t i = 0; i < s->n_protocols; i++) {
		struct apply_protocol *p = s->protocols[i];

		any = any || apply_may_be_up(p);
		p->want = PLAN_WANT_DOWN;
		p->reached = p->mending = false;
		p->strikes = p->attempts = 0;
		p->not_before = MONOTIME_ZERO;
	}
	if (any)
		apply_send_disable(a, names_pattern(pattern, s->name));
	if (renamed)
		apply_files_withdrew(a, s);
}

/* Is anything that the protocol announces wanted of it? */
static bool apply_is_wanted_up(const struct apply_service *s, const struct apply_protocol *p)
{
	for (size_t i = p->first_prefix; i < p->first_prefix + p->n_prefixes; i++)
		if (apply_protocol_holds(p, i) && s->prefixes[i].wanted >= apply_least(p))
			return true;
	return false;
}

/* What of a service is withdrawn and no round has withdrawn, without its text. */
static void apply_withdraw_rest(struct apply *a, struct apply_service *s)
{
	for (size_t i = 0; i < s->n_protocols; i++) {
		struct apply_protocol *p = s->protocols[i];

		if (p->want != PLAN_WANT_UP || apply_is_wanted_up(s, p))
			continue;
		p->want = PLAN_WANT_DOWN;
		p->reached = p->mending = false;
		p->strikes = p->attempts = 0;
		p->not_before = MONOTIME_ZERO;
		if (apply_may_be_up(p))
			apply_send_disable(a, p->name);
	}
}

void apply_flush(struct apply *a)
{
	bool any = !a->flushed, now = false;

	assert(a->ready);
	a->flushed = true;
	for (size_t i = 0; i < a->n_services; i++) {
		struct apply_service *s = &a->services[i];

		if (!s->changed)
			continue;
		any = true;
		s->changed = false;
		s->stale = true;
		if (apply_is_all_withdrawn(s))
			apply_withdraw_service(a, s);
		else
			now = now || s->withdraws;
	}
	if (!any)
		return;
	a->status.settled = false;
	if (now) /* a part of a service: its text must be made, and nothing else waits */
		apply_round(a);
	else
		apply_round_soon(a);
	for (size_t i = 0; i < a->n_services; i++) {
		struct apply_service *s = &a->services[i];

		if (s->withdraws && s->stale)
			apply_withdraw_rest(a, s);
		s->withdraws = false;
	}
}

const struct apply_observed *apply_observed(const struct apply *a, size_t service, size_t prefix)
{
	assert(service < a->n_services && prefix < a->services[service].config->n_prefixes);
	return &a->services[service].prefixes[prefix].observed;
}

const struct apply_status *apply_status(const struct apply *a)
{
	return &a->status;
}

bool apply_leaves(const struct apply *a)
{
	for (size_t i = 0; i < a->n_protocols; i++)
		if (a->protocols[i]->want == PLAN_WANT_GONE &&
			(a->protocols[i]->seen != PLAN_SEEN_ABSENT || a->protocols[i]->coming))
			return true;
	return false;
}

const char *apply_socket(const struct apply *a)
{
	return a->socket;
}

const char *apply_folder(const struct apply *a)
{
	return a->folder;
}

size_t apply_warnings(const struct apply *a, const struct advise_warning **ret)
{
	return advise_warnings(a->advise, ret);
}
