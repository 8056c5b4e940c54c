#ifndef REDSHANK_CONFIG_DURATION_H
#define REDSHANK_CONFIG_DURATION_H
/* Durations as the configuration writes them: digits and a unit, "200ms" "10s" "5m" "2h". */
#include <stdint.h>

#define DURATION_TEXT_MAX 24
#define DURATION_MS_MAX (366ULL * 24 * 3600 * 1000)

/* 0; -EINVAL: not of this form; -ERANGE: past DURATION_MS_MAX. */
int duration_parse(const char *text, uint64_t *ret_ms);
/* In the largest unit that needs no fraction: 120000 is "2m". Returns buf. */
const char *duration_format(uint64_t ms, char buf[DURATION_TEXT_MAX]);

#endif
