"""A02: one `configure` at a time, many changes in one.

Twelve services on a real BIRD: dying and living together they cost no `configure` at all, new
weights for all of them one; and no `configure` is sent before the one before it was answered.
(Twelve changes against a BIRD that reconfigures for half a second: tests/unit/test-bird-apply.c.)
"""

import os
import re
import time

from lib.case import check, eventually, main
from lib.site import Site

N = 12


def prefix(i):
    return f"192.0.2.{100 + i}/32"


def flag(site, i):
    return os.path.join(site.dir, f"flag-{i}")


def make_site():
    site = Site(edges=1, services=False, bird_extra="debug commands 2;")
    edge = site.edges[0]
    timing = {"interval": "100ms", "fast_interval": "100ms", "timeout": "100ms", "rise": 1, "fall": 1}
    edge.agent.config["services"] = {}
    for i in range(N):
        edge.add_address(prefix(i).split("/")[0])
        open(flag(site, i), "w").close()
        edge.agent.config["services"][f"s{i}"] = {
            "prefixes": {prefix(i): 100},
            "checks": {"flag": {"type": "exec", "command": ["/usr/bin/test", "-e", flag(site, i)], **timing}},
        }
    edge.agent.start()
    for i in range(N):
        site.wait_announced(prefix(i), "edge1")
    edge.agent.wait_status(lambda s: s["bird"]["settled"], what="settled")
    return site


def log_of(edge):
    with open(edge.bird.log, encoding="utf-8") as f:
        return f.read()


def test_health(site):
    """Twelve services die and return within a moment: not one configure."""
    edge = site.edges[0]
    mark, begun = len(log_of(edge)), time.time()
    for i in range(N):
        os.unlink(flag(site, i))
    for i in range(N):
        site.wire.wait_withdraw("edge1", prefix(i), since=begun)
    for i in range(N):
        open(flag(site, i), "w").close()
    for i in range(N):
        site.wire.wait_announce("edge1", prefix(i), since=begun)
    check(not re.findall(r"CLI: configure$", log_of(edge)[mark:], re.M), "no configure")


def test_weights(site):
    """New weights for all twelve: one configure, and twelve UPDATEs of one step each."""
    edge = site.edges[0]
    edge.agent.wait_status(lambda s: s["bird"]["settled"], what="settled")
    mark, begun = len(log_of(edge)), time.time()
    for i in range(N):
        edge.agent.config["services"][f"s{i}"]["prefixes"][prefix(i)] = 300
    edge.agent.reload()
    for i in range(N):
        site.wire.wait_announce("edge1", prefix(i), since=begun, med=300)
    edge.agent.wait_status(lambda s: s["bird"]["settled"], what="settled")
    check(len(re.findall(r"CLI: configure$", log_of(edge)[mark:], re.M)) == 1, "one configure")
    check(not [e for e in site.wire.since(begun) if e.kind == "withdraw"], "nobody was withdrawn")


def test_many_reloads(site):
    """Twelve reloads in a row: each configure is answered before the next is sent, and the last wins."""
    edge = site.edges[0]
    mark, begun = len(log_of(edge)), time.time()
    for i in range(N):
        edge.agent.config["services"][f"s{i}"]["prefixes"][prefix(i)] = 400 + i
        edge.agent.reload()
    for i in range(N):
        site.wire.wait_announce("edge1", prefix(i), since=begun, med=400 + i)
    edge.agent.wait_status(lambda s: s["bird"]["settled"], what="settled")
    order = re.findall(r"CLI: (configure)$|<INFO> (Reconfigured)$", log_of(edge)[mark:], re.M)
    for before, after in zip(order, order[1:]):
        check(before[0] != after[0], "a configure before the last one was done", order)


main(make_site)
