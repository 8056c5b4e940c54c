/*
 * The state of apply in the words of apply_explain.h. Nothing here asks BIRD or changes anything.
 *
 * A protocol is told as it was seen last, not as a command under way will make it: `step` says that
 * one is.
 */
#include "agent/bird/apply_explain.h"

#include <assert.h>

#include "agent/base/clock.h"
#include "agent/bird/apply_state.h"

static const struct apply_prefix *explain_prefix(
	const struct apply *a, size_t service, size_t prefix)
{
	assert(service < a->n_services && prefix < a->services[service].config->n_prefixes);
	return &a->services[service].prefixes[prefix];
}

static enum apply_known explain_loaded(const struct apply *a, const struct apply_protocol *p)
{
	if (a->status.link != APPLY_LINK_UP || p->loaded == PLAN_BODY_UNKNOWN)
		return APPLY_UNKNOWN;
	return p->loaded == p->body ? APPLY_YES : APPLY_NO;
}

static void explain_protocol(const struct apply *a, const struct apply_protocol *p,
	const struct apply_prefix *prefix, struct apply_explained_protocol *ret)
{
	bool believed = p->command == 0 && p->seen != PLAN_SEEN_UNKNOWN;

	*ret = (struct apply_explained_protocol){
		.name = p->name,
		.last_resort = p->last_resort,
		.want_up = p->want == PLAN_WANT_UP,
		.seen = believed ? p->seen : p->last_seen,
		.loaded = explain_loaded(a, p),
		.has_weight = prefix->sessions_version != 0 && prefix->has_weight[p->last_resort],
		.weight = prefix->weight[p->last_resort],
	};
	if (a->status.link != APPLY_LINK_UP)
		ret->seen = PLAN_SEEN_UNKNOWN;
}

static enum apply_fragment explain_fragment(const struct apply *a, const struct apply_service *s)
{
	if (a->folder_fd < 0 || s->dirty)
		return APPLY_FRAGMENT_UNWRITABLE;
	if (s->put_back)
		return APPLY_FRAGMENT_PUT_BACK;
	return s->stale ? APPLY_FRAGMENT_PENDING : APPLY_FRAGMENT_TRUE;
}

/* The time of a back-off; never once it is over. */
static struct monotime explain_at(struct monotime t)
{
	return monotime_reached(t, clock_monotime()) ? MONOTIME_NEVER : t;
}

/* What one protocol waits for; NONE: it is as wanted. */
static enum apply_step explain_protocol_step(
	const struct apply *a, const struct apply_protocol *p, struct monotime *ret_at)
{
	*ret_at = MONOTIME_NEVER;
	if (p->command != 0)
		return APPLY_STEP_ANSWER;
	switch (apply_plan(a, p)) {
	case PLAN_STEP_NONE:
		return APPLY_STEP_NONE;
	case PLAN_STEP_DISABLE:
	case PLAN_STEP_ENABLE:
		*ret_at = explain_at(p->not_before);
		return APPLY_STEP_COMMAND;
	case PLAN_STEP_CONFIGURE:
		*ret_at = explain_at(p->not_before);
		return APPLY_STEP_CONFIGURE;
	case PLAN_STEP_WAIT:
		if (!a->refused)
			return APPLY_STEP_CONFIGURE_TRIAL;
		*ret_at = explain_at(a->retry);
		return APPLY_STEP_CONFIGURE_RETRY;
	case PLAN_STEP_READ:
	case PLAN_STEP_OBSERVE:
		return APPLY_STEP_ASK;
	}
	abort();
}

static void explain_step(const struct apply *a, const struct apply_service *s, size_t prefix,
	struct apply_explained *ret)
{
	ret->step = APPLY_STEP_NONE;
	ret->at = MONOTIME_NEVER;
	if (a->status.link == APPLY_LINK_AWAY || a->status.link == APPLY_LINK_REFUSED) {
		ret->step = APPLY_STEP_CONNECT;
		ret->at = apply_explain_retry(a);
		return;
	}
	if (a->status.link == APPLY_LINK_GREETING || !a->ready) {
		ret->step = APPLY_STEP_ASK;
		return;
	}
	for (size_t i = 0; i < s->n_protocols && ret->step == APPLY_STEP_NONE; i++)
		if (apply_protocol_holds(s->protocols[i], prefix))
			ret->step = explain_protocol_step(a, s->protocols[i], &ret->at);
	if (ret->step == APPLY_STEP_NONE && (s->dirty || s->stale))
		ret->step = APPLY_STEP_WRITE;
	if (ret->step == APPLY_STEP_NONE && s->prefixes[prefix].sessions_version == 0)
		ret->step = APPLY_STEP_ASK;
}

void apply_explain(
	const struct apply *a, size_t service, size_t prefix, struct apply_explained *ret)
{
	const struct apply_prefix *p = explain_prefix(a, service, prefix);
	const struct apply_service *s = &a->services[service];

	*ret = (struct apply_explained){
		.folder = a->folder,
		.fragment = explain_fragment(a, s),
		.read = p->sessions_version != 0 && p->sessions_version == a->sessions_version,
		.reading = p->read_wanted || p->reading,
	};
	for (size_t i = 0; i < s->n_protocols; i++)
		if (apply_protocol_holds(s->protocols[i], prefix) &&
			ret->n_protocols < ELEMENTSOF(ret->protocols))
			explain_protocol(
				a, s->protocols[i], p, &ret->protocols[ret->n_protocols++]);
	explain_step(a, s, prefix, ret);
}

bool apply_weight(const struct apply *a, size_t service, size_t prefix, uint32_t *ret)
{
	const struct apply_prefix *p = explain_prefix(a, service, prefix);

	if (p->sessions_version == 0 || !p->has_weight[0])
		return false;
	*ret = p->weight[0];
	return true;
}

struct monotime apply_explain_retry(const struct apply *a)
{
	return a->command.client ? MONOTIME_NEVER : a->command.retry;
}

bool apply_explain_session(const struct apply *a, size_t index, struct apply_explained_session *ret)
{
	if (index >= a->n_sessions || a->status.link != APPLY_LINK_UP)
		return false;
	*ret = (struct apply_explained_session){a->sessions[index].name, a->sessions[index].up};
	return true;
}

enum apply_export apply_explain_export(
	const struct apply *a, size_t service, size_t prefix, size_t session)
{
	const struct apply_prefix *p = explain_prefix(a, service, prefix);

	if (session >= APPLY_NAMED_MAX || p->sessions_version == 0 ||
		p->sessions_version != a->sessions_version)
		return APPLY_EXPORT_UNKNOWN;
	if (p->exported_to & 1ULL << session)
		return APPLY_EXPORT_YES;
	return p->carried_by & 1ULL << session ? APPLY_EXPORT_NO : APPLY_EXPORT_NO_FAMILY;
}

const char *apply_explain_other(
	const struct apply *a, size_t service, size_t prefix, size_t *index, bool *ret_best)
{
	const struct apply_prefix *p = explain_prefix(a, service, prefix);

	for (; p->sessions_version != 0 && *index < a->n_others; ++*index) {
		uint64_t bit = 1ULL << *index;

		if (!(p->others & bit))
			continue;
		*ret_best = p->others_best & bit;
		return a->others[(*index)++];
	}
	return NULL;
}

bool apply_explain_more_others(const struct apply *a, size_t service, size_t prefix)
{
	const struct apply_prefix *p = explain_prefix(a, service, prefix);

	return p->sessions_version != 0 && p->more_others;
}

enum apply_known apply_route_from(
	const struct apply *a, size_t service, size_t prefix, const struct address *next_hop)
{
	const struct apply_prefix *p = explain_prefix(a, service, prefix);

	if (p->sessions_version == 0)
		return APPLY_UNKNOWN;
	for (size_t i = 0; i < a->n_next_hops; i++)
		if ((p->next_hops & 1ULL << i) && address_equal(&a->next_hops[i], next_hop))
			return APPLY_YES;
	return p->more_next_hops ? APPLY_UNKNOWN : APPLY_NO;
}

size_t apply_next_hops(const struct apply *a, const struct address **ret)
{
	*ret = a->next_hops;
	return a->n_next_hops;
}
