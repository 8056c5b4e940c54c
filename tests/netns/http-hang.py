"""A hung nginx leaves within interval + timeout + (fall - 1) x max(fast_interval, timeout).

Counted from SIGSTOP to the UPDATE on the router's wire, fifty times, at whatever moment of the
check's interval the stop falls. A machine that is busy adds its own time: the median is held to the
bound, every single one to the bound and a quarter of a second, without what the machine withheld.
"""

import statistics
import time

from lib.case import check, eventually, main
from lib.chance import chance
from lib.pulse import Pulse
from lib.site import Site
from lib.web import page

WEB = "192.0.2.80/32"
INTERVAL, FAST, TIMEOUT, FALL = 0.2, 0.1, 0.15, 2
BOUND = INTERVAL + TIMEOUT + (FALL - 1) * max(FAST, TIMEOUT)
ROUNDS, BUSY = 50, 0.25
PULSE = Pulse()


def make_site():
    site = Site(edges=1)
    agent = site.edges[0].agent
    agent.config["services"] = {
        "web": {
            "prefixes": {WEB: 100},
            "checks": {"page": page("http://192.0.2.80/healthz", host="www.example.net", expect={"body": "ok"})},
        }
    }
    agent.config["defaults"] = {
        "interval": f"{INTERVAL * 1000:.0f}ms", "fast_interval": f"{FAST * 1000:.0f}ms",
        "timeout": f"{TIMEOUT * 1000:.0f}ms", "rise": 2, "fall": FALL,
    }
    site.start_agents()
    return site


def test_fifty_hangs(site):
    """Fifty stops at random moments: withdrawn within the bound, and back after each."""
    edge = site.edges[0]
    dice = chance()
    took = []
    for _ in range(ROUNDS):
        moment = time.monotonic() + dice.uniform(0, INTERVAL)
        eventually(lambda: time.monotonic() >= moment, every=0.001)
        begun = time.time()
        edge.nginx.freeze()
        gone = site.wire.wait_withdraw("edge1", WEB, since=begun).time
        took.append((gone - begun, gone - begun - PULSE.withheld(begun)))
        edge.nginx.thaw()
        site.wire.wait_announce("edge1", WEB, since=gone)
    worst = max(own for _, own in took)
    took = sorted(passed for passed, _ in took)
    seen = f"median {statistics.median(took):.3f} s, 90 % {took[int(ROUNDS * 0.9)]:.3f} s, longest {took[-1]:.3f} s"
    print(f"# bound {BOUND:.3f} s: {seen}; {sum(t <= BOUND for t in took)} of {ROUNDS} within")
    check(statistics.median(took) <= BOUND and worst <= BOUND + BUSY, f"within {BOUND:.3f} s", seen, worst)
    check(took[0] >= TIMEOUT, "not before a timeout has passed", seen)


main(make_site)
