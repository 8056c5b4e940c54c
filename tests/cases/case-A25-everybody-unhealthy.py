"""A25: everybody is unhealthy at once.

Five edges check something that all of them share. When it fails for all of them within one second, the
floor holds: the address stays announced, degraded, and says why. When it fails for three, exactly those
three leave. When no report arrives any more, nobody is taken for healthy: who fails stays. A dead
process is not held by the floor, ever; and who stays does not swap with who went.
"""

import time

from lib.case import check, eventually, main
from lib.shedsite import Neighbours, history, lowest, told, touch, wait_started
from lib.site import Site

DNS, DNS6, WEB = "192.0.2.53/32", "2001:db8::53/128", "192.0.2.80/32"
FLOOR = 2


def outage(edge):
    return edge.host.path("outage")


def make_site():
    site = Site(edges=5)
    site.circle = Neighbours(site)
    for edge in site.edges:
        dns = edge.agent.config["services"]["dns"]
        dns["floor"] = FLOOR
        dns["checks"]["upstream"] = {"type": "exec", "command": ["/usr/bin/test", "!", "-e", outage(edge)],
                                     "interval": "1s", "timeout": "1s"}
    site.started = time.time()
    site.start_agents()
    return site


def fail(edges, spread=0.0):
    """The upstream is gone for these, one after the other within `spread` seconds; the time of the first."""
    began = time.time()
    for n, edge in enumerate(edges):
        eventually(lambda at=began + spread * n / len(edges): time.time() >= at, spread + 1)
        touch(outage(edge))
    return began


def mend(site):
    for edge in site.edges:
        touch(outage(edge), False)
    for edge in site.edges:
        edge.agent.wait_prefix(DNS, wanted="announce", reason="healthy", announced=True, timeout=10)
        site.wait_announced(DNS, edge.name)
        site.wait_announced(DNS6, edge.name)


def reasons(edges, prefix=DNS):
    return {edge.name: edge.agent.prefix(prefix)["reason"] for edge in edges}


def held(site, prefix, names, since):
    """Exactly these announce the prefix, and nobody swaps places with anybody for a while."""
    end = time.time() + 4.0
    eventually(lambda: time.time() >= end, 6, every=0.1)
    last = history(site, prefix, since)[-1]
    check(last[1] == frozenset(names), f"{prefix} is announced by {sorted(names)}", told(site, prefix, since))
    moved = [e for e in site.wire.since(end - 2.5, prefix=prefix)]
    check(not moved, "and nothing moves", [str(e) for e in moved])


def test_all_at_once(site):
    """All five lose it within one second: the floor holds, and says so; it is the others that are missing."""
    site.circle.wait_fresh()
    wait_started(site.started)
    began = fail(site.edges, spread=0.9)
    for prefix in (DNS, DNS6):
        eventually(
            lambda p=prefix: all(r in ("kept_by_floor", "unhealthy") for r in reasons(site.edges, p).values()), 10,
            lambda p=prefix: f"all have noticed: {reasons(site.edges, p)}", every=0.1)
    kept = {name for name, reason in reasons(site.edges).items() if reason == "kept_by_floor"}
    check(len(kept) >= FLOOR, "kept by floor", reasons(site.edges), told(site, DNS, began))
    held(site, DNS, kept, began)
    for prefix in (DNS, DNS6):
        check(lowest(site, prefix, began) >= FLOOR, "at least the floor at every moment", told(site, prefix, began))
    check(not site.wire.since(began, prefix=WEB), "the other service is left alone")
    for name in kept:
        agent = site.edge(name).agent
        text = " ".join(agent.ctl("explain", DNS).stdout.split())
        check("kept_by_floor" in text and f"asks for the promises of {FLOOR} neighbours" in text, "explain says so", text)
        agent.wait_log("service dns: keeping 192.0.2.53/32, 2001:db8::53/128 (kept_by_floor)")
        check("KEPT ANNOUNCED BY ITS FLOOR" in agent.ctl("status").stdout, "the verdict says so", agent.ctl("status").stdout)
    mend(site)


def test_three_of_five(site):
    """Three lose it: exactly those three leave, and the two healthy ones stay."""
    began = fail(site.edges[1:4])
    site.wait_route(DNS, {"edge1", "edge5"}, timeout=40)
    site.wait_route(DNS6, {"edge1", "edge5"}, timeout=40)
    held(site, DNS, {"edge1", "edge5"}, began)
    check(lowest(site, DNS, began) == FLOOR, "never fewer", told(site, DNS, began))
    check(set(reasons(site.edges[1:4]).values()) == {"unhealthy"}, "by their health", reasons(site.edges))
    mend(site)


def test_a_death_is_not_held(site):
    """With all of them failing, those whose process dies leave at once: the floor holds no dead process."""
    began = fail(site.edges)
    eventually(lambda: list(reasons(site.edges).values()).count("kept_by_floor") >= FLOOR, 10, every=0.1)
    kept = [site.edge(n) for n, r in reasons(site.edges).items() if r == "kept_by_floor"]
    killed = kept[0].nsd.kill()
    for prefix in (DNS, DNS6):
        gone = site.wire.wait_withdraw(kept[0].name, prefix, since=killed)
        check(gone.time - killed < 1.0, "at once", gone.time - killed)
    check(lowest(site, DNS, began) >= 1, "the others stay", told(site, DNS, began))
    kept[0].nsd.start()
    mend(site)


def test_no_reports(site):
    """Reports stop arriving: nobody is assumed to be healthy, so the one that fails stays."""
    for edge in site.edges:
        site.circle.cut(edge)
    eventually(lambda: not any(site.circle.fresh(e) for e in site.edges), 10, "all reports are stale", every=0.2)
    began = fail(site.edges[:1])
    site.edges[0].agent.wait_prefix(DNS, wanted="announce", reason="kept_by_floor", timeout=10)
    held(site, DNS, {e.name for e in site.edges}, began)
    for edge in site.edges:
        site.circle.join(edge)
    gone = site.wire.wait_withdraw("edge1", DNS, since=began, timeout=25)
    check(gone.time > began, "and when reports are back, it may leave")
    mend(site)


main(make_site)
