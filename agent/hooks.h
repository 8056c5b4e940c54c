#ifndef REDSHANK_AGENT_HOOKS_H
#define REDSHANK_AGENT_HOOKS_H
/*
 * Hooks: commands that are run when a check, a service or its prefixes change, as the services'
 * `hooks` say.
 *
 * hooks_tell() only copies what happened into a queue that is there from the start, so it may stand
 * where the log is written: behind the withdrawal, without memory, without waiting. Commands run
 * from the loop, at the lowest priority: HOOKS_AT_ONCE of all services together, one of each hook,
 * in the order of the events. HOOKS_QUEUED wait; when more come the oldest is dropped and counted.
 */
#include <systemd/sd-event.h>

#include "agent/config/config.h"
#include "agent/events/events.h"

#define HOOKS_AT_ONCE 4
#define HOOKS_QUEUED 64

enum hooks_result {
	HOOKS_DONE,	   /* exit status 0 */
	HOOKS_FAILED,	   /* any other end */
	HOOKS_TIMED_OUT,   /* killed at its `timeout` */
	HOOKS_NOT_STARTED, /* no such program, no memory */
	HOOKS_DROPPED,	   /* the queue was full */
};
#define HOOKS_N_RESULTS 5

struct hooks;

/* `config` is where the current configuration is found at any time. Heap. 0 or negative errno. */
int hooks_new(struct hooks **ret, sd_event *event, const struct config *const *config);
/* Kills what runs. */
void hooks_free(struct hooks *h);

/* Something happened to a service: EVENT_SERVICE, EVENT_PREFIX or EVENT_CHECK, with the fields of
 * the event. */
void hooks_tell(
	struct hooks *h, size_t service, enum event_kind kind, const struct event_fields *fields);

/* By enum hooks_result, since the start. */
const uint64_t *hooks_results(const struct hooks *h);
/* "done", "failed", ...: the word in log and metric. */
const char *hooks_result_name(enum hooks_result result);

#endif
