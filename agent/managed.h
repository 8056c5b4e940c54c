#ifndef REDSHANK_MANAGED_H
#define REDSHANK_MANAGED_H
/*
 * The addresses that the agent puts on this host and takes away again (`manage_addresses`). When is
 * decided in core/managed.h; here the facts are gathered and the kernel is told.
 *
 * Nothing of it is in front of a withdrawal: managed_touch() arms a timer that comes behind
 * whatever else the loop has to do, and allocates nothing. The announcement waits for the address
 * by itself, by rule 2 of core/prefix.h, as it waits for one that somebody else adds.
 */
#include <systemd/sd-event.h>

#include "agent/bird/apply.h"
#include "agent/config/config.h"
#include "agent/control.h"
#include "agent/core/engine.h"
#include "agent/core/managed.h"
#include "agent/status/managed_view.h"
#include "agent/system/addresses.h"

struct managed;

struct managed_ops {
	/* Addresses have come or gone by our doing: the engine is to hear of it. From the loop. */
	void (*changed)(void *userdata);
	void *userdata;
};

/* All that is passed outlives it; `config` is where the configuration that runs stands, the other
 * pointers are where the modules stand by the time of managed_start(). Heap. 0 or
 * negative errno. */
struct managed_modules {
	const struct config *const *config;
	const struct engine *const *engine;
	const struct apply *const *apply;
	const struct control *const *control;
	struct addresses *const *addresses;
};
int managed_new(struct managed **ret, sd_event *event, const struct managed_modules *modules,
	const struct managed_ops *ops);
void managed_free(struct managed *m); /* NULL is fine */
DEFINE_CLEANUP_PTR(struct managed *, managed_free)

/* Adds what is missing, all of it, before anything is decided. Removes nothing. */
void managed_start(struct managed *m);
/* The engine decides from now on: what is to be removed may be. */
void managed_ready(struct managed *m);
/* Another configuration runs; the old one may be gone when this returns. Without memory it is tried
 * again within a second, and nothing is added or removed until then. */
void managed_configure(struct managed *m);
/* Something has changed that might matter. */
void managed_touch(struct managed *m);
/* The agent is leaving: services go by their on_stop. */
void managed_stop(struct managed *m);
/* Looks at once, and does all that is due. In how many ms to look again: addresses wait for the end
 * of their grace, or for a BIRD that is there to say that they are withdrawn; 0: none does. */
uint64_t managed_leave(struct managed *m);

/* False where the prefix is not managed. */
bool managed_view(const struct managed *m, size_t service, size_t prefix, struct managed_view *ret);
const struct managed_counts *managed_counts(const struct managed *m);

#endif
