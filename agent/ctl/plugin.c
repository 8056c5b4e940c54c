/*
 * The status for monitoring: the worst thing in one line.
 *
 * CRITICAL is what costs traffic or sends it into a hole: BIRD away, a prefix that is announced
 * although it should not be or the other way round, and an unhealthy service. WARNING is what a
 * person should look at by day. redshankctl(1) holds the same list.
 */
#include <stdarg.h>
#include <string.h>

#include "agent/base/buffer.h"
#include "agent/ctl/status.h"
#include "agent/ctl/text.h"

#define PLUGIN_LINE_MAX 4096

enum plugin_code {
	PLUGIN_OK,
	PLUGIN_WARNING,
	PLUGIN_CRITICAL,
};

struct plugin {
	enum plugin_code worst;
	struct buffer texts[PLUGIN_CRITICAL + 1];
	unsigned services, healthy, prefixes, announced, exported;
};

static const char *text_of(const json_t *object, const char *key)
{
	const char *s = json_string_value(json_object_get(object, key));

	return s ? s : "";
}

static bool is_text(const json_t *object, const char *key, const char *text)
{
	return strcmp(text_of(object, key), text) == 0;
}

/* A text too long for the line is dropped; the code still counts. */
static void plugin_say(struct plugin *p, enum plugin_code code, const char *format, ...)
	_printf_(3, 4);
static void plugin_say(struct plugin *p, enum plugin_code code, const char *format, ...)
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

static void judge_bird(struct plugin *p, const json_t *document)
{
	const json_t *bird = json_object_get(document, "bird");

	if (is_text(bird, "link", "away") || is_text(bird, "link", "refused"))
		plugin_say(p, PLUGIN_CRITICAL, "BIRD is %s: %s",
			is_text(bird, "link", "refused") ? "not spoken to" : text_of(bird, "link"),
			text_of(bird, "error"));
	else if (!is_text(bird, "link", "up"))
		plugin_say(p, PLUGIN_WARNING, "BIRD is being asked what it announces");
	if (text_of(bird, "alarm")[0])
		plugin_say(p, PLUGIN_WARNING, "BIRD refuses its configuration: %s",
			text_of(bird, "alarm"));
	if (text_of(json_object_get(document, "config"), "error")[0])
		plugin_say(p, PLUGIN_WARNING, "the configuration on disk was refused, %s",
			text_of(json_object_get(document, "config"), "error"));
	if (json_is_true(json_object_get(document, "stopping")))
		plugin_say(p, PLUGIN_WARNING, "the agent is stopping");
}

static void judge_prefix(struct plugin *p, const char *name, const json_t *prefix)
{
	const json_t *announced = json_object_get(prefix, "announced");
	const json_t *exported = json_object_get(prefix, "exported");
	bool withdraw = is_text(prefix, "wanted", "withdraw");

	p->prefixes++;
	if (json_is_true(announced))
		p->announced++;
	if (json_integer_value(exported) > 0)
		p->exported++;
	if (withdraw && text_of(prefix, "elsewhere")[0])
		plugin_say(p, PLUGIN_CRITICAL, "%s is withdrawn, but protocol %s announces it",
			name, text_of(prefix, "elsewhere"));
	else if (withdraw && (json_is_true(announced) || json_integer_value(exported) > 0))
		plugin_say(p, PLUGIN_CRITICAL, "%s should be withdrawn and is announced", name);
	else if (!withdraw && json_is_false(announced))
		plugin_say(p, PLUGIN_CRITICAL, "%s should be announced and is not", name);
	else if (!withdraw && json_is_integer(exported) && json_integer_value(exported) == 0)
		plugin_say(p, PLUGIN_CRITICAL, "%s is announced to no session", name);
	else if (is_text(prefix, "reason", "address_missing"))
		plugin_say(p, PLUGIN_CRITICAL, "no address of this host lies in %s", name);
	else if (withdraw && !is_text(prefix, "reason", "unhealthy"))
		plugin_say(
			p, PLUGIN_WARNING, "%s is withdrawn: %s", name, text_of(prefix, "reason"));
	else if (is_text(prefix, "wanted", "demote"))
		plugin_say(p, PLUGIN_WARNING, "%s is demoted: %s", name, text_of(prefix, "reason"));
}

static void judge_service(struct plugin *p, const char *name, const json_t *service)
{
	bool healthy = is_text(service, "health", "healthy");
	const char *item;
	json_t *value;

	p->services++;
	if (healthy)
		p->healthy++;
	else
		plugin_say(p,
			is_text(service, "health", "unhealthy") ? PLUGIN_CRITICAL : PLUGIN_WARNING,
			"%s is %s", name, text_of(service, "health"));
	json_object_foreach (json_object_get(service, "checks"), item, value)
		if (healthy && is_text(value, "state", "down"))
			plugin_say(p, PLUGIN_WARNING, "check %s of %s is down: %s", item, name,
				text_of(value, "reason"));
	json_object_foreach (json_object_get(service, "prefixes"), item, value)
		judge_prefix(p, item, value);
}

/* '|' starts the performance data: it may not stand in the text. */
static void put_line(FILE *out, const struct plugin *p)
{
	static const char *const words[] = {"OK", "WARNING", "CRITICAL"};
	_cleanup_buffer_ struct buffer line = {0};
	_cleanup_free_ char *escaped = NULL;

	buffer_init(&line, 4 * PLUGIN_LINE_MAX);
	(void)buffer_printf(&line, "REDSHANK %s - ", words[p->worst]);
	for (int code = PLUGIN_CRITICAL; code > PLUGIN_OK; code--)
		if (p->texts[code].length > 0)
			(void)buffer_printf(&line, "%s; ", buffer_string(&p->texts[code]));
	(void)buffer_printf(&line, "%u of %u services healthy, %u of %u prefixes announced",
		p->healthy, p->services, p->announced, p->prefixes);
	escaped = text_escape(buffer_string(&line));
	for (char *bar = escaped; (bar = strchr(bar, '|')) != NULL;)
		*bar = '/';
	(void)fprintf(out, "%s | services=%u healthy=%u prefixes=%u announced=%u exported=%u\n",
		escaped, p->services, p->healthy, p->prefixes, p->announced, p->exported);
}

int status_plugin(FILE *out, const json_t *document)
{
	struct plugin p = {.worst = PLUGIN_OK};
	const char *name;
	json_t *service;

	for (size_t i = 0; i < ELEMENTSOF(p.texts); i++)
		buffer_init(&p.texts[i], PLUGIN_LINE_MAX);
	judge_bird(&p, document);
	json_object_foreach (json_object_get(document, "services"), name, service)
		judge_service(&p, name, service);
	put_line(out, &p);
	for (size_t i = 0; i < ELEMENTSOF(p.texts); i++)
		buffer_done(&p.texts[i]);
	return (int)p.worst;
}
