/* How busy this server is, in the status document: docs/status.md has the keys. */
#include "agent/load/load.h"
#include "agent/status/document_private.h"

static void put_signal(struct json_writer *w, const struct load_signal *s)
{
	json_open_object(w, s->name);
	json_write_string(w, "type", s->type);
	if (s->valid)
		json_write_milli(w, "value", s->value_milli);
	else
		json_write_null(w, "value");
	json_write_milli(w, "limit", s->limit_milli);
	if (s->valid)
		json_write_number(w, "utilisation", s->bp);
	else
		json_write_null(w, "utilisation");
	json_write_string(w, "error", s->error[0] ? s->error : NULL);
	json_close(w);
}

static void put_counting(struct json_writer *w, const struct load_view *v)
{
	if (!v->counting) {
		json_write_null(w, "prefixes");
		return;
	}
	json_open_object(w, "prefixes");
	json_write_string(w, "type", v->counting);
	json_write_string(w, "error", v->counting_error[0] ? v->counting_error : NULL);
	json_close(w);
}

void document_put_load(struct document *d)
{
	const struct load *l = d->facts->load;
	struct json_writer *w = &d->json;
	struct load_signal signal;
	struct load_view view = {0};

	if (l)
		load_view(l, &view);
	if (!view.configured) {
		json_write_null(w, "load");
		return;
	}
	json_open_object(w, "load");
	json_write_milli(w, "capacity", view.capacity);
	if (view.valid) {
		json_write_number(w, "utilisation", view.utilisation_bp);
		json_write_milli(w, "load", view.load);
	} else {
		json_write_null(w, "utilisation");
		json_write_null(w, "load");
	}
	json_write_string(w, "heaviest", view.heaviest);
	json_open_object(w, "signals");
	for (size_t i = 0; load_signal(l, i, &signal); i++)
		put_signal(w, &signal);
	json_close(w);
	put_counting(w, &view);
	json_close(w);
}

void document_put_prefix_load(struct document *d, size_t service, size_t index)
{
	const struct config_load *config = d->facts->config->load;
	uint64_t load;

	if (!d->facts->load || !config || !config->prefixes)
		return;
	if (load_prefix(d->facts->load, service, index, &load))
		json_write_milli(&d->json, "load", load);
	else
		json_write_null(&d->json, "load");
}
