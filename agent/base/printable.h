#ifndef REDSHANK_BASE_PRINTABLE_H
#define REDSHANK_BASE_PRINTABLE_H
/* Text of outsiders (a check's output, a bus error, BIRD's words) made fit for one line of a log,
 * a terminal and a JSON string. */
#include <stddef.h>

/*
 * Copies `n` bytes of `text` to `buf`, which has room for `size` bytes (at least 8) and is always
 * terminated. What comes out is valid UTF-8 on one line: control characters (C0, DEL, C1), the
 * line and direction marks of Unicode, and bytes that are not UTF-8 become \xNN, byte by byte.
 * What does not fit is replaced by "..."; no character and no escape is cut in two. A backslash of
 * the text stays as it is. Returns buf. `text` and `buf` must not overlap.
 */
const char *printable_copy(char *buf, size_t size, const char *text, size_t n);

#endif
