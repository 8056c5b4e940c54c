#ifndef REDSHANK_AGENT_CORE_DUMP_H
#define REDSHANK_AGENT_CORE_DUMP_H
/* What may be written of the agent's memory when it crashes. */
#include "agent/config/config.h"

/* Called with each configuration before it is used. */
void core_dump_allow(const struct config *config);

#endif
