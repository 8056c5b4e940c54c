#ifndef REDSHANK_BIRD_NAMES_H
#define REDSHANK_BIRD_NAMES_H
/*
 * Names of our protocols in BIRD: 'redshank:SERVICE:ADDRESS', with '/LENGTH' written as '-LENGTH'
 * when it is not a host's, and ':last' for the last-resort twin; 'redshank:SERVICE:v4' and ':v6'
 * for a service of more than NAMES_SINGLE_MAX prefixes. Over 64 characters (SYM_MAX_LEN of BIRD's
 * conf/conf.h) ADDRESS and LENGTH together become 8 hex digits of their hash.
 *
 * What BIRD 2.0.12 takes as a symbol in apostrophes, tried with `bird -p` (conf/cf-lex.l):
 * [A-Za-z0-9_.:-], at most 64 of them. '/' is refused ("Invalid character in apostrophed symbol"),
 * as is a 65th character ("Symbol too long"). Letter case counts. Keywords and 32 hex digits alone
 * are read as something else even there; a name with ':' in it never is one. No accepted service
 * name ([A-Za-z0-9][A-Za-z0-9_-]{0,31}) holds a ':', so two services never meet in one name, and
 * `*` and `?` cannot occur in one.
 *
 * Unique within a service as well, but for two addresses whose hashes are equal (32 bits, and only
 * where names are too long): fragment_protocols() refuses such a service.
 */
#include "agent/base/address.h"

#define NAMES_MAX 65	     /* with the NUL */
#define NAMES_SINGLE_MAX 256 /* prefixes that have a protocol each */
#define NAMES_SERVICE_MAX 32 /* characters of a service's name */

/* All return buf. `service` is asserted to be no longer than NAMES_SERVICE_MAX. */
const char *names_protocol(
	char buf[NAMES_MAX], const char *service, const struct prefix *prefix, bool last_resort);
const char *names_family_protocol(
	char buf[NAMES_MAX], const char *service, enum address_family family, bool last_resort);

/* `redshank:SERVICE:*`, to be put in double quotes. */
const char *names_pattern(char buf[NAMES_MAX], const char *service);

/* True for a name of ours: 'redshank:SERVICE:' and something behind it. */
bool names_is_ours(const char *name);

/* Is it a last-resort twin's? */
bool names_is_last(const char *name);
/* The prefix of such a protocol, or of its twin. False: the name does not tell (a family's,
 * hashed). */
bool names_prefix(const char *name, struct prefix *ret);

/* True for [A-Za-z0-9][A-Za-z0-9_-]{0,31} in the first n bytes. */
bool names_service_is_valid(const char *service, size_t n);

#endif
