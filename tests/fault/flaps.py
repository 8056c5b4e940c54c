"""1,000 flaps, in and out of step with the checks, of services side by side (tests/run --long; a fifth of that by
default): each half of a flap is a whole number of intervals, or not; the wire shows no more changes than a service
had states, none without a reason, and in the end everything is announced.
"""

import os
import threading
import time

from lib import exposition
from lib.case import check, eventually, main
from lib.chance import chance
from lib.promise import HUNG, Ledger, judge
from lib.pulse import Pulse
from lib.site import Site

FLAPS = 1000 if os.environ.get("REDSHANK_LONG") else 200
INTERVAL = 0.1
FALL, RISE = 3, 2
PULSE = Pulse()
# Halves of a flap, in intervals: below fall and rise, just them, and above; and none of these.
HALVES = [1, 2, 3, 4, 5, 0.5, 1.37, 2.5, 3.14, 4.6]
TIMING = {"interval": "100ms", "fast_interval": "100ms", "timeout": "100ms", "fall": FALL, "rise": RISE}


def flag(site, name):
    return site.edges[0].host.path(f"{name}.flag")


def put(site, name, word):
    path = flag(site, name)
    with open(path + ".new", "w", encoding="ascii") as f:
        f.write(word)
    os.rename(path + ".new", path)


def services(site):
    site.edges[0].agent.config["services"] = {
        f"f{n}": {
            "prefixes": {f"198.18.1.{n}/32": 100},
            "address_check": False,
            "checks": {"flag": {"type": "exec", "command": ["/usr/bin/grep", "-q", "good", flag(site, f"f{n}")], **TIMING}},
        }
        for n in range(len(HALVES))
    }


def flap(site, ledger, name, half, times, stop):
    """By absolute times, so that a flap in step stays in step."""
    at = time.time()
    for _ in range(times):
        if stop.is_set():
            return
        down = ledger.down(name, HUNG)
        put(site, name, "bad")
        at += half
        time.sleep(max(0.0, at - time.time()))
        down.mending = time.time()
        put(site, name, "good")
        down.end = time.time()
        at += half
        time.sleep(max(0.0, at - time.time()))


def outwaited(site):
    """The services whose check the machine let wait until its end: these went down though the file was good."""
    text = site.edges[0].agent.text()
    return {name for name in site.edges[0].agent.config["services"] if f"check {name}/flag: up -> down (timeout" in text}


def looks(site, name):
    """How often its check has spoken."""
    families = exposition.parse(site.edges[0].agent.get("/metrics")[1])
    return sum(value for _, labels, value in families["redshank_check_outcomes_total"].samples if labels["service"] == name)


def announced(site, ledger):
    return all("edge1" in site.routes(prefix) for prefixes in ledger.services.values() for prefix in prefixes)


def test_flaps(site):
    """However often they come, a service leaves only while it is down, comes back, and moves no other."""
    services(site)
    names = list(site.edges[0].agent.config["services"])
    for name in names:
        put(site, name, "good")
    site.edges[0].agent.start()
    ledger = Ledger({f"f{n}": [f"198.18.1.{n}/32"] for n in range(len(HALVES))})
    eventually(lambda: announced(site, ledger), 10, "all are announced")
    begun, stop, before = time.time(), threading.Event(), {name: looks(site, name) for name in names}
    phases = chance()
    threads = []
    for name, half in zip(names, HALVES):
        time.sleep(phases.uniform(0, INTERVAL))
        threads.append(threading.Thread(
            target=flap, args=(site, ledger, name, half * INTERVAL, FLAPS // len(HALVES), stop), daemon=True))
        threads[-1].start()
    try:
        for thread in threads:
            thread.join()
    finally:
        stop.set()
    n_flaps = sum(len(spans) for spans in ledger.downs.values())
    check(n_flaps == FLAPS, f"{FLAPS} flaps", n_flaps)
    eventually(lambda: announced(site, ledger), 10, "all are announced again")
    events = site.wire.since(begun, edge="edge1", kinds=None)
    late = outwaited(site)
    for name in late:
        print(f"    {name}: a check ended by its timeout")
    # One that looks less often than every interval may find down each time who flaps.
    missed = {name: (time.time() - begun) / INTERVAL - (looks(site, name) - before[name]) for name in names}
    excused = tuple(f"{word}: {ledger.services[name][0]} " for name in late for word in ("wrong", "restless"))
    broken = [line for line in judge(ledger, events, begun, withheld=PULSE.withheld(begun)) if not line.startswith(excused)]
    check(not broken, "no promise is broken", *broken[:20])
    # Three bad ones in a row make it down: who is down for less never leaves. Who flaps once in an interval or more
    # often may be found down each time.
    moved = {name: sum(e.prefix == f"{prefixes[0]}" for e in events) for name, prefixes in ledger.services.items()}
    print(f"    {n_flaps} flaps; changes on the wire: " +
          ", ".join(f"{moved[name]} of halves of {half}" for name, half in zip(names, HALVES)) +
          f"; looks that the machine has cost: {max(missed.values()):.0f} at most")
    for name, half in zip(names, HALVES):
        longest = max(span.end - span.begin for span in ledger.downs[name]) / INTERVAL
        if 2 * half > 1 and longest < FALL - 1.25 and name not in late and missed[name] < FALL:  # two intervals hold three looks, if only just
            check(moved[name] == 0, f"{name} is never down for long enough", moved[name], longest)
        if half >= FALL + 1:
            check(moved[name] > 0, f"{name} is down for long enough", moved[name])


main(lambda: Site(edges=1, services=False))
