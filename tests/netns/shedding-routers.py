"""What routers must do for shedding: the snippets of docs/shedding.md, loaded as they stand into a real BIRD
and a real FRR, and what their kernels then do with a prefix that one of three edges demotes or sheds.

Two edges are in one AS, the third, which is the one that demotes, in another: MED is not compared between
them unless the router is told to.
"""

import json
import os
import re

from lib import birds, frr
from lib.agentctl import ROOT
from lib.case import check, eventually, main, skip
from lib.site import Site

PREFIX = "192.0.2.53/32"
OTHER_AS = 64502
WORST = 65535


def snippet(language):
    with open(os.path.join(ROOT, "docs", "shedding.md"), encoding="utf-8") as f:
        found = re.findall(rf"^```{language}\n(.*?)^```$", f.read(), re.M | re.S)
    check(len(found) == 1, f"one snippet for {language}", found)
    return found[0]


def edge_config(plain):
    """An edge's bird.conf; the third edge has an AS of its own."""

    def config(host, index, *arguments, **keywords):
        text = plain(host, index, *arguments, **keywords)
        return text.replace(f"local as {birds.EDGE_AS};", f"local as {OTHER_AS};") if index == 3 else text

    return config


def edge_as(index):
    return OTHER_AS if index == 3 else birds.EDGE_AS


def bird_router(text):
    """The router's bird.conf: what every one has, the snippet, and a session for each edge."""

    def config(host, edges, *_):
        sessions = "".join(
            f"protocol bgp edge{i}_4 from edge {{ neighbor 198.51.100.{4 * i + 2} as {edge_as(i)}; passive on; }}\n"
            for i in range(1, edges + 1))
        return f'log "{host.path("bird.log")}" all;\nrouter id 198.51.100.1;\nprotocol device {{ scan time 10; }}\n{text}\n{sessions}'

    return config


def frr_router(plain, text):
    """bgpd.conf as for any site, one path and no comparison, and then the snippet."""

    def config(edges, *_):
        base = plain(edges)
        for address, name in frr.edges_of(edges).items():
            if name.startswith("edge3"):
                base = base.replace(f"neighbor {address} remote-as {birds.EDGE_AS}", f"neighbor {address} remote-as {OTHER_AS}")
        base = base.replace(" bgp bestpath as-path multipath-relax\n", "")
        return base + text

    return config


class Router:
    """A site behind such a router. No agents: the fragments are the test's own words."""

    def __init__(self, kind, text):
        plain = birds.edge_config, birds.router_config, frr.router_config
        birds.edge_config = edge_config(plain[0])
        birds.router_config, frr.router_config = bird_router(text), frr_router(plain[2], text)
        wait = Site.wait_sessions
        Site.wait_sessions = lambda site: eventually(
            lambda: site.bird.established() >= {f"edge{i}_4" for i in (1, 2, 3)}, 20, lambda: f"sessions: {site.bird.established()}")
        try:
            self.site = Site(edges=3, services=False, router=kind)
        finally:
            birds.edge_config, birds.router_config, frr.router_config = plain
            Site.wait_sessions = wait

    def weigh(self, *weights):
        """Each edge announces the prefix at this weight; None: not at all."""
        for edge, weight in zip(self.site.edges, weights):
            route = f"\troute {PREFIX} unreachable {{ redshank_weight = {weight}; }};\n" if weight is not None else ""
            edge.write_fragment("dns", "protocol static 'redshank:dns:192.0.2.53' {\n"
                                f"\tipv4 {{ table redshank4; preference 250; }};\n{route}}}\n")
            edge.bird.configure()

    def shares(self):
        """The edges between which the router's kernel shares the prefix."""
        routes = json.loads(self.site.router.run(["ip", "-j", "route", "show", PREFIX]).stdout or "[]")
        return {hop["dev"] for route in routes for hop in route.get("nexthops", [route])}

    def wait_shares(self, edges, what):
        eventually(lambda: self.shares() == set(edges), 10, lambda: f"{what}: {sorted(edges)}, is {sorted(self.shares())}\n{self.site.bird.tail()}")


def try_snippet(kind, without):
    """The whole of what is asked of a router; `without` is the line that must be missed."""
    text = snippet(kind)
    check(without in text, f"{without!r} stands in the snippet", text)
    router = Router(kind, text)
    try:
        router.weigh(100, 100, 100)
        router.wait_shares({"edge1", "edge2", "edge3"}, "equals share")
        router.weigh(100, 100, WORST)
        router.wait_shares({"edge1", "edge2"}, "who demotes has no share, though its AS is another")
        router.weigh(100, None, WORST)
        router.wait_shares({"edge1"}, "who sheds has none")
        router.weigh(None, None, WORST)
        router.wait_shares({"edge3"}, "and who demotes is still there when all others are gone")
    finally:
        router.site.close()
    router = Router(kind, text.replace(without, ""))
    try:
        router.weigh(100, 100, WORST)
        router.wait_shares({"edge1", "edge2", "edge3"}, f"without {without!r} a demoted path has its share")
    finally:
        router.site.close()


def test_bird():
    """BIRD with the snippet shares between equals, and compares the weights of two ASes; without med metric it does not."""
    try_snippet("bird", "\tmed metric on;\n")


def test_frr():
    """FRR with the snippet does so, too; without always-compare-med it does not."""
    if frr.missing():
        skip("not installed: " + ", ".join(frr.missing()))
    try_snippet("frr", " bgp always-compare-med\n")


main()
