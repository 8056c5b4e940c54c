#ifndef REDSHANK_WORDS_WORDS_H
#define REDSHANK_WORDS_WORDS_H
/*
 * What operators have said: which services, prefixes or the whole server are drained, announced by
 * force or frozen, which prefixes are shed or not to be, and what weight a prefix has, by whom, why
 * and until when. Kept in a file, so
 * that it outlives the agent and the host. It ends by the clock on the wall, since that is what
 * people agree on, also over a reboot.
 *
 * A word is about one name. It covers a prefix when that name is the prefix's own, its service's,
 * or "" for the whole server. Names that are configured no more keep their word: they may come
 * back.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/base/error.h"
#include "agent/base/monotime.h"

#define WORDS_MAX 256	   /* at one time */
#define WORDS_NAME_MAX 64  /* bytes of a service's or a prefix's name */
#define WORDS_TEXT_MAX 200 /* bytes of a reason and of who gave it */

#define WORDS_WEIGHT_MAX 65535

#define WORDS_FOREVER ((struct walltime){INT64_MAX}) /* until it is taken back */

enum word_kind {
	WORD_DRAIN,
	WORD_WEIGHT,   /* of one prefix */
	WORD_ANNOUNCE, /* by force: of a prefix or a service, always with an end */
	WORD_FREEZE,   /* of the whole server */
	WORD_SHED,     /* of one prefix: to neighbours that promise the room */
	WORD_UNSHED,   /* of one prefix: back at once, and not shed */
};
#define WORD_N_KINDS (WORD_UNSHED + 1)

struct word {
	enum word_kind kind;
	uint32_t weight;		 /* of a WORD_WEIGHT, 0 to 65,535 */
	char name[WORDS_NAME_MAX + 1];	 /* "": the whole server */
	char reason[WORDS_TEXT_MAX + 1]; /* "": none was given */
	char who[WORDS_TEXT_MAX + 1];
	struct walltime since, until;
};

struct words {
	char *path; /* of the file, owned */
	struct word *items; /* by kind and name */
	size_t n;
};

/*
 * Reads the file at `path`; one that is not there holds nothing. A file that cannot be understood
 * is renamed to PATH.bad, so that nothing overwrites it. Negative errno with a text that says what
 * became of it; *w is usable and empty then. Where words_is_own_trouble() the file lies as it was,
 * and *w is not usable: another start may read it.
 */
int words_load(struct words *w, const char *path, struct error *ret_error);
bool words_is_own_trouble(int r); /* no memory, no descriptors: that says nothing of the file */
void words_done(struct words *w);

/*
 * Writes the file: dot-file, fsync, rename, fsync of the folder, which is made where it is missing.
 * 0 or negative errno with the text; the old file is untouched then.
 */
int words_save(const struct words *w, struct error *ret_error);

/* The same in two steps, the second of which needs no words: the file's text (heap; NULL without
 * memory), and its way to the disk. */
char *words_render(const struct words *w);
int words_store(const char *path, const char *text, struct error *ret_error);

/* Says it; a word of the same kind about the same name is replaced. 0, -ENOSPC past WORDS_MAX,
 * -ENOMEM. */
int words_put(struct words *w, const struct word *word);
/* Takes back the word about exactly this name; *ret is what it was. False where there is none. */
bool words_take(struct words *w, enum word_kind kind, const char *name, struct word *ret);
/* Takes one word that has ended by `now`; false when there is none left. */
bool words_take_ended(struct words *w, struct walltime now, struct word *ret);

/* The first end that is to come, or WORDS_FOREVER. */
struct walltime words_next_end(const struct words *w);
/* The word of that kind that covers a prefix of a service the longest; NULL: none does. Borrowed
 * until the next change. */
const struct word *words_cover(
	const struct words *w, enum word_kind kind, const char *service, const char *prefix);
const struct word *words_find(const struct words *w, enum word_kind kind, const char *name);

static inline bool word_is_forever(const struct word *word)
{
	return word->until.us == INT64_MAX;
}

#endif
