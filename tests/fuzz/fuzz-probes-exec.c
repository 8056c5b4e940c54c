/*
 * libFuzzer target of the exec check's output: the first byte is the exit code, the second whether
 * it is a monitoring plug-in's, the rest what the command wrote.
 *
 * Besides what the sanitizers see: one report for each exit, printable, on one line; code 0 is good
 * whatever was written, and only a plug-in's 1 is good beside it; a plug-in's performance data is
 * not in the reason.
 */
#include "probes/exec.c"
#include "tests/fuzz/fuzz.h"

static struct probe_report reported;
static unsigned n_reports;

static void on_report(struct probe *p, const struct probe_report *report)
{
	reported = *report;
	n_reports++;
	fuzz_assert_printable(report->reason, false);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct exec_settings settings = {0};
	_cleanup_free_ struct exec *e = NULL;
	struct probe p = {.type = &probe_type_exec, .settings = &settings, .report = on_report};
	siginfo_t info = {0};
	bool good;

	if (size < 2)
		return 0;
	e = calloc(1, sizeof(*e) + size - 2);
	assert(e);
	p.state = e;
	settings.plugin = data[1] & 1;
	e->child.kept = e->kept;
	e->child.room = e->child.n_kept = size - 2;
	memcpy(e->kept, data + 2, size - 2);
	info.si_status = data[0];
	info.si_code = data[1] & 2 ? CLD_KILLED : data[1] & 4 ? CLD_DUMPED : CLD_EXITED;
	n_reports = 0;
	on_ended(&p, &info, 0);
	assert(n_reports == 1);
	good = info.si_code == CLD_EXITED && (data[0] == 0 || (settings.plugin && data[0] == 1));
	assert((reported.outcome == CHECK_OUTCOME_GOOD) == good);
	assert(good || reported.reason[0]);
	if (settings.plugin)
		assert(!strchr(reported.reason, '|'));
	return 0;
}
