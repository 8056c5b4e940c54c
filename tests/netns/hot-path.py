"""The path of a withdrawal: nothing on it can wait or fail.

From the kernel's word that a process is dead to the command on BIRD's socket the agent makes one
system call that does something, the rename of the fragment that lies ready, and allocates nothing.
So it withdraws also when no memory and no descriptor is to be had, and goes on when they are back.
Runs the agent without sanitizers: those allocate and call the kernel on their own account.
"""

import os
import re
import resource
import signal
import subprocess
import time

from lib.agentctl import plain_agent
from lib.case import check, eventually, main
from lib.netns import needs
from lib.site import Site
from lib.wire import ANNOUNCE, WITHDRAW

DNS, DNS6, WEB = "192.0.2.53/32", "2001:db8::53/128", "192.0.2.80/32"
FAMINE, PLENTY = signal.SIGRTMIN + 1, signal.SIGRTMIN + 2

# What may stand between the return of epoll_wait(2) and the send(2): the loop's own reads of its
# timer and clocks, the end of the pidfd, the rename.
ALLOWED = {
    "read": "anon_inode:[timerfd]",
    "clock_gettime": "",
    "epoll_ctl": "",
    "close": "anon_inode:[pidfd]",
    "renameat": ".dns.conf.withdrawn",
}
CALL = re.compile(r"^\d+ +[\d.]+ (?:<\.\.\. )?(\w+)(.*)$")


def make_site():
    needs("strace")
    program, shim = plain_agent()
    site = Site(edges=1)
    edge = site.edges[0]
    edge.agent.program = program
    edge.agent.environment = {"LD_PRELOAD": shim}
    return site


def all_up(site):
    """Both services run, everything is announced and BIRD at rest."""
    edge = site.edges[0]
    if not edge.agent.process:
        edge.agent.start()
    for service in (edge.nsd, edge.nginx):
        if not service.process.alive():
            service.start()
    for prefix in (DNS, DNS6, WEB):
        edge.agent.wait_prefix(prefix, timeout=15, wanted="announce", announced=True, exported=1)
    edge.agent.wait_status(lambda s: s["bird"]["settled"], what="settled")


def traced(agent, log):
    """strace on the running agent; returns when it is attached."""
    tracer = subprocess.Popen(
        ["strace", "-f", "-y", "-ttt", "-s", "200", "-o", log, "-p", str(agent.pid)], stderr=subprocess.PIPE, text=True
    )
    line = tracer.stderr.readline()
    check("attached" in line, "strace attaches", line)
    return tracer


def path_of(log, command):
    """The calls from the last return of epoll_wait before the one that sends `command`, that one last."""
    with open(log, encoding="utf-8", errors="replace") as f:
        calls = [m.groups() for m in map(CALL.match, f) if m]
    sent = [i for i, (name, rest) in enumerate(calls) if name in ("send", "sendto") and command in rest]
    check(len(sent) == 1, f"{command} is sent once", [calls[i] for i in sent])
    begin = max(i for i in range(sent[0]) if calls[i][0].startswith("epoll_") and calls[i][0] != "epoll_ctl")
    return calls[begin + 1 : sent[0] + 1]


def test_system_calls(site):
    """Between the pidfd and BIRD's socket there is a rename, and nothing that can wait or fail."""
    all_up(site)
    edge = site.edges[0]
    log = edge.host.path("strace")
    tracer = traced(edge.agent, log)
    killed = edge.nsd.kill()
    for prefix in (DNS, DNS6):
        site.wire.wait_withdraw("edge1", prefix, since=killed)
    tracer.send_signal(signal.SIGINT)
    tracer.wait(10)
    tracer.stderr.close()
    path = path_of(log, 'disable \\"redshank:dns:*\\"')
    for name, rest in path[:-1]:
        check(name in ALLOWED and ALLOWED[name] in rest, "a call that is allowed here", (name, rest), path)
    names = [name for name, _ in path]
    check(names.count("renameat") == 1, "one rename", path)
    check("bird.ctl" in path[-1][1] or "socket:" in path[-1][1] or "UNIX" in path[-1][1], "the socket", path[-1])


def withdrawn_alone(site, since, prefixes):
    for prefix in prefixes:
        site.wire.wait_withdraw("edge1", prefix, since=since)
    seen = sorted((e.kind, e.prefix) for e in site.wire.since(since) if e.kind in (ANNOUNCE, WITHDRAW))
    check(seen == sorted((WITHDRAW, p) for p in prefixes), "these and no other", seen)


def test_no_memory(site):
    """Without memory: a death, an address and another death are withdrawn; all return afterwards."""
    all_up(site)
    edge = site.edges[0]
    mark = len(edge.agent.text())
    edge.agent.send_signal(FAMINE)
    begun = time.time()
    eventually(lambda: time.time() - begun > 1, 5, "every check has run once without memory")
    check(not site.wire.since(begun), "nothing is withdrawn for our own trouble", site.wire.since(begun))
    edge.remove_address("2001:db8::53")
    withdrawn_alone(site, begun, [DNS6])
    killed = edge.nginx.kill()
    withdrawn_alone(site, killed, [WEB])
    killed = edge.nsd.kill()
    withdrawn_alone(site, killed, [DNS])
    edge.agent.wait_log("service dns: healthy -> unhealthy (check process: process", after=mark)
    edge.add_address("2001:db8::53")
    edge.nsd.start()
    edge.nginx.start()
    edge.agent.send_signal(PLENTY)
    all_up(site)


def test_no_descriptors(site):
    """Without descriptors: a death is withdrawn; the service returns when there are some."""
    all_up(site)
    edge = site.edges[0]
    before = resource.prlimit(edge.agent.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(edge.agent.pid, resource.RLIMIT_NOFILE, (3, before[1]))
    begun = time.time()
    eventually(lambda: time.time() - begun > 1, 5, "every check has run once without descriptors")
    check(not site.wire.since(begun), "nothing is withdrawn for our own trouble", site.wire.since(begun))
    killed = edge.nsd.kill()
    withdrawn_alone(site, killed, [DNS, DNS6])
    edge.nsd.start()
    resource.prlimit(edge.agent.pid, resource.RLIMIT_NOFILE, before)
    all_up(site)


main(make_site)
