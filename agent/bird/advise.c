/*
 * When to look, what to ask, and what is told. See advise.h.
 *
 * The chain of one look: `show protocols` (sessions and kernel protocols), `show symbols` (are the
 * templates there?), `show protocols all X` for each of these, and for each prefix `show route
 * PREFIX table all all` and `show route PREFIX export X`. Where another protocol has the prefix,
 * too, and X exports by a filter with a name, BIRD puts that protocol's route before the filter:
 * `show route PREFIX table T protocol OTHER filter NAME` lists it if the filter accepts it. Each
 * answer sends the next query, so at most one is under way and whatever else is asked on the
 * connection goes between them.
 */
#include <errno.h>
#include <fnmatch.h>
#include <string.h>

#include "agent/base/cleanup.h"
#include "agent/base/clock.h"
#include "agent/bird/advise_private.h"
#include "agent/events/events.h"

enum advise_step {
	ADVISE_PROTOCOLS,
	ADVISE_TEMPLATE,
	ADVISE_TARGET,
	ADVISE_ROUTE,
	ADVISE_EXPORT,
	ADVISE_STAY,
	ADVISE_DONE,
};

static void advise_next(struct advise *v);

static void advise_at(struct advise *v, uint64_t ms)
{
	v->due = monotime_add_ms(clock_monotime(), ms);
	(void)sd_event_source_set_time_relative(v->timer, ms * 1000);
	(void)sd_event_source_set_enabled(v->timer, SD_EVENT_ONESHOT);
}

/* ---- what is told ---- */

static const struct advise_warning *advise_find(
	const struct advise_warning *list, size_t n, const struct advise_warning *w)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(list[i].text, w->text) == 0)
			return &list[i];
	return NULL;
}

/* Told: what this look and the one before found. Returns whether something waits for the next. */
static bool advise_tell(struct advise *v)
{
	struct advise_warning now[ADVISE_WARNINGS_MAX];
	bool waits = false, changed = false;
	/* A session that is down shows nothing: what was told of it is not over. */
	bool blind = v->look.sessions_up < v->look.sessions && v->look.sessions_up < v->told_up;
	size_t n = 0;

	for (size_t i = 0; i < v->n_found; i++) {
		const struct advise_warning *w = &v->found[i];
		bool known = advise_find(v->told, v->n_told, w) != NULL;

		if (!known && !v->once && !advise_find(v->before, v->n_before, w)) {
			waits = true;
			continue;
		}
		now[n++] = *w;
		changed = changed || !known;
		if (!known && !v->once)
			event_say(LOG_WARNING, EVENT_BIRD_WARNING,
				&(const struct event_fields){.reason = w->code}, "bird: %s (%s)",
				w->text, w->code);
	}
	for (size_t i = 0; i < v->n_told; i++) {
		if (advise_find(v->found, v->n_found, &v->told[i]))
			continue;
		if (blind && n < ADVISE_WARNINGS_MAX) {
			now[n++] = v->told[i];
			continue;
		}
		changed = true;
		event_say(LOG_INFO, EVENT_BIRD_WARNING_OVER,
			&(const struct event_fields){.reason = v->told[i].code},
			"bird: no longer so: %s (%s)", v->told[i].text, v->told[i].code);
	}
	memcpy(v->told, now, n * sizeof(now[0]));
	v->n_told = n;
	if (!blind)
		v->told_up = v->look.sessions_up;
	memcpy(v->before, v->found, v->n_found * sizeof(v->found[0]));
	v->n_before = v->n_found;
	if (changed && v->ops.changed)
		v->ops.changed(v->ops.userdata);
	return waits;
}

static void advise_end(struct advise *v)
{
	v->looking = false;
	v->ended = clock_monotime();
	advise_judge(v);
	advise_at(v, advise_tell(v) ? ADVISE_CONFIRM_MS : ADVISE_EVERY_MS);
	if (v->ops.looked)
		v->ops.looked(v->ops.userdata);
}

/* ---- answers ---- */

static bool advise_is_session(const struct advise *v, const struct observe_protocol *p)
{
	for (size_t i = 0; i < v->n_patterns; i++)
		if (observe_is_session(p, v->patterns[i]))
			return true;
	return false;
}

static void advise_on_protocol(struct advise *v, const struct observe_protocol *p)
{
	struct advise_look *look = &v->look;
	bool kernel = strcmp(p->type, "Kernel") == 0, session = advise_is_session(v, p);

	look->any_bgp = look->any_bgp || p->is_bgp;
	look->sessions += session;
	look->sessions_up += session && p->established;
	if (strcmp(p->type, "Static") == 0 || strcmp(p->type, "Direct") == 0)
		for (size_t i = 0; i < v->n_toggles; i++)
			if (strcmp(v->toggles[i].name, p->name) == 0)
				v->toggles[i].is_source = true;
	if (!p->established || !(kernel || session) || look->n_targets == ADVISE_TARGETS_MAX)
		return;
	look->targets[look->n_targets] =
		(struct advise_target){.is_kernel = kernel, .is_up = p->established};
	memcpy(look->targets[look->n_targets++].name, p->name, sizeof(p->name));
}

static void advise_on_protocols(struct advise *v, const struct reply *reply)
{
	struct observe_protocol p;

	for (size_t i = 0; i < reply->n_lines; i++)
		if (observe_protocol(&reply->lines[i], &p) && !names_is_ours(p.name))
			advise_on_protocol(v, &p);
}

static void advise_exported(void *userdata, const struct observe_route *route)
{
	struct advise *v = userdata;
	struct advise_target *t = &v->look.targets[v->target];
	struct advise_route *r = &v->look.routes[v->route];

	if (names_is_ours(route->protocol)) {
		t->exported++;
		r->exported += !t->is_kernel;
	} else if (!t->is_kernel) {
		memcpy(r->elsewhere, route->protocol, sizeof(r->elsewhere));
		memcpy(r->elsewhere_on, t->name, sizeof(r->elsewhere_on));
	}
}

/* The filter let a route of the other protocol pass; which has but one, or its first is meant. */
static void advise_accepted(void *userdata, const struct observe_route *route)
{
	struct advise *v = userdata;
	struct advise_target *t = &v->look.targets[v->target];
	struct advise_route *r = &v->look.routes[v->route];
	const struct advise_other *other = advise_left(v, r, t);

	if (other && !v->accepted && strcmp(other->protocol, route->protocol) == 0) {
		advise_stays(r, t, other);
		v->accepted = true;
	}
}

static void advise_answer(struct advise *v, const struct reply *reply)
{
	struct advise_look *look = &v->look;

	switch ((enum advise_step)v->step) {
	case ADVISE_PROTOCOLS:
		advise_on_protocols(v, reply);
		v->step = ADVISE_TEMPLATE;
		return;
	case ADVISE_TEMPLATE:
		/* 2.0.12 knows every word it was asked for, as "undefined"; newer ones refuse it.
		 */
		look->template_missing =
			reply->code == 9001 || strstr(reply->text, "undefined") != NULL;
		v->step = ADVISE_TARGET;
		v->target = 0;
		return;
	case ADVISE_TARGET:
		advise_read_target(&look->targets[v->target++], reply);
		return;
	case ADVISE_ROUTE:
		if (reply->code == 0)
			advise_read_route(&look->routes[v->route], reply);
		v->step = ADVISE_EXPORT;
		v->target = 0;
		return;
	case ADVISE_EXPORT:
		if (reply->code == 0)
			observe_routes(reply, advise_exported, v);
		v->step = ADVISE_STAY;
		return;
	case ADVISE_STAY:
		if (reply->code == 0)
			observe_routes(reply, advise_accepted, v);
		v->step = ADVISE_EXPORT;
		v->target++;
		return;
	case ADVISE_DONE:
		return;
	}
}

static void advise_on_reply(void *userdata, int error, const struct reply *reply)
{
	struct advise *v = userdata;

	if (v->stale > 0) {
		v->stale--;
		return;
	}
	v->asked = false;
	if (!reply) {
		v->looking = false;
		return;
	}
	advise_answer(v, reply);
	advise_next(v);
}

/* ---- queries ---- */

/* The target's turn for this prefix: is there anything to ask? */
static bool advise_asks_export(struct advise *v)
{
	struct advise_target *t = &v->look.targets[v->target];
	struct advise_route *r = &v->look.routes[v->route];

	if (!t->channel[advise_is_six(r)])
		return false;
	if (r->n_tables > 0 && !r->outranked_by[0] && !t->is_kernel) {
		r->asked++;
		t->offered++;
		if (!advise_reaches(r, t))
			t->other_table = true;
	}
	return true;
}

/* The same, for what would be left; what needs no question is noted here. */
static bool advise_asks_stay(struct advise *v)
{
	struct advise_target *t = &v->look.targets[v->target];
	struct advise_route *r = &v->look.routes[v->route];
	const struct advise_other *other = advise_left(v, r, t);

	if (!other)
		return false;
	switch (advise_filter(t, advise_is_six(r))) {
	case ADVISE_FILTER_ACCEPTS:
		advise_stays(r, t, other);
		return false;
	case ADVISE_FILTER_NAMED:
		v->accepted = false;
		return true;
	case ADVISE_FILTER_REJECTS:
	case ADVISE_FILTER_UNKNOWN:
		break;
	}
	return false;
}

static int advise_send_stay(struct advise *v)
{
	const struct advise_target *t = &v->look.targets[v->target];
	const struct advise_route *r = &v->look.routes[v->route];
	const struct advise_other *other = advise_left(v, r, t);
	char prefix[PREFIX_TEXT_MAX];

	/* Somebody took a name away since it was read: BIRD refuses the query, which means no. */
	return client_send(v->client, 0, advise_on_reply, v,
		"show route %s table '%s' protocol '%s' filter '%s'",
		prefix_format(r->prefix, prefix), other->table, other->protocol,
		t->filter[advise_is_six(r)]);
}

static int advise_send(struct advise *v)
{
	const struct advise_look *look = &v->look;
	char prefix[PREFIX_TEXT_MAX];

	switch ((enum advise_step)v->step) {
	case ADVISE_PROTOCOLS:
		return client_send(v->client, 0, advise_on_reply, v, "show protocols");
	case ADVISE_TEMPLATE:
		return client_send(v->client, 0, advise_on_reply, v, "show symbols redshank4");
	case ADVISE_TARGET:
		return client_send(v->client, 0, advise_on_reply, v, "show protocols all '%s'",
			look->targets[v->target].name);
	case ADVISE_ROUTE:
		return client_send(v->client, 0, advise_on_reply, v, "show route %s table all all",
			prefix_format(look->routes[v->route].prefix, prefix));
	case ADVISE_EXPORT:
		return client_send(v->client, 0, advise_on_reply, v, "show route %s export '%s'",
			prefix_format(look->routes[v->route].prefix, prefix),
			look->targets[v->target].name);
	case ADVISE_STAY:
		return advise_send_stay(v);
	case ADVISE_DONE:
		break;
	}
	return 0;
}

/* Goes on to the next step that has something to ask. */
static void advise_next(struct advise *v)
{
	struct advise_look *look = &v->look;

	if (v->step == ADVISE_TARGET && v->target == look->n_targets) {
		v->step = ADVISE_ROUTE;
		v->route = 0;
	}
	while (v->step == ADVISE_EXPORT || v->step == ADVISE_STAY) {
		if (v->step == ADVISE_STAY && advise_asks_stay(v))
			break;
		if (v->step == ADVISE_STAY) {
			v->step = ADVISE_EXPORT;
			v->target++;
		} else if (v->target == look->n_targets) {
			v->step = ADVISE_ROUTE;
			v->route++;
		} else if (advise_asks_export(v)) {
			break;
		} else {
			v->target++;
		}
	}
	if (v->step == ADVISE_ROUTE && v->route == look->n_routes)
		v->step = ADVISE_DONE;
	if (v->step == ADVISE_DONE) {
		advise_end(v);
	} else if (advise_send(v) < 0) {
		v->looking = false;
		advise_at(v, ADVISE_EVERY_MS);
	} else {
		v->asked = true;
	}
}

/* Prefixes spread evenly over all; an odd stride, since families often take turns. */
static void advise_choose(struct advise *v)
{
	const struct config *config = v->config;
	size_t stride, at = 0;

	stride = (config_count_prefixes(config) + v->prefixes_max - 1) / v->prefixes_max | 1;
	for (size_t s = 0; s < config->n_services; s++) {
		for (size_t i = 0; i < config->services[s].n_prefixes; i++)
			if (at++ % stride == 0 && v->look.n_routes < v->prefixes_max)
				v->look.routes[v->look.n_routes++].prefix =
					&config->services[s].prefixes[i].prefix;
	}
}

static int advise_on_timer(sd_event_source *source, uint64_t us, void *userdata)
{
	struct advise *v = userdata;

	if (!v->client || !v->config || v->looking)
		return 0;
	memset(&v->look, 0, sizeof(v->look));
	advise_choose(v);
	v->looking = true;
	v->step = ADVISE_PROTOCOLS;
	advise_next(v);
	return 0;
}

/* ---- what others call ---- */

DEFINE_CLEANUP_PTR(struct advise *, advise_free)

int advise_new(struct advise **ret, sd_event *event, char *const *patterns, size_t n_patterns,
	bool once, const struct advise_ops *ops)
{
	_cleanup_(advise_freep) struct advise *v = calloc(1, sizeof(*v));
	int r;

	if (!v)
		return -ENOMEM;
	v->event = sd_event_ref(event);
	v->ops = *ops;
	v->patterns = patterns;
	v->n_patterns = n_patterns;
	v->once = once;
	v->prefixes_max = ADVISE_PREFIXES_MAX;
	r = sd_event_add_time(event, &v->timer, CLOCK_BOOTTIME, 0, 0, advise_on_timer, v);
	if (r < 0)
		return r;
	(void)sd_event_source_set_description(v->timer, "bird-advise");
	(void)sd_event_source_set_priority(v->timer, SD_EVENT_PRIORITY_IDLE);
	r = sd_event_source_set_enabled(v->timer, SD_EVENT_OFF);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(v);
	return 0;
}

void advise_free(struct advise *v)
{
	if (!v)
		return;
	sd_event_source_disable_unref(v->timer);
	sd_event_unref(v->event);
	free(v);
}

void advise_be_frugal(struct advise *v)
{
	v->prefixes_max = ADVISE_PREFIXES_FRUGAL;
}

void advise_configure(struct advise *v, const struct config *config)
{
	v->config = config;
	/* The prefixes of a look under way may be gone. */
	v->stale += v->asked;
	v->looking = v->asked = false;
	if (v->client)
		advise_at(v, ADVISE_FIRST_MS);
}

void advise_connected(struct advise *v, struct client *client)
{
	v->client = client;
	advise_at(v, v->once ? 0 : ADVISE_FIRST_MS);
}

void advise_lost(struct advise *v)
{
	v->client = NULL;
	v->looking = v->asked = false;
	v->stale = 0;
	v->n_before = v->n_toggles = 0;
	(void)sd_event_source_set_enabled(v->timer, SD_EVENT_OFF);
}

void advise_soon(struct advise *v)
{
	struct monotime due = monotime_max(monotime_add_ms(clock_monotime(), ADVISE_FIRST_MS),
		monotime_add_ms(v->ended, ADVISE_GAP_MS));

	/* Never later than it would be anyway, however often this is called. */
	if (v->client && !v->looking && monotime_before(due, v->due))
		advise_at(v, monotime_since_us(clock_monotime(), due) / 1000);
}

/* "Disabling protocol NAME", "Enabling protocol NAME" (nest/proto.c of BIRD 2). */
static void advise_on_toggle(struct advise *v, const char *name)
{
	struct advise_toggle *t = NULL;

	if (names_is_ours(name) || strlen(name) >= sizeof(t->name))
		return;
	for (size_t i = 0; i < v->n_toggles; i++)
		if (strcmp(v->toggles[i].name, name) == 0)
			t = &v->toggles[i];
	if (!t && v->n_toggles < ADVISE_TOGGLES_MAX) {
		t = &v->toggles[v->n_toggles++];
		*t = (struct advise_toggle){0};
		memcpy(t->name, name, strlen(name) + 1);
	}
	if (!t)
		return;
	t->times++;
	t->last = clock_monotime();
	if (t->times == ADVISE_TOGGLES_LEAST && !v->looking)
		advise_at(v, 0);
}

void advise_push(struct advise *v, const char *text)
{
	static const char *const toggles[] = {"Disabling protocol ", "Enabling protocol "};

	for (size_t i = 0; i < ELEMENTSOF(toggles); i++)
		if (strncmp(text, toggles[i], strlen(toggles[i])) == 0)
			advise_on_toggle(v, text + strlen(toggles[i]));
}

size_t advise_warnings(const struct advise *v, const struct advise_warning **ret)
{
	*ret = v->told;
	return v->n_told;
}

void advise_sessions(const struct advise *v, unsigned *ret, unsigned *ret_up)
{
	*ret = v->look.sessions;
	*ret_up = v->look.sessions_up;
}
