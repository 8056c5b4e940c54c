"""A20: a connect() that fails immediately is a failed attempt like any other.

"No route to host" and "network is unreachable" come from connect(2) itself and never reach the loop.
They count, once an interval, and the prefix leaves after `fall` of them; nothing spins meanwhile.
"""

import os
import socket
import time

from lib.case import check, main
from lib.site import Site

DNS = "192.0.2.53/32"
TARGET = "203.0.113.7"


def cpu_ticks(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def watched(site):
    """The edge's agent with a check of a far service, which answers at first."""
    edge = site.edges[0]
    edge.host.ip(f"addr add {TARGET}/32 dev lo")
    with edge.host.inside():
        site.listener = socket.create_server((TARGET, 5300))
    edge.agent.config["services"]["dns"]["checks"] = {"far": {"type": "tcp", "address": TARGET, "port": 5300}}
    edge.agent.start()
    site.wait_announced(DNS, "edge1")
    return edge


def leaves(site, edge, text):
    """The prefix leaves with this reason; then a second of the loop at rest."""
    site.wait_route(DNS, set())
    state = edge.agent.wait_check("dns", "far", state="down")
    check(text in state["reason"], f"the reason says {text!r}", state)
    check(TARGET in state["reason"], "the reason names the address", state)
    before, begun = cpu_ticks(edge.agent.pid), time.monotonic()
    while time.monotonic() - begun < 1.5:
        check(edge.agent.check("dns", "far")["state"] == "down", "it stays down")
        time.sleep(0.25)
    used = (cpu_ticks(edge.agent.pid) - before) / os.sysconf("SC_CLK_TCK")
    check(used < 0.5, "no busy loop: less than a third of a core", used)


def test_no_route_to_host(site):
    """An unreachable route: the attempt fails at once and counts."""
    edge = watched(site)
    edge.host.ip(f"addr del {TARGET}/32 dev lo", f"route add unreachable {TARGET}")
    leaves(site, edge, "No route to host")
    edge.host.ip(f"route del unreachable {TARGET}", f"addr add {TARGET}/32 dev lo")
    site.wait_announced(DNS, "edge1")


def test_network_is_unreachable(site):
    """No route at all: the same, with its own reason."""
    edge = site.edges[0]
    edge.host.ip(f"addr del {TARGET}/32 dev lo", "route del default")
    leaves(site, edge, "Network is unreachable")
    edge.host.ip(f"addr add {TARGET}/32 dev lo")
    site.wait_announced(DNS, "edge1")


main(lambda: Site(edges=1))
