/*
 * Completion of command lines.
 *
 * What goes where is read from the commands' own list (what stands behind a name as its arguments)
 * and from the table of options below; so the shells' scripts know nothing of Redshank, and a new
 * command is completed without them. Names are those of the agent that the line itself speaks to,
 * by its --socket. What is taken back is completed with what was said: undrain with the drains.
 *
 * A person waits at the other end, so the agent is given a second, and nothing is ever complained
 * about: a message in the middle of somebody's line helps nobody.
 */
#include "agent/ctl/complete.h"

#include <stdbool.h>
#include <string.h>

#include "agent/base/cleanup.h"
#include "agent/base/clock.h"
#include "agent/base/monotime.h"
#include "agent/ctl/fetch.h"
#include "agent/ctl/status.h"

#define COMPLETE_WAIT_MS 1000

static const struct complete_option {
	const char *name;
	bool has_argument;
	const char *commands; /* with blanks around each; NULL: it goes with every one */
	const char *help;
} options[] = {
	{"--socket", true, NULL, "the socket of the agent"},
	{"--json", false, NULL, "for programs: JSON"},
	{"--plugin", false, " status ", "as a monitoring plug-in"},
	{"--follow", false, " events ", "go on, also when the agent is restarted"},
	{"--all", false, " drain undrain ", "the whole server"},
	{"--reset", false, " weight announce shed unshed ", "back to what is configured"},
	{"--force", false, " reload ", "also where it withdraws more than reload_guard"},
	{"--reason", true, " drain announce weight freeze shed unshed ", "why"},
	{"--for", true, " drain announce weight freeze shed unshed ", "how long"},
	{"--help", false, NULL, "what it can do"},
	{"--version", false, NULL, "its version"},
};

struct complete {
	FILE *out;
	const char *word; /* what there is of it already */
	const char *socket_path;
	struct complete_command command; /* name NULL: none yet */
	size_t place;			 /* of the word behind the command's name, from 0 */
	bool all, reset;
};

static void offer(const struct complete *c, const char *word, const char *about)
{
	if (strncmp(word, c->word, strlen(c->word)) == 0)
		(void)fprintf(c->out, "%s%s%s\n", word, about[0] ? "\t" : "", about);
}

static void offer_files(const struct complete *c)
{
	(void)fputs(":files\n", c->out);
}

/* --- options --- */

static bool goes_with(const struct complete_option *o, const char *command)
{
	char name[40];

	if (!o->commands || !command)
		return true;
	(void)snprintf(name, sizeof(name), " %.32s ", command);
	return strstr(o->commands, name) != NULL;
}

static const struct complete_option *option_named(const char *word)
{
	for (size_t i = 0; i < ELEMENTSOF(options); i++)
		if (strcmp(options[i].name, word) == 0)
			return &options[i];
	return NULL;
}

static void offer_options(const struct complete *c)
{
	for (size_t i = 0; i < ELEMENTSOF(options); i++)
		if (goes_with(&options[i], c->command.name))
			offer(c, options[i].name, options[i].help);
}

static void offer_argument(const struct complete *c, const char *option)
{
	static const char *const spans[] = {"10m", "30m", "1h", "2h", "8h", "24h"};

	if (strcmp(option, "--socket") == 0)
		offer_files(c);
	for (size_t i = 0; strcmp(option, "--for") == 0 && i < ELEMENTSOF(spans); i++)
		offer(c, spans[i], "");
}

/* --- names of the agent --- */

/* The status, or NULL. */
static json_t *ask(const char *socket_path)
{
	struct monotime end = monotime_add_ms(clock_monotime(), COMPLETE_WAIT_MS);
	_cleanup_fetch_answer_ struct fetch_answer answer = {0};
	struct fetch_job *job = NULL;
	json_t *document = NULL;
	struct error error;
	int r = fetch_begin(&job, socket_path, "/v1/status", &error);

	while (r >= 0 && !monotime_reached(end, clock_monotime())) {
		r = fetch_wait(job, 50, NULL, 0, &answer, &error);
		if (r > 0 && answer.status == 200)
			document = status_parse(
				buffer_string(&answer.body), answer.body.length, &error);
		if (r != 0)
			break;
	}
	fetch_job_free(job);
	return document;
}

/* A name that could run a program or steer a terminal in somebody's shell is none of ours. */
static bool is_plain(const char *name)
{
	static const char good[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
				   "-_.:/";

	return name && name[0] && name[strspn(name, good)] == '\0';
}

/* What operators have said, of one kind. */
static void offer_said(const struct complete *c, const json_t *document, const char *list)
{
	const json_t *word;
	size_t i;

	json_array_foreach (json_object_get(document, list), i, word) {
		const char *name = json_string_value(json_object_get(word, "name"));

		if (is_plain(name))
			offer(c, name, "");
	}
}

static void offer_names(const struct complete *c, const json_t *document, bool services)
{
	const char *service_name, *name;
	json_t *service, *prefix;

	json_object_foreach (json_object_get(document, "services"), service_name, service) {
		const char *health = json_string_value(json_object_get(service, "health"));

		if (services && is_plain(service_name))
			offer(c, service_name, is_plain(health) ? health : "");
		json_object_foreach (json_object_get(service, "prefixes"), name, prefix)
			if (is_plain(name))
				offer(c, name, is_plain(service_name) ? service_name : "");
	}
}

static void offer_of_agent(const struct complete *c, bool services)
{
	json_auto_t *document = ask(c->socket_path);
	const char *name = c->command.name;

	if (strcmp(name, "undrain") == 0)
		offer_said(c, document, "drains");
	else if (c->reset)
		offer_said(c, document,
			strcmp(name, "weight") == 0   ? "weights"
			: strcmp(name, "shed") == 0   ? "sheds"
			: strcmp(name, "unshed") == 0 ? "unsheds"
						      : "announces");
	else
		offer_names(c, document, services);
}

/* --- places --- */

static void offer_peers(const struct complete *c)
{
	static const char *const peers[] = {"ahc", "exabgp", "birdwatcher"};

	for (size_t i = 0; i < ELEMENTSOF(peers); i++)
		offer(c, peers[i], "");
}

/* The word at its place behind the command, by what the command says it takes. */
static void offer_place(const struct complete *c)
{
	const char *arguments = c->command.arguments;

	if (strncmp(arguments, "PEER ", 5) == 0 && c->place == 0)
		offer_peers(c);
	else if (strncmp(arguments, "PEER ", 5) == 0)
		offer_files(c);
	else if (c->place == 0 && !c->all && strstr(arguments, "PREFIX"))
		offer_of_agent(c, strstr(arguments, "SERVICE") != NULL);
}

static void offer_commands(const struct complete *c, struct complete_command (*command)(size_t i))
{
	for (size_t i = 0; command(i).name; i++)
		offer(c, command(i).name, command(i).help);
}

/* One word of before the last. True: the next one is its argument. */
static bool take(struct complete *c, const char *word, struct complete_command (*command)(size_t i))
{
	const struct complete_option *option = option_named(word);

	if (word[0] == '-') {
		c->all = c->all || strcmp(word, "--all") == 0;
		c->reset = c->reset || strcmp(word, "--reset") == 0;
		if (strncmp(word, "--socket=", 9) == 0)
			c->socket_path = word + 9;
		return option && option->has_argument;
	}
	if (c->command.name) {
		c->place++;
		return false;
	}
	for (size_t i = 0; command(i).name; i++)
		if (strcmp(command(i).name, word) == 0)
			c->command = command(i);
	if (!c->command.name) /* nobody's: nothing is known behind it */
		c->command = (struct complete_command){"", "", ""};
	return false;
}

void complete_words(FILE *out, const char *socket_path, size_t n, char *const *words,
	struct complete_command (*command)(size_t i))
{
	struct complete c = {
		.out = out, .socket_path = socket_path, .word = n > 0 ? words[n - 1] : ""};
	const char *option = NULL; /* whose argument comes next */

	for (size_t i = 0; i + 1 < n; i++) {
		if (option && strcmp(option, "--socket") == 0)
			c.socket_path = words[i];
		if (option)
			option = NULL;
		else if (take(&c, words[i], command))
			option = words[i];
	}
	if (option)
		offer_argument(&c, option);
	else if (c.word[0] == '-')
		offer_options(&c);
	else if (!c.command.name)
		offer_commands(&c, command);
	else
		offer_place(&c);
}
