#ifndef REDSHANK_CTL_STATUS_H
#define REDSHANK_CTL_STATUS_H
/* What `redshankctl status` shows of the document of GET /v1/status (docs/status.md). */
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "agent/base/error.h"

struct status_view {
	bool colours;
	int64_t now; /* seconds since the epoch: ages are counted to it */
};

/* Parses the body of an answer. Owned by the caller. NULL with the text where it is not a document
 * of a form that is known here. */
json_t *status_parse(const char *body, size_t length, struct error *ret_error);

/*
 * Leaves of the document what is called `what`: a service, or the prefixes that hold an address or
 * are it. 0; -ENOENT, with a text that names what there is, and the document untouched.
 */
int status_select(json_t *document, const char *what, struct error *ret_error);

/* For people: troubles first, then a block for each service. */
void status_print(FILE *out, const json_t *document, const struct status_view *view);

/*
 * For monitoring: one line as the Monitoring Plugins Development Guidelines have it, and the exit
 * code 0 to 3. redshankctl(1) says what makes which.
 */
int status_plugin(FILE *out, const json_t *document);

#endif
