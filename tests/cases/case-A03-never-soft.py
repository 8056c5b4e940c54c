"""A03: filter lists and `configure soft`.

The agent keeps no lists that a filter tests: its routes change, so that BIRD runs the export filter
by itself, and the router has the new weight without a reload of any session. What it says to BIRD
is a short list of commands, in which `configure soft` and `reload` are not.
"""

import re
import time

from lib.case import check, main
from lib.site import Site

DNS, WEB = "192.0.2.53/32", "192.0.2.80/32"
SAID = re.compile(
    r"configure|configure status|configure check|(enable|disable) \"redshank:[^\"]*\"|show (status|protocols)"
    r"|show route \S+ (table all all|export '\w+')|echo .*|restrict|show .*"
)


def make_site():
    site = Site(edges=1, bird_extra="debug commands 2;")
    site.start_agents()
    return site


def test_weight(site):
    """A new weight is at the router, with the session up all the time; every command is one of ours."""
    edge = site.edges[0]
    edge.agent.wait_status(lambda s: s["bird"]["settled"], what="settled")
    begun = time.time()
    for weight in (300, 20):
        edge.agent.config["services"]["web"]["prefixes"][WEB] = weight
        edge.agent.reload()
        site.wire.wait_announce("edge1", WEB, since=begun, med=weight)
    killed = edge.nsd.kill()
    site.wire.wait_withdraw("edge1", DNS, since=killed)
    edge.agent.wait_prefix(DNS, announced=False, exported=0)
    check(not [e for e in site.wire.since(begun) if e.kind in ("opened", "closed")], "no session was touched")
    with open(edge.bird.log, encoding="utf-8") as f:
        commands = re.findall(r"CLI: (.*)$", f.read(), re.M)
    check("configure" in commands, "BIRD's log tells of commands", commands[:5])
    strange = [c for c in commands if not SAID.fullmatch(c)]
    check(not strange, "no other command is ever sent", strange[:5])


main(make_site)
