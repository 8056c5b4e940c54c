#ifndef REDSHANK_LOAD_NUMBER_H
#define REDSHANK_LOAD_NUMBER_H
/*
 * A number out of what a service gives: text, JSON or a Prometheus page. Pure but for memory. What
 * comes from a service may be anything: sizes are bounded, and whatever is not plainly the number
 * that was asked for is an error that says what stood there.
 *
 * Numbers are thousandths, at most NUMBER_MAX of them; one that is negative, not finite or too
 * large is an error, since no load is like that.
 */
#include <stddef.h>
#include <stdint.h>

#include "agent/base/error.h"
#include "agent/config/config.h"

#define NUMBER_TEXT_MAX (128U * 1024)	  /* bytes of one text */
#define NUMBER_MAX 1000000000000000000ULL /* 10^15 in thousandths */

struct json_t;

/* A text that is looked into. In place; zeroed, it holds nothing. */
struct number_text {
	enum config_format format;
	const char *text; /* borrowed, NUL-terminated, without a NUL before */
	size_t length;
	struct json_t *tree; /* owned, of JSON */
};

/* Takes the text, `length` bytes and a NUL behind them. 0; -EBADMSG with what is wrong with it. */
int number_open(struct number_text *t, enum config_format format, const char *text, size_t length,
	struct error *ret_error);
void number_close(struct number_text *t);

/*
 * The number at `key`; *ret_milli is it, rounded down. 0; -ENOENT: nothing stands there; -EBADMSG:
 * something else does.
 *   text        one number; key is NULL
 *   json        keys and list indices with dots between: "queues.0.length"; a backslash makes the
 *               next character part of the key
 *   prometheus  NAME or NAME{label="value",...}: the sum of all samples of that name which have
 *               these labels
 */
int number_find(
	const struct number_text *t, const char *key, uint64_t *ret_milli, struct error *ret_error);

#endif
