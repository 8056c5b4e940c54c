/*
 * The loop and the report of the property tests; see property.h.
 *
 * Sequences run without a word. When one fails it runs a second time, with its facts printed, and
 * ends at the same violation: the run is a function of the seed and nothing else. A failed assert
 * or a sanitizer's finding names the sequence, too.
 */
#include "tests/scenario/property.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "tests/scenario/splitmix.h"

#define DEFAULT_SEED 20261130
#define DEFAULT_COUNT 100000
#define EXIT_USAGE 2

static uint64_t current_sequence;
static bool tracing;

unsigned random_below(uint64_t *state, unsigned n)
{
	return (unsigned)(splitmix64(state) % n);
}

bool random_chance(uint64_t *state, unsigned percent)
{
	return random_below(state, 100) < percent;
}

void property_trace(const char *format, ...)
{
	va_list args;

	if (!tracing)
		return;
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
}

void property_violated(const char *number, const char *format, ...)
{
	va_list args;

	if (!tracing) {
		tracing = true;
		fprintf(stderr, "sequence 0x%016llx:\n", (unsigned long long)current_sequence);
		(void)property_program.sequence(current_sequence);
		fprintf(stderr, "not seen again: the sequence is no function of its seed\n");
	}
	fprintf(stderr, "VIOLATED %s: ", number);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "\nreplay: property-core-%s --sequence 0x%016llx\n", property_program.name,
		(unsigned long long)current_sequence);
	(void)fflush(stderr);
	_exit(EXIT_FAILURE);
}

/* Async-signal-safe: an assert or a sanitizer ends the program while a sequence runs. */
static void say_sequence(void)
{
	char line[] = "\nin sequence 0x0000000000000000\n";
	char *digit = line + sizeof(line) - 3;

	for (uint64_t n = current_sequence; n > 0; n >>= 4)
		*digit-- = "0123456789abcdef"[n & 15];
	(void)!write(STDERR_FILENO, line, sizeof(line) - 1);
}

static void on_abort(int signo)
{
	say_sequence();
	(void)signal(signo, SIG_DFL);
}

/* Of sanitizer/common_interface_defs.h; absent without a sanitizer. */
extern void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static uint64_t number_of(const char *text)
{
	char *end;
	uint64_t n;

	errno = 0;
	n = strtoull(text, &end, 0);
	if (errno != 0 || end == text || *end != '\0') {
		fprintf(stderr, "not a number: '%s'\n", text);
		exit(EXIT_USAGE);
	}
	return n;
}

static uint64_t seed_of(const char *text)
{
	uint64_t seed;

	if (strcmp(text, "random") != 0)
		return number_of(text);
	if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
		abort();
	return seed;
}

static uint64_t run_sequence(uint64_t sequence)
{
	current_sequence = sequence;
	return property_program.sequence(sequence);
}

/* Lines "NAME 0xSEED what it once found"; '#' starts a comment. */
static void run_seeds(const char *path)
{
	FILE *file = fopen(path, "re");
	char line[512], name[32], seed[32];
	unsigned n = 0;

	if (!file) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		exit(EXIT_USAGE);
	}
	while (fgets(line, sizeof(line), file)) {
		if (line[0] == '#' || sscanf(line, "%31s %31s", name, seed) != 2)
			continue;
		if (strcmp(name, property_program.name) != 0)
			continue;
		(void)run_sequence(number_of(seed));
		n++;
	}
	(void)fclose(file);
	printf("%s: %u sequences of %s hold\n", property_program.name, n, path);
}

static void run_many(uint64_t seed, uint64_t count)
{
	struct timespec start, end;
	uint64_t row = seed, decisions = 0;
	double seconds;

	printf("%s: seed %llu, %llu sequences\n", property_program.name, (unsigned long long)seed,
		(unsigned long long)count);
	(void)fflush(stdout);
	(void)clock_gettime(CLOCK_MONOTONIC, &start);
	for (uint64_t i = 0; i < count; i++)
		decisions += run_sequence(splitmix64(&row));
	(void)clock_gettime(CLOCK_MONOTONIC, &end);
	seconds = (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) / 1e9;
	printf("%s: %llu decisions checked in %.1f s, %.0f sequences a second\n",
		property_program.name, (unsigned long long)decisions, seconds,
		(double)count / (seconds > 0 ? seconds : 1));
}

static const char *environment(const char *name, const char *fallback)
{
	const char *value = getenv(name);

	return value && *value ? value : fallback;
}

int main(int argc, char **argv)
{
	const char *seed = environment("REDSHANK_SEED", NULL);
	const char *count = environment("REDSHANK_SEQUENCES", NULL);
	const char *seeds = NULL, *sequence = NULL;

	for (int i = 1; i < argc; i += 2) {
		const char *value = i + 1 < argc ? argv[i + 1] : NULL;

		if (value && strcmp(argv[i], "--seed") == 0)
			seed = value;
		else if (value && strcmp(argv[i], "--count") == 0)
			count = value;
		else if (value && strcmp(argv[i], "--sequence") == 0)
			sequence = value;
		else if (value && strcmp(argv[i], "--seeds") == 0)
			seeds = value;
		else {
			fprintf(stderr,
				"usage: %s [--seed N|random] [--count N] [--sequence N] "
				"[--seeds FILE]\n",
				argv[0]);
			return EXIT_USAGE;
		}
	}
	(void)signal(SIGABRT, on_abort);
	if (__sanitizer_set_death_callback)
		__sanitizer_set_death_callback(say_sequence);

	if (sequence) {
		tracing = true;
		(void)run_sequence(number_of(sequence));
		return EXIT_SUCCESS;
	}
	if (seeds)
		run_seeds(seeds);
	run_many(seed ? seed_of(seed) : DEFAULT_SEED, count ? number_of(count) : DEFAULT_COUNT);
	return EXIT_SUCCESS;
}
