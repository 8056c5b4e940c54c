#ifndef REDSHANK_TESTS_SIM_H
#define REDSHANK_TESTS_SIM_H
/*
 * Sites in virtual time: servers with loads, routers, a network that delays, loses and cuts, and on
 * each server the agent's own shed decision (agent/core/shed*.c) or, for comparison, one of the
 * naive rules. Nothing here is the agent's; it only tells it facts and does what it says.
 *
 * One run is a struct sim_world from a struct sim_params; the same parameters give the same run.
 * Loads are doubles (units of capacity, a server has 100); the agent is told thousandths.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/core/shed.h"

#define SIM_PREFIXES_MAX 64
#define SIM_SECOND 1000000ll

enum sim_rule {
	SIM_RULE_NONE,	 /* no shedding */
	SIM_RULE_ALONE,	 /* each server withdraws above a threshold */
	SIM_RULE_REPORT, /* acts on neighbours' reports */
	SIM_RULE_RANK,	 /* reports, and only the highest-ranked may act */
	SIM_RULE_GRANT,	 /* the agent's own */
};
#define SIM_RULES (SIM_RULE_GRANT + 1)

struct sim_world;

struct sim_params {
	uint64_t seed;
	enum sim_rule rule;
	size_t n_servers;  /* in all */
	size_t site;	   /* servers that share prefixes and are neighbours */
	size_t n_prefixes; /* of a site */
	unsigned floor;
	double total;	/* load, of the capacity of all */
	double noise;	/* how unevenly routers spread a prefix, 0.1: by up to 10 % */
	double loss;	/* of messages, each way */
	double delay_s; /* of messages, each way, the mean of an exponential */
	double chaos_s; /* mean time between faults of the whole; 0: none */
	double duration_s;
	double step_s;	  /* of loads and of what is measured of the run */
	bool tiers;	  /* a third of the servers announces a prefix at a worse weight */
	bool random_load; /* the agents are told loads that jump between hot and cool */
	bool trace;	  /* prints what each server says of itself when that changes */
	bool health;	  /* services of some servers fail and recover */
	enum shed_mode mode;
	struct shed_settings settings;
	/* Changes the world before each step; NULL: nothing does. */
	void (*events)(struct sim_world *w, double t);
};

struct sim_outcome {
	uint64_t n_sheds, n_restores, n_forced; /* forced: for lack of promises or announcers */
	double hot_s;				/* servers x seconds above 90 % */
	double pushed_s;			/* of those above 87 % that nothing was done to */
	double below_s; /* prefixes x seconds below the floor because of somebody's shed */
	double dark_s;	/* prefixes x seconds without any announcer though a server lives */
	double back_s;	/* the longest that a shed outlived its promises */
	double worst;	/* utilisation */
	uint64_t n_late_changes; /* in the second half */
	uint64_t n_messages, n_leaves;
	uint64_t n_broken; /* of the invariants that are asserted on every decision */
	char broken[200];
};

struct sim_message {
	enum {
		SIM_MSG_ASK_REPORT,
		SIM_MSG_REPORT,
		SIM_MSG_POST,
		SIM_MSG_ANSWER,
		SIM_MSG_DELETE
	} kind;
	size_t from, to; /* servers */
	uint64_t boot;	 /* of who sends */
	struct shed_call call;
	struct shed_answer answer;
	struct monotime asked; /* by the asker's clock */
	struct shed_report report;
	struct shed_report_prefix *prefixes; /* heap, owned */
};

enum sim_event_kind { SIM_EVENT_TICK, SIM_EVENT_POLL, SIM_EVENT_MESSAGE, SIM_EVENT_ROUTE };

struct sim_event {
	int64_t at_us;
	uint64_t serial; /* equal times: as they were made */
	enum sim_event_kind kind;
	size_t server, prefix;
	bool on;
	uint64_t route_serial;
	struct sim_message *message; /* owned */
};

struct sim_server {
	struct shed *shed;
	uint64_t boot;
	bool was_dead;
	int64_t frozen_until, dead_until; /* dead: the server and its routes */
	int64_t tick_at, ran_at;	  /* of its agent: when it runs next, and ran last */
	int64_t died_at;
	double skew;
	int64_t offset_us;
	int64_t cut_to_until, cut_from_until; /* one-way cuts */
	double capacity, capacity0, background;
	double load;		/* as it really is */
	double told;		/* as measured, smoothed */
	bool measured, touched; /* touched: something was done to it on purpose */
	double fake;		/* with random_load: the load that the agent is told, as a part */
	double *prefix_told;	/* n_prefixes */
	double *carried;
	double *spread; /* how much of a prefix the router likes to give it */
	bool *out;	/* what its agent decided */
	bool *route;	/* what the router has */
	uint64_t *route_serial;
	bool *sick, *left; /* health: its service fails; it has left with permits */
	/* the naive rules */
	int64_t over_since, under_since, last_change, *out_since;
	int64_t top_since;
	bool is_over, is_under, is_top;
	double *out_load;
	uint32_t *out_order, order;
	uint32_t want;
	enum shed_why why; /* as traced */
	int64_t changed_at[64];
	unsigned n_changed;
};

struct sim_world {
	struct sim_params params;
	uint64_t random;
	int64_t now_us;
	size_t n, n_prefixes_all;
	struct sim_server *servers;
	double *demand; /* of each prefix of each site */
	double factor;	/* of all demand, now */
	double *prefix_factor;
	struct sim_event *heap;
	size_t n_heap, size_heap;
	uint64_t serial;
	struct sim_outcome outcome;
	struct sim_plot *plot; /* NULL: not watched */
};

/* world.c */
void sim_params_default(struct sim_params *ret);
struct sim_outcome sim_run(const struct sim_params *params, struct sim_plot *plot);
uint64_t sim_random(struct sim_world *w);
double sim_uniform(struct sim_world *w, double low, double high);
bool sim_is_alive(const struct sim_world *w, size_t server);
struct monotime sim_clock(const struct sim_world *w, const struct sim_server *s);
size_t sim_site_first(const struct sim_world *w, size_t server);
/* The agent of this server decided to take a prefix out, or to bring it back. */
void sim_change(struct sim_world *w, size_t server, size_t prefix, bool out, bool forced);
void sim_schedule(struct sim_world *w, struct sim_event event);
bool sim_announces(const struct sim_world *w, size_t server, size_t prefix);

/* network.c */
void sim_poll(struct sim_world *w, size_t server);
void sim_deliver(struct sim_world *w, struct sim_message *m);
void sim_message_free(struct sim_message *m);
void sim_send_calls(struct sim_world *w, size_t server);

/* agent.c: the agent's own decision; rules.c: the naive ones */
void sim_agent_start(struct sim_world *w, size_t server);
void sim_agent_facts(struct sim_world *w, size_t server);
void sim_agent_decide(struct sim_world *w, size_t server);
void sim_rule_decide(struct sim_world *w, size_t server);

/* measure.c: what is held against the run at every step */
void sim_measure(struct sim_world *w, double dt);
void sim_assert_promise(
	struct sim_world *w, size_t server, size_t prefix, uint64_t reserved_before);
void sim_assert_change(struct sim_world *w, size_t server, size_t prefix, bool out, bool forced);

/* plot.c: SVG of utilisation and announcements over time */
struct sim_plot *sim_plot_new(const char *title);
void sim_plot_sample(struct sim_plot *p, const struct sim_world *w);
/* 0 or negative errno. Frees it. */
int sim_plot_write(struct sim_plot *p, const char *path);

/* scenarios.c */
struct sim_scenario {
	const char *name, *what;
	void (*set)(struct sim_params *p);
};
extern const struct sim_scenario sim_scenarios[];
extern const size_t sim_n_scenarios;
const struct sim_scenario *sim_scenario_find(const char *name);
/* Parts per million that the first seeds give to sixteen prefixes (Pareto, exponent 1.6). */
#define SIM_SHARES 6
extern const unsigned sim_shares[SIM_SHARES][16];

#endif
