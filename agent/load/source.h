#ifndef REDSHANK_LOAD_SOURCE_H
#define REDSHANK_LOAD_SOURCE_H
/* The text that a service's numbers stand in, fetched: a file, the output of a command, or a page.
 * Bounded in size (NUMBER_TEXT_MAX) and time (`timeout`). */
#include <stddef.h>
#include <systemd/sd-event.h>

#include "agent/config/config.h"

struct source;

/* What came: `text` with a NUL behind its `length` bytes, which lives until the next fetch; or NULL
 * and why not. */
typedef void (*source_done_fn)(void *userdata, const char *text, size_t length, const char *error);

/* `config` is borrowed, and outlives the result. Heap. 0 or negative errno. */
int source_new(struct source **ret, sd_event *event, const struct config_source *config,
	source_done_fn done, void *userdata);
/* Drops what is under way. Not from inside `done`. NULL is fine. */
void source_free(struct source *s);

/* Fetches: `done` is called once, now or from the loop. Nothing where the last is under way. */
void source_fetch(struct source *s);

#endif
