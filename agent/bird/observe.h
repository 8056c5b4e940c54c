#ifndef REDSHANK_BIRD_OBSERVE_H
#define REDSHANK_BIRD_OBSERVE_H
/*
 * What BIRD's answers say: pure readers of whole replies, for apply. Text of `show status`, `show
 * protocols` and `show route`, as BIRD 2.0.12 to 3.2 print it (nest/proto.c: proto_cmd_show,
 * nest/rt-show.c: rt_show_rte, nest/rt-attr.c: ea_show). What is not understood is left out, never
 * guessed: a column more, another attribute or another order of lines changes nothing.
 */
#include <stdbool.h>
#include <stdint.h>

#include "agent/bird/names.h"
#include "agent/bird/reply.h"
#include "agent/config/config.h"

#define OBSERVE_STAMP_MAX 40

/* Which life of BIRD this is, and which configuration; both as BIRD writes its times. */
struct observe_status {
	char reboot[OBSERVE_STAMP_MAX];
	char reconfigured[OBSERVE_STAMP_MAX];
};

/* False when the reply holds no such lines. */
bool observe_status(const struct reply *reply, struct observe_status *ret);

/*
 * Do two answers mean the same life, the same configuration? BIRD keeps its times by a monotonic
 * clock and turns them into wall time at each answer (lib/timer.c, tm_format_time), so the same
 * moment may read a millisecond later, and both times move together when somebody sets the clock.
 * A configuration is therefore told by its time since the reboot. Stamps of an operator's own
 * `timeformat` are compared as texts.
 */
bool observe_same_life(const struct observe_status *a, const struct observe_status *b);
bool observe_same_configuration(const struct observe_status *a, const struct observe_status *b);

/* A line of `show protocols`. */
struct observe_protocol {
	char name[NAMES_MAX];
	char type[16]; /* "BGP", "OSPF", "Kernel", "Static", ... */
	bool is_bgp;
	bool up;	  /* "up" or on the way there: not "down", "stop" or "flush" */
	bool established; /* "up" */
	char info[80];	  /* what BIRD says behind the time, spaces made one; cut; "" */
};

/* False for the heading, the final line and whatever is no protocol. */
bool observe_protocol(const struct reply_line *line, struct observe_protocol *ret);

/* Is it one that bird.sessions means? BGP sessions by any pattern; an OSPF only by one that does
 * not mean everything. */
bool observe_is_session(const struct observe_protocol *p, const char *pattern);

/* The name in a line such as "NAME: disabled" of a reply, or in a pushed line such as "Disabling
 * protocol NAME". False where there is none of ours. */
bool observe_our_name(const char *text, char ret[NAMES_MAX]);

#define OBSERVE_COMMUNITIES_MAX 64

/* One route of `show route ADDR/LEN table all all`. */
struct observe_route {
	char table[NAMES_MAX]; /* "" when BIRD did not say */
	char protocol[NAMES_MAX];
	bool best;		 /* the one that BIRD uses of this table */
	bool from_bgp;		 /* a BGP session brought it */
	struct address next_hop; /* of BGP; family 0 when BIRD did not say */
	unsigned preference;	 /* 0 when BIRD did not say */
	bool has_weight;
	uint32_t weight, prepend; /* redshank_weight, redshank_prepend; 0 when absent */
	struct config_community communities[OBSERVE_COMMUNITIES_MAX];
	struct config_community large_communities[OBSERVE_COMMUNITIES_MAX];
	size_t n_communities, n_large_communities;
	bool overflow; /* there were more */
};

/* Calls fn for each route of the reply. */
typedef void (*observe_route_fn)(void *userdata, const struct observe_route *route);
void observe_routes(const struct reply *reply, observe_route_fn fn, void *userdata);

/* Does the route carry what our protocol for this prefix (or its last-resort twin) gives it? By
 * attributes, in any order, not by text. */
bool observe_route_matches(
	const struct observe_route *route, const struct config_prefix *prefix, bool last_resort);

/* FILE, LINE and COLUMN of a refusal ("/etc/bird/bird.conf:1:22 syntax error, ..."): the length of
 * FILE; 0 when it does not look like that. */
size_t observe_refused_file(const char *text);

#endif
