#ifndef REDSHANK_WATCHED_H
#define REDSHANK_WATCHED_H
/*
 * The systemd units that a configuration names: what its checks watch, and what it restarts. For
 * `redshankd --units`, from which systemd/redshank-generator orders the agent after them.
 */
#include <stdio.h>

#include "agent/config/config.h"

/* Prints them to `out`, one a line, each once. */
void watched_print(const struct config *config, FILE *out);

#endif
