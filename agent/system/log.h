#ifndef REDSHANK_SYSTEM_LOG_H
#define REDSHANK_SYSTEM_LOG_H
/*
 * The log: the journal when stderr is the journal's, else lines on stderr. One line an event,
 * object first: "service dns: up -> down (...)". Levels as syslog's. Never blocks, never fails.
 */
#include <syslog.h>

void log_init(int max_level); /* LOG_INFO, LOG_DEBUG */
void log_line(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_line(LOG_ERR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_WARNING, __VA_ARGS__)
#define log_notice(...) log_line(LOG_NOTICE, __VA_ARGS__)
#define log_info(...) log_line(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_DEBUG, __VA_ARGS__)

#endif
