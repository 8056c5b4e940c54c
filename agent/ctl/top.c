/*
 * The status, live.
 *
 * One loop waits for the agent's answer, a key, a signal or the next second, whichever comes first:
 * an agent that hangs does not keep q from working. Each screen is put together in memory
 * (top_draw.c) and written with one write(2), each line cleared before its text, so that nothing
 * flickers and a slow line of ssh carries no more than it must.
 *
 * The terminal is the user's: keys come unbuffered and without echo, on the alternate screen, with
 * the cursor hidden; all of it is put back before the program ends or is stopped by ^Z. Sequences
 * are those of ECMA-48 and xterm, which every terminal of these days understands.
 *
 * Where no agent answers, what was known stays on the screen, and the first line says so.
 */
#include "agent/ctl/top.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "agent/base/cleanup.h"
#include "agent/base/clock.h"
#include "agent/ctl/fetch.h"
#include "agent/ctl/status.h"
#include "agent/ctl/top_draw.h"

#define TOP_INTERVAL_MS 1000
#define TOP_WIDTH_MAX 500
#define TOP_HEIGHT_MAX 300

/* Alternate screen, no cursor, no wrapping at the edge; and back. */
#define TOP_ENTER "\033[?1049h\033[?25l\033[?7l"
#define TOP_LEAVE "\033[0m\033[?7h\033[?25h\033[?1049l"

struct top_loop {
	const char *socket_path;
	bool colours;
	int signals;	/* signalfd */
	bool keys;	/* standard input is read */
	bool quit;	/* a person, a signal, or a terminal that is gone */
	bool stop;	/* ^Z */
	bool entered;	/* the alternate screen is on */
	bool has_saved; /* the terminal's settings are to be put back */
	struct termios saved;
	json_t *document;	/* owned; the newest; NULL: none yet */
	struct error error;	/* why there is no newer one; "": there is */
	struct fetch_job *job;	/* owned; a question under way */
	struct monotime ask_at; /* the next question */
	struct monotime drawn;
};

/* --- the terminal --- */

static int top_write(const char *text, size_t n)
{
	while (n > 0) {
		ssize_t put = write(STDOUT_FILENO, text, n);

		if (put < 0 && errno == EAGAIN) {
			struct pollfd p = {.fd = STDOUT_FILENO, .events = POLLOUT};

			(void)poll(&p, 1, TOP_INTERVAL_MS);
			continue;
		}
		if (put < 0 && errno != EINTR)
			return -errno;
		if (put > 0) {
			text += put;
			n -= (size_t)put;
		}
	}
	return 0;
}

static void top_leave(struct top_loop *l)
{
	if (l->entered)
		(void)top_write(TOP_LEAVE, strlen(TOP_LEAVE));
	l->entered = false;
	if (l->has_saved)
		(void)tcsetattr(STDIN_FILENO, TCSADRAIN, &l->saved);
	l->has_saved = false;
}

/* Keys as they are pressed; ^C and ^Z stay signals. Without a terminal as input there are none. */
static void top_take_keys(struct top_loop *l)
{
	struct termios raw;

	l->keys = isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &l->saved) == 0;
	if (!l->keys)
		return;
	raw = l->saved;
	raw.c_lflag &= (tcflag_t) ~(ICANON | ECHO);
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	l->has_saved = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
}

static unsigned top_side(unsigned cells, unsigned otherwise, unsigned most)
{
	return cells == 0 ? otherwise : cells < most ? cells : most;
}

static void top_size(struct top_view *view)
{
	struct winsize size = {0};

	(void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	view->width = top_side(size.ws_col, 80, TOP_WIDTH_MAX);
	view->height = top_side(size.ws_row, 24, TOP_HEIGHT_MAX);
}

/* The screen's text with what places it; each line is cleared before, since to clear behind a line
 * as wide as the terminal takes its last character. */
static void top_frame(FILE *out, const char *text, unsigned height)
{
	unsigned lines = 1;

	(void)fputs("\033[H\033[2K", out);
	for (; *text; text++) {
		if (*text == '\n')
			lines++;
		(void)(*text == '\n' ? fputs("\r\n\033[2K", out) : fputc(*text, out));
	}
	if (lines < height)
		(void)fputs("\r\n\033[J", out);
}

static void top_show(struct top_loop *l)
{
	struct top_view view = {.document = l->document,
		.error = l->error.text[0] ? l->error.text : NULL,
		.colours = l->colours,
		.now_ms = clock_walltime().us / 1000};
	_cleanup_free_ char *text = NULL, *frame = NULL;
	size_t n_text = 0, n_frame = 0;
	FILE *to_text = open_memstream(&text, &n_text);
	FILE *to_frame = open_memstream(&frame, &n_frame);
	bool ready = to_text && to_frame;

	if (ready) {
		top_size(&view);
		top_draw(to_text, &view);
	}
	ready = (!to_text || fclose(to_text) == 0) && ready;
	if (ready) {
		if (!l->entered)
			(void)fputs(TOP_ENTER, to_frame);
		top_frame(to_frame, text, view.height);
	}
	ready = (!to_frame || fclose(to_frame) == 0) && ready;
	l->drawn = clock_monotime();
	if (!ready)
		return;
	l->entered = true;
	l->quit = top_write(frame, n_frame) < 0 || l->quit;
}

/* ^Z: the shell gets its terminal back, and we ours when we go on. */
static void top_pause(struct top_loop *l)
{
	l->stop = false;
	top_leave(l);
	(void)raise(SIGSTOP);
	top_take_keys(l);
	top_show(l);
}

/* --- what comes --- */

static void top_take(struct top_loop *l, const struct fetch_answer *answer)
{
	json_t *document;

	if (answer->status != 200) {
		(void)error_set(
			&l->error, EPROTO, "the agent answered HTTP status %ld", answer->status);
		return;
	}
	document = status_parse(buffer_string(&answer->body), answer->body.length, &l->error);
	if (!document)
		return;
	json_decref(l->document);
	l->document = document;
	l->error.text[0] = '\0';
}

static void top_on_key(struct top_loop *l)
{
	char keys[64];
	ssize_t n = read(STDIN_FILENO, keys, sizeof(keys));

	if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
		l->keys = false;
	for (ssize_t i = 0; i < n; i++) {
		if (keys[i] == 'q' || keys[i] == 'Q')
			l->quit = true;
		if (keys[i] == ' ')
			l->ask_at = MONOTIME_ZERO;
	}
}

/* True: the window has another size now. */
static bool top_on_signal(struct top_loop *l)
{
	struct signalfd_siginfo info;
	bool resized = false;

	while (read(l->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGWINCH)
			resized = true;
		else if (info.ssi_signo == SIGTSTP)
			l->stop = true;
		else
			l->quit = true;
	}
	return resized;
}

static int top_watch_signals(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH};
	sigset_t set;

	(void)sigemptyset(&set);
	for (size_t i = 0; i < ELEMENTSOF(numbers); i++)
		(void)sigaddset(&set, numbers[i]);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	(void)signal(SIGTTOU, SIG_IGN);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* --- the loop --- */

static int top_timeout(struct monotime until, struct monotime now)
{
	return monotime_reached(until, now) ? 0 : (int)((until.us - now.us) / 1000) + 1;
}

/* Waits for the agent, a key, a signal, or until the screen is old. True: there is news of the
 * agent. */
static bool top_wait(struct top_loop *l, int timeout_ms)
{
	int fds[] = {l->signals, STDIN_FILENO};
	struct pollfd polled[] = {
		{.fd = fds[0], .events = POLLIN}, {.fd = fds[1], .events = POLLIN}};
	_cleanup_fetch_answer_ struct fetch_answer answer = {0};
	size_t n = l->keys ? 2 : 1;
	int r;

	if (!l->job) {
		(void)poll(polled, (nfds_t)n, timeout_ms);
		return false;
	}
	r = fetch_wait(l->job, timeout_ms, fds, n, &answer, &l->error);
	if (r == 0)
		return false;
	fetch_job_free(TAKE_PTR(l->job));
	if (r > 0)
		top_take(l, &answer);
	return true;
}

static void top_turn(struct top_loop *l)
{
	struct monotime now = clock_monotime(), old = monotime_add_ms(l->drawn, TOP_INTERVAL_MS);
	struct pollfd key = {.fd = STDIN_FILENO, .events = POLLIN};
	bool news = false;

	if (!l->job && monotime_reached(l->ask_at, now)) {
		l->ask_at = monotime_add_ms(now, TOP_INTERVAL_MS);
		news = fetch_begin(&l->job, l->socket_path, "/v1/status", &l->error) < 0;
	}
	if (!news) {
		struct monotime until = l->job || old.us < l->ask_at.us ? old : l->ask_at;

		news = top_wait(l, top_timeout(until, now));
	}
	news = top_on_signal(l) || news;
	if (l->keys && poll(&key, 1, 0) > 0)
		top_on_key(l);
	if (l->stop)
		top_pause(l);
	/* An answer is on its way to a screen that is old by the time it takes: half a second more.
	 */
	else if (!l->quit &&
		 (news || monotime_reached(monotime_add_ms(old, 500), clock_monotime())))
		top_show(l);
}

static int top_first(struct top_loop *l, struct error *ret_error)
{
	_cleanup_fetch_answer_ struct fetch_answer answer = {0};
	int r = fetch_get(l->socket_path, "/v1/status", &answer, ret_error);

	if (r >= 0)
		top_take(l, &answer);
	return r;
}

int top_run(const char *socket_path, bool colours, struct error *ret_error)
{
	struct top_loop l = {.socket_path = socket_path, .colours = colours, .signals = -1};
	int r;

	if (!isatty(STDOUT_FILENO))
		return error_set(ret_error, ENOTTY,
			"top: expected a terminal as standard output; `redshankctl status` is for "
			"files and pipes, `redshankctl --json top` for programs");
	r = top_first(&l, ret_error);
	if (r < 0)
		return r;
	l.signals = top_watch_signals();
	if (l.signals < 0)
		return error_set_errno(ret_error, errno, "signalfd");
	l.ask_at = monotime_add_ms(clock_monotime(), TOP_INTERVAL_MS);
	top_take_keys(&l);
	top_show(&l);
	while (!l.quit)
		top_turn(&l);
	top_leave(&l);
	fetch_job_free(l.job);
	json_decref(l.document);
	(void)close(l.signals);
	return 0;
}

/* --- for programs --- */

int top_run_json(const char *socket_path, struct error *ret_error)
{
	struct top_loop l = {.socket_path = socket_path};

	for (;;) {
		struct monotime next = monotime_add_ms(clock_monotime(), TOP_INTERVAL_MS);
		int r = top_first(&l, &l.error);

		if (!(r >= 0 && !l.error.text[0] ? text_put_json_line(stdout, l.document)
						 : text_put_json_error(stdout, l.error.text))) {
			json_decref(l.document);
			return error_set_errno(ret_error, EIO, "standard output");
		}
		(void)poll(NULL, 0, top_timeout(next, clock_monotime()));
	}
}
