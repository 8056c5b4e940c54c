#ifndef REDSHANK_BASE_ERROR_H
#define REDSHANK_BASE_ERROR_H
/*
 * The text of an error, built once on the way up and logged once at the top. Functions that can
 * fail in ways worth explaining take a `struct error *ret_error` beside their negative errno; it
 * may be NULL, and is untouched on success.
 */
#include "agent/base/cleanup.h"

#define ERROR_TEXT_MAX 512

struct error {
	char text[ERROR_TEXT_MAX];
};

/* Sets the text (cut at ERROR_TEXT_MAX) and returns -errnum, so that `return error_set(e, EINVAL,
 * ...)` reads well. errnum > 0. */
int error_set(struct error *e, int errnum, const char *format, ...) _printf_(3, 4);

/* As error_set, with ": strerror(errnum)" behind the text. */
int error_set_errno(struct error *e, int errnum, const char *format, ...) _printf_(3, 4);

/* Puts "PREFIX: " in front of the text that is there. */
void error_prefix(struct error *e, const char *format, ...) _printf_(2, 3);

#endif
