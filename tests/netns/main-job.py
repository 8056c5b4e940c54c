"""The main job: a real BIRD announces what is healthy, and stops when it is not.

Two edges with nsd and nginx behind addresses that both announce; every assertion is on the router's
wire, the router's table or the client's answers, and on what the agent says of itself.
"""

import time

from lib.case import check, eventually, main
from lib.pulse import Pulse
from lib.site import Site
from lib.wire import ANNOUNCE, WITHDRAW

DNS, DNS6, WEB = "192.0.2.53/32", "2001:db8::53/128", "192.0.2.80/32"
PULSE = Pulse()


def changes(site, since, edge=None):
    """The UPDATEs since then, as (edge, kind, prefix)."""
    return [
        (e.edge, e.kind, e.prefix)
        for e in site.wire.since(since)
        if e.kind in (ANNOUNCE, WITHDRAW) and edge in (None, e.edge)
    ]


def test_announces(site):
    """Both edges announce what is healthy with their weights, and the client is served by the lowest."""
    site.start_agents()
    for prefix in (DNS, DNS6, WEB):
        routes = site.wait_route(prefix, {"edge1", "edge2"})
        check({e: r.med for e, r in routes.items()} == {"edge1": 100, "edge2": 200}, f"MED of {prefix}", routes)
    eventually(lambda: site.ask() == "edge1", what="edge1 answers the client")
    for edge in site.edges:
        edge.agent.wait_prefix(DNS, wanted="announce", announced=True, exported=1, reason="healthy")


def test_status_command(site):
    """redshankctl status shows wanted, announced, exported and the reason."""
    done = site.edges[0].agent.ctl("status")
    check(done.returncode == 0, "exit status", done)
    for word in ("dns", DNS, DNS6, "healthy", "process", "port"):
        check(word in done.stdout, f"the table names {word}", done.stdout)


def test_death(site):
    """A dead nsd loses its own prefixes, IPv4 and IPv6, and nothing else; the client moves on."""
    edge = site.edges[0]
    asker = site.asker(rate=200)
    asker.wait_served("edge1")
    mark = len(edge.agent.text())
    killed = edge.nsd.kill()
    for prefix in (DNS, DNS6):
        site.wire.wait_withdraw("edge1", prefix, since=killed)
    asker.wait_served("edge2", since=killed)
    site.wait_route(WEB, {"edge1", "edge2"})
    edge.agent.wait_prefix(DNS, wanted="withdraw", announced=False, exported=0, reason="unhealthy")
    line = edge.agent.wait_log("service dns: healthy -> unhealthy", after=mark)
    check("withdrawing 192.0.2.53/32, 2001:db8::53/128" in line and "has died" in line, "one line says it", line)
    check(edge.agent.text()[mark:].count("service dns: healthy") == 1, "one line a transition", edge.agent.text()[mark:])
    check(
        sorted(changes(site, killed)) == [("edge1", WITHDRAW, DNS), ("edge1", WITHDRAW, DNS6)],
        "two UPDATEs and no other",
        changes(site, killed),
    )
    asker.stop()


def test_return(site):
    """The repaired nsd earns its prefixes back, and the client returns without a lost query."""
    edge = site.edges[0]
    asker = site.asker(rate=200)
    asker.wait_served("edge2")
    begun = site.moment()
    edge.nsd.start()
    for prefix in (DNS, DNS6):
        site.wire.wait_announce("edge1", prefix, since=begun, med=100)
    asker.wait_served("edge1", since=begun)
    edge.agent.wait_prefix(DNS, announced=True, exported=1, reason="healthy")
    check(asker.finish(begun) == 0, "no query was lost", asker.summary(begun))
    check(len(changes(site, begun)) == 2, "two UPDATEs and no other", changes(site, begun))


def test_hang(site):
    """A hung nginx leaves within interval + timeout + (fall - 1) x max(fast_interval, timeout)."""
    edge = site.edges[0]
    begun = site.moment()
    edge.nginx.freeze()
    gone = site.wire.wait_withdraw("edge1", WEB, since=begun)
    bound = 0.3 + 0.3 + (2 - 1) * 0.3
    late = gone.time - begun - bound - PULSE.withheld(begun)
    check(late < 0.2, "within the bound (and 0.2 s for a busy machine)", gone.time - begun, late)
    edge.agent.wait_check("web", "page", state="down")
    check("timeout" in edge.agent.check("web", "page")["reason"], "the reason", edge.agent.check("web", "page"))
    check(edge.agent.check("web", "process")["state"] == "up", "the process lives")
    edge.nginx.thaw()
    site.wire.wait_announce("edge1", WEB, since=gone.time)
    check(all(e == "edge1" and p == WEB for e, _, p in changes(site, begun)), "only its own", changes(site, begun))


def test_address(site):
    """A prefix whose address is taken from the host leaves alone, and returns with it."""
    edge = site.edges[0]
    begun = site.moment()
    edge.remove_address("2001:db8::53")
    site.wire.wait_withdraw("edge1", DNS6, since=begun)
    edge.agent.wait_prefix(DNS6, reason="address_missing", announced=False, exported=0)
    check(changes(site, begun) == [("edge1", WITHDRAW, DNS6)], "one UPDATE", changes(site, begun))
    edge.add_address("2001:db8::53")
    site.wire.wait_announce("edge1", DNS6, since=begun)
    check(len(changes(site, begun)) == 2, "one more", changes(site, begun))


def test_rest(site):
    """Where nothing changes nothing is sent: no UPDATE and no command to BIRD in two seconds."""
    begun = site.moment()
    sent = [e.agent.status()["bird"]["commands_sent"] for e in site.edges]
    eventually(lambda: time.time() - begun > 2, 5, "two quiet seconds")
    check(changes(site, begun) == [], "no UPDATE", changes(site, begun))
    check([e.agent.status()["bird"]["commands_sent"] for e in site.edges] == sent, "no command")


main(lambda: Site(edges=2))
