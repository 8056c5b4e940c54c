#ifndef REDSHANK_VIEW_H
#define REDSHANK_VIEW_H
/* A configuration, as the engine takes it. */
#include "agent/config/config.h"
#include "agent/core/engine.h"

/* engine_prepare() with what `config` says, `floor` only with `promised`: that somebody can promise
 * to stay. 0 or -ENOMEM. */
int view_prepare(const struct config *config, bool promised, struct engine_change **ret);

#endif
