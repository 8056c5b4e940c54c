"""Neighbours that a real BIRD shows: by other servers' routes for the same prefixes, which the routers pass on.

Three edges in one AS; the router reflects to each what the others announce, all of it (add-path). An agent that knows
only names finds the others at the next hops of these routes; a route that is gone takes its server out of the count,
also where its agent says nothing any more.
"""

import signal
import time

from lib.case import check, eventually, main
from lib.shedsite import Neighbours, address, busy, load_by_numbers, wait_started
from lib.site import Site
from lib.wire import WITHDRAW

PARTS = {"192.0.2.101/32": 28, "192.0.2.102/32": 26, "192.0.2.103/32": 24, "192.0.2.104/32": 22}
STRANGER = "198.51.100.2"  # the client, on which nobody listens


def reflect(site):
    """The router passes on to each edge what the others announce; they import it. Before the agents start."""
    def rewrite(bird, *pairs):
        text = bird.config
        for old, new in pairs:
            check(old in text, f"bird.conf has {old!r}", text)
            text = text.replace(old, new)
        bird.write_config(text)
        bird.configure()

    rewrite(site.bird, ("export none;", "add paths tx; export where source ~ [RTS_BGP, RTS_STATIC];"), ("\tdirect;", "\tdirect;\n\trr client;"))
    for edge in site.edges:
        rewrite(edge.bird, ("import none;", "import all; add paths rx;"))
    site.wait_sessions()


def make_site():
    site = Site(edges=3, services=False, ibgp=True)
    reflect(site)
    site.circle = Neighbours(site)
    for edge in site.edges:
        for prefix in PARTS:
            edge.add_address(prefix.split("/")[0])
        edge.nsd.start()
        load_by_numbers(edge, PARTS, 40)
        edge.agent.config["services"] = {"dns": {
            "prefixes": {prefix: 100 for prefix in PARTS},
            "floor": 1,
            "checks": {"process": {"type": "process", "pidfile": edge.nsd.pidfile}},
        }}
        edge.agent.config["shed"] = {"over": "1s", "settle": "12s", "under": "10s", "back_off": "1s"}
        edge.agent.config["neighbours"]["members"] = {edge.name: "bird" for edge in site.edges}
    site.started = time.time()
    site.start_agents()
    return site


def member(site, name):
    return site.edges[0].agent.status()["neighbours"]["members"][name]


def next_hops(site, prefix):
    """Those of the BGP routes of edge1's BIRD."""
    return {route.attributes["BGP.next_hop"] for route in site.edges[0].bird.routes(prefix, "master4") if "BGP.next_hop" in route.attributes}


def obstacles(site):
    """{prefix: (what stands in the way of shedding it, whom that is about)}, by edge1's status."""
    prefixes = site.edges[0].agent.status()["services"]["dns"]["prefixes"]
    return {name: (one["shed"]["why"], one["shed"]["neighbour"]) for name, one in prefixes.items()}


def test_found(site):
    """Two names without addresses are found at the next hops of their routes, and report."""
    edge1, edge2, edge3 = site.edges
    for prefix in PARTS:
        eventually(lambda p=prefix: next_hops(site, p) == {address(edge2), address(edge3)}, 20,
                   lambda p=prefix: f"routes of the others for {p}: {next_hops(site, p)}")
    site.circle.wait_fresh(timeout=30)
    for edge in (edge2, edge3):
        seen = member(site, edge.name)
        check(seen["address"].startswith(address(edge) + ":") and seen["from"] == "members", "at its own address", seen)
    warnings = edge1.agent.status()["bird"]["warnings"]
    check(not warnings, "nothing about their routes is warned of", warnings)


def test_stranger(site):
    """A route of somebody who is no neighbour makes nobody one, and costs nothing."""
    prefix = next(iter(PARTS))
    site.bird.write_config(site.bird.config + f"\nprotocol static stranger {{ ipv4; route {prefix} via {STRANGER}; }}\n", keep=False)
    site.bird.configure()
    eventually(lambda: STRANGER in next_hops(site, prefix), 10, lambda: f"it is in the table: {next_hops(site, prefix)}")
    reports = {name: member(site, name)["reports"] for name in ("edge2", "edge3")}
    eventually(lambda: all(member(site, name)["reports"] > n + 5 for name, n in reports.items()), 20, "reports go on")
    check(site.circle.fresh(site.edges[0]) == {"edge2", "edge3"}, "the two, and nobody else", site.circle.fresh(site.edges[0]))
    site.bird.repair_config()
    site.bird.configure()


def test_gone(site):
    """Whose agent is silent stands in the way while his route is there; when that is gone he counts no more, and something is shed."""
    edge1, edge2, edge3 = site.edges
    wait_started(site.started)
    edge3.agent.send_signal(signal.SIGSTOP)
    eventually(lambda: member(site, "edge3")["state"] == "stale", 10, lambda: member(site, "edge3"))
    began = time.time()
    busy(edge1, 96)
    eventually(lambda: set(obstacles(site).values()) == {("tier_unknown", "edge3")}, 20, lambda: f"in the way: {obstacles(site)}")
    check(not site.wire.since(began, kinds=(WITHDRAW,)), "nothing is shed", site.wire.tail())
    killed = edge3.bird.kill()
    gone = eventually(lambda: [e for e in site.wire.since(killed, edge="edge1", kinds=(WITHDRAW,))], 40,
                      lambda: f"edge1 sheds: {obstacles(site)}\n{edge1.agent.ctl('explain', 'dns').stdout}")[0]
    busy(edge1, 78)  # as it would be without that prefix
    site.shed = gone
    promises = edge1.agent.ctl("explain", gone.prefix).stdout
    check("edge2" in promises, "by the promise of the other", promises)
    check(next_hops(site, gone.prefix) == {address(edge2)}, "whose route is there", next_hops(site, gone.prefix))
    check(member(site, "edge3")["state"] in ("stale", "silent"), "the silent one is as silent as before", member(site, "edge3"))


def test_back(site):
    """With his route he counts again, and what was shed returns."""
    edge1, _, edge3 = site.edges
    edge3.bird.start()
    edge3.agent.send_signal(signal.SIGCONT)
    for prefix in PARTS:
        eventually(lambda p=prefix: address(edge3) in next_hops(site, p), 30, lambda p=prefix: f"its routes are back: {next_hops(site, p)}")
    eventually(lambda: site.circle.fresh(edge1) == {"edge2", "edge3"}, 20, lambda: site.circle.fresh(edge1))
    busy(edge1, 40)
    site.wire.wait_announce("edge1", site.shed.prefix, 60, since=site.shed.time)


main(make_site)
