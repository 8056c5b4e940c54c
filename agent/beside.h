#ifndef REDSHANK_BESIDE_H
#define REDSHANK_BESIDE_H
/*
 * What `redshankd --check` has to say about the BIRD that runs on this server: one look, by
 * agent/bird/advise.h. It only reads (BIRD's `restrict` is on), and where no BIRD answers it says
 * nothing, since a configuration may be checked anywhere.
 */
#include <stdio.h>

#include "agent/config/config.h"

/* Prints the section to `out`. At most BESIDE_DEADLINE_MS. */
void beside_print(const struct config *config, FILE *out);

#define BESIDE_DEADLINE_MS 3000

#endif
