/*
 * Edit distance with neighbouring letters swapped counted as one (optimal string alignment), upper
 * and lower case taken as the same letter. A third of the word may be wrong: more
 * would offer "node" for "load".
 */
#include "agent/config/nearest.h"

#include <string.h>

#define WORD_MAX 40

static char fold(char c)
{
	if (c >= 'A' && c <= 'Z')
		return (char)(c - 'A' + 'a');
	return c;
}

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
	unsigned m = a < b ? a : b;

	return m < c ? m : c;
}

static unsigned distance(const char *a, size_t n_a, const char *b, size_t n_b)
{
	unsigned rows[3][WORD_MAX + 1]; /* two rows back, the last, this one */
	unsigned change;

	for (unsigned j = 0; j <= n_b; j++)
		rows[1][j] = j;
	memset(rows[0], 0, sizeof(rows[0]));
	for (unsigned i = 1; i <= n_a; i++) {
		rows[2][0] = i;
		for (unsigned j = 1; j <= n_b; j++) {
			change = fold(a[i - 1]) != fold(b[j - 1]);
			rows[2][j] =
				min3(rows[1][j] + 1, rows[2][j - 1] + 1, rows[1][j - 1] + change);
			if (i > 1 && j > 1 && fold(a[i - 1]) == fold(b[j - 2]) &&
				fold(a[i - 2]) == fold(b[j - 1]) && rows[0][j - 2] + 1 < rows[2][j])
				rows[2][j] = rows[0][j - 2] + 1;
		}
		memcpy(rows[0], rows[1], sizeof(rows[0]));
		memcpy(rows[1], rows[2], sizeof(rows[1]));
	}
	return rows[1][n_b];
}

void nearest_init(struct nearest *n, const char *wanted)
{
	*n = (struct nearest){.wanted = wanted};
}

void nearest_offer(struct nearest *n, const char *word)
{
	size_t n_wanted = strnlen(n->wanted, WORD_MAX + 1), n_word = strlen(word);
	size_t longer = n_wanted > n_word ? n_wanted : n_word;
	unsigned d;

	if (n_wanted > WORD_MAX || n_word > WORD_MAX)
		return;
	d = distance(n->wanted, n_wanted, word, n_word);
	if (d > (longer + 1) / 3 && !(d == 1 && longer > 1))
		return;
	if (!n->best || d < n->distance) {
		n->best = word;
		n->distance = d;
	}
}
