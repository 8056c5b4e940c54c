/*
 * The glue of shedding: see shedding.h.
 *
 * One timer carries everything that is not asked for from outside: the core's deadline, and our own
 * report once a second. A report or a grant of a neighbour is answered where it comes in; what it
 * leads to is decided at once, since leases run.
 *
 * Facts about prefixes are read as a whole whenever something has changed since they were read
 * last: that is one pass over the prefixes, at most once a turn of the loop.
 */
#include "agent/shedding.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "agent/base/cleanup.h"
#include "agent/base/clock.h"
#include "agent/system/log.h"

#define SHEDDING_REPORT_MS 1000
#define SHEDDING_PRIORITY (SD_EVENT_PRIORITY_IDLE - 1)

struct shedding {
	sd_event *event;
	const struct config *const *config;
	struct shedding_ops ops;
	struct neighbours *neighbours;
	struct shed *core;
	sd_event_source *timer;
	struct monotime report_at;
	struct prefix *prefixes; /* of all services, in the order of the configuration */
	size_t *first;		 /* of each service in `prefixes` */
	size_t n_prefixes, n_services;
	struct shed_report_prefix *digest; /* n_prefixes, for reports of others and our own */
	unsigned char *routes; /* a bit for each neighbour and prefix: BIRD has shown its route */
	size_t turn;	       /* whose routes are looked at next, and which prefix is read again */
	bool configured;       /* the core knows the configuration that runs */
	bool started, stopped;
	bool touched; /* facts are to be read again */
};

/* ---- names and places ---- */

static size_t shedding_index(const struct shedding *s, size_t service, size_t prefix)
{
	assert(service < s->n_services);
	return s->first[service] + prefix;
}

static bool shedding_find(const struct shedding *s, const struct prefix *prefix, size_t *ret)
{
	for (size_t i = 0; i < s->n_prefixes; i++)
		if (prefix_equal(&s->prefixes[i], prefix)) {
			*ret = i;
			return true;
		}
	return false;
}

static void shedding_place(
	const struct shedding *s, size_t index, size_t *ret_service, size_t *ret_prefix)
{
	size_t service = s->n_services;

	while (s->first[--service] > index)
		;
	*ret_service = service;
	*ret_prefix = index - s->first[service];
}

/* ---- facts in ---- */

static void shedding_read_prefix(struct shedding *s, size_t service, size_t prefix)
{
	size_t index = shedding_index(s, service, prefix);
	struct monotime now = clock_monotime();
	struct shedding_prefix view = {0};

	s->ops.prefix(s->ops.userdata, service, prefix, &view);
	view.facts.counted = s->ops.load(s->ops.userdata, service, prefix, &view.facts.load);
	shed_prefix_facts(s->core, index, &view.facts);
	shed_prefix_weight(s->core, index, view.weight);
	/* A permit is for one leaving, and used at once: who has one and asks, asks anew. */
	if (shed_permit(s->core, index) == SHED_PERMIT_GRANTED)
		shed_leave(s->core, index, false, now);
	shed_leave(s->core, index, view.asks_permit, now);
	shed_word(s->core, index, view.word, now);
}

static void shedding_read(struct shedding *s)
{
	struct shed_own own = {0};

	if (!s->touched)
		return;
	s->touched = false;
	s->ops.own(s->ops.userdata, &own, NULL);
	shed_own(s->core, &own, clock_monotime());
	for (size_t service = 0; service < s->n_services; service++)
		for (size_t prefix = 0; prefix < (*s->config)->services[service].n_prefixes;
			prefix++)
			shedding_read_prefix(s, service, prefix);
}

/* ---- decisions out ---- */

static uint64_t shedding_random(void)
{
	uint64_t number = 0;

	/* Cannot fail once the kernel has its entropy; a zero is as good as any once. */
	if (getrandom(&number, sizeof(number), GRND_NONBLOCK) < 0)
		number = clock_monotime().us;
	return number;
}

static void shedding_send(struct shedding *s, struct monotime now)
{
	struct shed_call call;

	while (shed_next_call(s->core, &call, now))
		neighbours_call(s->neighbours, &call, &s->prefixes[call.prefix]);
}

static void shedding_permit(struct shedding *s)
{
	for (size_t i = 0; i < s->n_prefixes; i++) {
		size_t service, prefix;

		if (shed_permit(s->core, i) != SHED_PERMIT_GRANTED)
			continue;
		shedding_place(s, i, &service, &prefix);
		s->ops.permit(s->ops.userdata, service, prefix);
	}
}

static bool shedding_decides(const struct shedding *s)
{
	return s->started && !s->stopped && s->configured;
}

/* The core's deadline moves on when it decides: one that does not is not waited for. */
static void shedding_arm(struct shedding *s)
{
	struct monotime at = s->report_at;

	if (shedding_decides(s))
		at = monotime_min(at, shed_deadline(s->core));
	(void)sd_event_source_set_time(s->timer, at.us);
	(void)sd_event_source_set_enabled(s->timer, SD_EVENT_ONESHOT);
}

static void shedding_decide(struct shedding *s)
{
	struct monotime now = clock_monotime();

	if (!shedding_decides(s))
		return;
	shedding_read(s);
	if (shed_decide(s->core, now, shedding_random())) {
		shedding_permit(s);
		s->ops.changed(s->ops.userdata);
	}
	shedding_send(s, now);
	shedding_arm(s);
}

/* ---- configuration ---- */

/* The prefixes in one row, and what the core calls them. */
static int shedding_lay_out(struct shedding *s)
{
	const struct config *config = *s->config;
	_cleanup_free_ struct prefix *prefixes = NULL;
	_cleanup_free_ struct shed_report_prefix *digest = NULL;
	_cleanup_free_ unsigned char *routes = NULL;
	_cleanup_free_ size_t *first = NULL;
	size_t n = config_count_prefixes(config);

	prefixes = calloc(n + 1, sizeof(*prefixes));
	digest = calloc(n + 1, sizeof(*digest));
	first = calloc(config->n_services + 1, sizeof(*first));
	routes = calloc(n * neighbours_count(s->neighbours) / 8 + 1, 1);
	if (!prefixes || !digest || !first || !routes)
		return -ENOMEM;
	n = 0;
	for (size_t i = 0; i < config->n_services; i++) {
		first[i] = n;
		for (size_t p = 0; p < config->services[i].n_prefixes; p++)
			prefixes[n++] = config->services[i].prefixes[p].prefix;
	}
	free(s->prefixes);
	free(s->digest);
	free(s->first);
	s->prefixes = TAKE_PTR(prefixes);
	s->digest = TAKE_PTR(digest);
	s->first = TAKE_PTR(first);
	free(s->routes);
	s->routes = TAKE_PTR(routes);
	s->n_prefixes = n;
	s->n_services = config->n_services;
	return 0;
}

static int shedding_tell(struct shedding *s, struct shed_prefix_config *prefixes,
	char (*texts)[PREFIX_TEXT_MAX], const char **names)
{
	const struct config *config = *s->config;
	size_t n_neighbours = neighbours_count(s->neighbours), n = 0;

	for (size_t i = 0; i < config->n_services; i++)
		for (size_t p = 0; p < config->services[i].n_prefixes; p++, n++) {
			const struct config_service *service = &config->services[i];

			prefixes[n] = (struct shed_prefix_config){
				.name = prefix_format(&service->prefixes[p].prefix, texts[n]),
				.weight = service->prefixes[p].weight,
				.floor = service->floor > 0 ? (unsigned)service->floor : 1,
				.floor_health = service->floor > 0,
			};
		}
	for (size_t i = 0; i < n_neighbours; i++)
		names[i] = neighbours_name(s->neighbours, i);
	return shed_configure(s->core,
		&(struct shed_config){.node = config->node,
			.settings = config_shed_settings(config),
			.prefixes = prefixes,
			.n_prefixes = n,
			.neighbours = names,
			.n_neighbours = n_neighbours},
		clock_monotime());
}

static int shedding_try_configure(struct shedding *s)
{
	_cleanup_free_ struct shed_prefix_config *prefixes = NULL;
	_cleanup_free_ char(*texts)[PREFIX_TEXT_MAX] = NULL;
	_cleanup_free_ const char **names = NULL;
	int r;

	r = shedding_lay_out(s);
	if (r < 0)
		return r;
	prefixes = calloc(s->n_prefixes + 1, sizeof(*prefixes));
	texts = calloc(s->n_prefixes + 1, sizeof(*texts));
	names = calloc(neighbours_count(s->neighbours) + 1, sizeof(*names));
	if (!prefixes || !texts || !names)
		return -ENOMEM;
	return shedding_tell(s, prefixes, texts, names);
}

/* Prefixes or neighbours are others. While it is not known how they are called now, nothing is out:
 * the engine is to hear of both, the beginning of that and its end. */
static void shedding_learn(struct shedding *s)
{
	int r = shedding_try_configure(s);
	bool was = s->configured;

	s->configured = r == 0;
	s->touched = true;
	if (r < 0)
		log_error("shedding: %s; nothing is shed until it is tried again in a second",
			strerror(-r));
	if (s->started && !s->stopped && was != s->configured)
		s->ops.changed(s->ops.userdata);
	shedding_decide(s);
	if (r < 0)
		shedding_arm(s);
}

/* ---- our own report ---- */

static int shedding_list(
	struct shedding *s, const struct shed_report *own, struct message_report *r)
{
	r->prefixes = calloc(s->n_prefixes, sizeof(*r->prefixes));
	r->sheds = calloc(s->n_prefixes, sizeof(*r->sheds));
	if (s->n_prefixes > 0 && (!r->prefixes || !r->sheds))
		return -ENOMEM;
	for (size_t i = 0; i < s->n_prefixes; i++) {
		const struct shed_report_prefix *from = &s->digest[i];
		struct shed_prefix view;

		r->prefixes[r->n_prefixes++] = (struct message_prefix){
			.prefix = s->prefixes[i],
			.state = (enum shed_state)from->state,
			.weight_known = true,
			.weight = from->weight,
			.load_known = own->valid,
			.load = own->capacity / SHED_WHOLE_BP * from->load_bp +
				own->capacity % SHED_WHOLE_BP * from->load_bp / SHED_WHOLE_BP,
		};
		shed_prefix(s->core, i, &view, clock_monotime());
		if (view.out)
			r->sheds[r->n_sheds++] = s->prefixes[i];
	}
	return 0;
}

static void shedding_report(struct shedding *s)
{
	struct message_report *r = calloc(1, sizeof(*r));
	struct shed_report own = {0};
	struct shed_own load = {0};
	struct shed_server server;
	int error = -ENOMEM;

	if (r) {
		s->ops.own(s->ops.userdata, &load, r);
		shed_report_own(s->core, &own, s->digest, clock_monotime());
		shed_server(s->core, &server, clock_monotime());
		r->version = MESSAGE_VERSION;
		r->capacity = own.capacity;
		r->load_known = r->utilisation_known = own.valid;
		r->load = own.load;
		r->utilisation_bp = server.utilisation_bp;
		r->spare = own.spare;
		r->willing = own.willing && !s->stopped;
		r->want = own.want;
		error = shedding_list(s, &own, r);
	}
	if (error == 0)
		error = neighbours_publish(s->neighbours, r);
	message_report_free(r);
	if (error < 0)
		log_debug("neighbours: our report could not be renewed: %s", strerror(-error));
}

/* ---- what BIRD shows of neighbours ---- */

/* The address of "ADDRESS:PORT" or "[ADDRESS]:PORT". */
static int shedding_address(const char *text, struct address *ret)
{
	char copy[ADDRESS_TEXT_MAX + 2];
	const char *port = text ? strrchr(text, ':') : NULL;
	size_t n = port ? (size_t)(port - text) : 0;

	if (n == 0 || n >= sizeof(copy))
		return -EINVAL;
	(void)snprintf(copy, sizeof(copy), "%.*s", (int)n, text);
	if (copy[0] == '[' && copy[n - 1] == ']') {
		copy[n - 1] = '\0';
		return address_parse(copy + 1, ret, NULL);
	}
	return address_parse(copy, ret, NULL);
}

/* A route that was there and is gone says that its server announces no more, whatever it last said
 * of itself. One that was never seen says nothing: a router need not show us others' routes. */
static void shedding_read_routes(struct shedding *s, size_t member)
{
	struct neighbours_view view;
	struct address address;

	neighbours_view(s->neighbours, member, clock_monotime(), &view);
	if (shedding_address(view.address, &address) < 0)
		return;
	for (size_t i = 0, service = 0; i < s->n_prefixes; i++) {
		size_t bit = member * s->n_prefixes + i;
		enum apply_known there;

		while (service + 1 < s->n_services && s->first[service + 1] <= i)
			service++;
		there = s->ops.route(s->ops.userdata, service, i - s->first[service], &address);
		if (there == APPLY_YES)
			s->routes[bit / 8] |= (unsigned char)(1U << bit % 8);
		if (there != APPLY_UNKNOWN && (s->routes[bit / 8] & 1U << bit % 8))
			shed_route(s->core, member, i, there == APPLY_YES);
	}
}

/* One neighbour and one prefix a second: nobody is in a hurry here. */
static void shedding_look_around(struct shedding *s)
{
	size_t n = neighbours_count(s->neighbours), service, prefix;
	const struct address *next_hops;

	size_t n_hops = s->ops.next_hops(s->ops.userdata, &next_hops);

	neighbours_found(s->neighbours, next_hops, n_hops);
	if (n == 0 || s->n_prefixes == 0)
		return;
	shedding_read_routes(s, s->turn % n);
	shedding_place(s, s->turn % s->n_prefixes, &service, &prefix);
	s->ops.look(s->ops.userdata, service, prefix);
	s->turn++;
}

static int shedding_on_timer(sd_event_source *source, uint64_t us, void *userdata)
{
	struct shedding *s = userdata;
	struct monotime now = clock_monotime();

	if (!s->configured && monotime_reached(s->report_at, now)) {
		s->report_at = monotime_add_ms(now, SHEDDING_REPORT_MS);
		shedding_learn(s);
	}
	s->touched = true; /* loads have moved */
	shedding_decide(s);
	if (s->configured && s->stopped)
		shedding_read(s); /* the report says that it is leaving */
	if (s->configured && monotime_reached(s->report_at, now)) {
		s->report_at = monotime_add_ms(now, SHEDDING_REPORT_MS);
		shedding_report(s);
		if (s->started)
			shedding_look_around(s);
	}
	shedding_arm(s);
	return 0;
}

/* ---- neighbours ---- */

static void shedding_on_members(void *userdata)
{
	shedding_learn(userdata);
}

static void shedding_on_report(
	void *userdata, size_t member, const struct message_report *report, struct monotime asked)
{
	struct shedding *s = userdata;
	struct shed_report digest;

	if (!s->configured)
		return;
	message_report_digest(report, s->prefixes, s->n_prefixes, &digest, s->digest);
	shed_report(s->core, member, &digest, asked, clock_monotime());
	shedding_decide(s);
}

/* Do we promise it already? Then asking is renewing. */
static bool shedding_is_promised(const struct shedding *s, const struct shed_request *request)
{
	struct shed_promise promise;

	for (size_t i = 0; shed_promise(s->core, request->prefix, i, &promise); i++)
		if (promise.given && promise.neighbour == request->neighbour &&
			promise.purpose == request->purpose)
			return true;
	return false;
}

static struct shed_answer shedding_judge(
	struct shedding *s, const struct shed_request *request, struct monotime now)
{
	bool known = shedding_is_promised(s, request);
	struct shed_answer answer = shed_grant(s->core, request, now);

	if (!known || answer.refused != SHED_REFUSAL_NONE)
		s->ops.grant(s->ops.userdata, neighbours_name(s->neighbours, request->neighbour),
			&s->prefixes[request->prefix], request, &answer);
	return answer;
}

static struct shed_answer shedding_on_grant(
	void *userdata, size_t member, const struct message_grant *grant, bool give_back)
{
	struct shed_answer answer = {.refused = SHED_REFUSAL_NOT_ANNOUNCED};
	struct shed_request request = {.neighbour = member,
		.boot = grant->boot,
		.share = grant->share,
		.purpose = grant->purpose,
		.request = grant->request};
	struct shedding *s = userdata;
	struct monotime now = clock_monotime();

	if (s->stopped)
		answer.refused = SHED_REFUSAL_LEAVING;
	else if (!s->started || !s->configured)
		answer.refused = SHED_REFUSAL_STARTING;
	else if (shedding_find(s, &grant->prefix, &request.prefix)) {
		shedding_read(s);
		if (give_back)
			shed_give_back(s->core, &request, now);
		else
			answer = shedding_judge(s, &request, now);
		shedding_decide(s);
	}
	return answer;
}

static void shedding_on_answered(
	void *userdata, const struct shed_call *call, const struct shed_answer *answer)
{
	struct shedding *s = userdata;

	if (!s->configured)
		return;
	shed_answered(s->core, call, answer, clock_monotime());
	shedding_decide(s);
}

/* The section is gone: nobody is spoken to any more, and nothing is out. */
static void shedding_end(struct shedding *s)
{
	log_notice("neighbours: no longer configured");
	neighbours_free(s->neighbours);
	s->neighbours = NULL;
	s->configured = false;
	(void)sd_event_source_set_enabled(s->timer, SD_EVENT_OFF);
	s->ops.changed(s->ops.userdata);
}

void shedding_configure(struct shedding *s)
{
	const struct config *config = *s->config;

	if (!s->neighbours && config->neighbours)
		log_warning("reload: `neighbours` is new, which takes a restart of the agent; "
			    "until then nothing is shed, and no `floor` holds anything");
	if (!s->neighbours)
		return;
	if (!config->neighbours) {
		shedding_end(s);
		return;
	}
	(void)neighbours_configure(s->neighbours, config->neighbours, config->node);
	shedding_learn(s);
}

/* ---- its life ---- */

int shedding_new(struct shedding **ret, sd_event *event, const struct config *const *config,
	const struct shedding_ops *ops, struct error *ret_error)
{
	const struct neighbours_ops neighbours_ops = {
		.members = shedding_on_members,
		.report = shedding_on_report,
		.grant = shedding_on_grant,
		.answered = shedding_on_answered,
	};
	_cleanup_(shedding_freep) struct shedding *s = calloc(1, sizeof(*s));
	struct neighbours_ops with_us = neighbours_ops;
	int r;

	if (!s)
		return -ENOMEM;
	s->event = sd_event_ref(event);
	s->config = config;
	s->ops = *ops;
	if (!(*config)->neighbours) {
		*ret = TAKE_PTR(s);
		return 0;
	}
	with_us.userdata = s;
	s->core = shed_new(clock_monotime());
	if (!s->core)
		return -ENOMEM;
	r = neighbours_new(
		&s->neighbours, event, (*config)->neighbours, (*config)->node, &with_us, ret_error);
	if (r < 0)
		return r;
	r = sd_event_add_time(event, &s->timer, CLOCK_BOOTTIME, 0, 1000, shedding_on_timer, s);
	if (r >= 0)
		r = sd_event_source_set_priority(s->timer, SHEDDING_PRIORITY);
	if (r < 0)
		return error_set_errno(ret_error, -r, "shedding");
	r = shedding_try_configure(s);
	if (r < 0)
		return error_set_errno(ret_error, -r, "shedding");
	s->configured = true;
	*ret = TAKE_PTR(s);
	return 0;
}

void shedding_free(struct shedding *s)
{
	if (!s)
		return;
	neighbours_free(s->neighbours);
	sd_event_source_disable_unref(s->timer);
	shed_free(s->core);
	sd_event_unref(s->event);
	free(s->prefixes);
	free(s->digest);
	free(s->first);
	free(s->routes);
	free(s);
}

void shedding_start(struct shedding *s)
{
	s->started = s->touched = true;
	if (s->neighbours)
		shedding_decide(s);
}

void shedding_touch(struct shedding *s)
{
	s->touched = true;
	if (s->configured)
		(void)sd_event_source_set_time(s->timer, 0);
}

void shedding_stop(struct shedding *s)
{
	s->stopped = true;
}

bool shedding_prefix(
	const struct shedding *s, size_t service, size_t prefix, struct shed_prefix *ret)
{
	if (!s->neighbours || !s->configured || s->stopped)
		return false;
	shed_prefix(s->core, shedding_index(s, service, prefix), ret, clock_monotime());
	return true;
}

bool shedding_promise(const struct shedding *s, size_t service, size_t prefix, size_t nth,
	struct shed_promise *ret)
{
	return s->neighbours && s->configured &&
	       shed_promise(s->core, shedding_index(s, service, prefix), nth, ret);
}

void shedding_server(const struct shedding *s, struct shed_server *ret)
{
	if (s->neighbours)
		shed_server(s->core, ret, clock_monotime());
	else
		*ret = (struct shed_server){.why = SHED_WHY_OFF};
}

const struct neighbours *shedding_neighbours(const struct shedding *s)
{
	return s->neighbours;
}
