"""A04: `disable` does not survive anybody's `configure`.

What is withdrawn stays withdrawn through every way in which somebody else may reconfigure, disable
or enable, and a configuration that BIRD had queued before the service died, too: that one was
parsed while the fragment still announced, and brings the protocol up again although `disable` was
acknowledged.
"""

import re
import time

from lib.case import check, eventually, main
from lib.pulse import Pulse
from lib.site import Site

DNS, DNS6, WEB = "192.0.2.53/32", "2001:db8::53/128", "192.0.2.80/32"
OURS = "redshank:dns:192.0.2.53"
PULSE = Pulse()
BULK = 400_000  # routes that BIRD needs a while to remove: that long it is reconfiguring


def make_site():
    site = Site(edges=2)
    site.start_agents()
    return site


def states(edge):
    return {n: p[2] for n, p in edge.bird.protocols().items() if n.startswith("redshank:dns:")}


def log_of(edge):
    with open(edge.bird.log, encoding="utf-8") as f:
        return f.read()


def settled(edge):
    return edge.agent.wait_status(lambda s: s["bird"]["settled"], timeout=10, what="settled")


def die(site, edge):
    begun = edge.nsd.kill()
    for prefix in (DNS, DNS6):
        site.wire.wait_withdraw("edge1", prefix, since=begun)
    edge.agent.wait_prefix(DNS, announced=False, exported=0)
    settled(edge)
    return begun


def quiet(site, since, seconds, what):
    """No announcement of dns by edge1 in that time."""
    eventually(lambda: time.time() - since > seconds, seconds + 5, what)
    bad = [e for e in site.wire.since(since) if e.kind == "announce" and e.prefix in (DNS, DNS6)]
    check(not bad, what, bad)


def test_configure(site):
    """configure, configure soft, configure undo: what is withdrawn is never announced."""
    edge = site.edges[0]
    die(site, edge)
    for command in ("configure", "configure soft", "configure undo", "configure"):
        begun = time.time()
        check(edge.birdc(command).code in ("0003", "0004"), command)
        quiet(site, begun, 0.3, f"nothing is announced by {command}")
        check(set(states(edge).values()) == {"down"}, f"down after {command}", states(edge))


def test_undo_of_up(site):
    """configure undo to a time when the service lived: withdrawn again at once, and counted."""
    edge = site.edges[0]
    begun = time.time()
    edge.nsd.start()
    site.wire.wait_announce("edge1", DNS, since=begun)
    settled(edge)
    edge.bird.configure()  # a configuration in which it is up,
    die(site, edge)
    edge.bird.configure()  # and one in which it is down
    settled(edge)
    before = edge.agent.status()["bird"]["repairs"]
    begun = time.time()
    edge.birdc("configure undo")
    back = site.wire.wait_announce("edge1", DNS, since=begun).time
    took = site.wire.wait_withdraw("edge1", DNS, since=back).time - back
    check(took < 1.0 + PULSE.withheld(begun), "within a second", took)
    eventually(lambda: edge.agent.status()["bird"]["repairs"] > before, 5, "a repair is counted")
    eventually(lambda: set(states(edge).values()) == {"down"}, 5, lambda: f"down again: {states(edge)}")
    eventually(lambda: "edge1" not in site.routes(DNS), 5, "gone from the router")
    settled(edge)


def test_enabled(site):
    """Somebody enables it by hand: withdrawn again at once, again and again."""
    edge = site.edges[0]
    for _ in range(3):
        begun = time.time()
        edge.birdc(f'enable "{OURS}"')
        eventually(lambda: states(edge)[OURS] == "down", 2, "down again")
        took = time.time() - begun
        check(took < 1.0 + PULSE.withheld(begun), "within a second", took)
    eventually(lambda: "edge1" not in site.routes(DNS), 5, "gone from the router")


def test_disabled(site):
    """Somebody disables what is announced: announced again; nobody else's prefix moves."""
    edge = site.edges[0]
    begun = time.time()
    edge.birdc('disable "redshank:web:*"')
    gone = site.wire.wait_withdraw("edge1", WEB, since=begun).time
    took = site.wire.wait_announce("edge1", WEB, since=begun).time - gone
    check(took < 1.0 + PULSE.withheld(begun), "within a second", took)
    settled(edge)
    edge.agent.wait_log("redshank:web:192.0.2.80 was changed by somebody")
    check({e.prefix for e in site.wire.since(begun) if e.edge == "edge1" and e.prefix} <= {WEB, DNS, DNS6}, "only it")


def bulk(site, edge, name):
    """bird.conf with a protocol of very many routes: changing its name makes BIRD remove them all."""
    lines = "".join(f"route 10.{i >> 16}.{i >> 8 & 255}.{i & 255}/32 blackhole;\n" for i in range(BULK))
    text = edge.plain + f"ipv4 table bulk;\nprotocol static {name} {{ ipv4 {{ table bulk; }};\n{lines}}}\n"
    edge.bird.write_config(text, keep=False)


def test_queued(site):
    """A queued configure, parsed before the death, resurrects the protocol: it is withdrawn again."""
    edge = site.edges[0]
    if not edge.nsd.process.alive():
        edge.nsd.start()
    for prefix in (DNS, DNS6):
        site.wait_announced(prefix, "edge1")
    settled(edge)
    edge.plain = edge.bird.config
    bulk(site, edge, "bulk1")
    edge.bird.configure()
    eventually(lambda: edge.birdc("configure status").lines[0][0] == "0003", 20, "BIRD is at rest")
    settled(edge)
    mark = len(log_of(edge))
    bulk(site, edge, "bulk2")
    # Queued behind each other; the second was parsed while the fragment says that dns is up.
    with edge.bird.control() as control:
        first = control.ask("configure")
        second = control.ask("configure")
    check((first.code, second.code) == ("0004", "0005"), "one runs, one is queued", first, second)
    killed = edge.nsd.kill()
    site.wire.wait_withdraw("edge1", DNS, since=killed)
    # BIRD 3 removes them in a moment, and has loaded the queued one before anything can die.
    queued = edge.birdc("configure status").lines[0][0] == "0005"
    check(queued or edge.bird.version() >= (3,), "the death came before the queued one was loaded")
    eventually(lambda: edge.birdc("configure status").lines[0][0] == "0003", 20, "BIRD is at rest")
    settled(edge)
    disables = re.findall(f"Disabling protocol {OURS}\n", log_of(edge)[mark:])
    seen = not queued or len(disables) >= 2
    check(seen, "the queued one brought it up again (else this test shows nothing)", disables)
    check(set(states(edge).values()) == {"down"}, "down in the end", states(edge))
    check("edge1" not in site.routes(DNS), "and gone from the router", site.routes(DNS))
    last = [e for e in site.wire.since(killed) if e.edge == "edge1" and e.prefix == DNS]
    check(last[-1].kind == "withdraw", "the last UPDATE withdraws", last)
    edge.agent.wait_prefix(DNS, announced=False, exported=0)


main(make_site)
