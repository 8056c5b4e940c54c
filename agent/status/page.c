/*
 * The page's bytes and headers.
 *
 * Names, reasons and BIRD's words on the page are other people's text. The script puts them in as
 * text only, and the policy is the second wall: no script, style, picture, frame or connection but
 * the page's own (style and script by the hash of their bytes), and no string may become markup
 * (trusted types). The page needs no answer of any other origin, and shows itself in nobody's
 * frame.
 *
 * `no-cache` lets a browser keep the page and ask each time whether it is still the one: a 304, as
 * long as it is the same agent.
 */
#include "agent/status/page.h"

#include <string.h>

#include "page_data.h"

static const struct page_header {
	const char *name, *value;
} page_headers[] = {
	{MHD_HTTP_HEADER_ETAG, PAGE_ETAG},
	{MHD_HTTP_HEADER_CACHE_CONTROL, "no-cache"},
	{MHD_HTTP_HEADER_CONNECTION, "close"},
	{MHD_HTTP_HEADER_CONTENT_TYPE, "text/html; charset=utf-8"},
	{"Content-Security-Policy",
		"default-src 'none'; script-src '" PAGE_SCRIPT_HASH "'; style-src '" PAGE_STYLE_HASH
		"'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
		"frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"},
	{"X-Content-Type-Options", "nosniff"},
	{"X-Frame-Options", "DENY"},
	{"Referrer-Policy", "no-referrer"},
	{"Cross-Origin-Opener-Policy", "same-origin"},
	{"Cross-Origin-Resource-Policy", "same-origin"},
};

bool page_is_known(const char *if_none_match)
{
	/* A list of tags, weak ones by a proxy among them, or "*". Ours holds no other's. */
	return if_none_match &&
	       (strcmp(if_none_match, "*") == 0 || strstr(if_none_match, PAGE_ETAG) != NULL);
}

struct MHD_Response *page_response(bool known)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(
		known ? 0 : sizeof(page_html), (void *)page_html, MHD_RESPMEM_PERSISTENT);

	if (!response)
		return NULL;
	for (size_t i = 0; i < sizeof(page_headers) / sizeof(page_headers[0]); i++)
		if (MHD_add_response_header(
			    response, page_headers[i].name, page_headers[i].value) != MHD_YES) {
			MHD_destroy_response(response);
			return NULL;
		}
	return response;
}
