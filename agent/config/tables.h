#ifndef REDSHANK_CONFIG_TABLES_H
#define REDSHANK_CONFIG_TABLES_H
/* The tables of every object that is not a check's own settings. For config/ and the test that
 * holds the manual against them. */
#include "agent/config/config.h"

/* A prefix as the table loads and prints it; its communities are special. */
struct tables_prefix {
	int64_t weight;
	int64_t prepend;
	bool last_resort;
	bool address_check;
};

extern const struct schema tables_top;	   /* struct config */
extern const struct schema tables_timing;  /* struct config_timing */
extern const struct schema tables_service; /* struct config_service */
extern const struct schema tables_prefix;  /* struct tables_prefix */
/* What a hook can be run for, NULL at the end: the words of these events. */
extern const char *const tables_hook_events[];
extern const struct schema tables_hook;	      /* struct config_hook */
extern const struct schema tables_restart;    /* struct config_restart */
extern const struct schema tables_neighbours; /* struct config_neighbours */
extern const struct schema tables_shed;	      /* struct config_shed */
extern const struct schema tables_start;      /* struct config_start */
extern const struct schema tables_slow_start; /* struct config_slow_start */
extern const struct schema tables_hold_down;  /* struct config_hold_down */
extern const struct schema tables_leave;      /* struct config_leave */
extern const struct schema tables_managed;    /* the object of manage_addresses */
/* Of struct config_timing, what a check has and `defaults` has not. */
extern const struct schema tables_check_own;
extern const struct schema tables_load; /* struct config_load */
/* By `type`: struct config_signal; ends with a name of NULL. The type itself is in no table. */
struct tables_type {
	const char *name;
	struct schema schema;
};
extern const struct tables_type tables_signals[];   /* in the order of enum config_signal_type */
extern const struct tables_type tables_countings[]; /* of enum config_counting_type */
/* Only for its keys: those that every check has, whatever its type. */
extern const struct schema tables_check;

/* "ADDRESS:PORT" or "[ADDRESS]:PORT", both literal. NULL, or what was expected. */
const char *tables_form_listen(const char *text);

/* The same, or "bird": where BIRD shows it. NULL, or what was expected. */
const char *tables_form_member(const char *text);

/* As the kernel names interfaces. NULL, or what was expected. */
const char *tables_form_interface(const char *text);
/* Names of nodes: what host names may hold. NULL, or what was expected. */
const char *tables_form_node(const char *text);
/* Names of services and checks. NULL, or what was expected. */
const char *tables_form_name(const char *text);

#endif
