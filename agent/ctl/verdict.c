/* The first line of the status: the verdict, with its word and the command that says more. */
#include "agent/judge/verdict.h"

#include "agent/ctl/status.h"

void status_print_verdict(FILE *out, const json_t *document, const struct status_view *view)
{
	static const enum text_colour colours[] = {TEXT_GREEN, TEXT_YELLOW, TEXT_RED};
	_cleanup_buffer_ struct buffer line = {0};
	struct verdict v;

	verdict_judge(&v, document);
	buffer_init(&line, VERDICT_TEXT_MAX + 256);
	if (v.level != JUDGE_GOOD)
		(void)buffer_printf(&line,
			"%s (%s): ", v.level == JUDGE_TROUBLE ? "TROUBLE" : "Look", v.command);
	(void)buffer_append_string(&line, buffer_string(&v.text));
	if (view->terminal) {
		text_put_wrapped(out, view->colours, colours[v.level], 0, buffer_string(&line));
	} else {
		text_put(out, view->colours, colours[v.level], buffer_string(&line));
		(void)fputc('\n', out);
	}
	verdict_done(&v);
}
