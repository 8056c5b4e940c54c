/*
 * Reads what BIRD shows. See observe.h.
 *
 * The shapes, from nest/ of BIRD:
 *   show protocols      "NAME PROTO TABLE STATE SINCE INFO", columns padded, one line each
 *   show route          "Table NAME:", then "NET  TYPE [PROTOCOL TIME FROM] * (PREFERENCE)"; a
 *                       second route of a network has blanks for NET; " !" for " *" when the kernel
 *                       did not take it
 *   ... all             below each route its attributes, each behind a tab; a long list goes on in
 *                       lines with two tabs; "BGP.community" on 2.x is "bgp_community" on 3.x
 */
#include "agent/bird/observe.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/bird/fragment.h"

static bool observe_copy(char *ret, size_t size, const char *from, size_t n)
{
	if (n == 0 || n >= size)
		return false;
	memcpy(ret, from, n);
	ret[n] = '\0';
	return true;
}

static bool observe_stamp(const char *text, const char *label, char ret[OBSERVE_STAMP_MAX])
{
	size_t n = strlen(label);

	if (strncmp(text, label, n) != 0)
		return false;
	text += n;
	return observe_copy(ret, OBSERVE_STAMP_MAX, text, strnlen(text, OBSERVE_STAMP_MAX - 1));
}

bool observe_status(const struct reply *reply, struct observe_status *ret)
{
	struct observe_status status = {0};

	for (size_t i = 0; i < reply->n_lines; i++) {
		const char *text = reply->lines[i].text;

		if (!observe_stamp(text, "Last reboot on ", status.reboot))
			(void)observe_stamp(text, "Last reconfiguration on ", status.reconfigured);
	}
	if (!status.reboot[0] || !status.reconfigured[0])
		return false;
	*ret = status;
	return true;
}

/* What two readings of the same moment may differ by; an operator's `timeformat` may end at the
 * second. */
#define OBSERVE_GRAIN_MS 2
#define OBSERVE_COARSE_MS 1000

/* "2026-11-30 16:27:02.707" in ms; the calendar's epoch does not matter. Raises *grain for a stamp
 * without milliseconds. False for another form. */
static bool observe_stamp_ms(const char *stamp, int64_t *ret, int64_t *grain)
{
	struct tm tm = {0};
	unsigned ms = 0;
	const char *rest = strptime(stamp, "%Y-%m-%d %H:%M:%S", &tm);
	int used = 0;

	/* At most three digits. */
	/* NOLINTNEXTLINE(cert-err34-c) */
	if (!rest || (*rest && (sscanf(rest, ".%3u%n", &ms, &used) != 1 || used != 4 || rest[4])))
		return false;
	if (!*rest)
		*grain = OBSERVE_COARSE_MS;
	*ret = (int64_t)timegm(&tm) * 1000 + ms;
	return true;
}

bool observe_same_life(const struct observe_status *a, const struct observe_status *b)
{
	int64_t x, y, grain = OBSERVE_GRAIN_MS;

	if (observe_stamp_ms(a->reboot, &x, &grain) && observe_stamp_ms(b->reboot, &y, &grain))
		return llabs(x - y) <= grain;
	return strcmp(a->reboot, b->reboot) == 0;
}

bool observe_same_configuration(const struct observe_status *a, const struct observe_status *b)
{
	int64_t a_reboot, b_reboot, x, y, grain = OBSERVE_GRAIN_MS;

	if (observe_stamp_ms(a->reboot, &a_reboot, &grain) &&
		observe_stamp_ms(b->reboot, &b_reboot, &grain) &&
		observe_stamp_ms(a->reconfigured, &x, &grain) &&
		observe_stamp_ms(b->reconfigured, &y, &grain))
		return llabs((x - a_reboot) - (y - b_reboot)) <= grain;
	return strcmp(a->reconfigured, b->reconfigured) == 0;
}

/* The next word; its length, and `text` moves behind it. */
static const char *observe_word(const char **text, size_t *ret_n)
{
	const char *word = *text + strspn(*text, " ");

	*ret_n = strcspn(word, " ");
	*text = word + *ret_n;
	return word;
}

static bool observe_word_is(const char *word, size_t n, const char *what)
{
	return strlen(what) == n && strncmp(word, what, n) == 0;
}

/* What stands behind `since`, which may be two words, and is filled up to end in two spaces
 * (nest/proto.c: proto_cmd_show, "%-12s  %s"). */
static void observe_info(const char *text, char *ret, size_t size)
{
	const char *info = strstr(text + strspn(text, " "), "  ");
	size_t n = 0;

	for (info = info ? info + strspn(info, " ") : ""; *info && n + 1 < size; info++)
		if (*info != ' ' || (info[1] != ' ' && info[1] != '\0'))
			ret[n++] = *info;
	ret[n] = '\0';
}

bool observe_protocol(const struct reply_line *line, struct observe_protocol *ret)
{
	static const char *const down[] = {"down", "stop", "flush"};
	struct observe_protocol p = {.up = true};
	const char *text = line->text, *word;
	size_t n;

	if (line->code != 1002)
		return false;
	word = observe_word(&text, &n);
	if (!observe_copy(p.name, sizeof(p.name), word, n))
		return false;
	word = observe_word(&text, &n);
	(void)observe_copy(p.type, sizeof(p.type), word, n);
	p.is_bgp = observe_word_is(word, n, "BGP");
	(void)observe_word(&text, &n);
	if (n == 0)
		return false;
	word = observe_word(&text, &n);
	if (n == 0)
		return false;
	for (size_t i = 0; i < ELEMENTSOF(down); i++)
		if (observe_word_is(word, n, down[i]))
			p.up = false;
	p.established = observe_word_is(word, n, "up");
	observe_info(text, p.info, sizeof(p.info));
	*ret = p;
	return true;
}

bool observe_is_session(const struct observe_protocol *p, const char *pattern)
{
	bool named = strcmp(pattern, "*") != 0;

	if (!p->is_bgp && !(named && strcmp(p->type, "OSPF") == 0))
		return false;
	return fnmatch(pattern, p->name, 0) == 0;
}

bool observe_our_name(const char *text, char ret[NAMES_MAX])
{
	const char *start = strstr(text, "redshank:");
	char name[NAMES_MAX];
	size_t n;

	if (!start)
		return false;
	n = strcspn(start, " ,;\t'\"");
	if (n > 0 && start[n - 1] == ':')
		n--; /* "NAME: disabled" */
	if (!observe_copy(name, sizeof(name), start, n) || !names_is_ours(name))
		return false;
	memcpy(ret, name, sizeof(name));
	return true;
}

/* "192.0.2.0/24   unreachable [NAME 18:02:49.205] * (250)" */
static bool observe_route_head(const char *text, struct observe_route *route)
{
	const char *open = strchr(text, '['), *close, *name;
	size_t n;

	if (text[0] == '\t' || !open)
		return false;
	close = strchr(open, ']');
	if (!close)
		return false;
	name = open + 1;
	n = strcspn(name, " ]");
	if (!observe_copy(route->protocol, sizeof(route->protocol), name, n))
		return false;
	route->best = strncmp(close, "] *", 3) == 0 || strncmp(close, "] !", 3) == 0;
	open = strchr(close, '(');
	route->preference = open ? (unsigned)strtoul(open + 1, NULL, 10) : 0;
	return true;
}

/* "(1,2) (3, 4)": appends what is there. */
static void observe_tuples(
	const char *text, unsigned parts, struct config_community *list, size_t *n, bool *overflow)
{
	while ((text = strchr(text, '('))) {
		struct config_community c = {0};
		unsigned i = 0;
		char *end;

		text++;
		for (; i < parts; i++) {
			text += strspn(text, " ");
			if (!isdigit((unsigned char)*text))
				break;
			c.part[i] = (uint32_t)strtoul(text, &end, 10);
			text = *end == ',' ? end + 1 : end;
		}
		if (i != parts || *text != ')')
			continue;
		if (*n == OBSERVE_COMMUNITIES_MAX) {
			*overflow = true;
			return;
		}
		list[(*n)++] = c;
	}
}

enum observe_list {
	OBSERVE_LIST_OTHER,
	OBSERVE_LIST_COMMUNITIES,
	OBSERVE_LIST_LARGE,
};

static bool observe_label(const char **text, const char *label)
{
	size_t n = strlen(label);

	if (strncasecmp(*text, label, n) != 0 || (*text)[n] != ':')
		return false;
	*text += n + 1;
	return true;
}

/* "192.0.2.2", or "2001:db8::2 fe80::1": the first. */
static void observe_next_hop(const char *text, struct address *ret)
{
	char word[ADDRESS_TEXT_MAX];
	size_t n;

	text += strspn(text, " ");
	n = strcspn(text, " ");
	if (observe_copy(word, sizeof(word), text, n))
		(void)address_parse(word, ret, NULL);
}

/* A line behind a tab. `list` is what a line with two tabs goes on with. */
static void observe_attribute(
	const char *text, struct observe_route *route, enum observe_list *list)
{
	text++;
	if (*text != '\t') {
		*list = OBSERVE_LIST_OTHER;
		if (observe_label(&text, "redshank_weight")) {
			route->has_weight = true;
			route->weight = (uint32_t)strtoul(text, NULL, 10);
		} else if (observe_label(&text, "Type") || observe_label(&text, "source")) {
			/* "	Type: BGP univ" on 2.x, "	source: BGP" on 3.x */
			route->from_bgp = strncmp(text + strspn(text, " "), "BGP", 3) == 0;
		} else if (observe_label(&text, "BGP.next_hop") ||
			   observe_label(&text, "bgp_next_hop")) {
			observe_next_hop(text, &route->next_hop);
		} else if (observe_label(&text, "redshank_prepend")) {
			route->prepend = (uint32_t)strtoul(text, NULL, 10);
		} else if (observe_label(&text, "BGP.community") ||
			   observe_label(&text, "bgp_community")) {
			*list = OBSERVE_LIST_COMMUNITIES;
		} else if (observe_label(&text, "BGP.large_community") ||
			   observe_label(&text, "bgp_large_community")) {
			*list = OBSERVE_LIST_LARGE;
		}
	}
	switch (*list) {
	case OBSERVE_LIST_OTHER:
		break;
	case OBSERVE_LIST_COMMUNITIES:
		observe_tuples(
			text, 2, route->communities, &route->n_communities, &route->overflow);
		break;
	case OBSERVE_LIST_LARGE:
		observe_tuples(text, 3, route->large_communities, &route->n_large_communities,
			&route->overflow);
		break;
	}
}

void observe_routes(const struct reply *reply, observe_route_fn fn, void *userdata)
{
	struct observe_route route = {0};
	enum observe_list list = OBSERVE_LIST_OTHER;
	bool open = false;

	for (size_t i = 0; i < reply->n_lines; i++) {
		const char *text = reply->lines[i].text;
		size_t n = strlen(text);
		struct observe_route next = {0};

		if (text[0] == '\t') {
			if (open)
				observe_attribute(text, &route, &list);
			continue;
		}
		memcpy(next.table, route.table, sizeof(next.table));
		if (strncmp(text, "Table ", 6) == 0 && text[n - 1] == ':') {
			if (open)
				fn(userdata, &route);
			open = false;
			next.table[0] = '\0';
			(void)observe_copy(next.table, sizeof(next.table), text + 6, n - 7);
			route = next;
		} else if (observe_route_head(text, &next)) {
			if (open)
				fn(userdata, &route);
			open = true;
			list = OBSERVE_LIST_OTHER;
			route = next;
		}
	}
	if (open)
		fn(userdata, &route);
}

static bool observe_has(const struct config_community *list, size_t n,
	const struct config_community *c, unsigned parts)
{
	for (size_t i = 0; i < n; i++)
		if (memcmp(list[i].part, c->part, parts * sizeof(c->part[0])) == 0)
			return true;
	return false;
}

/* Both ways, as sets: BIRD keeps no order and no duplicate. */
static bool observe_same_set(const struct config_community *a, size_t n_a,
	const struct config_community *b, size_t n_b, unsigned parts)
{
	for (size_t i = 0; i < n_a; i++)
		if (!observe_has(b, n_b, &a[i], parts))
			return false;
	for (size_t i = 0; i < n_b; i++)
		if (!observe_has(a, n_a, &b[i], parts))
			return false;
	return true;
}

bool observe_route_matches(
	const struct observe_route *route, const struct config_prefix *prefix, bool last_resort)
{
	const struct config_community shutdown = {.part = {65535, 0}};
	struct config_community wanted[OBSERVE_COMMUNITIES_MAX + 1];
	size_t n = prefix->n_communities;

	if (n > OBSERVE_COMMUNITIES_MAX || prefix->n_large_communities > OBSERVE_COMMUNITIES_MAX)
		return true; /* More than is read back: what was configured is believed. */
	if (route->overflow || !route->has_weight)
		return false;
	if (n > 0)
		memcpy(wanted, prefix->communities, n * sizeof(wanted[0]));
	if ((last_resort || prefix->graceful))
		wanted[n++] = shutdown;
	return route->weight == (last_resort ? FRAGMENT_LAST_WEIGHT : prefix->announced_weight) &&
	       route->prepend == prefix->prepend &&
	       observe_same_set(route->communities, route->n_communities, wanted, n, 2) &&
	       observe_same_set(route->large_communities, route->n_large_communities,
		       prefix->large_communities, prefix->n_large_communities, 3);
}

/* Behind ":N" that starts at text, or NULL. */
static const char *observe_colon_number(const char *text)
{
	size_t n;

	if (*text != ':')
		return NULL;
	n = strspn(text + 1, "0123456789");
	return n > 0 ? text + 1 + n : NULL;
}

size_t observe_refused_file(const char *text)
{
	for (const char *p = text; (p = strchr(p, ':')); p++) {
		const char *end = observe_colon_number(p);

		if (end)
			end = observe_colon_number(end);
		if (end && (*end == ' ' || *end == '\0' || *end == ':'))
			return (size_t)(p - text);
	}
	return 0;
}
