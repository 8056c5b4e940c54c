/*
 * What a table says of one key without any JSON: what it expects, in words, and the forms that
 * strings take. Loading is in settings.c, printing in print.c.
 */
#include "agent/config/schema.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/config/duration.h"
#include "agent/config/settings.h"

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

const char *schema_form_absolute_path(const char *text)
{
	return text[0] == '/' ? NULL : "an absolute path, starting with /";
}

const char *schema_form_socket_path(const char *text)
{
	if (text[0] != '/')
		return schema_form_absolute_path(text);
	return strlen(text) <= 107 ? NULL : "a path of at most 107 bytes, as sockets have";
}

const char *schema_form_unit_name(const char *text)
{
	static const char *const suffixes[] = {".service", ".socket", ".target", ".mount", ".timer",
		".path", ".slice", ".scope", ".device", ".swap", ".automount"};
	size_t length = strlen(text);
	const char *at = strchr(text, '@');

	if (strspn(text, LETTERS DIGITS ":_.\\@-") != length || length > 255)
		return "a unit's name, such as \"nsd.service\"";
	if (at && at[1] == '.')
		return "an instance behind the @, such as \"unbound@1.service\"";
	for (size_t i = 0; i < ELEMENTSOF(suffixes); i++) {
		size_t n = strlen(suffixes[i]);

		if (length > n && strcmp(text + length - n, suffixes[i]) == 0)
			return NULL;
	}
	return "a unit's name with its suffix, such as \"nsd.service\"";
}

static const char *expected_words(const char *const *words, char buf[SETTINGS_EXPECTED_MAX])
{
	size_t used = (size_t)snprintf(
		buf, SETTINGS_EXPECTED_MAX, "%s", words[1] && words[2] ? "one of " : "");

	for (size_t i = 0; words[i] && used < SETTINGS_EXPECTED_MAX; i++)
		used += (size_t)snprintf(buf + used, SETTINGS_EXPECTED_MAX - used, "%s\"%s\"",
			i == 0	       ? ""
			: words[i + 1] ? ", "
				       : " or ",
			words[i]);
	return buf;
}

const char *settings_expected(const struct schema_key *key, char buf[SETTINGS_EXPECTED_MAX])
{
	char low[DURATION_TEXT_MAX], high[DURATION_TEXT_MAX];
	const char *text = "";

	switch (key->kind) {
	case SCHEMA_STRING:
		text = "a string";
		break;
	case SCHEMA_INTEGER:
		(void)snprintf(buf, SETTINGS_EXPECTED_MAX,
			"an integer from %" PRId64 " to %" PRId64, key->minimum, key->maximum);
		return buf;
	case SCHEMA_BOOLEAN:
		text = "true or false";
		break;
	case SCHEMA_DURATION:
		(void)snprintf(buf, SETTINGS_EXPECTED_MAX, "a duration from \"%s\" to \"%s\"",
			duration_format((uint64_t)key->minimum, low),
			duration_format((uint64_t)key->maximum, high));
		return buf;
	case SCHEMA_ENUM:
		return expected_words(key->words, buf);
	case SCHEMA_ADDRESS:
		text = "an IPv4 or IPv6 address literal, such as \"192.0.2.53\" or "
		       "\"2001:db8::53\"";
		break;
	case SCHEMA_STRING_LIST:
		text = "a list of strings";
		break;
	case SCHEMA_STRING_MAP:
		text = "an object whose values are strings";
		break;
	case SCHEMA_INTEGER_LIST:
		(void)snprintf(buf, SETTINGS_EXPECTED_MAX,
			"a list of integers from %" PRId64 " to %" PRId64, key->minimum,
			key->maximum);
		return buf;
	case SCHEMA_OBJECT:
	case SCHEMA_SPECIAL:
		text = "an object";
		break;
	}
	(void)snprintf(buf, SETTINGS_EXPECTED_MAX, "%s", text);
	return buf;
}
