"""A06: the same /32 from another source: withdrawn here, still announced.

An edge whose `protocol direct` covers lo and which exports everything: the addresses are in BIRD's
table twice. Ours wins while it is announced (preference 250 against 240) with its weight; once it is
withdrawn the router still has the prefix, and the agent says so.
"""

import time

from lib.case import check, eventually, main
from lib.site import Site

DNS, DNS6, WEB = "192.0.2.53/32", "2001:db8::53/128", "192.0.2.80/32"
DIRECT = 'protocol direct lo { ipv4; ipv6; interface "lo"; }\n'


def make_site():
    site = Site(edges=2)
    edge = site.edges[0]
    loose = edge.bird.config.replace("export where redshank_export_med()", "export filter loose")
    loose = loose.replace("protocol device", "filter loose { redshank_export_med(); accept; }\n" + DIRECT + "protocol device", 1)
    edge.tight = edge.bird.config
    edge.bird.write_config(loose)
    edge.bird.configure()
    eventually(lambda: "edge1" in site.routes(DNS), 10, "the direct route alone is announced")
    site.start_agents()
    return site


def test_ours_wins(site):
    """While it is announced the router has ours, with its weight."""
    edge = site.edges[0]
    eventually(lambda: site.routes(DNS)["edge1"].med == 100, 5, lambda: f"MED 100: {site.routes(DNS)}")
    edge.agent.wait_prefix(DNS, announced=True, exported=1, elsewhere=None)


def test_withdrawn_and_still_there(site):
    """Withdrawn: not announced by us, but loud that protocol lo still is; once, and in the status."""
    edge = site.edges[0]
    mark = len(edge.agent.text())
    edge.nsd.kill()
    edge.agent.wait_prefix(DNS, wanted="withdraw", announced=False, exported=0)
    line = edge.agent.wait_log(f"prefix {DNS}: withdrawn here, but BIRD still announces it", after=mark)
    check("protocol lo" in line, "names the protocol", line)
    eventually(lambda: "lo" in str(edge.agent.prefix(DNS).get("elsewhere")), 5, lambda: f"{edge.agent.prefix(DNS)}")
    check("edge1" in site.routes(DNS), "the router indeed still has it")
    begun = time.time()
    eventually(lambda: time.time() - begun > 1.5, 5, "a tick or two")
    check(edge.agent.text()[mark:].count(f"prefix {DNS}: withdrawn here") == 1, "said once")


def test_cured(site):
    """The operator tightens the export line: gone at last, and the agent says that, too."""
    edge = site.edges[0]
    mark, begun = len(edge.agent.text()), time.time()
    edge.bird.write_config(edge.tight.replace("protocol device", DIRECT + "protocol device", 1))
    edge.bird.configure()
    site.wire.wait_withdraw("edge1", DNS, since=begun)
    edge.agent.wait_log(f"prefix {DNS}: no longer announced by anybody else", after=mark)
    edge.nsd.start()
    site.wire.wait_announce("edge1", DNS, since=begun, med=100)
    edge.agent.wait_prefix(DNS, announced=True, exported=1, elsewhere=None)


main(make_site)
