/*
 * What the answers of a look mean, and the words for it. See advise.h.
 *
 * `show protocols all` of BIRD 2.0.12 to 3.2 (nest/proto.c: proto_cmd_show, proto/bgp/bgp.c:
 * bgp_show_proto_info): "  Channel ipv4" and below it "    State:          UP" and "    Table:
 * master4" and "    Output filter:  ACCEPT"; "    Local capabilities" and below it "      Graceful
 * restart", with "        Restart time: 120" below that only where this end asks for it (a bare
 * line means that it would help the other end).
 */
#include <stdarg.h>
#include <string.h>

#include "agent/base/clock.h"
#include "agent/bird/advise_private.h"
#include "agent/bird/fragment.h"

/* ---- answers ---- */

/* The value behind "  LABEL:", or NULL. */
static const char *judge_value(const char *text, const char *label)
{
	size_t n = strlen(label);

	text += strspn(text, " ");
	if (strncmp(text, label, n) != 0 || text[n] != ':')
		return NULL;
	return text + n + 1 + strspn(text + n + 1, " ");
}

void advise_read_target(struct advise_target *t, const struct reply *reply)
{
	bool local = false, restart = false;
	int family = -1;

	for (size_t i = 0; i < reply->n_lines; i++) {
		const char *text = reply->lines[i].text, *word = text + strspn(text, " "), *value;

		if (strncmp(word, "Local capabilities", 18) == 0)
			local = true;
		else if (strncmp(word, "Neighbor capabilities", 21) == 0)
			local = false;
		else if (restart && strncmp(word, "Restart time:", 13) == 0)
			t->graceful = true;
		else if (strncmp(word, "Channel ", 8) == 0)
			family = strcmp(word + 8, "ipv4") == 0	 ? 0
				 : strcmp(word + 8, "ipv6") == 0 ? 1
								 : -1;
		restart = local && strcmp(word, "Graceful restart") == 0;
		if (family < 0)
			continue;
		value = judge_value(text, "State");
		if (value)
			t->channel[family] = strcmp(value, "UP") == 0;
		value = judge_value(text, "Table");
		if (value && strlen(value) < NAMES_MAX)
			memcpy(t->table[family], value, strlen(value) + 1);
		value = judge_value(text, "Output filter");
		if (value && strlen(value) < NAMES_MAX)
			memcpy(t->filter[family], value, strlen(value) + 1);
	}
}

static bool judge_has_table(const struct advise_route *r, const char *table)
{
	for (size_t i = 0; i < r->n_tables; i++)
		if (strcmp(r->tables[i], table) == 0)
			return true;
	return false;
}

/* Of equals the one that BIRD lists first. */
static void judge_on_other(struct advise_route *r, const struct observe_route *route)
{
	struct advise_other *other = NULL;

	for (size_t i = 0; i < r->n_others; i++)
		if (strcmp(r->others[i].table, route->table) == 0)
			other = &r->others[i];
	if (!other && r->n_others < ADVISE_OTHERS_MAX)
		other = &r->others[r->n_others++];
	if (!other || (other->protocol[0] && other->preference >= route->preference))
		return;
	memcpy(other->protocol, route->protocol, NAMES_MAX);
	memcpy(other->table, route->table, NAMES_MAX);
	other->preference = route->preference;
	other->from_bgp = route->from_bgp;
}

static void judge_on_route(void *userdata, const struct observe_route *route)
{
	struct advise_route *r = userdata;

	if (!names_is_ours(route->protocol))
		judge_on_other(r, route);
	if (names_is_ours(route->protocol)) {
		if (r->n_tables < ADVISE_TABLES_MAX && !judge_has_table(r, route->table))
			memcpy(r->tables[r->n_tables++], route->table, NAMES_MAX);
	} else if (route->preference < FRAGMENT_PREFERENCE) {
		memcpy(r->beside, route->protocol, NAMES_MAX);
	} else if (route->preference > r->outranked_preference) {
		memcpy(r->outranked_by, route->protocol, NAMES_MAX);
		r->outranked_preference = route->preference;
	}
}

void advise_read_route(struct advise_route *r, const struct reply *reply)
{
	observe_routes(reply, judge_on_route, r);
}

bool advise_reaches(const struct advise_route *r, const struct advise_target *t)
{
	return judge_has_table(r, t->table[advise_is_six(r)]);
}

/* ---- what would stay ---- */

/*
 * Not what a BGP session brought: that is the way to another server, and no export line alone
 * decides about it. Not a target's own, which it never gets back. Where ours has gone already,
 * the agent looks on, so that a warning does not come and go with a service's health.
 */
const struct advise_other *advise_left(
	const struct advise *v, const struct advise_route *r, const struct advise_target *t)
{
	const char *table = t->table[advise_is_six(r)];

	if (t->is_kernel || r->outranked_by[0] ||
		((r->n_tables > 0 || v->once) && !judge_has_table(r, table)))
		return NULL;
	for (size_t i = 0; i < r->n_others; i++) {
		const struct advise_other *other = &r->others[i];

		if (strcmp(other->table, table) == 0)
			return other->from_bgp || strcmp(other->protocol, t->name) == 0 ? NULL
											: other;
	}
	return NULL;
}

enum advise_filter advise_filter(const struct advise_target *t, bool six)
{
	const char *filter = t->filter[six];

	if (strcmp(filter, "ACCEPT") == 0)
		return ADVISE_FILTER_ACCEPTS;
	if (strcmp(filter, "REJECT") == 0)
		return ADVISE_FILTER_REJECTS;
	return !filter[0] || strpbrk(filter, "()' \"") ? ADVISE_FILTER_UNKNOWN
						       : ADVISE_FILTER_NAMED;
}

void advise_stays(struct advise_route *r, struct advise_target *t, const struct advise_other *other)
{
	t->stay++;
	if (r->stay[0])
		return;
	memcpy(r->stay, other->protocol, NAMES_MAX);
	memcpy(r->stay_on, t->name, NAMES_MAX);
}

/* ---- findings ---- */

static void judge_find(struct advise *v, const char *code, const char *format, ...) _printf_(3, 4);
static void judge_find(struct advise *v, const char *code, const char *format, ...)
{
	struct advise_warning *w;
	va_list args;

	if (v->n_found == ADVISE_WARNINGS_MAX)
		return;
	w = &v->found[v->n_found++];
	w->code = code;
	va_start(args, format);
	(void)vsnprintf(w->text, sizeof(w->text), format, args);
	va_end(args);
}

/* "192.0.2.53/32", "192.0.2.53/32 and 2 more". */
struct judge_prefixes {
	char text[PREFIX_TEXT_MAX + 32];
	unsigned n;
	const struct advise_route *first;
};

static void judge_count(struct judge_prefixes *p, const struct advise_route *r)
{
	char prefix[PREFIX_TEXT_MAX];

	if (p->n++ == 0)
		p->first = r;
	(void)prefix_format(p->first->prefix, prefix);
	if (p->n == 1)
		(void)snprintf(p->text, sizeof(p->text), "%s is", prefix);
	else
		(void)snprintf(p->text, sizeof(p->text), "%s and %u more are", prefix, p->n - 1);
}

static void judge_template(struct advise *v)
{
	if (v->look.template_missing)
		judge_find(v, "templates_missing",
			"BIRD knows no table redshank4: bird.conf does not include the templates, "
			"so our fragments cannot be read; include "
			"/usr/share/redshank/bird/redshank.conf before them");
}

static void judge_no_sessions(struct advise *v)
{
	const struct advise_look *look = &v->look;

	if (look->sessions > 0)
		return;
	if (look->any_bgp)
		judge_find(v, "no_sessions",
			"none of BIRD's BGP sessions matches bird.sessions: on how many a prefix "
			"is exported cannot be told");
	else
		judge_find(v, "no_sessions",
			"BIRD has no BGP session: weights have no effect, and whether our routes "
			"leave this server cannot be told; where OSPF announces them, name its "
			"protocol in bird.sessions");
}

/* Announced in BIRD, and on no session that is up. */
static void judge_not_exported(struct advise *v)
{
	struct judge_prefixes p = {0};

	for (size_t i = 0; i < v->look.n_routes; i++) {
		const struct advise_route *r = &v->look.routes[i];
		bool reached = false;

		for (size_t k = 0; k < v->look.n_targets; k++)
			reached = reached || (!v->look.targets[k].is_kernel &&
						     v->look.targets[k].channel[advise_is_six(r)] &&
						     advise_reaches(r, &v->look.targets[k]));
		if (r->asked > 0 && r->exported == 0 && reached)
			judge_count(&p, r);
	}
	if (p.n == 0)
		return;
	if (p.first->beside[0])
		judge_find(v, "not_exported",
			"%s announced in BIRD, but no session exports it: the export line does not "
			"match our route (protocol %s has the same prefix: does the line ask for "
			"that, or for source = RTS_DEVICE?); let it accept where "
			"redshank_export_med()",
			p.text, p.first->beside);
	else
		judge_find(v, "not_exported",
			"%s announced in BIRD, but no session exports it: the export line does not "
			"match our route (a list of prefixes, a protocol's name?); let it accept "
			"where redshank_export_med()",
			p.text);
}

static void judge_sessions(struct advise *v)
{
	bool any = false;

	for (size_t i = 0; i < v->look.n_targets; i++)
		any = any || (!v->look.targets[i].is_kernel && v->look.targets[i].exported > 0);
	for (size_t i = 0; i < v->look.n_targets; i++) {
		const struct advise_target *t = &v->look.targets[i];
		bool six = !t->channel[0];

		if (t->is_kernel || t->offered == 0 || t->exported > 0)
			continue;
		if (t->other_table)
			judge_find(v, "other_table",
				"session %s takes its routes from table %s, which ours do not "
				"reach: add a protocol pipe { table %s; peer table redshank%c; "
				"import all; export none; }",
				t->name, t->table[six], t->table[six], six ? '6' : '4');
		else if (any)
			judge_find(v, "session_without_ours",
				"session %s is up and exports none of our prefixes, though others "
				"do; if that is meant, leave it out of bird.sessions, else change "
				"its export line",
				t->name);
	}
}

static void judge_preference(struct advise *v)
{
	struct judge_prefixes p = {0};

	for (size_t i = 0; i < v->look.n_routes; i++)
		if (v->look.routes[i].outranked_by[0])
			judge_count(&p, &v->look.routes[i]);
	if (p.n > 0)
		judge_find(v, "outranked",
			"%s in BIRD from protocol %s, too, with preference %u, and ours have %d: "
			"ours are not announced with their weight, or not withdrawn; lower its "
			"preference, or take the prefix out of it",
			p.text, p.first->outranked_by, p.first->outranked_preference,
			FRAGMENT_PREFERENCE);
}

static void judge_elsewhere(struct advise *v)
{
	struct judge_prefixes p = {0};

	for (size_t i = 0; v->once && i < v->look.n_routes; i++)
		if (v->look.routes[i].elsewhere[0])
			judge_count(&p, &v->look.routes[i]);
	if (p.n > 0)
		judge_find(v, "announced_elsewhere",
			"%s announced on session %s by protocol %s, whatever the service's health: "
			"let the export line accept ours first, then hand over by no longer "
			"accepting that",
			p.text, p.first->elsewhere_on, p.first->elsewhere);
}

/* Another's route of a prefix of ours, behind an export line that lets it pass. */
static void judge_stay(struct advise *v)
{
	struct judge_prefixes p = {0};
	char more[32] = "";
	unsigned sessions = 0;

	for (size_t i = 0; i < v->look.n_routes; i++)
		if (v->look.routes[i].stay[0])
			judge_count(&p, &v->look.routes[i]);
	for (size_t i = 0; i < v->look.n_targets; i++)
		sessions += v->look.targets[i].stay > 0;
	if (p.n == 0)
		return;
	if (sessions > 1)
		(void)snprintf(more, sizeof(more), " and %u more", sessions - 1);
	judge_find(v, "would_stay",
		"%s in BIRD from protocol %s, too, and would stay announced on session %s%s by "
		"that if ours were withdrawn, so also for a dead service: let the export line "
		"accept services where redshank_export_med() alone, or take the prefix out of "
		"that protocol",
		p.text, p.first->stay, p.first->stay_on, more);
}

static void judge_kernel(struct advise *v)
{
	for (size_t i = 0; i < v->look.n_targets; i++) {
		const struct advise_target *t = &v->look.targets[i];

		if (t->is_kernel && t->exported > 0)
			judge_find(v, "kernel_export",
				"protocol %s writes our routes into the kernel, as unreachable; "
				"let it export where ! redshank_is_ours()",
				t->name);
	}
}

static void judge_graceful(struct advise *v)
{
	for (size_t i = 0; i < v->look.n_targets; i++) {
		const struct advise_target *t = &v->look.targets[i];

		if (t->graceful)
			judge_find(v, "graceful_restart",
				"session %s asks its router to keep our routes while BIRD is away "
				"(graceful restart): if BIRD or this server dies, the router keeps "
				"sending here; say graceful restart aware",
				t->name);
	}
}

static void judge_toggles(struct advise *v)
{
	struct monotime now = clock_monotime();

	for (size_t i = 0; i < v->n_toggles; i++) {
		struct advise_toggle *t = &v->toggles[i];

		if (monotime_since_us(t->last, now) > ADVISE_TOGGLES_MS * 1000ULL)
			t->times = 0;
		if (t->is_source && t->times >= ADVISE_TOGGLES_LEAST)
			judge_find(v, "toggled",
				"somebody else keeps enabling and disabling protocol %s in BIRD: "
				"another health agent? Two of them at one prefix announce what "
				"either likes; stop it, then take the protocol out",
				t->name);
	}
}

void advise_judge(struct advise *v)
{
	v->n_found = 0;
	judge_template(v);
	judge_not_exported(v);
	judge_sessions(v);
	judge_preference(v);
	judge_elsewhere(v);
	judge_stay(v);
	judge_kernel(v);
	judge_graceful(v);
	judge_toggles(v);
	judge_no_sessions(v);
}
