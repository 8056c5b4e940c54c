#ifndef REDSHANK_TESTS_FAKE_FACTS_H
#define REDSHANK_TESTS_FAKE_FACTS_H
/*
 * An engine and a BIRD that say what a test of the documents wants: the accessors that the
 * documents read, in the place of the real ones at link time. Everything is zero at first.
 */
#include "agent/bird/apply_explain.h"
#include "agent/core/engine.h"

#define FAKE_MANY 5000

/* A service's prefixes and checks follow those of the service before it by one. */
static struct engine_prefix fake_prefixes[FAKE_MANY + 1];
static struct check fake_checks[4];
static enum service_health fake_health;
/* Of each prefix, or the first one's of all. */
static struct apply_observed fake_observed[FAKE_MANY + 1];
static bool fake_observed_each;
static struct apply_status fake_status;
static struct advise_warning fake_warnings[3];
static size_t n_fake_warnings;
/* "s0", "s1" and so on; the one that is down. */
static size_t n_fake_sessions, fake_session_down = SIZE_MAX;

const struct engine_prefix *engine_prefix(const struct engine *e, size_t service, size_t prefix)
{
	return &fake_prefixes[service + prefix];
}

const struct check *engine_check(const struct engine *e, size_t service, size_t check)
{
	return &fake_checks[check];
}

enum service_health engine_health(const struct engine *e, size_t service)
{
	return fake_health;
}

const struct apply_observed *apply_observed(const struct apply *a, size_t service, size_t prefix)
{
	return &fake_observed[fake_observed_each ? service + prefix : 0];
}

const struct apply_status *apply_status(const struct apply *a)
{
	return &fake_status;
}

size_t apply_warnings(const struct apply *a, const struct advise_warning **ret)
{
	*ret = fake_warnings;
	return n_fake_warnings;
}

bool apply_explain_session(const struct apply *a, size_t index, struct apply_explained_session *ret)
{
	static char name[32];

	if (index >= n_fake_sessions)
		return false;
	(void)snprintf(name, sizeof(name), "s%zu", index);
	*ret = (struct apply_explained_session){.name = name, .up = index != fake_session_down};
	return true;
}

#endif
