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

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "agent/base/buffer.h"

#define REPLY_CODE_DIGITS 4
#define REPLY_QUOTED_MAX 80 /* bytes of a bad line that the error shows */

struct reply_position {
	int code;
	size_t offset; /* of the text in `bytes` */
};

struct reply_parser {
	struct reply_ops ops;
	struct buffer bytes;
	size_t line_start; /* in `bytes`: where the growing line begins */
	struct reply_position *positions;
	size_t n_positions, allocated;
	bool broken;
};

struct reply_parser *reply_parser_new(const struct reply_ops *ops)
{
	struct reply_parser *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->ops = *ops;
	buffer_init(&p->bytes, REPLY_MAX);
	return p;
}

void reply_parser_free(struct reply_parser *p)
{
	if (!p)
		return;
	buffer_done(&p->bytes);
	free(p->positions);
	free(p);
}

/* What came, so that it can be read in a log: printable ASCII, the rest as \xNN. */
static int reply_bad(struct reply_parser *p, const char *line, size_t n, const char *why,
	struct error *ret_error)
{
	char quoted[4 * REPLY_QUOTED_MAX + 1];
	size_t used = 0;

	p->broken = true;
	for (size_t i = 0; i < n && i < REPLY_QUOTED_MAX; i++) {
		unsigned char c = (unsigned char)line[i];

		if (c >= ' ' && c < 0x7f && c != '\\')
			quoted[used++] = (char)c;
		else
			used += (size_t)snprintf(
				quoted + used, sizeof(quoted) - used, "\\x%02x", c);
	}
	quoted[used] = '\0';
	return error_set(
		ret_error, EBADMSG, "%s: \"%s%s\"", why, quoted, n > REPLY_QUOTED_MAX ? "..." : "");
}

static int reply_remember(struct reply_parser *p, int code, size_t offset)
{
	if (p->n_positions == p->allocated) {
		size_t want = p->allocated ? p->allocated * 2 : 16;
		struct reply_position *grown = realloc(p->positions, want * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		p->positions = grown;
		p->allocated = want;
	}
	p->positions[p->n_positions++] = (struct reply_position){code, offset};
	return 0;
}

/* Hands the reply up and begins a new one. */
static int reply_deliver(struct reply_parser *p)
{
	_cleanup_free_ struct reply_line *lines = NULL;
	struct reply reply;

	lines = calloc(p->n_positions, sizeof(*lines));
	if (!lines)
		return -ENOMEM;
	for (size_t i = 0; i < p->n_positions; i++) {
		lines[i].code = p->positions[i].code;
		lines[i].text = p->bytes.data + p->positions[i].offset;
	}
	reply.lines = lines;
	reply.n_lines = p->n_positions;
	reply.code = lines[p->n_positions - 1].code;
	reply.text = lines[p->n_positions - 1].text;
	p->ops.reply(p->ops.userdata, &reply);

	p->n_positions = 0;
	buffer_clear(&p->bytes);
	return 0;
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
	if (line[0] == '+') {
		p->ops.push(p->ops.userdata, line + 1);
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
	if (final) {
		r = reply_deliver(p);
		if (r < 0)
			return r;
	}
	p->line_start = p->bytes.length;
	return 0;
}

int reply_parser_feed(struct reply_parser *p, const char *data, size_t n, struct error *ret_error)
{
	int r;

	if (p->broken)
		return error_set(ret_error, EBADMSG, "the connection already broke the protocol");
	while (n > 0) {
		const char *newline = memchr(data, '\n', n);
		size_t piece = newline ? (size_t)(newline - data) : n;

		if (p->bytes.length - p->line_start + piece > REPLY_LINE_MAX)
			return reply_bad(p,
				p->bytes.length > p->line_start ? p->bytes.data + p->line_start
								: data,
				p->bytes.length > p->line_start ? p->bytes.length - p->line_start
								: piece,
				"a line that does not end", ret_error);
		r = buffer_append(&p->bytes, data, piece);
		if (r == 0 && newline)
			r = buffer_append(&p->bytes, "", 1);
		if (r == 0 && p->n_positions * sizeof(*p->positions) > REPLY_MAX - p->bytes.length)
			r = -E2BIG;
		if (r == -E2BIG)
			return reply_bad(p, p->bytes.data, strlen(p->bytes.data),
				"a reply that does not end, it begins with", ret_error);
		if (r == 0 && newline)
			r = reply_line(p, ret_error);
		if (r < 0) {
			p->broken = true;
			return r == -ENOMEM ? error_set_errno(ret_error, ENOMEM, "reply") : r;
		}
		data += piece + (newline ? 1 : 0);
		n -= piece + (newline ? 1 : 0);
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
