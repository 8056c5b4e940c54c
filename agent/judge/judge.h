#ifndef REDSHANK_JUDGE_JUDGE_H
#define REDSHANK_JUDGE_JUDGE_H
/*
 * How bad is it? The one judgement of a status document, for people (verdict.c) and for monitoring
 * (plugin.c), so that the two never disagree. redshankctl(1) holds the same list.
 */
#include <jansson.h>
#include <stdbool.h>

#include "agent/base/buffer.h"

enum judge_level {
	JUDGE_GOOD,
	JUDGE_LOOK,    /* by day: "Look", WARNING */
	JUDGE_TROUBLE, /* costs traffic, or sends it into a hole: "TROUBLE", CRITICAL */
};

/* What is to be said of a prefix; the worst first. */
enum judge_prefix {
	JUDGE_PREFIX_ELSEWHERE, /* should be withdrawn, and a protocol that is not ours announces it
				 */
	JUDGE_PREFIX_STILL,	/* should be withdrawn, and ours is announced */
	JUDGE_PREFIX_MISSING,	/* should be announced, and is not */
	JUDGE_PREFIX_REPLACED,	/* is announced, but another's route is what BIRD exports */
	JUDGE_PREFIX_NO_SESSION, /* is announced in BIRD, and exported nowhere */
	JUDGE_PREFIX_NO_ADDRESS,
	JUDGE_PREFIX_KEPT,	/* unhealthy and announced: its floor, and too few promises */
	JUDGE_PREFIX_FORCED,	/* announced on an operator's word, whatever its checks say */
	JUDGE_PREFIX_FROZEN,	/* as it was, for the server is frozen; the rules say otherwise */
	JUDGE_PREFIX_SHED,	/* neighbours announce it in the place of this server */
	JUDGE_PREFIX_WITHDRAWN, /* as it should be, and not by the service's health */
	JUDGE_PREFIX_DRAINED,
	JUDGE_PREFIX_UNDECIDED,
	JUDGE_PREFIX_DEMOTED,
	JUDGE_PREFIX_WELL,
};

/* What is to be said of a check, beside what it makes of its service's health. */
enum judge_check {
	JUDGE_CHECK_SILENT, /* its last CHECK_SILENT outcomes are unknown: what it said before
			       stands */
	JUDGE_CHECK_DOWN,   /* though the service is healthy */
	JUDGE_CHECK_WELL,
};

/* The value of a key of an object, or "". */
const char *judge_text(const json_t *object, const char *key);
bool judge_is(const json_t *object, const char *key, const char *text);

/* A key that no document has: what judge_service_level() said of the service, as a number, kept by
 * who asks several times. */
#define JUDGE_MEMO "judged"

enum judge_prefix judge_prefix(const json_t *prefix, const json_t *bird);
enum judge_level judge_prefix_level(enum judge_prefix what);
enum judge_level judge_health_level(const json_t *service);
/* Of a check that belongs to `service`. */
enum judge_check judge_check(const json_t *service, const json_t *check);
enum judge_level judge_check_level(enum judge_check what);
/* "is down"; not to be asked where the check is well. */
const char *judge_check_says(enum judge_check what);
/* The worst of the three. */
enum judge_level judge_service_level(const json_t *service, const json_t *bird);
/* "dns is unhealthy and STILL ANNOUNCED by direct1"; not to be asked where the level is good. */
void judge_service_say(
	struct buffer *out, const char *called, const json_t *service, const json_t *bird);

/* The drain of the whole server; NULL: there is none. Borrowed. */
const json_t *judge_drain(const json_t *document);
/* Nothing is to be said of it but that it is drained. */
bool judge_is_just_drained(const json_t *service, const json_t *bird);

/*
 * What `bird.alarm` is about, in a few words, and in *ret_detail (part of the alarm) what they do
 * not say yet: where, and in whose file. NULL: there is no alarm.
 */
const char *judge_alarm(const json_t *bird, const char **ret_detail);

/* One thing about BIRD or the agent as a whole. */
struct judge_finding {
	enum judge_level level;
	const char *text;    /* "BIRD is away" */
	const char *detail;  /* in somebody else's words, or "" */
	const char *command; /* that says more or mends it */
	bool whole;	     /* the detail belongs into the first line, too */
};

typedef void judge_say_fn(void *userdata, const struct judge_finding *finding);
/* Calls `say` for each; texts are valid until it returns. */
void judge_bird(const json_t *document, judge_say_fn *say, void *userdata);

/* The worst of the document: 0 to 2, the exit code for monitoring, too. */
enum judge_level judge_document(const json_t *document);

#endif
