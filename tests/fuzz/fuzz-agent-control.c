/*
 * libFuzzer target of the operators' requests: one after another with the byte 0x1e between them,
 * the first byte of each says which command, the rest is its body.
 *
 * Besides what the sanitizers see: every answer is JSON with a text or an error and a status that
 * goes with it; a refusal changes nothing; what is said can be kept and read again. The disk is
 * played here.
 */
#include "agent/control.h"

#include <errno.h>
#include <jansson.h>

#include "agent/config/load.h"
#include "agent/system/log.h"
#include "agent/words/keeper.h"
#include "probes/probe.h"
#include "tests/fuzz/fuzz.h"

#define CONFIG                                                                                 \
	"{\"services\": {\"dns\": {\"prefixes\": {\"192.0.2.53/32\": 1, \"2001:db8::53/128\":" \
	" 1}}, \"web\": {\"prefixes\": {\"192.0.2.80/32\": 1}}}}"

static struct config *config;
static sd_event *event;
static size_t n_changes;

/* --- the disk --- */

int keeper_new(struct keeper **ret, sd_event *e, const char *path,
	void (*changed)(void *userdata, const char *error), void *userdata)
{
	*ret = NULL;
	return 0;
}

void keeper_free(struct keeper *k)
{
}

int keeper_put(struct keeper *k, char *text, unsigned wait_ms, struct error *ret_error)
{
	json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);

	assert(json_is_object(root));
	json_decref(root);
	free(text);
	return 1;
}

const char *keeper_error(const struct keeper *k)
{
	return "";
}

/* --- the agent --- */

static void on_changed(void *userdata)
{
	n_changes++;
}

static void on_check_now(void *userdata)
{
}

static int on_reload(void *userdata, bool force, struct problems *problems)
{
	if (force)
		return 0;
	problems_add(problems, PROBLEM_ERROR, "a problem");
	return -EINVAL;
}

static const char *is_busy(void *userdata)
{
	return NULL;
}

static void set_up(void)
{
	_cleanup_sources_ struct sources sources = {0};
	struct problems problems;

	log_init(LOG_EMERG, true);
	problems_init(&problems);
	sources_init(&sources);
	assert(sources_add_text(&sources, "c", CONFIG, strlen(CONFIG), &problems) == 0);
	assert(load_sources(&sources, probe_types, &config, &problems) == 0);
	problems_done(&problems);
	assert(sd_event_new(&event) >= 0);
}

static size_t n_commands(void)
{
	size_t n = 0;

	while (control_commands[n])
		n++;
	return n;
}

static void ask(struct control *c, const char *request, size_t n)
{
	static const struct caller caller = {.pid = 7, .may_change = true};
	const char *command = control_commands[(unsigned char)request[0] % n_commands()];
	size_t words = control_words(c)->n, changes = n_changes;
	_cleanup_free_ char *answer = NULL;
	unsigned status = 0;
	json_t *root;

	answer = control_command(c, command, request + 1, n - 1, &caller, &status);
	root = json_loads(answer ? answer : "", JSON_REJECT_DUPLICATES, NULL);
	assert(json_is_object(root));
	assert(json_is_string(json_object_get(root, status == 200 ? "text" : "error")));
	assert(status == 200 || status == 400 || status == 404 || status == 409 || status == 507);
	assert(status == 200 || (control_words(c)->n == words && n_changes == changes));
	json_decref(root);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct control_ops ops = {.changed = on_changed,
		.check_now = on_check_now,
		.reload = on_reload,
		.busy = is_busy,
		.cannot_shed = is_busy,
		.weight_waits = is_busy};
	struct control *c = NULL;

	if (!config)
		set_up();
	assert(control_new(&c, event, "/nonexistent/state", (const struct config *const *)&config,
		       &ops) == 0);
	while (size > 0) {
		_cleanup_free_ char *request = fuzz_next(&data, &size);

		if (request[0])
			ask(c, request, strlen(request));
	}
	control_free(c);
	return 0;
}
