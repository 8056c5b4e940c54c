#ifndef REDSHANK_CTL_IMPORT_H
#define REDSHANK_CTL_IMPORT_H
/*
 * The configurations of programs that people come from, as Redshank's: `redshankctl import`.
 * docs/import.md says what becomes of each of their settings.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

enum import_peer {
	IMPORT_AHC, /* anycast-healthchecker */
	IMPORT_EXABGP,
	IMPORT_BIRDWATCHER,
};

/* A file as it was read. `text` is followed by a NUL and may hold any bytes. */
struct import_text {
	const char *name;
	const char *text;
	size_t length;
};

/* True for "ahc", "exabgp" and "birdwatcher" (and "anycast-healthchecker", its whole name). */
bool import_peer_parse(const char *word, enum import_peer *ret);

/*
 * Converts files that were read already, and opens no other. What has no equivalent is told on
 * `err`, a line each, FILE:LINE: TEXT. The configuration, owned by the caller; NULL where a file
 * was not understood (FILE:LINE: error: TEXT) or nothing could be converted.
 */
json_t *import_convert(enum import_peer peer, const struct import_text *texts, size_t n, FILE *err);

/*
 * The command: reads the files (for ahc also folders, whose *.conf count), writes the
 * configuration to `out`. Exit code 0; 1 when a file cannot be read or understood, and then `out`
 * gets nothing.
 */
int import_command(enum import_peer peer, size_t n, char **paths, FILE *out, FILE *err);

#endif
