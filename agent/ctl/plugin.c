/*
 * The status for monitoring: the worst thing in one line.
 *
 * How bad what is lies in judge.c, for the first line of the status says the same: TROUBLE is
 * CRITICAL, Look is WARNING.
 */
#include <stdarg.h>
#include <string.h>

#include "agent/base/buffer.h"
#include "agent/judge/judge.h"
#include "agent/ctl/status.h"
#include "agent/ctl/text.h"

#define PLUGIN_LINE_MAX 4096

struct plugin {
	enum judge_level worst;
	struct buffer texts[JUDGE_TROUBLE + 1];
	unsigned services, healthy, prefixes, announced, exported;
	bool unknown; /* what BIRD announces */
};

/* A text too long for the line is dropped; the code still counts. */
static void plugin_say(struct plugin *p, enum judge_level code, const char *format, ...)
	_printf_(3, 4);
static void plugin_say(struct plugin *p, enum judge_level code, const char *format, ...)
{
	_cleanup_free_ char *text = NULL;
	struct buffer *b = &p->texts[code];
	va_list ap;
	int n;

	va_start(ap, format);
	n = vasprintf(&text, format, ap);
	va_end(ap);
	if (code > p->worst)
		p->worst = code;
	if (n < 0) {
		text = NULL;
		return;
	}
	(void)buffer_printf(b, "%s%s", b->length > 0 ? "; " : "", text);
}

static void plugin_on_finding(void *userdata, const struct judge_finding *finding)
{
	plugin_say(userdata, finding->level, "%s%s%s", finding->text,
		finding->detail[0] ? ": " : "", finding->detail);
}

static void say_prefix(struct plugin *p, const char *name, const json_t *prefix, const json_t *bird)
{
	const char *other = judge_text(prefix, "elsewhere"), *reason = judge_text(prefix, "reason");
	enum judge_prefix what = judge_prefix(prefix, bird);
	enum judge_level level = judge_prefix_level(what);

	switch (what) {
	case JUDGE_PREFIX_ELSEWHERE:
		plugin_say(p, level, "%s is withdrawn, but protocol %s announces it", name, other);
		return;
	case JUDGE_PREFIX_STILL:
		plugin_say(p, level, "%s should be withdrawn and is announced", name);
		return;
	case JUDGE_PREFIX_MISSING:
		plugin_say(p, level, "%s should be announced and is not", name);
		return;
	case JUDGE_PREFIX_REPLACED:
		plugin_say(p, level, "%s is announced by protocol %s, not by ours", name, other);
		return;
	case JUDGE_PREFIX_NO_SESSION:
		plugin_say(p, level, "%s is announced to no session", name);
		return;
	case JUDGE_PREFIX_NO_ADDRESS:
		plugin_say(p, level, "no address of this host lies in %s", name);
		return;
	case JUDGE_PREFIX_FORCED:
		plugin_say(p, level, "%s is announced by force", name);
		return;
	case JUDGE_PREFIX_FROZEN:
		plugin_say(p, level, "%s is kept %s by the freeze", name,
			judge_is(prefix, "wanted", "withdraw") ? "withdrawn" : "announced");
		return;
	case JUDGE_PREFIX_KEPT:
		plugin_say(p, level, "%s is unhealthy and kept announced by its floor", name);
		return;
	case JUDGE_PREFIX_SHED:
		plugin_say(p, level, "%s is shed to neighbours", name);
		return;
	case JUDGE_PREFIX_WITHDRAWN:
	case JUDGE_PREFIX_DRAINED:
		plugin_say(p, level, "%s is withdrawn: %s", name, reason);
		return;
	case JUDGE_PREFIX_UNDECIDED:
		plugin_say(p, level, "%s is not decided yet: %s", name, reason);
		return;
	case JUDGE_PREFIX_DEMOTED:
		plugin_say(p, level, "%s is demoted: %s", name, reason);
		return;
	case JUDGE_PREFIX_WELL:
		return;
	}
}

static void say_service(
	struct plugin *p, const char *name, const json_t *service, const json_t *bird)
{
	const char *item;
	json_t *value;

	p->services++;
	if (judge_health_level(service) == JUDGE_GOOD)
		p->healthy++;
	else
		plugin_say(p, judge_health_level(service), "%s is %s", name,
			judge_text(service, "health"));
	json_object_foreach (json_object_get(service, "checks"), item, value) {
		enum judge_check what = judge_check(service, value);

		if (what != JUDGE_CHECK_WELL)
			plugin_say(p, judge_check_level(what), "check %s of %s %s: %s", item, name,
				judge_check_says(what), judge_text(value, "reason"));
	}
	json_object_foreach (json_object_get(service, "prefixes"), item, value) {
		p->prefixes++;
		p->unknown = p->unknown || !json_is_boolean(json_object_get(value, "announced"));
		p->announced += json_is_true(json_object_get(value, "announced"));
		p->exported += json_integer_value(json_object_get(value, "exported")) > 0;
		say_prefix(p, item, value, bird);
	}
}

/* The plug-ins' own way to say that a value is not known is "U". */
static void put_performance(FILE *out, const struct plugin *p)
{
	(void)fprintf(
		out, "services=%u healthy=%u prefixes=%u ", p->services, p->healthy, p->prefixes);
	if (p->unknown)
		(void)fprintf(out, "announced=U exported=U\n");
	else
		(void)fprintf(out, "announced=%u exported=%u\n", p->announced, p->exported);
}

char *plugin_escape(const char *text)
{
	char *escaped = text_escape(text);

	for (char *bar = escaped; (bar = strchr(bar, '|')) != NULL;)
		*bar = '/';
	return escaped;
}

static void put_line(FILE *out, const struct plugin *p)
{
	static const char *const words[] = {"OK", "WARNING", "CRITICAL"};
	_cleanup_buffer_ struct buffer line = {0};
	_cleanup_free_ char *escaped = NULL;

	buffer_init(&line, 4 * PLUGIN_LINE_MAX);
	(void)buffer_printf(&line, "REDSHANK %s - ", words[p->worst]);
	for (int code = JUDGE_TROUBLE; code > JUDGE_GOOD; code--)
		if (p->texts[code].length > 0)
			(void)buffer_printf(&line, "%s; ", buffer_string(&p->texts[code]));
	(void)buffer_printf(&line, "%u of %u services healthy, ", p->healthy, p->services);
	if (p->unknown)
		(void)buffer_printf(
			&line, "whether %u prefixes are announced is unknown", p->prefixes);
	else
		(void)buffer_printf(
			&line, "%u of %u prefixes announced", p->announced, p->prefixes);
	escaped = plugin_escape(buffer_string(&line));
	(void)fprintf(out, "%s | ", escaped);
	put_performance(out, p);
}

int status_plugin(FILE *out, const json_t *document)
{
	struct plugin p = {.worst = JUDGE_GOOD};
	const char *name;
	json_t *service;

	for (size_t i = 0; i < ELEMENTSOF(p.texts); i++)
		buffer_init(&p.texts[i], PLUGIN_LINE_MAX);
	judge_bird(document, plugin_on_finding, &p);
	json_object_foreach (json_object_get(document, "services"), name, service)
		say_service(&p, name, service, json_object_get(document, "bird"));
	put_line(out, &p);
	for (size_t i = 0; i < ELEMENTSOF(p.texts); i++)
		buffer_done(&p.texts[i]);
	return (int)p.worst;
}
