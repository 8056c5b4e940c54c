/*
 * The counters lie beside the configuration, by the same indexes, so that to count is one addition.
 * A reload makes a new set and copies by name. Things mostly stay in their order, so a name is
 * looked for where the last one was found, and only then elsewhere.
 */
#include "agent/status/tally.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

static void service_done(struct tally_service *s)
{
	free(s->checks);
	free(s->prefixes);
	free(s->durations);
}

void tally_free(struct tally *t)
{
	if (!t)
		return;
	for (size_t i = 0; t->services && i < t->config->n_services; i++)
		service_done(&t->services[i]);
	free(t->services);
	free(t);
}

static struct tally_duration *duration_of(
	const struct tally_service *s, const struct probe_type *type)
{
	for (size_t i = 0; i < s->n_durations; i++)
		if (s->durations[i].type == type)
			return &s->durations[i];
	return NULL;
}

static int service_init(struct tally_service *s, const struct config_service *config)
{
	s->checks = calloc(config->n_checks + 1, sizeof(*s->checks));
	s->prefixes = calloc(config->n_prefixes + 1, sizeof(*s->prefixes));
	s->durations = calloc(config->n_checks + 1, sizeof(*s->durations));
	if (!s->checks || !s->prefixes || !s->durations)
		return -ENOMEM;
	for (size_t i = 0; i < config->n_checks; i++) {
		struct tally_duration *d = duration_of(s, config->checks[i].type);

		if (!d) {
			d = &s->durations[s->n_durations++];
			d->type = config->checks[i].type;
		}
		s->checks[i].duration = (size_t)(d - s->durations);
	}
	return 0;
}

/* The index of the same thing in the old configuration, from `*hint` on and round; n: none. */
#define FIND_SAME(n, hint, same)                                       \
	({                                                             \
		size_t found_ = (n);                                   \
		for (size_t k_ = 0; k_ < (n) && found_ == (n); k_++) { \
			size_t o = (*(hint) + k_) % (n);               \
			if (same) {                                    \
				found_ = o;                            \
				*(hint) = o + 1;                       \
			}                                              \
		}                                                      \
		found_;                                                \
	})

static void service_carry(struct tally_service *s, const struct config_service *config,
	const struct tally_service *old, const struct config_service *old_config)
{
	size_t hint = 0;

	memcpy(s->transitions, old->transitions, sizeof(s->transitions));
	for (size_t i = 0; i < config->n_checks; i++) {
		size_t duration = s->checks[i].duration;
		size_t at = FIND_SAME(old_config->n_checks, &hint,
			strcmp(old_config->checks[o].name, config->checks[i].name) == 0);

		if (at == old_config->n_checks)
			continue;
		s->checks[i] = old->checks[at];
		s->checks[i].duration = duration;
	}
	hint = 0;
	for (size_t i = 0; i < config->n_prefixes; i++) {
		size_t at = FIND_SAME(old_config->n_prefixes, &hint,
			prefix_equal(&old_config->prefixes[o].prefix, &config->prefixes[i].prefix));

		if (at < old_config->n_prefixes)
			s->prefixes[i] = old->prefixes[at];
	}
	for (size_t i = 0; i < s->n_durations; i++) {
		const struct tally_duration *d = duration_of(old, s->durations[i].type);

		if (d)
			s->durations[i] = *d;
	}
}

int tally_new(struct tally **ret, const struct config *config, const struct tally *old)
{
	_cleanup_(tally_freep) struct tally *t = calloc(1, sizeof(*t));
	size_t hint = 0;

	if (!t)
		return -ENOMEM;
	t->config = config;
	t->services = calloc(config->n_services + 1, sizeof(*t->services));
	if (!t->services)
		return -ENOMEM;
	for (size_t i = 0; i < config->n_services; i++) {
		size_t at;

		if (service_init(&t->services[i], &config->services[i]) < 0)
			return -ENOMEM;
		if (!old)
			continue;
		at = FIND_SAME(old->config->n_services, &hint,
			strcmp(old->config->services[o].name, config->services[i].name) == 0);
		if (at < old->config->n_services)
			service_carry(&t->services[i], &config->services[i], &old->services[at],
				&old->config->services[at]);
	}
	*ret = TAKE_PTR(t);
	return 0;
}

void tally_outcome(struct tally *t, size_t service, size_t check, enum check_outcome outcome,
	uint64_t duration_us)
{
	struct tally_service *s = &t->services[service];

	assert(service < t->config->n_services && (unsigned)outcome < TALLY_OUTCOMES);
	s->checks[check].outcomes[outcome]++;
	if (duration_us > 0) /* else a death that was told between two attempts */
		histogram_add(&s->durations[s->checks[check].duration].histogram, duration_us);
}

void tally_transition(struct tally *t, const struct engine_transition *transition)
{
	struct tally_service *s = &t->services[transition->service];

	assert(transition->service < t->config->n_services);
	switch (transition->kind) {
	case ENGINE_TRANSITION_CHECK:
		s->checks[transition->index].transitions++;
		return;
	case ENGINE_TRANSITION_SERVICE:
		s->transitions[transition->to]++;
		return;
	case ENGINE_TRANSITION_PREFIX:
		if (transition->from != transition->to)
			s->prefixes[transition->index].transitions[transition->to]++;
		return;
	}
	abort();
}
