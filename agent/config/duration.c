/*
 * Durations. There are no fractions, signs, blanks or sums: "1.5s" is "1500ms", and one way to
 * write a thing is one thing less to misread at night.
 */
#include "agent/config/duration.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/base/cleanup.h"

static const struct {
	const char *name;
	uint64_t ms;
} units[] = {{"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};

int duration_parse(const char *text, uint64_t *ret_ms)
{
	size_t digits = strspn(text, "0123456789");
	uint64_t n = 0;

	if (digits == 0)
		return -EINVAL;
	for (size_t i = 0; i < digits && n <= DURATION_MS_MAX; i++)
		n = n * 10 + (uint64_t)(text[i] - '0');
	for (size_t i = 0; i < ELEMENTSOF(units); i++) {
		if (strcmp(text + digits, units[i].name) != 0)
			continue;
		if (n > DURATION_MS_MAX / units[i].ms)
			return -ERANGE;
		*ret_ms = n * units[i].ms;
		return 0;
	}
	return -EINVAL;
}

const char *duration_format(uint64_t ms, char buf[DURATION_TEXT_MAX])
{
	size_t i = 0;

	while (ms == 0 ? i + 1 < ELEMENTSOF(units) : ms % units[i].ms != 0)
		i++;
	(void)snprintf(buf, DURATION_TEXT_MAX, "%" PRIu64 "%s", ms / units[i].ms, units[i].name);
	return buf;
}
