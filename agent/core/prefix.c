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

/* What is announced, and others are to be used before it. */
static enum prefix_wanted demoted(const struct prefix_facts *facts)
{
	return facts->last_resort ? PREFIX_WANTED_DEMOTE : PREFIX_WANTED_ANNOUNCE;
}

/* The same of what is to stay though it should go: never more than it is. */
static enum prefix_wanted kept(const struct prefix_facts *facts, enum prefix_wanted is)
{
	return is < demoted(facts) ? is : demoted(facts);
}

/* What the prefix is for rules 3 to 7, which must come to the same when they are asked again: an
 * operator's `forced` does not make it announced for them, `drained` makes it withdrawn; a freeze
 * holds what it was. */
static enum prefix_wanted present(const struct prefix_facts *facts)
{
	return facts->frozen || facts->held < facts->now ? facts->held : facts->now;
}

/* 3. Decided, even when some checks have not spoken. A floor keeps what is announced now. */
static struct prefix_verdict prefix_decide_unhealthy(const struct prefix_facts *facts)
{
	if (!facts->floored || facts->cause == SERVICE_CAUSE_DEATH ||
		present(facts) == PREFIX_WANTED_WITHDRAW)
		return verdict(PREFIX_WANTED_WITHDRAW, PREFIX_REASON_UNHEALTHY);
	return verdict(kept(facts, present(facts)), PREFIX_REASON_KEPT_BY_FLOOR);
}

/* Rules 3 to 7: what a freeze holds back. */
static struct prefix_verdict prefix_decide_soft(const struct prefix_facts *facts)
{
	if (facts->cause >= SERVICE_CAUSE_CHECKS)
		return prefix_decide_unhealthy(facts);

	/* 4. Not everything is known: no reason to change what BIRD does. What is shed goes by what
	 * neighbours have promised. */
	if ((!facts->all_spoken || facts->spread) && facts->shed == PREFIX_SHED_NONE)
		return verdict(facts->found, PREFIX_REASON_FIRST_ROUND);

	/* 5. It keeps out what is out, and takes nothing out. What is shed is out for that. */
	if (facts->held_down && present(facts) == PREFIX_WANTED_WITHDRAW &&
		facts->shed != PREFIX_SHED_WITHDRAW)
		return verdict(PREFIX_WANTED_WITHDRAW, PREFIX_REASON_HELD_DOWN);

	/* 6. */
	if (facts->shed != PREFIX_SHED_NONE)
		return verdict(facts->shed == PREFIX_SHED_DEMOTE ? PREFIX_WANTED_DEMOTE
								 : PREFIX_WANTED_WITHDRAW,
			PREFIX_REASON_SHED);

	/* 7. What is out does not come back into a service that may be about to fall. */
	if (facts->doubted && present(facts) != PREFIX_WANTED_ANNOUNCE)
		return verdict(present(facts), PREFIX_REASON_IN_DOUBT);

	/* When every check has spoken, health is decided. If all servers went for what they
	 * share, nobody would be left. */
	if (facts->cause == SERVICE_CAUSE_SHARED)
		return verdict(demoted(facts), PREFIX_REASON_SHARED_UNHEALTHY);
	assert(facts->health == SERVICE_HEALTH_HEALTHY);
	return verdict(PREFIX_WANTED_ANNOUNCE,
		facts->ramps ? PREFIX_REASON_RAMPING : PREFIX_REASON_HEALTHY);
}

struct prefix_verdict prefix_decide_alone(const struct prefix_facts *facts)
{
	struct prefix_verdict soft;

	/* 2. This host would refuse or forward the packets, however healthy the service is. */
	if (facts->address == PREFIX_ADDRESS_MISSING)
		return verdict(PREFIX_WANTED_WITHDRAW, PREFIX_REASON_ADDRESS_MISSING);

	/* 1. The operator's word about everything. Nobody is wrong about a process that is dead,
	 * and what neighbours have promised does not last because somebody froze this server. */
	soft = prefix_decide_soft(facts);
	if (soft.reason == PREFIX_REASON_SHED)
		return soft;
	if (facts->frozen && facts->cause != SERVICE_CAUSE_DEATH && soft.wanted != facts->held)
		return verdict(facts->held, PREFIX_REASON_FROZEN);
	return soft;
}

/* Gone, or for a while still there for those who have nobody else: RFC 8326. Not where it would be
 * gone anyhow. */
static struct prefix_verdict prefix_leave(
	const struct prefix_facts *facts, enum prefix_reason reason)
{
	if (!facts->lingers || facts->cause >= SERVICE_CAUSE_CHECKS ||
		prefix_decide_alone(facts).wanted == PREFIX_WANTED_WITHDRAW)
		return verdict(PREFIX_WANTED_WITHDRAW, reason);
	return verdict(kept(facts, facts->now), reason);
}

struct prefix_verdict prefix_decide(const struct prefix_facts *facts)
{
	/* 0. The agent is leaving, and nobody would notice a death after that. */
	if (facts->stopping)
		return prefix_leave(facts, PREFIX_REASON_STOPPING);

	/* 1. The operator's word about this prefix. */
	if (facts->word == PREFIX_WORD_DRAINED)
		return prefix_leave(facts, PREFIX_REASON_DRAINED);
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
	case PREFIX_REASON_KEPT_BY_FLOOR:
		return "kept_by_floor";
	case PREFIX_REASON_FIRST_ROUND:
		return "first_round";
	case PREFIX_REASON_HELD_DOWN:
		return "held_down";
	case PREFIX_REASON_SHED:
		return "shed";
	case PREFIX_REASON_IN_DOUBT:
		return "in_doubt";
	case PREFIX_REASON_SHARED_UNHEALTHY:
		return "shared_unhealthy";
	case PREFIX_REASON_RAMPING:
		return "ramping";
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
	case PREFIX_REASON_KEPT_BY_FLOOR:
		return 3;
	case PREFIX_REASON_FIRST_ROUND:
		return 4;
	case PREFIX_REASON_HELD_DOWN:
		return 5;
	case PREFIX_REASON_SHED:
		return 6;
	case PREFIX_REASON_IN_DOUBT:
	case PREFIX_REASON_SHARED_UNHEALTHY:
	case PREFIX_REASON_RAMPING:
	case PREFIX_REASON_HEALTHY:
		return 7;
	}
	abort();
}
