/* What the documents say of a service's repair: docs/status.md has the keys, docs/repair.md the
 * words. */
#include "agent/status/document_private.h"

void document_put_repair(struct document *d, size_t service)
{
	const struct document_facts *f = d->facts;
	struct json_writer *w = &d->json;
	struct repair_view view;

	if (!f->repair || !f->repair(f->userdata, service, &view)) {
		json_write_null(w, "repair");
		return;
	}
	json_open_object(w, "repair");
	json_write_string(w, "unit", view.unit);
	json_write_string(w, "state", repair_state_name(view.repair->state));
	document_put_time(d, "since", view.repair->since);
	json_write_number(w, "attempts", repair_attempts(view.repair, d->now));
	json_write_number(w, "limit", view.repair->settings.limit);
	document_put_time(d, "next", repair_deadline(view.repair));
	document_put_time(d, "last", view.repair->last);
	json_write_string(w, "last_result", repair_result_name(view.repair->last_result));
	json_write_string(w, "text", view.text[0] ? view.text : NULL);
	json_close(w);
}
