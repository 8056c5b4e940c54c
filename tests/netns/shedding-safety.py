"""Shedding never leaves a prefix below its floor, whatever breaks: the router's table, by the wire, is the judge.

Four edges, a floor of three: each shed needs the promise of all the others. While something is shed a
receiver freezes, loses its certificates' authority, or is killed, and then its service dies, which nobody
may hold: by then the one that shed must have taken its prefix back. Loads are numbers that the test writes;
agents, BIRDs, certificates and deaths are real. tests/run --long freezes receivers at six moments of a grant, and kills one.
"""

import os
import time

from lib.case import check, eventually, main
from lib.chance import chance
from lib.neighbours import Authority
from lib.pulse import Pulse
from lib.shedsite import Neighbours, busy, history, load_by_numbers, lowest, told, touch, wait_started
from lib.site import Site
from lib.wire import WITHDRAW

PARTS = {"192.0.2.101/32": 28, "192.0.2.102/32": 26, "192.0.2.103/32": 24, "192.0.2.104/32": 22}
FLOOR = 3
LONG = os.environ.get("REDSHANK_LONG")
PULSE = Pulse()
RESTORED = 10.0  # a holder's lease ends 7.8 s after it was sent the last time
PATIENCE = 110.0  # who was refused again and again waits for 12 s, and then for 24, 48 and 96 s, at most


def upstream(edge):
    return edge.host.path("upstream-is-gone")


def make_site():
    site = Site(edges=4)
    site.circle = Neighbours(site)
    for edge in site.edges:
        for prefix in PARTS:
            edge.add_address(prefix.split("/")[0])
        load_by_numbers(edge, PARTS, 40)
        edge.agent.config["services"] = {"dns": {
            "prefixes": {prefix: 100 for prefix in PARTS},
            "floor": FLOOR,
            "checks": {
                "process": {"type": "process", "pidfile": edge.nsd.pidfile},
                "upstream": {"type": "exec", "command": ["/usr/bin/test", "!", "-e", upstream(edge)], "interval": "1s", "timeout": "1s"},
            },
        }}
        edge.agent.config["shed"] = {"over": "1s", "settle": "12s", "under": "10s", "back_off": "1s"}
    site.started = time.time()
    site.start_agents()
    site.all_there = time.time()
    site.circle.wait_fresh()
    return site


def floors(site):
    """No prefix was below its floor at any moment since all were announced."""
    for prefix in PARTS:
        check(lowest(site, prefix, site.all_there) >= FLOOR, f"{prefix} has its floor at every moment", told(site, prefix, site.all_there))


def sheds(site, since):
    return [e for e in site.wire.since(since, kinds=(WITHDRAW,)) if e.prefix in PARTS]


def shed(site, edge):
    """This edge is overloaded, and sheds a prefix: the event."""
    began = time.time()
    busy(edge, 96)
    gone = eventually(lambda: sheds(site, began), PATIENCE, lambda: f"{edge.name} sheds\n{edge.agent.ctl('explain', 'dns').stdout}")[0]
    check(gone.edge == edge.name, "it is the one that is hot", str(gone))
    busy(edge, 78)  # as it would be without that prefix: neither more to shed, nor to be released
    return gone


def returns(site, gone, broken):
    """It is back before a promise that was renewed at `broken` for the last time is over."""
    back = site.wire.wait_announce(gone.edge, gone.prefix, RESTORED + 10, since=gone.time)
    late = back.time - broken - PULSE.withheld(broken)
    check(late < RESTORED, "in time", back.time - broken, late, told(site, gone.prefix, gone.time))
    busy(site.edge(gone.edge), 40)
    return back


def dies(site, edge):
    """The service of this edge dies: no promise holds that."""
    killed = edge.nsd.kill()
    for prefix in PARTS:
        site.wire.wait_withdraw(edge.name, prefix, since=killed)
    floors(site)
    edge.nsd.start()
    for prefix in PARTS:
        site.wait_announced(prefix, edge.name)


def test_the_whole_site_is_hot(site):
    """When all four are overloaded nobody sheds anything: everybody keeps serving."""
    began = time.time()
    for edge in site.edges:
        busy(edge, 130)
    wait_started(site.started, more=7)
    check(not sheds(site, began), "zero sheds", [str(e) for e in sheds(site, began)])
    for edge in site.edges:
        busy(edge, 40)
    check(not site.wire.since(began), "not an UPDATE", site.wire.tail())


def test_a_promise_is_kept(site):
    """Who has promised stays though its upstream fails, and when the shed prefix is back it may leave."""
    gone = shed(site, site.edges[0])
    other = site.edges[1]
    touch(upstream(other))
    other.agent.wait_prefix(gone.prefix, wanted="announce", reason="kept_by_floor")
    moment = time.time()
    eventually(lambda: time.time() > moment + 3, 10, every=0.1)
    floors(site)
    left = site.wire.wait_withdraw(other.name, gone.prefix, 40, since=moment)
    back = returns(site, gone, moment)
    check(back.time < left.time, "the one came back before the other left", told(site, gone.prefix, gone.time))
    touch(upstream(other), False)
    for prefix in PARTS:
        site.wait_announced(prefix, other.name, timeout=20)
    floors(site)


def test_a_receiver_freezes(site):
    """A receiver freezes in the middle of a grant: what was shed returns before anybody counts on its promise."""
    rounds, dice = 6 if LONG else 1, chance()
    for n in range(rounds):
        edge, receiver = site.edges[(n + 2) % 4], site.edges[(n + 3) % 4]
        began = time.time()
        busy(edge, 96)
        at = began + dice.uniform(3.0, 5.5) if n else float("inf")  # first, as soon as it has left on the promise
        eventually(lambda: time.time() >= at or sheds(site, began), PATIENCE, f"{edge.name} sheds")
        receiver.agent.process.freeze()
        frozen = time.time()
        if sheds(site, began):
            busy(edge, 78)
        eventually(lambda: time.time() > frozen + RESTORED + 1, 15, every=0.1)
        check(n or sheds(site, began), "something was shed", site.wire.tail())
        for gone in sheds(site, began):
            returns(site, gone, frozen)
        busy(edge, 40)
        receiver.nsd.kill()
        receiver.agent.process.thaw()
        for prefix in PARTS:
            site.wire.wait_withdraw(receiver.name, prefix, since=frozen)
        floors(site)
        receiver.nsd.start()
        for prefix in PARTS:
            site.wait_announced(prefix, receiver.name)
        site.circle.wait_fresh()
        edge.agent.wait_status(lambda s: s["shed"]["utilisation"] < 5000, what="no more to ask for")


def test_certificates_are_cut(site):
    """A receiver's authority is replaced: its promise cannot be renewed, and what was shed returns."""
    gone = shed(site, site.edges[3])
    receiver = site.edges[1]
    site.circle.install(receiver, Authority(site.lab.dir + "/another"))
    returns(site, gone, time.time())
    dies(site, receiver)
    site.circle.install(receiver, site.circle.authority)
    site.circle.wait_fresh(timeout=30)


def a_receiver_is_killed(site):
    gone = shed(site, site.edges[1])
    receiver = site.edges[0]
    receiver.agent.kill()
    returns(site, gone, time.time())
    receiver.agent.start()
    started = time.time()
    dies(site, receiver)
    wait_started(started)
    site.circle.wait_fresh()


def test_agents_are_killed(site):
    """The agent that shed is killed: the next one brings back what it finds out. --long: a receiver's is killed, too."""
    if LONG:
        a_receiver_is_killed(site)
    gone = shed(site, site.edges[1])
    site.edges[1].agent.kill()
    killed = time.time()
    site.edges[1].agent.start()
    back = returns(site, gone, killed)
    print(f"    back {back.time - killed:.2f} s after the kill")
    floors(site)
    for prefix in PARTS:
        check(len(history(site, prefix, site.all_there)[-1][1]) == 4, "all announce it in the end", told(site, prefix, site.all_there))


main(make_site)
