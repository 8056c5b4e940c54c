/*
 * A core dump is the whole memory: the key of this node's certificate, and what checks say to be
 * let in. So an agent that knows a secret is not dumpable (PR_SET_DUMPABLE, prctl(2)): the kernel
 * writes no core of it, and no other process of the agent's user may look into it by ptrace(2) or
 * /proc/PID/mem. The commands of `exec` checks are such processes.
 *
 * Where nothing is secret cores are as useful as ever. Memory is not wiped: once there was a secret
 * it stays so for this life of the agent, whatever a reload takes away.
 */
#include "agent/core_dump.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>

#include "agent/system/log.h"
#include "probes/probe.h"
#include "probes/secrets.h"

static bool has_secret(const struct config *config)
{
	if (config->neighbours && config->neighbours->key)
		return true;
	for (size_t s = 0; s < config->n_services; s++)
		for (size_t c = 0; c < config->services[s].n_checks; c++) {
			const struct config_check *check = &config->services[s].checks[c];

			if (secrets_are_in(check->type->settings, check->settings))
				return true;
		}
	return false;
}

void core_dump_allow(const struct config *config)
{
	if (!has_secret(config) || prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0)
		return;
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		log_warning("core dumps cannot be turned off, and would hold secrets of the "
			    "configuration: %s",
			strerror(errno));
}
