/*
 * libFuzzer target of the file with the operators' words.
 *
 * Besides what the sanitizers see: a refusal says why; what was read is within its bounds; and what
 * is written of it reads back as the same.
 */
#include "agent/words/words.c"
#include "tests/fuzz/fuzz.h"

static void check(const struct words *w)
{
	assert(w->n <= WORDS_MAX);
	for (size_t i = 0; i < w->n; i++) {
		const struct word *word = &w->items[i];

		assert((unsigned)word->kind < WORD_N_KINDS && word->weight <= WORDS_WEIGHT_MAX);
		assert(strnlen(word->name, sizeof(word->name)) < sizeof(word->name));
		assert(strnlen(word->reason, sizeof(word->reason)) < sizeof(word->reason));
		assert(strnlen(word->who, sizeof(word->who)) < sizeof(word->who));
		assert(words_find(w, word->kind, word->name) == word);
		assert(words_cover(w, word->kind, word->name, word->name));
		assert(word->until.us >= words_next_end(w).us);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *text = fuzz_copy(data, size), *first = NULL, *second = NULL;
	struct words words = {0}, again = {0};
	struct error error = {""};
	struct word word;

	if (words_parse(&words, text, size, &error) < 0) {
		assert(error.text[0]);
		words_done(&words);
		return 0;
	}
	check(&words);
	first = words_render(&words);
	assert(first);
	assert(words_parse(&again, first, strlen(first), &error) == 0);
	second = words_render(&again);
	assert(second && strcmp(first, second) == 0);
	while (words_take_ended(&words, (struct walltime){1LL << 62}, &word))
		assert(word.until.us <= 1LL << 62);
	check(&words);
	words_done(&words);
	words_done(&again);
	return 0;
}
