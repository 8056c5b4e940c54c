/*
 * Messages between agents, from and to JSON.
 *
 * A neighbour may be older, newer, broken or lying. So everything that is read has a bound, a
 * number out of its bounds is no number (but an overload beyond all measure, which stays an
 * overload), and what is not understood becomes the value that gives nobody room: unknown, zero,
 * not willing. Keys that stand twice are refused: two readers might take one each.
 *
 * What is written needs no escapes: names of nodes, sites and signals are letters, digits and
 * ". _ -", and prefixes are our own text.
 */
#include "agent/neighbour/message.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "agent/base/printable.h"

#define MEMBER_ADDRESS_MAX 64
#define MEMBERS_MAX 1024 /* in a file; how many count is the caller's to say */

#define STATE_COUNT (SHED_STATE_HEALTHY + 1)
#define PURPOSE_COUNT (SHED_PURPOSE_HEALTH + 1)

static inline void json_decrefp_(json_t **j)
{
	json_decref(*j);
}
#define _cleanup_json_ _cleanup_(json_decrefp_)

void message_report_free(struct message_report *r)
{
	if (!r)
		return;
	free(r->sheds);
	free(r->prefixes);
	free(r);
}

/* ---- reading: values ---- */

/* The text as an object, or NULL with the text of what is wrong and *ret_r set. */
static json_t *read_object(const char *text, size_t n, int *ret_r, struct error *ret_error)
{
	char what[JSON_ERROR_TEXT_LENGTH + 16];
	json_error_t e = {0};
	json_t *object = json_loadb(text, n, JSON_REJECT_DUPLICATES, &e);

	if (json_is_object(object))
		return object;
	/* Where jansson cannot allocate it often says nothing at all. */
	if (!object && (json_error_code(&e) == json_error_out_of_memory || e.text[0] == '\0')) {
		*ret_r = error_set_errno(ret_error, ENOMEM, "message");
		return NULL;
	}
	if (object)
		*ret_r = error_set(ret_error, EBADMSG, "expected a JSON object");
	else
		*ret_r = error_set(ret_error, EBADMSG, "line %d, column %d: %s", e.line, e.column,
			printable_copy(what, sizeof(what), e.text, strlen(e.text)));
	json_decref(object);
	return NULL;
}

static bool is_word(const char *text, size_t size, const char *also)
{
	size_t n = strlen(text);

	if (n == 0 || n >= size)
		return false;
	for (const char *c = text; *c; c++)
		if (!(*c >= 'a' && *c <= 'z') && !(*c >= 'A' && *c <= 'Z') &&
			!(*c >= '0' && *c <= '9') && !strchr(also, *c))
			return false;
	return true;
}

/* As the configuration has them in `node`. */
static bool is_node(const char *text)
{
	return is_word(text, MESSAGE_NODE_MAX, "._-") && text[0] != '.' && text[0] != '-';
}

/* A word into a place of `size` bytes; untouched and false where it is none. */
static bool read_word(const json_t *object, const char *key, char *ret, size_t size)
{
	const char *text = json_string_value(json_object_get(object, key));

	if (!text || !is_word(text, size, "_-."))
		return false;
	memcpy(ret, text, strlen(text) + 1);
	return true;
}

static bool read_number(
	const json_t *object, const char *key, uint64_t minimum, uint64_t maximum, uint64_t *ret)
{
	const json_t *value = json_object_get(object, key);
	json_int_t n = json_integer_value(value);

	if (!json_is_integer(value) || n < 0 || (uint64_t)n < minimum || (uint64_t)n > maximum)
		return false;
	*ret = (uint64_t)n;
	return true;
}

/* Basis points; more than can be is cut. */
static bool read_bp(const json_t *value, uint32_t *ret)
{
	json_int_t n = json_integer_value(value);

	if (!json_is_integer(value) || n < 0)
		return false;
	*ret = n > (json_int_t)MESSAGE_BP_MAX ? MESSAGE_BP_MAX : (uint32_t)n;
	return true;
}

static bool read_prefix(const char *text, struct prefix *ret)
{
	return text && strlen(text) < PREFIX_TEXT_MAX && prefix_parse(text, ret, NULL) == 0;
}

/* ---- reading: a report ---- */

static int compare_prefix(const struct prefix *a, const struct prefix *b)
{
	int r = (int)a->address.family - (int)b->address.family;

	if (r == 0)
		r = memcmp(a->address.bytes, b->address.bytes, sizeof(a->address.bytes));
	return r != 0 ? r : (int)a->length - (int)b->length;
}

static int compare_prefixes(const void *a, const void *b)
{
	return compare_prefix(&((const struct message_prefix *)a)->prefix,
		&((const struct message_prefix *)b)->prefix);
}

static enum shed_state read_state(const json_t *object)
{
	const char *text = json_string_value(json_object_get(object, "state"));

	for (unsigned i = 0; text && i < STATE_COUNT; i++)
		if (strcmp(text, shed_state_name((enum shed_state)i)) == 0)
			return (enum shed_state)i;
	return SHED_STATE_OUT;
}

static void read_one_prefix(const json_t *value, struct message_prefix *p)
{
	uint64_t weight = 0;

	p->state = read_state(value);
	p->weight_known = read_number(value, "weight", 0, 65535, &weight);
	p->weight = (uint32_t)weight;
	p->load_known = read_number(value, "load", 0, SHED_AMOUNT_MAX, &p->load);
}

/* In order; of a prefix in two spellings nothing is known. */
static void sort_prefixes(struct message_report *r)
{
	size_t n = 0;

	if (r->n_prefixes == 0)
		return;
	qsort(r->prefixes, r->n_prefixes, sizeof(*r->prefixes), compare_prefixes);
	for (size_t i = 1; i < r->n_prefixes; i++) {
		if (compare_prefixes(&r->prefixes[i], &r->prefixes[n]) == 0)
			r->prefixes[n] = (struct message_prefix){.prefix = r->prefixes[n].prefix};
		else
			r->prefixes[++n] = r->prefixes[i];
	}
	r->n_prefixes = n + 1;
}

static int read_prefixes(struct message_report *r, json_t *object)
{
	size_t most = json_object_size(object);
	const char *key;
	json_t *value;

	if (most == 0)
		return 0;
	if (most > MESSAGE_PREFIXES_MAX)
		most = MESSAGE_PREFIXES_MAX;
	r->prefixes = calloc(most, sizeof(*r->prefixes));
	if (!r->prefixes)
		return -ENOMEM;
	json_object_foreach (object, key, value) {
		if (r->n_prefixes == most)
			break;
		if (json_is_object(value) && read_prefix(key, &r->prefixes[r->n_prefixes].prefix))
			read_one_prefix(value, &r->prefixes[r->n_prefixes++]);
	}
	sort_prefixes(r);
	return 0;
}

static int read_sheds(struct message_report *r, const json_t *list)
{
	size_t most = json_array_size(list);
	json_t *value;
	size_t i;

	if (most == 0)
		return 0;
	if (most > MESSAGE_PREFIXES_MAX)
		most = MESSAGE_PREFIXES_MAX;
	r->sheds = calloc(most, sizeof(*r->sheds));
	if (!r->sheds)
		return -ENOMEM;
	json_array_foreach (list, i, value)
		if (r->n_sheds < most &&
			read_prefix(json_string_value(value), &r->sheds[r->n_sheds]))
			r->n_sheds++;
	return 0;
}

static void read_signals(struct message_report *r, json_t *object)
{
	const char *key;
	json_t *value;

	json_object_foreach (object, key, value) {
		struct message_signal *s = &r->signals[r->n_signals];

		if (r->n_signals == MESSAGE_SIGNALS_MAX)
			return;
		if (!is_word(key, sizeof(s->name), "_-.") || !read_bp(value, &s->bp))
			continue;
		memcpy(s->name, key, strlen(key) + 1);
		r->n_signals++;
	}
}

/* Room counts only where all that belongs to it is said and fits together. */
static void read_room(struct message_report *r, const json_t *object)
{
	r->willing = json_is_true(json_object_get(object, "willing"));
	(void)read_number(object, "capacity", 1, SHED_AMOUNT_MAX, &r->capacity);
	r->load_known = read_number(object, "load", 0, SHED_AMOUNT_MAX, &r->load);
	if (!r->willing || r->capacity == 0 ||
		!read_number(object, "spare", 0, r->capacity, &r->spare))
		r->spare = 0;
}

int message_report_read(
	const char *text, size_t n, struct message_report **ret, struct error *ret_error)
{
	_cleanup_report_ struct message_report *r = NULL;
	_cleanup_json_ json_t *object = NULL;
	uint64_t number = 0;
	int error = 0;

	if (n > MESSAGE_REPORT_MAX)
		return error_set(
			ret_error, EBADMSG, "a report has at most %u bytes", MESSAGE_REPORT_MAX);
	object = read_object(text, n, &error, ret_error);
	if (!object)
		return error;
	r = calloc(1, sizeof(*r));
	if (!r)
		return error_set_errno(ret_error, ENOMEM, "message");
	if (!read_word(object, "node", r->node, sizeof(r->node)) || !is_node(r->node))
		return error_set(ret_error, EBADMSG, "`node`: expected the name of a node");
	if (read_number(object, "version", 0, UINT32_MAX, &number))
		r->version = (unsigned)number;
	(void)read_word(object, "site", r->site, sizeof(r->site));
	(void)read_number(object, "boot", 1, MESSAGE_ID_MAX, &r->boot);
	r->utilisation_known = read_bp(json_object_get(object, "utilisation"), &r->utilisation_bp);
	if (read_number(object, "want", 0, MESSAGE_WANT_MAX, &number))
		r->want = (uint32_t)number;
	read_room(r, object);
	read_signals(r, json_object_get(object, "signals"));
	error = read_sheds(r, json_object_get(object, "sheds"));
	if (error == 0)
		error = read_prefixes(r, json_object_get(object, "prefixes"));
	if (error < 0)
		return error_set_errno(ret_error, -error, "message");
	*ret = TAKE_PTR(r);
	return 0;
}

const struct message_prefix *message_report_find(
	const struct message_report *r, const struct prefix *prefix)
{
	const struct message_prefix key = {.prefix = *prefix};

	if (r->n_prefixes == 0)
		return NULL;
	return bsearch(&key, r->prefixes, r->n_prefixes, sizeof(*r->prefixes), compare_prefixes);
}

/* ---- for core/shed ---- */

static struct shed_report_prefix digest_prefix(
	const struct message_prefix *p, uint64_t capacity, bool load_known)
{
	struct shed_report_prefix d = {.state = (uint8_t)p->state, .weight = (uint16_t)p->weight};

	/* A weight that is not known cannot be compared: it takes no part. */
	if (!p->weight_known)
		d.state = SHED_STATE_OUT;
	if (load_known && p->load_known && p->load <= capacity)
		d.load_bp = (uint16_t)(p->load * SHED_WHOLE_BP / capacity);
	else if (load_known && p->load_known)
		d.load_bp = SHED_WHOLE_BP;
	return d;
}

void message_report_digest(const struct message_report *r, const struct prefix *prefixes, size_t n,
	struct shed_report *ret, struct shed_report_prefix *ret_prefixes)
{
	bool valid = r->load_known && r->capacity > 0;

	for (size_t i = 0; i < n; i++) {
		const struct message_prefix *p = message_report_find(r, &prefixes[i]);

		ret_prefixes[i] = p ? digest_prefix(p, r->capacity, valid)
				    : (struct shed_report_prefix){.state = SHED_STATE_OUT};
	}
	*ret = (struct shed_report){
		.boot = r->boot,
		.valid = valid,
		.capacity = r->capacity,
		.load = r->load,
		.spare = valid ? r->spare : 0,
		.willing = valid && r->willing,
		.want = r->want,
		.n_sheds = (uint32_t)r->n_sheds,
		.prefixes = ret_prefixes,
	};
}

/* ---- writing: a report ---- */

static int write_prefixes(const struct message_report *r, struct buffer *out)
{
	char text[PREFIX_TEXT_MAX];
	int e = buffer_append_string(out, ",\"prefixes\":{");

	for (size_t i = 0; e == 0 && i < r->n_prefixes; i++) {
		const struct message_prefix *p = &r->prefixes[i];

		e = buffer_printf(out, "%s\"%s\":{\"state\":\"%s\"", i ? "," : "",
			prefix_format(&p->prefix, text), shed_state_name(p->state));
		if (e == 0 && p->weight_known)
			e = buffer_printf(out, ",\"weight\":%" PRIu32, p->weight);
		if (e == 0 && p->load_known)
			e = buffer_printf(out, ",\"load\":%" PRIu64, p->load);
		if (e == 0)
			e = buffer_append_string(out, "}");
	}
	return e == 0 ? buffer_append_string(out, "}") : e;
}

static int write_lists(const struct message_report *r, struct buffer *out)
{
	char text[PREFIX_TEXT_MAX];
	int e = buffer_append_string(out, ",\"signals\":{");

	for (size_t i = 0; e == 0 && i < r->n_signals; i++)
		e = buffer_printf(out, "%s\"%s\":%" PRIu32, i ? "," : "", r->signals[i].name,
			r->signals[i].bp);
	if (e == 0)
		e = buffer_append_string(out, "},\"sheds\":[");
	for (size_t i = 0; e == 0 && i < r->n_sheds; i++)
		e = buffer_printf(out, "%s\"%s\"", i ? "," : "", prefix_format(&r->sheds[i], text));
	return e == 0 ? buffer_append_string(out, "]") : e;
}

int message_report_write(const struct message_report *r, struct buffer *out)
{
	int e = buffer_printf(out, "{\"version\":%d,\"node\":\"%s\"", MESSAGE_VERSION, r->node);

	if (e == 0 && r->site[0])
		e = buffer_printf(out, ",\"site\":\"%s\"", r->site);
	if (e == 0 && r->boot)
		e = buffer_printf(out, ",\"boot\":%" PRIu64, r->boot);
	if (e == 0 && r->capacity)
		e = buffer_printf(out, ",\"capacity\":%" PRIu64, r->capacity);
	if (e == 0 && r->load_known)
		e = buffer_printf(out, ",\"load\":%" PRIu64, r->load);
	if (e == 0 && r->utilisation_known)
		e = buffer_printf(out, ",\"utilisation\":%" PRIu32, r->utilisation_bp);
	if (e == 0)
		e = buffer_printf(out, ",\"willing\":%s,\"spare\":%" PRIu64 ",\"want\":%" PRIu32,
			r->willing ? "true" : "false", r->spare, r->want);
	if (e == 0)
		e = write_lists(r, out);
	if (e == 0)
		e = write_prefixes(r, out);
	return e == 0 ? buffer_append_string(out, "}\n") : e;
}

/* ---- grants ---- */

static bool read_purpose(const json_t *object, enum shed_purpose *ret)
{
	const char *text = json_string_value(json_object_get(object, "purpose"));

	for (unsigned i = 0; text && i < PURPOSE_COUNT; i++)
		if (strcmp(text, shed_purpose_name((enum shed_purpose)i)) == 0) {
			*ret = (enum shed_purpose)i;
			return true;
		}
	return false;
}

int message_grant_read(
	const char *text, size_t n, struct message_grant *ret, struct error *ret_error)
{
	_cleanup_json_ json_t *object = NULL;
	struct message_grant g = {.node = ""};
	int error = 0;

	if (n > MESSAGE_GRANT_MAX)
		return error_set(
			ret_error, EBADMSG, "a grant has at most %u bytes", MESSAGE_GRANT_MAX);
	object = read_object(text, n, &error, ret_error);
	if (!object)
		return error;
	if (!read_word(object, "node", g.node, sizeof(g.node)) || !is_node(g.node))
		return error_set(ret_error, EBADMSG, "`node`: expected the name of a node");
	if (!read_number(object, "boot", 1, MESSAGE_ID_MAX, &g.boot))
		return error_set(ret_error, EBADMSG,
			"`boot`: expected an integer from 1 to %" PRIu64, MESSAGE_ID_MAX);
	if (!read_prefix(json_string_value(json_object_get(object, "prefix")), &g.prefix))
		return error_set(
			ret_error, EBADMSG, "`prefix`: expected a prefix, \"192.0.2.53/32\"");
	if (!read_number(object, "share", 0, SHED_AMOUNT_MAX, &g.share))
		return error_set(ret_error, EBADMSG, "`share`: expected an integer from 0 to %llu",
			SHED_AMOUNT_MAX);
	if (!read_purpose(object, &g.purpose))
		return error_set(ret_error, EBADMSG, "`purpose`: expected \"shed\" or \"health\"");
	if (!read_number(object, "request", 1, MESSAGE_ID_MAX, &g.request))
		return error_set(ret_error, EBADMSG,
			"`request`: expected an integer from 1 to %" PRIu64, MESSAGE_ID_MAX);
	*ret = g;
	return 0;
}

int message_grant_write(const struct message_grant *g, struct buffer *out)
{
	char text[PREFIX_TEXT_MAX];

	return buffer_printf(out,
		"{\"version\":%d,\"node\":\"%s\",\"boot\":%" PRIu64
		",\"prefix\":\"%s\",\"share\":%" PRIu64 ",\"purpose\":\"%s\",\"request\":%" PRIu64
		"}\n",
		MESSAGE_VERSION, g->node, g->boot, prefix_format(&g->prefix, text), g->share,
		shed_purpose_name(g->purpose), g->request);
}

/* A reason that we do not have is still a refusal. */
static enum shed_refusal read_refusal(const json_t *object)
{
	const char *text = json_string_value(json_object_get(object, "refused"));
	unsigned refusal = text ? shed_refusal_parse(text) : SHED_REFUSAL_COUNT;

	return refusal < SHED_REFUSAL_COUNT && refusal != SHED_REFUSAL_NONE
		       ? (enum shed_refusal)refusal
		       : SHED_REFUSAL_UNWILLING;
}

void message_answer_read(
	const char *text, size_t n, bool granted, uint64_t share, struct shed_answer *ret)
{
	_cleanup_json_ json_t *object =
		n <= MESSAGE_GRANT_MAX ? json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL) : NULL;
	uint64_t promised = 0, lease_ms = 0;

	*ret = (struct shed_answer){.refused = SHED_REFUSAL_UNWILLING};
	if (!granted) {
		ret->refused = read_refusal(object);
		return;
	}
	if (!read_number(object, "granted", 0, SHED_AMOUNT_MAX, &promised) ||
		!read_number(object, "lease_ms", 1, MESSAGE_LEASE_MAX_MS, &lease_ms))
		return;
	if (promised < share) {
		ret->refused = SHED_REFUSAL_NO_ROOM;
		return;
	}
	*ret = (struct shed_answer){.refused = SHED_REFUSAL_NONE, .lease_ms = lease_ms};
}

int message_answer_write(const struct shed_answer *a, uint64_t share, struct buffer *out)
{
	if (a->refused == SHED_REFUSAL_NONE)
		return buffer_printf(out, "{\"granted\":%" PRIu64 ",\"lease_ms\":%" PRIu64 "}\n",
			share, a->lease_ms);
	return buffer_printf(out, "{\"refused\":\"%s\"}\n", shed_refusal_name(a->refused));
}

/* ---- a file of members ---- */

int message_members_read(const char *text, size_t n,
	int (*add)(void *userdata, const char *name, const char *address), void *userdata,
	struct error *ret_error)
{
	_cleanup_json_ json_t *object = NULL;
	const char *key;
	json_t *value;
	int error = 0;

	object = read_object(text, n, &error, ret_error);
	if (!object)
		return error;
	if (json_object_size(object) > MEMBERS_MAX)
		return error_set(ret_error, EBADMSG, "at most %d members", MEMBERS_MAX);
	json_object_foreach (object, key, value) {
		char shown[64];

		(void)printable_copy(shown, sizeof(shown), key, strlen(key));
		if (!is_node(key))
			return error_set(
				ret_error, EBADMSG, "\"%s\": expected the name of a node", shown);
		if (!json_is_string(value) || json_string_length(value) > MEMBER_ADDRESS_MAX)
			return error_set(ret_error, EBADMSG,
				"%s: expected a string, \"ADDRESS:PORT\"", shown);
		error = add(userdata, key, json_string_value(value));
		if (error < 0)
			return error;
	}
	return 0;
}
