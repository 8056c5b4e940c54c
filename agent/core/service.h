#ifndef REDSHANK_CORE_SERVICE_H
#define REDSHANK_CORE_SERVICE_H
/* A service's health from its checks' states, by `require`. */
#include <stddef.h>

#include "agent/core/check.h"

enum service_require_kind {
	SERVICE_REQUIRE_ALL, /* the default */
	SERVICE_REQUIRE_ANY,
	SERVICE_REQUIRE_NUMBER,
};

struct service_require {
	enum service_require_kind kind;
	unsigned number; /* with SERVICE_REQUIRE_NUMBER, at least 1 */
};

enum service_health {
	SERVICE_HEALTH_UNDECIDED, /* what the pending checks will say decides */
	SERVICE_HEALTH_HEALTHY,
	SERVICE_HEALTH_UNHEALTHY,
};

/*
 * Decided as soon as no pending check can change it: with `all`, one check that is down is enough.
 * A service without checks is healthy. A number above n counts as n.
 */
enum service_health service_judge(
	const struct service_require *require, const struct check *checks, size_t n);

/* What makes a service unhealthy, from what can be borne to what cannot. */
enum service_cause {
	SERVICE_CAUSE_NONE,   /* it is healthy or undecided */
	SERVICE_CAUSE_SHARED, /* checks that are `shared`: it would not be without them */
	SERVICE_CAUSE_CHECKS, /* other checks, whatever the shared ones say */
	SERVICE_CAUSE_DEATH,  /* dead processes alone, whatever all other checks say */
};

enum service_cause service_cause(
	const struct service_require *require, const struct check *checks, size_t n);

/* True when it is healthy only by checks that may be falling: their last outcome was bad. */
bool service_is_doubted(
	const struct service_require *require, const struct check *checks, size_t n);

/* "undecided", "healthy", "unhealthy" */
const char *service_health_name(enum service_health health);

#endif
