/* The daemon's main: arguments, configuration, and agent_run(). Nothing is decided here. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/beside.h"
#include "agent/load/nft.h"
#include "agent/system/log.h"
#include "agent/watched.h"

#define CONFIG_PATH "/etc/redshank/redshank.json"

enum exit_code {
	EXIT_OK = 0,
	EXIT_CONFIGURATION = 1, /* or the agent could not go on */
	EXIT_USAGE = 2,
};

static void usage(FILE *to)
{
	(void)fputs("Usage: redshankd [-c FILE] [--check | --units | --counters] [--foreground]\n"
		    "       [--debug]\n"
		    "Keeps anycast services announced by BIRD exactly while they deserve it.\n"
		    "\n"
		    "  -c, --config FILE  configuration (" CONFIG_PATH "), and its conf.d\n"
		    "      --check        validate, print the effective configuration, and exit\n"
		    "      --units        print the systemd units that it names, and exit\n"
		    "      --counters     print rules for nft -f that count prefixes, and exit\n"
		    "      --foreground   log to stderr even where the journal listens\n"
		    "      --debug        log every outcome of every check, too\n"
		    "  -h, --help         this text\n"
		    "      --version      the version\n"
		    "\n"
		    "Signals: HUP reload; USR1 check now; TERM stop, each service by its on_stop;\n"
		    "USR2 stop and leave BIRD as it is.\n"
		    "Exit status: 0 stopped or valid, 1 configuration or start failed, 2 usage.\n",
		to);
}

static void print_problems(const struct problems *problems)
{
	for (size_t i = 0; i < problems->n; i++)
		(void)fprintf(stderr, "%s: %s\n",
			problems->items[i].level == PROBLEM_ERROR ? "error" : "warning",
			problems->items[i].text);
	if (problems->n_dropped > 0)
		(void)fprintf(stderr, "(and %zu more)\n", problems->n_dropped);
}

static int load(const char *path, struct config **ret)
{
	struct problems problems;
	int r;

	problems_init(&problems);
	r = config_load(path, probe_types, ret, &problems);
	print_problems(&problems);
	if (r < 0 && problems.n_errors == 0)
		(void)fprintf(stderr, "error: %s: %s\n", path, strerror(-r));
	problems_done(&problems);
	return r;
}

static int check(const struct config *config)
{
	_cleanup_free_ char *text = config_effective(config);

	if (!text || fputs(text, stdout) == EOF || fflush(stdout) == EOF) {
		(void)fprintf(stderr, "error: printing the configuration: %s\n", strerror(errno));
		return EXIT_CONFIGURATION;
	}
	beside_print(config, stderr);
	return EXIT_OK;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"config", required_argument, NULL, 'c'},
		{"check", no_argument, NULL, 'k'},
		{"units", no_argument, NULL, 'u'},
		{"counters", no_argument, NULL, 'n'},
		{"foreground", no_argument, NULL, 'f'},
		{"debug", no_argument, NULL, 'd'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{NULL, 0, NULL, 0},
	};
	_cleanup_config_ struct config *config = NULL;
	const char *path = CONFIG_PATH;
	bool only_check = false, only_units = false, only_counters = false, foreground = false;
	int level = LOG_INFO, option;

	while ((option = getopt_long(argc, argv, "c:h", options, NULL)) != -1) {
		switch (option) {
		case 'c':
			path = optarg;
			break;
		case 'k':
			only_check = true;
			break;
		case 'u':
			only_units = true;
			break;
		case 'n':
			only_counters = true;
			break;
		case 'f':
			foreground = true;
			break;
		case 'd':
			level = LOG_DEBUG;
			break;
		case 'h':
			usage(stdout);
			return EXIT_OK;
		case 'V':
			(void)puts("redshankd " REDSHANK_VERSION);
			return EXIT_OK;
		default:
			(void)fputs("Try 'redshankd --help'.\n", stderr);
			return EXIT_USAGE;
		}
	}
	if (optind < argc) {
		(void)fprintf(stderr,
			"redshankd: unexpected argument '%s'\nTry 'redshankd --help'.\n",
			argv[optind]);
		return EXIT_USAGE;
	}
	if (load(path, &config) < 0)
		return EXIT_CONFIGURATION;
	if (only_units) {
		watched_print(config, stdout);
		return EXIT_OK;
	}
	if (only_counters)
		return nft_print(config, stdout) && fflush(stdout) == 0 ? EXIT_OK
									: EXIT_CONFIGURATION;
	if (only_check)
		return check(config);
	log_init(level, foreground);
	return agent_run(path, TAKE_PTR(config)) < 0 ? EXIT_CONFIGURATION : EXIT_OK;
}
