/*
 * See the header. Files are read at once: who names one on a network file system makes the agent
 * wait for it, which the manual says. Pages are asked for over one kept connection, without a
 * proxy, a redirect or a name to resolve.
 */
#include "agent/load/source.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/load/number.h"
#include "agent/load/proc.h"
#include "probes/child.h"
#include "probes/curl.h"

#define SOURCE_PRIORITY SD_EVENT_PRIORITY_IDLE
#define SOURCE_ERROR_MAX (CURL_ERROR_SIZE + 64)

struct source {
	const struct config_source *config;
	source_done_fn done;
	void *userdata;
	sd_event_source *timer;
	bool busy;
	char *text; /* owned; NUMBER_TEXT_MAX + 2: one byte more shows that there was more */
	size_t length;
	struct child child; /* of a command */
	char **environment;
	struct curl_loop *loop; /* of a page */
	struct curl_transfer transfer;
	char curl_error[CURL_ERROR_SIZE];
};

static void finish(struct source *s, const char *error)
{
	s->busy = false;
	(void)sd_event_source_set_enabled(s->timer, SD_EVENT_OFF);
	s->text[s->length] = '\0';
	if (!error && s->length > NUMBER_TEXT_MAX)
		error = "longer than 128 KiB";
	s->done(s->userdata, error ? NULL : s->text, s->length, error);
}

/* ---- a file ---- */

static void fetch_file(struct source *s)
{
	struct error error = {{0}};
	int n = proc_read(s->config->file, s->text, NUMBER_TEXT_MAX + 2, false, &error);

	s->length = n < 0 ? 0 : (size_t)n;
	finish(s, n < 0 ? error.text : NULL);
}

/* ---- a command ---- */

static void on_ended(void *userdata, const siginfo_t *info, int errnum)
{
	struct source *s = userdata;
	char how[64];

	s->length = s->child.n_kept;
	if (info && info->si_code == CLD_EXITED && info->si_status == 0) {
		finish(s, NULL);
		return;
	}
	if (!info)
		(void)snprintf(how, sizeof(how), "cannot be waited for: %s", strerror(errnum));
	else if (info->si_code == CLD_EXITED)
		(void)snprintf(how, sizeof(how), "exit %d", info->si_status);
	else
		(void)snprintf(how, sizeof(how), "killed by signal %d", info->si_status);
	finish(s, how);
}

static void fetch_command(struct source *s)
{
	struct error error = {{0}};

	if (child_start(&s->child, s->config->command.items, s->environment, &error) < 0)
		finish(s, error.text);
}

static int open_command(struct source *s, sd_event *event)
{
	int r = child_init(
		&s->child, event, SOURCE_PRIORITY, s->text, NUMBER_TEXT_MAX + 1, on_ended, s);

	if (r < 0)
		return r;
	s->environment = child_environment(NULL, 0);
	return s->environment ? 0 : -ENOMEM;
}

/* ---- a page ---- */

static size_t on_body(char *data, size_t size, size_t n, void *userdata)
{
	struct source *s = userdata;
	size_t bytes = size * n;

	if (bytes > NUMBER_TEXT_MAX + 1 - s->length)
		return 0;
	memcpy(s->text + s->length, data, bytes);
	s->length += bytes;
	return bytes;
}

static void on_page(struct curl_transfer *t, CURLcode result, int errnum)
{
	struct source *s = t->owner;
	char why[SOURCE_ERROR_MAX];
	long code = 0;

	if (errnum == 0 && result == CURLE_OK)
		(void)curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &code);
	if (code == 200) {
		finish(s, NULL);
		return;
	}
	if (errnum > 0)
		(void)snprintf(why, sizeof(why), "%s", strerror(errnum));
	else if (result == CURLE_WRITE_ERROR)
		(void)snprintf(why, sizeof(why), "longer than 128 KiB");
	else if (result != CURLE_OK)
		(void)snprintf(why, sizeof(why), "%s",
			s->curl_error[0] ? s->curl_error : curl_easy_strerror(result));
	else
		(void)snprintf(why, sizeof(why), "status %ld; expected 200", code);
	finish(s, why);
}

static void fetch_page(struct source *s)
{
	int r;

	s->curl_error[0] = '\0';
	r = curl_transfer_start(&s->transfer, s->loop);
	if (r < 0)
		finish(s, strerror(-r));
}

#define SET(option, value) (curl_easy_setopt(easy, option, value) == CURLE_OK)

static int open_page(struct source *s, sd_event *event)
{
	int r = curl_loop_new(event, "load", 1, &s->loop);
	CURL *easy;

	if (r < 0)
		return r;
	easy = s->transfer.easy = curl_easy_init();
	s->transfer.done = on_page;
	s->transfer.owner = s;
	if (!easy || !SET(CURLOPT_URL, s->config->url) || !SET(CURLOPT_NOSIGNAL, 1L) ||
		!SET(CURLOPT_PROTOCOLS_STR, "http") || !SET(CURLOPT_PROXY, "") ||
		!SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) ||
		!SET(CURLOPT_USERAGENT, "redshankd/" REDSHANK_VERSION) ||
		!SET(CURLOPT_UNIX_SOCKET_PATH, s->config->unix_socket) ||
		!SET(CURLOPT_DNS_CACHE_TIMEOUT, -1L) || /* literals do not age */
		!SET(CURLOPT_WRITEFUNCTION, on_body) || !SET(CURLOPT_WRITEDATA, s) ||
		!SET(CURLOPT_ERRORBUFFER, s->curl_error))
		return -ENOMEM;
	return 0;
}

/* ---- all ---- */

static int on_timeout(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct source *s = userdata;
	char why[64];

	if (!s->busy)
		return 0;
	if (s->config->url)
		curl_transfer_stop(&s->transfer);
	else
		child_stop(&s->child);
	s->length = 0;
	(void)snprintf(why, sizeof(why), "no answer within %llums",
		(unsigned long long)s->config->timeout_ms);
	finish(s, why);
	return 0;
}

void source_fetch(struct source *s)
{
	if (s->busy)
		return;
	s->busy = true;
	s->length = 0;
	if (s->config->file) {
		fetch_file(s);
		return;
	}
	if (sd_event_source_set_time_relative(s->timer, s->config->timeout_ms * 1000) >= 0)
		(void)sd_event_source_set_enabled(s->timer, SD_EVENT_ONESHOT);
	if (s->config->url)
		fetch_page(s);
	else
		fetch_command(s);
}

static int open_source(struct source *s, sd_event *event)
{
	int r = sd_event_add_time(
		event, &s->timer, CLOCK_BOOTTIME, UINT64_MAX, 1000, on_timeout, s);

	if (r >= 0)
		r = sd_event_source_set_priority(s->timer, SOURCE_PRIORITY);
	if (r >= 0)
		r = sd_event_source_set_enabled(s->timer, SD_EVENT_OFF);
	if (r < 0)
		return r;
	(void)sd_event_source_set_description(s->timer, "load");
	if (s->config->url)
		return open_page(s, event);
	return s->config->command.n > 0 ? open_command(s, event) : 0;
}

DEFINE_CLEANUP_PTR(struct source *, source_free)

int source_new(struct source **ret, sd_event *event, const struct config_source *config,
	source_done_fn done, void *userdata)
{
	_cleanup_(source_freep) struct source *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->config = config;
	s->done = done;
	s->userdata = userdata;
	s->child.pidfd = s->child.output = -1;
	s->text = malloc(NUMBER_TEXT_MAX + 2);
	if (!s->text)
		return -ENOMEM;
	r = open_source(s, event);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(s);
	return 0;
}

void source_free(struct source *s)
{
	if (!s)
		return;
	if (s->transfer.easy) {
		curl_transfer_stop(&s->transfer);
		curl_easy_cleanup(s->transfer.easy);
	}
	(void)curl_loop_unref(s->loop);
	child_done(&s->child);
	child_environment_free(s->environment);
	sd_event_source_disable_unref(s->timer);
	free(s->text);
	free(s);
}
