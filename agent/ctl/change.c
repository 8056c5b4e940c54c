/*
 * drain, undrain, announce, weight, freeze, thaw, check-now, reload, shed, unshed.
 *
 * Whatever could mean more than was meant is refused here: a drain of the whole server has to say
 * --all, and an option that is not known ends the command. What names and times are right is the
 * agent's to say.
 */
#include "agent/ctl/change.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "agent/ctl/text.h"

/* What goes with a command. */
static const struct change_usage {
	const char *command;
	bool all, number, reset, reason, span, force;
	bool open; /* --for may be left out, where --reset goes with it, too */
} usages[] = {
	{.command = "drain", .all = true, .reason = true, .span = true},
	{.command = "undrain", .all = true},
	{.command = "announce", .reset = true, .reason = true, .span = true},
	{.command = "weight", .number = true, .reset = true, .reason = true, .span = true},
	{.command = "freeze", .reason = true, .span = true},
	{.command = "thaw"},
	{.command = "check-now"},
	{.command = "reload", .force = true},
	{.command = "shed", .reset = true, .reason = true, .span = true, .open = true},
	{.command = "unshed", .reset = true, .reason = true, .span = true, .open = true},
};

static const struct change_usage *usage_of(const char *command)
{
	for (size_t i = 0; i < ELEMENTSOF(usages); i++)
		if (strcmp(usages[i].command, command) == 0)
			return &usages[i];
	abort();
}

static const char *unfit_option(const struct change_usage *usage, const struct change_options *o)
{
	return o->all && !usage->all	     ? "--all"
	       : o->reset && !usage->reset   ? "--reset"
	       : o->reason && !usage->reason ? "--reason"
	       : o->span && !usage->span     ? "--for"
	       : o->force && !usage->force   ? "--force"
					     : NULL;
}

static int check_usage(const struct change_usage *usage, const char *name, const char *number,
	const struct change_options *o, struct error *ret_error)
{
	const char *unfit = unfit_option(usage, o);

	if (unfit)
		return error_set(
			ret_error, EINVAL, "%s does not go with %s", unfit, usage->command);
	if (usage->all && o->all == (name != NULL))
		return error_set(ret_error, EINVAL,
			"%s: expected a service or a prefix, or --all for the whole server",
			usage->command);
	if (usage->open && (!name || (o->reset && o->span)))
		return error_set(ret_error, EINVAL,
			"%s: expected a prefix, alone, with --for D, or with --reset",
			usage->command);
	if (usage->reset && !usage->number && !usage->open &&
		(!name || o->reset == (o->span != NULL)))
		return error_set(ret_error, EINVAL,
			"%s: expected a service or a prefix with --for D (at most 24h), or with "
			"--reset",
			usage->command);
	if (usage->reset && !usage->number && o->reset && o->reason)
		return error_set(
			ret_error, EINVAL, "--reason does not go with %s --reset", usage->command);
	if (usage->number && (!name || o->reset == (number != NULL)))
		return error_set(ret_error, EINVAL,
			"%s: expected a prefix and a number, or a prefix and --reset",
			usage->command);
	if (number && (strlen(number) > 9 || number[strspn(number, "0123456789")] != '\0' ||
			      strtoul(number, NULL, 10) > 65535))
		return error_set(ret_error, EINVAL,
			"%s: expected a number from 0 to 65535, not \"%.64s\"", usage->command,
			number);
	return 0;
}

/* False where the text is no valid UTF-8, or without memory. */
static bool body_add(json_t *body, const char *key, const char *value)
{
	return !value || json_object_set_new(body, key, json_string(value)) == 0;
}

char *change_body(const char *command, const char *name, const char *number,
	const struct change_options *options, struct error *ret_error)
{
	const struct change_usage *usage = usage_of(command);
	json_auto_t *body = json_object();
	char *text = NULL;

	if (check_usage(usage, name, number, options, ret_error) < 0)
		return NULL;
	if (usage->number)
		(void)json_object_set_new(body, "weight",
			number ? json_integer(strtoll(number, NULL, 10)) : json_null());
	else if (options->reset)
		(void)json_object_set_new(body, "reset", json_true());
	if (options->force)
		(void)json_object_set_new(body, "force", json_true());
	if (body_add(body, "name", name) && body_add(body, "reason", options->reason) &&
		body_add(body, "for", options->span))
		text = json_dumps(body, JSON_ENSURE_ASCII);
	if (!text)
		(void)error_set(ret_error, EINVAL, "%s: expected text in UTF-8", command);
	return text;
}

static void tell_line(FILE *to, const char *before, const char *text)
{
	_cleanup_free_ char *escaped = text_escape(text);

	(void)fprintf(to, "%s%s\n", before, escaped);
}

enum command_exit change_tell(
	FILE *out, FILE *err, bool json, long status, const char *body, size_t n)
{
	json_auto_t *answer = json_loadb(body, n, 0, NULL);
	const char *text = json_string_value(json_object_get(answer, "text"));
	const char *warning = json_string_value(json_object_get(answer, "warning"));
	const char *error = json_string_value(json_object_get(answer, "error"));
	const json_t *problem;
	bool done = status == 200 && text;
	char said[64];
	size_t i;

	if (json && (done || error)) {
		(void)(text_put_json(out, answer, JSON_INDENT(2)) && fputc('\n', out) >= 0);
		return done ? COMMAND_OK : COMMAND_REFUSED;
	}
	if (done) {
		tell_line(out, "", text);
		if (warning)
			tell_line(err, "redshankctl: warning: ", warning);
		return COMMAND_OK;
	}
	(void)snprintf(said, sizeof(said), "the agent answered HTTP status %ld", status);
	tell_line(err, "redshankctl: ", error ? error : said);
	json_array_foreach (json_object_get(answer, "problems"), i, problem)
		if (json_is_string(problem))
			tell_line(err, "  ", json_string_value(problem));
	return COMMAND_REFUSED;
}
