/*
 * libFuzzer target of core/: the property tests of tests/scenario, with a fuzzer in the place of
 * their random numbers. One program each for engine, plan and repair (CMakeLists.txt); the
 * invariants are those of docs/invariants.md, held by the same second opinion.
 *
 * A number takes one byte of the input. When the input is used up, numbers come from a row that is
 * always the same, so that every input is a whole sequence.
 */
#include <stdarg.h>
#include <stdio.h>

#include "tests/fuzz/fuzz.h"
#include "tests/scenario/property.h"
#include "tests/scenario/splitmix.h"

static const uint8_t *left;
static size_t n_left;

unsigned random_below(uint64_t *state, unsigned n)
{
	unsigned value;

	if (n_left == 0)
		return (unsigned)(splitmix64(state) % n);
	value = *left++;
	n_left--;
	if (n > 256 && n_left > 0) {
		value = value << 8 | *left++;
		n_left--;
	}
	return value % n;
}

bool random_chance(uint64_t *state, unsigned percent)
{
	return random_below(state, 100) < percent;
}

void property_trace(const char *format, ...)
{
	static int wanted = -1;
	va_list args;

	if (wanted < 0)
		wanted = getenv("FUZZ_TRACE") != NULL;
	if (!wanted)
		return;
	va_start(args, format);
	(void)vfprintf(stderr, format, args);
	va_end(args);
}

void property_violated(const char *number, const char *format, ...)
{
	va_list args;

	(void)fprintf(stderr, "VIOLATED %s: ", number);
	va_start(args, format);
	(void)vfprintf(stderr, format, args);
	va_end(args);
	(void)fprintf(stderr, "\nwith FUZZ_TRACE=1 the input tells its story\n");
	abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	left = data;
	n_left = size;
	(void)property_program.sequence(1);
	return 0;
}
