/*
 * One request to the agent, by libcurl over its Unix socket.
 *
 * The other end may be a hung agent or not an agent at all, so time and size are bounded. Nothing
 * of the caller's environment (http_proxy, .netrc) may send the request elsewhere. Most of the work
 * is the text for the person who has no agent: this is read when something is wrong already.
 */
#include "agent/ctl/fetch.h"

#include <assert.h>
#include <curl/curl.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "agent/base/clock.h"

#define FETCH_DEADLINE_MS 5000L

DEFINE_CLEANUP_PTR(CURL *, curl_easy_cleanup)
DEFINE_CLEANUP_PTR(struct curl_slist *, curl_slist_free_all)

void fetch_answer_done(struct fetch_answer *a)
{
	buffer_done(&a->body);
}

static size_t on_body(char *data, size_t size, size_t n, void *userdata)
{
	struct buffer *body = userdata;

	return buffer_append(body, data, size * n) < 0 ? 0 : size * n;
}

/* Why nobody can be reached at the path: an errno, 0 when somebody can. */
static int socket_errno(const char *path)
{
	_cleanup_close_ int fd = -1;
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	if (strlen(path) >= sizeof(address.sun_path))
		return ENAMETOOLONG;
	memcpy(address.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return errno;
	return connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ? errno : 0;
}

static const char *socket_hint(int errnum)
{
	switch (errnum) {
	case ENOENT:
		return "Is redshankd running? Try: systemctl status redshank. If its configuration "
		       "names another status.socket, say --socket PATH.";
	case ECONNREFUSED:
		return "The socket is there, but no agent listens: it was killed, or is just "
		       "starting. Try: systemctl status redshank";
	case EACCES:
	case EPERM:
		return "Only root and the group named by status.group may ask. Try as root, or add "
		       "your user to that group.";
	case EAGAIN:
		return "The agent is there, but takes no more clients now. Try again.";
	case ENOTSOCK:
	case EPROTOTYPE:
		return "That is not an agent's socket. Look at --socket.";
	default:
		return "Look at --socket and at the agent's log: journalctl -u redshank";
	}
}

static int no_agent(const char *socket_path, CURLcode code, struct error *ret_error)
{
	int errnum;

	switch ((int)code) {
	case CURLE_WRITE_ERROR:
		return error_set(ret_error, E2BIG,
			"the answer at %s is larger than %d MiB. Is that an agent's socket?",
			socket_path, FETCH_BODY_MAX / 1024 / 1024);
	case CURLE_OPERATION_TIMEDOUT:
		return error_set(ret_error, ETIMEDOUT,
			"no agent answered at %s within %ld s. It hangs or is overloaded; its log "
			"may say why: journalctl -u redshank",
			socket_path, FETCH_DEADLINE_MS / 1000);
	case CURLE_COULDNT_CONNECT:
		errnum = socket_errno(socket_path);
		if (errnum > 0)
			return error_set(ret_error, errnum, "no agent at %s: %s. %s", socket_path,
				strerror(errnum), socket_hint(errnum));
		break;
	default:
		break;
	}
	return error_set(ret_error, EPROTO, "no agent at %s: %s. Is that an agent's socket?",
		socket_path, curl_easy_strerror(code));
}

static CURLcode set_options(
	CURL *curl, const char *socket_path, const char *url, struct buffer *body)
{
	CURLcode code = curl_easy_setopt(curl, CURLOPT_URL, url);

	if (code == CURLE_OK)
		code = curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, socket_path);
	if (code == CURLE_OK)
		code = curl_easy_setopt(curl, CURLOPT_PROXY, "");
	if (code == CURLE_OK)
		code = curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http");
	if (code == CURLE_OK)
		code = curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	if (code == CURLE_OK)
		code = curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, FETCH_DEADLINE_MS);
	if (code == CURLE_OK)
		code = curl_easy_setopt(curl, CURLOPT_USERAGENT, "redshankctl/" REDSHANK_VERSION);
	if (code == CURLE_OK)
		code = curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
	if (code == CURLE_OK)
		code = curl_easy_setopt(curl, CURLOPT_WRITEDATA, body);
	return code;
}

/* `body`: of a POST, or NULL for a GET. */
static int fetch(const char *socket_path, const char *path, const char *body,
	struct fetch_answer *ret, struct error *ret_error)
{
	_cleanup_(curl_easy_cleanupp) CURL *curl = curl_easy_init();
	_cleanup_fetch_answer_ struct fetch_answer answer = {0};
	char url[256];
	CURLcode code;

	buffer_init(&answer.body, FETCH_BODY_MAX);
	if (!curl)
		return error_set_errno(ret_error, ENOMEM, "libcurl");
	(void)snprintf(url, sizeof(url), "http://redshank%s", path);
	code = set_options(curl, socket_path, url, &answer.body);
	if (code == CURLE_OK && body)
		code = curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
	if (code != CURLE_OK)
		return error_set(ret_error, EINVAL, "libcurl: %s", curl_easy_strerror(code));
	code = curl_easy_perform(curl);
	if (code != CURLE_OK)
		return no_agent(socket_path, code, ret_error);
	(void)curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &answer.status);
	*ret = answer;
	buffer_init(&answer.body, FETCH_BODY_MAX);
	return 0;
}

/* --- streams --- */

struct stream {
	CURL *curl;
	int (*on_data)(void *userdata, const char *data, size_t n);
	void *userdata;
	struct monotime heard;
};

static size_t on_stream_body(char *data, size_t size, size_t n, void *userdata)
{
	struct stream *s = userdata;
	long status = 0;

	s->heard = clock_monotime();
	(void)curl_easy_getinfo(s->curl, CURLINFO_RESPONSE_CODE, &status);
	if (status != 200)
		return size * n;
	return s->on_data(s->userdata, data, size * n) < 0 ? 0 : size * n;
}

/* Called once a second, too, when nothing comes. */
static int on_progress(void *userdata, curl_off_t t1, curl_off_t n1, curl_off_t t2, curl_off_t n2)
{
	const struct stream *s = userdata;

	return monotime_since_us(s->heard, clock_monotime()) > FETCH_SILENCE_MS * 1000ULL;
}

static CURLcode set_stream_options(CURL *curl, struct stream *s, struct curl_slist *headers)
{
	CURLcode code = curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, 0L);

	if (code == CURLE_OK)
		code = curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, FETCH_DEADLINE_MS);
	if (code == CURLE_OK)
		code = curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	if (code == CURLE_OK)
		code = curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_stream_body);
	if (code == CURLE_OK)
		code = curl_easy_setopt(curl, CURLOPT_WRITEDATA, s);
	if (code == CURLE_OK)
		code = curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
	if (code == CURLE_OK)
		code = curl_easy_setopt(curl, CURLOPT_XFERINFODATA, s);
	if (code == CURLE_OK)
		code = curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
	return code;
}

/* The headers of a request for a stream; NULL without memory. */
static struct curl_slist *stream_headers(const char *last_id)
{
	struct curl_slist *headers = curl_slist_append(NULL, "Accept: text/event-stream"), *more;
	char line[128];

	if (!headers || !last_id[0])
		return headers;
	(void)snprintf(line, sizeof(line), "Last-Event-ID: %.96s", last_id);
	more = curl_slist_append(headers, line);
	if (!more)
		curl_slist_free_all(headers);
	return more;
}

int fetch_stream(const char *socket_path, const char *path, const char *last_id,
	int (*on_data)(void *userdata, const char *data, size_t n), void *userdata,
	long *ret_status, struct error *ret_error)
{
	_cleanup_(curl_easy_cleanupp) CURL *curl = curl_easy_init();
	_cleanup_(curl_slist_free_allp) struct curl_slist *headers = stream_headers(last_id);
	struct stream s = {curl, on_data, userdata, clock_monotime()};
	char url[256];
	CURLcode code;

	if (!curl || !headers)
		return error_set_errno(ret_error, ENOMEM, "libcurl");
	(void)snprintf(url, sizeof(url), "http://redshank%s", path);
	code = set_options(curl, socket_path, url, NULL);
	if (code == CURLE_OK)
		code = set_stream_options(curl, &s, headers);
	if (code != CURLE_OK)
		return error_set(ret_error, EINVAL, "libcurl: %s", curl_easy_strerror(code));
	code = curl_easy_perform(curl);
	(void)curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, ret_status);
	return *ret_status > 0 ? 0 : no_agent(socket_path, code, ret_error);
}

/* --- requests --- */

int fetch_get(const char *socket_path, const char *path, struct fetch_answer *ret,
	struct error *ret_error)
{
	return fetch(socket_path, path, NULL, ret, ret_error);
}

int fetch_post(const char *socket_path, const char *path, const char *body,
	struct fetch_answer *ret, struct error *ret_error)
{
	return fetch(socket_path, path, body, ret, ret_error);
}

/* --- beside something else --- */

struct fetch_job {
	CURLM *multi;
	CURL *curl;
	char *socket_path;
	struct fetch_answer answer;
};

void fetch_job_free(struct fetch_job *job)
{
	if (!job)
		return;
	if (job->multi && job->curl)
		(void)curl_multi_remove_handle(job->multi, job->curl);
	curl_easy_cleanup(job->curl);
	(void)curl_multi_cleanup(job->multi);
	fetch_answer_done(&job->answer);
	free(job->socket_path);
	free(job);
}

int fetch_begin(
	struct fetch_job **ret, const char *socket_path, const char *path, struct error *ret_error)
{
	struct fetch_job *job = calloc(1, sizeof(*job));
	char url[256];

	if (!job)
		return error_set_errno(ret_error, ENOMEM, "libcurl");
	buffer_init(&job->answer.body, FETCH_BODY_MAX);
	(void)snprintf(url, sizeof(url), "http://redshank%s", path);
	job->socket_path = strdup(socket_path);
	job->multi = curl_multi_init();
	job->curl = curl_easy_init();
	if (!job->socket_path || !job->multi || !job->curl ||
		set_options(job->curl, socket_path, url, &job->answer.body) != CURLE_OK ||
		curl_multi_add_handle(job->multi, job->curl) != CURLM_OK) {
		fetch_job_free(job);
		return error_set_errno(ret_error, ENOMEM, "libcurl");
	}
	*ret = job;
	return 0;
}

/* What became of it: 1, 0 while it is under way, or negative with the text. */
static int fetch_look(struct fetch_job *job, struct fetch_answer *ret, struct error *ret_error)
{
	CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(job->multi, &left)) != NULL) {
		if (message->msg != CURLMSG_DONE)
			continue;
		if (message->data.result != CURLE_OK)
			return no_agent(job->socket_path, message->data.result, ret_error);
		(void)curl_easy_getinfo(job->curl, CURLINFO_RESPONSE_CODE, &job->answer.status);
		*ret = job->answer;
		buffer_init(&job->answer.body, FETCH_BODY_MAX);
		return 1;
	}
	return 0;
}

int fetch_wait(struct fetch_job *job, int timeout_ms, const int *fds, size_t n,
	struct fetch_answer *ret, struct error *ret_error)
{
	struct curl_waitfd waits[FETCH_WAIT_FDS_MAX] = {{0}};
	CURLMcode code;
	int running, r;

	assert(n <= FETCH_WAIT_FDS_MAX);
	for (size_t i = 0; i < n; i++)
		waits[i] = (struct curl_waitfd){.fd = fds[i], .events = CURL_WAIT_POLLIN};
	code = curl_multi_perform(job->multi, &running);
	r = fetch_look(job, ret, ret_error);
	if (r != 0)
		return r;
	if (code == CURLM_OK)
		code = curl_multi_poll(job->multi, waits, (unsigned)n, timeout_ms, NULL);
	if (code == CURLM_OK)
		code = curl_multi_perform(job->multi, &running);
	if (code != CURLM_OK)
		return error_set(ret_error, EIO, "libcurl: %s", curl_multi_strerror(code));
	return fetch_look(job, ret, ret_error);
}
