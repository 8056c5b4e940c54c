"""Shedding, as the router and the clients see it: four edges share five addresses by ECMP, under real load.

dnsperf asks nsd from hundreds of sockets; nftables counts what each prefix has of it, and each edge's own
number is what its nsd has been asked, against its capacity. One edge becomes slow: its answers no longer
fit through its link. It sheds some of its prefixes, one after the other, to neighbours that promised the
room; the clients are served fast again; and when it is well the prefixes return, the last one first.
"""

import time

from lib.agentctl import build_folder
from lib.case import check, eventually, main
from lib.dnsperf import Dnsperf, percentile
from lib.services import Nsd
from lib.shedsite import Gauge, Neighbours, history, lowest, narrow, told, wait_started
from lib.site import Site
from lib.wire import ANNOUNCE, WITHDRAW

# Queries a second for each, from the client: unequal shares, and the first is too large to be shed.
RATES = {"192.0.2.101": 240, "192.0.2.102": 144, "192.0.2.103": 96, "192.0.2.104": 72, "192.0.2.105": 48}
PREFIXES = [address + "/32" for address in RATES]
FLOOR = 3
OVERLOAD = 1.25  # of what the slow edge can do


def configure(edge, circle):
    config = edge.agent.config
    config["services"] = {"dns": {
        "prefixes": {prefix: 100 for prefix in PREFIXES},
        "floor": FLOOR,
        "checks": {"process": {"type": "process", "pidfile": edge.nsd.pidfile}},
    }}
    config["load"] = {
        "interval": "500ms",
        "signals": {"queries": {"type": "file", "file": edge.gauge.path, "limit": 100}},
        "prefixes": {"type": "nftables"},
    }
    config["shed"] = {"over": "1s", "settle": "12s", "under": "10s"}


def make_site():
    site = Site(edges=4, services=False, ecmp=True)
    for edge in site.edges:
        for address in RATES:
            edge.add_address(address)
        edge.nsd = Nsd(edge.host, tuple(RATES), control=True)
        edge.nsd.start()
        edge.gauge = Gauge(edge, 1000000)
    site.circle = Neighbours(site)
    for edge in site.edges:
        configure(edge, site.circle)
        edge.agent.write_config()
        count(edge)
    site.started = time.time()
    site.start_agents()
    site.loads = [Dnsperf(site.client, address, rate) for address, rate in RATES.items()]
    return site


def count(edge):
    """The counters that the agent reads: its own script, loaded by nft(8)."""
    done = edge.host.run([build_folder() + "/redshankd", "-c", edge.agent.conf, "--counters"])
    edge.host.run(["nft", "-f", "-"], input=done.stdout)


def latencies(site, start, end=float("inf")):
    return [latency for load in site.loads for latency in load.latencies(start, end)]


def lost(site, start, end=float("inf")):
    return sum(load.lost(start, end) for load in site.loads)


def out(edge):
    """The prefixes that this edge has shed, by its status."""
    prefixes = edge.agent.status()["services"]["dns"]["prefixes"]
    return [name for name, prefix in prefixes.items() if prefix["reason"] == "shed"]


def moves(site, since, kind):
    return [(e.edge, e.prefix, e.time) for e in site.wire.since(since, kinds=(kind,))]


def wait_quiet(since, seconds):
    eventually(lambda: time.time() >= since + seconds, seconds + 2, every=0.1)


def test_everybody_is_well(site):
    """All four share the queries, each knows what each prefix has of its load, and nothing is shed."""
    site.circle.wait_fresh()
    wait_started(site.started)
    for edge in site.edges:
        edge.gauge.capacity = 3 * edge.gauge.rate
    rates = {edge.name: round(edge.gauge.rate) for edge in site.edges}
    check(min(rates.values()) > 60, "all four have their share", rates)
    end = time.time()
    check(not lost(site, end - 5, end - 1.5), "nothing is lost")
    site.fast = percentile(latencies(site, end - 5), 0.9)
    check(not moves(site, site.started + 5, WITHDRAW), "nothing is shed")


def test_one_is_slow(site):
    """The slow edge sheds two of five prefixes to the others, and the clients are served fast again."""
    edge = site.edges[0]
    site.slow_rate = edge.gauge.rate
    narrow(edge, edge.gauge.rate / OVERLOAD)
    site.began = time.time()
    edge.gauge.capacity = edge.gauge.rate / OVERLOAD
    gone = eventually(lambda: len(moves(site, site.began, WITHDRAW)) >= 2 and moves(site, site.began, WITHDRAW), 30,
                      lambda: f"two prefixes are shed\n{edge.agent.ctl('explain', 'dns').stdout}")
    site.shed = [prefix for _, prefix, _ in gone]
    first, last = gone[0][2], gone[-1][2]
    slow = percentile(latencies(site, first - 1.5, first), 0.9)
    check({name for name, _, _ in gone} == {"edge1"}, "the slow edge alone sheds", gone)
    check(PREFIXES[0] not in site.shed, "not the prefix that is too large for one step", gone)
    check(sorted(out(edge)) == sorted(site.shed), "status says so", out(edge), site.shed)
    text = edge.agent.ctl("explain", site.shed[0]).stdout
    check("shed" in text, "explain says so", text)
    eventually(lambda: edge.agent.status()["bird"]["settled"], 5)
    wait_quiet(last, 8)
    moved = moves(site, site.began, WITHDRAW)
    check(len(moved) == 2, "two, and no more", moved)
    fast = percentile(latencies(site, time.time() - 3), 0.9)
    print(f"    90th percentile of the latency: {1000 * site.fast:.1f} ms well, {1000 * slow:.0f} ms slow, {1000 * fast:.1f} ms with {len(moved)} shed")
    check(slow > 0.05, "it was slow", slow)
    check(fast < slow / 4, "and is no more", fast, slow)
    check(edge.gauge.rate < 0.85 * edge.gauge.capacity, "the slow edge has less to do than its limit", edge.gauge.rate, edge.gauge.capacity)
    check(not lost(site, last + 3, time.time() - 1.5), "and nothing is lost any more", lost(site, last + 3, time.time() - 1.5))
    for prefix in PREFIXES:
        check(lowest(site, prefix, site.began) >= FLOOR, f"{prefix} has its floor at every moment", told(site, prefix, site.began))


def test_it_returns(site):
    """When the edge is well again the prefixes return, the last one first; the changes cost no query."""
    edge = site.edges[0]
    narrow(edge, None)
    edge.gauge.capacity = 3 * site.slow_rate
    well = time.time()
    back = eventually(lambda: len(moves(site, well, ANNOUNCE)) >= 2 and moves(site, well, ANNOUNCE), 45,
                      lambda: f"two prefixes return\n{edge.agent.ctl('explain', 'dns').stdout}")
    check([prefix for _, prefix, _ in back] == site.shed[::-1], "in reverse order", back, site.shed)
    check({name for name, _, _ in back} == {"edge1"}, "to the edge that had shed them", back)
    wait_quiet(back[-1][2], 2.5)
    gone = lost(site, well + 0.5, time.time() - 1.5)
    total = len(latencies(site, well + 0.5))
    print(f"    {gone} of {total} queries lost while they returned")
    check(gone <= 2, "the changes cost no query", gone, total)
    check(not out(edge), "nothing is shed any more", out(edge))
    check(len(moves(site, site.began, WITHDRAW)) == 2 and len(moves(site, site.began, ANNOUNCE)) == 2,
          "two went and two returned, once each", [str(e) for e in site.wire.since(site.began)])
    for prefix in PREFIXES:
        check(set(history(site, prefix, site.began)[-1][1]) == {e.name for e in site.edges}, "all announce it", told(site, prefix, site.began))


main(make_site)
