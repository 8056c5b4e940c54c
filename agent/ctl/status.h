#ifndef REDSHANK_CTL_STATUS_H
#define REDSHANK_CTL_STATUS_H
/* What `redshankctl status` shows of the document of GET /v1/status (docs/status.md). */
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "agent/base/error.h"
#include "agent/ctl/text.h"

struct status_view {
	bool colours;
	bool terminal; /* the first line is wrapped there only, so that `head -1` has all of it */
	int64_t now;   /* seconds since the epoch: ages are counted to it */
};

/* Parses the body of an answer. Owned by the caller. NULL with the text where it is not a document
 * of a form that is known here. */
json_t *status_parse(const char *body, size_t length, struct error *ret_error);

/*
 * Leaves of the document what is called `what`: a service, or the prefixes that hold an address or
 * are it. 0; -ENOENT, with a text that names what there is, and the document untouched.
 */
int status_select(json_t *document, const char *what, struct error *ret_error);

/* For people: whether there is trouble, then BIRD's, then a block for each service. */
void status_print(FILE *out, const json_t *document, const struct status_view *view);

/* Its first line: "All is well", or what is not and what says more (verdict.c). */
void status_print_verdict(FILE *out, const json_t *document, const struct status_view *view);

/* Parts of it that explain shows, too: what is wrong with BIRD or the agent, the colour of a word
 * of the document, a cell with the newest outcomes of a check. */
void status_print_troubles(FILE *out, const json_t *document, const struct status_view *view);
enum text_colour status_word_colour(const char *word);
#define STATUS_OUTCOMES_MAX 32
/* The same as text; heap. */
char *status_outcomes(const json_t *check, size_t most);
/* "drained by root (uid 0, pid 7) until 2026-...: maintenance": the reason of a prefix, and who. */
void status_say_reason(const json_t *prefix, char *buf, size_t size);
void status_add_outcomes(struct text_table *t, const json_t *check, size_t most);

/*
 * For monitoring: one line as the Monitoring Plugins Development Guidelines have it, and the exit
 * code 0 to 3. redshankctl(1) says what makes which.
 */
int status_plugin(FILE *out, const json_t *document);
/* Text for such a line, for the caller to free: '|' would begin the performance data. */
char *plugin_escape(const char *text);

/* A line about the service's repair, where it has one and something is going on, or `always`.
 * `now_ms`: of the document. repair_say.c. */
void status_print_repair(FILE *out, const json_t *service, const struct status_view *view,
	int64_t now_ms, unsigned indent, bool always);

/* A line about this server's load, where it is measured. load_say.c. */
void status_print_load(FILE *out, const json_t *document, const struct status_view *view);
/* The cell of what a prefix has of it. */
void status_add_load(struct text_table *t, const json_t *prefix);

/* A line about shedding and one for each neighbour that does not report, where there are
 * neighbours; and the reason of a prefix that is shed. shed_say.c. */
void status_print_shed(FILE *out, const json_t *document, const struct status_view *view);
void status_say_shed(const json_t *prefix, char *buf, size_t size);

#endif
