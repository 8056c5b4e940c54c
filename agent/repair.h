#ifndef REDSHANK_AGENT_REPAIR_H
#define REDSHANK_AGENT_REPAIR_H
/*
 * Restarts the units of services whose checks are down, as their `restart` says. When, and when
 * not, is decided in core/repair.h; here systemd is asked and told, over the connection of
 * system/units.h. Nothing waits for it, and it comes behind the withdrawal: repairs_look() is
 * called when BIRD has been told.
 */
#include <systemd/sd-event.h>

#include "agent/config/config.h"
#include "agent/core/engine.h"
#include "agent/core/repair.h"
#include "agent/system/units.h"

struct repairs;
struct repairs_change;

/* For the services of `config`, whose engine and bus outlive it. Heap. 0 or negative errno. */
int repairs_new(struct repairs **ret, sd_event *event, struct units *units, struct engine *engine,
	const struct config *config);
void repairs_free(struct repairs *r);

/* A reload in two steps: what can fail, then what cannot. A service whose `restart` is as before
 * goes on with what is under way; where it is another, the attempts count on. 0 or -ENOMEM. */
int repairs_prepare(
	const struct repairs *r, const struct config *config, struct repairs_change **ret);
void repairs_commit(struct repairs *r, const struct config *config, struct repairs_change *change);
void repairs_change_free(struct repairs_change *change);

/* The engine has decided: looks whether something is to be repaired. Allocates nothing. */
void repairs_look(struct repairs *r);
/* The agent is leaving: nothing is begun any more. */
void repairs_stop(struct repairs *r);

/* An attempt of an earlier life of the agent, the oldest first; nothing where the service has no
 * `restart` of this unit. */
void repairs_remember(
	struct repairs *r, const char *service, const char *unit, struct monotime attempt);

/* False where the service has no `restart`. */
bool repairs_view(const struct repairs *r, size_t service, struct repair_view *ret);

#endif
