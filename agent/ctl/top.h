#ifndef REDSHANK_CTL_TOP_H
#define REDSHANK_CTL_TOP_H
/* `redshankctl top`: the status, live. */
#include <stdbool.h>

#include "agent/base/error.h"

/*
 * Shows the status on the terminal that standard output is, anew each second, until q or a signal.
 * 0; or a negative errno with the text, before anything was shown: -ENOTTY where standard output is
 * no terminal, what fetch_get() says where no agent answers. Restores the terminal whatever
 * happens.
 */
int top_run(const char *socket_path, bool colours, struct error *ret_error);

/*
 * For programs: the status document as one line of JSON each second, or an object with `error`
 * where there is none. 0 or a negative errno with the text when nobody reads it any more.
 */
int top_run_json(const char *socket_path, struct error *ret_error);

#endif
