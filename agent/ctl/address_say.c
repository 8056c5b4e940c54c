/* A sentence about the address of a prefix, where the agent manages it (docs/status.md has the
 * states), for `explain`. */
#include "agent/ctl/explain_private.h"

static const struct {
	const char *state, *text;
	bool on; /* the interface follows */
} rows[] = {
	{"present", "managed, and present on ", true},
	{"others", "managed, but somebody else has put it here: it is used, and never removed",
		false},
	{"missing", "managed, and MISSING: to be added to ", true},
	{"announced",
		"to be removed when it is withdrawn, by itself and as part of a bigger prefix",
		false},
	{"bird", "to be removed when BIRD is known to have withdrawn it: packets may still come",
		false},
	{"grace", "to be removed when stop_grace is over: packets may still be under way", false},
	{"absent", "managed, and not here, since the service was sent away", false},
	{"kept", "managed, and it stays when the agent leaves", false},
};

enum text_colour explain_say_address(struct buffer *b, const json_t *prefix)
{
	const json_t *address = explain_get(prefix, "address");
	const char *error = judge_text(address, "error");
	long long restored = explain_number(address, "restored");

	if (!json_is_object(address))
		return TEXT_PLAIN;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (judge_is(address, "state", rows[i].state))
			(void)buffer_printf(b, "%s%s", rows[i].text,
				rows[i].on ? judge_text(address, "interface") : "");
	if (b->length == 0)
		(void)buffer_printf(b, "managed: %s", judge_text(address, "state"));
	if (restored > 0)
		(void)buffer_printf(b,
			"; somebody has removed it %lld time%s, and it was added again", restored,
			restored == 1 ? "" : "s");
	if (error[0])
		(void)buffer_printf(b, "; the last attempt failed: %s", error);
	(void)buffer_printf(b, ".");
	return error[0] || judge_is(address, "state", "missing") ? TEXT_RED : TEXT_PLAIN;
}
