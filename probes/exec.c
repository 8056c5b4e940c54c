/*
 * The exec check: a command's exit status.
 *
 * How a command is run and ended with its offspring, by child.c; here is what its exit says. The
 * verdict is the exit of the command itself; neither output nor offspring can delay it. Of the
 * output, `output_limit` bytes are kept.
 */
#include "probes/probe.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "probes/child.h"
#include "probes/settings.h"

struct exec {
	char **environment; /* owned */
	struct child child;
	char kept[]; /* output_limit */
};

static const struct schema_key exec_keys[] = {
	{.name = "command",
		.kind = SCHEMA_STRING_LIST,
		SCHEMA_FIELD(struct exec_settings, command),
		.required = true,
		.minimum = 1,
		.maximum = 256,
		.meaning = "the absolute path of a program, and its arguments"},
	{.name = "env",
		.kind = SCHEMA_STRING_MAP,
		SCHEMA_FIELD(struct exec_settings, env),
		.maximum = 256,
		.meaning = "variables added to the small environment of the command"},
	{.name = "output_limit",
		.kind = SCHEMA_INTEGER,
		SCHEMA_FIELD(struct exec_settings, output_limit),
		.minimum = 64,
		.maximum = 1048576,
		.fallback = "4096",
		.meaning = "bytes of output that are kept"},
	{.name = "plugin",
		.kind = SCHEMA_BOOLEAN,
		SCHEMA_FIELD(struct exec_settings, plugin),
		.fallback = "false",
		.meaning = "exit codes are a monitoring plug-in's: 1 is a warning and good, 3 says "
			   "nothing"},
	SCHEMA_END,
};

static const struct schema exec_schema = {.size = sizeof(struct exec_settings), .keys = exec_keys};

static int exec_validate(const void *settings, struct error *ret_error)
{
	const struct exec_settings *s = settings;

	if (s->command.n == 0 || s->command.items[0][0] != '/')
		return error_set(ret_error, EINVAL,
			"command: expected the absolute path of a program as the first item (there "
			"is no shell)");
	for (size_t i = 0; i + 1 < s->env.n; i += 2)
		if (s->env.items[i][0] == '\0' || strchr(s->env.items[i], '='))
			return error_set(ret_error, EINVAL,
				"env: expected names of variables, without an equals sign");
	return 0;
}

static void exec_cancel(struct probe *p)
{
	struct exec *e = p->state;

	child_stop(&e->child);
}

/* The first line that says something, without the performance data of a plug-in. */
static const char *first_line(const struct exec_settings *s, const struct exec *e, int *ret_length)
{
	size_t n;
	const char *line = child_first_line(&e->child, s->plugin ? "|" : "", &n);

	*ret_length = (int)(n < PROBE_REASON_MAX ? n : PROBE_REASON_MAX);
	return line;
}

static void report_exit(struct probe *p, int code)
{
	const struct exec_settings *s = p->settings;
	int n;
	const char *line = first_line(s, p->state, &n), *colon = n > 0 ? ": " : "";

	if (code == 0)
		probe_report(p, CHECK_OUTCOME_GOOD, "%.*s", n, line);
	else if (s->plugin && code == 1)
		probe_report(p, CHECK_OUTCOME_GOOD, "warning%s%.*s", colon, n, line);
	else if (s->plugin && code == 2)
		probe_report(p, CHECK_OUTCOME_BAD, "critical%s%.*s", colon, n, line);
	else if (s->plugin && code == 3)
		probe_report(p, CHECK_OUTCOME_UNKNOWN, "unknown%s%.*s", colon, n, line);
	else if (code == 126)
		probe_report(p, CHECK_OUTCOME_BAD, "exit 126 (a command cannot be executed)%s%.*s",
			colon, n, line);
	else if (code == 127)
		probe_report(p, CHECK_OUTCOME_BAD, "exit 127 (a command was not found)%s%.*s",
			colon, n, line);
	else
		probe_report(p, CHECK_OUTCOME_BAD, "exit %d%s%.*s", code, colon, n, line);
}

static void report_signal(struct probe *p, const siginfo_t *info)
{
	const char *name = sigabbrev_np(info->si_status);
	char number[16];

	(void)snprintf(number, sizeof(number), "%d", info->si_status);
	probe_report(p, CHECK_OUTCOME_BAD, "killed by SIG%s%s", name ? name : number,
		info->si_code == CLD_DUMPED ? " (core dumped)" : "");
}

static void on_ended(void *userdata, const siginfo_t *info, int errnum)
{
	struct probe *p = userdata;

	if (!info)
		probe_report(p, CHECK_OUTCOME_UNKNOWN, "cannot wait for the command: %s",
			strerror(errnum));
	else if (info->si_code == CLD_EXITED)
		report_exit(p, info->si_status);
	else
		report_signal(p, info);
}

static void exec_begin(struct probe *p)
{
	const struct exec_settings *s = p->settings;
	struct exec *e = p->state;
	struct error error = {{0}};
	int r = child_start(&e->child, s->command.items, e->environment, &error);

	if (r < 0)
		probe_report(p, probe_outcome_of_errno(-r), "%s", error.text);
}

/* ---- life ---- */

static void exec_close(struct probe *p)
{
	struct exec *e = p->state;

	child_done(&e->child);
	child_environment_free(e->environment);
	free(e);
	p->state = NULL;
}

static int exec_open(struct probe *p)
{
	const struct exec_settings *s = p->settings;
	struct exec *e = calloc(1, sizeof(*e) + (size_t)s->output_limit);
	int r;

	if (!e)
		return -ENOMEM;
	p->state = e;
	r = child_init(&e->child, p->host->event, SD_EVENT_PRIORITY_NORMAL, e->kept,
		(size_t)s->output_limit, on_ended, p);
	if (r >= 0) {
		e->environment = child_environment(s->env.items, s->env.n);
		r = e->environment ? 0 : -ENOMEM;
	}
	if (r < 0)
		exec_close(p);
	return r;
}

const struct probe_type probe_type_exec = {
	.name = "exec",
	.settings = &exec_schema,
	.validate = exec_validate,
	.open = exec_open,
	.begin = exec_begin,
	.cancel = exec_cancel,
	.close = exec_close,
};
