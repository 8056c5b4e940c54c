/*
 * The operator's command.
 *
 * A command is one row of `commands`: its name, how it is called, a line of help, a function. The
 * exit codes are those of redshankctl(1): scripts and monitoring depend on them.
 */
#include "agent/ctl/command.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include "agent/ctl/change.h"
#include "agent/ctl/complete.h"
#include "agent/ctl/events.h"
#include "agent/ctl/explain.h"
#include "agent/ctl/fetch.h"
#include "agent/ctl/import.h"
#include "agent/ctl/status.h"
#include "agent/ctl/text.h"
#include "agent/ctl/top.h"

struct command_options {
	const char *socket;
	bool json;
	bool plugin;
	bool follow;
	struct change_options change;
};

struct command {
	const char *name;
	const char *arguments;
	const char *help;
	int (*run)(const struct command_options *options, int argc, char **argv);
};

/* Where complaints go: standard error, or with --json memory, for they become one object then. */
static FILE *errors;

/* An error's text; returns `code`. Words from the command line are escaped. */
static int complain(enum command_exit code, const char *format, ...) _printf_(2, 3);
static int complain(enum command_exit code, const char *format, ...)
{
	_cleanup_free_ char *escaped = NULL;
	char text[ERROR_TEXT_MAX + 128];
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	escaped = text_escape(text);
	(void)fprintf(errors, "redshankctl: %s\n", escaped);
	return (int)code;
}

/* --- commands --- */

static bool want_colours(void)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && !(no_color && no_color[0]) && term &&
	       strcmp(term, "dumb") != 0;
}

/* A monitoring plug-in says everything on one line of standard output. */
static int status_failed(
	const struct command_options *options, enum command_exit code, const char *text)
{
	_cleanup_free_ char *escaped = NULL;

	if (!options->plugin)
		return complain(code, "%s", text);
	escaped = plugin_escape(text);
	(void)printf("REDSHANK UNKNOWN - %s\n", escaped);
	return COMMAND_NO_AGENT;
}

static json_t *status_fetch(const struct command_options *options, int *ret_code)
{
	_cleanup_fetch_answer_ struct fetch_answer answer = {0};
	struct error error;
	json_t *document;
	char text[64];

	if (fetch_get(options->socket, "/v1/status", &answer, &error) < 0) {
		*ret_code = status_failed(options, COMMAND_NO_AGENT, error.text);
		return NULL;
	}
	if (answer.status != 200) {
		(void)snprintf(
			text, sizeof(text), "the agent answered HTTP status %ld", answer.status);
		*ret_code = status_failed(options, COMMAND_REFUSED, text);
		return NULL;
	}
	document = status_parse(buffer_string(&answer.body), answer.body.length, &error);
	if (!document)
		*ret_code = status_failed(options, COMMAND_REFUSED, error.text);
	return document;
}

static int run_status(const struct command_options *options, int argc, char **argv)
{
	struct status_view view = {
		.colours = want_colours(), .terminal = isatty(STDOUT_FILENO), .now = time(NULL)};
	struct error error;
	json_t *document;
	int code = COMMAND_OK;

	document = status_fetch(options, &code);
	if (!document)
		return code;
	if (argc > 1 && status_select(document, argv[1], &error) < 0) {
		json_decref(document);
		return status_failed(options, COMMAND_REFUSED, error.text);
	}
	if (options->plugin)
		code = status_plugin(stdout, document);
	else if (options->json)
		(void)(text_put_json(stdout, document, JSON_INDENT(2)) && puts("") >= 0);
	else
		status_print(stdout, document, &view);
	json_decref(document);
	return code;
}

static int run_explain(const struct command_options *options, int argc, char **argv)
{
	_cleanup_fetch_answer_ struct fetch_answer answer = {0};
	const struct status_view view = {.colours = want_colours(), .now = time(NULL)};
	_cleanup_free_ char *path = NULL;
	struct error error;
	json_t *document;

	if (argc < 2)
		return complain(
			COMMAND_USAGE, "explain: expected a service, a prefix or an address");
	if (strlen(argv[1]) > EXPLAIN_NAME_MAX)
		return complain(COMMAND_REFUSED, "no service and no prefix has a name that long");
	path = explain_path(argv[1]);
	if (fetch_get(options->socket, path, &answer, &error) < 0)
		return complain(COMMAND_NO_AGENT, "%s", error.text);
	if (answer.status != 200) {
		_cleanup_free_ char *said =
			explain_error(buffer_string(&answer.body), answer.body.length);

		if (said[0])
			return complain(COMMAND_REFUSED, "%s", said);
		return complain(
			COMMAND_REFUSED, "the agent answered HTTP status %ld", answer.status);
	}
	document = status_parse(buffer_string(&answer.body), answer.body.length, &error);
	if (!document)
		return complain(COMMAND_REFUSED, "%s", error.text);
	if (options->json)
		(void)(text_put_json(stdout, document, JSON_INDENT(2)) && puts("") >= 0);
	else
		explain_print(stdout, document, &view);
	json_decref(document);
	return COMMAND_OK;
}

static int run_change(const struct command_options *options, int argc, char **argv)
{
	_cleanup_fetch_answer_ struct fetch_answer answer = {0};
	_cleanup_free_ char *body = NULL;
	struct error error;
	char path[64];

	body = change_body(argv[0], argc > 1 ? argv[1] : NULL, argc > 2 ? argv[2] : NULL,
		&options->change, &error);
	if (!body)
		return complain(COMMAND_USAGE, "%s", error.text);
	(void)snprintf(path, sizeof(path), "/v1/%s", argv[0]);
	if (fetch_post(options->socket, path, body, &answer, &error) < 0)
		return complain(COMMAND_NO_AGENT, "%s", error.text);
	return (int)change_tell(stdout, errors, options->json, answer.status,
		buffer_string(&answer.body), answer.body.length);
}

static int run_top(const struct command_options *options, int argc, char **argv)
{
	struct error error = {{0}};
	int r = options->json ? top_run_json(options->socket, &error)
			      : top_run(options->socket, want_colours(), &error);

	if (r >= 0)
		return COMMAND_OK;
	return complain(r == -ENOTTY	? COMMAND_USAGE
			: options->json ? COMMAND_REFUSED
					: COMMAND_NO_AGENT,
		"%s", error.text);
}

static int run_events(const struct command_options *options, int argc, char **argv)
{
	const struct events_options events = {
		.socket = options->socket,
		.what = argc > 1 ? argv[1] : NULL,
		.json = options->json,
		.follow = options->follow,
		.colours = want_colours(),
	};

	return events_command(&events, stdout, stderr);
}

static int run_version(const struct command_options *options, int argc, char **argv)
{
	if (options->json)
		(void)printf("{\"version\": \"%s\"}\n", REDSHANK_VERSION);
	else
		(void)printf("redshankctl %s\n", REDSHANK_VERSION);
	return COMMAND_OK;
}

static int run_import(const struct command_options *options, int argc, char **argv)
{
	enum import_peer peer;

	if (argc < 2 || !import_peer_parse(argv[1], &peer))
		return complain(COMMAND_USAGE,
			"import: expected ahc, exabgp or birdwatcher, and files of that program");
	if (argc < 3)
		return complain(
			COMMAND_USAGE, "import %s: expected files of that program", argv[1]);
	return import_command(peer, (size_t)argc - 2, argv + 2, stdout, errors);
}

static const struct command commands[] = {
	{"status", "[SERVICE|PREFIX]", "what is wanted, announced and exported, and why",
		run_status},
	{"explain", "SERVICE|PREFIX", "why: the rule, what is behind it, what is next",
		run_explain},
	{"top", "", "the status, live: the worst first", run_top},
	{"drain", "SERVICE|PREFIX|--all", "take it out, until undrained or for a time", run_change},
	{"undrain", "SERVICE|PREFIX|--all", "take back a drain", run_change},
	{"announce", "SERVICE|PREFIX", "announce it by force, --for D; or --reset", run_change},
	{"weight", "PREFIX N|--reset", "another weight, or the configured one", run_change},
	{"freeze", "", "hold everything, until the thaw or for a time", run_change},
	{"thaw", "", "take back the freeze", run_change},
	{"check-now", "", "run every check now", run_change},
	{"reload", "", "read the configuration again", run_change},
	{"shed", "PREFIX", "to neighbours, when they promise; or --reset", run_change},
	{"unshed", "PREFIX", "back at once, and not shed; or --reset", run_change},
	{"events", "[SERVICE|PREFIX]", "what happened; with -f also what happens", run_events},
	{"version", "", "the version of this program", run_version},
	{"import", "PEER FILE...", "of ahc, exabgp or birdwatcher: as one of ours", run_import},
};

static struct complete_command command_nth(size_t i)
{
	if (i >= ELEMENTSOF(commands))
		return (struct complete_command){0};
	return (struct complete_command){commands[i].name, commands[i].arguments, commands[i].help};
}

/* --- words --- */

/* The number of letters to insert, drop or exchange between a and b; long words are far apart. */
static size_t word_distance(const char *a, const char *b)
{
	enum { MOST = 32 };
	size_t n = strlen(b), row[MOST + 1];

	if (n > MOST || strlen(a) > MOST)
		return MOST;
	for (size_t j = 0; j <= n; j++)
		row[j] = j;
	for (size_t i = 0; a[i]; i++) {
		size_t diagonal = row[0];

		row[0] = i + 1;
		for (size_t j = 0; j < n; j++) {
			size_t cost = diagonal + (a[i] != b[j] ? 1 : 0);

			diagonal = row[j + 1];
			if (row[j] + 1 < cost)
				cost = row[j] + 1;
			if (diagonal + 1 < cost)
				cost = diagonal + 1;
			row[j + 1] = cost;
		}
	}
	return row[n];
}

static int unknown_command(const char *word)
{
	const char *nearest = NULL;
	size_t best = strlen(word) > 4 ? 4 : strlen(word) > 3 ? 3 : 2;

	for (size_t i = 0; i < ELEMENTSOF(commands); i++) {
		size_t distance = word_distance(word, commands[i].name);

		if (distance < best) {
			best = distance;
			nearest = commands[i].name;
		}
	}
	if (strcmp(word, "help") == 0)
		return complain(
			COMMAND_USAGE, "unknown command \"help\"; did you mean \"--help\"?");
	if (nearest)
		(void)complain(COMMAND_USAGE, "unknown command \"%.64s\"; did you mean \"%s\"?",
			word, nearest);
	else
		(void)complain(COMMAND_USAGE, "unknown command \"%.64s\"", word);
	(void)fputs("The commands are:", errors);
	for (size_t i = 0; i < ELEMENTSOF(commands); i++)
		(void)fprintf(errors, " %s", commands[i].name);
	(void)fputc('\n', errors);
	return COMMAND_USAGE;
}

static void print_help(FILE *out)
{
	(void)fputs("Usage: redshankctl [OPTION...] COMMAND\n\nCommands:\n", out);
	for (size_t i = 0; i < ELEMENTSOF(commands); i++) {
		char call[48];

		(void)snprintf(
			call, sizeof(call), "%s %s", commands[i].name, commands[i].arguments);
		(void)fprintf(out, "  %-29s  %s\n", call, commands[i].help);
	}
	(void)fputs(
		"\nOptions:\n"
		"  --socket PATH   the agent's socket (" COMMAND_SOCKET ")\n"
		"  --json          for programs: JSON\n"
		"  -f, --follow    with events: go on, also when the agent is restarted\n"
		"  --plugin        with status: one line and exit code as a monitoring plug-in\n"
		"  --all           with drain, undrain: the whole server\n"
		"  --reset         with weight: back to the configured one; with announce, shed,\n"
		"                  unshed: end it\n"
		"  --reason TEXT   with drain, announce, weight, freeze, shed, unshed: why\n"
		"  --for D         with those: how long, such as 30m or 2h\n"
		"  --force         with reload: also where it withdraws more than reload_guard\n"
		"  --help, --version\n"
		"\n"
		"Exit codes: 0 done, 1 refused or unknown, 2 usage, 3 no agent. With "
		"--plugin:\n0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN. More in redshankctl(1).\n"
		"docs/NAME.md is /usr/share/doc/redshank/NAME.md.\n",
		out);
}

/* How many words a command line has at most, from how it is called; the command is one. */
static int most_words(const char *arguments, int argc)
{
	int n = arguments[0] ? 2 : 1;

	if (strstr(arguments, "..."))
		return argc;
	for (const char *c = arguments; *c; c++)
		n += *c == ' ';
	return n;
}

static int run_named(const struct command_options *options, int argc, char **argv)
{
	if (argc == 0) {
		(void)complain(COMMAND_USAGE, "expected a command");
		if (!options->json)
			print_help(stderr);
		return COMMAND_USAGE;
	}
	if (strcmp(argv[0], "complete") == 0) {
		complete_words(stdout, options->socket, (size_t)argc - 1, argv + 1, command_nth);
		return COMMAND_OK;
	}
	for (size_t i = 0; i < ELEMENTSOF(commands); i++) {
		int most = most_words(commands[i].arguments, argc);

		if (strcmp(argv[0], commands[i].name) != 0)
			continue;
		if (argc > most)
			return complain(COMMAND_USAGE, "%s: unexpected \"%.64s\"; usage: %s %s",
				argv[0], argv[most], commands[i].name, commands[i].arguments);
		if (options->plugin && options->json)
			return complain(COMMAND_USAGE, "--plugin and --json do not go together");
		if (options->plugin && commands[i].run != run_status)
			return complain(COMMAND_USAGE, "--plugin goes with status only");
		if (options->follow && commands[i].run != run_events)
			return complain(COMMAND_USAGE, "--follow goes with events only");
		if (change_options_given(&options->change) && commands[i].run != run_change)
			return complain(COMMAND_USAGE, "--all, --reset, --reason, --for and "
						       "--force go with drain, undrain, "
						       "announce, weight, freeze, shed, "
						       "unshed and reload only");
		return commands[i].run(options, argc, argv);
	}
	return unknown_command(argv[0]);
}

/* What getopt_long did not understand, in our words. */
static int bad_option(int c, char **argv)
{
	if (c == ':')
		return complain(COMMAND_USAGE, "%.64s expects an argument", argv[optind - 1]);
	if (optopt > 0 && optopt < 256)
		return complain(COMMAND_USAGE, "unknown option \"-%c\"", optopt);
	return complain(COMMAND_USAGE, "unknown option \"%.64s\"; redshankctl --help lists them",
		argv[optind - 1]);
}

/* getopt_long() takes "--al" for "--all": of a drain, nobody may mean more than was typed. */
static bool is_spelt_out(const char *word, const char *name)
{
	return strncmp(word, "--", 2) == 0 && strcspn(word + 2, "=") == strlen(name);
}

static int run_line(int argc, char **argv)
{
	enum {
		OPTION_SOCKET = 256,
		OPTION_JSON,
		OPTION_PLUGIN,
		OPTION_VERSION,
		OPTION_FOLLOW,
		OPTION_ALL,
		OPTION_RESET,
		OPTION_FORCE,
		OPTION_REASON,
		OPTION_FOR
	};
	static const struct option known[] = {
		{"socket", required_argument, NULL, OPTION_SOCKET},
		{"json", no_argument, NULL, OPTION_JSON},
		{"plugin", no_argument, NULL, OPTION_PLUGIN},
		{"follow", no_argument, NULL, OPTION_FOLLOW},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, OPTION_VERSION},
		{"all", no_argument, NULL, OPTION_ALL},
		{"reset", no_argument, NULL, OPTION_RESET},
		{"force", no_argument, NULL, OPTION_FORCE},
		{"reason", required_argument, NULL, OPTION_REASON},
		{"for", required_argument, NULL, OPTION_FOR},
		{0},
	};
	struct command_options options = {.socket = COMMAND_SOCKET};
	int c, at = -1;

	opterr = 0;
	while ((c = getopt_long(argc, argv, ":fh", known, &at)) >= 0) {
		const char *word = argv[optind - (optarg && optarg == argv[optind - 1] ? 2 : 1)];

		if (at >= 0 && !is_spelt_out(word, known[at].name))
			return complain(COMMAND_USAGE,
				"unknown option \"%.64s\"; did you mean \"--%s\"?", word,
				known[at].name);
		at = -1;
		switch (c) {
		case OPTION_SOCKET:
			options.socket = optarg;
			break;
		case OPTION_JSON:
			options.json = true;
			break;
		case OPTION_PLUGIN:
			options.plugin = true;
			break;
		case OPTION_FOLLOW:
		case 'f':
			options.follow = true;
			break;
		case OPTION_ALL:
			options.change.all = true;
			break;
		case OPTION_RESET:
			options.change.reset = true;
			break;
		case OPTION_FORCE:
			options.change.force = true;
			break;
		case OPTION_REASON:
			options.change.reason = optarg;
			break;
		case OPTION_FOR:
			options.change.span = optarg;
			break;
		case OPTION_VERSION:
			return run_version(&options, 0, NULL);
		case 'h':
			print_help(stdout);
			return COMMAND_OK;
		default:
			return bad_option(c, argv);
		}
	}
	return run_named(&options, argc - optind, argv + optind);
}

/* --- for programs --- */

/* Known before the options are read, for those may be what is wrong. */
static bool wants_json(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], "--json") == 0)
			return true;
	return false;
}

/* {"error": the first line, "problems": the others}, on standard output. Nothing where nothing was
 * complained about: then the answer has said it. */
static void tell_as_json(char *text)
{
	json_auto_t *object = json_object();
	json_t *problems = NULL;
	char *save = NULL;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (strncmp(line, "redshankctl: ", 13) == 0)
			line += 13;
		line += strspn(line, " ");
		if (json_object_size(object) == 0) {
			(void)json_object_set_new(object, "error", json_string(line));
			continue;
		}
		if (!problems) {
			problems = json_array();
			(void)json_object_set_new(object, "problems", problems);
		}
		(void)json_array_append_new(problems, json_string(line));
	}
	if (json_object_size(object) > 0)
		(void)(text_put_json(stdout, object, JSON_INDENT(2)) && fputc('\n', stdout) >= 0);
}

int command_run(int argc, char **argv)
{
	_cleanup_free_ char *text = NULL;
	size_t n = 0;
	FILE *memory = wants_json(argc, argv) ? open_memstream(&text, &n) : NULL;
	int code;

	errors = memory ? memory : stderr;
	code = run_line(argc, argv);
	errors = stderr;
	if (memory && fclose(memory) == 0) {
		if (code == COMMAND_OK)
			(void)fputs(text, stderr);
		else
			tell_as_json(text);
	}
	if (fflush(stdout) != 0)
		return complain(COMMAND_REFUSED, "standard output: %s", strerror(errno));
	return code;
}
