/*
 * Text of outsiders made fit to be shown.
 *
 * Check output and replies end up in the log, in status JSON and on the terminal of somebody who
 * is root. One function decides what may pass, so that no kind of check has to think of it.
 */
#include "agent/base/printable.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* The length of the UTF-8 character (RFC 3629) at `s`, with its code point; 0: there is none. */
static size_t utf8_length(const unsigned char *s, size_t n, uint32_t *ret_code)
{
	static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t length;
	uint32_t code;

	if (s[0] < 0x80) {
		*ret_code = s[0];
		return 1;
	}
	if (s[0] >= 0xc2 && s[0] <= 0xdf)
		length = 2;
	else if (s[0] >= 0xe0 && s[0] <= 0xef)
		length = 3;
	else if (s[0] >= 0xf0 && s[0] <= 0xf4)
		length = 4;
	else
		return 0;
	if (length > n)
		return 0;
	code = s[0] & (0x7fU >> length);
	for (size_t i = 1; i < length; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (s[i] & 0x3fU);
	}
	if (code < smallest[length] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
		return 0;
	*ret_code = code;
	return length;
}

static bool is_harmless(uint32_t code)
{
	if (code < 0x20 || (code >= 0x7f && code <= 0x9f))
		return false;
	/* Line and paragraph separators, and what turns the direction of the text that follows. */
	return !(code >= 0x2028 && code <= 0x202e) && !(code >= 0x2066 && code <= 0x2069);
}

/* One character as it will be shown, at most 16 bytes; returns how much of `s` it used. */
static size_t show_one(const unsigned char *s, size_t n, char shown[16], size_t *ret_length)
{
	static const char digits[] = "0123456789abcdef";
	uint32_t code;
	size_t used = utf8_length(s, n, &code), length = 0;

	if (used > 0 && is_harmless(code)) {
		memcpy(shown, s, used);
		*ret_length = used;
		return used;
	}
	if (used == 0)
		used = 1;
	for (size_t i = 0; i < used; i++) {
		shown[length++] = '\\';
		shown[length++] = 'x';
		shown[length++] = digits[s[i] >> 4];
		shown[length++] = digits[s[i] & 15];
	}
	*ret_length = length;
	return used;
}

const char *printable_copy(char *buf, size_t size, const char *text, size_t n)
{
	const unsigned char *s = (const unsigned char *)text;
	/* The last place at which "..." still fits, should the rest not. */
	size_t length = 0, cut = 0;

	assert(size >= 8);
	while (n > 0) {
		char shown[16];
		size_t m, used = show_one(s, n, shown, &m);

		if (length + m + 1 > size) {
			memcpy(buf + cut, "...", 4);
			return buf;
		}
		memcpy(buf + length, shown, m);
		length += m;
		if (length + 4 <= size)
			cut = length;
		s += used;
		n -= used;
	}
	buf[length] = '\0';
	return buf;
}
