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
#include "agent/core/shed.h"

#define MESSAGE_VERSION 1

#define MESSAGE_NODE_MAX 254 /* with its NUL */
#define MESSAGE_WORD_MAX 33  /* names of sites and signals, reasons; with the NUL */
#define MESSAGE_SIGNALS_MAX 16
#define MESSAGE_PREFIXES_MAX 10000
#define MESSAGE_REPORT_MAX (1U << 20) /* bytes of a report's text */
#define MESSAGE_GRANT_MAX 2048	      /* bytes of a grant's text, asked or answered */

#define MESSAGE_BP_MAX 1000000U		 /* a hundredfold overload; more is cut to it */
#define MESSAGE_ID_MAX 9007199254740991U /* of boot and request: what a JSON number holds */
#define MESSAGE_WANT_MAX 1000000U
#define MESSAGE_LEASE_MAX_MS 60000U
#define MESSAGE_CONNECTIONS_MAX 4 /* that one member lets another have */

/* Amounts are as in core/shed.h: at most SHED_AMOUNT_MAX, in the site's unit; parts of a whole are
 * basis points. */
struct message_prefix {
	struct prefix prefix;
	enum shed_state state; /* OUT where it is not said, or in a word that we do not have */
	bool weight_known, load_known;
	uint32_t weight;
	uint64_t load;
};

struct message_signal {
	char name[MESSAGE_WORD_MAX];
	uint32_t bp; /* of its limit */
};

struct message_report {
	unsigned version;
	char node[MESSAGE_NODE_MAX];
	char site[MESSAGE_WORD_MAX]; /* "": not said */
	uint64_t boot;		     /* of this life of the agent; 0: not said */
	uint64_t capacity;	     /* 0: unknown */
	bool load_known, utilisation_known;
	uint64_t load;
	uint32_t utilisation_bp; /* of the limit that is nearest */
	uint64_t spare;		 /* 0 unless willing and known; never more than capacity */
	bool willing;
	uint32_t want; /* how badly it wants to shed; 0: it does not */
	struct message_signal signals[MESSAGE_SIGNALS_MAX];
	size_t n_signals;
	struct prefix *sheds; /* owned */
	size_t n_sheds;
	struct message_prefix *prefixes; /* owned; in the order of their bytes, each once */
	size_t n_prefixes;
};

/* Asks for a promise, renews it, or (as a DELETE) gives it back. */
struct message_grant {
	char node[MESSAGE_NODE_MAX];
	uint64_t boot;
	struct prefix prefix;
	uint64_t share;
	enum shed_purpose purpose;
	uint64_t request; /* the asker's number of the promise: the same when it renews */
};

void message_report_free(struct message_report *r); /* NULL is fine */
DEFINE_CLEANUP_PTR(struct message_report *, message_report_free)
#define _cleanup_report_ _cleanup_(message_report_freep)

/* 0 and *ret, the caller's; -EBADMSG with the text; -ENOMEM. */
int message_report_read(
	const char *text, size_t n, struct message_report **ret, struct error *ret_error);
/* Appends. 0, -E2BIG, -ENOMEM. The report's own names and numbers are right. */
int message_report_write(const struct message_report *r, struct buffer *out);
/* What core/shed takes of it: `prefixes`, of which *ret_prefixes has as many, are ours in the order
 * of the configuration. *ret borrows ret_prefixes. */
void message_report_digest(const struct message_report *r, const struct prefix *prefixes, size_t n,
	struct shed_report *ret, struct shed_report_prefix *ret_prefixes);
/* The prefix, or NULL. */
const struct message_prefix *message_report_find(
	const struct message_report *r, const struct prefix *prefix);

/* As above; here every key but the version is needed, and -EBADMSG says which one is wrong. */
int message_grant_read(
	const char *text, size_t n, struct message_grant *ret, struct error *ret_error);
int message_grant_write(const struct message_grant *g, struct buffer *out);
/* The answer to one who asked for `share`; `granted` says which of the two it must be. What is none
 * of it, and a promise of less, reads as a refusal. */
void message_answer_read(
	const char *text, size_t n, bool granted, uint64_t share, struct shed_answer *ret);
int message_answer_write(const struct shed_answer *a, uint64_t share, struct buffer *out);

/* A file of members: {NAME: "ADDRESS:PORT"}. Calls `add` for each; true where all could be read.
 * Names and addresses are of the right form. -EBADMSG with the text. */
int message_members_read(const char *text, size_t n,
	int (*add)(void *userdata, const char *name, const char *address), void *userdata,
	struct error *ret_error);

#endif
