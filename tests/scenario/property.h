#ifndef REDSHANK_TESTS_PROPERTY_H
#define REDSHANK_TESTS_PROPERTY_H
/*
 * What the property tests share: numbers from a seed, many sequences in a run, and a violation that
 * tells how to see it again.
 *
 * A property program defines `property_program`; property.c brings main(). Every sequence has a
 * seed of its own, so that one line is enough to replay it:
 *	PROGRAM [--seed N|random] [--count N] [--sequence N] [--seeds FILE]
 * --seed (or REDSHANK_SEED) starts the run's row of sequences, --count (or REDSHANK_SEQUENCES) is
 * how many, --seeds names a file of sequences that once failed and always run first, --sequence
 * runs one and prints its facts.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct property_program {
	const char *name; /* as in the file of seeds */
	/* Runs one sequence; returns how many decisions it checked. */
	uint64_t (*sequence)(uint64_t seed);
};

extern const struct property_program property_program;

/* 0 to n - 1; n > 0. */
unsigned random_below(uint64_t *state, unsigned n);
/* True `percent` times in a hundred. */
bool random_chance(uint64_t *state, unsigned percent);

/* Prints a line of the sequence's story when it is being replayed. */
void property_trace(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Ends the program with status 1, after replaying the sequence with its story printed. `number` is
 * the invariant's in docs/invariants.md. */
_Noreturn void property_violated(const char *number, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#define property_require(number, condition, ...)                  \
	do {                                                      \
		if (!(condition))                                 \
			property_violated((number), __VA_ARGS__); \
	} while (0)

#endif
