/*
 * See the header. One item for each address that is managed, or that has our mark and is not
 * configured (any more); sorted by address. The kernel's table (system/addresses.h) says what is
 * there and whose; an item keeps only what that does not say: since when BIRD has withdrawn it,
 * when it was tried last, what came of it.
 *
 * A look goes over all items, and does at most BATCH of what is due; where more is, the next look
 * comes at once. What was done is told in one line for all.
 */
#include "agent/managed.h"

#include <errno.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/buffer.h"
#include "agent/base/clock.h"
#include "agent/bird/apply_explain.h"
#include "agent/events/events.h"
#include "agent/system/address_change.h"

#define BATCH 64
#define AGAIN_MS 1000	      /* from an attempt to the next */
#define AGAIN_DENIED_MS 30000 /* where the kernel does not let us */
#define START_WAIT_MS 100     /* for what was added to be confirmed */
#define LEAVE_LOOK_MS 50      /* while BIRD is read, at the end of a stop */
#define MANAGED_PRIORITY (SD_EVENT_PRIORITY_NORMAL + 20)

struct item {
	struct address address;
	bool configured; /* `service` and `prefix` are set */
	size_t service, prefix;
	bool was_here;	       /* and ours, when it was looked at last */
	struct monotime gone;  /* since when BIRD has withdrawn it; never: it has not */
	struct monotime tried; /* when it was to be added; zero: not yet */
	struct monotime stuck; /* when it could not be removed; zero: it could */
	struct managed_view view;
};

struct managed {
	struct managed_modules modules;
	struct managed_ops ops;
	sd_event_source *timer;
	struct item *items; /* sorted by address */
	size_t n_items, n_allocated;
	struct prefix *wide; /* configured, and more than one address */
	size_t *wide_service, *wide_prefix, n_wide;
	bool any;	 /* some service manages its addresses */
	bool configured; /* the items are those of the configuration that runs */
	bool ready, stopping;
	bool touched; /* since the look that runs, or ran last, began */
	struct managed_counts counts;
	int said; /* the error that was told last; 0: none */
};

/* What a look has done, for its lines. */
struct done {
	struct buffer names;
	size_t n;
	char memory[EVENT_PREFIXES_SIZE];
};

struct look {
	struct managed *m;
	struct monotime now, next;
	size_t n_done;
	bool more;
	int error;
	const struct item *failed;
	struct done added, restored, removed;
	/* The interface that was asked for last. */
	const char *interface;
	uint32_t index;
};

static int compare_items(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->address.family != y->address.family)
		return x->address.family < y->address.family ? -1 : 1;
	return memcmp(x->address.bytes, y->address.bytes, sizeof(x->address.bytes));
}

static struct item *find(const struct managed *m, const struct address *address)
{
	const struct item key = {.address = *address};

	return m->n_items == 0 ? NULL
			       : bsearch(&key, m->items, m->n_items, sizeof(key), compare_items);
}

/* ---- which there are ---- */

static void take_old(const struct managed *m, struct item *item, const char *interface)
{
	const struct item *old = find(m, &item->address);

	if (!old)
		return;
	item->was_here = old->was_here && old->view.interface && interface &&
			 strcmp(old->view.interface, interface) == 0;
	item->gone = old->gone;
	item->tried = old->tried;
	item->stuck = old->stuck;
	item->view = old->view;
}

static void add_prefix(struct managed *m, struct item *items, size_t *n, size_t s, size_t p)
{
	const struct config_service *service = &(*m->modules.config)->services[s];
	const struct prefix *prefix = &service->prefixes[p].prefix;
	struct item *item = &items[*n];

	if (!prefix_is_host(prefix)) {
		m->wide[m->n_wide] = *prefix;
		m->wide_service[m->n_wide] = s;
		m->wide_prefix[m->n_wide++] = p;
		return;
	}
	*item = (struct item){.address = prefix->address,
		.configured = true,
		.service = s,
		.prefix = p,
		.gone = MONOTIME_NEVER};
	take_old(m, item, service->managed_interface);
	item->view.interface = service->managed_interface;
	m->any = m->any || service->managed_interface;
	(*n)++;
}

static bool make_items(struct managed *m)
{
	const struct config *c = *m->modules.config;
	size_t n = config_count_prefixes(c), n_items = 0;
	struct item *items = calloc(n + 1, sizeof(*items));
	struct prefix *wide = calloc(n + 1, sizeof(*wide));
	size_t *places = calloc(2 * n + 1, sizeof(*places));

	if (!items || !wide || !places) {
		free(items);
		free(wide);
		free(places);
		return false;
	}
	free(m->wide);
	free(m->wide_service);
	m->wide = wide;
	m->wide_service = places;
	m->wide_prefix = places + n;
	m->n_wide = 0;
	m->any = false;
	for (size_t s = 0; s < c->n_services; s++)
		for (size_t p = 0; p < c->services[s].n_prefixes; p++)
			add_prefix(m, items, &n_items, s, p);
	qsort(items, n_items, sizeof(*items), compare_items);
	free(m->items);
	m->items = items;
	m->n_items = n_items;
	m->n_allocated = n + 1;
	return true;
}

/* An address with our mark that is not configured. Without memory it is met again. */
static void add_stray(struct managed *m, const struct address *address)
{
	struct item item = {.address = *address, .gone = MONOTIME_NEVER};
	size_t at = 0;

	if (find(m, address))
		return;
	if (m->n_items == m->n_allocated) {
		struct item *items = reallocarray(m->items, 2 * m->n_allocated + 1, sizeof(*items));

		if (!items)
			return;
		m->items = items;
		m->n_allocated = 2 * m->n_allocated + 1;
	}
	while (at < m->n_items && compare_items(&m->items[at], &item) < 0)
		at++;
	memmove(&m->items[at + 1], &m->items[at], (m->n_items - at) * sizeof(item));
	m->items[at] = item;
	m->n_items++;
}

/* True when there are addresses with our mark. */
static bool add_strays(struct managed *m)
{
	struct addresses_place place;
	bool any = false;
	size_t at = 0;

	while (addresses_marked(*m->modules.addresses, &at, &place)) {
		add_stray(m, &place.address);
		any = true;
	}
	return any;
}

/* ---- facts ---- */

static bool is_wanted(const struct managed *m, size_t service, size_t prefix)
{
	return engine_prefix(*m->modules.engine, service, prefix)->wanted != PREFIX_WANTED_WITHDRAW;
}

/* Packets for the address come also by a bigger prefix. A stray inside one may be what that lives
 * by. */
static bool is_covered(const struct managed *m, const struct item *item)
{
	for (size_t i = 0; i < m->n_wide; i++)
		if (prefix_contains(&m->wide[i], &item->address) &&
			(!item->configured || is_wanted(m, m->wide_service[i], m->wide_prefix[i])))
			return true;
	return false;
}

static enum managed_bird bird_does(const struct managed *m, const struct item *item)
{
	const struct apply *apply = *m->modules.apply;
	const struct apply_status *status = apply_status(apply);
	const struct apply_observed *seen;
	struct apply_explained e;

	if (status->link != APPLY_LINK_UP)
		return MANAGED_BIRD_UNKNOWN;
	if (!item->configured)
		return status->settled && !apply_leaves(apply) ? MANAGED_BIRD_WITHDRAWN
							       : MANAGED_BIRD_UNKNOWN;
	seen = apply_observed(apply, item->service, item->prefix);
	if (seen->announced == APPLY_YES || seen->exported > 0 || seen->elsewhere[0])
		return MANAGED_BIRD_ANNOUNCES;
	apply_explain(apply, item->service, item->prefix, &e);
	return seen->announced == APPLY_NO && seen->exported == 0 && !e.reading
		       ? MANAGED_BIRD_WITHDRAWN
		       : MANAGED_BIRD_UNKNOWN;
}

static bool is_drained(const struct managed *m, const struct config_service *s, size_t prefix)
{
	const struct words *words = control_words(*m->modules.control);
	char name[PREFIX_TEXT_MAX];

	return words->n > 0 && words_cover(words, WORD_DRAIN, s->name,
				       prefix_format(&s->prefixes[prefix].prefix, name));
}

/* 0: there is no such interface. */
static uint32_t interface_index(struct look *l, const char *interface)
{
	if (l->interface != interface) {
		l->interface = interface;
		l->index = if_nametoindex(interface);
	}
	return l->index;
}

/* Of an item that is to leave: what BIRD does, and since when. */
static void add_bird_facts(struct look *l, struct item *item, struct managed_facts *f)
{
	struct managed *m = l->m;
	struct monotime over;

	f->kept = f->kept || !m->ready;
	if (f->kept)
		return;
	f->wanted = (item->configured && is_wanted(m, item->service, item->prefix)) ||
		    is_covered(m, item);
	f->bird = bird_does(m, item);
	if (f->wanted || f->bird != MANAGED_BIRD_WITHDRAWN) {
		item->gone = MONOTIME_NEVER;
		return;
	}
	if (monotime_is_never(item->gone))
		item->gone = l->now;
	over = monotime_add_ms(item->gone, (*m->modules.config)->stop_grace_ms);
	f->grace_over = monotime_reached(over, l->now);
	if (!f->grace_over)
		l->next = monotime_min(l->next, over);
}

static struct managed_facts facts_of(
	struct look *l, struct item *item, const struct addresses_held *held)
{
	struct managed *m = l->m;
	struct managed_facts f = {.ours = held->ours,
		.ours_apart = held->ours_apart && held->here_usable,
		.here = held->here,
		.others = held->others};
	const struct config_service *s = NULL;
	uint64_t again_ms = item->view.error == -EPERM ? AGAIN_DENIED_MS : AGAIN_MS;
	struct monotime again = monotime_add_ms(item->tried, again_ms);
	struct monotime unstuck = monotime_add_ms(item->stuck, again_ms);

	f.may_add = item->tried.us == 0 || monotime_reached(again, l->now);
	f.may_remove = item->stuck.us == 0 || monotime_reached(unstuck, l->now);
	if (f.ours && !f.may_remove)
		l->next = monotime_min(l->next, unstuck);
	if (item->configured) {
		s = &(*m->modules.config)->services[item->service];
		f.configured = true;
		f.managed = s->managed_interface != NULL;
		f.leaves = is_drained(m, s, item->prefix) ||
			   (m->stopping && s->on_stop == CONFIG_ON_STOP_WITHDRAW);
		f.kept = m->stopping && s->on_stop == CONFIG_ON_STOP_KEEP;
	}
	if (f.ours && (!f.configured || (f.managed && f.leaves)))
		add_bird_facts(l, item, &f);
	else
		item->gone = MONOTIME_NEVER;
	if (f.managed && !f.leaves && !f.here && !f.others && !f.may_add)
		l->next = monotime_min(l->next, again);
	return f;
}

/* ---- doing ---- */

static void note(struct done *d, const struct item *item)
{
	char name[ADDRESS_TEXT_MAX];

	if (d->n == 0)
		buffer_init_fixed(&d->names, d->memory, sizeof(d->memory));
	if (d->n++ < EVENT_PREFIXES_NAMED)
		(void)buffer_printf(&d->names, "%s%s", d->names.length > 0 ? " " : "",
			address_format(&item->address, name));
}

static void failed(struct look *l, struct item *item, int r)
{
	item->view.error = r;
	l->m->counts.failed++;
	l->error = r;
	l->failed = item;
	l->next = monotime_min(
		l->next, monotime_add_ms(l->now, r == -EPERM ? AGAIN_DENIED_MS : AGAIN_MS));
}

static void add(struct look *l, struct item *item, uint32_t index)
{
	int r = index == 0 ? -ENODEV : address_change_add(&item->address, index);

	item->tried = l->now;
	if (r < 0 && r != -EEXIST) {
		failed(l, item, r);
		return;
	}
	item->view.error = 0;
	if (item->was_here) {
		item->view.restored++;
		l->m->counts.restored++;
	} else {
		l->m->counts.added++;
	}
	note(item->was_here ? &l->restored : &l->added, item);
}

/* Each of ours; with `but`, but for that on this interface. */
static void remove_all(struct look *l, struct item *item, uint32_t but)
{
	const struct addresses *addresses = *l->m->modules.addresses;
	size_t at = addresses_first(addresses, &item->address);
	struct addresses_place place;
	int r = 0;

	while (r >= 0 && addresses_marked(addresses, &at, &place) &&
		address_equal(&place.address, &item->address)) {
		if (but != 0 && place.interface == but &&
			prefix_is_host(&(struct prefix){place.address, place.length}))
			continue;
		r = address_change_remove(&place);
		if (r == -EADDRNOTAVAIL)
			r = 0;
	}
	item->stuck = r < 0 ? l->now : MONOTIME_ZERO;
	if (r < 0) {
		failed(l, item, r);
		return;
	}
	item->view.error = 0;
	l->m->counts.removed++;
	note(&l->removed, item);
}

static void look_at(struct look *l, struct item *item)
{
	struct addresses_held held;
	struct managed_verdict verdict;
	struct managed_facts facts;
	uint32_t index = item->view.interface ? interface_index(l, item->view.interface) : 0;

	addresses_held(*l->m->modules.addresses, &item->address, index, &held);
	if (!held.known)
		return;
	facts = facts_of(l, item, &held);
	verdict = managed_decide(&facts);
	item->view.state = verdict.state;
	item->view.ours = held.ours;
	if (verdict.action != MANAGED_ACTION_NONE && l->n_done == BATCH) {
		l->more = true;
		return;
	}
	switch (verdict.action) {
	case MANAGED_ACTION_NONE:
		if (verdict.state == MANAGED_STATE_PRESENT || verdict.state == MANAGED_STATE_OTHERS)
			item->view.error = 0;
		/* While it waits to be added again, it stays known as one that was here. */
		item->was_here =
			verdict.state == MANAGED_STATE_MISSING ? item->was_here : held.ours;
		return;
	case MANAGED_ACTION_ADD:
		add(l, item, index);
		break;
	case MANAGED_ACTION_REMOVE:
		remove_all(l, item, 0);
		item->was_here = false;
		break;
	case MANAGED_ACTION_TIDY:
		remove_all(l, item, index);
		break;
	}
	l->n_done++;
}

/* ---- telling ---- */

static void say(struct done *d, enum event_kind kind, int level, const char *what)
{
	const struct event_fields fields = {
		.prefixes = buffer_string(&d->names), .n_prefixes = d->n};

	if (d->n > EVENT_PREFIXES_NAMED)
		event_say(level, kind, &fields, "addresses: %s: %.500s ... (%zu in all)", what,
			buffer_string(&d->names), d->n);
	else if (d->n > 0)
		event_say(
			level, kind, &fields, "addresses: %s: %s", what, buffer_string(&d->names));
}

static void say_failure(struct look *l)
{
	struct managed *m = l->m;
	char name[ADDRESS_TEXT_MAX];
	const char *interface;

	if (l->error == m->said || l->error == 0) {
		if (l->n_done > 0 && l->error == 0)
			m->said = 0;
		return;
	}
	m->said = l->error;
	interface = l->failed->view.interface ? l->failed->view.interface : "its interface";
	(void)address_format(&l->failed->address, name);
	if (l->error == -EPERM)
		event_say(LOG_ERR, EVENT_ADDRESS_TROUBLE,
			&(const struct event_fields){.prefixes = name},
			"addresses: cannot change %s on %s: %s; manage_addresses takes the "
			"capability CAP_NET_ADMIN, see the drop-in capabilities.conf among the "
			"examples",
			name, interface, strerror(EPERM));
	else
		event_say(LOG_ERR, EVENT_ADDRESS_TROUBLE,
			&(const struct event_fields){.prefixes = name},
			"addresses: cannot change %s on %s: %s%s", name, interface,
			strerror(-l->error),
			l->error == -ENODEV ? " (there is no such interface)" : "");
}

static void count(struct managed *m)
{
	m->counts.n_managed = m->counts.n_missing = 0;
	for (size_t i = 0; i < m->n_items; i++) {
		m->counts.n_managed += m->items[i].view.interface != NULL;
		m->counts.n_missing += m->items[i].view.interface != NULL &&
				       m->items[i].view.state == MANAGED_STATE_MISSING;
	}
}

/* ---- looking ---- */

static void arm(struct managed *m, struct monotime at)
{
	if (monotime_is_never(at))
		return;
	(void)sd_event_source_set_time(m->timer, at.us);
	(void)sd_event_source_set_enabled(m->timer, SD_EVENT_ONESHOT);
}

/* When to look again; never: when something has changed. `ret_more`: something due was left. */
static struct monotime look(struct managed *m, bool *ret_more)
{
	struct look l = {.m = m, .now = clock_monotime(), .next = MONOTIME_NEVER};
	bool changed = addresses_read_now(*m->modules.addresses);

	*ret_more = false;
	if (!m->configured && !make_items(m))
		return monotime_add_ms(l.now, AGAIN_MS);
	m->configured = true;
	/* On most hosts nothing is managed, and a look costs nothing. */
	if (add_strays(m) || m->any)
		for (size_t i = 0; i < m->n_items; i++)
			look_at(&l, &m->items[i]);
	count(m);
	changed = (l.n_done > 0 && addresses_read_now(*m->modules.addresses)) || changed;
	if (changed)
		m->ops.changed(m->ops.userdata);
	say(&l.added, EVENT_ADDRESS_ADDED, LOG_NOTICE, "added");
	say(&l.restored, EVENT_ADDRESS_ADDED, LOG_WARNING,
		"added again, since somebody had removed it");
	say(&l.removed, EVENT_ADDRESS_REMOVED, LOG_NOTICE, "removed");
	say_failure(&l);
	*ret_more = l.more;
	return l.more ? l.now : l.next;
}

static int on_timer(sd_event_source *source, uint64_t us, void *userdata)
{
	struct managed *m = userdata;
	struct monotime next;
	bool more;

	m->touched = false;
	next = look(m, &more);
	arm(m, m->touched ? clock_monotime() : next);
	return 0;
}

void managed_touch(struct managed *m)
{
	m->touched = true;
	if (m->ready)
		arm(m, clock_monotime());
}

/* All that is due. */
static struct monotime look_to_the_end(struct managed *m)
{
	struct monotime next;
	bool more;

	do
		next = look(m, &more);
	while (more);
	return next;
}

static bool is_awaited(const struct managed *m)
{
	struct look l = {0};

	for (size_t i = 0; i < m->n_items; i++) {
		const struct item *item = &m->items[i];
		struct addresses_held held;

		if (!item->view.interface || item->tried.us == 0 || item->view.error < 0)
			continue;
		addresses_held(*m->modules.addresses, &item->address,
			interface_index(&l, item->view.interface), &held);
		if (held.known && !held.here_usable)
			return true;
	}
	return false;
}

/* What was added is confirmed before anything is decided: what is announced by an agent that has
 * crashed must not be withdrawn for the moment that IPv6 takes to tell of its address. */
void managed_start(struct managed *m)
{
	struct monotime next = look_to_the_end(m);
	struct monotime until = monotime_add_ms(clock_monotime(), START_WAIT_MS);

	while (is_awaited(m) && monotime_before(clock_monotime(), until))
		if (addresses_await(*m->modules.addresses, START_WAIT_MS))
			m->ops.changed(m->ops.userdata);
	arm(m, next);
}

void managed_ready(struct managed *m)
{
	m->ready = true;
	managed_touch(m);
}

void managed_configure(struct managed *m)
{
	m->configured = make_items(m);
	/* Else what the items have borrowed is gone. */
	for (size_t i = 0; !m->configured && i < m->n_items; i++) {
		m->items[i].configured = false;
		m->items[i].view.interface = NULL;
	}
	managed_touch(m);
}

void managed_stop(struct managed *m)
{
	m->stopping = true;
}

uint64_t managed_leave(struct managed *m)
{
	struct monotime next = look_to_the_end(m), now = clock_monotime();
	bool bird = false, grace = false;

	for (size_t i = 0; i < m->n_items; i++) {
		bird = bird || m->items[i].view.state == MANAGED_STATE_BIRD;
		grace = grace || m->items[i].view.state == MANAGED_STATE_GRACE;
	}
	if (bird && apply_status(*m->modules.apply)->link == APPLY_LINK_UP)
		return LEAVE_LOOK_MS;
	return grace && !monotime_is_never(next) ? monotime_since_us(now, next) / 1000 + 1 : 0;
}

/* ---- life ---- */

int managed_new(struct managed **ret, sd_event *event, const struct managed_modules *modules,
	const struct managed_ops *ops)
{
	_cleanup_(managed_freep) struct managed *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return -ENOMEM;
	m->modules = *modules;
	m->ops = *ops;
	r = sd_event_add_time(event, &m->timer, CLOCK_BOOTTIME, UINT64_MAX, 1000, on_timer, m);
	if (r < 0)
		return r;
	(void)sd_event_source_set_enabled(m->timer, SD_EVENT_OFF);
	(void)sd_event_source_set_description(m->timer, "managed-addresses");
	r = sd_event_source_set_priority(m->timer, MANAGED_PRIORITY);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(m);
	return 0;
}

void managed_free(struct managed *m)
{
	if (!m)
		return;
	sd_event_source_disable_unref(m->timer);
	free(m->items);
	free(m->wide);
	free(m->wide_service);
	free(m);
}

bool managed_view(const struct managed *m, size_t service, size_t prefix, struct managed_view *ret)
{
	const struct config_service *s = &(*m->modules.config)->services[service];
	const struct item *item;

	if (!s->managed_interface)
		return false;
	item = find(m, &s->prefixes[prefix].prefix.address);
	if (!item)
		return false;
	*ret = item->view;
	return true;
}

const struct managed_counts *managed_counts(const struct managed *m)
{
	return &m->counts;
}
