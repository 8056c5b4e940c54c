#ifndef REDSHANK_BIRD_NAMES_H
#define REDSHANK_BIRD_NAMES_H
/*
 * Names of our protocols in BIRD: 'redshank:SERVICE:ADDRESS', with '/LENGTH' written as '-LENGTH'
 * when it is not a host's ('/' is refused by BIRD even quoted, cases A09), and ':last' for the
 * last-resort twin; 'redshank:SERVICE:v4' and ':v6' for a service of more than NAMES_SINGLE_MAX
 * prefixes. Over 64 characters (SYM_MAX_LEN of BIRD's conf/conf.h) the address becomes 8 hex digits
 * of its hash. Unique and stable for every accepted service name
 * ([A-Za-z0-9][A-Za-z0-9_-]{0,31}).
 */
#include "agent/base/address.h"

#define NAMES_MAX 65	     /* with the NUL */
#define NAMES_SINGLE_MAX 256 /* prefixes that have a protocol each */

const char *names_protocol(
	char buf[NAMES_MAX], const char *service, const struct prefix *prefix, bool last_resort);
const char *names_family_protocol(
	char buf[NAMES_MAX], const char *service, enum address_family family, bool last_resort);

/* `redshank:SERVICE:*`, to be put in double quotes. */
const char *names_pattern(char buf[NAMES_MAX], const char *service);

/* True for a name of ours. */
bool names_is_ours(const char *name);

#endif
