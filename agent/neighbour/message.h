#ifndef REDSHANK_NEIGHBOUR_MESSAGE_H
#define REDSHANK_NEIGHBOUR_MESSAGE_H
/*
 * What agents say to each other: a report of the load, and the asking for a grant; from and to
 * JSON. Pure but for memory. docs/neighbours.md has the form.
 *
 * Read with care for what is known and none for what is not: unknown keys are those of a newer
 * agent and are passed over; what is missing, of another kind or out of bounds reads as unknown,
 * which always means no room. Only what is no JSON object, or does not say who speaks, is an error.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/base/address.h"
#include "agent/base/buffer.h"
#include "agent/base/error.h"

#define MESSAGE_VERSION 1

#define MESSAGE_NODE_MAX 254 /* with its NUL */
#define MESSAGE_WORD_MAX 33  /* names of sites and signals, reasons; with the NUL */
#define MESSAGE_SIGNALS_MAX 16
#define MESSAGE_PREFIXES_MAX 10000
#define MESSAGE_REPORT_MAX (1U << 20) /* bytes of a report's text */
#define MESSAGE_GRANT_MAX 2048	      /* bytes of a grant's text, asked or answered */

#define MESSAGE_PPM_MAX 100000000U	   /* a hundredfold overload; more is cut to it */
#define MESSAGE_LOAD_MAX 1000000000000000U /* of capacity, spare, load and share */
#define MESSAGE_ID_MAX 9007199254740991U   /* of boot and request: what a JSON number holds */
#define MESSAGE_WANT_MAX 1000000U
#define MESSAGE_LEASE_MAX_MS 60000U

/* What a node says of one of its prefixes. */
enum message_state {
	MESSAGE_STATE_UNKNOWN,	 /* not said, or in a word that we do not have */
	MESSAGE_STATE_ANNOUNCED, /* healthy, and BIRD was seen to announce it */
	MESSAGE_STATE_DEGRADED,	 /* announced, and not healthy, or at the worst weight */
	MESSAGE_STATE_SHED,	 /* left to neighbours */
	MESSAGE_STATE_WITHDRAWN, /* not announced for another reason */
};

struct message_prefix {
	struct prefix prefix;
	enum message_state state;
	bool weight_known, load_known;
	uint32_t weight;
	uint64_t load; /* as capacity is measured */
};

struct message_signal {
	char name[MESSAGE_WORD_MAX];
	uint32_t ppm; /* of its limit */
};

struct message_report {
	unsigned version;
	char node[MESSAGE_NODE_MAX];
	char site[MESSAGE_WORD_MAX]; /* "": not said */
	uint64_t boot;		     /* of this life of the agent; 0: not said */
	uint64_t capacity;	     /* 0: unknown */
	bool utilisation_known;
	uint32_t utilisation_ppm; /* of the limit that is nearest */
	uint64_t spare;		  /* 0 unless willing and known; never more than capacity */
	bool willing;
	uint32_t want; /* how badly it wants to shed; 0: it does not */
	struct message_signal signals[MESSAGE_SIGNALS_MAX];
	size_t n_signals;
	struct prefix *sheds; /* owned */
	size_t n_sheds;
	struct message_prefix *prefixes; /* owned; in the order of their bytes, each once */
	size_t n_prefixes;
};

enum message_purpose {
	MESSAGE_PURPOSE_SHED,
	MESSAGE_PURPOSE_HEALTH,
};

/* Asks for a promise, renews it, or (as a DELETE) gives it back. */
struct message_grant {
	char node[MESSAGE_NODE_MAX];
	uint64_t boot;
	struct prefix prefix;
	uint64_t share;
	enum message_purpose purpose;
	uint64_t request; /* the asker's number of the promise: the same when it renews */
};

struct message_answer {
	bool granted;
	uint64_t share;		       /* promised; 0 when refused */
	uint32_t lease_ms;	       /* from when the granter had the request */
	char reason[MESSAGE_WORD_MAX]; /* of a refusal: a word, such as "no_room" */
};

void message_report_free(struct message_report *r); /* NULL is fine */
DEFINE_CLEANUP_PTR(struct message_report *, message_report_free)
#define _cleanup_report_ _cleanup_(message_report_freep)

/* 0 and *ret, the caller's; -EBADMSG with the text; -ENOMEM. */
int message_report_read(
	const char *text, size_t n, struct message_report **ret, struct error *ret_error);
/* Appends. 0, -E2BIG, -ENOMEM. The report's own names and numbers are right. */
int message_report_write(const struct message_report *r, struct buffer *out);
/* The prefix, or NULL. */
const struct message_prefix *message_report_find(
	const struct message_report *r, const struct prefix *prefix);

/* As above; here every key but the version is needed, and -EBADMSG says which one is wrong. */
int message_grant_read(
	const char *text, size_t n, struct message_grant *ret, struct error *ret_error);
int message_grant_write(const struct message_grant *g, struct buffer *out);
/* `granted` says which of the two answers it must be. What is none of it reads as a refusal. */
void message_answer_read(const char *text, size_t n, bool granted, struct message_answer *ret);
int message_answer_write(const struct message_answer *a, struct buffer *out);

const char *message_state_name(enum message_state state);

/* A file of members: {NAME: "ADDRESS:PORT"}. Calls `add` for each; true where all could be read.
 * Names and addresses are of the right form. -EBADMSG with the text. */
int message_members_read(const char *text, size_t n,
	int (*add)(void *userdata, const char *name, const char *address), void *userdata,
	struct error *ret_error);

#endif
