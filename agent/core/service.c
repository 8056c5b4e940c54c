/*
 * How many checks must be up, and whether those that have not spoken can still make a difference.
 * Counting is all there is to it: `all` and `any` are numbers, too.
 */
#include "agent/core/service.h"

#include <assert.h>
#include <stdlib.h>

static size_t service_needed(const struct service_require *require, size_t n)
{
	size_t needed = 0;

	switch (require->kind) {
	case SERVICE_REQUIRE_ALL:
		needed = n;
		break;
	case SERVICE_REQUIRE_ANY:
		needed = 1;
		break;
	case SERVICE_REQUIRE_NUMBER:
		assert(require->number >= 1);
		needed = require->number;
		break;
	}
	return needed < n ? needed : n;
}

enum service_health service_judge(
	const struct service_require *require, const struct check *checks, size_t n)
{
	size_t needed = service_needed(require, n);
	size_t up = 0, pending = 0;

	for (size_t i = 0; i < n; i++) {
		up += checks[i].state == CHECK_STATE_UP;
		pending += checks[i].state == CHECK_STATE_PENDING;
	}
	if (up >= needed)
		return SERVICE_HEALTH_HEALTHY;
	if (up + pending < needed)
		return SERVICE_HEALTH_UNHEALTHY;
	return SERVICE_HEALTH_UNDECIDED;
}

bool service_is_doubted(const struct service_require *require, const struct check *checks, size_t n)
{
	size_t steady = 0;

	for (size_t i = 0; i < n; i++)
		steady += checks[i].state == CHECK_STATE_UP && !check_is_undecided(&checks[i]);
	return service_judge(require, checks, n) == SERVICE_HEALTH_HEALTHY &&
	       steady < service_needed(require, n);
}

enum service_cause service_cause(
	const struct service_require *require, const struct check *checks, size_t n)
{
	size_t needed = service_needed(require, n);
	/* Not down; not down but for the shared ones; not dead. */
	size_t standing = 0, standing_alone = 0, alive = 0;

	for (size_t i = 0; i < n; i++) {
		bool down = checks[i].state == CHECK_STATE_DOWN;

		standing += !down;
		standing_alone += !down || (checks[i].settings.shared && !checks[i].dead);
		alive += !checks[i].dead;
	}
	if (alive < needed)
		return SERVICE_CAUSE_DEATH;
	if (standing_alone < needed)
		return SERVICE_CAUSE_CHECKS;
	return standing < needed ? SERVICE_CAUSE_SHARED : SERVICE_CAUSE_NONE;
}

const char *service_health_name(enum service_health health)
{
	switch (health) {
	case SERVICE_HEALTH_UNDECIDED:
		return "undecided";
	case SERVICE_HEALTH_HEALTHY:
		return "healthy";
	case SERVICE_HEALTH_UNHEALTHY:
		return "unhealthy";
	}
	abort();
}
