/*
 * libFuzzer target of the http check's own part: a redirect's address, and the judgement of an
 * answer whose body comes in pieces. libcurl reads HTTP; what is ours is where it may go and what
 * it says. The first byte chooses; the parts lie between bytes 0x1e.
 *
 * Besides what the sanitizers see: a redirect leads to the same scheme, host and port; the verdict
 * is the same whole and in pieces, and what a plain search of the whole body says; a reason is
 * there for what is bad.
 */
#include "probes/http.c"
#include "tests/fuzz/fuzz.h"

static struct probe_report reported;
static unsigned n_reports;

static void on_report(struct probe *p, const struct probe_report *report)
{
	reported = *report;
	n_reports++;
	fuzz_assert_printable(report->reason, false);
	assert(report->outcome == CHECK_OUTCOME_GOOD || report->reason[0]);
}

/* --- where it may go --- */

static void check_same(const char *url, const char *to, CURLUPart part)
{
	CURLU *a = curl_url(), *b = curl_url();
	char *x = NULL, *y = NULL;

	assert(a && b);
	assert(curl_url_set(a, CURLUPART_URL, url, 0) == CURLUE_OK);
	assert(curl_url_set(b, CURLUPART_URL, to, 0) == CURLUE_OK);
	assert(curl_url_get(a, part, &x, CURLU_DEFAULT_PORT) == CURLUE_OK);
	assert(curl_url_get(b, part, &y, CURLU_DEFAULT_PORT) == CURLUE_OK);
	assert(strcasecmp(x, y) == 0);
	curl_free(x);
	curl_free(y);
	curl_url_cleanup(a);
	curl_url_cleanup(b);
}

static void redirect(const char *location)
{
	static const char *const from[] = {"http://192.0.2.80/healthz",
		"https://www.example.net:8443/a/b?c", "http://[2001:db8::80]/"};

	for (size_t i = 0; i < ELEMENTSOF(from); i++) {
		_cleanup_free_ char *to = NULL;

		if (http_redirect(from[i], location, &to) < 0)
			continue;
		check_same(from[i], to, CURLUPART_SCHEME);
		check_same(from[i], to, CURLUPART_HOST);
		check_same(from[i], to, CURLUPART_PORT);
	}
}

/* As the table of keys lets it pass, before anything is made of it. */
static bool may_be(const char *name, const char *text)
{
	for (const struct schema_key *key = http_schema.keys; key->name; key++)
		if (strcmp(key->name, name) == 0)
			return !key->form || !key->form(text);
	abort();
}

static void target(const char *url, const char *host)
{
	struct http_settings s = {.url = (char *)url,
		.host = host[0] ? (char *)host : NULL,
		.method = (char *)"GET",
		.body_limit = 64};
	struct http_target t = {0};
	struct error error = {""};
	int r;

	if (!may_be("url", url) || (host[0] && !may_be("host", host)))
		return;
	r = http_target_init(&t, &s, &error);
	if (r < 0) {
		assert(r == -EINVAL && error.text[0]);
		return;
	}
	assert(t.url && t.name && t.peer);
	http_target_done(&t);
}

/* --- what it says --- */

static enum check_outcome judged(
	const struct http_settings *s, long status, char *body, size_t n, size_t piece)
{
	size_t size = s->expect.body_regex ? HTTP_REGEX_BYTES : SHOWN_BYTES;
	struct http *h = calloc(1, sizeof(*h) + size);
	struct probe p = {.type = &probe_type_http, .settings = s, .state = h, .report = on_report};
	bool stopped = false;

	assert(h);
	h->start_size = size;
	h->status = status;
	if (s->expect.body_regex && pattern_new(s->expect.body_regex, &h->pattern) < 0)
		h->pattern = NULL;
	while (n > 0 && !stopped) {
		size_t now = piece < n ? piece : n;
		/* As long as the piece is, so that a step behind it is seen. */
		_cleanup_free_ char *data = malloc(now);

		assert(data);
		memcpy(data, body, now);
		stopped = on_body(data, 1, now, &p) != now;
		body += now;
		n -= now;
	}
	n_reports = 0;
	judge(&p);
	assert(n_reports == 1);
	pattern_free(h->pattern);
	free(h);
	return reported.outcome;
}

static void answer(long status, size_t piece, char *wanted, char *regex, const char *body)
{
	struct http_settings s = {.body_limit = 1 + (int64_t)piece * 7};
	size_t n = strlen(body), read = n < (size_t)s.body_limit ? n : (size_t)s.body_limit;
	enum check_outcome whole;
	bool good;

	s.expect.status = (struct schema_integers){.items = (int64_t[]){200, 204}, .n = 2};
	s.expect.body = wanted[0] && strlen(wanted) < HTTP_EXPECT_MAX ? wanted : NULL;
	s.expect.body_regex = regex[0] && !pattern_form(regex) ? regex : NULL;
	whole = judged(&s, status, (char *)body, n, n + 1);
	assert(judged(&s, status, (char *)body, n, piece + 1) == whole);
	good = (status == 200 || status == 204) &&
	       (!s.expect.body || memmem(body, read, s.expect.body, strlen(s.expect.body)) != NULL);
	assert(s.expect.body_regex || (whole == CHECK_OUTCOME_GOOD) == good);
	assert(good || whole == CHECK_OUTCOME_BAD);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *a = NULL, *b = NULL, *c = NULL;
	uint8_t which, piece;

	if (size < 2)
		return 0;
	which = data[0];
	piece = data[1];
	data += 2;
	size -= 2;
	a = fuzz_next(&data, &size);
	b = fuzz_next(&data, &size);
	c = fuzz_copy(data, size);
	if (which % 4 == 0)
		redirect(a);
	else if (which % 4 == 1)
		target(a, b);
	else
		answer(which & 4 ? 500 : 200, piece % 64U, a, b, c);
	return 0;
}
