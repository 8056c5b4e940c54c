#ifndef REDSHANK_PROBES_PATTERN_H
#define REDSHANK_PROBES_PATTERN_H
/*
 * POSIX extended regular expressions (XBD 9.4) whose cost is bounded, for what outsiders send.
 *
 * Only what POSIX defines: no back-references, no GNU escapes, nothing undefined such as "a**" or
 * an empty branch. Bytes are characters. Lines count as for grep: `^` and `$` match at the ends of
 * each line, and neither `.` nor `[^...]` matches a newline.
 */
#include <stdbool.h>
#include <stddef.h>

/* Characters of the expression with its repetitions written out ("a{3}" is three). */
#define PATTERN_POSITIONS_MAX 255

struct pattern;

/* NULL where the text is a pattern, else what was expected. */
const char *pattern_form(const char *text);
/* Heap. 0, -EINVAL (see pattern_form), -ENOMEM. */
int pattern_new(const char *text, struct pattern **ret);
void pattern_free(struct pattern *p);
/* True when it matches somewhere in the n bytes. At most n * PATTERN_POSITIONS_MAX steps. */
bool pattern_search(const struct pattern *p, const char *data, size_t n);

#endif
