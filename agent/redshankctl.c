/* redshankctl: asks and tells the agent. See redshankctl(1) and agent/ctl/command.c. */
#include "agent/ctl/command.h"

int main(int argc, char **argv)
{
	return command_run(argc, argv);
}
