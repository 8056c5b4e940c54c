/*
 * BIRD by way of the birdc program, for hosts where the socket is not to be spoken to: one run of
 * `birdc -v -s SOCKET COMMAND` for each command, one at a time.
 *
 * With -v birdc prints what it read from BIRD, with three changes (client/client.c of BIRD): a line
 * that starts with a blank gets four more; lines of code 0 are left out, so that a reply which ends
 * in "0000 " just ends; and lines of its own, such as why it could not connect, go to stderr or
 * stdout without a code. So the output of a run is gathered, turned back into what BIRD said, and
 * given to the same parser as the socket's. Its exit status only says whether a missing last line
 * was a "0000 " (0) or a failure (1); refusals (8xxx, 9xxx) make it 1, too, but show their code.
 *
 * The command is one argument, which birdc passes on as it is: quotes in it need no shell to
 * survive, and get none.
 *
 * A run is a connection of its own. Another version in a later greeting means that BIRD was
 * restarted, and loses the client; a restart of the same version cannot be seen from here.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#include "agent/base/printable.h"
#include "agent/bird/client_private.h"

#define BIRDC_PROGRAM "birdc"
#define BIRDC_FALLBACK "/usr/sbin/birdc" /* where PATH leaves out sbin */
#define BIRDC_FIRST "show status"	 /* asked for the greeting; BIRD 1.x knows it, too */
#define BIRDC_GREETING "0001 "
#define BIRDC_CONTINUATION "     " /* birdc's, for BIRD's one blank */
#define BIRDC_READ_SIZE 16384
#define BIRDC_QUOTED_MAX 300 /* of its own words in an error */

struct birdc {
	sd_event_source *child; /* owns the process: freed, it is killed and reaped */
	sd_event_source *io;
	int fd; /* our end of its stdout and stderr */
	struct buffer output;
	char *greeting; /* of the first run; NULL before it */
};

static void birdc_end_run(struct birdc *b)
{
	b->child = sd_event_source_disable_unref(b->child);
	b->io = sd_event_source_disable_unref(b->io);
	closep(&b->fd);
	b->fd = -1;
}

static void birdc_free(struct birdc *b)
{
	birdc_end_run(b);
	buffer_done(&b->output);
	free(b->greeting);
	free(b);
}
DEFINE_CLEANUP_PTR(struct birdc *, birdc_free)

static void birdc_close(struct client *c)
{
	birdc_free(c->state);
	c->state = NULL;
}

/* --- one run --- */

/* Gathers what has come. 0 or negative errno. */
static int birdc_gather(struct birdc *b)
{
	char data[BIRDC_READ_SIZE];

	for (;;) {
		ssize_t n = read(b->fd, data, sizeof(data));
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? 0 : -errno;
		if (n == 0) {
			/* What it said is whole; that it has ended comes from `child`. */
			b->io = sd_event_source_disable_unref(b->io);
			return 0;
		}
		r = buffer_append(&b->output, data, (size_t)n);
		if (r < 0)
			return r;
	}
}

static void birdc_receive(struct client *c)
{
	struct birdc *b = c->state;
	int r = b->fd >= 0 ? birdc_gather(b) : 0;

	if (r < 0)
		client_lose(c, -r, "bird: output of birdc: %s", strerror(-r));
}

static int birdc_on_io(sd_event_source *s, int fd, uint32_t events, void *userdata)
{
	birdc_receive(userdata);
	return 0;
}

static bool birdc_is_final(const char *line)
{
	return strspn(line, "0123456789") == 4 && line[4] == ' ';
}

static bool birdc_is_reply(const char *line)
{
	return line[0] == ' ' ||
	       (strspn(line, "0123456789") == 4 && (line[4] == ' ' || line[4] == '-'));
}

/* What a run said. All point into the output. */
struct birdc_said {
	const char *greeting; /* "0001 BIRD ... ready." or NULL */
	const char *own;      /* the first line that is not BIRD's, or NULL */
	bool final;	      /* a final line was among them */
};

/* Turns the output into what BIRD said: lines in `ret`, without the greeting. 0 or negative. */
static int birdc_understand(char *output, struct birdc_said *said, struct buffer *ret)
{
	char *rest = output, *line;
	int r = 0;

	while (r == 0 && (line = strsep(&rest, "\n"))) {
		if (*line == '\0' && !rest)
			break; /* behind the last newline */
		if (!said->greeting && strncmp(line, BIRDC_GREETING, strlen(BIRDC_GREETING)) == 0) {
			said->greeting = line;
			continue;
		}
		if (!birdc_is_reply(line)) {
			if (!said->own)
				said->own = line;
			continue;
		}
		if (strncmp(line, BIRDC_CONTINUATION, strlen(BIRDC_CONTINUATION)) == 0)
			line += strlen(BIRDC_CONTINUATION) - 1;
		said->final = said->final || birdc_is_final(line);
		r = buffer_append_string(ret, line);
		if (r == 0)
			r = buffer_append_string(ret, "\n");
	}
	return r;
}

static void birdc_next(struct client *c);

/* Without a last line it was a "0000 ", if birdc has nothing to complain of. */
static bool birdc_is_whole(const siginfo_t *si, const struct birdc_said *said)
{
	if (!said->greeting || si->si_code != CLD_EXITED)
		return false;
	return said->final || (si->si_status == 0 && !said->own);
}

/* Why a run gave no reply; loses the client. */
static void birdc_failed(struct client *c, const siginfo_t *si, const struct birdc_said *said)
{
	const char *own = said->own ? said->own : "it said nothing";
	char quoted[BIRDC_QUOTED_MAX];

	if (si->si_code != CLD_EXITED) {
		client_lose(c, ECONNABORTED, "bird: birdc was killed by signal %d (%s)",
			si->si_status, strsignal(si->si_status));
		return;
	}
	printable_copy(quoted, sizeof(quoted), own, strlen(own));
	client_lose(c, ECONNREFUSED, "bird: birdc: exit status %d: %s%s", si->si_status, quoted,
		strstr(own, "Permission denied") ? " (is the agent in group bird?)" : "");
}

/* The first run: only its greeting is of interest. */
static void birdc_greet(struct client *c, const char *greeting)
{
	struct birdc *b = c->state;

	b->greeting = strdup(greeting);
	if (!b->greeting) {
		client_lose(c, ENOMEM, "bird: birdc: %s", strerror(ENOMEM));
		return;
	}
	client_enter(c);
	client_input(c, greeting, strlen(greeting));
	if (!client_is_over(c))
		client_input(c, "\n", 1);
	client_leave(c);
}

static void birdc_conclude(struct client *c, const siginfo_t *si)
{
	struct birdc *b = c->state;
	struct birdc_said said = {0};
	_cleanup_buffer_ struct buffer output = b->output, reply = {0};
	int r;

	/* The next run may begin inside a callback: this one's output is ours alone from here. */
	buffer_init(&b->output, REPLY_MAX);
	buffer_init(&reply, REPLY_MAX);
	birdc_end_run(b);
	r = output.data ? birdc_understand(output.data, &said, &reply) : 0;
	if (r < 0)
		client_lose(c, -r, "bird: output of birdc: %s", strerror(-r));
	else if (!birdc_is_whole(si, &said))
		birdc_failed(c, si, &said);
	else if (!b->greeting)
		birdc_greet(c, said.greeting);
	else if (strcmp(b->greeting, said.greeting) != 0)
		client_lose(c, ECONNRESET, "bird: BIRD was restarted: \"%.80s\" now says \"%.80s\"",
			b->greeting, said.greeting);
	else {
		if (!said.final)
			r = buffer_append_string(&reply, "0000 \n");
		if (r < 0)
			client_lose(c, -r, "bird: output of birdc: %s", strerror(-r));
		else
			client_input(c, reply.data, reply.length);
	}
}

static int birdc_on_exit(sd_event_source *s, const siginfo_t *si, void *userdata)
{
	struct client *c = userdata;
	siginfo_t copy = *si; /* the source goes */

	client_enter(c);
	birdc_receive(c);
	if (!client_is_over(c))
		birdc_conclude(c, &copy);
	if (!client_is_over(c))
		birdc_next(c);
	client_leave(c);
	return 0;
}

/* --- starting a run --- */

static int birdc_spawn(const char *socket_path, const char *command, int out, pid_t *ret)
{
	char *const arguments[] = {(char *)BIRDC_PROGRAM, (char *)"-v", (char *)"-s",
		(char *)socket_path, (char *)command, NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	int r;

	/* The agent blocks the signals that it reads from its loop, and ignores SIGPIPE. */
	(void)sigemptyset(&none);
	(void)sigfillset(&all);
	r = posix_spawn_file_actions_init(&actions);
	if (r)
		return -r;
	r = posix_spawnattr_init(&attributes);
	if (r) {
		(void)posix_spawn_file_actions_destroy(&actions);
		return -r;
	}
	(void)posix_spawnattr_setsigmask(&attributes, &none);
	(void)posix_spawnattr_setsigdefault(&attributes, &all);
	(void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	r = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	if (!r)
		r = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	if (!r)
		r = posix_spawn_file_actions_adddup2(&actions, out, STDERR_FILENO);
	if (!r)
		r = posix_spawnp(ret, BIRDC_PROGRAM, &actions, &attributes, arguments, environ);
	if (r == ENOENT)
		r = posix_spawn(ret, BIRDC_FALLBACK, &actions, &attributes, arguments, environ);
	(void)posix_spawnattr_destroy(&attributes);
	(void)posix_spawn_file_actions_destroy(&actions);
	return -r;
}

/* 0 or negative errno; nothing is left of a run that could not start. */
static int birdc_run(struct client *c, const char *command)
{
	_cleanup_close_ int theirs = -1;
	struct birdc *b = c->state;
	int fds[2], r;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	b->fd = fds[0];
	theirs = fds[1];
	r = fcntl(b->fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
	if (r == 0)
		r = sd_event_add_io(c->event, &b->io, b->fd, EPOLLIN, birdc_on_io, c);
	if (r >= 0)
		r = birdc_spawn(c->path, command, theirs, &pid);
	if (r >= 0) {
		/* posix_spawn(3) and its kin return 0 or a positive errno: the pid is set. */
		/* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage) */
		r = sd_event_add_child(c->event, &b->child, pid, WEXITED, birdc_on_exit, c);
		if (r < 0) {
			(void)kill(pid, SIGKILL);
			(void)waitpid(pid, NULL, 0);
		}
	}
	if (r >= 0)
		r = sd_event_source_set_child_process_own(b->child, true);
	if (r < 0) {
		birdc_end_run(b);
		return r;
	}
	(void)sd_event_source_set_description(b->child, "bird-client-birdc");
	(void)sd_event_source_set_description(b->io, "bird-client-birdc-output");
	return 0;
}

/* Begins the run of the oldest command, if none is under way. */
static void birdc_next(struct client *c)
{
	struct birdc *b = c->state;
	int r;

	if (b->child || !c->head)
		return;
	r = birdc_run(c, c->head->text);
	if (r < 0)
		client_lose_later(c, -r, "bird: run birdc: %s%s", strerror(-r),
			r == -ENOENT ? " (is it installed, in PATH or in /usr/sbin?)" : "");
}

static int birdc_send(struct client *c, const struct client_command *command)
{
	birdc_next(c);
	return 0;
}

int client_new_birdc(
	struct client **ret, sd_event *event, const char *socket_path, const struct client_ops *ops)
{
	static const struct client_link link = {
		.send = birdc_send,
		.receive = birdc_receive,
		.close = birdc_close,
	};
	_cleanup_(birdc_freep) struct birdc *b = calloc(1, sizeof(*b));
	struct client *c;
	int r;

	if (!b)
		return -ENOMEM;
	b->fd = -1;
	buffer_init(&b->output, REPLY_MAX);
	r = client_new(&c, event, socket_path, ops, &link, b);
	if (r < 0)
		return r;
	TAKE_PTR(b);
	client_begin(c);
	r = birdc_run(c, BIRDC_FIRST);
	if (r < 0)
		client_lose_later(c, -r, "bird: run birdc: %s%s", strerror(-r),
			r == -ENOENT ? " (is it installed, in PATH or in /usr/sbin?)" : "");
	*ret = c;
	return 0;
}
