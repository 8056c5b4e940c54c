#ifndef REDSHANK_PROBES_SECRETS_H
#define REDSHANK_PROBES_SECRETS_H
/*
 * What a check knows and nobody should read in its reason. A service may answer with the request's
 * own headers, a command may print its environment or a shell's line: the reason stands in the log,
 * the status, on the page and in events, for many people who may not read the configuration.
 */
#include "agent/config/schema.h"

/*
 * Puts *** in place of each value of `headers`, and of each variable of `env` whose name sounds
 * like a secret's (secrets_is_name). What stands behind the value's first space or equals sign
 * counts as well ("Bearer TOKEN", "session=TOKEN"), and so does a part cut off after 8 bytes or
 * more. Values of less than 6 bytes are left. In place; the text never grows. Takes no memory.
 */
void secrets_mask(const struct schema *schema, const void *settings, char *text);

/* Puts *** in place of user and password of each URL in the text. In place, and never longer. */
void secrets_mask_urls(char *text);

/* A check with headers, with something to send, or with a variable whose name sounds like a
 * secret's.
 */
bool secrets_are_in(const struct schema *schema, const void *settings);

/* "API_TOKEN", "db-password": true. In whatever case. */
bool secrets_is_name(const char *name);

#endif
