#ifndef REDSHANK_CONFIG_NEAREST_H
#define REDSHANK_CONFIG_NEAREST_H
/* The known word that a misspelt one was meant to be. */

struct nearest {
	const char *wanted;
	const char *best; /* NULL: none is near enough */
	unsigned distance;
};

void nearest_init(struct nearest *n, const char *wanted);
/* Offers one known word, which must outlive n. Of equally near ones the first stays. */
void nearest_offer(struct nearest *n, const char *word);

#endif
