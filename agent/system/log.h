#ifndef REDSHANK_SYSTEM_LOG_H
#define REDSHANK_SYSTEM_LOG_H
/*
 * The log: the journal when stderr is the journal's, else lines on stderr. One line an event,
 * object first: "service dns: up -> down (...)". Levels as syslog's. Never blocks, never fails:
 * what the reader has no room for is dropped, and the next line that gets through is followed by
 * the number of lines lost.
 *
 * On stderr a line is "2026-11-30T03:12:44.120Z redshankd: TEXT", in UTC, without the level. In the
 * text control characters and bytes that are not UTF-8 are shown as \xNN; it is cut at
 * LOG_TEXT_MAX.
 */
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <syslog.h>

#define LOG_TEXT_MAX 1024
#define LOG_FIELDS_MAX 8192

/*
 * What is less urgent than `max_level` (LOG_INFO, LOG_DEBUG) is not logged; before this call, what
 * is below LOG_INFO. to_stderr: lines on stderr even where it is the journal's. Also ignores
 * SIGPIPE, for whoever reads stderr may go away.
 */
void log_init(int max_level, bool to_stderr);
/* Keeps errno. */
void log_line(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The text of a line as it will be shown: printable, cut at LOG_TEXT_MAX. Returns buf. */
const char *log_format(char buf[LOG_TEXT_MAX], const char *format, va_list ap)
	__attribute__((format(printf, 2, 0)));

/* A field of the journal, by its name there. A value that is NULL or "" is left out. */
struct log_field {
	const char *name;
	const char *value;
};

/* `text` as it is, for it was made printable, with fields where the log is the journal's: those
 * for which LOG_FIELDS_MAX has room. For agent/events. Keeps errno. */
void log_entry(int level, const char *text, const struct log_field *fields, size_t n);

#define log_error(...) log_line(LOG_ERR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_WARNING, __VA_ARGS__)
#define log_notice(...) log_line(LOG_NOTICE, __VA_ARGS__)
#define log_info(...) log_line(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_DEBUG, __VA_ARGS__)

#endif
