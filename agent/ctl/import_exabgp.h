#ifndef REDSHANK_CTL_IMPORT_EXABGP_H
#define REDSHANK_CTL_IMPORT_EXABGP_H
/* The options of `exabgp healthcheck`. For import_exabgp.c and import_options.c. */
#include "agent/base/address.h"
#include "agent/ctl/import_parts.h"

#define OPTIONS_WORDS_MAX 4096
#define OPTIONS_IPS_MAX 1024

/* What an option was given, and where. */
struct options_value {
	char *text; /* owned; NULL: not given */
	struct import_where where;
};

struct options {
	struct options_value *words; /* the command line, before it is parsed */
	size_t n_words;
	struct options_value name, command, disable, community, large_community, config;
	struct options_value *ips;
	size_t n_ips;
	uint64_t interval_ms, fast_ms, timeout_ms;
	bool timeout_written;
	int64_t rise, fall, up_metric, down_metric, disabled_metric, increase, start_ip;
	bool withdraw_on_down, deaggregate, ip_setup;
};

/* With exabgp's defaults. */
void options_init(struct options *o);
void options_done(struct options *o);
void options_add_word(struct options *o, const char *word, struct import_where where);
/* The lines of a --config file, each `long option` or `long option = value`. False, and told. */
bool options_add_file(struct import *im, struct options *o, struct import_file *file);
/*
 * Reads the words, those of a --config file before those that name it; `file` is where the words
 * come from, beside which that file is looked for, too. What has no equivalent is told. False, and
 * told, where exabgp itself would not have taken them.
 */
bool options_parse(struct import *im, struct options *o, const struct import_file *file);

/* "64496:100" of two numbers up to 65,535, or of three up to 2^32 - 1. */
bool options_is_community(const char *text, int parts);

#endif
