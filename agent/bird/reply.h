#ifndef REDSHANK_BIRD_REPLY_H
#define REDSHANK_BIRD_REPLY_H
/*
 * Incremental parser of what BIRD says on its control socket (doc/reply_codes and nest/cli.c of
 * BIRD): lines "CODE-text" and " text" continue, "CODE text" ends a reply, "+text" is asynchronous
 * and may stand between any two lines. Bytes come in pieces of any size. Whatever is longer than
 * its bound, or no reply at all, is an error of the connection (-EBADMSG), never a crash.
 */
#include <stddef.h>

#include "agent/base/buffer.h"
#include "agent/base/error.h"

#define REPLY_LINE_MAX 4096	     /* bytes of one line */
#define REPLY_MAX (8U * 1024 * 1024) /* bytes of one reply: 5,000 protocols are about 500 kB */

struct reply_line {
	int code;	  /* of this line; a line that starts with a blank has its predecessor's */
	const char *text; /* behind "CODE-" or the blank; into the reply's buffer */
};

struct reply {
	int code;			/* of the final line */
	const char *text;		/* of the final line */
	const struct reply_line *lines; /* all lines, the final one last */
	size_t n_lines;
};

struct reply_parser;

struct reply_ops {
	/* One whole reply; it is valid during the call. The greeting (0001) is one, too. */
	void (*reply)(void *userdata, const struct reply *reply);
	/* One asynchronous line, without its '+'. */
	void (*push)(void *userdata, const char *text);
	void *userdata;
};

struct reply_parser *reply_parser_new(const struct reply_ops *ops); /* NULL: no memory */
void reply_parser_free(struct reply_parser *p);
/* 0; -EBADMSG with the text when it is not a reply or too long; -ENOMEM. */
int reply_parser_feed(struct reply_parser *p, const char *data, size_t n, struct error *ret_error);

/* What a code says of a `configure` or of a protocol command. Codes decide, never words. */
enum reply_verdict {
	REPLY_ACCEPTED, /* 0003, 0004, 0005: the configuration was taken; 0000, 0008-0011 of
			   protocols */
	REPLY_REFUSED,	/* 8xxx, 9xxx */
	REPLY_OTHER,	/* anything else: 0006 shutting down, ... */
};
enum reply_verdict reply_judge(int code);

#endif
