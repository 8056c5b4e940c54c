#ifndef REDSHANK_TESTS_LOADED_H
#define REDSHANK_TESTS_LOADED_H
/* A configuration from text, by the loader as it is: what tests of the agent's modules begin with.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/config/config.h"

/* Owned by the caller. The test fails where the text is refused. */
static inline struct config *loaded_config(const char *text)
{
	char path[] = "/tmp/redshank-config-XXXXXX";
	int fd = mkstemp(path);
	struct config *config = NULL;
	struct problems problems;
	FILE *f;

	ck_assert_int_ge(fd, 0);
	f = fdopen(fd, "w");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_ge(fputs(text, f), 0);
	ck_assert_int_eq(fclose(f), 0);
	problems_init(&problems);
	ck_assert_msg(config_load(path, probe_types, &config, &problems) == 0, "%s",
		problems.n > 0 ? problems.items[0].text : "");
	problems_done(&problems);
	ck_assert_int_eq(unlink(path), 0);
	return config;
}

#endif
