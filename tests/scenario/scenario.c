/*
 * Runs a story in virtual time: facts go into a real engine at the times that the file names, its
 * deadlines are kept to the microsecond, and what it wants is held against what the file expects.
 *
 *	configuration [coalesce TIME]         what runs from now on, up to `end`
 *	  service NAME [require all|any|N] [on_stop withdraw|keep] [floor N]
 *	      [slow_start FROM:STEPS:TIME] [leave TIME] [leave_weight N]
 *	      [hold_down PENALTY:SUPPRESS:REUSE:HALF-LIFE:MAX]
 *	    check NAME [every TIME] [fast TIME] [rise N] [fall N] [first_rise N] [shared yes|no]
 *	        [as IDENTITY]
 *	    prefix PREFIX [weight N] [weight_of_word yes|no] [address_check on|off]
 *	        [last_resort yes|no]
 *	end
 *	[at TIME] found PREFIX announce|demote|withdraw
 *	[at TIME] check SERVICE/CHECK good|bad|gone|unknown
 *	[at TIME] run SERVICE/CHECK OUTCOME after TIME   starts on its own schedule from now on,
 *	                                      and each run says OUTCOME that long after its start
 *	[at TIME] address PREFIX present|missing|unknown
 *	[at TIME] word PREFIX drained|forced|none
 *	[at TIME] spread TIME
 *	[at TIME] shed PREFIX none|withdraw|demote
 *	[at TIME] permit PREFIX
 *	[at TIME] freeze
 *	[at TIME] thaw
 *	[at TIME] stop
 *	[at TIME] expect PREFIX WANTED REASON [since TIME]
 *	[at TIME] expect check SERVICE/CHECK up|down|pending [decided|undecided]
 *	[at TIME] expect service SERVICE healthy|unhealthy|undecided
 *	[at TIME] expect weight PREFIX N
 *	[at TIME] expect graceful PREFIX yes|no
 *	[at TIME] expect permit PREFIX asked|none
 *	[at TIME] expect next SERVICE/CHECK TIME   when its next run starts, or did just now
 *	[at TIME] expect deadline TIME|never
 *	[at TIME] expect changes PREFIX N          how often it was announced or withdrawn so far
 *
 * Times count from the story's begin, as 1.5s or 200ms; without `at` it is the time of the line
 * before. '#' starts a comment. Exit 0; 1 with FILE:LINE and what came instead; 2 for a file that
 * makes no sense.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/engine.h"

#define WORDS_MAX 16
#define SERVICES_MAX 8
#define ITEMS_MAX 8 /* checks of a service, prefixes of a service */
#define NAME_LENGTH 48
/* The story's zero: the engine must not depend on a clock that starts at 0. */
#define BEGIN_US 1000000000U

struct service {
	char name[NAME_LENGTH];
	struct service_require require;
	bool keep_on_stop;
	unsigned floor;
	struct ramp_settings slow_start;
	struct damping_settings hold_down;
	struct leave_settings leave;
	char check_names[ITEMS_MAX][NAME_LENGTH];
	char identities[ITEMS_MAX][NAME_LENGTH];
	struct check_settings settings[ITEMS_MAX];
	size_t n_checks;
	char prefix_names[ITEMS_MAX][NAME_LENGTH];
	uint32_t weights[ITEMS_MAX];
	bool address_checks[ITEMS_MAX];
	bool last_resorts[ITEMS_MAX];
	bool weights_of_words[ITEMS_MAX];
	size_t n_prefixes;
};

struct configuration {
	uint64_t coalesce_ms;
	struct service services[SERVICES_MAX];
	size_t n_services;
};

/* A check that runs on its own schedule. */
struct run {
	char path[NAME_LENGTH * 2];
	enum check_outcome outcome;
	uint64_t takes_ms;
	bool under_way;
	enum check_outcome will_say;
	struct monotime started;
	struct monotime next; /* the end of the run under way, or the start of the next */
};

struct counter {
	char prefix[NAME_LENGTH];
	unsigned changes;
};

struct story {
	const char *path;
	unsigned line;
	struct engine *engine;
	struct configuration current;
	struct configuration read; /* between `configuration` and `end` */
	bool reading;
	struct monotime now;
	struct run runs[SERVICES_MAX * ITEMS_MAX];
	size_t n_runs;
	struct counter counters[SERVICES_MAX * ITEMS_MAX];
	size_t n_counters;
	unsigned n_expected;
};

_Noreturn static void end_with(const struct story *s, int status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void end_with(const struct story *s, int status, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s:%u: ", s->path, s->line);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	(void)fflush(stderr);
	_Exit(status);
}

#define nonsense(s, ...) end_with((s), 2, __VA_ARGS__)
#define unexpected(s, ...) end_with((s), 1, __VA_ARGS__)

/* ---- words ---- */

static uint64_t number_of(const struct story *s, const char *word)
{
	char *end;
	uint64_t n = strtoull(word, &end, 10);

	if (end == word || *end != '\0')
		nonsense(s, "'%s' is no number", word);
	return n;
}

static uint64_t duration_us(const struct story *s, const char *word)
{
	char *unit;
	double n = strtod(word, &unit);

	if (unit != word && n >= 0 && strcmp(unit, "s") == 0)
		return (uint64_t)(n * 1e6 + 0.5);
	if (unit != word && n >= 0 && strcmp(unit, "ms") == 0)
		return (uint64_t)(n * 1e3 + 0.5);
	nonsense(s, "'%s' is no time; expected such as 1.5s or 200ms", word);
}

static uint64_t duration_ms(const struct story *s, const char *word)
{
	return duration_us(s, word) / 1000;
}

static struct monotime time_of(const struct story *s, const char *word)
{
	return (struct monotime){BEGIN_US + duration_us(s, word)};
}

static double seconds_of(struct monotime t)
{
	return ((double)t.us - BEGIN_US) / 1e6;
}

/* The value among 0 to n - 1 whose name is `word`. */
static int word_of(const struct story *s, const char *word, const char *(*name)(int value), int n)
{
	for (int i = 0; i < n; i++)
		if (strcmp(name(i), word) == 0)
			return i;
	nonsense(s, "'%s' is not known here", word);
}

static const char *outcome_name(int value)
{
	return check_outcome_name((enum check_outcome)value);
}

static const char *wanted_name(int value)
{
	return prefix_wanted_name((enum prefix_wanted)value);
}

static const char *operator_word_name(int value)
{
	static const char *const names[] = {"none", "drained", "forced"};

	return names[value];
}

static const char *shed_name(int value)
{
	static const char *const names[] = {"none", "withdraw", "demote"};

	return names[value];
}

static const char *address_name(int value)
{
	static const char *const names[] = {"unknown", "present", "missing"};

	return names[value];
}

static void copy_name(const struct story *s, char *to, const char *from)
{
	if (strlen(from) >= NAME_LENGTH)
		nonsense(s, "'%s' is too long", from);
	strcpy(to, from);
}

/* ---- names ---- */

struct place {
	size_t service;
	size_t index;
};

static bool find_check(const struct story *s, const char *path, struct place *ret)
{
	for (size_t i = 0; i < s->current.n_services; i++) {
		const struct service *service = &s->current.services[i];
		size_t length = strlen(service->name);

		if (strncmp(path, service->name, length) != 0 || path[length] != '/')
			continue;
		for (size_t k = 0; k < service->n_checks; k++)
			if (strcmp(path + length + 1, service->check_names[k]) == 0) {
				*ret = (struct place){i, k};
				return true;
			}
	}
	return false;
}

static struct place check_at(const struct story *s, const char *path)
{
	struct place place;

	if (!find_check(s, path, &place))
		nonsense(s, "no check '%s' is configured", path);
	return place;
}

static struct place prefix_at(const struct story *s, const char *name)
{
	for (size_t i = 0; i < s->current.n_services; i++)
		for (size_t k = 0; k < s->current.services[i].n_prefixes; k++)
			if (strcmp(s->current.services[i].prefix_names[k], name) == 0)
				return (struct place){i, k};
	nonsense(s, "no prefix '%s' is configured", name);
}

static size_t service_at(const struct story *s, const char *name)
{
	for (size_t i = 0; i < s->current.n_services; i++)
		if (strcmp(s->current.services[i].name, name) == 0)
			return i;
	nonsense(s, "no service '%s' is configured", name);
}

static struct run *run_at(struct story *s, const char *path)
{
	for (size_t i = 0; i < s->n_runs; i++)
		if (strcmp(s->runs[i].path, path) == 0)
			return &s->runs[i];
	return NULL;
}

/* ---- time ---- */

static struct counter *counter_of(struct story *s, const char *prefix)
{
	for (size_t i = 0; i < s->n_counters; i++)
		if (strcmp(s->counters[i].prefix, prefix) == 0)
			return &s->counters[i];
	copy_name(s, s->counters[s->n_counters].prefix, prefix);
	return &s->counters[s->n_counters++];
}

static void decide(struct story *s)
{
	struct engine_transition t;

	(void)engine_decide(s->engine, s->now);
	while (engine_next_transition(s->engine, &t))
		if (t.kind == ENGINE_TRANSITION_PREFIX && t.from != t.to)
			counter_of(s, s->current.services[t.service].prefix_names[t.index])
				->changes++;
}

static void run_start(struct story *s, struct run *run)
{
	run->under_way = true;
	run->will_say = run->outcome;
	run->started = s->now;
	run->next = monotime_add_ms(s->now, run->takes_ms);
}

static void run_end(struct story *s, struct run *run)
{
	struct place place = check_at(s, run->path);

	engine_check_spoke(s->engine, place.service, place.index, run->will_say, s->now);
	decide(s);
	run->under_way = false;
	run->next = check_next_start(
		engine_check(s->engine, place.service, place.index), run->started, s->now);
}

static void keep_deadline(struct story *s)
{
	decide(s);
	if (monotime_reached(engine_deadline(s->engine), s->now))
		unexpected(s, "the deadline does not move on: a loop would never sleep");
}

/* The loop of the agent, as far as core can see it. */
static void pass_time(struct story *s, struct monotime to)
{
	if (monotime_before(to, s->now))
		nonsense(s, "%.3f s is in the past", seconds_of(to));
	decide(s);
	for (;;) {
		struct monotime next = engine_deadline(s->engine);
		struct run *due = NULL;

		for (size_t i = 0; i < s->n_runs; i++)
			if (monotime_before(s->runs[i].next, next)) {
				due = &s->runs[i];
				next = due->next;
			}
		if (!monotime_reached(next, to))
			break;
		if (monotime_before(next, s->now))
			unexpected(s, "something is due in the past, at %.6f s", seconds_of(next));
		s->now = next;
		if (!due)
			keep_deadline(s);
		else if (due->under_way)
			run_end(s, due);
		else
			run_start(s, due);
	}
	s->now = to;
}

/* ---- configuration ---- */

static struct service *last_service(struct story *s)
{
	if (s->read.n_services == 0)
		nonsense(s, "expected a service first");
	return &s->read.services[s->read.n_services - 1];
}

/* The parts of "A:B:C", as many as are expected. */
static void split(struct story *s, char *text, const char **parts, size_t n)
{
	char *rest = text;

	for (size_t i = 0; i < n; i++)
		if (!(parts[i] = strsep(&rest, ":")))
			nonsense(s, "expected %zu parts with ':' between", n);
}

/* How a service comes and goes. */
static bool read_manner(struct story *s, struct service *service, const char *word, char *value)
{
	const char *parts[5];

	if (strcmp(word, "floor") == 0) {
		service->floor = (unsigned)number_of(s, value);
	} else if (strcmp(word, "leave") == 0) {
		service->leave.graceful_ms = duration_ms(s, value);
	} else if (strcmp(word, "leave_weight") == 0) {
		service->leave.has_weight = true;
		service->leave.weight = (uint32_t)number_of(s, value);
	} else if (strcmp(word, "slow_start") == 0) {
		split(s, value, parts, 3);
		service->slow_start = (struct ramp_settings){(uint32_t)number_of(s, parts[0]),
			(unsigned)number_of(s, parts[1]), duration_ms(s, parts[2])};
	} else if (strcmp(word, "hold_down") == 0) {
		split(s, value, parts, 5);
		service->hold_down = (struct damping_settings){(uint32_t)number_of(s, parts[0]),
			(uint32_t)number_of(s, parts[1]), (uint32_t)number_of(s, parts[2]),
			duration_ms(s, parts[3]), duration_ms(s, parts[4])};
	} else {
		return false;
	}
	return true;
}

static void read_service(struct story *s, char **words, size_t n)
{
	struct service *service = &s->read.services[s->read.n_services++];

	if (s->read.n_services == SERVICES_MAX || n < 2)
		nonsense(s, "too many services, or one without a name");
	memset(service, 0, sizeof(*service));
	copy_name(s, service->name, words[1]);
	for (size_t i = 2; i + 1 < n; i += 2) {
		const char *value = words[i + 1];

		if (read_manner(s, service, words[i], words[i + 1]))
			continue;
		if (strcmp(words[i], "on_stop") == 0)
			service->keep_on_stop = strcmp(value, "keep") == 0;
		else if (strcmp(words[i], "require") != 0)
			nonsense(s, "a service has no '%s'", words[i]);
		else if (strcmp(value, "any") == 0)
			service->require.kind = SERVICE_REQUIRE_ANY;
		else if (strcmp(value, "all") != 0)
			service->require = (struct service_require){
				SERVICE_REQUIRE_NUMBER, (unsigned)number_of(s, value)};
	}
}

static void read_check(struct story *s, char **words, size_t n)
{
	struct service *service = last_service(s);
	struct check_settings *settings = &service->settings[service->n_checks];
	char *identity = service->identities[service->n_checks];

	if (service->n_checks == ITEMS_MAX - 1 || n < 2)
		nonsense(s, "too many checks, or one without a name");
	*settings = (struct check_settings){
		.interval_ms = 1000, .fast_interval_ms = 500, .rise = 3, .fall = 2};
	copy_name(s, service->check_names[service->n_checks], words[1]);
	copy_name(s, identity, words[1]);
	service->n_checks++;
	for (size_t i = 2; i + 1 < n; i += 2) {
		const char *value = words[i + 1];

		if (strcmp(words[i], "every") == 0)
			settings->interval_ms = duration_ms(s, value);
		else if (strcmp(words[i], "fast") == 0)
			settings->fast_interval_ms = duration_ms(s, value);
		else if (strcmp(words[i], "rise") == 0)
			settings->rise = (unsigned)number_of(s, value);
		else if (strcmp(words[i], "fall") == 0)
			settings->fall = (unsigned)number_of(s, value);
		else if (strcmp(words[i], "first_rise") == 0)
			settings->first_rise = (unsigned)number_of(s, value);
		else if (strcmp(words[i], "shared") == 0)
			settings->shared = strcmp(value, "yes") == 0;
		else if (strcmp(words[i], "as") == 0)
			copy_name(s, identity, value);
		else
			nonsense(s, "a check has no '%s'", words[i]);
	}
}

static void read_prefix(struct story *s, char **words, size_t n)
{
	struct service *service = last_service(s);
	size_t index = service->n_prefixes++;

	if (index == ITEMS_MAX - 1 || n < 2)
		nonsense(s, "too many prefixes, or one without a name");
	copy_name(s, service->prefix_names[index], words[1]);
	service->weights[index] = 100;
	service->address_checks[index] = true;
	for (size_t i = 2; i + 1 < n; i += 2) {
		if (strcmp(words[i], "weight") == 0)
			service->weights[index] = (uint32_t)number_of(s, words[i + 1]);
		else if (strcmp(words[i], "address_check") == 0)
			service->address_checks[index] = strcmp(words[i + 1], "off") != 0;
		else if (strcmp(words[i], "last_resort") == 0)
			service->last_resorts[index] = strcmp(words[i + 1], "yes") == 0;
		else if (strcmp(words[i], "weight_of_word") == 0)
			service->weights_of_words[index] = strcmp(words[i + 1], "yes") == 0;
		else
			nonsense(s, "a prefix has no '%s'", words[i]);
	}
}

static void use_configuration(struct story *s)
{
	struct engine_check_config checks[SERVICES_MAX][ITEMS_MAX];
	struct engine_prefix_config prefixes[SERVICES_MAX][ITEMS_MAX];
	struct engine_service_config services[SERVICES_MAX];
	struct engine_config config = {s->read.coalesce_ms, services, s->read.n_services};

	for (size_t i = 0; i < s->read.n_services; i++) {
		const struct service *v = &s->read.services[i];

		for (size_t k = 0; k < v->n_checks; k++)
			checks[i][k] = (struct engine_check_config){
				v->check_names[k], v->identities[k], v->settings[k]};
		for (size_t k = 0; k < v->n_prefixes; k++)
			prefixes[i][k] = (struct engine_prefix_config){.name = v->prefix_names[k],
				.weight = v->weights[k],
				.address_check = v->address_checks[k],
				.last_resort = v->last_resorts[k],
				.weight_of_word = v->weights_of_words[k]};
		services[i] = (struct engine_service_config){.name = v->name,
			.require = v->require,
			.keep_on_stop = v->keep_on_stop,
			.floor = v->floor,
			.slow_start = v->slow_start,
			.hold_down = v->hold_down,
			.leave = v->leave,
			.checks = checks[i],
			.n_checks = v->n_checks,
			.prefixes = prefixes[i],
			.n_prefixes = v->n_prefixes};
	}
	if (engine_configure(s->engine, &config, s->now) != 0)
		abort();
	s->current = s->read;
	s->reading = false;
	for (size_t i = s->n_runs; i > 0; i--) {
		struct place place;

		if (!find_check(s, s->runs[i - 1].path, &place))
			s->runs[i - 1] = s->runs[--s->n_runs];
	}
}

static void read_configuration(struct story *s, char **words, size_t n)
{
	if (strcmp(words[0], "service") == 0)
		read_service(s, words, n);
	else if (strcmp(words[0], "check") == 0)
		read_check(s, words, n);
	else if (strcmp(words[0], "prefix") == 0)
		read_prefix(s, words, n);
	else if (strcmp(words[0], "end") == 0)
		use_configuration(s);
	else
		nonsense(s, "a configuration has no '%s'", words[0]);
}

/* ---- expectations ---- */

static void expect_prefix(struct story *s, char **words, size_t n)
{
	struct place place = prefix_at(s, words[0]);
	const struct engine_prefix *p = engine_prefix(s->engine, place.service, place.index);

	if (n != 3 && !(n == 5 && strcmp(words[3], "since") == 0))
		nonsense(s, "expected PREFIX WANTED REASON [since TIME]");
	if (strcmp(prefix_wanted_name(p->wanted), words[1]) != 0 ||
		strcmp(prefix_reason_name(p->reason), words[2]) != 0)
		unexpected(s, "%s is %s %s since %.6f s; expected %s %s", words[0],
			prefix_wanted_name(p->wanted), prefix_reason_name(p->reason),
			seconds_of(p->since), words[1], words[2]);
	if (n == 5 && p->since.us != time_of(s, words[4]).us)
		unexpected(s, "%s is %s since %.6f s; expected since %s", words[0],
			prefix_wanted_name(p->wanted), seconds_of(p->since), words[4]);
}

static void expect_check(struct story *s, char **words, size_t n)
{
	struct place place = check_at(s, words[1]);
	const struct check *c = engine_check(s->engine, place.service, place.index);
	const char *decided = check_is_undecided(c) ? "undecided" : "decided";

	if (strcmp(check_state_name(c->state), words[2]) != 0)
		unexpected(s, "check %s is %s; expected %s", words[1], check_state_name(c->state),
			words[2]);
	if (n > 3 && strcmp(decided, words[3]) != 0)
		unexpected(s, "check %s is %s; expected %s", words[1], decided, words[3]);
}

static void expect_service(struct story *s, char **words)
{
	const char *health = service_health_name(engine_health(s->engine, service_at(s, words[1])));

	if (strcmp(health, words[2]) != 0)
		unexpected(s, "service %s is %s; expected %s", words[1], health, words[2]);
}

static void expect_weight(struct story *s, char **words)
{
	struct place place = prefix_at(s, words[1]);
	uint32_t weight = engine_prefix(s->engine, place.service, place.index)->weight;

	if (weight != number_of(s, words[2]))
		unexpected(s, "%s has weight %u; expected %s", words[1], weight, words[2]);
}

static void expect_flag(struct story *s, char **words)
{
	struct place place = prefix_at(s, words[1]);
	const struct engine_prefix *p = engine_prefix(s->engine, place.service, place.index);
	bool graceful = strcmp(words[0], "graceful") == 0;
	const char *is = graceful	  ? (p->graceful ? "yes" : "no")
			 : p->asks_permit ? "asked"
					  : "none";

	if (strcmp(is, words[2]) != 0)
		unexpected(s, "%s: %s is %s; expected %s", words[1], words[0], is, words[2]);
}

static void expect_next(struct story *s, char **words)
{
	const struct run *run = run_at(s, words[1]);
	struct monotime start;

	if (!run)
		unexpected(s, "check %s is not running", words[1]);
	start = run->under_way ? run->started : run->next;
	if (start.us != time_of(s, words[2]).us)
		unexpected(s, "check %s starts at %.6f s; expected %s", words[1], seconds_of(start),
			words[2]);
}

static void expect_deadline(struct story *s, char **words)
{
	struct monotime deadline = engine_deadline(s->engine);
	struct monotime expected = MONOTIME_NEVER;

	if (strcmp(words[1], "never") != 0)
		expected = time_of(s, words[1]);
	if (deadline.us != expected.us)
		unexpected(s, "the deadline is %.6f s; expected %s",
			monotime_is_never(deadline) ? -1.0 : seconds_of(deadline), words[1]);
}

static void expect_changes(struct story *s, char **words)
{
	unsigned changes = counter_of(s, words[1])->changes;

	if (changes != number_of(s, words[2]))
		unexpected(s, "%s changed %u times; expected %s", words[1], changes, words[2]);
}

static void expect(struct story *s, char **words, size_t n)
{
	s->n_expected++;
	decide(s);
	if (n >= 2 && strcmp(words[0], "deadline") == 0)
		expect_deadline(s, words);
	else if (n < 3)
		nonsense(s, "expected more words");
	else if (strcmp(words[0], "check") == 0)
		expect_check(s, words, n);
	else if (strcmp(words[0], "service") == 0)
		expect_service(s, words);
	else if (strcmp(words[0], "weight") == 0)
		expect_weight(s, words);
	else if (strcmp(words[0], "graceful") == 0 || strcmp(words[0], "permit") == 0)
		expect_flag(s, words);
	else if (strcmp(words[0], "next") == 0)
		expect_next(s, words);
	else if (strcmp(words[0], "changes") == 0)
		expect_changes(s, words);
	else
		expect_prefix(s, words, n);
}

/* ---- facts ---- */

static void begin_run(struct story *s, char **words)
{
	struct run *run = run_at(s, words[1]);

	(void)check_at(s, words[1]);
	if (!run) {
		if (s->n_runs == SERVICES_MAX * ITEMS_MAX)
			nonsense(s, "too many runs");
		run = &s->runs[s->n_runs++];
		*run = (struct run){.next = s->now};
		snprintf(run->path, sizeof(run->path), "%s", words[1]);
	}
	run->outcome = (enum check_outcome)word_of(s, words[2], outcome_name, 4);
	run->takes_ms = duration_ms(s, words[4]);
}

static void tell_prefix(struct story *s, char **words)
{
	struct place at = prefix_at(s, words[1]);

	if (strcmp(words[0], "found") == 0)
		engine_found(s->engine, at.service, at.index,
			(enum prefix_wanted)word_of(s, words[2], wanted_name, 3));
	else if (strcmp(words[0], "shed") == 0)
		engine_shed(s->engine, at.service, at.index,
			(enum prefix_shed)word_of(s, words[2], shed_name, 3));
	else if (strcmp(words[0], "address") == 0)
		engine_address(s->engine, at.service, at.index,
			(enum prefix_address)word_of(s, words[2], address_name, 3));
	else
		engine_word(s->engine, at.service, at.index,
			(enum prefix_word)word_of(s, words[2], operator_word_name, 3));
}

static void tell_check(struct story *s, char **words)
{
	struct place at = check_at(s, words[1]);

	engine_check_spoke(s->engine, at.service, at.index,
		(enum check_outcome)word_of(s, words[2], outcome_name, 4), s->now);
}

static bool is_one_of_prefix(const char *word)
{
	return strcmp(word, "found") == 0 || strcmp(word, "shed") == 0 ||
	       strcmp(word, "address") == 0 || strcmp(word, "word") == 0;
}

/* A fact, and the decision that follows each. What BIRD was found doing comes before the first. */
static void tell(struct story *s, char **words, size_t n)
{
	if (n == 1 && strcmp(words[0], "stop") == 0)
		engine_stop(s->engine);
	else if (n == 1 && (strcmp(words[0], "freeze") == 0 || strcmp(words[0], "thaw") == 0))
		engine_freeze(s->engine, strcmp(words[0], "freeze") == 0);
	else if (n == 2 && strcmp(words[0], "spread") == 0)
		engine_spread(s->engine, duration_ms(s, words[1]), s->now);
	else if (n == 2 && strcmp(words[0], "permit") == 0)
		engine_permit(
			s->engine, prefix_at(s, words[1]).service, prefix_at(s, words[1]).index);
	else if (n == 3 && is_one_of_prefix(words[0]))
		tell_prefix(s, words);
	else if (n == 3 && strcmp(words[0], "check") == 0)
		tell_check(s, words);
	else if (n == 5 && strcmp(words[0], "run") == 0 && strcmp(words[3], "after") == 0)
		begin_run(s, words);
	else
		nonsense(s, "'%s' with %zu words is no fact", words[0], n);
	if (strcmp(words[0], "found") != 0)
		decide(s);
}

static void begin_configuration(struct story *s, char **words, size_t n)
{
	memset(&s->read, 0, sizeof(s->read));
	s->reading = true;
	if (n == 3 && strcmp(words[1], "coalesce") == 0)
		s->read.coalesce_ms = duration_ms(s, words[2]);
	else if (n != 1)
		nonsense(s, "expected: configuration [coalesce TIME]");
}

static void take_line(struct story *s, char *line)
{
	char *words[WORDS_MAX], **first = words;
	size_t n = 0;

	line[strcspn(line, "#\n")] = '\0';
	for (char *word = strtok(line, " \t"); word && n < WORDS_MAX; word = strtok(NULL, " \t"))
		words[n++] = word;
	if (n == 0)
		return;
	if (s->reading) {
		read_configuration(s, words, n);
		return;
	}
	if (n > 2 && strcmp(words[0], "at") == 0) {
		pass_time(s, time_of(s, words[1]));
		first += 2;
		n -= 2;
	}
	if (strcmp(first[0], "configuration") == 0)
		begin_configuration(s, first, n);
	else if (strcmp(first[0], "expect") == 0)
		expect(s, first + 1, n - 1);
	else
		tell(s, first, n);
}

int main(int argc, char **argv)
{
	static struct story story;
	char line[512];
	FILE *file;

	if (argc != 2 || !(file = fopen(argv[1], "re"))) {
		fprintf(stderr, "usage: %s FILE.scenario\n", argv[0]);
		return 2;
	}
	story.path = argv[1];
	story.now = (struct monotime){BEGIN_US};
	story.engine = engine_new();
	while (fgets(line, sizeof(line), file)) {
		story.line++;
		take_line(&story, line);
	}
	(void)fclose(file);
	engine_free(story.engine);
	if (story.n_expected == 0 || story.reading)
		nonsense(&story, "the story expects nothing, or its configuration has no end");
	printf("%s: %u expectations hold\n", argv[1], story.n_expected);
	return 0;
}
