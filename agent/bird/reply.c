/*
 * The parser of BIRD's control protocol. BIRD builds its lines in cli_printf() of nest/cli.c: a
 * line of another code than its predecessor starts with "CODE-", one of the same code with a blank,
 * the last one with "CODE ", and an asynchronous one with '+'.
 *
 * All bytes of a reply lie in one buffer: finished lines, each closed by a NUL, then the line that
 * still grows. Lines are kept as offsets, since the buffer moves as it grows, and become pointers
 * when the reply is whole. A '+' line is taken out again as soon as it is told, so it may stand
 * anywhere between two lines.
 *
 * The other side is a stranger until it has proved otherwise: every length is bounded, and the
 * first byte that fits no line ends the parser for good.
 */
#include "agent/bird/reply.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "agent/base/buffer.h"
#include "agent/base/printable.h"

#define REPLY_CODE_DIGITS 4
#define REPLY_QUOTED_MAX 160 /* of a bad line in an error */
/* Had from the start, so that the answer to a command about a whole service of the largest kind
 * that has a protocol for each prefix needs no memory, which might be short when it comes. */
#define REPLY_LINES_RESERVED 512
#define REPLY_BYTES_RESERVED 32768

struct reply_position {
	int code;
	size_t offset; /* of the text in `bytes` */
};

struct reply_parser {
	struct reply_ops ops;
	struct buffer bytes;
	size_t line_start; /* in `bytes`: where the growing line begins */
	struct reply_position *positions;
	struct reply_line *lines; /* of as many, for the reply that is handed up */
	size_t n_positions, allocated;
	bool broken;
};

void reply_parser_free(struct reply_parser *p)
{
	if (!p)
		return;
	buffer_done(&p->bytes);
	free(p->positions);
	free(p->lines);
	free(p);
}

/* Ends the parser; the error shows what came, fit for a log. */
static int reply_bad(struct reply_parser *p, const char *line, size_t n, const char *why,
	struct error *ret_error)
{
	char quoted[REPLY_QUOTED_MAX];

	p->broken = true;
	return error_set(ret_error, EBADMSG, "%s: \"%s\"", why,
		printable_copy(quoted, sizeof(quoted), line, n));
}

/* Room for `want` lines. 0 or -ENOMEM. */
static int reply_grow(struct reply_parser *p, size_t want)
{
	struct reply_position *positions = reallocarray(p->positions, want, sizeof(*positions));
	struct reply_line *lines;

	if (!positions)
		return -ENOMEM;
	p->positions = positions;
	lines = reallocarray(p->lines, want, sizeof(*lines));
	if (!lines)
		return -ENOMEM;
	p->lines = lines;
	p->allocated = want;
	return 0;
}

struct reply_parser *reply_parser_new(const struct reply_ops *ops)
{
	struct reply_parser *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->ops = *ops;
	buffer_init(&p->bytes, REPLY_MAX);
	if (reply_grow(p, REPLY_LINES_RESERVED) < 0 ||
		buffer_reserve(&p->bytes, REPLY_BYTES_RESERVED) < 0) {
		reply_parser_free(p);
		return NULL;
	}
	return p;
}

static int reply_remember(struct reply_parser *p, int code, size_t offset)
{
	if (p->n_positions == p->allocated && reply_grow(p, p->allocated * 2) < 0)
		return -ENOMEM;
	p->positions[p->n_positions++] = (struct reply_position){code, offset};
	return 0;
}

/* Hands the reply up and begins a new one. */
static void reply_deliver(struct reply_parser *p)
{
	struct reply reply;

	for (size_t i = 0; i < p->n_positions; i++) {
		p->lines[i].code = p->positions[i].code;
		p->lines[i].text = p->bytes.data + p->positions[i].offset;
	}
	reply.lines = p->lines;
	reply.n_lines = p->n_positions;
	reply.code = p->lines[p->n_positions - 1].code;
	reply.text = p->lines[p->n_positions - 1].text;
	p->ops.reply(p->ops.userdata, &reply);

	p->n_positions = 0;
	buffer_clear(&p->bytes);
}

/* "CODE-" or "CODE ": the code, or -1. */
static int reply_code(const char *line, size_t n)
{
	int code = 0;

	if (n <= REPLY_CODE_DIGITS)
		return -1;
	for (size_t i = 0; i < REPLY_CODE_DIGITS; i++) {
		if (line[i] < '0' || line[i] > '9')
			return -1;
		code = code * 10 + (line[i] - '0');
	}
	if (line[REPLY_CODE_DIGITS] != '-' && line[REPLY_CODE_DIGITS] != ' ')
		return -1;
	return code;
}

/* "<151 messages lost>", without a '+', where asynchronous lines overran the buffer that `echo`
 * asked for (cli_copy_message() of nest/cli.c). */
static bool reply_is_lost_notice(const char *line, size_t n)
{
	static const char end[] = " messages lost>";
	size_t digits = n > 0 && line[0] == '<' ? strspn(line + 1, "0123456789") : 0;

	return digits > 0 && strcmp(line + 1 + digits, end) == 0;
}

/* The growing line is whole: `bytes` ends with its NUL, which takes the newline's place. */
static int reply_line(struct reply_parser *p, struct error *ret_error)
{
	const char *line = p->bytes.data + p->line_start;
	size_t n = p->bytes.length - p->line_start - 1;
	size_t offset;
	bool final = false;
	int code, r;

	if (memchr(line, '\0', n))
		return reply_bad(p, line, n, "a NUL in a line", ret_error);
	if (line[0] == '+' || reply_is_lost_notice(line, n)) {
		p->ops.push(p->ops.userdata, line[0] == '+' ? line + 1 : line);
		p->bytes.length = p->line_start;
		return 0;
	}
	if (line[0] == ' ') {
		if (p->n_positions == 0)
			return reply_bad(p, line, n, "a continuation of nothing", ret_error);
		code = p->positions[p->n_positions - 1].code;
		offset = p->line_start + 1;
	} else {
		code = reply_code(line, n);
		if (code < 0)
			return reply_bad(p, line, n,
				"expected a line of BIRD's control protocol, got", ret_error);
		offset = p->line_start + REPLY_CODE_DIGITS + 1;
		final = line[REPLY_CODE_DIGITS] == ' ';
	}
	r = reply_remember(p, code, offset);
	if (r < 0)
		return r;
	if (final)
		reply_deliver(p);
	p->line_start = p->bytes.length;
	return 0;
}

/* Appends a part of a line, `n` bytes, and with `ends` the NUL. 0, -E2BIG, -ENOMEM. */
static int reply_append(struct reply_parser *p, const char *data, size_t n, bool ends)
{
	int r;

	/* What a line costs beside its bytes counts as well. */
	if (p->n_positions * sizeof(*p->positions) + p->bytes.length + n >= REPLY_MAX)
		return -E2BIG;
	r = buffer_append(&p->bytes, data, n);
	return r == 0 && ends ? buffer_append(&p->bytes, "", 1) : r;
}

/* One piece of a line, up to its newline or to the end of what came. */
static int reply_piece(
	struct reply_parser *p, const char *data, size_t n, bool ends, struct error *ret_error)
{
	size_t before = p->bytes.length - p->line_start;
	int r;

	if (before + n > REPLY_LINE_MAX)
		return reply_bad(p, before ? p->bytes.data + p->line_start : data,
			before ? before : n, "a line without end", ret_error);
	r = reply_append(p, data, n, ends);
	if (r == 0 && ends)
		r = reply_line(p, ret_error);
	if (r == -E2BIG)
		return reply_bad(p, buffer_string(&p->bytes), strlen(buffer_string(&p->bytes)),
			"a reply without end, it begins with", ret_error);
	if (r == -ENOMEM) {
		p->broken = true;
		return error_set_errno(ret_error, ENOMEM, "a reply");
	}
	return r;
}

int reply_parser_feed(struct reply_parser *p, const char *data, size_t n, struct error *ret_error)
{
	if (p->broken)
		return error_set(ret_error, EBADMSG, "it was no BIRD before");
	while (n > 0) {
		const char *newline = memchr(data, '\n', n);
		size_t piece = newline ? (size_t)(newline - data) : n;
		size_t taken = piece + (newline ? 1 : 0);
		int r = reply_piece(p, data, piece, newline, ret_error);

		if (r < 0)
			return r;
		data += taken;
		n -= taken;
	}
	return 0;
}

enum reply_verdict reply_judge(int code)
{
	switch (code) {
	case 0:	 /* OK */
	case 3:	 /* reconfigured */
	case 4:	 /* reconfiguration in progress */
	case 5:	 /* reconfiguration already in progress, this one is queued */
	case 8:	 /* already disabled */
	case 9:	 /* disabled */
	case 10: /* already enabled */
	case 11: /* enabled */
		return REPLY_ACCEPTED;
	}
	return code >= 8000 && code <= 9999 ? REPLY_REFUSED : REPLY_OTHER;
}
