/*
 * A sentence about a service's repair, for `status` (where there is something to say) and
 * `explain`. docs/repair.md has the states. What a person can do stands at the end.
 */
#include <string.h>

#include "agent/base/buffer.h"
#include "agent/ctl/explain_private.h"
#include "agent/ctl/status.h"
#include "agent/ctl/text.h"

#define REPAIR_LINE_MAX 1024

static const struct repair_row {
	const char *state;
	enum text_colour colour;
	const char *before, *behind; /* the unit's name stands between them */
	bool quotes;		     /* systemd's last words follow */
	bool timed;		     /* when it is looked at again follows */
	const char *person;	     /* the unit's name follows, in the command */
} rows[] = {
	{"idle", TEXT_PLAIN, "", " is restarted when it fails", false, false, NULL},
	{"waiting", TEXT_YELLOW, "", " waits", false, true, NULL},
	{"asking", TEXT_YELLOW, "systemd is asked what ", " does", false, false, NULL},
	{"restarting", TEXT_YELLOW, "systemd starts ", "", false, false, NULL},
	{"held", TEXT_YELLOW, "", " is not restarted while it is drained or the server frozen",
		false, false, NULL},
	{"stopped", TEXT_YELLOW, "", " was stopped, or ended with success, and is left so", true,
		false, "systemctl start"},
	{"left", TEXT_YELLOW, "", " is left to systemd", true, true, NULL},
	{"exhausted", TEXT_RED, "restarts of ", " did not help", false, true, "systemctl status"},
	{"unknown", TEXT_RED, "systemd does not answer about ", "", true, true, NULL},
	{"missing", TEXT_RED, "systemd has no unit that can be started called ", "", true, true,
		"systemctl status"},
	{"denied", TEXT_RED, "systemd does not let the agent restart ",
		"; a polkit rule has to name it (docs/repair.md)", true, true, NULL},
};

static const struct repair_row *row_of(const json_t *repair)
{
	for (size_t i = 0; i < ELEMENTSOF(rows); i++)
		if (judge_is(repair, "state", rows[i].state))
			return &rows[i];
	return NULL; /* of a newer agent */
}

static void say_next(struct buffer *b, const json_t *repair, int64_t now_ms)
{
	int64_t at = text_parse_time_ms(judge_text(repair, "next"));

	if (at < 0) {
		(void)buffer_printf(b, ", again when its checks stop rising");
		return;
	}
	(void)buffer_printf(b, ", again in ");
	explain_say_span(b, at - now_ms);
}

void status_print_repair(FILE *out, const json_t *service, const struct status_view *view,
	int64_t now_ms, unsigned indent, bool always)
{
	const json_t *repair = explain_get(service, "repair");
	const struct repair_row *row = row_of(repair);
	const char *unit = judge_text(repair, "unit"), *text = judge_text(repair, "text"),
		   *result = judge_text(repair, "last_result");
	_cleanup_buffer_ struct buffer b = {0};

	if (!json_is_object(repair) || (!always && judge_is(repair, "state", "idle")))
		return;
	buffer_init(&b, REPAIR_LINE_MAX);
	(void)buffer_printf(&b, "repair: %s%s%s%s", row ? row->before : "", unit, row ? "" : " ",
		row ? row->behind : judge_text(repair, "state"));
	if (row && row->quotes && text[0])
		(void)buffer_printf(&b, " (%s)", text);
	if (row && row->timed)
		say_next(&b, repair, now_ms);
	(void)buffer_printf(&b, "; %lld of %lld attempts used", explain_number(repair, "attempts"),
		explain_number(repair, "limit"));
	if (result[0])
		(void)buffer_printf(&b, ", the last one: %s", result);
	if (row && row->person)
		(void)buffer_printf(&b, ". FOR A PERSON: `%s %s`", row->person, unit);
	text_put_wrapped(
		out, view->colours, row ? row->colour : TEXT_YELLOW, indent, buffer_string(&b));
}
