#ifndef REDSHANK_STATUS_JUDGED_H
#define REDSHANK_STATUS_JUDGED_H
/*
 * The judgement of what a status document says, made by the same code that judges for redshankctl
 * and for monitoring (agent/judge), so that the page never says anything else.
 */
#include "agent/judge/verdict.h"
#include "agent/status/document_private.h"

struct judged {
	json_t *document; /* what of it the judgement reads; NULL: there is no memory for one */
};

/* Takes in everything but the services. Never fails: without memory, nothing is judged. */
void judged_init(struct judged *j, const struct document_facts *facts);
void judged_done(struct judged *j);
/* Takes in a service without what is in it. Borrowed; NULL: not judged. */
json_t *judged_add_service(struct judged *j, const struct document_facts *facts, size_t index);
/* Takes in what is in it, one by one, before anything of that service is put. */
void judged_add_prefix(
	json_t *its, const struct document_facts *facts, size_t service, size_t index);
void judged_add_check(
	json_t *its, const struct document_facts *facts, size_t service, size_t index);

/* The key `level` of a service, of its prefix and of its check; null where it is not judged. */
void judged_put_service(struct judged *j, struct json_writer *w, json_t *service);
void judged_put_prefix(struct judged *j, struct json_writer *w, json_t *service, const char *name);
void judged_put_check(struct judged *j, struct json_writer *w, json_t *service, const char *name);
/* Lets go of one service, since to let go of many takes long. False: there is none any more. */
bool judged_release(struct judged *j);
/* The key `verdict`: after the last service. */
void judged_put_verdict(struct judged *j, struct json_writer *w);

#endif
