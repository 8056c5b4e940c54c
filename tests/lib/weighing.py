"""Weights as the router sees them: the tests of netns/weights-bird.py and netns/weights-frr.py.

Nothing is read at the edge, where BIRD shows attributes that it never sends: MED, local preference,
path and communities are those of the router's table, shares are those of a client's flows. The
router is a BIRD or an FRR; what an edge's bird.conf says is one of the snippets of docs/bird.md.
"""

import time

from lib.case import check, eventually
from lib.flows import Flows
from lib.fragments import fragment
from lib.site import Site
from lib.wire import ANNOUNCE, WITHDRAW

DNS, DNS6, WEB = "192.0.2.53/32", "2001:db8::53/128", "192.0.2.80/32"
FAR, FAR6 = "192.0.2.90/32", "2001:db8::90/128"  # on no host: announced all the same
GRACEFUL_SHUTDOWN = (65535, 0)
WORST = 65535

# What the network team gives every server: rows of all nodes.
TABLE = {"edge1": {DNS: 50, DNS6: 300}, "edge2": {DNS: 60, "203.0.113.1/32": 7}}


class Sites:
    """The sites of one router's kind; the one in use is kept while the next test wants the same."""

    def __init__(self, router):
        self.router = router
        self.wanted = None
        self.site = None

    def of(self, **wanted):
        if self.site and self.wanted != wanted:
            found = self.site.problems()
            self.close()
            check(not found, "\n".join(found))
        if not self.site:
            self.site = Site(edges=2, router=self.router, **wanted)
            self.wanted = wanted
            for edge in self.site.edges:
                edge.agent.config["services"]["far"] = {
                    "prefixes": {FAR: WORST, FAR6: WORST}, "address_check": False,
                }
        return self.site

    def problems(self):
        return self.site.problems() if self.site else []

    def report(self):
        return self.site.report() if self.site else ""

    def close(self):
        if self.site:
            self.site.close()
            self.site = None


def prefixes(edge, service, changes):
    """Sets prefixes of a service in the agent's configuration: {prefix: weight or object}."""
    edge.agent.config["services"][service]["prefixes"].update(changes)


def start(site):
    """The agents start, or take their configuration again where they run."""
    for edge in site.edges:
        if edge.agent.process and edge.agent.process.alive():
            edge.agent.reload()
        else:
            edge.agent.start()
    for edge in site.edges:
        for service in edge.agent.config["services"].values():
            for prefix in service["prefixes"]:
                site.wait_announced(prefix, edge.name)


def wait_seen(site, prefix, what, expected):
    """Until the router's table has {edge: value of the Route's attribute} for the prefix."""

    def seen():
        return {edge: getattr(route, what) for edge, route in site.routes(prefix).items()}

    eventually(lambda: seen() == expected, 10, lambda: f"{what} of {prefix} is {expected}, last seen {seen()}")


def updates(site, since):
    return [(e.edge, e.kind, e.prefix, e.med) for e in site.wire.since(since)]


def med_site(sites):
    """Both edges announce with MED; edge1 by the fleet's table, with communities."""
    new = sites.site is None or sites.wanted != {}
    site = sites.of()
    if not new:
        return site
    one, two = site.edges
    prefixes(one, "dns", {
        DNS: {"weight": 100, "communities": ["64501:53", "64501:100"], "large_communities": ["64501:1:53"]},
        DNS6: {"weight": 100, "communities": ["64501:53"], "large_communities": ["64501:1:53", "64501:4294967295:0"]},
    })
    prefixes(one, "web", {WEB: 0})
    prefixes(two, "web", {WEB: {"weight": 7, "communities": ["64501:80"]}})
    for edge in site.edges:
        edge.agent.config["weights"] = TABLE
    start(site)
    return site


def test_med(sites):
    """MED at the router is the row of the fleet's table, or else the service's own weight: 0 to 65535."""
    site = med_site(sites)
    wait_seen(site, DNS, "med", {"edge1": 50, "edge2": 60})
    wait_seen(site, DNS6, "med", {"edge1": 300, "edge2": 200})
    wait_seen(site, WEB, "med", {"edge1": 0, "edge2": 7})
    for prefix in (FAR, FAR6):
        wait_seen(site, prefix, "med", {"edge1": WORST, "edge2": WORST})
    check(not site.routes("203.0.113.1/32"), "a row announces nothing by itself")
    for prefix, best in ((DNS, "edge1"), (DNS6, "edge2"), (WEB, "edge1")):
        eventually(lambda p=prefix, b=best: site.best(p) == b, 10, f"{best} is the best for {prefix}")
    eventually(lambda: site.ask() == "edge1", 10, "IPv4 goes to the lower weight")
    eventually(lambda: site.ask("2001:db8::53") == "edge2", 10, "IPv6 goes to the lower weight")


def test_communities(sites):
    """Communities and large communities arrive as configured, in both families, and MED beside them."""
    site = med_site(sites)
    expected = {
        DNS: ({(64501, 53), (64501, 100)}, {(64501, 1, 53)}, 50),
        DNS6: ({(64501, 53)}, {(64501, 1, 53), (64501, 4294967295, 0)}, 300),
        WEB: (set(), set(), 0),
    }
    for prefix, (communities, large, med) in expected.items():
        route = site.wait_announced(prefix, "edge1")
        check(set(route.communities) == communities, f"communities of {prefix}", route)
        check(set(route.large_communities) == large, f"large communities of {prefix}", route)
        check(route.med == med and route.as_path == [64501], f"MED and path of {prefix}", route)
    check(site.routes(WEB)["edge2"].communities == [(64501, 80)], "the other server's own", site.routes(WEB))


def test_change(sites):
    """A new row by HUP: one configure, one UPDATE with the new MED, no withdrawal, no lost query."""
    site = med_site(sites)
    agent = site.edges[0].agent
    agent.wait_status(lambda s: s["bird"]["settled"], what="settled")
    asker = site.asker(rate=200)
    asker.wait_served("edge1")
    for weight, by in ((500, "edge2"), (50, "edge1")):
        begun = site.moment()
        sent = agent.status()["bird"]["commands_sent"]
        agent.config["weights"] = {**TABLE, "edge1": {DNS: weight, DNS6: 300}}
        agent.reload()
        site.wire.wait_announce("edge1", DNS, since=begun, med=weight)
        wait_seen(site, DNS, "med", {"edge1": weight, "edge2": 60})
        asker.wait_served(by, since=begun)
        agent.wait_status(lambda s: s["bird"]["settled"], what="settled")
        agent.wait_prefix(DNS, weight=weight, announced=True, exported=1)
        check(updates(site, begun) == [("edge1", ANNOUNCE, DNS, weight)], "one UPDATE", updates(site, begun))
        check(agent.status()["bird"]["commands_sent"] == sent + 1, "one configure", agent.status()["bird"])
        check(set(site.routes(DNS)["edge1"].communities) == {(64501, 53), (64501, 100)}, "the communities stay")
    check(asker.finish(0) == 0, "no query was lost", asker.summary())


def test_last_resort(sites):
    """A second route at the worst weight changes nothing while the first stands, and dies with it."""
    site = med_site(sites)
    edge = site.edges[0]
    held = dict(edge.agent.config["services"]["dns"]["prefixes"])
    begun = site.moment()
    prefixes(edge, "dns", {p: {**v, "last_resort": True} for p, v in held.items()})
    edge.agent.reload()
    eventually(lambda: "redshank:dns:192.0.2.53:last" in edge.bird.protocols(), 10, "the second route's protocol")
    edge.agent.wait_status(lambda s: s["bird"]["settled"], what="settled")
    check(updates(site, begun) == [], "the router is told nothing", updates(site, begun))
    killed = edge.nsd.kill()
    for prefix in (DNS, DNS6):
        site.wire.wait_withdraw("edge1", prefix, since=killed)
    site.wait_route(DNS, {"edge2"})
    check(
        sorted(updates(site, killed)) == [("edge1", WITHDRAW, DNS, None), ("edge1", WITHDRAW, DNS6, None)],
        "gone at once, without a step at the worst weight", updates(site, killed),
    )
    back = site.moment()
    edge.nsd.start()
    site.wire.wait_announce("edge1", DNS6, since=back)
    wait_seen(site, DNS, "med", {"edge1": 50, "edge2": 60})
    prefixes(edge, "dns", held)
    edge.agent.reload()
    eventually(lambda: "redshank:dns:192.0.2.53:last" not in edge.bird.protocols(), 10, "the protocol goes")


def test_demotion(sites):
    """`disable` of the first route: MED from its weight to 65535 in one UPDATE, and back; never withdrawn."""
    site = med_site(sites)
    edge = site.edges[0]
    edge.agent.stop()
    site.wait_route(DNS, {"edge2"})
    edge.write_fragment("dns", fragment("dns", f"{DNS}=50,0,last", f"{DNS6}=50,0,last"))
    edge.bird.configure()
    for prefix in (DNS, DNS6):
        wait_seen(site, prefix, "med", {"edge1": 50, "edge2": site.routes(prefix)["edge2"].med})
    for prefix, name in ((DNS, "redshank:dns:192.0.2.53"), (DNS6, "redshank:dns:2001:db8::53")):
        for command, med, communities in (("disable", WORST, [GRACEFUL_SHUTDOWN]), ("enable", 50, [])):
            begun = time.time()
            check(edge.birdc(f'{command} "{name}"').code == "0000", command)
            site.wire.wait_announce("edge1", prefix, since=begun, med=med)
            wait_seen(site, prefix, "med", {"edge1": med, "edge2": site.routes(prefix)["edge2"].med})
            route = site.routes(prefix)["edge1"]
            check(route.communities == communities, f"communities after {command}", route)
            if sites.router == "frr":  # honours RFC 8326 without being told
                check((route.local_pref == 0) == (command == "disable"), "local preference", route)
            check(updates(site, begun) == [("edge1", ANNOUNCE, prefix, med)], "one UPDATE", updates(site, begun))
            best = "edge2" if med == WORST else "edge1"
            eventually(lambda p=prefix, b=best: site.best(p) == b, 10, f"{best} is the best for {prefix}")
    # A demoted prefix that an agent finds is kept so until its checks have passed.
    edge.write_fragment("dns", fragment("dns", f"{DNS}=50,0,last", f"{DNS6}=50,0,last", wanted="demote"))
    edge.bird.configure()
    wait_seen(site, DNS, "med", {"edge1": WORST, "edge2": 60})
    wait_seen(site, DNS6, "med", {"edge1": WORST, "edge2": 200})
    prefixes(edge, "dns", {DNS: {"last_resort": True}, DNS6: {"last_resort": True}})
    begun = time.time()
    edge.agent.start()
    site.wire.wait_announce("edge1", DNS, since=begun, med=50)
    site.wire.wait_announce("edge1", DNS6, since=begun, med=300)
    wait_seen(site, DNS, "med", {"edge1": 50, "edge2": 60})
    seen = [u for u in updates(site, begun) if u[2] in (DNS, DNS6)]
    check(sorted(seen) == [("edge1", ANNOUNCE, DNS, 50), ("edge1", ANNOUNCE, DNS6, 300)], "one UPDATE each", seen)


def test_prepends(sites):
    """Prepends: as often as configured, 10 at most; the shorter path wins, in both families."""
    site = sites.of(export="redshank_export_prepend(64501)")
    one, two = site.edges
    prefixes(one, "dns", {DNS: {"weight": 1, "prepend": 3}, DNS6: {"weight": 1, "prepend": 10}})
    prefixes(two, "dns", {DNS: {"weight": 9, "prepend": 1}, DNS6: {"weight": 9}})
    start(site)
    wait_seen(site, DNS, "as_path", {"edge1": [64501] * 4, "edge2": [64501] * 2})
    wait_seen(site, DNS6, "as_path", {"edge1": [64501] * 11, "edge2": [64501]})
    for prefix, address in ((DNS, "192.0.2.53"), (DNS6, "2001:db8::53")):
        wait_seen(site, prefix, "med", {"edge1": None, "edge2": None})
        eventually(lambda p=prefix: site.best(p) == "edge2", 10, f"the shorter path is the best for {prefix}")
        eventually(lambda a=address: site.ask(a) == "edge2", 10, f"edge2 answers at {address}")
    begun = site.moment()
    prefixes(one, "dns", {DNS: {"weight": 1}})
    one.agent.reload()
    wait_seen(site, DNS, "as_path", {"edge1": [64501], "edge2": [64501] * 2})
    eventually(lambda: site.ask() == "edge1", 10, "edge1 has the shorter path now")
    site.wire.wait_announce("edge1", DNS, since=begun)
    check(updates(site, begun) == [("edge1", ANNOUNCE, DNS, None)], "by one UPDATE", updates(site, begun))


def test_local_preference(sites):
    """iBGP: local preference is top minus weight, 0 at least; the highest wins, in both families."""
    site = sites.of(export="redshank_export_local_pref(200)", ibgp=True)
    one, two = site.edges
    prefixes(one, "dns", {DNS: {"weight": 50, "communities": ["64500:53"]}, DNS6: 150})
    prefixes(two, "dns", {DNS: 100, DNS6: 100})
    start(site)
    wait_seen(site, DNS, "local_pref", {"edge1": 150, "edge2": 100})
    wait_seen(site, DNS6, "local_pref", {"edge1": 50, "edge2": 100})
    wait_seen(site, FAR, "local_pref", {"edge1": 0, "edge2": 0})
    wait_seen(site, DNS, "communities", {"edge1": [(64500, 53)], "edge2": []})
    eventually(lambda: site.ask() == "edge1", 10, "IPv4 goes to the lower weight")
    eventually(lambda: site.ask("2001:db8::53") == "edge2", 10, "IPv6 goes to the lower weight")
    begun = site.moment()
    one.agent.config["weights"] = {"edge1": {DNS: 101, DNS6: 99}}
    one.agent.reload()
    wait_seen(site, DNS, "local_pref", {"edge1": 99, "edge2": 100})
    wait_seen(site, DNS6, "local_pref", {"edge1": 101, "edge2": 100})
    eventually(lambda: site.ask() == "edge2" and site.ask("2001:db8::53") == "edge1", 10, "the clients move")
    for prefix in (DNS, DNS6):
        site.wire.wait_announce("edge1", prefix, since=begun)
    seen = sorted((e, k, p) for e, k, p, _ in updates(site, begun))
    check(seen == [("edge1", ANNOUNCE, DNS), ("edge1", ANNOUNCE, DNS6)], "one UPDATE each", seen)


def next_hops(site, prefix):
    """The edges to which the router's kernel forwards the prefix."""
    family = "-6" if ":" in prefix else "-4"
    words = site.router.run(["ip", family, "route", "show", "exact", prefix]).stdout.split()
    return {words[at + 1] for at, word in enumerate(words) if word == "dev"}


def wait_next_hops(site, prefix, edges):
    eventually(
        lambda: next_hops(site, prefix) == edges, 10,
        lambda: f"the kernel forwards {prefix} to {sorted(edges)}, last seen {sorted(next_hops(site, prefix))}",
    )


def share(served):
    return {edge: served.count(edge) for edge in ("edge1", "edge2", None) if edge in served}


def check_shared(served, what):
    """200 flows: fewer than 60 at one of two edges happens once in 100 million runs."""
    counted = share(served)
    check(set(counted) == {"edge1", "edge2"} and min(counted.values()) >= 60, what, counted)


def test_equal_weights(sites):
    """Equal weights: the router shares a client's flows over both edges; unequal ones: the lower has all."""
    site = sites.of(ecmp=True)
    for edge in site.edges:
        edge.agent.config["weights"] = {e: {DNS: 100, DNS6: 100} for e in ("edge1", "edge2")}
    start(site)
    for prefix in (DNS, DNS6):
        wait_next_hops(site, prefix, {"edge1", "edge2"})
        with Flows(site.client, prefix.split("/")[0], 200) as flows:
            first = flows.ask()
            check_shared(first, f"both edges have a share of {prefix}")
            check(flows.ask() == first, "a flow stays where it is")
    for weight, edges in ((90, {"edge1"}), (100, {"edge1", "edge2"})):
        site.edges[0].agent.config["weights"]["edge1"] = {DNS: weight, DNS6: weight}
        site.edges[0].agent.reload()
        for prefix in (DNS, DNS6):
            wait_next_hops(site, prefix, edges)
            with Flows(site.client, prefix.split("/")[0], 200) as flows:
                check(set(flows.ask()) == edges, f"weight {weight} against 100: {sorted(edges)}", prefix)


def test_only_its_flows_move(sites):
    """One of two sharing edges dies: only its flows move, the other's never miss an answer."""
    site = sites.of(ecmp=True)
    edge = site.edges[0]
    for prefix in (DNS, DNS6):
        wait_next_hops(site, prefix, {"edge1", "edge2"})
    with Flows(site.client, "192.0.2.53", 200) as four, Flows(site.client, "2001:db8::53", 200) as six:
        before = {flows: flows.ask() for flows in (four, six)}
        for served in before.values():
            check_shared(served, "both edges have a share")
        killed = edge.nsd.kill()
        for flows, was in before.items():
            now = flows.ask(2.0)
            left = [n for was_by, n in zip(was, now) if was_by == "edge2"]
            check(set(left) == {"edge2"}, "no flow of edge2 moved or missed an answer", share(left))
        for prefix in (DNS, DNS6):
            site.wire.wait_withdraw("edge1", prefix, since=killed)
            wait_next_hops(site, prefix, {"edge2"})
        for flows in before:
            check(set(flows.ask()) == {"edge2"}, "every flow is served by the other edge")
        edge.nsd.start()
        for prefix in (DNS, DNS6):
            wait_next_hops(site, prefix, {"edge1", "edge2"})
        for flows in before:
            check_shared(flows.ask(), "both share again")

