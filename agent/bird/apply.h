#ifndef REDSHANK_BIRD_APPLY_H
#define REDSHANK_BIRD_APPLY_H
/*
 * Makes one BIRD do what is wanted, and keeps knowing what it does.
 *
 * The agent says what it wants of each prefix; apply writes the fragment, sends the command, asks
 * BIRD afterwards what is true, and repairs what differs, for as long as it lives: after its own
 * commands, when BIRD comes back, when anybody reconfigures it or touches a fragment, and on a slow
 * timer. The next step of each protocol comes from core/plan; order, deadlines and back-off are
 * here. The path of a withdrawal (apply_want, apply_flush) forks nothing, waits for nothing and
 * renders nothing: one rename of a file that lies ready, one write of a command.
 *
 * Prefixes are named by their indexes in the configuration passed last.
 */
#include <systemd/sd-event.h>

#include "agent/base/histogram.h"
#include "agent/bird/advise.h"
#include "agent/bird/loss.h"
#include "agent/config/config.h"
#include "agent/core/prefix.h"

struct apply;

enum apply_known {
	APPLY_UNKNOWN, /* BIRD is away or was not asked yet: null in JSON */
	APPLY_NO,
	APPLY_YES,
};

/* What was read back of one prefix. */
struct apply_observed {
	enum apply_known announced; /* our protocol is up and its route is BIRD's best */
	int exported;		    /* on how many of bird.sessions; -1: unknown */
	char elsewhere[65]; /* a protocol that is not ours and whose route for the prefix BIRD
			       prefers or exports; "": none. Loud: it defeats a withdrawal. */
};

enum apply_link {
	APPLY_LINK_AWAY,     /* no socket, refused, or closed: tried again with back-off */
	APPLY_LINK_GREETING, /* connected, not yet greeted or observed */
	APPLY_LINK_UP,
	APPLY_LINK_REFUSED, /* a BIRD we do not speak to (1.x), or not a BIRD */
};

/* What is sent to BIRD, and what came of it. */
enum apply_command_kind {
	APPLY_COMMAND_DISABLE,
	APPLY_COMMAND_ENABLE,
	APPLY_COMMAND_CONFIGURE,
	APPLY_COMMAND_CHECK, /* configure check */
};
#define APPLY_COMMAND_KINDS 4
enum apply_command_result {
	APPLY_RESULT_ACCEPTED,
	APPLY_RESULT_REFUSED,
	APPLY_RESULT_OTHER,  /* BIRD is shutting down */
	APPLY_RESULT_LOST,   /* the connection was, or the time was over */
	APPLY_RESULT_UNSENT, /* too many wait already, or no memory: it is said later */
};
#define APPLY_COMMAND_RESULTS 5

struct apply_counter {
	uint64_t results[APPLY_COMMAND_RESULTS];
	struct histogram duration; /* of those that were answered, from send to answer */
};

/* BIRD as a whole, for status and log. */
struct apply_status {
	enum apply_link link;
	char version[32]; /* of the greeting, such as "2.0.12"; "" before it */
	char error[512];  /* why it is away or refused; "" while up */
	enum loss loss;	  /* the same in a word */
	struct monotime
		silent_since; /* BIRD runs and does not answer; never: it does, or is away */
	char alarm[512]; /* BIRD refuses to configure: its own FILE:LINE:COLUMN text and whose file
			    it is; "" */
	char files_error[512]; /* why our fragments can not be written; "": they can */
	bool on_trial; /* somebody's `configure timeout` runs: what needs `configure` waits for its
			  end */
	bool settled;  /* what is wanted is true in BIRD and nothing is under way */
	unsigned sessions; /* that match bird.sessions and are BGP */
	unsigned sessions_up;
	uint64_t commands_sent; /* that change something: disable, enable, configure */
	uint64_t repairs;	/* drift found and mended: somebody else's change */
	uint64_t fragments_repaired;
	uint64_t losses[LOSSES]; /* connections, and attempts at one, of both kinds */
	struct apply_counter commands[APPLY_COMMAND_KINDS];
};

struct apply_ops {
	/* Once after apply_start(): apply_found() now tells what BIRD was found doing. It comes
	 * within a second; where BIRD did not answer by then, the fragments on disk are what was
	 * found. */
	void (*ready)(void *userdata);
	/* Something that apply_observed() or apply_status() tells has changed. From the loop. */
	void (*changed)(void *userdata);
	void *userdata;
};

/* Heap. 0 or negative errno. `bird` is copied. */
int apply_new(struct apply **ret, sd_event *event, const struct config_bird *bird,
	const struct apply_ops *ops);
void apply_free(struct apply *a);

/*
 * Takes the services of a configuration, which must live until the next call. What is the same as
 * before is left alone: no file is written and no byte sent for it. Prefixes that are no longer
 * configured are withdrawn by the next apply_flush(). 0, -ENOMEM.
 */
int apply_configure(struct apply *a, const struct config *config);

/* Connects, reads the fragments and BIRD's state, and calls ops->ready. */
int apply_start(struct apply *a);

/* Valid from ops->ready on, for prefixes of the configuration at that time. */
enum prefix_wanted apply_found(const struct apply *a, size_t service, size_t prefix);

/* Notes what is wanted; apply_flush() carries it out. */
void apply_want(struct apply *a, size_t service, size_t prefix, enum prefix_wanted wanted);

/* True while BIRD has protocols of ours, or may have, that are not configured any more. */
bool apply_leaves(const struct apply *a);

/* Reads the prefix again soon, out of turn: for facts that nobody tells us of, such as other
 * servers' routes (apply_route_from()). */
void apply_look(struct apply *a, size_t service, size_t prefix);

/*
 * Carries out what is wanted, withdrawals first: for a service whose prefixes are all withdrawn one
 * rename and one command, written before anything else is looked at. Never fails: what could not be
 * done now is tried again.
 */
void apply_flush(struct apply *a);

const struct apply_observed *apply_observed(const struct apply *a, size_t service, size_t prefix);
const struct apply_status *apply_status(const struct apply *a);
/* BIRD's socket and the folder of the fragments that are in use, whatever a configuration that came
 * later says. Of apply's life. */
const char *apply_socket(const struct apply *a);
const char *apply_folder(const struct apply *a);
/* What about this BIRD's configuration will hurt (advise.h); how many. Valid until the loop runs.
 */
size_t apply_warnings(const struct apply *a, const struct advise_warning **ret);

#endif
