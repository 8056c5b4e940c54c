#ifndef REDSHANK_AGENT_REPAIR_KEEP_H
#define REDSHANK_AGENT_REPAIR_KEEP_H
/*
 * The attempts at repair outlive the agent, so that one which crashes in a loop restarts a unit no
 * more often than one that lives: at most `limit` times `per`. They lie beside the fragments, for
 * this boot alone:
 *
 *   redshank-restarts 1 BOOT
 *   dns nsd.service 812000000 830000000
 *
 * times in microseconds of CLOCK_BOOTTIME. Whatever is not understood counts for nothing.
 */
#include "agent/repair.h"

#define REPAIR_KEEP_FILE ".restarts"

/* Writes them into the folder. Never fails: what cannot be written is said, and the restart is not
 * held up. */
void repair_keep(const struct repairs *r, const struct config *config, const char *where);
/* Reads them into `r`, which was just made. */
void repair_recall(struct repairs *r, const char *where);

#endif
