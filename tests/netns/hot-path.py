"""The path of a withdrawal: nothing on it can wait or fail.

From the kernel's word that a process is dead to the command on BIRD's socket the agent makes one
system call that does something, the rename of the fragment that lies ready, and allocates nothing.
So it withdraws also when no memory and no descriptor is to be had, and goes on when they are back.
Runs the agent without sanitizers: those allocate and call the kernel on their own account.
"""

import ctypes
import os
import re
import resource
import signal
import subprocess
import time

from lib import tracing
from lib.agentctl import plain_agent
from lib.case import check, eventually, main
from lib.netns import needs
from lib.site import Site
from lib.wire import ANNOUNCE, WITHDRAW

DNS, DNS6, WEB = "192.0.2.53/32", "2001:db8::53/128", "192.0.2.80/32"
FAMINE, PLENTY = signal.SIGRTMIN + 1, signal.SIGRTMIN + 2
MANY = 2000  # prefixes
CROWD = 100  # services

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
    edge.agent.config["load"] = {"interval": "500ms", "signals": {"cpu": {"type": "cpu"}}, "prefixes": {"type": "nftables"}}
    # What follows a withdrawal may not stand in its way.
    for service in edge.agent.config["services"].values():
        service["hooks"] = {"note": {"command": ["/bin/true"], "on": ["service", "prefix", "check"]}}
        service["restart"] = {"unit": "redshank-no-such-unit.service", "delay": "0ms", "checks": [*service["checks"]]}
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
        edge.agent.wait_prefix(prefix, timeout=20, wanted="announce", announced=True, exported=1)
    edge.agent.wait_status(lambda s: s["bird"]["settled"], what="settled")


def traced(agent, log):
    """strace on the running agent; returns when it has seen the agent's loop go round."""
    tracer = subprocess.Popen(
        ["strace", "-f", "-y", "-ttt", "-s", "200", "-o", log, "-p", str(agent.pid)], stderr=subprocess.PIPE, text=True
    )
    line = tracer.stderr.readline()
    check("attached" in line, "strace attaches", line)

    def goes_round():
        with open(log, encoding="utf-8", errors="replace") as f:
            return "epoll_wait" in f.read()

    eventually(goes_round, 20, "the loop goes round")
    return tracer


def path_of(log, command):
    """The calls from the last return of epoll_wait before the one that sends `command`, that one last."""
    with open(log, encoding="utf-8", errors="replace") as f:
        calls = [m.groups() for m in map(CALL.match, f) if m]
    sent = [i for i, (name, rest) in enumerate(calls) if name in ("send", "sendto") and command in rest]
    check(len(sent) == 1, f"{command} is sent once", [calls[i] for i in sent])
    begin = max(i for i in range(sent[0]) if calls[i][0].startswith("epoll_") and calls[i][0] != "epoll_ctl")
    return calls[begin + 1 : sent[0] + 1]


def check_path(site, log):
    """Kills nsd under strace and looks at what the agent does until it has told BIRD."""
    edge = site.edges[0]
    tracer = traced(edge.agent, log)
    killed = edge.nsd.kill()
    for prefix in (DNS, DNS6):
        site.wire.wait_withdraw("edge1", prefix, since=killed)
    tracing.end(tracer)
    tracer.stderr.close()
    path = path_of(log, 'disable \\"redshank:dns:*\\"')
    for name, rest in path[:-1]:
        check(name in ALLOWED and ALLOWED[name] in rest, "a call that is allowed here", (name, rest), path)
    names = [name for name, _ in path]
    check(names.count("renameat") == 1, "one rename", path)


def test_system_calls(site):
    """Between the pidfd and BIRD's socket there is a rename, and nothing that can wait or fail."""
    all_up(site)
    check_path(site, site.edges[0].host.path("strace"))


def withdrawn_alone(site, since, prefixes):
    for prefix in prefixes:
        site.wire.wait_withdraw("edge1", prefix, since=since)
    seen = sorted((e.kind, e.prefix) for e in site.wire.since(since) if e.kind in (ANNOUNCE, WITHDRAW))
    check(seen == sorted((WITHDRAW, p) for p in prefixes), "these and no other", seen)


def told_once(agent, mark):
    """That checks say nothing is in the log, with each reason once."""
    agent.wait_log("says nothing", after=mark)
    reasons = [line.split(": ", 2)[-1] for line in agent.text()[mark:].splitlines() if "says nothing" in line]
    check(len(set(reasons)) == len(reasons) <= 4, "each reason once", reasons)


def test_no_memory(site):
    """Without memory: a death, an address and another death are withdrawn; all return afterwards."""
    all_up(site)
    edge = site.edges[0]
    mark = len(edge.agent.text())
    begun = site.moment()
    edge.agent.send_signal(FAMINE)
    eventually(lambda: time.time() - begun > 1.5, what="every check and BIRD's slow timer have run without memory")
    check(not site.wire.since(begun), "nothing is withdrawn for our own trouble", site.wire.since(begun))
    edge.remove_address("2001:db8::53")
    withdrawn_alone(site, begun, [DNS6])
    # A file that would announce the address. Before the death that is next: what that puts in its place does not.
    edge.agent.wait_log("fragment dns.conf removed", after=mark)
    killed = edge.nginx.kill()
    withdrawn_alone(site, killed, [WEB])
    killed = edge.nsd.kill()
    withdrawn_alone(site, killed, [DNS])
    edge.agent.wait_log("service dns: healthy -> unhealthy (check process: process", after=mark)
    edge.add_address("2001:db8::53")
    edge.nsd.start()
    edge.nginx.start()
    told_once(edge.agent, mark)
    check("by somebody" not in edge.agent.text()[mark:], "nobody is blamed", edge.agent.text()[mark:])
    check(edge.agent.text()[mark:].count("fragment dns.conf removed") == 1, "said once", edge.agent.text()[mark:])
    edge.agent.send_signal(PLENTY)
    all_up(site)


def test_many_at_once(site):
    """Without memory, and more services die at once than commands were laid by for: all are withdrawn."""
    all_up(site)
    edge = site.edges[0]
    folder = edge.host.path("pids")
    os.mkdir(folder)
    crowd = edge.host.start(
        ["sh", "-c", f"for i in $(seq {CROWD}); do sleep 600 & echo $! >{folder}/$i; done; wait"], "crowd.log"
    )
    eventually(lambda: len(os.listdir(folder)) == CROWD, 20, "all have begun")
    prefixes = [f"198.18.255.{i}/32" for i in range(1, CROWD + 1)]
    for i, prefix in enumerate(prefixes, 1):
        edge.agent.config["services"][f"crowd{i}"] = {
            "prefixes": {prefix: {"weight": 5, "address_check": False}},
            "checks": {"process": {"type": "process", "pidfile": f"{folder}/{i}"}},
        }
    # Every process is held twice, so that twice as much happens at once as ever before.
    prefixes.append("198.18.254.1/32")
    edge.agent.config["services"]["herd"] = {
        "prefixes": {prefixes[-1]: {"weight": 5, "address_check": False}},
        "checks": {"process": {"type": "process", "executable": "sleep", "count": CROWD}},
    }
    edge.agent.reload()
    for prefix in prefixes:
        edge.agent.wait_prefix(prefix, timeout=20, announced=True, exported=1)
    edge.agent.wait_status(lambda s: s["bird"]["settled"], timeout=20, what="settled")
    edge.agent.send_signal(FAMINE)
    edge.agent.send_signal(signal.SIGSTOP)
    killed = crowd.kill()
    edge.agent.send_signal(signal.SIGCONT)
    withdrawn_alone(site, killed, prefixes)
    edge.agent.send_signal(PLENTY)
    edge.agent.config = edge.agent.default_config()
    mark = len(edge.agent.text())
    edge.agent.reload()
    edge.agent.wait_log("reloaded: ", after=mark)


def test_no_descriptors(site):
    """Without descriptors: a death is withdrawn; the service returns when there are some."""
    all_up(site)
    edge = site.edges[0]
    before = resource.prlimit(edge.agent.pid, resource.RLIMIT_NOFILE)
    begun, mark = site.moment(), len(edge.agent.text())
    resource.prlimit(edge.agent.pid, resource.RLIMIT_NOFILE, (3, before[1]))
    eventually(lambda: time.time() - begun > 1.5, what="every check and BIRD's slow timer have run without descriptors")
    check(not site.wire.since(begun), "nothing is withdrawn for our own trouble", site.wire.since(begun))
    killed = edge.nsd.kill()
    withdrawn_alone(site, killed, [DNS, DNS6])
    told_once(edge.agent, mark)
    check("by somebody" not in edge.agent.text()[mark:], "nobody is blamed", edge.agent.text()[mark:])
    edge.nsd.start()
    resource.prlimit(edge.agent.pid, resource.RLIMIT_NOFILE, before)
    edge.agent.wait_log("no check is without an outcome any more", after=mark)
    all_up(site)


def famine_after(agent, allocations):
    """That many succeed, and then none."""
    value = ctypes.c_void_p(allocations)  # union sigval
    check(ctypes.CDLL(None).sigqueue(agent.pid, int(FAMINE), value) == 0, "sigqueue")


def test_reload_without_memory(site):
    """A reload that runs out of memory, wherever it does, changes nothing; one that does not, all."""
    all_up(site)
    edge = site.edges[0]
    begun = site.moment()
    edge.agent.config["services"]["other"] = {
        "prefixes": {"198.18.0.1/32": 5, "198.18.0.2/32": {"weight": 5, "last_resort": True}},
        "checks": {"process": {"type": "process", "executable": "nonesuch"}},
    }
    edge.agent.config["services"]["web"]["prefixes"]["192.0.2.80/32"] = 77
    edge.agent.write_config()
    done, allocations = False, 0
    while not done:
        mark = len(edge.agent.text())
        famine_after(edge.agent, allocations)
        edge.agent.send_signal(signal.SIGHUP)
        eventually(
            lambda: any(word in edge.agent.text()[mark:] for word in ("reloaded: ", "reload refused: ")), 10, "it was done or refused"
        )
        edge.agent.send_signal(PLENTY)
        text = edge.agent.text()[mark:]
        done = "reloaded" in text
        check(done or "what ran keeps running" in text, "no half a reload", text)
        check(done or not site.wire.since(begun), "nothing is sent", site.wire.since(begun))
        allocations += 3
    check(allocations > 300, "it ran out of memory at many places", allocations)
    site.wire.wait_announce("edge1", WEB, since=begun, med=77)
    edge.agent.wait_check("other", "process", state="down")
    edge.agent.config = edge.agent.default_config()
    edge.agent.reload()
    site.wire.wait_announce("edge1", WEB, since=begun, med=100)
    all_up(site)


def test_weight_without_memory(site):
    """A weight that was taken comes when there is memory again, wherever it ran out."""
    all_up(site)
    edge = site.edges[0]
    waited = allocations = 0
    confirmed = False
    while not confirmed:
        mark, begun, weight = len(edge.agent.text()), time.time(), 200 + allocations
        famine_after(edge.agent, allocations)
        confirmed = edge.agent.ctl("weight", WEB, str(weight)).returncode == 0
        edge.agent.send_signal(PLENTY)
        text = edge.agent.text()[mark:]
        taken = f"weight of {WEB}: {weight} by" in text
        check(taken or not confirmed, "what is confirmed was taken", text)
        if taken and (confirmed or "weights: Cannot allocate memory" in text):
            site.wire.wait_announce("edge1", WEB, since=begun, med=weight)
            waited += not confirmed
        allocations += 2
    check(waited > 3, "weights had to wait", waited)
    check(edge.agent.ctl("weight", WEB, "--reset").returncode == 0, "reset")
    site.wire.wait_announce("edge1", WEB, since=begun, med=100)
    all_up(site)


def test_start_without_descriptors(site):
    """A start that finds too few descriptors fails with a word, and does not crash."""
    all_up(site)  # and holds the status socket, where a second agent ends at the latest
    agent = site.edges[0].agent
    statuses = set()
    for most in range(4, 16):
        started = subprocess.Popen(
            site.edges[0].host.argv(
                ["prlimit", f"--nofile={most}", "--", agent.program, "-c", agent.conf, "--foreground"]
            ),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            _, text = started.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            started.kill()
            raise
        check(started.returncode in (1, 127) and text, f"with {most} descriptors", started.returncode, text)
        statuses.add(started.returncode)
    check(1 in statuses, "the agent got as far as to fail", statuses)


def test_large_service(site):
    """The same for a service of many prefixes, whose protocols are two."""
    all_up(site)
    edge = site.edges[0]
    edge.agent.config["services"]["dns"]["prefixes"].update(
        {f"198.18.{n // 250}.{n % 250}/32": {"weight": 5, "address_check": False} for n in range(MANY)}
    )
    edge.agent.reload()
    last = f"198.18.{(MANY - 1) // 250}.{(MANY - 1) % 250}/32"
    edge.agent.wait_prefix(last, timeout=20, wanted="announce", announced=True)
    edge.agent.wait_status(lambda s: s["bird"]["settled"], timeout=20, what="settled")
    check_path(site, edge.host.path("strace-many"))


main(make_site)
