#ifndef REDSHANK_CONFIG_SYNTAX_H
#define REDSHANK_CONFIG_SYNTAX_H
/* JSON text to a tree, with syntax errors as FILE:LINE:COLUMN. For sources.c. */
#include <jansson.h>

#include "agent/config/problems.h"

/* *ret is an object, owned by the caller. 0, -EINVAL with exactly one problem added, -ENOMEM. Lines
 * and columns count from 1, columns in characters. */
int syntax_parse(const char *name, const char *text, size_t length, unsigned depth_max,
	json_t **ret, struct problems *problems);

#endif
