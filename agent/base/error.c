#include "agent/base/error.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

int error_set(struct error *e, int errnum, const char *format, ...)
{
	va_list ap;

	assert(errnum > 0);
	if (e) {
		va_start(ap, format);
		(void)vsnprintf(e->text, sizeof(e->text), format, ap);
		va_end(ap);
	}
	return -errnum;
}

int error_set_errno(struct error *e, int errnum, const char *format, ...)
{
	va_list ap;

	assert(errnum > 0);
	if (e) {
		size_t n;

		va_start(ap, format);
		(void)vsnprintf(e->text, sizeof(e->text), format, ap);
		va_end(ap);
		n = strlen(e->text);
		(void)snprintf(e->text + n, sizeof(e->text) - n, ": %s", strerror(errnum));
	}
	return -errnum;
}

void error_prefix(struct error *e, const char *format, ...)
{
	char joined[ERROR_TEXT_MAX];
	va_list ap;
	size_t n;

	if (!e)
		return;
	va_start(ap, format);
	(void)vsnprintf(joined, sizeof(joined), format, ap);
	va_end(ap);
	n = strlen(joined);
	(void)snprintf(
		joined + n, sizeof(joined) - n, ": %.*s", (int)(sizeof(joined) - 3), e->text);
	memcpy(e->text, joined, sizeof(joined));
}
