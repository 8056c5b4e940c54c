#ifndef REDSHANK_CTL_IMPORT_PARTS_H
#define REDSHANK_CTL_IMPORT_PARTS_H
/*
 * What the three converters share: remarks with their place, and the services that are being built.
 * For agent/ctl/import*.c. No function fails for want of memory: it exits with a message, as
 * everywhere in ctl/.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "agent/base/cleanup.h"

#define IMPORT_FILE_MAX (1U << 20) /* bytes of one file */
#define IMPORT_FILES_MAX 1000	   /* of one run */
#define IMPORT_ARGUMENTS_MAX 256   /* of a command */
#define IMPORT_STRING_MAX 4096	   /* bytes of one of them */
#define IMPORT_TIME_MIN_MS 10	   /* of an interval or a timeout */
#define IMPORT_TIME_MAX_MS 3600000
#define IMPORT_WEIGHT_MAX 65535

/* A place in a file, for people. */
struct import_where {
	const char *file;
	unsigned line;
};

struct import_file {
	char *name; /* owned, as everything here */
	char *text; /* valid UTF-8 without a NUL inside */
	size_t length;
	bool used; /* read on behalf of another one: not converted by itself */
};

struct import {
	FILE *err;
	bool sealed; /* no further file may be opened */
	struct import_file **files;
	size_t n_files;
	json_t *services;
	json_t *owners; /* prefixes to the names of their services */
	unsigned n_errors, n_remarks;
	size_t n_prefixes, n_checks;
	json_t *told; /* what import_remark_once() has said */
};

void import_init(struct import *im, FILE *err);
void import_done(struct import *im);

/* What has no equivalent, or an equivalent that does something else. */
void import_remark(struct import *im, struct import_where where, const char *format, ...)
	_printf_(3, 4);
/* The same, unless it was said already, wherever that was. */
void import_remark_once(struct import *im, struct import_where where, const char *format, ...)
	_printf_(3, 4);
/* What makes the run fail. */
void import_error(struct import *im, struct import_where where, const char *format, ...)
	_printf_(3, 4);

/* Takes a file in: it must be UTF-8 of at most IMPORT_FILE_MAX bytes. NULL, with the error told. */
struct import_file *import_add_text(
	struct import *im, const char *name, const char *text, size_t length);
/* Reads a regular file (import.c). NULL, with the error told at `where` (line 0: of no file). */
struct import_file *import_read(struct import *im, const char *path, struct import_where where);

/* A new service by the nearest name that is allowed and free; borrowed. NULL, and told, past the
 * limit. */
json_t *import_service(struct import *im, struct import_where where, const char *wanted);

/* How import_prefix() takes what is no plain prefix. */
enum import_host_bits {
	IMPORT_HOST_BITS_REFUSED,
	IMPORT_HOST_BITS_DROPPED, /* with a remark */
};

/*
 * Adds a prefix to a service; without a length it is a host's. `more` (owned by the caller, may be
 * NULL) are further keys beside the weight, which is cut to what is possible, with a remark. False,
 * and told, where it is no prefix, is another service's, or BIRD would never announce it.
 */
bool import_prefix(struct import *im, struct import_where where, json_t *service, const char *text,
	enum import_host_bits host_bits, int64_t weight, json_t *more);

struct import_timing {
	uint64_t interval_ms, fast_interval_ms, timeout_ms;
	bool timeout_written; /* not a default of the peer's */
	int64_t rise, fall;
};

/* Adds an exec check; `command` is a list, and is taken over (NULL: nothing is added). What does
 * not fit Redshank's ranges is changed, with a remark. */
void import_check(struct import *im, struct import_where where, json_t *service, const char *name,
	json_t *command, struct import_timing timing);

/*
 * Makes a list that is executed as it stands out of the words of one that was looked for in PATH.
 * Takes `words` over; NULL, and told, where there are none, too many or too long ones.
 */
json_t *import_program(struct import *im, struct import_where where, json_t *words);

/* Seconds with a fraction, "0.5", to milliseconds. False: not of this form. */
bool import_seconds(const char *text, uint64_t *ret_ms);
/* A whole number, -10^9 to 10^9. False: not of this form. */
bool import_integer(const char *text, int64_t *ret);
/* "1500ms", "10s", "5m"; returns buf. */
#define IMPORT_DURATION_MAX 24
const char *import_duration(uint64_t ms, char buf[IMPORT_DURATION_MAX]);

/* json_string() and the like, or an exit when there is no memory. */
json_t *import_json(json_t *value);
/* Sets a key; takes the value over. */
void import_set(json_t *object, const char *key, json_t *value);
void import_append(json_t *array, json_t *value);
/* Room for one more behind n items, where this was asked for each of them. Returns the new place.
 */
void *import_grow(void *items, size_t n, size_t size);
/* n bytes as a string of their own. */
char *import_copy(const char *text, size_t n);

void import_ahc(struct import *im);
void import_exabgp(struct import *im);
void import_birdwatcher(struct import *im);

#endif
