/* What the documents say of the address of a prefix that is managed: docs/status.md has the keys.
 */
#include <string.h>

#include "agent/status/document_private.h"

void document_put_address(struct document *d, size_t service, size_t prefix)
{
	const struct document_facts *f = d->facts;
	struct json_writer *w = &d->json;
	struct managed_view view;

	if (!f->address || !f->address(f->userdata, service, prefix, &view)) {
		json_write_null(w, "address");
		return;
	}
	json_open_object(w, "address");
	json_write_string(w, "interface", view.interface);
	json_write_string(w, "state", managed_state_name(view.state));
	json_write_bool(w, "ours", view.ours);
	json_write_number(w, "restored", view.restored);
	json_write_string(w, "error", view.error < 0 ? strerror(-view.error) : NULL);
	json_close(w);
}
