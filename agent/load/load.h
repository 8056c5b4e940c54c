#ifndef REDSHANK_LOAD_LOAD_H
#define REDSHANK_LOAD_LOAD_H
/*
 * How busy this server is: the signals of the section `load` are measured, each against its limit,
 * and so is what each prefix has of it. core/meter judges; here the numbers are fetched and kept.
 * The glue (agent_shedding.c) hands the result to core/shed, status shows it.
 *
 * Nothing here is on the way of a withdrawal: it runs at the loop's lowest priority, one signal a
 * turn; files are read with bounded sizes, commands and pages have deadlines.
 *
 * A signal that cannot be measured drops out, is said once in the log, and shows its error until it
 * is back. With none left, the load is not known. That never makes a service unhealthy.
 */
#include <systemd/sd-event.h>

#include "agent/config/config.h"

struct load;

#define LOAD_TEXT_MAX 160

/* `config` points to the pointer of the configuration that runs. Measures at once, and from then
 * on every `interval`; nothing without the section. Heap. 0 or negative errno. */
int load_new(struct load **ret, sd_event *event, const struct config *const *config);
void load_free(struct load *l); /* NULL is fine */
DEFINE_CLEANUP_PTR(struct load *, load_free)

/* Another configuration runs; the old one may be gone. What is measured as before keeps what was
 * seen of it. -ENOMEM: nothing is measured until the next configuration. */
int load_configure(struct load *l);

/* The server as a whole. Amounts are thousandths of the unit of `capacity`, as in core/shed.h. */
struct load_view {
	bool configured; /* there is a section `load` */
	bool valid;	 /* at least one signal speaks; else the load is not known */
	uint64_t capacity, load;
	unsigned utilisation_bp;
	const char *heaviest; /* the signal that is nearest to its limit; NULL unless valid */
	size_t n_signals;
	const char *counting;	    /* type of `prefixes`: "nftables", ...; NULL without */
	const char *counting_error; /* why a prefix's load is not known; "": all have counters */
};
/* NULL is a load without a section. */
void load_view(const struct load *l, struct load_view *ret);

struct load_signal {
	const char *name;
	const char *type;     /* "cpu", "pressure", ... */
	bool valid;	      /* else `value_milli` and `bp` say nothing */
	uint64_t value_milli; /* thousandths of what `limit` is in: per cent, or so many a second */
	uint64_t limit_milli;
	unsigned bp;	   /* of the limit */
	const char *error; /* why it is not valid; "" where it is, or has only begun */
};
/* The signals in the order of the configuration; false past the last. Texts live until the next
 * turn of the loop. */
bool load_signal(const struct load *l, size_t nth, struct load_signal *ret);

/* What one prefix has of the load, as thousandths of the unit; false: not known. */
bool load_prefix(const struct load *l, size_t service, size_t prefix, uint64_t *ret);

#endif
