"""A19: UDP to a closed port.

A port that nobody listens on is "port unreachable" within milliseconds, whether a reply is expected or
not. A port that swallows everything fails where a reply is expected, and is weak evidence where none
is. So is a closed port behind a firewall that drops ICMP. An error of an earlier attempt does not fail
the next one.
"""

import socket
import threading

from lib.case import check, main
from lib.site import Site
from lib.wait import until

DNS = "192.0.2.53/32"
CLIENT = "198.51.100.2"  # in a namespace of its own, behind the router
WEAK = "sent; no answer is expected: weak evidence"


class Port(threading.Thread):
    """A UDP port that swallows everything, or echoes it."""

    def __init__(self, host, address, port, echo=False):
        super().__init__(daemon=True)
        self.echo, self.got, self.closing = echo, 0, False
        with host.inside():
            self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self.sock.bind((address, port))
        self.sock.settimeout(0.05)
        self.start()

    def run(self):
        while not self.closing:
            try:
                data, peer = self.sock.recvfrom(4096)
            except TimeoutError:
                continue
            self.got += 1
            if self.echo:
                self.sock.sendto(data, peer)

    def close(self):
        """Closed when this returns: a socket lives while a thread waits in it."""
        self.closing = True
        self.join()
        self.sock.close()


def ask(port, address="192.0.2.53", **more):
    return {"type": "udp", "address": address, "port": port, "send": "ping", "interval": "300ms",
            "fast_interval": "250ms", "timeout": "200ms", **more}


def make_site():
    return Site(edges=1, services=False)


def use(site, checks, **service):
    agent = site.edges[0].agent
    agent.config["services"] = {"dns": {"prefixes": {DNS: 100}, "checks": checks, **service}}
    if agent.process and agent.process.alive():
        agent.reload()
    else:
        agent.start()
    until(lambda: set(agent.status()["services"]["dns"]["checks"]) == set(checks), 5, "the new checks")
    return agent


def expect(agent, name, state, reason):
    got = agent.wait_check("dns", name, state=state)
    check(reason in (got["reason"] or ""), f"{name} says {reason!r}", got)
    return got


def test_on_this_host(site):
    """Closed, silent and answering ports of this host, with and without an expected reply."""
    host = site.edges[0].host
    silent, echo = Port(host, "192.0.2.53", 5319), Port(host, "192.0.2.53", 5320, echo=True)
    agent = use(site, {
        "closed": ask(9), "closed-expect": ask(9, expect="pong"),
        "silent": ask(5319), "silent-expect": ask(5319, expect="pong"),
        "echo": ask(5320), "echo-expect": ask(5320, expect="ping"), "echo-other": ask(5320, expect="pong"),
    })
    expect(agent, "closed", "down", "192.0.2.53 port 9: port unreachable")
    expect(agent, "closed-expect", "down", "192.0.2.53 port 9: port unreachable")
    expect(agent, "silent", "up", WEAK)
    expect(agent, "silent-expect", "down", "timeout after 200ms")
    check(not expect(agent, "echo", "up", "")["reason"], "an answer is plain good")
    expect(agent, "echo-expect", "up", "")
    expect(agent, "echo-other", "down", 'expected "pong", got "ping"')
    check(silent.got > 0 and echo.got > 0, "they were asked")
    show = agent.ctl("status")
    check(WEAK in show.stdout, "weak evidence is shown", show.stdout)


def test_within_milliseconds(site):
    """A closed port is found out at once, though the timeout is ten seconds."""
    agent = use(site, {"port": ask(9, interval="10s", fast_interval="50ms", timeout="10s", expect="pong")})
    got = agent.wait_check("dns", "port", timeout=2, state="down")
    check("port unreachable" in got["reason"], "it says why", got)


def test_behind_a_firewall(site):
    """A closed port of another host; then its ICMP errors are dropped on their way."""
    agent = use(site, {"send-only": ask(9, CLIENT), "expect": ask(9, CLIENT, expect="pong")})
    expect(agent, "send-only", "down", f"{CLIENT} port 9: port unreachable")
    expect(agent, "expect", "down", f"{CLIENT} port 9: port unreachable")
    site.client.ip("rule add pref 100 ipproto 1 blackhole")
    expect(agent, "send-only", "up", WEAK)
    until(lambda: "timeout" in agent.check("dns", "expect")["reason"], 5, "a timeout")
    check(agent.check("dns", "expect")["state"] == "down", "still down")
    site.client.ip("rule del pref 100 ipproto 1 blackhole")
    expect(agent, "send-only", "down", "port unreachable")


def test_errors_of_earlier_attempts(site):
    """A port that is closed and opened: the prefix leaves and returns, and once open no attempt fails."""
    host = site.edges[0].host
    port = Port(host, "192.0.2.53", 5322)
    agent = use(site, {"port": ask(5322)})
    site.wait_announced(DNS, "edge1")
    port.close()
    agent.wait_check("dns", "port", state="down")
    site.wait_route(DNS, set())
    port = Port(host, "192.0.2.53", 5322)
    site.wait_announced(DNS, "edge1")
    until(lambda: port.got >= 6, 5, "some more attempts")
    outcomes = agent.check("dns", "port")["outcomes"]
    check(outcomes[-4:] == ["good"] * 4, "only good ones", outcomes)


main(make_site)
