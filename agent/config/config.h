#ifndef REDSHANK_CONFIG_CONFIG_H
#define REDSHANK_CONFIG_CONFIG_H
/*
 * The configuration: one immutable typed object, built aside from JSON, swapped whole, freed last.
 * Nothing outside config/ sees JSON. Files: FILE, then conf.d/ *.json beside it in name order.
 *
 * Problems are collected, not thrown: a person sees all of them in one run. See problems.h.
 */
#include "agent/base/address.h"
#include "agent/config/problems.h"
#include "agent/config/schema.h"
#include "agent/core/shed.h"
#include "probes/probe.h"

enum config_control {
	CONFIG_CONTROL_SOCKET,
	CONFIG_CONTROL_BIRDC,
};

enum config_on_stop {
	CONFIG_ON_STOP_WITHDRAW,
	CONFIG_ON_STOP_KEEP,
};

enum config_on_failure {
	CONFIG_ON_FAILURE_KEEP,
	CONFIG_ON_FAILURE_WITHDRAW,
};

enum config_require {
	CONFIG_REQUIRE_ALL,
	CONFIG_REQUIRE_ANY,
	CONFIG_REQUIRE_NUMBER,
};

/* When a check runs and how it is judged; `defaults` holds what the checks do not say. */
struct config_timing {
	uint64_t interval_ms, fast_interval_ms, timeout_ms;
	int64_t rise, fall;
	int64_t first_rise; /* 0: as rise */
	bool shared;	    /* of a check alone; not in `defaults` */
};

/* The rest of `defaults`. */
struct config_start {
	uint64_t spread_ms; /* of the first announcements after a start that found nothing */
};

struct config_bird {
	char *socket;			/* /run/bird/bird.ctl */
	char *fragments;		/* /run/redshank/bird */
	int control;			/* enum config_control */
	struct schema_strings sessions; /* patterns as fnmatch(3) reads them; default "*" */
};

struct config_status {
	char *socket; /* /run/redshank/status.sock */
	char *group;  /* redshank; NULL: root alone may change things */
	char *listen; /* "ADDRESS:PORT" of the read-only listener, or NULL */
};

struct config_community {
	uint32_t part[3]; /* a community uses the first two, each at most 65,535 */
};

struct config_prefix {
	struct prefix prefix;
	uint32_t weight;	    /* effective: an operator's, else configured_weight */
	bool weight_of_word;	    /* it is an operator's */
	uint32_t announced_weight;  /* what the engine announces it with now: on the way to `weight`
				     */
	bool graceful;		    /* and with GRACEFUL_SHUTDOWN, since it is about to leave */
	uint32_t configured_weight; /* the node's row in `weights`, else own_weight */
	uint32_t own_weight;	    /* the service's own */
	bool weight_is_of_node;	    /* `configured_weight` comes from the row */
	uint32_t prepend;	    /* 0 to 10 */
	struct config_community *communities;
	size_t n_communities;
	struct config_community *large_communities;
	size_t n_large_communities;
	bool last_resort;
	bool address_check;
};

struct config_check {
	char *name;
	const struct probe_type *type;
	uint64_t interval_ms, fast_interval_ms, timeout_ms;
	unsigned rise, fall;
	unsigned first_rise; /* 0: as rise */
	bool shared;
	void *settings; /* the type's own struct, by its schema */
	char *identity; /* canonical text of type, timing and settings, not of the name: checks of
			   equal text do the same thing */
};

struct config_restart {
	char *unit;
	struct schema_strings checks; /* names of those that trigger, at least one */
	uint64_t delay_ms;
	int64_t limit;
	uint64_t per_ms;
};

/* A command that is run when something changes. */
struct config_hook {
	char *name;
	struct schema_strings command;
	struct schema_strings on; /* of the words in tables_hook_events */
	uint64_t timeout_ms;
};

struct config_slow_start {
	int64_t from, steps;
	uint64_t for_ms;
};

struct config_hold_down {
	int64_t penalty, suppress, reuse;
	uint64_t half_life_ms, max_ms;
};

struct config_leave {
	uint64_t graceful_ms;
	int64_t weight;
};

struct config_service {
	char *name;
	struct config_prefix *prefixes; /* in the order of the file */
	size_t n_prefixes;
	enum config_require require;
	unsigned require_number; /* with CONFIG_REQUIRE_NUMBER */
	struct config_check *checks;
	size_t n_checks;
	struct config_restart *restart; /* or NULL, as the three below */
	struct config_slow_start *slow_start;
	struct config_hold_down *hold_down;
	struct config_leave *leave;
	int64_t floor; /* unhealthy, a prefix leaves only with so many neighbours' permits; 0: it
			  does */
	struct config_hook *hooks; /* in the order of the files */
	size_t n_hooks;
	int on_stop;		 /* enum config_on_stop */
	int on_failure;		 /* enum config_on_failure */
	bool address_check;	 /* the default of its prefixes */
	char *managed_interface; /* manage_addresses: where its addresses are put; NULL: nowhere */
};

struct config_weight {
	struct prefix prefix;
	uint32_t weight;
};

/* Who the neighbours are, and how agents speak with each other (agent/neighbour/). */
struct config_neighbours {
	char *listen; /* "ADDRESS:PORT" */
	char *site;
	bool plain;		       /* HTTP without TLS: loopback alone */
	char *certificate, *key, *ca;  /* PEM files; NULL with plain */
	struct schema_strings members; /* name, "ADDRESS:PORT", name, ...; may hold this node */
	char *file;		       /* of more members, watched; or NULL */
	uint64_t stale_after_ms;       /* a report older than this says nothing */
	uint64_t forget_after_ms;      /* a neighbour silent for this long announces nothing */
};

/* How this server sheds and receives (agent/core/shed.h); per cent. */
struct config_shed {
	bool enabled, receive;
	int mode; /* enum shed_mode */
	int64_t hot, accept, target, release, margin, most;
	uint64_t over_ms, settle_ms, under_ms, back_off_ms, leave_alone_ms;
};

enum config_signal_type {
	CONFIG_SIGNAL_CPU,
	CONFIG_SIGNAL_PRESSURE,
	CONFIG_SIGNAL_INTERFACE,
	CONFIG_SIGNAL_SOFTNET,
	CONFIG_SIGNAL_LISTEN,
	CONFIG_SIGNAL_CONNTRACK,
	CONFIG_SIGNAL_FILE,
	CONFIG_SIGNAL_COMMAND,
	CONFIG_SIGNAL_URL,
};

enum config_resource {
	CONFIG_RESOURCE_CPU,
	CONFIG_RESOURCE_MEMORY,
	CONFIG_RESOURCE_IO,
};

enum config_format {
	CONFIG_FORMAT_TEXT,
	CONFIG_FORMAT_JSON,
	CONFIG_FORMAT_PROMETHEUS,
};

/* Where the text comes from that numbers stand in: one of the first three is there. */
struct config_source {
	char *file;
	struct schema_strings command;
	char *url;
	char *unix_socket; /* for the url; or NULL */
	int format;	   /* enum config_format */
	uint64_t timeout_ms;
	bool rate; /* the numbers are counters: what counts is how fast they grow */
};

/* One measure of how busy this server is. */
struct config_signal {
	char *name;
	int type; /* enum config_signal_type */
	int64_t limit;
	int resource;		     /* enum config_resource, of PRESSURE */
	char *interface;	     /* of INTERFACE */
	int64_t speed;		     /* Mbit/s, of INTERFACE; 0: what the kernel says */
	struct config_source source; /* of FILE, COMMAND, URL */
	char *key;		     /* where in the text; NULL: it is the number */
	char *identity;		     /* canonical text of all but the name */
};

enum config_counting_type {
	CONFIG_COUNTING_NFTABLES,
	CONFIG_COUNTING_FILE,
	CONFIG_COUNTING_COMMAND,
	CONFIG_COUNTING_URL,
};

enum config_count {
	CONFIG_COUNT_PACKETS,
	CONFIG_COUNT_BYTES,
	CONFIG_COUNT_CONNECTIONS,
};

/* How the load of each prefix is known. */
struct config_counting {
	int type;		     /* enum config_counting_type */
	int count;		     /* enum config_count, of NFTABLES */
	struct config_source source; /* of the others */
	struct schema_strings keys;  /* PREFIX, key, PREFIX, key, ... */
};

/* How this server's load is measured (agent/load/). */
struct config_load {
	int64_t capacity; /* in a unit that is the same at the whole site */
	uint64_t interval_ms;
	struct config_signal *signals;
	size_t n_signals;		  /* at least 1 */
	struct config_counting *prefixes; /* NULL: not known */
	char *prefixes_identity;	  /* canonical text of it; NULL with it */
};

/* One row of `weights`: what a node gives its prefixes. All nodes' rows are kept. */
struct config_weights {
	char *node;
	struct config_weight *items;
	size_t n;
};

struct config {
	char *node;
	struct config_bird bird;
	struct config_status status;
	uint64_t stop_grace_ms; /* from settled withdrawals to the agent's end */
	char *state;		/* /var/lib/redshank/state.json */
	int64_t reload_guard;	/* percent */
	struct config_timing defaults;
	struct config_start start;
	struct config_service *services; /* in the order of the files */
	size_t n_services;
	struct config_weights *weights;
	size_t n_weights;
	struct config_neighbours *neighbours; /* NULL: none */
	struct config_shed *shed;	      /* NULL: nothing is shed; room is promised */
	struct config_load *load;	      /* NULL: not measured */
};

/* Of one configuration, all services together. */
#define CONFIG_SERVICES_MAX 4096
#define CONFIG_PREFIXES_MAX 10000
#define CONFIG_CHECKS_MAX 4096
#define CONFIG_HOOKS_MAX 16	  /* of one service */
#define CONFIG_COMMUNITIES_MAX 64 /* of one prefix, of either kind */
#define CONFIG_WEIGHTS_MAX 100000 /* of all nodes */
#define CONFIG_SIGNALS_MAX 16
#define CONFIG_MEMBERS_MAX 256 /* neighbours, of the configuration and of its file together */

/*
 * Reads FILE and conf.d, merges, checks. On success *ret is owned by the caller and `problems`
 * holds at most warnings. -EINVAL when there are errors in `problems`; -ENOMEM. `types` is the
 * NULL-terminated list of the kinds of check (probes/types.c: probe_types).
 */
int config_load(const char *path, const struct probe_type *const *types, struct config **ret,
	struct problems *problems);
void config_free(struct config *c);
DEFINE_CLEANUP_PTR(struct config *, config_free)
#define _cleanup_config_ _cleanup_(config_freep)

/* Of all services. */
size_t config_count_prefixes(const struct config *config);

/* The section `shed`, and what of `neighbours` belongs to it, as core/shed has it. */
struct shed_settings config_shed_settings(const struct config *config);

/*
 * The effective configuration as JSON with every default filled in and a final newline; fed back it
 * prints the same bytes. Heap, owned by the caller; NULL when there is no memory.
 */
char *config_effective(const struct config *c);

#endif
