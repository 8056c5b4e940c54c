#ifndef REDSHANK_AGENT_PRIVATE_H
#define REDSHANK_AGENT_PRIVATE_H
/*
 * What the files of the glue share: agent.c (facts, decisions, life), agent_reload.c (a new
 * configuration, the operators' words), agent_stop.c (leaving), agent_surface.c (what the status
 * socket shows), agent_shedding.c and agent_shed_tell.c (what is shed). Nobody else includes it.
 */
#include <signal.h>
#include <systemd/sd-event.h>

#include "agent/bird/apply.h"
#include "agent/bird/deadman.h"
#include "agent/checks.h"
#include "agent/control.h"
#include "agent/core/engine.h"
#include "agent/loop.h"
#include "agent/hooks.h"
#include "agent/managed.h"
#include "agent/load/load.h"
#include "agent/repair.h"
#include "agent/status/caller.h"
#include "agent/shedding.h"
#include "agent/status/document.h"
#include "agent/status/http.h"
#include "agent/status/tally.h"
#include "agent/system/addresses.h"
#include "agent/watchdog.h"

/* What was told of shedding, for agent_shed_tell.c alone. */
struct shed_told {
	struct prefix out[SHED_OUT_MAX];
	size_t n;
	bool alarm;
	struct monotime minute; /* in which `n_grants` promises were given or refused */
	unsigned n_grants;
};

struct agent {
	sd_event *event;
	struct loop *loop;
	char *config_path;
	struct config *config;
	struct engine *engine;
	struct apply *apply;
	struct addresses *addresses;
	struct managed *managed;
	struct probe_host host;
	struct http *http;
	struct checks *checks;
	struct watchdog *watchdog;
	struct repairs *repairs;
	struct hooks *hooks;
	struct tally *tally;
	uint64_t generation; /* of the configuration */
	uint64_t revision;   /* of what is wanted, and of what BIRD does */
	struct document_render *status;
	struct control *control;
	struct load *load;
	struct shedding *shedding;
	struct shed_told shed_told;
	sd_event_source *deadline;
	sd_event_source *stop_timer;
	bool undressed;	  /* agent_dress() had no memory */
	bool unweighed;	  /* agent_reweigh() had none: weights of operators wait */
	bool dress_first; /* a start or a reload: dressed before anything of it reaches BIRD */
	bool ready;	  /* what BIRD does is known; the engine decides */
	int early;	  /* a HUP or TERM that came before that and is to come again; 0: none */
	bool stopping;
	bool lingers;		 /* what leaves gently is still announced, and checks run on */
	bool withdrew;		 /* the stop did, and BIRD was told */
	bool leaving;		 /* nothing is waited for any more but the grace */
	struct monotime ends_by; /* the latest, for managed addresses; zero: it has not begun */
	char config_error[512];	 /* why the configuration on disk was refused; "": it was not */
	struct monotime config_loaded;
};

/* agent.c */

/* Decides and carries it out: the path of a withdrawal. True when something else is wanted now. */
bool agent_decide(struct agent *a);
/* What is wanted of every prefix, into apply; apply_flush() is the caller's. */
void agent_want_all(struct agent *a);
/* The only way to apply_configure(): a configuration, dressed in what the engine announces prefixes
 * with (weight, GRACEFUL_SHUTDOWN), which apply reads there; one that was just loaded knows only
 * what is configured. `change`: what the engine is about to take with this configuration; NULL: it
 * has taken it. 0 or -ENOMEM. */
int agent_apply(struct agent *a, struct config *config, const struct engine_change *change);
/* The same of the configuration that runs, where the engine announces something with something
 * else now. Without memory it is tried again with the next decision. */
void agent_dress(struct agent *a);
/* What the host's addresses say of each prefix, into the engine. */
void agent_tell_addresses(struct agent *a);
/* What the check said last; "" before it spoke. */
const char *agent_check_reason(void *userdata, size_t service, size_t check);
/* A signal that cannot be acted upon yet is sent again in a second at most. TERM outdoes HUP. */
int agent_come_again(struct agent *a, int number);
/* Every check runs now. */
void agent_check_now(void *userdata);

/* agent_reload.c */

/* The weights that operators gave, into the configuration: apply, engine and status read them
 * there. True when one is another now. */
bool agent_weigh(const struct agent *a, struct config *config);
/* What the engine takes of a configuration. A `floor` holds nothing without neighbours who could
 * promise to stay: those that a reload brings are there after a restart. 0 or -ENOMEM. */
int agent_prepare(const struct agent *a, const struct config *config, struct engine_change **ret);
/* The list for redshank-deadman, by the configuration that runs. */
void agent_write_deadman(struct agent *a);
/* The same configuration with other weights, into the engine: checks go on. agent_decide() brings
 * what follows from it to BIRD, and tries again where there was no memory. 0 or -ENOMEM. */
int agent_reweigh(struct agent *a);
/* The operators' words have changed. */
void agent_on_words(void *userdata);
/* Loads and swaps the configuration. 0 or negative errno, with what is wrong in `problems`; what
 * ran keeps running then. `force`: also where the guard of reloads is against it. */
int agent_reload(void *userdata, bool force, struct problems *problems);
int agent_on_reload(sd_event_source *source, const struct signalfd_siginfo *si, void *userdata);

/* agent_stop.c */

/* TERM, INT: each service by its on_stop. A second one does not wait for BIRD. */
int agent_on_stop(sd_event_source *source, const struct signalfd_siginfo *si, void *userdata);
/* USR2: leaves at once, and BIRD keeps what is announced. */
int agent_on_leave(sd_event_source *source, const struct signalfd_siginfo *si, void *userdata);
/* BIRD settled, or went away: a stop may be over. */
void agent_on_changed(void *userdata);

/* agent_shedding.c */

/* 0 or negative errno with the text. */
int agent_new_shedding(struct agent *a, struct error *ret_error);
/* Another configuration runs. */
void agent_configure_shedding(struct agent *a);
/* What is shed, into the engine. */
void agent_tell_sheds(struct agent *a);
/* Why nothing can be shed here; NULL: it can. */
const char *agent_cannot_shed(void *userdata);

/* agent_shed_tell.c */

/* What went and what came back since the last call, as events. */
void agent_tell_shed_events(struct agent *a);
/* A neighbour asked for a promise that it had not; userdata is the agent. */
void agent_on_grant(void *userdata, const char *neighbour, const struct prefix *prefix,
	const struct shed_request *request, const struct shed_answer *answer);
/* Is something else out than was told last? */
bool agent_sheds_differ(const struct agent *a);
/* What is out now. How many. */
size_t agent_list_sheds(const struct agent *a, struct deadman_restore *ret, size_t max);

/* agent_surface.c */

/* What the status socket asks of the agent; userdata is the agent. */
extern const struct http_ops agent_http_ops;
/* Why nothing can be changed now; NULL: it can. */
const char *agent_busy(void *userdata);
/* Why BIRD does not take a new weight now; NULL: it does, as far as is known. */
const char *agent_weight_waits(void *userdata);

/* Who sent the signal: "alice (uid 1000, pid 4711)"; "" where that was the agent itself. Returns
 * buf. */
const char *agent_signalled_by(const struct signalfd_siginfo *si, char buf[CALLER_TEXT_MAX]);

#endif
