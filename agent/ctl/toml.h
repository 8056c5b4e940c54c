#ifndef REDSHANK_CTL_TOML_H
#define REDSHANK_CTL_TOML_H
/*
 * A reader of the part of TOML 1.0 that birdwatcher's configurations are written in: comments,
 * tables, bare, quoted and dotted keys, strings on one line, integers, booleans, and lists of
 * strings over any number of lines. Everything else of the language (dates, fractions, strings and
 * tables of other forms) is refused by its name and line, not misread.
 */
#include <jansson.h>
#include <stddef.h>

#include "agent/base/error.h"

#define TOML_DEPTH_MAX 8 /* parts of a key */

/*
 * The tree, owned by the caller: a table is {"line": N, "table": {...}}, a value {"line": N,
 * "value": V}. NULL with the error and *ret_line set. `text` is UTF-8, ends with a NUL, and has
 * none inside.
 */
json_t *toml_parse(const char *text, unsigned *ret_line, struct error *ret_error);

#endif
