#ifndef REDSHANK_AGENT_NARRATE_H
#define REDSHANK_AGENT_NARRATE_H
/*
 * Tells the log and the events what the engine decided: one line for each check and each service
 * that changed, and one for all prefixes of a service that changed alike, however many they are:
 *   check dns/process: up -> down (process 812 has died)
 *   service dns: healthy -> unhealthy (check process: ...), withdrawing 192.0.2.53/32
 *   service dns: withdrawing 192.0.2.53/32 (address_missing)
 */
#include "agent/config/config.h"
#include "agent/core/engine.h"
#include "agent/events/events.h"

struct narrate_facts {
	const struct config *config;
	const char *(*check_reason)(void *userdata, size_t service, size_t check);
	void (*count)(void *userdata, const struct engine_transition *t); /* each; or NULL */
	/* Each event that was told, of a check, a service or prefixes; or NULL. */
	void (*told)(void *userdata, size_t service, enum event_kind kind,
		const struct event_fields *fields);
	void *userdata;
};

/* Reads every transition that the engine holds and logs it at info. Without memory it logs less. */
void narrate_transitions(struct engine *engine, const struct narrate_facts *facts);

#endif
