/* One look at the BIRD of this server, for --check. See beside.h. */
#include "agent/beside.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <systemd/sd-event.h>

#include "agent/base/cleanup.h"
#include "agent/bird/advise.h"

struct beside {
	const struct config *config;
	FILE *out;
	sd_event *event;
	struct client *client;
	struct advise *advise;
	char version[32];
};

static void beside_say(struct beside *b)
{
	const struct advise_warning *warnings;
	size_t n = advise_warnings(b->advise, &warnings);
	unsigned sessions, up;

	advise_sessions(b->advise, &sessions, &up);
	(void)fprintf(b->out, "beside BIRD %s at %s: %u of %u sessions up, %zu warning%s\n",
		b->version, b->config->bird.socket, up, sessions, n, n == 1 ? "" : "s");
	for (size_t i = 0; i < n; i++)
		(void)fprintf(b->out, "warning: %s (%s)\n", warnings[i].text, warnings[i].code);
}

static void beside_on_looked(void *userdata)
{
	struct beside *b = userdata;

	beside_say(b);
	(void)sd_event_exit(b->event, 0);
}

static void beside_on_greeted(void *userdata, const char *version)
{
	struct beside *b = userdata;

	(void)snprintf(b->version, sizeof(b->version), "%s", version);
	if (version[0] <= '1' && version[1] == '.') {
		(void)fprintf(b->out, "warning: %s is a BIRD %s; 2.0.12 or newer is needed\n",
			b->config->bird.socket, version);
		(void)sd_event_exit(b->event, 0);
		return;
	}
	if (b->config->bird.control == CONFIG_CONTROL_SOCKET)
		(void)client_send(b->client, 0, NULL, NULL, "restrict");
	advise_connected(b->advise, b->client);
}

static void beside_on_lost(void *userdata, int error, const char *text)
{
	struct beside *b = userdata;

	/* No BIRD here is no news; one that may not be asked is. */
	if (b->version[0] || error == -EACCES)
		(void)fprintf(b->out, "warning: %s\n", text);
	(void)sd_event_exit(b->event, 0);
}

static int beside_on_deadline(sd_event_source *source, uint64_t us, void *userdata)
{
	struct beside *b = userdata;

	(void)fprintf(b->out, "warning: BIRD at %s did not answer within %d s\n",
		b->config->bird.socket, BESIDE_DEADLINE_MS / 1000);
	return sd_event_exit(sd_event_source_get_event(source), 0);
}

static int beside_look(struct beside *b)
{
	const struct client_ops ops = {
		.greeted = beside_on_greeted, .lost = beside_on_lost, .userdata = b};
	const struct advise_ops advise = {.looked = beside_on_looked, .userdata = b};
	const struct config_bird *bird = &b->config->bird;
	int r;

	if ((r = sd_event_new(&b->event)) < 0 ||
		(r = advise_new(&b->advise, b->event, bird->sessions.items, bird->sessions.n, true,
			 &advise)) < 0)
		return r;
	if (bird->control == CONFIG_CONTROL_BIRDC)
		advise_be_frugal(b->advise);
	advise_configure(b->advise, b->config);
	r = bird->control == CONFIG_CONTROL_BIRDC
		    ? client_new_birdc(&b->client, b->event, bird->socket, &ops)
		    : client_new_socket(&b->client, b->event, bird->socket, &ops);
	if (r < 0)
		return r;
	r = sd_event_add_time_relative(b->event, NULL, CLOCK_BOOTTIME, BESIDE_DEADLINE_MS * 1000ULL,
		1000, beside_on_deadline, b);
	return r < 0 ? r : sd_event_loop(b->event);
}

void beside_print(const struct config *config, FILE *out)
{
	struct beside b = {.config = config, .out = out};
	sigset_t child;
	int r;

	(void)sigemptyset(&child);
	(void)sigaddset(&child, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &child, NULL); /* for the birdc program */
	r = beside_look(&b);
	if (r < 0)
		(void)fprintf(out, "warning: looking at BIRD: %s\n", strerror(-r));
	client_free(b.client);
	advise_free(b.advise);
	sd_event_unref(b.event);
}
