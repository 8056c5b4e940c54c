#ifndef REDSHANK_CONFIG_SCHEMA_H
#define REDSHANK_CONFIG_SCHEMA_H
/*
 * What a JSON object may hold: one table of keys for each struct of settings. The same table
 * loads, finds the nearest key to a misspelt one, fills defaults, prints the effective
 * configuration and documents. A kind of check brings its own table (probes/probe.h); this header
 * is all that it needs of config/.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum schema_kind {
	SCHEMA_STRING,	    /* char *: owned; never empty unless minimum is 0; no NUL inside */
	SCHEMA_INTEGER,	    /* int64_t, from minimum to maximum */
	SCHEMA_BOOLEAN,	    /* bool */
	SCHEMA_DURATION,    /* uint64_t in ms, "200ms" "10s" "5m" "2h"; minimum and maximum in ms */
	SCHEMA_ENUM,	    /* int: index in `words` (NULL-terminated) */
	SCHEMA_ADDRESS,	    /* struct address: a literal; family 0 when absent */
	SCHEMA_STRING_LIST, /* struct schema_strings */
	SCHEMA_STRING_MAP,  /* struct schema_strings with 2 n items: key, value, key, value */
	SCHEMA_INTEGER_LIST, /* struct schema_integers, each from minimum to maximum */
	SCHEMA_OBJECT,	     /* a struct inside the struct, by `object` */
	SCHEMA_SPECIAL, /* config/ alone: read and printed by a function of its own; the table only
			   knows the key */
};

struct schema_strings {
	char **items; /* owned, NULL-terminated; NULL when absent */
	size_t n;     /* items; with SCHEMA_STRING_MAP twice the number of keys */
};

struct schema_integers {
	int64_t *items;
	size_t n;
};

struct schema {
	size_t size;		       /* of the struct */
	const struct schema_key *keys; /* ends with a key whose name is NULL */
};

struct schema_key {
	const char *name; /* in JSON; lower case, with _ */
	enum schema_kind kind;
	size_t offset; /* in the struct */
	bool required;
	int64_t minimum, maximum; /* numbers, durations, and each of an integer list: inclusive, to
				     be set; strings (bytes), lists and maps (items): their length,
				     and a maximum of 0 is 4,096. An integer list has 1 to 4,096. */
	const char *const *words; /* of SCHEMA_ENUM */
	const char
		*fallback; /* the default as JSON text, such as "\"200ms\"" or "3"; NULL: absent */
	const struct schema *object; /* of SCHEMA_OBJECT */
	const char *meaning;	     /* one line for the manual */
	/* Of a string, and of each item of a string list: NULL where the text is right, else what
	 * was expected ("an absolute path"). NULL: any text. */
	const char *(*form)(const char *text);
};

/*
 * What is printed with defaults filled in must load again. So a default may not contradict another
 * key of its table; a key that is only right beside another has no default. An object that is not
 * required holds no required keys.
 */

/* Forms that several tables need. */
const char *schema_form_absolute_path(const char *text);
/* An absolute path that fits into sun_path (107 bytes). */
const char *schema_form_socket_path(const char *text);
/* "nsd.service", as systemd.unit(5) has it; no templates without an instance. */
const char *schema_form_unit_name(const char *text);

#define SCHEMA_FIELD(type, field) .offset = offsetof(type, field)
#define SCHEMA_END           \
	{                    \
		.name = NULL \
	}

#endif
