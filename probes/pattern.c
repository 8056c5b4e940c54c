/*
 * Extended regular expressions as a position automaton (Glushkov 1961; Berry and Sethi 1986).
 *
 * Why not regexec(3): glibc builds its automaton's states as it goes, without a bound. An innocent
 * "(a|b)*a(a|b){20}c" over 4 KiB takes ten minutes and gigabytes, and any failing search is
 * quadratic, inside a loop that has milliseconds. Here a position is one character of the
 * expression; a set of positions is four words; each byte of the text costs one step over the set,
 * and nothing is allocated while searching.
 *
 * An expression is parsed into fragments: which positions may come first, which last, whether it
 * may be empty; `follow` says what may come after each position. A repetition is its operand parsed
 * again, so that a count costs as many positions. Anchors are positions that match no byte, but
 * the place between two.
 */
#include "probes/pattern.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/cleanup.h"

#define WORDS 4
#define DEPTH_MAX 32
#define REPEAT_MAX 255
#define NO_LIMIT 256

enum symbol { /* behind the 256 bytes */
	SYMBOL_LINE_START = 256,
	SYMBOL_LINE_END,
	SYMBOL_COUNT,
};

struct set {
	uint64_t words[WORDS];
};

struct pattern {
	struct set follow[PATTERN_POSITIONS_MAX];
	struct set matching[SYMBOL_COUNT]; /* the positions that this byte, or place, matches */
	struct set first, last;
	bool nullable;
};

struct fragment {
	struct set first, last;
	bool nullable;
};

struct parser {
	struct pattern *pattern;
	const char *at;
	unsigned n_positions, depth;
	const char *expected; /* set by the first mistake */
};

static void set_add(struct set *s, unsigned i)
{
	s->words[i / 64] |= UINT64_C(1) << (i % 64);
}

static void set_unite(struct set *s, const struct set *other)
{
	for (unsigned w = 0; w < WORDS; w++)
		s->words[w] |= other->words[w];
}

static bool set_meets(const struct set *a, const struct set *b)
{
	uint64_t both = 0;

	for (unsigned w = 0; w < WORDS; w++)
		both |= a->words[w] & b->words[w];
	return both != 0;
}

/* Adds to `follow` of each position in `of`. */
static void unite_follow(struct pattern *p, const struct set *of, const struct set *next)
{
	for (unsigned w = 0; w < WORDS; w++)
		for (uint64_t rest = of->words[w]; rest; rest &= rest - 1)
			set_unite(&p->follow[w * 64 + (unsigned)__builtin_ctzll(rest)], next);
}

static struct fragment wrong(struct parser *s, const char *expected)
{
	if (!s->expected)
		s->expected = expected;
	return (struct fragment){.nullable = true};
}

/* A new position, or 0 with `expected` set. */
static unsigned new_position(struct parser *s, struct fragment *ret)
{
	unsigned i = s->n_positions;

	if (i == PATTERN_POSITIONS_MAX) {
		*ret = wrong(s, "an expression of at most 255 characters, with its repetitions "
				"written out");
		return 0;
	}
	s->n_positions++;
	*ret = (struct fragment){.nullable = false};
	set_add(&ret->first, i);
	ret->last = ret->first;
	return i;
}

static struct fragment one_symbol(struct parser *s, unsigned symbol)
{
	struct fragment f;
	unsigned i = new_position(s, &f);

	set_add(&s->pattern->matching[symbol], i);
	return f;
}

static struct fragment one_of(struct parser *s, const bool members[256])
{
	struct fragment f;
	unsigned i = new_position(s, &f);

	for (unsigned c = 0; c < 256; c++)
		if (members[c])
			set_add(&s->pattern->matching[c], i);
	return f;
}

static struct fragment concatenate(
	struct parser *s, const struct fragment *a, const struct fragment *b)
{
	struct fragment f = {
		.first = a->first, .last = b->last, .nullable = a->nullable && b->nullable};

	unite_follow(s->pattern, &a->last, &b->first);
	if (a->nullable)
		set_unite(&f.first, &b->first);
	if (b->nullable)
		set_unite(&f.last, &a->last);
	return f;
}

/* "[:digit:]", behind its "[:". */
static bool add_class(struct parser *s, bool members[256])
{
	static const struct {
		const char *name;
		int (*is)(int);
	} classes[] = {
		{"alnum:]", isalnum},
		{"alpha:]", isalpha},
		{"blank:]", isblank},
		{"cntrl:]", iscntrl},
		{"digit:]", isdigit},
		{"graph:]", isgraph},
		{"lower:]", islower},
		{"print:]", isprint},
		{"punct:]", ispunct},
		{"space:]", isspace},
		{"upper:]", isupper},
		{"xdigit:]", isxdigit},
	};

	for (size_t i = 0; i < ELEMENTSOF(classes); i++) {
		size_t n = strlen(classes[i].name);

		if (strncmp(s->at, classes[i].name, n) != 0)
			continue;
		for (int c = 0; c < 128; c++)
			if (classes[i].is(c))
				members[c] = true;
		s->at += n;
		return true;
	}
	(void)wrong(s, "a class that POSIX knows, such as [[:digit:]]");
	return false;
}

/* One element of a bracket: a class, a range, or a byte. */
static bool add_element(struct parser *s, bool members[256])
{
	unsigned char low = (unsigned char)*s->at, high = low;

	if (low == '[' && s->at[1] == ':') {
		s->at += 2;
		return add_class(s, members);
	}
	if (low == '[' && (s->at[1] == '=' || s->at[1] == '.')) {
		(void)wrong(s, "a bracket without [= =] and [. .]");
		return false;
	}
	s->at++;
	if (s->at[0] == '-' && s->at[1] != ']' && s->at[1] != '\0') {
		high = (unsigned char)s->at[1];
		s->at += 2;
		if (high < low || high == '[') {
			(void)wrong(s, "a range from a lower to a higher character, such as [0-9]");
			return false;
		}
	}
	for (unsigned c = low; c <= high; c++)
		members[c] = true;
	return true;
}

static struct fragment parse_bracket(struct parser *s)
{
	bool members[256] = {false}, negated = *s->at == '^';
	const char *start;

	if (negated)
		s->at++;
	start = s->at;
	while (*s->at && (*s->at != ']' || s->at == start))
		if (!add_element(s, members))
			return (struct fragment){.nullable = true};
	if (*s->at != ']')
		return wrong(s, "a ] that ends the [");
	s->at++;
	for (unsigned c = 0; negated && c < 256; c++)
		members[c] = !members[c] && c != '\n';
	return one_of(s, members);
}

static struct fragment parse_escape(struct parser *s)
{
	unsigned char c = (unsigned char)*s->at;

	if (c == '\0' || !ispunct(c) || strchr("<>`'", c))
		return wrong(
			s, "a \\ before a special character only (no back-references, no \\w)");
	s->at++;
	return one_symbol(s, c);
}

static struct fragment parse_alternatives(struct parser *s);

static struct fragment parse_group(struct parser *s)
{
	struct fragment f;

	if (s->depth == DEPTH_MAX)
		return wrong(s, "at most 32 parentheses in each other");
	s->depth++;
	f = parse_alternatives(s);
	s->depth--;
	if (s->expected)
		return f;
	if (*s->at != ')')
		return wrong(s, "a ) that ends the (");
	s->at++;
	return f;
}

static struct fragment parse_atom(struct parser *s)
{
	bool any[256];
	char c = *s->at++;

	switch (c) {
	case '(':
		return parse_group(s);
	case '[':
		return parse_bracket(s);
	case '\\':
		return parse_escape(s);
	case '.':
		memset(any, true, sizeof(any));
		any['\n'] = false;
		return one_of(s, any);
	case '^':
		return one_symbol(s, SYMBOL_LINE_START);
	case '$':
		return one_symbol(s, SYMBOL_LINE_END);
	case '*':
	case '+':
	case '?':
	case '{':
		return wrong(s, "something before *, +, ? and { that they repeat");
	default:
		return one_symbol(s, (unsigned char)c);
	}
}

static bool parse_number(struct parser *s, unsigned *ret)
{
	unsigned n = 0;

	if (!isdigit((unsigned char)*s->at))
		return false;
	while (isdigit((unsigned char)*s->at) && n <= REPEAT_MAX)
		n = n * 10 + (unsigned)(*s->at++ - '0');
	*ret = n;
	return n <= REPEAT_MAX;
}

/* How often the atom before may stand. False: once, there is nothing behind it. */
static bool parse_repetition(struct parser *s, unsigned *ret_minimum, unsigned *ret_maximum)
{
	unsigned minimum = 0, maximum = NO_LIMIT;

	switch (*s->at) {
	case '*':
		break;
	case '+':
		minimum = 1;
		break;
	case '?':
		maximum = 1;
		break;
	case '{':
		s->at++;
		if (!parse_number(s, &minimum))
			goto bad;
		maximum = minimum;
		if (*s->at == ',') {
			s->at++;
			maximum = NO_LIMIT;
			if (*s->at != '}' && !parse_number(s, &maximum))
				goto bad;
		}
		if (*s->at != '}' || maximum < minimum || maximum == 0)
			goto bad;
		break;
	default:
		return false;
	}
	s->at++;
	*ret_minimum = minimum;
	*ret_maximum = maximum;
	return true;
bad:
	(void)wrong(s, "a repetition such as {3}, {1,} or {1,3}, up to 255");
	return false;
}

/* An atom and its repetition. `f` is the first copy of the atom, which starts at `start`. */
static struct fragment repeat(
	struct parser *s, const char *start, struct fragment f, unsigned minimum, unsigned maximum)
{
	struct fragment whole = {.nullable = true};
	unsigned copies = maximum != NO_LIMIT ? maximum : minimum > 0 ? minimum : 1;
	const char *end = s->at;

	for (unsigned i = 0; i < copies && !s->expected; i++) {
		if (i > 0) {
			s->at = start;
			f = parse_atom(s);
		}
		if (maximum == NO_LIMIT && i == copies - 1)
			unite_follow(s->pattern, &f.last, &f.first);
		if (i >= minimum)
			f.nullable = true;
		whole = concatenate(s, &whole, &f);
	}
	s->at = end;
	return whole;
}

static struct fragment parse_piece(struct parser *s)
{
	const char *start = s->at;
	struct fragment f = parse_atom(s);
	unsigned minimum, maximum;

	if (s->expected || !parse_repetition(s, &minimum, &maximum))
		return f;
	if (*start == '^' || *start == '$')
		return wrong(s, "no repetition behind ^ and $");
	if (*s->at && strchr("*+?{", *s->at))
		return wrong(s, "one repetition, not two in a row");
	return repeat(s, start, f, minimum, maximum);
}

static struct fragment parse_branch(struct parser *s)
{
	struct fragment whole = {.nullable = true}, piece;
	const char *start = s->at;

	while (!s->expected && *s->at && *s->at != '|' && *s->at != ')') {
		piece = parse_piece(s);
		whole = concatenate(s, &whole, &piece);
	}
	if (s->at == start)
		return wrong(s, "something on both sides of | and between ( and )");
	return whole;
}

static struct fragment parse_alternatives(struct parser *s)
{
	struct fragment whole = parse_branch(s), branch;

	while (!s->expected && *s->at == '|') {
		s->at++;
		branch = parse_branch(s);
		set_unite(&whole.first, &branch.first);
		set_unite(&whole.last, &branch.last);
		whole.nullable = whole.nullable || branch.nullable;
	}
	return whole;
}

static int parse(const char *text, struct pattern **ret, const char **ret_expected)
{
	_cleanup_free_ struct pattern *p = calloc(1, sizeof(*p));
	struct parser s = {.pattern = p, .at = text};
	struct fragment whole;

	if (!p)
		return -ENOMEM;
	whole = parse_alternatives(&s);
	if (!s.expected && *s.at == ')')
		(void)wrong(&s, "a ( before the )");
	if (s.expected) {
		*ret_expected = s.expected;
		return -EINVAL;
	}
	assert(*s.at == '\0');
	p->first = whole.first;
	p->last = whole.last;
	p->nullable = whole.nullable;
	*ret = TAKE_PTR(p);
	return 0;
}

const char *pattern_form(const char *text)
{
	struct pattern *p = NULL;
	const char *expected = NULL;

	if (parse(text, &p, &expected) == -ENOMEM)
		return "a pattern that fits into this machine's memory";
	pattern_free(p);
	return expected;
}

int pattern_new(const char *text, struct pattern **ret)
{
	const char *expected;

	return parse(text, ret, &expected);
}

void pattern_free(struct pattern *p)
{
	free(p);
}

/* What may come next, of that what matches. */
static struct set step(
	const struct pattern *p, const struct set *active, const struct set *matching)
{
	struct set next = p->first;

	for (unsigned w = 0; w < WORDS; w++)
		for (uint64_t rest = active->words[w]; rest; rest &= rest - 1)
			set_unite(&next, &p->follow[w * 64 + (unsigned)__builtin_ctzll(rest)]);
	for (unsigned w = 0; w < WORDS; w++)
		next.words[w] &= matching->words[w];
	return next;
}

/* Passes the anchors that hold between two bytes, any number of them; the others stay. */
static void pass_anchors(
	const struct pattern *p, struct set *active, bool line_starts, bool line_ends)
{
	struct set matching = {.words = {0}}, before, next;

	if (line_starts)
		set_unite(&matching, &p->matching[SYMBOL_LINE_START]);
	if (line_ends)
		set_unite(&matching, &p->matching[SYMBOL_LINE_END]);
	if (!line_starts && !line_ends)
		return;
	do {
		before = *active;
		next = step(p, active, &matching);
		set_unite(active, &next);
	} while (memcmp(&before, active, sizeof(before)) != 0);
}

bool pattern_search(const struct pattern *p, const char *data, size_t n)
{
	struct set active = {.words = {0}};

	if (p->nullable)
		return true;
	for (size_t i = 0; i <= n; i++) {
		pass_anchors(p, &active, i == 0 || data[i - 1] == '\n', i == n || data[i] == '\n');
		if (set_meets(&active, &p->last))
			return true;
		if (i == n)
			return false;
		active = step(p, &active, &p->matching[(unsigned char)data[i]]);
		if (set_meets(&active, &p->last))
			return true;
	}
	return false;
}
