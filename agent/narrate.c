/*
 * A burst of transitions comes from one decision: a check, then its service, then the service's
 * prefixes. They are read in that order and told in as few lines as say everything: the prefixes
 * that follow their service's change stand on its line, and a line names the first few prefixes and
 * counts the rest, so that the death of a service with 5,000 prefixes is one line, not 5,000. Lines
 * are put together on the stack: they are told also when there is no memory. Each line is an event
 * with the same facts as fields; the event names more of the prefixes than the line.
 */
#include "agent/narrate.h"

#include "agent/base/buffer.h"
#include "agent/events/events.h"

#define NARRATE_LINE_SIZE 1024 /* with the NUL */
#define NARRATE_PREFIXES_NAMED 8

/* Prefixes of one service that changed alike, one after the other. */
struct narrate_group {
	struct engine_transition first;
	struct buffer names; /* for the line: the first few */
	struct buffer list;  /* for the event: more of them */
	size_t n;
};

/* Announced as before though its service is unhealthy: that is worth a line of its own. */
static bool narrate_is_kept(const struct engine_transition *t)
{
	return t->kind == ENGINE_TRANSITION_PREFIX && t->from == t->to &&
	       t->reason == PREFIX_REASON_KEPT_BY_FLOOR;
}

static const char *narrate_verb(const struct engine_transition *t)
{
	if (narrate_is_kept(t))
		return "keeping";
	switch ((enum prefix_wanted)t->to) {
	case PREFIX_WANTED_ANNOUNCE:
		return "announcing";
	case PREFIX_WANTED_DEMOTE:
		return "demoting";
	case PREFIX_WANTED_WITHDRAW:
		return "withdrawing";
	}
	return "?";
}

static bool narrate_alike(const struct engine_transition *a, const struct engine_transition *b)
{
	return a->kind == b->kind && a->service == b->service && a->from == b->from &&
	       a->to == b->to && a->reason == b->reason;
}

static void narrate_group_add(struct narrate_group *g, const struct narrate_facts *facts,
	const struct engine_transition *t)
{
	const struct config_service *service = &facts->config->services[t->service];
	char text[PREFIX_TEXT_MAX];
	const char *name = prefix_format(&service->prefixes[t->index].prefix, text);

	if (g->n == 0)
		g->first = *t;
	if (g->n < NARRATE_PREFIXES_NAMED)
		(void)buffer_printf(&g->names, "%s%s", g->n > 0 ? ", " : "", name);
	if (g->n < EVENT_PREFIXES_NAMED)
		(void)buffer_printf(&g->list, "%s%s", g->n > 0 ? " " : "", name);
	g->n++;
}

/* "withdrawing 192.0.2.53/32, 2001:db8::53/128 and 40 more" */
static void narrate_group_text(const struct narrate_group *g, struct buffer *line)
{
	(void)buffer_printf(line, "%s %s", narrate_verb(&g->first), buffer_string(&g->names));
	if (g->n > NARRATE_PREFIXES_NAMED)
		(void)buffer_printf(line, " and %zu more", g->n - NARRATE_PREFIXES_NAMED);
}

static void narrate_group_clear(struct narrate_group *g)
{
	buffer_clear(&g->names);
	buffer_clear(&g->list);
	g->n = 0;
}

/* What an event says of the group's prefixes. */
static void narrate_group_fields(const struct narrate_group *g, struct event_fields *fields)
{
	fields->prefixes = buffer_string(&g->list);
	fields->n_prefixes = g->n;
	fields->wanted = prefix_wanted_name((enum prefix_wanted)g->first.to);
	fields->rule = prefix_reason_name(g->first.reason);
}

static void narrate_tell(const struct narrate_facts *facts, size_t service, enum event_kind kind,
	const struct event_fields *fields)
{
	if (facts->told)
		facts->told(facts->userdata, service, kind, fields);
}

static void narrate_group_line(struct narrate_group *g, const struct narrate_facts *facts)
{
	char memory[NARRATE_LINE_SIZE];
	struct event_fields fields;
	struct buffer line;

	if (g->n == 0)
		return;
	fields = (struct event_fields){
		.service = facts->config->services[g->first.service].name,
		.from = prefix_wanted_name((enum prefix_wanted)g->first.from),
		.to = prefix_wanted_name((enum prefix_wanted)g->first.to),
	};
	buffer_init_fixed(&line, memory, sizeof(memory));
	narrate_group_text(g, &line);
	narrate_group_fields(g, &fields);
	event_say(narrate_is_kept(&g->first) ? LOG_WARNING : LOG_INFO, EVENT_PREFIX, &fields,
		"service %s: %s (%s)", fields.service, buffer_string(&line), fields.rule);
	narrate_tell(facts, g->first.service, EVENT_PREFIX, &fields);
	narrate_group_clear(g);
}

/* " (process 812 has died)", " (rising, 1 of 3 good: process 812)" or nothing. */
static void narrate_check_reason(const struct narrate_facts *facts, const struct engine *engine,
	size_t service, size_t index, struct buffer *line)
{
	const struct check *check = engine_check(engine, service, index);
	const char *reason = facts->check_reason(facts->userdata, service, index);

	if (check->state == CHECK_STATE_DOWN && check->good_streak > 0)
		(void)buffer_printf(line, "rising, %u of %u good%s%s", check->good_streak,
			check_rise(check), *reason ? ": " : "", reason);
	else
		(void)buffer_append_string(line, reason);
}

static void narrate_check(const struct narrate_facts *facts, const struct engine *engine,
	const struct engine_transition *t)
{
	const struct config_service *service = &facts->config->services[t->service];
	const struct event_fields fields = {
		.service = service->name,
		.check = service->checks[t->index].name,
		.from = check_state_name((enum check_state)t->from),
		.to = check_state_name((enum check_state)t->to),
		.reason = facts->check_reason(facts->userdata, t->service, t->index),
	};
	char memory[NARRATE_LINE_SIZE];
	struct buffer why;

	buffer_init_fixed(&why, memory, sizeof(memory));
	narrate_check_reason(facts, engine, t->service, t->index, &why);
	event_say(LOG_INFO, EVENT_CHECK, &fields, "check %s/%s: %s -> %s%s%s%s", fields.service,
		fields.check, fields.from, fields.to, why.length ? " (" : "", buffer_string(&why),
		why.length ? ")" : "");
	narrate_tell(facts, t->service, EVENT_CHECK, &fields);
}

/* The checks that are down, with their reasons: why a service is unhealthy. Not those that have to
 * rise again for it. */
static void narrate_why(const struct narrate_facts *facts, const struct engine *engine,
	size_t service, struct buffer *line)
{
	const struct config_service *s = &facts->config->services[service];
	const char *separator = "";

	for (size_t i = 0; i < s->n_checks; i++) {
		const struct check *check = engine_check(engine, service, i);
		size_t before;

		if (check->state != CHECK_STATE_DOWN || check_fell_along(check))
			continue;
		(void)buffer_printf(line, "%scheck %s: ", separator, s->checks[i].name);
		before = line->length;
		narrate_check_reason(facts, engine, service, i, line);
		if (line->length == before)
			(void)buffer_append_string(line, "down");
		separator = "; ";
	}
}

/* The service's own line, with the prefixes that its change moved. */
static void narrate_service(const struct narrate_facts *facts, const struct engine *engine,
	const struct engine_transition *t, struct narrate_group *moved)
{
	char memory[NARRATE_LINE_SIZE], why[NARRATE_LINE_SIZE];
	struct event_fields fields = {
		.service = facts->config->services[t->service].name,
		.from = service_health_name((enum service_health)t->from),
		.to = service_health_name((enum service_health)t->to),
	};
	struct buffer line, reason;

	buffer_init_fixed(&line, memory, sizeof(memory));
	buffer_init_fixed(&reason, why, sizeof(why));
	(void)buffer_printf(&line, "service %s: %s -> %s", fields.service, fields.from, fields.to);
	if (t->to == SERVICE_HEALTH_UNHEALTHY)
		narrate_why(facts, engine, t->service, &reason);
	fields.reason = buffer_string(&reason);
	if (reason.length > 0)
		(void)buffer_printf(&line, " (%s)", fields.reason);
	if (moved->n > 0) {
		(void)buffer_append_string(&line, ", ");
		narrate_group_text(moved, &line);
		narrate_group_fields(moved, &fields);
	}
	event_say(LOG_INFO, EVENT_SERVICE, &fields, "%s", buffer_string(&line));
	narrate_tell(facts, t->service, EVENT_SERVICE, &fields);
	narrate_group_clear(moved);
}

/* True when the prefix moved because its service did: the reason is the service's health. */
static bool narrate_follows(
	const struct engine_transition *service, const struct engine_transition *prefix)
{
	return service->service == prefix->service &&
	       ((service->to == SERVICE_HEALTH_UNHEALTHY &&
			prefix->reason == PREFIX_REASON_UNHEALTHY) ||
		       (service->to == SERVICE_HEALTH_HEALTHY &&
			       (prefix->reason == PREFIX_REASON_HEALTHY ||
				       prefix->reason == PREFIX_REASON_RAMPING)));
}

void narrate_transitions(struct engine *engine, const struct narrate_facts *facts)
{
	struct engine_transition t, service = {0};
	struct narrate_group group = {0};
	char memory[NARRATE_LINE_SIZE], list[EVENT_PREFIXES_SIZE];
	bool service_open = false;

	buffer_init_fixed(&group.names, memory, sizeof(memory));
	buffer_init_fixed(&group.list, list, sizeof(list));
	while (engine_next_transition(engine, &t)) {
		bool joins;

		if (facts->count)
			facts->count(facts->userdata, &t);
		/* Still the same is wanted, for another reason: its service's line says that. */
		if (t.kind == ENGINE_TRANSITION_PREFIX && t.from == t.to && !narrate_is_kept(&t))
			continue;
		joins = t.kind == ENGINE_TRANSITION_PREFIX &&
			(group.n == 0 || narrate_alike(&group.first, &t)) &&
			(!service_open || narrate_follows(&service, &t));

		if (!joins) {
			if (service_open)
				narrate_service(facts, engine, &service, &group);
			else
				narrate_group_line(&group, facts);
			service_open = false;
		}
		switch (t.kind) {
		case ENGINE_TRANSITION_CHECK:
			narrate_check(facts, engine, &t);
			break;
		case ENGINE_TRANSITION_SERVICE:
			service = t;
			service_open = true;
			break;
		case ENGINE_TRANSITION_PREFIX:
			narrate_group_add(&group, facts, &t);
			break;
		}
	}
	if (service_open)
		narrate_service(facts, engine, &service, &group);
	else
		narrate_group_line(&group, facts);
}
