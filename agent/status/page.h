#ifndef REDSHANK_STATUS_PAGE_H
#define REDSHANK_STATUS_PAGE_H
/*
 * The page of GET /: HTML with its style and script, compiled into the program. The same bytes for
 * everyone, for as long as the agent lives: what it shows it asks from /v1/status and /v1/events.
 */
#include <microhttpd.h>
#include <stdbool.h>

/* Whether a request with this If-None-Match (NULL: none) has the page already. */
bool page_is_known(const char *if_none_match);

/* The page, or with `known` what goes with a 304. The caller's reference. NULL without memory. */
struct MHD_Response *page_response(bool known);

#endif
