/*
 * The rules, in the order and with the numbers that the header, the manual and the log use. Each is
 * one `if` with its verdict: who asks "why is this prefix out" reads from the top to the first line
 * that is true. A rule knows nothing of what was wanted before; time and waiting are the engine's.
 */
#include "agent/core/prefix.h"

#include <assert.h>
#include <stdlib.h>

static struct prefix_verdict verdict(enum prefix_wanted wanted, enum prefix_reason reason)
{
	return (struct prefix_verdict){.wanted = wanted, .reason = reason};
}

/* Rules 3 to 7: what a freeze holds back. */
static struct prefix_verdict prefix_decide_soft(const struct prefix_facts *facts)
{
	/* 3. Decided, even when some checks have not spoken. */
	if (facts->health == SERVICE_HEALTH_UNHEALTHY)
		return verdict(PREFIX_WANTED_WITHDRAW, PREFIX_REASON_UNHEALTHY);

	/* 4. Not everything is known: no reason to change what BIRD does. */
	if (!facts->all_spoken)
		return verdict(facts->found, PREFIX_REASON_FIRST_ROUND);

	/* 7. When every check has spoken, health is decided. */
	assert(facts->health == SERVICE_HEALTH_HEALTHY);
	return verdict(PREFIX_WANTED_ANNOUNCE, PREFIX_REASON_HEALTHY);
}

struct prefix_verdict prefix_decide_alone(const struct prefix_facts *facts)
{
	struct prefix_verdict soft;

	/* 2. This host would refuse or forward the packets, however healthy the service is. */
	if (facts->address == PREFIX_ADDRESS_MISSING)
		return verdict(PREFIX_WANTED_WITHDRAW, PREFIX_REASON_ADDRESS_MISSING);

	/* 1. The operator's word about everything. Nobody is wrong about a process that is dead. */
	soft = prefix_decide_soft(facts);
	if (facts->frozen && !facts->dead && soft.wanted != facts->held)
		return verdict(facts->held, PREFIX_REASON_FROZEN);
	return soft;
}

struct prefix_verdict prefix_decide(const struct prefix_facts *facts)
{
	/* 0. The agent is leaving, and nobody would notice a death after that. */
	if (facts->stopping)
		return verdict(PREFIX_WANTED_WITHDRAW, PREFIX_REASON_STOPPING);

	/* 1. The operator's word about this prefix. */
	if (facts->word == PREFIX_WORD_DRAINED)
		return verdict(PREFIX_WANTED_WITHDRAW, PREFIX_REASON_DRAINED);
	if (facts->word == PREFIX_WORD_FORCED)
		return verdict(PREFIX_WANTED_ANNOUNCE, PREFIX_REASON_FORCED);

	return prefix_decide_alone(facts);
}

const char *prefix_wanted_name(enum prefix_wanted wanted)
{
	switch (wanted) {
	case PREFIX_WANTED_WITHDRAW:
		return "withdraw";
	case PREFIX_WANTED_DEMOTE:
		return "demote";
	case PREFIX_WANTED_ANNOUNCE:
		return "announce";
	}
	abort();
}

const char *prefix_reason_name(enum prefix_reason reason)
{
	switch (reason) {
	case PREFIX_REASON_STOPPING:
		return "stopping";
	case PREFIX_REASON_DRAINED:
		return "drained";
	case PREFIX_REASON_FORCED:
		return "forced";
	case PREFIX_REASON_FROZEN:
		return "frozen";
	case PREFIX_REASON_ADDRESS_MISSING:
		return "address_missing";
	case PREFIX_REASON_UNHEALTHY:
		return "unhealthy";
	case PREFIX_REASON_FIRST_ROUND:
		return "first_round";
	case PREFIX_REASON_HEALTHY:
		return "healthy";
	}
	abort();
}

unsigned prefix_reason_rule(enum prefix_reason reason)
{
	switch (reason) {
	case PREFIX_REASON_STOPPING:
		return 0;
	case PREFIX_REASON_DRAINED:
	case PREFIX_REASON_FORCED:
	case PREFIX_REASON_FROZEN:
		return 1;
	case PREFIX_REASON_ADDRESS_MISSING:
		return 2;
	case PREFIX_REASON_UNHEALTHY:
		return 3;
	case PREFIX_REASON_FIRST_ROUND:
		return 4;
	case PREFIX_REASON_HEALTHY:
		return 7;
	}
	abort();
}
