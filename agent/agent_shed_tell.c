/*
 * What shedding did, told: an event for each prefix that went or came back, for the alarm, and for
 * promises that we give or refuse; and the list for redshank-deadman, which has to know what is
 * out.
 *
 * What was told last is a list of prefixes, not of places in a configuration, so that it outlives a
 * reload. Promises are asked for again and again where they are refused: a few a minute
 * are told, and the rest counted.
 */
#include <string.h>

#include "agent/agent_private.h"
#include "agent/base/clock.h"
#include "agent/bird/deadman.h"
#include "agent/bird/names.h"
#include "agent/events/events.h"

#define TELL_GRANTS_MAX 20 /* in a minute */
#define TELL_MINUTE_MS 60000
#define TELL_NAMES_MAX 256 /* bytes of the neighbours' names on one line */

static bool told_find(const struct shed_told *told, const struct prefix *prefix, size_t *ret)
{
	for (size_t i = 0; i < told->n; i++)
		if (prefix_equal(&told->out[i], prefix)) {
			*ret = i;
			return true;
		}
	return false;
}

/* "edge2, edge3": those whose promise we hold. */
static void tell_holders(const struct agent *a, size_t service, size_t prefix, struct buffer *names)
{
	const struct neighbours *n = shedding_neighbours(a->shedding);
	struct shed_promise promise;

	for (size_t i = 0; shedding_promise(a->shedding, service, prefix, i, &promise); i++)
		if (!promise.given && promise.until.us > 0 &&
			promise.neighbour < neighbours_count(n))
			(void)buffer_printf(names, "%s%s", names->length > 0 ? ", " : "",
				neighbours_name(n, promise.neighbour));
}

static void tell_out(
	const struct agent *a, size_t service, size_t prefix, const struct shed_prefix *view)
{
	const struct config_service *s = &a->config->services[service];
	char text[PREFIX_TEXT_MAX], memory[TELL_NAMES_MAX];
	struct event_fields fields = {
		.service = s->name,
		.prefixes = prefix_format(&s->prefixes[prefix].prefix, text),
		.from = "in",
		.to = "out",
		.reason = shed_why_name(view->why),
	};
	struct buffer names;

	buffer_init_fixed(&names, memory, sizeof(memory));
	tell_holders(a, service, prefix, &names);
	fields.neighbour = buffer_string(&names);
	event_say(LOG_NOTICE, EVENT_PREFIX_SHED, &fields, "shed %s of %s: %s, promised by %s",
		fields.prefixes, fields.service, fields.reason, fields.neighbour);
}

/* Came back for another reason than that there is room again: somebody may want to look. */
static int tell_back_level(enum shed_why why)
{
	return why == SHED_WHY_RELEASED || why == SHED_WHY_UNSHED || why == SHED_WHY_OFF ||
			       why == SHED_WHY_GONE
		       ? LOG_NOTICE
		       : LOG_WARNING;
}

static void tell_back(
	const struct prefix *prefix, const char *service, const char *reason, int level)
{
	char text[PREFIX_TEXT_MAX];
	const struct event_fields fields = {
		.service = service,
		.prefixes = prefix_format(prefix, text),
		.from = "out",
		.to = "in",
		.reason = reason,
	};

	event_say(level, EVENT_PREFIX_RETURNED, &fields, "%s is shed no more: %s", fields.prefixes,
		reason);
}

static void tell_alarm(struct agent *a)
{
	struct shed_server server;

	shedding_server(a->shedding, &server);
	if (server.alarm && !a->shed_told.alarm)
		event_say(LOG_ERR, EVENT_SHED_ALARM, NULL,
			"shedding had no effect, twice: everything is back, and nothing is shed "
			"for "
			"`shed.leave_alone`; this server's load does not come from its prefixes, "
			"or "
			"its signals do not show it");
	a->shed_told.alarm = server.alarm;
}

static void tell_prefix(struct agent *a, size_t service, size_t prefix, struct shed_told *now)
{
	const struct config_service *s = &a->config->services[service];
	const struct prefix *name = &s->prefixes[prefix].prefix;
	struct shed_prefix view = {0};
	bool known = shedding_prefix(a->shedding, service, prefix, &view);
	size_t at;
	bool was = told_find(&a->shed_told, name, &at);

	if (was) /* what is left is configured no more */
		a->shed_told.out[at] = a->shed_told.out[--a->shed_told.n];
	if (known && view.out && now->n < ELEMENTSOF(now->out)) {
		if (!was)
			tell_out(a, service, prefix, &view);
		now->out[now->n++] = *name;
	} else if (was && known) {
		tell_back(name, s->name, shed_why_name(view.last), tell_back_level(view.last));
	} else if (was) {
		tell_back(name, s->name, a->stopping ? "stopping" : "off", LOG_NOTICE);
	}
}

void agent_tell_shed_events(struct agent *a)
{
	struct shed_told now = {.n = 0};

	for (size_t s = 0; s < a->config->n_services; s++)
		for (size_t p = 0; p < a->config->services[s].n_prefixes; p++)
			tell_prefix(a, s, p, &now);
	for (size_t i = 0; i < a->shed_told.n; i++)
		tell_back(&a->shed_told.out[i], NULL, "not configured", LOG_NOTICE);
	memcpy(a->shed_told.out, now.out, sizeof(now.out));
	a->shed_told.n = now.n;
	tell_alarm(a);
}

/* ---- promises that are asked of us ---- */

/* False: enough was said in this minute. */
static bool tell_may(struct shed_told *told, struct monotime now, char more[64])
{
	more[0] = '\0';
	if (told->minute.us == 0 ||
		monotime_reached(monotime_add_ms(told->minute, TELL_MINUTE_MS), now)) {
		if (told->n_grants > TELL_GRANTS_MAX)
			(void)snprintf(more, 64, "; %u more were not told",
				told->n_grants - TELL_GRANTS_MAX);
		told->minute = now;
		told->n_grants = 0;
	}
	return told->n_grants++ < TELL_GRANTS_MAX;
}

void agent_on_grant(void *userdata, const char *neighbour, const struct prefix *prefix,
	const struct shed_request *request, const struct shed_answer *answer)
{
	struct agent *a = userdata;
	bool granted = answer->refused == SHED_REFUSAL_NONE;
	char text[PREFIX_TEXT_MAX], more[64];
	const struct event_fields fields = {
		.prefixes = prefix_format(prefix, text),
		.neighbour = neighbour,
		.to = shed_refusal_name(answer->refused),
		.reason = shed_purpose_name(request->purpose),
	};

	if (!tell_may(&a->shed_told, clock_monotime(), more))
		return;
	if (granted)
		event_say(LOG_INFO, EVENT_GRANT, &fields,
			"promised %s to go on announcing %s while it does not (%s)%s", neighbour,
			fields.prefixes, fields.reason, more);
	else
		event_say(LOG_INFO, EVENT_GRANT_REFUSED, &fields,
			"refused %s a promise for %s: %s%s", neighbour, fields.prefixes, fields.to,
			more);
}

/* ---- the dead man ---- */

bool agent_sheds_differ(const struct agent *a)
{
	struct deadman_restore now[SHED_OUT_MAX];
	size_t n = agent_list_sheds(a, now, ELEMENTSOF(now)), at;

	for (size_t i = 0; i < n; i++)
		if (!told_find(&a->shed_told,
			    &a->config->services[now[i].service].prefixes[now[i].prefix].prefix,
			    &at))
			return true;
	return n != a->shed_told.n;
}

size_t agent_list_sheds(const struct agent *a, struct deadman_restore *ret, size_t max)
{
	struct shed_prefix view;
	size_t n = 0;

	for (size_t s = 0; s < a->config->n_services; s++) {
		const struct config_service *service = &a->config->services[s];

		for (size_t p = 0; p < service->n_prefixes; p++)
			if (n < max && shedding_prefix(a->shedding, s, p, &view) && view.out)
				ret[n++] = (struct deadman_restore){.service = s, .prefix = p};
	}
	return n;
}
