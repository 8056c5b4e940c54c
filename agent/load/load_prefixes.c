/*
 * Counting prefixes. A round fetches the counters of all of them, by nftables or as numbers of a
 * service; each counter has a meter, and of these comes each prefix's share of the load. A counter
 * that was not in a round begins anew, and is valid after ten more.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/clock.h"
#include "agent/load/load_private.h"

#define WHAT "prefixes"
#define KEYS_A_TURN 8 /* each is looked for in the whole text */

static void share(struct load_counting *c)
{
	struct load_view view;

	for (size_t i = 0; i < c->n; i++)
		c->shares[i].valid = meter_rate(
			&c->counters[i].meter, 1000000000ULL, METER_SAMPLES, &c->shares[i].rate);
	load_view(c->load, &view);
	meter_share(c->shares, c->n, view.valid ? view.load : 0);
}

/* The round is over: what was not in it begins anew. */
static void end_round(struct load_counting *c, size_t n_missing)
{
	char text[LOAD_TEXT_MAX];

	c->failed = 0;
	if (n_missing > 0) {
		(void)snprintf(text, sizeof(text), "%zu of %zu have no counter%s", n_missing, c->n,
			c->nft ? " (redshankd --counters | nft -f -)" : "");
		load_trouble_set(&c->trouble, WHAT, text);
	} else {
		load_trouble_clear(&c->trouble, WHAT);
	}
	share(c);
}

static void finish_round(struct load_counting *c)
{
	size_t n_missing = 0;

	for (size_t i = 0; i < c->n; i++) {
		if (c->counters[i].seen)
			continue;
		meter_lose(&c->counters[i].meter);
		n_missing++;
	}
	end_round(c, n_missing);
}

static void fail_round(struct load_counting *c, const char *text)
{
	for (size_t i = 0; i < c->n; i++)
		meter_lose(&c->counters[i].meter);
	load_trouble_set(&c->trouble, WHAT, text);
	share(c);
}

static struct load_counter *find_counter(const struct load_counting *c, const char *name)
{
	size_t low = 0, high = c->n;

	while (low < high) {
		size_t middle = (low + high) / 2;
		int order = strcmp(name, c->sorted[middle]->name);

		if (order == 0)
			return c->sorted[middle];
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

/* ---- nftables ---- */

static void on_counter(void *userdata, const char *name, uint64_t packets, uint64_t bytes)
{
	struct load_counting *c = userdata;
	struct load_counter *counter = find_counter(c, name);

	if (!counter)
		return;
	counter->seen = true;
	meter_add(&counter->meter, c->config->count == CONFIG_COUNT_BYTES ? bytes : packets,
		clock_monotime().us);
}

static void on_dumped(void *userdata, int error)
{
	struct load_counting *c = userdata;
	char text[LOAD_TEXT_MAX];

	/* Somebody changes rules: what was seen was right, and the rest comes in the next round. */
	if (error == -EINTR && ++c->failed < LOAD_PATIENCE)
		return;
	if (error == 0 || error == -ENOENT) {
		finish_round(c);
		return;
	}
	(void)snprintf(text, sizeof(text), "nftables: %s%s", strerror(-error),
		error == -EPERM ? " (to read counters needs CAP_NET_ADMIN)" : "");
	fail_round(c, text);
}

/* ---- numbers of a service ---- */

static void on_text(void *userdata, const char *text, size_t length, const char *why)
{
	struct load_counting *c = userdata;
	struct error error = {{0}};

	number_close(&c->text);
	if (text && number_open(&c->text, (enum config_format)c->config->source.format, text,
			    length, &error) >= 0) {
		c->next = 0;
		c->load->looking = true;
		(void)sd_event_source_set_enabled(c->load->step, SD_EVENT_ON);
		return;
	}
	fail_round(c, text ? error.text : why);
}

static void take_number(struct load_counting *c, struct load_counter *counter, uint64_t milli)
{
	counter->seen = true;
	if (c->config->source.rate) {
		meter_add(&counter->meter, milli, clock_monotime().us);
		return;
	}
	counter->sum += milli;
	meter_add(&counter->meter, counter->sum, ++counter->n);
}

bool load_count_look(struct load_counting *c)
{
	uint64_t milli;

	for (unsigned looked = 0; looked < KEYS_A_TURN && c->next < c->n; c->next++) {
		struct load_counter *counter = &c->counters[c->next];

		if (!counter->key)
			continue;
		looked++;
		if (number_find(&c->text, counter->key, &milli, NULL) == 0)
			take_number(c, counter, milli);
	}
	if (c->next < c->n)
		return true;
	number_close(&c->text);
	finish_round(c);
	return false;
}

/* ---- all ---- */

void load_count(struct load_counting *c)
{
	if (c->text.text) /* the last round is not over */
		return;
	for (size_t i = 0; i < c->n; i++)
		c->counters[i].seen = false;
	if (c->nft)
		nft_fetch(c->nft);
	else
		source_fetch(c->source);
}

static int by_name(const void *a, const void *b)
{
	const struct load_counter *const *one = a, *const *other = b;

	return strcmp((*one)->name, (*other)->name);
}

static void fill(struct load_counting *c, const struct config *config)
{
	size_t at = 0;

	for (size_t s = 0; s < config->n_services; s++) {
		c->first[s] = at;
		for (size_t p = 0; p < config->services[s].n_prefixes; p++, at++) {
			(void)nft_counter_name(
				&config->services[s].prefixes[p].prefix, c->counters[at].name);
			c->sorted[at] = &c->counters[at];
		}
	}
	c->first[config->n_services] = at;
	qsort(c->sorted, c->n, sizeof(struct load_counter *), by_name);
	for (size_t i = 0; i + 1 < c->config->keys.n; i += 2) {
		char name[NFT_NAME_MAX];
		struct prefix prefix;
		struct load_counter *counter;

		if (prefix_parse(c->config->keys.items[i], &prefix, NULL) < 0)
			continue;
		counter = find_counter(c, nft_counter_name(&prefix, name));
		if (counter)
			counter->key = c->config->keys.items[i + 1];
	}
}

static void take_over(struct load_counting *c, const struct load_counting *old)
{
	for (size_t i = 0; i < old->n; i++) {
		struct load_counter *counter = find_counter(c, old->counters[i].name);

		if (!counter)
			continue;
		counter->meter = old->counters[i].meter;
		counter->sum = old->counters[i].sum;
		counter->n = old->counters[i].n;
	}
	c->trouble = old->trouble;
}

int load_counting_new(struct load *l, struct load_counting *old, struct load_counting **ret)
{
	_cleanup_(load_counting_freep) struct load_counting *c = calloc(1, sizeof(*c));
	const struct config *config = *l->config;
	int r;

	if (!c)
		return -ENOMEM;
	c->load = l;
	c->config = config->load->prefixes;
	c->n = config_count_prefixes(config);
	c->n_services = config->n_services;
	c->identity = strdup(config->load->prefixes_identity);
	c->counters = calloc(c->n + 1, sizeof(*c->counters));
	c->sorted = calloc(c->n + 1, sizeof(struct load_counter *));
	c->shares = calloc(c->n + 1, sizeof(*c->shares));
	c->first = calloc(config->n_services + 1, sizeof(*c->first));
	if (!c->identity || !c->counters || !c->sorted || !c->shares || !c->first)
		return -ENOMEM;
	fill(c, config);
	if (old && strcmp(old->identity, c->identity) == 0)
		take_over(c, old);
	share(c);
	if (c->config->type == CONFIG_COUNTING_NFTABLES)
		r = nft_new(&c->nft, l->event, on_counter, on_dumped, c);
	else
		r = source_new(&c->source, l->event, &c->config->source, on_text, c);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(c);
	return 0;
}

void load_counting_free(struct load_counting *c)
{
	if (!c)
		return;
	number_close(&c->text);
	source_free(c->source);
	nft_free(c->nft);
	free(c->identity);
	free(c->counters);
	free(c->sorted);
	free(c->shares);
	free(c->first);
	free(c);
}

bool load_prefix(const struct load *l, size_t service, size_t prefix, uint64_t *ret)
{
	const struct load_counting *c = l ? l->counting : NULL;
	struct load_view view;
	size_t at;

	if (!c || service >= c->n_services)
		return false;
	at = c->first[service] + prefix;
	if (at >= c->first[service + 1] || !c->shares[at].valid)
		return false;
	load_view(l, &view);
	if (!view.valid)
		return false;
	*ret = c->shares[at].load;
	return true;
}
