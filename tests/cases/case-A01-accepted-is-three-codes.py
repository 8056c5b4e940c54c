"""A01: "0004 Reconfiguration in progress" is not a failure.

Removing a protocol makes BIRD answer 0004, adding one 0003. Both are accepted: no alarm, no second
attempt; and what is wanted counts as done only when BIRD says 0003. (0004 for half a second, 0005,
0006 and 8002 are played in tests/unit/test-bird-apply.c.)
"""

import re
import time

from lib.case import check, eventually, main
from lib.site import Site

WEB, DNS = "192.0.2.80/32", "192.0.2.53/32"


def make_site():
    site = Site(edges=1, bird_extra="debug commands 2;")
    site.start_agents()
    return site


def configures(edge, since):
    with open(edge.bird.log, encoding="utf-8") as f:
        return re.findall(r"CLI: configure$", f.read()[since:], re.M)


def log_length(edge):
    return len(open(edge.bird.log, encoding="utf-8").read())


def step(edge, what):
    edge.agent.reload()
    return edge.agent.wait_status(lambda s: s["bird"]["settled"] and what(s["services"]), what="settled")


def test_plain(site):
    """What the real BIRD answers: 0004 when a protocol goes, 0003 when one comes."""
    edge = site.edges[0]
    plain = edge.bird.config
    edge.bird.write_config(plain + "protocol static somebody { ipv4; }\n")
    check(edge.bird.configure().code == "0003", "0003 for one more")
    edge.bird.write_config(plain)
    check(edge.bird.configure().code == "0004", "0004 for one less")


def test_removed_and_added(site):
    """A service removed (0004) and added (0003), five times: settled, one configure each, no alarm."""
    edge = site.edges[0]
    web = edge.agent.config["services"]["web"]
    edge.agent.wait_status(lambda s: s["bird"]["settled"], what="settled")
    for _ in range(5):
        mark, begun = log_length(edge), time.time()
        del edge.agent.config["services"]["web"]
        status = step(edge, lambda services: "web" not in services)
        site.wire.wait_withdraw("edge1", WEB, since=begun)
        check(not status["bird"]["alarm"], "no alarm after 0004", status["bird"])
        check("redshank:web:192.0.2.80" not in edge.bird.protocols(), "BIRD has forgotten it", edge.bird.protocols())
        check(len(configures(edge, mark)) == 1, "one configure", configures(edge, mark))
        edge.agent.config["services"]["web"] = web
        status = step(edge, lambda services: "web" in services)
        site.wire.wait_announce("edge1", WEB, since=begun)
        check(not status["bird"]["alarm"], "no alarm after 0003", status["bird"])
    text = edge.agent.text()
    check("refuse" not in text and "somebody" not in text.replace("by somebody, 20", ""), "nothing was taken for trouble", text)
    check(not [e for e in site.wire.since(begun) if e.prefix == DNS], "dns was not touched")


main(make_site)
