#ifndef REDSHANK_VIEW_H
#define REDSHANK_VIEW_H
/* A configuration, as the engine takes it. */
#include "agent/config/config.h"
#include "agent/core/engine.h"

/* engine_prepare() with what `config` says. 0 or -ENOMEM. */
int view_prepare(const struct config *config, struct engine_change **ret);

#endif
