#ifndef REDSHANK_LOAD_LOAD_PRIVATE_H
#define REDSHANK_LOAD_LOAD_PRIVATE_H
/* What the files of load.h share: load.c (life, the timer, views), load_signals.c (measuring one
 * signal), load_prefixes.c (counting prefixes). Nobody else includes it. */
#include "agent/core/meter.h"
#include "agent/load/load.h"
#include "agent/load/nft.h"
#include "agent/load/number.h"
#include "agent/load/source.h"

#define LOAD_PRIORITY SD_EVENT_PRIORITY_IDLE
#define LOAD_NAME_MAX 33 /* as tables_form_name() has it, with the NUL */
/* Answers that may fail to come before a signal drops out: a server that is overloaded answers
 * late, and must not look idle for that. */
#define LOAD_PATIENCE 3

/* Why something is not known, said once. */
struct load_trouble {
	char text[LOAD_TEXT_MAX]; /* "": it is known */
	bool said;
	struct monotime said_at;
};

struct load_gauge {
	struct load *load;
	const struct config_signal *config; /* borrowed from the configuration that runs */
	char name[LOAD_NAME_MAX];
	char *identity; /* a copy: when it is compared, that configuration is gone */
	struct meter meters[2];
	struct source *source; /* of numbers */
	unsigned failed;       /* answers in a row */
	bool valid;
	uint64_t value_milli;
	unsigned bp;
	struct load_trouble trouble;
};

struct load_counter {
	char name[NFT_NAME_MAX];
	const char *key; /* in the text; borrowed; NULL: none */
	bool seen;	 /* in this round */
	uint64_t sum;	 /* of all numbers, where they are no counters */
	uint64_t n;
	struct meter meter;
};

struct load_counting {
	struct load *load;
	const struct config_counting *config; /* borrowed */
	char *identity;
	struct source *source;
	struct nft *nft;
	struct load_counter *counters; /* all prefixes, in the order of the configuration */
	struct load_counter **sorted;  /* by name */
	struct meter_share *shares;    /* by place */
	size_t *first;		       /* of each service's prefixes */
	size_t n, n_services;
	struct number_text text; /* while keys are looked for in it */
	size_t next;		 /* key to look for */
	unsigned failed;
	struct load_trouble trouble;
};

struct load {
	sd_event *event;
	const struct config *const *config;
	sd_event_source *timer, *step;
	struct load_gauge *gauges;
	size_t n_gauges;
	struct load_counting *counting; /* NULL: there is none */
	size_t next;			/* gauge to measure */
	bool looking;			/* for keys */
	char *text;			/* for files of the kernel; LOAD_FILE_MAX */
};
#define LOAD_FILE_MAX NUMBER_TEXT_MAX /* softnet_stat has some 130 bytes a processor */

/* What is wrong, from now on; the log hears of the first, and at most of one a minute. */
void load_trouble_set(struct load_trouble *t, const char *what, const char *text);
void load_trouble_clear(struct load_trouble *t, const char *what);

/* load_signals.c */

/* Measures it, or begins to. */
void load_measure(struct load_gauge *g);
int load_gauge_open(struct load_gauge *g);
void load_gauge_done(struct load_gauge *g);

/* load_prefixes.c */

/* Heap; 0 or negative errno. Takes over what `old` (or NULL) has seen where it is the same. */
int load_counting_new(struct load *l, struct load_counting *old, struct load_counting **ret);
void load_counting_free(struct load_counting *c); /* NULL is fine */
DEFINE_CLEANUP_PTR(struct load_counting *, load_counting_free)
/* Begins a round. */
void load_count(struct load_counting *c);
/* Looks for some keys; false when there are no more. */
bool load_count_look(struct load_counting *c);

#endif
