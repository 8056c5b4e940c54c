#ifndef REDSHANK_CTL_COMMAND_H
#define REDSHANK_CTL_COMMAND_H
/* The command line of redshankctl: options, the list of commands, exit codes. */

#define COMMAND_SOCKET "/run/redshank/status.sock"

enum command_exit {
	COMMAND_OK = 0,
	COMMAND_REFUSED = 1, /* the agent refused, or knows nothing of that name */
	COMMAND_USAGE = 2,
	COMMAND_NO_AGENT = 3, /* with --plugin also UNKNOWN */
};

/* Runs one command; the process's exit code. */
int command_run(int argc, char **argv);

#endif
