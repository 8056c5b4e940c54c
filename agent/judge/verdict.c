/*
 * The one sentence about a status document: "All is well", or what is not and the command that says
 * more.
 *
 * It has to say by itself what a person woken at night does next, so the command is that of the
 * worst: a service's trouble is explained, BIRD's is looked at in BIRD. The worst are said first,
 * and at most four things; how many more there are is said, too.
 */
#include "agent/judge/verdict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VERDICT_NAMED_MAX 4 /* things */

struct verdict_pass {
	struct verdict *verdict;
	enum judge_level said; /* in this pass */
	size_t n;
};

const char *verdict_level_name(enum judge_level level)
{
	switch (level) {
	case JUDGE_GOOD:
		return "good";
	case JUDGE_LOOK:
		return "look";
	case JUDGE_TROUBLE:
		return "trouble";
	}
	abort();
}

static void verdict_add(
	struct verdict_pass *pass, enum judge_level level, const char *command, const char *text)
{
	struct verdict *v = pass->verdict;

	if (level != pass->said)
		return;
	if (pass->n++ < VERDICT_NAMED_MAX)
		(void)buffer_printf(&v->text, "%s%s", pass->n > 1 ? "; " : "", text);
	if (level <= v->level)
		return;
	v->level = level;
	(void)snprintf(v->command, sizeof(v->command), "%s", command);
}

static void verdict_on_finding(void *userdata, const struct judge_finding *finding)
{
	char text[1000];

	if (finding->whole)
		(void)snprintf(text, sizeof(text), "%s, %.700s", finding->text, finding->detail);
	else
		(void)snprintf(text, sizeof(text), "%s", finding->text);
	verdict_add(userdata, finding->level, finding->command, text);
}

static void verdict_add_services(struct verdict_pass *pass, const json_t *document)
{
	const json_t *bird = json_object_get(document, "bird");
	bool all = judge_drain(document) != NULL; /* which is said already */
	const char *name;
	json_t *service;

	json_object_foreach (json_object_get(document, "services"), name, service) {
		enum judge_level level = judge_service_level(service, bird);
		_cleanup_buffer_ struct buffer text = {0};
		char command[VERDICT_COMMAND_MAX];

		if (level != pass->said || (all && judge_is_just_drained(service, bird)))
			continue;
		if (pass->n >= VERDICT_NAMED_MAX) {
			pass->n++;
			continue;
		}
		buffer_init(&text, VERDICT_TEXT_MAX);
		judge_service_say(&text, name, service, bird);
		(void)snprintf(command, sizeof(command), "redshankctl explain %.32s", name);
		verdict_add(pass, level, command, buffer_string(&text));
	}
}

static void verdict_say_well(struct buffer *text, const json_t *document)
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
	(void)buffer_printf(text, "All is well: %zu service%s, %zu of %zu prefixes announced.",
		json_object_size(services), json_object_size(services) == 1 ? "" : "s", announced,
		prefixes);
}

void verdict_judge(struct verdict *ret, const json_t *document)
{
	struct verdict_pass pass = {.verdict = ret};

	*ret = (struct verdict){.level = JUDGE_GOOD};
	buffer_init(&ret->text, VERDICT_TEXT_MAX);
	for (pass.said = JUDGE_TROUBLE; pass.said > JUDGE_GOOD; pass.said--) {
		judge_bird(document, verdict_on_finding, &pass);
		verdict_add_services(&pass, document);
	}
	if (ret->level == JUDGE_GOOD)
		verdict_say_well(&ret->text, document);
	else if (pass.n > VERDICT_NAMED_MAX)
		(void)buffer_printf(&ret->text, "; and %zu more", pass.n - VERDICT_NAMED_MAX);
}

void verdict_done(struct verdict *v)
{
	buffer_done(&v->text);
}
