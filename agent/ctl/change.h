#ifndef REDSHANK_CTL_CHANGE_H
#define REDSHANK_CTL_CHANGE_H
/* The commands that change something: their words made into the body of a POST, and the answer
 * told. */
#include <stdbool.h>
#include <stdio.h>

#include "agent/base/error.h"
#include "agent/ctl/command.h"

/* As the command line has them; NULL: not given. */
struct change_options {
	bool all;	    /* --all */
	bool reset;	    /* --reset */
	bool force;	    /* --force */
	const char *reason; /* --reason TEXT */
	const char *span;   /* --for D */
};

static inline bool change_options_given(const struct change_options *o)
{
	return o->all || o->reset || o->force || o->reason || o->span;
}

/*
 * The JSON body for `command` ("drain", ...), which is one of this module's: heap, owned by the
 * caller. `name` and `number` are the words behind it, or NULL. NULL with the text where these do
 * not go with the command.
 */
char *change_body(const char *command, const char *name, const char *number,
	const struct change_options *options, struct error *ret_error);

/*
 * Tells what the agent answered (HTTP status and body): what was done on `out`, warnings and
 * refusals on `err`; with `json` only the answer, as it is, on `out`. The exit code.
 */
enum command_exit change_tell(
	FILE *out, FILE *err, bool json, long status, const char *body, size_t n);

#endif
