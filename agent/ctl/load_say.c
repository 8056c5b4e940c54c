/* What is said of load: a line of `status` about this server's, how full it is and each signal that
 * makes it so; a cell of its table, and a line of `explain`, about what prefixes have of it. The
 * keys are in docs/status.md. */
#include "agent/base/buffer.h"
#include "agent/ctl/explain_private.h"
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

/* " (126.2 of 200)": in the unit of the site. */
static void say_capacity(struct buffer *b, const json_t *load)
{
	const json_t *amount = json_object_get(load, "load");

	if (json_is_number(amount))
		(void)buffer_printf(b, " (%.1f of %lld)", json_number_value(amount),
			explain_number(load, "capacity"));
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
	say_capacity(&b, load);
	say_signals(&b, json_object_get(load, "signals"));
	if (error)
		(void)buffer_printf(&b, "; of prefixes: %.200s", error);
	text_put_wrapped(out, view->colours, is_known(load) && !error ? TEXT_PLAIN : TEXT_YELLOW, 0,
		buffer_string(&b));
}

void status_add_load(struct text_table *t, const json_t *prefix)
{
	const json_t *load = json_object_get(prefix, "load");
	char cell[32] = "unknown";

	if (json_is_number(load))
		(void)snprintf(cell, sizeof(cell), "%.1f", json_number_value(load));
	text_table_add(t, TEXT_PLAIN, true, cell);
}

/* ---- the explanation ---- */

void explain_add_load(struct explain_load *load, const json_t *prefix)
{
	const json_t *own = json_object_get(prefix, "load");

	load->n += own != NULL;
	if (json_is_number(own))
		load->sum += json_number_value(own);
	else
		load->unknown += own != NULL;
}

/* "84.2 of the 126.2 that this server does (66.7 %); it is full with 200." */
static void say_share(struct buffer *b, const json_t *load, double sum, bool several)
{
	double all = json_number_value(json_object_get(load, "load"));

	(void)buffer_printf(b, "%.1f%s", sum, several ? " together" : "");
	if (all > 0)
		(void)buffer_printf(
			b, " of the %.1f that this server does (%.1f %%)", all, 100 * sum / all);
	(void)buffer_printf(b, "; it is full with %lld.", explain_number(load, "capacity"));
}

void explain_say_load(const struct explain *e, struct buffer *b, const struct explain_load *load)
{
	const json_t *server = json_object_get(e->document, "load");
	const char *error =
		json_string_value(json_object_get(json_object_get(server, "prefixes"), "error"));

	if (load->n > load->unknown)
		say_share(b, server, load->sum, load->n > 1);
	if (load->unknown == 0)
		return;
	if (load->n == 1)
		(void)buffer_printf(b, "not known, so it is not shed");
	else
		(void)buffer_printf(b, "%sNot known of %zu, which are not shed",
			b->length > 0 ? " " : "", load->unknown);
	(void)buffer_printf(b, "%s%.200s.", error ? ": " : "", error ? error : "");
}
