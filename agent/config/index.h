#ifndef REDSHANK_CONFIG_INDEX_H
#define REDSHANK_CONFIG_INDEX_H
/* Prefixes in order, to find the same one written twice and to look one up. For config/. */
#include "agent/config/config.h"
#include "agent/config/report.h"

struct index_entry {
	struct prefix prefix;
	const char *owner; /* the service or node that has it; borrowed */
	const char *key;   /* as the file writes it; borrowed */
	struct config_prefix *target;
	size_t order; /* of index_add() */
};

struct index {
	struct index_entry *entries;
	size_t n, allocated;
};

/* False without memory, which is noted in the report. */
bool index_add(struct index *ix, struct report *r, const struct index_entry *entry);
/* Before duplicates are looked for or anything is found. */
void index_sort(struct index *ix);
const struct index_entry *index_find(const struct index *ix, const struct prefix *prefix);
void index_done(struct index *ix);
#define _cleanup_index_ _cleanup_(index_done)

/*
 * Reads a key as a prefix. False, and reported with the prefix that was probably meant, where it is
 * none or one that BIRD would not announce.
 */
bool index_parse_key(struct report *r, const struct path *path, struct prefix *ret);

#endif
