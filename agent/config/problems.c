/*
 * The list of problems that a person sees in one run. It only keeps lines and counts; report.c
 * gives those of meaning their form, syntax.c those of JSON. Whatever the files hold, a problem
 * stays one line that a terminal shows as it is.
 */
#include "agent/config/problems.h"

#include <stdarg.h>
#include <string.h>

#include "agent/base/cleanup.h"

void problems_init(struct problems *p)
{
	*p = (struct problems){0};
}

void problems_done(struct problems *p)
{
	for (size_t i = 0; i < p->n; i++)
		free(p->items[i].text);
	free(p->items);
	problems_init(p);
}

/* File names and JSON's own error texts may hold anything. */
static void make_one_line(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			*text = '?';
}

void problems_add(struct problems *p, enum problem_level level, const char *format, ...)
{
	_cleanup_free_ char *text = NULL;
	struct problem *grown;
	va_list ap;
	int n;

	if (level == PROBLEM_ERROR)
		p->n_errors++;
	va_start(ap, format);
	n = p->n < PROBLEMS_MAX ? vasprintf(&text, format, ap) : -1;
	va_end(ap);
	if (n < 0) {
		text = NULL;
		p->n_dropped++;
		return;
	}
	grown = reallocarray(p->items, p->n + 1, sizeof(*grown));
	if (!grown) {
		p->n_dropped++;
		return;
	}
	p->items = grown;
	make_one_line(text);
	p->items[p->n++] = (struct problem){.level = level, .text = TAKE_PTR(text)};
}
