/*
 * The first line of the status: "All is well", or what is not and the command that says more.
 *
 * It has to say by itself what a person woken at night does next, so the command is that of the
 * worst: a service's trouble is explained, BIRD's is looked at in BIRD.
 */
#include <stdarg.h>
#include <string.h>

#include "agent/ctl/judge.h"
#include "agent/ctl/status.h"

#define VERDICT_MAX 4000
#define VERDICT_NAMED_MAX 4 /* things */

struct verdict {
	struct buffer text;
	enum judge_level level;
	enum judge_level said; /* in this pass: the worst are said first */
	char command[128];     /* of the first among the worst */
	size_t n;
};

static void verdict_add(
	struct verdict *v, enum judge_level level, const char *command, const char *text)
{
	if (level != v->said)
		return;
	if (v->n++ < VERDICT_NAMED_MAX)
		(void)buffer_printf(&v->text, "%s%s", v->n > 1 ? "; " : "", text);
	if (level <= v->level)
		return;
	v->level = level;
	(void)snprintf(v->command, sizeof(v->command), "%s", command);
}

static void verdict_on_finding(void *userdata, const struct judge_finding *finding)
{
	struct verdict *v = userdata;
	char text[1000];

	if (finding->whole)
		(void)snprintf(text, sizeof(text), "%s, %.700s", finding->text, finding->detail);
	else
		(void)snprintf(text, sizeof(text), "%s", finding->text);
	verdict_add(v, finding->level, finding->command, text);
}

static void verdict_add_services(struct verdict *v, const json_t *document)
{
	const json_t *bird = json_object_get(document, "bird");
	const char *name;
	json_t *service;

	json_object_foreach (json_object_get(document, "services"), name, service) {
		enum judge_level level = judge_service_level(service, bird);
		_cleanup_buffer_ struct buffer text = {0};
		char command[128];

		if (level != v->said)
			continue;
		buffer_init(&text, VERDICT_MAX);
		judge_service_say(&text, name, service, bird);
		(void)snprintf(command, sizeof(command), "redshankctl explain %.32s", name);
		verdict_add(v, level, command, buffer_string(&text));
	}
}

static void put_well(struct buffer *line, const json_t *document)
{
	const json_t *services = json_object_get(document, "services");
	size_t prefixes = 0, announced = 0;
	const char *name, *prefix_name;
	json_t *service, *prefix;

	json_object_foreach ((json_t *)services, name, service)
		json_object_foreach (json_object_get(service, "prefixes"), prefix_name, prefix) {
			prefixes++;
			announced += json_is_true(json_object_get(prefix, "announced"));
		}
	(void)buffer_printf(line, "All is well: %zu service%s, %zu of %zu prefixes announced.",
		json_object_size(services), json_object_size(services) == 1 ? "" : "s", announced,
		prefixes);
}

void status_print_verdict(FILE *out, const json_t *document, const struct status_view *view)
{
	static const enum text_colour colours[] = {TEXT_GREEN, TEXT_YELLOW, TEXT_RED};
	struct verdict v = {.level = JUDGE_GOOD};
	_cleanup_buffer_ struct buffer line = {0};

	buffer_init(&v.text, VERDICT_MAX);
	buffer_init(&line, VERDICT_MAX + 256);
	for (v.said = JUDGE_TROUBLE; v.said > JUDGE_GOOD; v.said--) {
		judge_bird(document, verdict_on_finding, &v);
		verdict_add_services(&v, document);
	}
	if (v.level == JUDGE_GOOD)
		put_well(&line, document);
	else
		(void)buffer_printf(&line, "%s (%s): %s",
			v.level == JUDGE_TROUBLE ? "TROUBLE" : "Look", v.command,
			buffer_string(&v.text));
	if (v.n > VERDICT_NAMED_MAX)
		(void)buffer_printf(&line, "; and %zu more", v.n - VERDICT_NAMED_MAX);
	if (view->terminal) {
		text_put_wrapped(out, view->colours, colours[v.level], 0, buffer_string(&line));
	} else {
		text_put(out, view->colours, colours[v.level], buffer_string(&line));
		(void)fputc('\n', out);
	}
	buffer_done(&v.text);
}
