"""A storm of reports and grants delays no withdrawal: 64 made-up neighbours ask as fast as they are let."""

import time

from lib.agentctl import plain_agent
from lib.case import check, eventually, main
from lib.crowd import Crowd
from lib.pulse import Pulse
from lib.site import Site

DNS, DNS6 = "192.0.2.53/32", "2001:db8::53/128"
N, KILLS = 64, 20
PULSE = Pulse()
# The agent's own share is below a millisecond; the rest is the crowd, on the same two cores.
MEDIAN, MOST = 0.030, 0.100


def make_site():
    site = Site(edges=1)
    edge = site.edges[0]
    agent = edge.agent
    agent.program, _ = plain_agent()
    site.crowd = Crowd(site, edge, N)
    agent.start()
    for prefix in (DNS, DNS6):
        site.wait_announced(prefix, "edge1")
    return site


def withdrawals(site, kills):
    """Seconds from kill(2) to the UPDATE on the wire, without what the machine withheld, sorted."""
    edge, found = site.edges[0], []
    for _ in range(kills):
        since = site.moment()
        killed = edge.nsd.kill()
        gone = site.wire.wait_withdraw("edge1", DNS, since=killed)
        found.append(max(0.0, gone.time - killed - PULSE.withheld(killed)))
        edge.nsd.start()
        for prefix in (DNS, DNS6):
            site.wire.wait_announce("edge1", prefix, 15, since=since)
        edge.agent.wait_status(lambda s: s["bird"]["settled"], 10, "settled")
    return sorted(found)


def told(times):
    return ", ".join(f"{1000 * t:.1f}" for t in times) + " ms"


def test_withdrawals_in_the_storm(site):
    """A death is withdrawn as fast as without them, while each of them is answered."""
    agent = site.edges[0].agent
    alone = withdrawals(site, 3)
    site.crowd.start()
    began = time.time()
    eventually(lambda: all(m["state"] == "fresh" for m in agent.status()["neighbours"]["members"].values()), 60,
               "a report of each of them", every=0.2)
    loaded = withdrawals(site, KILLS)
    seconds = time.time() - began
    counts = site.crowd.stop()
    print(f"    alone {told(alone)}")
    print(f"    with {N} neighbours, {counts.get('200', 0) / seconds:.0f} answers/s, {counts.get('503', 0) / seconds:.0f} put off/s, "
          f"{counts.get('409', 0) / seconds:.0f} refused/s: {told(loaded)}")
    check(counts.get("200", 0) > 5 * N and counts.get("asked", 0) > N, "they are answered, and asked", counts)
    check(loaded[KILLS // 2] < MEDIAN, "the median", loaded)
    check(loaded[-1] < MOST, "the slowest", loaded)


main(make_site)
