/*
 * Masks what must not be said. Called with each reason that is not empty, so also on the way of a
 * death: no memory, no I/O, and nothing to do for checks without headers and variables.
 *
 * A reason is cut where its room ends, and a service may cut what it answers with. So a value is
 * recognised by its first MASK_RUN bytes, and masked as far as it goes on.
 */
#include "probes/secrets.h"

#include <string.h>

#define MASK "***"
#define MASK_MIN 6 /* shorter values are words such as "true", and no secrets */
#define MASK_RUN 8

bool secrets_is_name(const char *name)
{
	static const char *const parts[] = {
		"auth", "cookie", "credential", "key", "pass", "pwd", "secret", "token"};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (strcasestr(name, parts[i]))
			return true;
	return false;
}

static bool map_has_secret(const struct schema_key *key, const struct schema_strings *map)
{
	bool env = strcmp(key->name, "env") == 0;

	for (size_t i = 0; i + 1 < map->n; i += 2)
		if (!env || secrets_is_name(map->items[i]))
			return true;
	return false;
}

bool secrets_are_in(const struct schema *schema, const void *settings)
{
	for (const struct schema_key *key = schema->keys; key->name; key++) {
		const void *field = (const char *)settings + key->offset;

		if (key->kind == SCHEMA_STRING_MAP && map_has_secret(key, field))
			return true;
		if (key->kind == SCHEMA_STRING &&
			(strcmp(key->name, "send") == 0 || strcmp(key->name, "body") == 0) &&
			*(char *const *)field)
			return true;
	}
	return false;
}

static size_t common(const char *a, const char *b)
{
	size_t n = 0;

	while (a[n] && a[n] == b[n])
		n++;
	return n;
}

/* How much of the value stands at `at`; 0: too little to know it by. */
static size_t match_value(const char *at, const char *value)
{
	size_t length = strlen(value), n = common(at, value);

	return length >= MASK_MIN && n >= (length < MASK_RUN ? length : MASK_RUN) ? n : 0;
}

static size_t match_item(const char *at, const char *value)
{
	const char *space = strchr(value, ' '), *equals = strchr(value, '=');
	size_t n = match_value(at, value), m = space ? match_value(at, space + 1) : 0;

	if (m > n)
		n = m;
	m = equals ? match_value(at, equals + 1) : 0;
	return m > n ? m : n;
}

/* The longest, since two secrets may begin alike, and what is left of the other would be shown. */
static size_t match_any(const struct schema *schema, const void *settings, const char *at)
{
	size_t longest = 0;

	for (const struct schema_key *key = schema->keys; key->name; key++) {
		const struct schema_strings *map =
			(const void *)((const char *)settings + key->offset);
		bool env = strcmp(key->name, "env") == 0;

		if (key->kind != SCHEMA_STRING_MAP || (!env && strcmp(key->name, "headers") != 0))
			continue;
		for (size_t i = 0; i + 1 < map->n; i += 2) {
			size_t n = !env || secrets_is_name(map->items[i])
					   ? match_item(at, map->items[i + 1])
					   : 0;

			longest = n > longest ? n : longest;
		}
	}
	return longest;
}

/* RFC 3986, 3.2: the authority ends at the path, the query or the fragment; in a text, with the
 * word. */
void secrets_mask_urls(char *text)
{
	for (char *user = strstr(text, "://"); user; user = strstr(user, "://")) {
		size_t n, stars;

		user += strlen("://");
		n = strcspn(user, "/?#\"'<> \t\r\n");
		while (n > 0 && user[n - 1] != '@') /* the last @: a password may hold others */
			n--;
		if (n < 2)
			continue;
		stars = n - 1 < strlen(MASK) ? n - 1 : strlen(MASK);
		memmove(user + stars, user + n - 1, strlen(user + n - 1) + 1);
		memcpy(user, MASK, stars);
	}
}

void secrets_mask(const struct schema *schema, const void *settings, char *text)
{
	for (char *at = text; *at; at++) {
		size_t n = match_any(schema, settings, at);

		if (n == 0)
			continue;
		memmove(at + strlen(MASK), at + n, strlen(at + n) + 1);
		/* NOLINTNEXTLINE(bugprone-not-null-terminated-result): the text goes on behind */
		memcpy(at, MASK, strlen(MASK));
		at += strlen(MASK) - 1;
	}
}
