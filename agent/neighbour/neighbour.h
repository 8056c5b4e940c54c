#ifndef REDSHANK_NEIGHBOUR_NEIGHBOUR_H
#define REDSHANK_NEIGHBOUR_NEIGHBOUR_H
/*
 * The neighbours, as the rest of the agent sees them: who they are, what they report, and grants in
 * both directions. All calls and callbacks are on the agent's own loop, at its lowest priority, and
 * none waits: TLS, HTTP and JSON are another thread's (thread.h). What is decided of it is
 * core/shed's.
 *
 * Neighbours are named by index, 0 to neighbours_count() - 1, in the order of their names; indices
 * hold until `members` is called.
 */
#include <systemd/sd-event.h>

#include "agent/config/config.h"
#include "agent/neighbour/message.h"
#include "agent/neighbour/server.h"

struct neighbours;

struct neighbours_ops {
	/* Other neighbours than before: shed_configure() is due. Never called within
	 * neighbours_new() and neighbours_configure(). May be NULL. */
	void (*members)(void *userdata);
	/* A report that is the neighbour's and of this site; borrowed. As shed_report() has it. */
	void (*report)(void *userdata, size_t member, const struct message_report *report,
		struct monotime asked);
	/* A neighbour asks for a grant, which is answered at once, or gives it back. */
	struct shed_answer (*grant)(
		void *userdata, size_t member, const struct message_grant *grant, bool give_back);
	/* As shed_answered() has it. */
	void (*answered)(
		void *userdata, const struct shed_call *call, const struct shed_answer *answer);
	void *userdata;
};

/* Binds and starts. Files that cannot be read are no failure: it is logged, nobody may speak, and
 * they are looked at again. 0; or negative errno with the text. */
int neighbours_new(struct neighbours **ret, sd_event *event, const struct config_neighbours *config,
	const char *node, const struct neighbours_ops *ops, struct error *ret_error);
void neighbours_free(struct neighbours *n); /* NULL is fine */
DEFINE_CLEANUP_PTR(struct neighbours *, neighbours_free)

/* A reload: the new section, which replaces the old one and outlives it here. `listen` stays. True
 * when the members are others. */
bool neighbours_configure(
	struct neighbours *n, const struct config_neighbours *config, const char *node);

size_t neighbours_count(const struct neighbours *n);
const char *neighbours_name(const struct neighbours *n, size_t member);
/* The number of this life, for our own reports and grants. */
uint64_t neighbours_boot(const struct neighbours *n);

/* What neighbours get when they ask; `node`, `site` and `boot` are filled in. 0, -E2BIG, -ENOMEM:
 * they get the one before, and soon none: one that is not renewed for three seconds is not told. */
int neighbours_publish(struct neighbours *n, struct message_report *own);
/* Where BIRD shows that other servers are (apply_next_hops()): there those members are asked whose
 * address is "bird". Copied; the same again costs nothing. */
void neighbours_found(struct neighbours *n, const struct address *addresses, size_t n_addresses);
/* Sends a call of shed_next_call() for this prefix; dropped where that is not possible. */
void neighbours_call(
	struct neighbours *n, const struct shed_call *call, const struct prefix *prefix);

/* ---- for those who show it ---- */

enum neighbours_state {
	NEIGHBOURS_NEVER,  /* no report since the start, or since it is configured */
	NEIGHBOURS_FRESH,  /* the last report is younger than stale_after */
	NEIGHBOURS_STALE,  /* older */
	NEIGHBOURS_SILENT, /* older than forget_after */
};
#define NEIGHBOURS_STATES (NEIGHBOURS_SILENT + 1)
const char *neighbours_state_name(enum neighbours_state state);

struct neighbours_view {
	const char *name;
	const char *address; /* "ADDRESS:PORT"; "bird" until it was found in BIRD */
	bool of_file;
	enum neighbours_state state;
	struct monotime asked;		     /* of the last report; zero: never */
	const struct message_report *report; /* the last one, whatever its age; NULL: none */
	const char *error;		     /* of the last time it was asked; "": there was none */
	uint64_t n_reports, n_failures;
};
/* Valid until the loop goes on. */
void neighbours_view(const struct neighbours *n, size_t member, struct monotime now,
	struct neighbours_view *ret);

struct neighbours_totals {
	struct server_counts server;
	const char *error;   /* why the files as they are now are not in use; "": they are */
	const char *warning; /* about our certificate; "": none */
	struct walltime certificate_expires; /* 0: there is none */
	uint64_t thread_cpu_us;
	uint64_t n_replaced; /* certificates or members, taken into use since the start */
};
void neighbours_totals(const struct neighbours *n, struct neighbours_totals *ret);

#endif
