#ifndef REDSHANK_AGENT_H
#define REDSHANK_AGENT_H
/*
 * The one glue: facts from probes, addresses and BIRD go into the engine, what it wants goes out to
 * BIRD, what is true goes to the log and the status socket. Signals: HUP reload, TERM and INT stop,
 * USR2 stop and leave BIRD alone, USR1 check now.
 */
#include "agent/config/config.h"

/*
 * Runs until told to stop. `config` is taken over; a reload reads `config_path` again. 0 after a
 * clean stop, else a negative errno that was logged.
 */
int agent_run(const char *config_path, struct config *config);

#endif
