#ifndef REDSHANK_STATUS_METRICS_TEXT_H
#define REDSHANK_STATUS_METRICS_TEXT_H
/*
 * Writes Prometheus' text format 0.0.4 or OpenMetrics 1.0 into a buffer; knows no metric.
 * Sources: prometheus.io/docs/instrumenting/exposition_formats, OpenMetrics 1.0.0.
 *
 * A hundred thousand lines are written while the loop waits, so nothing here goes through printf.
 * The first failure sticks. Label values may be any text: only \\, \" and \n are escaped, as the
 * formats have it, and what is not UTF-8 becomes U+FFFD.
 */
#include <stdbool.h>
#include <stdint.h>

#include "agent/base/buffer.h"
#include "agent/base/histogram.h"

enum metrics_format {
	METRICS_TEXT,
	METRICS_OPENMETRICS,
};
#define METRICS_FORMATS 2

/* What the Accept header asks for; NULL: there was none. Pure. */
enum metrics_format metrics_negotiate(const char *accept);
const char *metrics_content_type(enum metrics_format format);

enum metrics_kind {
	METRICS_GAUGE,
	METRICS_COUNTER, /* its name ends in _total */
	METRICS_HISTOGRAM,
};

struct metrics_writer {
	struct buffer *out; /* borrowed */
	enum metrics_format format;
	int error; /* 0, -E2BIG, -ENOMEM */
	const char *name;
	size_t name_length;
	struct buffer labels; /* of the sample that is being put together, without braces; owned */
};

void metrics_writer_init(struct metrics_writer *w, struct buffer *out, enum metrics_format format);
void metrics_writer_done(struct metrics_writer *w);

/* HELP and TYPE of a family, whose samples follow. `name` and `help` are ours: lower case, one line
 * without backslashes, and live as long as the writer. */
void metrics_family(
	struct metrics_writer *w, const char *name, enum metrics_kind kind, const char *help);

/* The labels of the samples that follow; the first one forgets those before. */
void metrics_labels_clear(struct metrics_writer *w);
void metrics_label(struct metrics_writer *w, const char *name, const char *value);

/* One sample with these labels and, where `last` is not NULL, one more of them: last="value", a
 * word of ours. */
void metrics_sample(
	struct metrics_writer *w, const char *last, const char *last_value, uint64_t value);
/* Microseconds, as seconds. */
void metrics_sample_us(struct metrics_writer *w, uint64_t us);
void metrics_sample_histogram(struct metrics_writer *w, const struct histogram *h);

/* The end of the document. */
void metrics_finish(struct metrics_writer *w);

#endif
