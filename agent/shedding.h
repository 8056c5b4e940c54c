#ifndef REDSHANK_AGENT_SHEDDING_H
#define REDSHANK_AGENT_SHEDDING_H
/*
 * Between core/shed, which decides, and those who know and act: the neighbours (neighbour/), the
 * load of this server (load/), the engine and BIRD (by ops). Owns the core's state and the
 * neighbours; carries facts and decides nothing. Nothing here is on the way of a withdrawal: facts
 * are read when the core is asked, at the loop's lowest priority.
 *
 * Prefixes are named by their place in the configuration that runs.
 */
#include <systemd/sd-event.h>

#include "agent/bird/apply.h"
#include "agent/config/config.h"
#include "agent/core/shed.h"
#include "agent/neighbour/neighbour.h"

struct shedding;

/* What the agent knows of one prefix when it is asked. */
struct shedding_prefix {
	struct shed_prefix_facts facts; /* but `counted` and `load` */
	bool asks_permit;		/* unhealthy, and it would leave with permits */
	enum shed_word word;		/* the operator's */
	uint32_t weight;
};

struct shedding_ops {
	void (*prefix)(void *userdata, size_t service, size_t prefix, struct shedding_prefix *ret);
	/* This server's load, and the signals that it is made of (as many as fit). */
	void (*own)(void *userdata, struct shed_own *ret, struct message_report *report);
	/* The load of one prefix, in the unit of shed_own; false: not known. */
	bool (*load)(void *userdata, size_t service, size_t prefix, uint64_t *ret);
	/* BIRD: the next hops of others' routes for our prefixes; does that one announce this
	 * prefix; and the prefix is to be read again. */
	size_t (*next_hops)(void *userdata, const struct address **ret);
	enum apply_known (*route)(
		void *userdata, size_t service, size_t prefix, const struct address *next_hop);
	void (*look)(void *userdata, size_t service, size_t prefix);
	/* A prefix is out, or back: the engine is to hear of it, and to decide. */
	void (*changed)(void *userdata);
	/* The prefix may leave unhealthy. Before `changed`. */
	void (*permit)(void *userdata, size_t service, size_t prefix);
	/* A neighbour asked for a promise that it did not have. */
	void (*grant)(void *userdata, const char *neighbour, const struct prefix *prefix,
		const struct shed_request *request, const struct shed_answer *answer);
	void *userdata;
};

/* `config` points to the pointer of the configuration that runs. Without `neighbours` in it, the
 * result does nothing until a restart. Heap. 0; or negative errno with the text. */
int shedding_new(struct shedding **ret, sd_event *event, const struct config *const *config,
	const struct shedding_ops *ops, struct error *ret_error);
void shedding_free(struct shedding *s); /* NULL is fine */
DEFINE_CLEANUP_PTR(struct shedding *, shedding_free)

/* The agent knows what BIRD does, and decides: from now on so does this. */
void shedding_start(struct shedding *s);
/* Another configuration runs; the old one may be gone when this returns. Without memory nothing is
 * out, and nothing promised, until it has been tried again, a second later. */
void shedding_configure(struct shedding *s);
/* Something that ops->prefix() tells has changed. Cheap; asked about later. */
void shedding_touch(struct shedding *s);
/* The agent is leaving: nothing is out any more, nothing is promised. */
void shedding_stop(struct shedding *s);

/* What is to be wanted of a prefix by shedding alone. */
bool shedding_prefix(
	const struct shedding *s, size_t service, size_t prefix, struct shed_prefix *ret);
/* The nth promise behind a prefix; false past the last. */
bool shedding_promise(const struct shedding *s, size_t service, size_t prefix, size_t nth,
	struct shed_promise *ret);
/* The server as a whole, and its neighbours. */
void shedding_server(const struct shedding *s, struct shed_server *ret);
const struct neighbours *shedding_neighbours(const struct shedding *s); /* NULL: none */

#endif
