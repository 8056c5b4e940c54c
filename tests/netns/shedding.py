"""Shedding, as the router and the clients see it: four edges share five addresses by ECMP, under real load.

dnsperf asks nsd from hundreds of sockets; nftables counts what each prefix has of it, and each edge's own
number is what its nsd has been asked, against its capacity. One edge becomes slow: its answers no longer
fit through its link. It sheds some of its prefixes, one after the other, to neighbours that promised the
room; the clients are served fast again; and when it is well the prefixes return, the last one first.
"""

import time

from lib.case import check, eventually, main
from lib.dnsperf import percentile
from lib.pulse import Pulse
from lib.shedsite import FLOOR, PREFIXES, LoadedSite, history, lowest, told, wait_started
from lib.wire import ANNOUNCE, WITHDRAW

OVERLOAD = 1.25  # of what fits through the slow edge's link
PULSE = Pulse()


def make_site():
    site = LoadedSite()
    site.start()
    site.ask()
    return site


def out(edge):
    """The prefixes that this edge has shed, by its status."""
    prefixes = edge.agent.status()["services"]["dns"]["prefixes"]
    return [name for name, prefix in prefixes.items() if prefix["reason"] == "shed"]


def wait_quiet(since, seconds):
    eventually(lambda: time.time() >= since + seconds, seconds + 2, every=0.1)


def stood_still(since):
    """The machine did, for so long that answers which were under way count as lost."""
    return PULSE.withheld(since) > 0.5


def test_everybody_is_well(site):
    """All four share the queries, each knows what each prefix has of its load, and nothing is shed."""
    site.circle.wait_fresh()
    wait_started(site.started)
    for edge in site.edges:
        site.well(edge)
    rates = {edge.name: round(edge.gauge.rate) for edge in site.edges}
    check(min(rates.values()) > 60, "all four have their share", rates)
    end = time.time()
    check(not site.lost(end - 5, end - 1.5) or stood_still(end - 5), "nothing is lost")
    site.fast = percentile(site.latencies(end - 5), 0.9)
    check(not site.moves(site.started + 5, WITHDRAW), "nothing is shed")


def test_one_is_slow(site):
    """The slow edge sheds two or three of five prefixes to the others, and the clients are served fast again."""
    edge = site.edges[0]
    site.began = time.time()
    site.slow(edge, OVERLOAD)
    eventually(lambda: site.relieved(edge, site.began), 70,
               lambda: f"prefixes are shed until it is relieved: {edge.gauge}\n{edge.agent.ctl('explain', 'dns').stdout}", every=0.1)
    gone = site.moves(site.began, WITHDRAW)
    site.shed = [prefix for _, prefix, _ in gone]
    first, last = gone[0][2], gone[-1][2]
    slow = max(percentile(site.latencies(first - i - 1.5, first - i), 0.9) for i in range(int(first - site.began) or 1))
    check({name for name, _, _ in gone} == {"edge1"}, "the slow edge alone sheds", gone)
    check(PREFIXES[0] not in site.shed, "not the prefix that is too large for one step", gone)
    check(sorted(out(edge)) == sorted(site.shed), "status says so", out(edge), site.shed)
    text = edge.agent.ctl("explain", site.shed[0]).stdout
    check("shed" in text, "explain says so", text)
    eventually(lambda: edge.agent.status()["bird"]["settled"])
    # What fits through was measured: by a machine that stands still it is not what it seemed.
    check(2 <= len(gone) <= 3 or stood_still(site.began - 3), "as many as were needed", gone)
    check(slow > 0.05, "it was slow", slow)
    fast = eventually(lambda: site.faster(slow / 3, 3), 10, lambda: f"and is no more: {slow}, {percentile(site.latencies(time.time() - 3), 0.9)}", every=0.2)
    print(f"    90th percentile of the latency: {1000 * site.fast:.1f} ms well, {1000 * slow:.0f} ms slow, {1000 * fast:.1f} ms with {len(gone)} shed")
    check(edge.gauge.rate < 0.85 * edge.gauge.capacity, "the slow edge has less to do than its limit", edge.gauge.rate, edge.gauge.capacity)
    lost = site.lost(last + 3, time.time() - 1.5)
    check(not lost or stood_still(last + 3), "and nothing is lost any more", lost)
    for prefix in PREFIXES:
        check(lowest(site, prefix, site.began) >= FLOOR, f"{prefix} has its floor at every moment", told(site, prefix, site.began))


def test_it_returns(site):
    """When the edge is well again the prefixes return, the last one first; the changes cost no query."""
    edge = site.edges[0]
    well = time.time()
    site.heal(edge)
    back = eventually(lambda: len(site.moves(well, ANNOUNCE)) >= len(site.shed) and site.moves(well, ANNOUNCE), 60,
                      lambda: f"they return\n{edge.agent.ctl('explain', 'dns').stdout}")
    check([prefix for _, prefix, _ in back] == site.shed[::-1], "in reverse order", back, site.shed)
    check({name for name, _, _ in back} == {"edge1"}, "to the edge that had shed them", back)
    wait_quiet(back[-1][2], 2.5)
    gone = site.lost(well + 0.5, time.time() - 1.5)
    total = len(site.latencies(well + 0.5))
    print(f"    {gone} of {total} queries lost while they returned")
    check(gone <= 2 or stood_still(well), "the changes cost no query", gone, total)
    check(not out(edge), "nothing is shed any more", out(edge))
    check(len(site.moves(site.began, WITHDRAW)) == len(site.moves(site.began, ANNOUNCE)) == len(site.shed),
          "each went and returned once", [str(e) for e in site.wire.since(site.began)])
    for prefix in PREFIXES:
        check(set(history(site, prefix, site.began)[-1][1]) == {e.name for e in site.edges}, "all announce it", told(site, prefix, site.began))


main(make_site)
