#ifndef REDSHANK_CONFIG_LOAD_H
#define REDSHANK_CONFIG_LOAD_H
/* The load as it goes through its parts. For config/ and the fuzz target. */
#include "agent/config/config.h"
#include "agent/config/index.h"
#include "agent/config/report.h"
#include "agent/config/sources.h"

struct load {
	struct report report;
	const struct probe_type *const *types;
	struct config *config; /* being filled */
	struct index prefixes; /* of all services */
	size_t n_checks;       /* of all services */
};

/* As config_load(), of what was read already. */
int load_sources(const struct sources *sources, const struct probe_type *const *types,
	struct config **ret, struct problems *problems);

/* The key of a service, check, hook or signal as its name: heap, owned by *ret's struct. What is no
 * name, or no memory for it, is in the report. */
void load_name(struct load *l, const struct path *path, char **ret);

/* Each fills its part of load->config; what is wrong is in the report. */
void services_load(struct load *l, json_t *services); /* services.c */
void weights_load(struct load *l, json_t *weights);   /* weights.c; after services */
void manners_load(struct load *l, const struct path *service, json_t *object,
	struct config_service *ret);			     /* manners.c */
void manners_check_floors(struct load *l, json_t *services); /* manners.c; after neighbours */
void neighbours_load(struct load *l, json_t *neighbours);    /* neighbours.c; after node */
void shed_load(struct load *l, json_t *shed);		     /* shed.c; after neighbours */
void signals_load(struct load *l, json_t *load);	     /* signals.c; after services */
void checks_load(struct load *l, const struct path *path, json_t *checks,
	struct config_service *service); /* checks.c */
void prefixes_load(struct load *l, const struct path *path, json_t *prefixes,
	struct config_service *service); /* prefixes.c */
/* After the prefixes. */
void managed_load(struct load *l, const struct path *service, json_t *object,
	struct config_service *ret); /* managed.c */
void hooks_load(struct load *l, const struct path *path, json_t *hooks,
	struct config_service *service); /* hooks.c */

/*
 * interval, fast_interval, timeout, rise, fall. What the object itself says must fit; a
 * fast_interval or timeout that it takes over from `inherit` (NULL: the built-in defaults) is cut
 * to the interval instead, so that one who shortens the interval need not know the others.
 */
void timing_load(struct load *l, const struct path *path, json_t *object,
	const struct config_timing *inherit, struct config_timing *ret); /* timing.c */

/* The parts of a service as JSON; NULL without memory. */
json_t *hooks_print(const struct config_service *service);  /* hooks.c */
json_t *checks_print(const struct config_check *check);	    /* checks.c */
json_t *prefixes_print(const struct config_prefix *prefix); /* prefixes.c */
/* Into the printed service. False without memory. */
bool manners_print(const struct config_service *s, json_t *object); /* manners.c */
bool managed_print(const struct config_service *s, json_t *object); /* managed.c */
void manners_done(struct config_service *s);

json_t *signals_print(const struct config_load *load); /* signals.c */

void signals_release(struct config_load *load); /* NULL is fine */
/* Releases what hooks_load() made. */
void hooks_release(struct config_service *service);

#endif
