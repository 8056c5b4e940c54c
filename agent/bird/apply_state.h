#ifndef REDSHANK_BIRD_APPLY_STATE_H
#define REDSHANK_BIRD_APPLY_STATE_H
/*
 * The state of apply, shared by its files and by nobody else:
 *
 *   apply.c            the public functions: configuration, what is wanted, flush, what was found
 *   apply_protocols.c  the table of our protocols, sorted by name
 *   apply_files.c      the fragments: text, files, inotify, repair, the last good text put back
 *   apply_commands.c   the connection that changes BIRD: disable, enable, configure, and its status
 *   apply_steps.c      one round: files, then core/plan's step for each protocol
 *   apply_read.c       the connection that reads: protocols, sessions, routes, one by one
 *   apply_link.c       the two connections' lives
 *   apply_watch.c      notices of changed folders
 *
 * How they work together. Whatever happens (a reply, a push, a changed file, a timer, a wish) is
 * noted in this state and asks for a round (apply_round_soon). A round makes the files true, asks
 * core/plan what each protocol needs, and sends that. Only a withdrawal does not wait for its
 * round: apply_flush() renames and sends by itself.
 *
 * What is believed of a protocol. `seen` is what BIRD was last found doing or, while a command is
 * under way, what that command will have made of it, so that a change of mind sends the opposite
 * command at once. Commands of one connection are worked off in order, hence the last one decides.
 * An observation counts only when it was asked for after the last command was answered; `seen` is
 * thrown away (and asked for again) whenever a command failed or a configuration was loaded. What a
 * `configure` under way will make of a protocol is no fact before it is taken, but to be reckoned
 * with: `coming` sends the `disable` of what dies meanwhile right behind it.
 * `loaded` is the body that BIRD holds: as of our own last settled `configure`, or as read back.
 *
 * apply_observed() tells none of these beliefs, only what was read back.
 */
#include <sys/stat.h>
#include <systemd/sd-event.h>

#include "agent/base/buffer.h"
#include "agent/base/monotime.h"
#include "agent/bird/advise.h"
#include "agent/bird/apply.h"
#include "agent/bird/client.h"
#include "agent/bird/fragment.h"
#include "agent/bird/observe.h"
#include "agent/bird/strikes.h"
#include "agent/core/plan.h"

#define APPLY_BODY_OTHER 1 /* loaded is known not to be ours. A hash; 1 is as good as never. */

#define APPLY_POLL_MS 50   /* `configure status` while BIRD reconfigures */
#define APPLY_TICK_MS 1000 /* the slow timer, */
#define APPLY_TICK_LARGE_MS                                                                     \
	10000			   /* with more than APPLY_LARGE protocols, whose list is long, \
				      where BIRD tells of changes by itself */
#define APPLY_TICK_SILENT_MS 500   /* a BIRD that pushes nothing: 3.x */
#define APPLY_LARGE 300		   /* protocols */
#define APPLY_TICKS_FULL 10	   /* on each so manieth short tick, ... */
#define APPLY_TICK_READS 64	   /* ... so many prefixes are read back though nothing changed */
#define APPLY_READS_MAX 32	   /* queries under way on the reading connection */
#define APPLY_SINGLES_MAX 1024	   /* commands under way on the other one */
#define APPLY_READY_MS 1000	   /* BIRD has this long to answer before the files tell */
#define APPLY_CONFIGURE_MS 60000   /* for one `configure`: the parse of a huge bird.conf */
#define APPLY_BUSY_STUCK_US 500000 /* BIRD does not come to rest: it is not waited for */
#define APPLY_RETRY_MIN_MS 1000	   /* after a refused `configure`, doubling */
#define APPLY_RETRY_MAX_MS 60000
#define APPLY_CHECK_AFTER_MS 1000 /* `configure check` behind a health command: see commands */
#define APPLY_CHECK_EVERY_MS 10000
#define APPLY_CHECK_SLOWLY_MS 300000
#define APPLY_CHECK_COST_MS 10
#define APPLY_NAMED_MAX 64 /* sessions, and other announcers, that explain tells by name */

struct apply_service;

struct apply_protocol {
	char name[NAMES_MAX];
	struct apply_service *service; /* not owned; NULL: no longer configured */
	/* As in fragment_protocol; of the service's prefixes. */
	size_t first_prefix, n_prefixes;
	bool family_protocol, last_resort;
	enum address_family family;

	enum plan_want want;
	uint64_t body;		 /* as wanted */
	uint64_t file_body;	 /* as in the file, or PLAN_BODY_UNKNOWN */
	uint64_t ready_body;	 /* as in the file that lies ready */
	uint64_t configure_body; /* as in the file when the configure under way was sent */

	enum plan_seen seen, last_seen; /* last_seen: before it became unknown */
	uint64_t loaded;
	uint64_t command;    /* number of the last command, 0 when it was answered */
	uint64_t confirmed;  /* number of the last command whose answer named it */
	uint64_t answered;   /* when it was, in ticks of apply.moment */
	uint64_t listed;     /* the last `show protocols` that named it, by its moment */
	struct prefix *held; /* want GONE: what it announced when it was ours, owned */
	size_t n_held;
	bool claimed; /* by the configuration that is being taken */

	bool coming; /* the configure under way brings it up, whatever is seen of it */

	bool reached;	   /* it was as wanted: whatever differs now is somebody else's doing */
	bool mending;	   /* a repair is under way */
	unsigned strikes;  /* repairs in a row */
	bool attempting;   /* the configure under way is for it */
	unsigned attempts; /* configures in a row that changed nothing */
	struct monotime last_strike, not_before;
	size_t reads_left; /* of a read of its body */
	bool reads_differ;
	enum plan_step step; /* of the round under way */
};

struct apply_prefix {
	enum prefix_wanted wanted, found;
	struct apply_observed observed;
	bool read_wanted;	   /* counted in apply.reads_wanted */
	bool reading;		   /* a job is under way */
	unsigned differs;	   /* reads in a row that showed another body than is wanted */
	unsigned rereads;	   /* in a row that did not show what is wanted, yet */
	struct monotime reread_at; /* 0: not due */
	bool said_elsewhere;
	/* For apply_explain(), as read back with `observed`: */
	uint64_t sessions_version; /* of the sessions that the bits mean; 0: nothing was read */
	uint64_t exported_to, carried_by; /* a bit for each of the first sessions */
	uint64_t others, others_best;	  /* a bit for each of apply.others */
	bool more_others;
	uint64_t next_hops; /* a bit for each of apply.next_hops */
	bool more_next_hops;
	bool has_weight[2]; /* the protocol's route and the twin's, */
	uint32_t weight[2]; /* as BIRD has it */
};

struct apply_service {
	char name[NAMES_SERVICE_MAX + 1];
	const struct config_service *config; /* of the caller's configuration */
	struct apply_prefix *prefixes;	     /* config->n_prefixes */
	struct apply_protocol **protocols;   /* in the fragment's order; owned by the table */
	size_t n_protocols;

	struct monotime wanted_at; /* what is wanted, and not so in BIRD yet; 0: it is so */
	bool as_wanted;		   /* by the round under way */
	bool changed;		   /* wanted since the last flush, */
	bool withdraws;		   /* and something of it less than before */
	bool stale;		   /* want, body and text are to be made again */
	bool dirty;		   /* the file could not be written: tried again */
	bool check_file;	   /* somebody may have touched it */
	bool withdrawn;		   /* the file is the withdrawn text */
	bool ready;		   /* a withdrawn text lies ready */
	bool put_back; /* BIRD refused the fragment: the last good one is in its place */
	char *text;    /* what the file holds, NULL: unknown or no file; owned */
	uint64_t ready_hash, text_hash; /* 0: none */
	char *good; /* what BIRD accepted last; NULL: `text`, if text_is_good; owned */
	bool text_is_good;
	bool sent; /* `text` is what the configure under way finds */
	unsigned repairs;
	struct monotime repaired;
};

enum apply_configure {
	APPLY_CONFIGURE_NONE,
	APPLY_CONFIGURE_SENT,	  /* not answered */
	APPLY_CONFIGURE_SETTLING, /* accepted; `configure status` has not said 0003 yet */
};

/* A command that changes something, until it is answered. */
struct apply_command {
	struct apply *apply;
	struct apply_command *previous, *next;
	uint64_t number;
	bool enable;
	bool spare; /* goes back to apply.spares */
	struct monotime sent;
	char pattern[NAMES_MAX];
};

#define APPLY_SPARES 64 /* as many as the client's: more could not be sent without memory */

struct apply_session {
	char name[NAMES_MAX];
	bool up;
	char info[80]; /* BIRD's, of this moment */
};

/* A prefix that is being read back: one query for its routes and one for each session. */
struct apply_job {
	struct apply *apply;
	struct apply_job *previous, *next;
	uint64_t generation; /* of the configuration that the indexes mean */
	size_t service, prefix;
	uint64_t asked;
	unsigned left;
	bool failed;
	bool matches[2], present[2]; /* the protocol's and the twin's route */
	bool has_weight[2];
	uint32_t weight[2];
	/* Of the table that is being read: */
	char table[NAMES_MAX], table_best[NAMES_MAX];
	bool table_ours;
	/* Of all tables: */
	bool ours;		     /* a route of ours stands somewhere */
	char better[NAMES_MAX];	     /* is preferred to ours in a table where ours stands */
	char instead[NAMES_MAX];     /* is the best of a table where ours does not stand */
	char exported_by[NAMES_MAX]; /* another's, on a session */
	int exported;
	/* As in apply_prefix: */
	uint64_t sessions_version, exported_to, carried_by, others, others_best;
	bool more_others;
	uint64_t next_hops;
	bool more_next_hops;
	uint64_t sessions_left; /* that were asked and have not answered; they answer in order */
};

/* One of the two connections. */
struct apply_way {
	const char *name; /* for the log */
	struct client *client;
	bool greeted;
	unsigned failures;
	struct monotime retry; /* when it is tried again; never while it lives */
};

struct inotify_event;
typedef void (*apply_watch_fn)(struct apply *a, const struct inotify_event *e);

/* A watched folder; not running while `apply` is NULL. */
struct apply_watch {
	struct apply *apply;
	apply_watch_fn fn;
	sd_event_source *source;
	int fd;
	bool lost; /* the folder is gone: start again */
};

struct apply {
	sd_event *event; /* a reference */
	struct apply_ops ops;
	struct advise *advise; /* asks on the reading connection, too */
	char *socket, *folder;
	bool birdc;
	char **sessions_wanted; /* patterns, n, owned */
	size_t n_sessions_wanted;

	const struct config *config;
	uint64_t generation; /* grows with each configuration */
	struct apply_service *services;
	size_t n_services;
	struct apply_protocol **protocols; /* sorted by name; owned */
	size_t n_protocols;
	char **orphans; /* names of fragments of ours that no service has; owned */
	size_t n_orphans;
	char **strangers; /* files that were warned about */
	size_t n_strangers;

	bool started, ready, flushed;
	struct apply_status status;
	int folder_fd;
	bool folder_said;
	bool write_said;

	struct apply_way command, reading;
	unsigned ticks;
	uint64_t moment;   /* grows with every command and every answer: the order of things */
	uint64_t commands; /* the last number */
	struct apply_command *waiting; /* a list */
	struct apply_command *spares;  /* a list by `next`: a withdrawal needs no memory */
	size_t commands_waiting;
	uint64_t answered; /* moment of the last answer to one that changes something */
	bool unconfirmed;  /* sent since `configure status` last said 0003 */
	bool status_asked, status_wanted;
	uint64_t status_moment; /* when it was asked */
	bool busy, queued_seen;
	struct monotime busy_since;
	bool busy_said;

	enum apply_configure configure;
	uint64_t settled; /* moment at which BIRD's configuration was last seen to come to rest */
	struct monotime configure_sent;
	uint64_t configure_took_ms; /* the last one; UINT64_MAX: not known */
	bool configure_wanted;
	bool refused; /* the last one was, and its back-off runs */
	uint64_t retry_ms;
	struct monotime retry;
	unsigned refusals;
	char *refused_file; /* as in BIRD's text, owned */
	bool check_sent;
	struct monotime check_at, check_last;
	bool absent_alarm; /* the alarm says that BIRD does not include our folder */

	bool observe_wanted, observe_sent, observed_once;
	uint64_t observe_asked;
	bool told_of_changes; /* BIRD pushes lines on the reading connection */
	bool life_known;      /* `life` holds, */
	bool life_unbroken;   /* and was read on the connection that stands: it cannot be another */
	struct observe_status life;
	bool life_expected; /* our own configure changes it */
	struct apply_session *sessions;
	size_t n_sessions;
	uint64_t sessions_version;     /* grows when they change */
	struct monotime sessions_said; /* when the minute began in which the lines are counted */
	unsigned sessions_lines;
	struct strikes strikes; /* of all protocols, for the log */
	char others[APPLY_NAMED_MAX]
		   [NAMES_MAX]; /* protocols, not ours, with routes of our prefixes */
	size_t n_others;
	struct address next_hops[APPLY_NAMED_MAX]; /* of BGP routes, not ours, of our prefixes */
	size_t n_next_hops;
	struct apply_job *jobs; /* a list */
	size_t n_jobs;
	size_t reads_wanted;
	struct monotime reread_at;	  /* the earliest of the prefixes' */
	size_t read_service, read_prefix; /* where the search for the next one goes on */
	size_t tick_service, tick_prefix;

	sd_event_source *round, *changed; /* deferred */
	sd_event_source *poll, *tick, *wake, *ready_timer;
	struct apply_watch folder_watch, socket_watch, refused_watch;
	bool folder_check; /* it is to be looked at as on a tick */
	struct monotime wake_at;
};

/* ---- apply.c ---- */
void apply_round_soon(struct apply *a);	 /* a round, from the loop */
void apply_say_changed(struct apply *a); /* ops->changed, once, from the loop */
void apply_wake_at(struct apply *a, struct monotime when);
void apply_set_alarm(struct apply *a, const char *format, ...) _printf_(2, 3);
/* What BIRD (or, without it, the files) was found doing; calls ops->ready once. */
void apply_become_ready(struct apply *a, bool bird_answered);

/* ---- apply_protocols.c ---- */
struct apply_protocol *apply_find(const struct apply *a, const char *name);
/* The one of that name, made when it is not there. NULL: no memory. */
struct apply_protocol *apply_add(struct apply *a, const char *name);
void apply_forget_absent(struct apply *a); /* frees those that are gone from BIRD, too */
void apply_protocol_free(struct apply_protocol *p);
/* The end of the range, from `first`, of protocols whose names share the service. */
size_t apply_range_end(const struct apply *a, size_t first);
/* [*ret_first, *ret_end): the protocols that the pattern or plain name of a command means. */
void apply_range(const struct apply *a, const char *pattern, size_t *ret_first, size_t *ret_end);
/* A service's protocols as they are to be: what can fail, then what cannot. Protocols that were
 * added and never taken are forgotten when BIRD is seen not to have them. */
struct apply_prepared {
	struct fragment_protocol *from; /* n, owned */
	struct apply_protocol **protocols;
	size_t n;
};
int apply_prepare_protocols(
	struct apply *a, const struct apply_service *s, struct apply_prepared *ret);
void apply_take_protocols(struct apply_service *s, struct apply_prepared *prepared);
void apply_prepared_done(struct apply_prepared *prepared);
/* Both: makes want and bodies of the service's protocols from what is wanted. 0, -ENOMEM, ... */
int apply_service_protocols(
	struct apply *a, struct apply_service *s, struct fragment_protocol **ret, size_t *ret_n);
bool apply_protocol_holds(const struct apply_protocol *p, size_t prefix);
/* What is wanted, at least, of a prefix that the protocol announces. */
enum prefix_wanted apply_least(const struct apply_protocol *p);
enum plan_step apply_plan(const struct apply *a, const struct apply_protocol *p);
/* No `configure` for now: the last one was refused, or BIRD's configuration is on trial. */
bool apply_may_not_configure(const struct apply *a);
/* Wanted down, it is worth a `disable`: it is up, or may be, or comes up. */
bool apply_may_be_up(const struct apply_protocol *p);
void apply_unknown_all(struct apply *a, bool loaded_too); /* seen (and loaded) */

/* ---- apply_watch.c ---- */
/* Replaces the watch. Not to be called, nor stopped, inside its own fn. 0 or negative errno. */
int apply_watch_start(struct apply *a, struct apply_watch *w, const char *folder, uint32_t mask,
	apply_watch_fn fn, const char *name);
void apply_watch_stop(struct apply_watch *w);

/* ---- apply_text.c ---- */
uint64_t apply_text_hash(const char *text); /* never 0 */
/* The block of the protocol in a fragment's text: starts behind its first line. NULL: none. */
const char *apply_text_block(const char *text, const char *name);
bool apply_text_is_up(const char *block);
bool apply_text_holds(const char *block, const struct prefix *prefix);
/* Does the text look like the fragment that an agent wrote for this service? */
bool apply_text_is_ours(const char *text, const char *service);
/* Calls fn with each protocol's name and block. */
void apply_text_each(const char *text,
	void (*fn)(void *userdata, const char *name, const char *block), void *userdata);
/* The prefixes of a block. Heap array. 0 or -ENOMEM. */
int apply_text_prefixes(const char *block, struct prefix **ret, size_t *ret_n);
/* The text with `disabled;` exactly where is_up() says no. 0, -ENOMEM, -E2BIG. */
int apply_text_edit(const char *text, bool (*is_up)(void *userdata, const char *name),
	void *userdata, struct buffer *ret);

/* ---- apply_files.c ---- */
int apply_files_open(struct apply *a);
void apply_files_adopt(struct apply *a); /* reads what is there, before the first round */
void apply_files_sync(struct apply *a);	 /* makes the files true */
bool apply_files_dirty(const struct apply *a);
/* The one rename. True: the file is withdrawn by it, and apply_files_withdrew() is to follow. */
bool apply_files_withdraw(struct apply *a, struct apply_service *s);
void apply_files_withdrew(struct apply *a, struct apply_service *s);
void apply_files_configure_sent(struct apply *a);
void apply_files_accepted(struct apply *a);
enum apply_blame {
	APPLY_BLAME_OTHERS,   /* bird.conf or an include of somebody else */
	APPLY_BLAME_STRANGER, /* lies in our folder, is not ours */
	APPLY_BLAME_DAMAGED,  /* was ours and was changed by somebody: written again by the round */
	APPLY_BLAME_OURS,     /* the last good one is put back by the next round */
};
/* BIRD refused with this text: whose file is it? */
enum apply_blame apply_files_refused(struct apply *a, const char *text);
void apply_files_try_again(struct apply *a); /* what was put back is replaced by what is wanted */
void apply_files_tick(struct apply *a);
/* Is the prefix announced by a text that was found on disk? */
enum prefix_wanted apply_files_found(const struct apply_service *s, size_t prefix);

/* ---- apply_commands.c ---- */
/* One command for a protocol's name or a service's pattern. */
void apply_send_disable(struct apply *a, const char *pattern);
void apply_send_enable(struct apply *a, const char *pattern);
void apply_send_configure(struct apply *a);
void apply_send_status(struct apply *a);
void apply_send_check(struct apply *a);
void apply_check_soon(struct apply *a);	  /* bird.conf may be broken */
void apply_check_slowly(struct apply *a); /* on each tick: it was not looked at for long */
void apply_commands_lost(struct apply *a);
int apply_commands_init(struct apply *a); /* 0 or -ENOMEM */
void apply_commands_done(struct apply *a);
void apply_retry_now(struct apply *a, const char *why);

/* ---- apply_steps.c ---- */
void apply_round(struct apply *a);

/* ---- apply_read.c ---- */
void apply_read_greeted(struct apply *a);
void apply_read_lost(struct apply *a);
void apply_read_push(struct apply *a, const char *text);
void apply_observe(struct apply *a);
void apply_want_read(struct apply *a, struct apply_service *s, size_t prefix);
void apply_want_read_protocol(struct apply *a, const struct apply_protocol *p);
void apply_want_read_all(struct apply *a);
void apply_reads_pump(struct apply *a);
void apply_read_some(struct apply *a); /* a few more on each tick */
void apply_drop_jobs(struct apply *a);

/* ---- apply_link.c ---- */
int apply_link_start(struct apply *a);
void apply_link_stop(struct apply *a);
void apply_link_round(struct apply *a); /* drops and connects what is due */
void apply_link_observed(struct apply *a);

#endif
