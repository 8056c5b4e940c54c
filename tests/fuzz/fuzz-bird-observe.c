/*
 * libFuzzer target of the readers of BIRD's replies: status, protocols, routes, refusals. The input
 * is as of fuzz-bird-reply, whose corpus it shares: the first byte is skipped.
 *
 * Besides what the sanitizers see: every text is terminated, every count within its array, and what
 * was read is the same when it is read again.
 */
#include "agent/bird/observe.h"
#include "tests/fuzz/fuzz.h"

static void on_route(void *userdata, const struct observe_route *route)
{
	static const struct config_prefix plain;

	assert(strnlen(route->table, sizeof(route->table)) < sizeof(route->table));
	assert(strnlen(route->protocol, sizeof(route->protocol)) < sizeof(route->protocol));
	assert(route->n_communities <= OBSERVE_COMMUNITIES_MAX);
	assert(route->n_large_communities <= OBSERVE_COMMUNITIES_MAX);
	(void)observe_route_matches(route, &plain, false);
	(void)observe_route_matches(route, &plain, true);
	++*(size_t *)userdata;
}

static void read_line(const struct reply_line *line)
{
	struct observe_protocol a, b;
	char name[NAMES_MAX];

	if (observe_protocol(line, &a)) {
		assert(observe_protocol(line, &b));
		assert(strcmp(a.name, b.name) == 0 && strcmp(a.info, b.info) == 0);
		assert(strlen(a.name) < sizeof(a.name) && strlen(a.type) < sizeof(a.type));
		assert(!a.established || a.up);
		(void)observe_is_session(&a, "*");
		(void)observe_is_session(&a, line->text);
	}
	if (observe_our_name(line->text, name))
		assert(strnlen(name, sizeof(name)) < sizeof(name));
	assert(observe_refused_file(line->text) <= strlen(line->text));
}

static void on_reply(void *userdata, const struct reply *reply)
{
	struct observe_status status;
	size_t n = 0, again = 0;

	for (size_t i = 0; i < reply->n_lines; i++)
		read_line(&reply->lines[i]);
	if (observe_status(reply, &status)) {
		assert(observe_same_life(&status, &status));
		assert(observe_same_configuration(&status, &status));
	}
	observe_routes(reply, on_route, &n);
	observe_routes(reply, on_route, &again);
	assert(n == again && n <= reply->n_lines);
}

static void on_push(void *userdata, const char *text)
{
	char name[NAMES_MAX];

	(void)observe_our_name(text, name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct reply_ops ops = {.reply = on_reply, .push = on_push};
	struct reply_parser *p;
	struct error error = {""};

	if (size < 2)
		return 0;
	p = reply_parser_new(&ops);
	assert(p);
	(void)reply_parser_feed(p, (const char *)data + 1, size - 1, &error);
	reply_parser_free(p);
	return 0;
}
