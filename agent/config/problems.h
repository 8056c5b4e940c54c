#ifndef REDSHANK_CONFIG_PROBLEMS_H
#define REDSHANK_CONFIG_PROBLEMS_H
/*
 * What is wrong with a configuration, in the one form that people see:
 *   FILE: PATH: got VALUE; expected EXPECTED[; HINT]
 *   FILE:LINE:COLUMN: syntax text
 * Every problem is built here, so that each says where, what came and what was expected.
 */
#include <stdbool.h>
#include <stddef.h>

enum problem_level {
	PROBLEM_WARNING,
	PROBLEM_ERROR,
};

struct problem {
	enum problem_level level;
	char *text; /* one line, without a newline */
};

struct problems {
	struct problem *items; /* owned */
	size_t n;
	size_t n_errors;
	size_t n_dropped; /* past PROBLEMS_MAX */
};

#define PROBLEMS_MAX 200

void problems_init(struct problems *p);
void problems_done(struct problems *p);
/* Adds one line. Past PROBLEMS_MAX, and without memory, it only counts. */
void problems_add(struct problems *p, enum problem_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
