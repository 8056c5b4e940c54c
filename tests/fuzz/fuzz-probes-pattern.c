/* A pattern, a newline, and the text that it is searched in: it is refused with a reason, or it
 * searches to an end. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/cleanup.h"
#include "probes/pattern.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = memchr(data, '\n', size);
	struct pattern *p = NULL;
	_cleanup_free_ char *text = NULL;
	int r;

	if (!end)
		return 0;
	text = strndup((const char *)data, (size_t)(end - data));
	if (!text)
		return 0;
	r = pattern_new(text, &p);
	if ((r == 0) != (pattern_form(text) == NULL))
		abort();
	if (r == 0)
		(void)pattern_search(p, (const char *)end + 1, size - (size_t)(end + 1 - data));
	pattern_free(p);
	return 0;
}
