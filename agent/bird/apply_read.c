/*
 * The connection that reads: nothing that is sent here changes BIRD, and nothing that changes BIRD
 * waits for it.
 *
 * An observation is `show status` (which life, which configuration) and `show protocols` (ours, and
 * the BGP sessions). A prefix is read back by `show route PREFIX table all all` (all tables, for a
 * BIRD whose sessions look at tables of their own) and `show route PREFIX export SESSION` for each
 * session that is up. At most APPLY_READS_MAX queries are under way, so that 5,000 prefixes neither
 * flood BIRD nor make anybody wait.
 *
 * What is read:
 *   announced  a route of ours stands in a table, and wherever one stands it is the best. A table
 *              that our pipes do not reach does not count; where such a table is what a session
 *              looks at, `exported` says it.
 *   exported   on how many sessions BIRD would send our route, through their filters. A session
 *              that is down (9001 No valid tables) is one that exports nothing.
 *   elsewhere  somebody else's route of the prefix is exported, or preferred to ours, or, on a
 *              BIRD without BGP sessions to ask, is the best.
 *
 * `+` lines (after `echo`) are hints to look again, never facts: what is believed comes from codes
 * and from what is read.
 */
#include "agent/bird/apply_state.h"

#include <errno.h>
#include <string.h>

#include "agent/base/clock.h"
#include "agent/base/printable.h"
#include "agent/events/events.h"
#include "agent/system/log.h"

#define READ_AGAIN_MAX 6
#define READ_DIFFERS 3 /* reads that show another body, before it is believed */
#define READ_AGAIN_MS 25ULL

static bool read_ready(const struct apply *a)
{
	return a->reading.client && a->reading.greeted && client_is_sound(a->reading.client);
}

/* ---- which prefixes ---- */

static void read_want(struct apply *a, struct apply_prefix *p)
{
	p->reread_at = MONOTIME_ZERO;
	if (p->read_wanted)
		return;
	p->read_wanted = true;
	a->reads_wanted++;
}

void apply_want_read(struct apply *a, struct apply_service *s, size_t prefix)
{
	s->prefixes[prefix].rereads = 0;
	read_want(a, &s->prefixes[prefix]);
}

/* BIRD 3 carries a route from table to table and to the sessions after it has answered: what is
 * read at once may not be the end. So a prefix that does not look as is wanted is read a few times
 * more, after 25 ms, doubling; the slow timer does the rest. */
static void read_again_later(struct apply *a, struct apply_prefix *p)
{
	const struct apply_observed *o = &p->observed;
	bool as_wanted =
		p->wanted == PREFIX_WANTED_WITHDRAW
			? o->announced == APPLY_NO && o->exported == 0
			: o->announced == APPLY_YES && o->exported == (int)a->status.sessions_up;

	if (p->differs > 0 && p->differs < READ_DIFFERS)
		as_wanted = false;
	if (as_wanted || p->rereads >= READ_AGAIN_MAX)
		return;
	p->reread_at = monotime_add_ms(clock_monotime(), READ_AGAIN_MS << p->rereads++);
	a->reread_at = monotime_min(a->reread_at, p->reread_at);
}

static void read_due_again(struct apply *a)
{
	struct monotime now = clock_monotime();

	if (!monotime_reached(a->reread_at, now)) {
		if (!monotime_is_never(a->reread_at))
			apply_wake_at(a, a->reread_at);
		return;
	}
	a->reread_at = MONOTIME_NEVER;
	for (size_t s = 0; s < a->n_services; s++) {
		for (size_t i = 0; i < a->services[s].config->n_prefixes; i++) {
			struct apply_prefix *p = &a->services[s].prefixes[i];

			if (p->reread_at.us == 0)
				continue;
			if (monotime_reached(p->reread_at, now))
				read_want(a, p);
			else
				a->reread_at = monotime_min(a->reread_at, p->reread_at);
		}
	}
	if (!monotime_is_never(a->reread_at))
		apply_wake_at(a, a->reread_at);
}

void apply_want_read_protocol(struct apply *a, const struct apply_protocol *p)
{
	for (size_t i = p->first_prefix; i < p->first_prefix + p->n_prefixes; i++)
		if (apply_protocol_holds(p, i))
			apply_want_read(a, p->service, i);
}

void apply_want_read_all(struct apply *a)
{
	for (size_t s = 0; s < a->n_services; s++)
		for (size_t i = 0; i < a->services[s].config->n_prefixes; i++)
			apply_want_read(a, &a->services[s], i);
}

/* The next prefix behind (*service, *prefix), around the end. False when there is none at all. */
static bool read_next(const struct apply *a, size_t *service, size_t *prefix)
{
	size_t s = *service, i = *prefix + 1;

	for (size_t turns = 0; turns <= a->n_services + 1; turns++) {
		if (s < a->n_services && i < a->services[s].config->n_prefixes) {
			*service = s;
			*prefix = i;
			return true;
		}
		s = s + 1 < a->n_services ? s + 1 : 0;
		i = 0;
		if (a->n_services == 0)
			return false;
	}
	return false;
}

void apply_read_some(struct apply *a)
{
	for (unsigned i = 0; i < APPLY_TICK_READS; i++)
		if (read_next(a, &a->tick_service, &a->tick_prefix))
			apply_want_read(a, &a->services[a->tick_service], a->tick_prefix);
}

/* ---- observation ---- */

static void read_on_status(void *userdata, int error, const struct reply *reply)
{
	struct apply *a = userdata;
	struct observe_status status;

	if (!reply || !observe_status(reply, &status))
		return;
	if (a->configure != APPLY_CONFIGURE_NONE || a->busy || a->observe_asked < a->settled)
		return; /* Of a configuration that is being replaced. */
	if (!a->life_known) {
		a->life_known = true;
		a->life_unbroken = !a->birdc;
		a->life = status;
		a->life_expected = false;
		return;
	}
	if (!a->life_unbroken && !observe_same_life(&a->life, &status)) {
		event_say(LOG_NOTICE, EVENT_BIRD_RESTARTED, NULL, "bird: was started anew, %s",
			status.reboot);
		for (size_t i = 0; i < a->n_protocols; i++) {
			a->protocols[i]->loaded = PLAN_BODY_UNKNOWN;
			a->protocols[i]->reached = false;
		}
		apply_want_read_all(a);
	} else if (!observe_same_configuration(&a->life, &status) && !a->life_expected) {
		event_say(LOG_INFO, EVENT_BIRD_RECONFIGURED, NULL,
			"bird: was reconfigured by somebody, %s", status.reconfigured);
		for (size_t i = 0; i < a->n_protocols; i++)
			a->protocols[i]->loaded = PLAN_BODY_UNKNOWN;
		apply_want_read_all(a);
		advise_soon(a->advise);
		apply_retry_now(a, "somebody's configuration was taken");
	}
	a->life_expected = false;
	a->life_unbroken = !a->birdc; /* birdc connects anew for each command */
	a->life = status;
}

/* One of ours that nothing here knows: what its name says that it holds may be wanted still, under
 * another name (apply_is_replaced()). An agent that ended between a reload and its `configure` has
 * left no fragment for it. */
static struct apply_protocol *read_add_unknown(struct apply *a, const char *name)
{
	struct apply_protocol *p = apply_add(a, name);
	struct prefix held;

	if (!p)
		return NULL;
	p->want = PLAN_WANT_GONE;
	p->last_resort = names_is_last(name);
	if (names_prefix(name, &held) && (p->held = malloc(sizeof(held)))) {
		p->held[0] = held;
		p->n_held = 1;
	}
	event_say(LOG_NOTICE, EVENT_DRIFT, &(const struct event_fields){.protocol = p->name},
		"bird: protocol %s is no longer configured", p->name);
	return p;
}

static void read_found_protocol(struct apply *a, const struct observe_protocol *found)
{
	struct apply_protocol *p = apply_find(a, found->name);
	enum plan_seen seen = found->up ? PLAN_SEEN_UP : PLAN_SEEN_DOWN;

	if (!p) {
		p = read_add_unknown(a, found->name);
		if (!p)
			return;
	}
	p->listed = a->observe_asked;
	if (p->command != 0 || p->answered > a->observe_asked)
		return; /* Asked for before our last command was carried out. */
	if (p->last_seen != seen && p->service)
		apply_want_read_protocol(a, p);
	p->seen = p->last_seen = seen;
}

static void read_absent_protocols(struct apply *a)
{
	for (size_t i = 0; i < a->n_protocols; i++) {
		struct apply_protocol *p = a->protocols[i];

		if (p->listed == a->observe_asked || p->command != 0 ||
			p->answered > a->observe_asked)
			continue;
		if (p->last_seen != PLAN_SEEN_ABSENT && p->service)
			apply_want_read_protocol(a, p);
		p->seen = p->last_seen = PLAN_SEEN_ABSENT;
		p->loaded = PLAN_BODY_UNKNOWN;
	}
}

static bool read_is_session(const struct apply *a, const struct observe_protocol *found)
{
	for (size_t i = 0; i < a->n_sessions_wanted; i++)
		if (observe_is_session(found, a->sessions_wanted[i]))
			return true;
	return false;
}

#define READ_SESSION_LINES 20 /* in a minute */

/* One that goes up and down for hours does not fill the log. */
static bool read_may_say_session(struct apply *a)
{
	struct monotime now = clock_monotime();

	if (monotime_since_us(a->sessions_said, now) > 60 * 1000000ULL) {
		if (a->sessions_lines > READ_SESSION_LINES)
			event_say(LOG_NOTICE, EVENT_SESSION_DOWN, NULL,
				"bird: %u more changes of sessions were not logged",
				a->sessions_lines - READ_SESSION_LINES);
		a->sessions_said = now;
		a->sessions_lines = 0;
	}
	return ++a->sessions_lines <= READ_SESSION_LINES;
}

static void read_say_session(struct apply *a, const struct apply_session *new)
{
	char info[4 * sizeof(new->info)] = "";

	for (size_t i = 0; i < a->n_sessions; i++) {
		const struct apply_session *old = &a->sessions[i];
		const struct event_fields fields = {
			.session = new->name,
			.from = new->up ? "down" : "up",
			.to = new->up ? "up" : "down",
			.reason = info,
		};

		if (strcmp(old->name, new->name) != 0)
			continue;
		if (old->up == new->up || !read_may_say_session(a))
			return;
		if (!new->up)
			printable_copy(info, sizeof(info), new->info, strlen(new->info));
		if (new->up)
			event_say(LOG_NOTICE, EVENT_SESSION_UP, &fields, "bird: session %s came up",
				new->name);
		else
			event_say(LOG_WARNING, EVENT_SESSION_DOWN, &fields,
				"bird: session %s went down%s%s", new->name, info[0] ? ": " : "",
				info);
		return;
	}
}

static void read_set_sessions(struct apply *a, struct apply_session *sessions, size_t n)
{
	bool same = n == a->n_sessions;

	for (size_t i = 0; same && i < n; i++)
		same = strcmp(sessions[i].name, a->sessions[i].name) == 0 &&
		       sessions[i].up == a->sessions[i].up;
	for (size_t i = 0; !same && i < n; i++)
		read_say_session(a, &sessions[i]);
	free(a->sessions);
	a->sessions = sessions;
	a->n_sessions = n;
	if (same)
		return;
	a->sessions_version++;
	a->status.sessions = (unsigned)n;
	a->status.sessions_up = 0;
	for (size_t i = 0; i < n; i++)
		a->status.sessions_up += sessions[i].up;
	apply_want_read_all(a);
	apply_say_changed(a);
}

static void read_on_protocols(void *userdata, int error, const struct reply *reply)
{
	struct apply *a = userdata;
	struct apply_session *sessions, *larger;
	struct observe_protocol found;
	size_t n = 0;

	a->observe_sent = false;
	apply_round_soon(a);
	if (!reply || reply->code != 0)
		return;
	if (a->observe_asked < a->settled) { /* A configuration was loaded meanwhile. */
		a->observe_wanted = true;
		return;
	}
	sessions = NULL;
	for (size_t i = 0; i < reply->n_lines; i++) {
		if (!observe_protocol(&reply->lines[i], &found))
			continue;
		if (names_is_ours(found.name))
			read_found_protocol(a, &found);
		if (!read_is_session(a, &found))
			continue;
		larger = reallocarray(sessions, n + 1, sizeof(*larger));
		if (!larger)
			break;
		sessions = larger;
		memcpy(sessions[n].name, found.name, sizeof(found.name));
		memcpy(sessions[n].info, found.info, sizeof(found.info));
		sessions[n++].up = found.established;
	}
	read_absent_protocols(a);
	read_set_sessions(a, sessions, n);
	apply_link_observed(a);
}

void apply_observe(struct apply *a)
{
	if (!read_ready(a) || a->observe_sent)
		return;
	a->observe_asked = ++a->moment;
	if (client_send(a->reading.client, CLIENT_DEADLINE_MS, read_on_status, a, "show status") <
			0 ||
		client_send(a->reading.client, CLIENT_DEADLINE_MS, read_on_protocols, a,
			"show protocols") < 0)
		return;
	a->observe_sent = true;
	a->observe_wanted = false;
}

/* ---- one prefix ---- */

static void job_free(struct apply_job *job)
{
	struct apply *a = job->apply;

	if (job->previous)
		job->previous->next = job->next;
	else
		a->jobs = job->next;
	if (job->next)
		job->next->previous = job->previous;
	a->n_jobs--;
	free(job);
}

static bool job_is_own_table(const char *table)
{
	return strcmp(table, "redshank4") == 0 || strcmp(table, "redshank6") == 0;
}

/* The table's routes are all read. */
static void job_end_table(struct apply_job *job)
{
	bool own = job_is_own_table(job->table);

	if (job->table_ours) {
		job->ours = true;
		if (!names_is_ours(job->table_best))
			memcpy(job->better, job->table_best, sizeof(job->better));
	} else if (!own && job->table_best[0]) {
		memcpy(job->instead, job->table_best, sizeof(job->instead));
	}
	job->table_ours = false;
	job->table_best[0] = '\0';
}

/* Notes whose routes, beside ours, BIRD knows. Past APPLY_NAMED_MAX names it is only that some are.
 */
static void job_note_other(struct apply_job *job, const struct observe_route *route)
{
	struct apply *a = job->apply;
	size_t i = 0;

	while (i < a->n_others && strcmp(a->others[i], route->protocol) != 0)
		i++;
	if (i == APPLY_NAMED_MAX) {
		job->more_others = true;
		return;
	}
	if (i == a->n_others)
		memcpy(a->others[a->n_others++], route->protocol, sizeof(a->others[0]));
	job->others |= 1ULL << i;
	if (route->best)
		job->others_best |= 1ULL << i;
}

/* Notes which servers' routes BIRD knows, likewise. */
static void job_note_next_hop(struct apply_job *job, const struct observe_route *route)
{
	struct apply *a = job->apply;
	size_t i = 0;

	if (!route->from_bgp || route->next_hop.family == 0)
		return;
	while (i < a->n_next_hops && !address_equal(&a->next_hops[i], &route->next_hop))
		i++;
	if (i == APPLY_NAMED_MAX) {
		job->more_next_hops = true;
		return;
	}
	if (i == a->n_next_hops)
		a->next_hops[a->n_next_hops++] = route->next_hop;
	job->next_hops |= 1ULL << i;
}

static void job_route(void *userdata, const struct observe_route *route)
{
	struct apply_job *job = userdata;
	const struct apply_service *s = &job->apply->services[job->service];

	if (strcmp(route->table, job->table) != 0) {
		job_end_table(job);
		memcpy(job->table, route->table, sizeof(job->table));
	}
	if (route->best)
		memcpy(job->table_best, route->protocol, sizeof(job->table_best));
	if (!names_is_ours(route->protocol)) {
		job_note_other(job, route);
		job_note_next_hop(job, route);
		return;
	}
	job->table_ours = true;
	if (!job_is_own_table(route->table))
		return; /* What a protocol holds is what it puts into a table of ours. */
	for (size_t i = 0; i < s->n_protocols; i++) {
		const struct apply_protocol *p = s->protocols[i];

		if (strcmp(p->name, route->protocol) != 0 || !apply_protocol_holds(p, job->prefix))
			continue;
		job->present[p->last_resort] = true;
		job->has_weight[p->last_resort] = route->has_weight;
		job->weight[p->last_resort] = route->weight;
		job->matches[p->last_resort] = observe_route_matches(
			route, &s->config->prefixes[job->prefix], p->last_resort);
	}
}

static void job_done(struct apply_job *job);

static void job_on_routes(void *userdata, int error, const struct reply *reply)
{
	struct apply_job *job = userdata;

	if (!reply || (reply->code != 0 && reply->code != 8001))
		job->failed = true;
	else if (job->generation == job->apply->generation) {
		observe_routes(reply, job_route, job);
		job_end_table(job);
	}
	job_done(job);
}

static void job_export_route(void *userdata, const struct observe_route *route)
{
	struct apply_job *job = userdata;

	if (names_is_ours(route->protocol))
		job->exported++;
	else
		memcpy(job->exported_by, route->protocol, sizeof(job->exported_by));
}

static void job_on_export(void *userdata, int error, const struct reply *reply)
{
	struct apply_job *job = userdata;
	uint64_t session = job->sessions_left & -job->sessions_left;
	int before = job->exported;

	job->sessions_left &= ~session;
	/* 8001: not exported. 9001: the session is down, or does not carry the prefix's family. */
	if (!reply)
		job->failed = true;
	else if (reply->code == 0)
		observe_routes(reply, job_export_route, job);
	if (reply && reply->code != 9001)
		job->carried_by |= session;
	if (job->exported > before)
		job->exported_to |= session;
	job_done(job);
}

/* Is what the job read of the protocol's body true of it as it is now? */
static bool job_is_valid_for(const struct apply_job *job, const struct apply_protocol *p)
{
	const struct apply *a = job->apply;

	return p->command == 0 && p->seen == PLAN_SEEN_UP && job->asked >= p->answered &&
	       job->asked >= a->settled && a->configure == APPLY_CONFIGURE_NONE && !a->busy &&
	       !p->service->stale;
}

static void job_tell_body(struct apply_job *job, struct apply_protocol *p)
{
	struct apply_prefix *prefix = &p->service->prefixes[job->prefix];
	bool expected = prefix->wanted == PREFIX_WANTED_ANNOUNCE ||
			(prefix->wanted == PREFIX_WANTED_DEMOTE && p->last_resort);
	bool differs = expected ? !job->matches[p->last_resort] : job->present[p->last_resort];

	if (!job_is_valid_for(job, p)) {
		if (p->reads_left > 0)
			apply_want_read(job->apply, p->service, job->prefix);
		return;
	}
	if (p->want != PLAN_WANT_UP) {
		p->reads_left = 0;
		return;
	}
	prefix->differs = differs ? prefix->differs + 1 : 0;
	if (differs && prefix->differs < READ_DIFFERS) {
		/* It may be on its way: read_again_later(). Or the protocol was taken down after it
		 * was seen up, which a BIRD without `echo` does not tell: that is asked first. */
		if (!job->present[p->last_resort])
			job->apply->observe_wanted = true;
		return;
	}
	if (p->reads_left > 0) {
		p->reads_differ = p->reads_differ || differs;
		if (--p->reads_left == 0)
			p->loaded = p->reads_differ ? APPLY_BODY_OTHER : p->body;
	} else if (differs) {
		p->loaded = APPLY_BODY_OTHER;
	} else if (p->loaded == PLAN_BODY_UNKNOWN && !p->family_protocol) {
		p->loaded = p->body;
	}
}

static void job_say_elsewhere(
	const struct apply_service *s, struct apply_prefix *prefix, const char *name)
{
	const struct apply_observed *o = &prefix->observed;
	const struct event_fields fields = {.service = s->name,
		.prefixes = name,
		.protocol = o->elsewhere,
		.wanted = prefix_wanted_name(prefix->wanted)};

	if (o->elsewhere[0] && !prefix->said_elsewhere) {
		if (prefix->wanted == PREFIX_WANTED_WITHDRAW)
			event_say(LOG_WARNING, EVENT_FOREIGN_EXPORT, &fields,
				"prefix %s: withdrawn here, but BIRD still announces it from "
				"protocol %s",
				name, o->elsewhere);
		else
			event_say(LOG_WARNING, EVENT_FOREIGN_EXPORT, &fields,
				"prefix %s: BIRD announces it from protocol %s, not from ours",
				name, o->elsewhere);
		prefix->said_elsewhere = true;
	} else if (!o->elsewhere[0] && prefix->said_elsewhere) {
		event_say(LOG_NOTICE, EVENT_FOREIGN_EXPORT_OVER, &fields,
			"prefix %s: no longer announced by anybody else", name);
		prefix->said_elsewhere = false;
	}
}

/* Not memcmp(): the struct has bytes behind its text that say nothing. */
static bool observed_equal(const struct apply_observed *a, const struct apply_observed *b)
{
	return a->announced == b->announced && a->exported == b->exported &&
	       strcmp(a->elsewhere, b->elsewhere) == 0;
}

static void job_tell_explained(const struct apply_job *job, struct apply_prefix *prefix)
{
	prefix->sessions_version = job->sessions_version;
	prefix->exported_to = job->exported_to;
	prefix->carried_by = job->carried_by;
	prefix->others = job->others;
	prefix->others_best = job->others_best;
	prefix->more_others = job->more_others;
	prefix->next_hops = job->next_hops;
	prefix->more_next_hops = job->more_next_hops;
	memcpy(prefix->has_weight, job->has_weight, sizeof(prefix->has_weight));
	memcpy(prefix->weight, job->weight, sizeof(prefix->weight));
}

static void job_tell(struct apply_job *job)
{
	struct apply *a = job->apply;
	struct apply_service *s = &a->services[job->service];
	struct apply_prefix *prefix = &s->prefixes[job->prefix];
	struct apply_observed o = {0};
	char name[PREFIX_TEXT_MAX];

	for (size_t i = 0; i < s->n_protocols; i++)
		if (apply_protocol_holds(s->protocols[i], job->prefix))
			job_tell_body(job, s->protocols[i]);
	o.announced = job->ours && !job->better[0] ? APPLY_YES : APPLY_NO;
	o.exported = job->exported;
	if (job->exported_by[0])
		memcpy(o.elsewhere, job->exported_by, sizeof(o.elsewhere));
	else if (job->better[0])
		memcpy(o.elsewhere, job->better, sizeof(o.elsewhere));
	else if (!job->ours && a->n_sessions == 0)
		memcpy(o.elsewhere, job->instead, sizeof(o.elsewhere));
	job_tell_explained(job, prefix);
	if (!observed_equal(&o, &prefix->observed)) {
		prefix->observed = o;
		prefix_format(&s->config->prefixes[job->prefix].prefix, name);
		job_say_elsewhere(s, prefix, name);
		apply_say_changed(a);
	}
	read_again_later(a, prefix);
}

static void job_done(struct apply_job *job)
{
	struct apply *a = job->apply;

	if (--job->left > 0)
		return;
	if (job->generation == a->generation) {
		struct apply_service *s = &a->services[job->service];

		s->prefixes[job->prefix].reading = false;
		if (job->failed)
			apply_want_read(a, s, job->prefix);
		else
			job_tell(job);
	}
	job_free(job);
	apply_round_soon(a);
}

static void job_send(struct apply_job *job)
{
	struct apply *a = job->apply;
	const struct config_service *config = a->services[job->service].config;
	struct client *client = a->reading.client;
	char prefix[PREFIX_TEXT_MAX];

	prefix_format(&config->prefixes[job->prefix].prefix, prefix);
	job->left = 1; /* held by this function */
	if (client_send(client, CLIENT_DEADLINE_MS, job_on_routes, job,
		    "show route %s table all all", prefix) == 0)
		job->left++;
	else
		job->failed = true;
	job->sessions_version = a->sessions_version;
	for (size_t i = 0; i < a->n_sessions && !job->failed; i++) {
		if (!a->sessions[i].up)
			continue;
		if (i < APPLY_NAMED_MAX)
			job->sessions_left |= 1ULL << i;
		if (client_send(client, CLIENT_DEADLINE_MS, job_on_export, job,
			    "show route %s export '%s'", prefix, a->sessions[i].name) == 0)
			job->left++;
		else
			job->failed = true;
	}
	job_done(job);
}

static void job_start(struct apply *a, size_t service, size_t prefix)
{
	struct apply_job *job = calloc(1, sizeof(*job));

	if (!job)
		return; /* It stays wanted. */
	job->apply = a;
	job->generation = a->generation;
	job->service = service;
	job->prefix = prefix;
	job->asked = ++a->moment;
	job->next = a->jobs;
	if (job->next)
		job->next->previous = job;
	a->jobs = job;
	a->n_jobs++;
	a->services[service].prefixes[prefix].read_wanted = false;
	a->services[service].prefixes[prefix].reading = true;
	a->reads_wanted--;
	job_send(job);
}

/* While BIRD is not at rest, what is read would have to be read again; but a BIRD that stays busy
 * is read all the same. */
static bool read_is_time(const struct apply *a)
{
	if (!read_ready(a) || !a->observed_once)
		return false;
	if (a->busy)
		return monotime_since_us(a->busy_since, clock_monotime()) > APPLY_BUSY_STUCK_US;
	return !a->unconfirmed;
}

void apply_reads_pump(struct apply *a)
{
	size_t cost = 1 + a->status.sessions_up;

	if (!read_is_time(a))
		return;
	read_due_again(a);
	for (size_t left = a->reads_wanted; left > 0; left--) {
		size_t waiting = client_waiting(a->reading.client);
		struct apply_prefix *p;

		if (waiting > 0 && waiting + cost > APPLY_READS_MAX)
			return;
		do {
			if (!read_next(a, &a->read_service, &a->read_prefix))
				return;
			p = &a->services[a->read_service].prefixes[a->read_prefix];
		} while (!p->read_wanted);
		if (p->reading)
			continue; /* Its answer starts the next round. */
		job_start(a, a->read_service, a->read_prefix);
		if (!a->reading.client)
			return;
	}
}

/* Their connection is gone, or the configuration that their indexes mean is. */
void apply_drop_jobs(struct apply *a)
{
	while (a->jobs)
		job_free(a->jobs);
}

/* ---- the connection ---- */

static void read_ignored(void *userdata, int error, const struct reply *reply)
{
	if (reply && reply->code >= 8000)
		log_debug("bird: %04d %s", reply->code, reply->text);
}

/* BIRD 3 has no `echo`: then the short tick must find what others do. */
static void read_on_echo(void *userdata, int error, const struct reply *reply)
{
	struct apply *a = userdata;

	a->told_of_changes = reply && reply->code == 0;
}

void apply_read_greeted(struct apply *a)
{
	a->told_of_changes = false;
	if (!a->birdc) {
		/* Messages of the kind of "Reconfigured", in a buffer of this size. */
		(void)client_send(a->reading.client, CLIENT_DEADLINE_MS, read_on_echo, a,
			"echo { info } 4096");
		(void)client_send(
			a->reading.client, CLIENT_DEADLINE_MS, read_ignored, a, "restrict");
	}
	a->observe_wanted = true;
	apply_round_soon(a);
}

void apply_read_lost(struct apply *a)
{
	apply_drop_jobs(a);
	advise_lost(a->advise);
	a->observe_sent = false;
	a->observed_once = false;
	for (size_t i = 0; i < a->n_protocols; i++)
		a->protocols[i]->reads_left = 0;
	for (size_t s = 0; s < a->n_services; s++) {
		for (size_t i = 0; i < a->services[s].config->n_prefixes; i++) {
			struct apply_prefix *p = &a->services[s].prefixes[i];

			p->reading = false;
			p->observed = (struct apply_observed){.exported = -1};
			p->sessions_version = 0;
		}
	}
	apply_want_read_all(a);
	apply_say_changed(a);
}

void apply_read_push(struct apply *a, const char *text)
{
	const struct apply_protocol *p;
	char name[NAMES_MAX];

	advise_push(a->advise, text);
	if (strstr(text,
		    "by SIGHUP")) /* whose errors are in BIRD's log alone (sysdep/unix/main.c) */
		apply_check_soon(a);
	if (observe_our_name(text, name)) {
		p = apply_find(a, name);
		/* Our own command's echo. */
		if (p && ((p->seen == PLAN_SEEN_DOWN && strncmp(text, "Disabling ", 10) == 0) ||
				 (p->seen == PLAN_SEEN_UP && strncmp(text, "Enabling ", 9) == 0)))
			return;
	} else if (!strstr(text, "econfigur") && !strstr(text, "protocol ") &&
		   text[0] != '<') { /* "<12 messages lost>": any of these may be among them */
		return;
	}
	if (a->configure != APPLY_CONFIGURE_NONE)
		return; /* Everything is looked at when it has settled. */
	a->observe_wanted = a->status_wanted = true;
	apply_round_soon(a);
}
