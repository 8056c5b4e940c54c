/* See the header. */
#include "agent/load/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Without O_NONBLOCK the open of a FIFO would wait for its writer. */
int proc_read(const char *path, char *buf, size_t size, bool cut, struct error *ret_error)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat status;
	size_t length = 0;
	ssize_t n;

	if (fd < 0)
		return error_set_errno(ret_error, errno, "%s", path);
	if (fstat(fd, &status) < 0)
		return error_set_errno(ret_error, errno, "%s", path);
	if (!S_ISREG(status.st_mode))
		return error_set(ret_error, EINVAL, "%s: not a regular file", path);
	while (length < size - 1) {
		n = read(fd, buf + length, size - 1 - length);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return error_set_errno(ret_error, errno, "%s", path);
		if (n == 0)
			break;
		length += (size_t)n;
	}
	if (length == size - 1 && !cut)
		return error_set(ret_error, EFBIG, "%s: longer than %zu bytes", path, size - 2);
	buf[length] = '\0';
	return (int)length;
}

/* Reads digits of that base; false where there are none or too many. */
static bool take_number(const char **text, unsigned base, uint64_t *ret)
{
	uint64_t value = 0;
	const char *c = *text;

	for (;; c++) {
		unsigned digit = *c >= '0' && *c <= '9'	  ? (unsigned)(*c - '0')
				 : *c >= 'a' && *c <= 'f' ? (unsigned)(*c - 'a') + 10
							  : base;

		if (digit >= base)
			break;
		if (value > (UINT64_MAX - digit) / base)
			return false;
		value = value * base + digit;
	}
	if (c == *text)
		return false;
	*text = c;
	*ret = value;
	return true;
}

static const char *skip_spaces(const char *text)
{
	return text + strspn(text, " ");
}

/* user nice system idle iowait irq softirq steal; kernels before 2.6.11 have fewer. */
bool proc_parse_stat(const char *text, struct proc_ticks *ret)
{
	struct proc_ticks ticks = {0};
	unsigned field;

	if (strncmp(text, "cpu ", 4) != 0)
		return false;
	text += 4;
	for (field = 0; field < 8; field++) {
		uint64_t n;

		text = skip_spaces(text);
		if (!take_number(&text, 10, &n) || (*text != ' ' && *text != '\n'))
			return false;
		ticks.all += n;
		if (field != 3 && field != 4)
			ticks.busy += n;
	}
	*ret = ticks;
	return true;
}

bool proc_parse_pressure(const char *text, uint64_t *ret_milli)
{
	static const char head[] = "some avg10=";
	uint64_t whole, part = 0, scale = 1000;

	if (strncmp(text, head, strlen(head)) != 0)
		return false;
	text += strlen(head);
	if (!take_number(&text, 10, &whole) || whole > 100)
		return false;
	if (*text == '.')
		for (text++; *text >= '0' && *text <= '9'; text++) {
			scale /= 10;
			part += scale * (uint64_t)(*text - '0');
		}
	if (*text != ' ')
		return false;
	*ret_milli = whole * 1000 + part;
	return true;
}

/* Each line is a processor's: processed, dropped, ... in hexadecimal. */
bool proc_parse_softnet(const char *text, uint64_t *ret)
{
	uint64_t sum = 0;
	unsigned lines = 0;

	while (*text) {
		uint64_t processed, dropped;

		if (!take_number(&text, 16, &processed) || *text != ' ')
			return false;
		text = skip_spaces(text);
		if (!take_number(&text, 16, &dropped) || (*text != ' ' && *text != '\n'))
			return false;
		sum += dropped;
		lines++;
		text += strcspn(text, "\n");
		if (*text++ != '\n')
			return false;
	}
	if (lines == 0)
		return false;
	*ret = sum;
	return true;
}

/* The place of the name among those of the line: 0 is the first; -1: none. */
static int find_column(const char *line, const char *name)
{
	size_t length = strlen(name);

	for (int column = 0; *line == ' '; column++) {
		size_t n = strcspn(++line, " \n");

		if (n == length && strncmp(line, name, n) == 0)
			return column;
		line += n;
	}
	return -1;
}

static bool take_column(const char *line, int column, uint64_t *ret)
{
	for (; column > 0 && *line == ' '; column--) {
		line++;
		line += strcspn(line, " \n");
	}
	if (*line++ != ' ' || !take_number(&line, 10, ret))
		return false;
	return *line == ' ' || *line == '\n';
}

/* Two lines for each group: names, then values; both begin with "GROUP:". */
bool proc_parse_netstat(const char *text, const char *group, const char *name, uint64_t *ret)
{
	size_t length = strlen(group);

	while (*text) {
		const char *names = text, *values = text + strcspn(text, "\n");
		int column;

		if (*values++ != '\n')
			return false;
		text = values + strcspn(values, "\n");
		if (*text++ != '\n')
			return false;
		if (strncmp(names, group, length) != 0 || names[length] != ':')
			continue;
		if (strncmp(values, group, length) != 0 || values[length] != ':')
			return false;
		column = find_column(names + length + 1, name);
		return column >= 0 && take_column(values + length + 1, column, ret);
	}
	return false;
}

/* Two lines of heads; then "  NAME:" and 16 numbers, of which the first and the ninth are bytes. */
bool proc_parse_dev(const char *text, const char *interface, uint64_t *ret_in, uint64_t *ret_out)
{
	size_t length = strlen(interface);
	uint64_t fields[9];

	for (; *text; text += strcspn(text, "\n"), text += *text == '\n') {
		text = skip_spaces(text);
		if (strncmp(text, interface, length) != 0 || text[length] != ':')
			continue;
		text += length + 1;
		for (size_t i = 0; i < ELEMENTSOF(fields); i++) {
			text = skip_spaces(text);
			if (!take_number(&text, 10, &fields[i]) || *text != ' ')
				return false;
		}
		*ret_in = fields[0];
		*ret_out = fields[8];
		return true;
	}
	return false;
}

bool proc_parse_number(const char *text, uint64_t *ret)
{
	uint64_t n;

	if (!take_number(&text, 10, &n) || (*text && strcmp(text, "\n") != 0))
		return false;
	*ret = n;
	return true;
}
