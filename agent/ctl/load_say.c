/* A line of `status` about this server's load: how full it is, and each signal that makes it so.
 * The keys are in docs/status.md. */
#include "agent/base/buffer.h"
#include "agent/ctl/status.h"

#define LOAD_LINE_MAX 4096
#define LOAD_NAME_MAX 64

static double percent(const json_t *object)
{
	return json_number_value(json_object_get(object, "utilisation")) / 100;
}

static bool is_known(const json_t *object)
{
	return json_is_number(json_object_get(object, "utilisation"));
}

static void say_signals(struct buffer *b, json_t *signals)
{
	const char *name, *between = ":", *error;
	json_t *signal;

	json_object_foreach (signals, name, signal) {
		error = json_string_value(json_object_get(signal, "error"));
		if (is_known(signal))
			(void)buffer_printf(b, "%s %.*s %.1f %%", between, LOAD_NAME_MAX, name,
				percent(signal));
		else
			(void)buffer_printf(b, "%s %.*s not known%s%.200s%s", between,
				LOAD_NAME_MAX, name, error ? " (" : "", error ? error : "",
				error ? ")" : "");
		between = ",";
	}
}

void status_print_load(FILE *out, const json_t *document, const struct status_view *view)
{
	const json_t *load = json_object_get(document, "load");
	const char *error =
		json_string_value(json_object_get(json_object_get(load, "prefixes"), "error"));
	_cleanup_buffer_ struct buffer b = {0};

	if (!json_is_object(load))
		return;
	buffer_init(&b, LOAD_LINE_MAX);
	if (is_known(load))
		(void)buffer_printf(&b, "load: %.1f %%", percent(load));
	else
		(void)buffer_printf(&b, "load: not known");
	say_signals(&b, json_object_get(load, "signals"));
	if (error)
		(void)buffer_printf(&b, "; of prefixes: %.200s", error);
	text_put_wrapped(out, view->colours, is_known(load) && !error ? TEXT_PLAIN : TEXT_YELLOW, 0,
		buffer_string(&b));
}
