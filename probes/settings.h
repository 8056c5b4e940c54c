#ifndef REDSHANK_PROBES_SETTINGS_H
#define REDSHANK_PROBES_SETTINGS_H
/* The keys of the checks that are one file each, as their schemas fill them in (probes/http.h has
 * those of http). Nobody includes this but these files and their tests. */
#include "agent/base/address.h"
#include "probes/probe.h"

enum dns_transport {
	TRANSPORT_UDP,
	TRANSPORT_TCP,
	TRANSPORT_TLS,
};

struct dns_expect_settings {
	struct schema_strings rcodes;
	struct schema_strings answers;
	int64_t min_answers;
	bool authoritative;
};

struct dns_settings {
	struct address server;
	int64_t port; /* 0: the transport's */
	int transport;
	char *tls_name;
	char *ca;
	char *name;
	char *rrtype;
	bool recursion_desired;
	struct dns_expect_settings expect;
};

struct exec_settings {
	struct schema_strings command;
	struct schema_strings env;
	int64_t output_limit;
	bool plugin;
};

/* One of three names a process; `count` goes with `executable`. */
struct process_settings {
	char *unit;
	char *pidfile;
	char *executable;
	int64_t count;
};

struct tcp_settings {
	struct address address;
	int64_t port;
	char *send;
	char *expect;
};

struct udp_settings {
	struct address address;
	int64_t port;
	char *send;
	char *expect;
};

#endif
