#ifndef REDSHANK_LOAD_PROC_H
#define REDSHANK_LOAD_PROC_H
/*
 * What the kernel says of how busy it is: /proc and /sys, as text. The parsers are pure; they take
 * NUL-terminated text, and false is text of another form. Forms: proc_stat(5), the kernel's
 * Documentation/accounting/psi.rst, net/core/net-procfs.c (softnet), net/ipv4/proc.c (netstat).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/base/error.h"

/* Reads a file into buf, NUL-terminated. More than fits is cut where `cut` says so, else -EFBIG. A
 * FIFO or a device is -EINVAL, and is not waited for. The length, or negative errno with the
 * text. */
int proc_read(const char *path, char *buf, size_t size, bool cut, struct error *ret_error);

/* Ticks of all processors since the boot; time in guests is within that of the others. */
struct proc_ticks {
	uint64_t busy, all;
};
bool proc_parse_stat(const char *text, struct proc_ticks *ret);
/* /proc/pressure/X: thousandths of a per cent of the last 10 s in which some task waited. */
bool proc_parse_pressure(const char *text, uint64_t *ret_milli);
/* /proc/net/softnet_stat: packets dropped because a processor's queue was full, of all. */
bool proc_parse_softnet(const char *text, uint64_t *ret);
/* /proc/net/netstat: the counter of that name in the group ("TcpExt"). */
bool proc_parse_netstat(const char *text, const char *group, const char *name, uint64_t *ret);
/* /proc/net/dev, of the reader's own network namespace: bytes that came in and went out. False also
 * where there is no such interface. */
bool proc_parse_dev(const char *text, const char *interface, uint64_t *ret_in, uint64_t *ret_out);
/* One unsigned number and a newline. */
bool proc_parse_number(const char *text, uint64_t *ret);

#endif
