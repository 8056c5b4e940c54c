/* The kinds of check that the configuration may name. A new kind is one file and one line here. */
#include "probes/probe.h"

const struct probe_type *const probe_types[] = {
	&probe_type_process,
	&probe_type_tcp,
	&probe_type_http,
	&probe_type_udp,
	&probe_type_dns,
	&probe_type_exec,
	NULL,
};
