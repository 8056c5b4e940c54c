"""The bench of the neighbours: one node with 64 others, each asking each other for a report a second, all
with certificates, and then all connections made anew at once.

  steady  processor time of the one node as a whole, in percent of a core, and of its loop alone
  storm   how long its loop was held at worst while 64 neighbours made new connections in both
          directions: by its own work, and (with whatever else the machine ran) by the clock

Each of ECDSA (P-256) and RSA-2048 certificates. Usage: tests/bench/run neighbours [--seconds N]
"""

import argparse
import json
import os
import pathlib
import platform
import sys
import time

from lib.neighbours import Authority, Node
from lib.netns import Lab, needs
from lib.wait import until

N, PREFIXES = 64, 50
CPU, LATE_MS = 5.0, 5.0


def build(lab, kind):
    """edge1, and the 64 others, who know nobody but edge1."""
    host = lab.host(kind)
    authority = Authority(host.path("authority"))
    pairs = [authority.issue(f"n{i}" if i else "edge1", rsa=kind == "rsa") for i in range(N + 1)]
    addresses = {f"n{i}": f"127.0.1.{i}" for i in range(1, N + 1)}
    one = Node(host, "edge1", "127.0.0.1", pairs[0], authority.certificate, addresses)
    others = [Node(host, name, address, pairs[i], authority.certificate, {"edge1": "127.0.0.1"})
              for i, (name, address) in enumerate(addresses.items(), 1)]
    return authority, one, others


def all_fresh(one):
    return all(one.view(f"n{i}")[0] == "fresh" for i in range(1, N + 1))


def steady(one, seconds):
    before, cpu, start = one.counts(), one.cpu_s(), time.monotonic()
    mark = one.mark()
    time.sleep(seconds)
    took, cpu, after = time.monotonic() - start, one.cpu_s() - cpu, one.counts()
    thread = (after["cpu_us"] - before["cpu_us"]) / 1e6
    return {
        "cpu_percent": round(100 * cpu / took, 2),
        "loop_percent": round(100 * (cpu - thread) / took, 2),
        "reports_per_s": round(sum(line.startswith("report ") for line in one.lines[mark:]) / took, 1),
        "served_per_s": round((after["requests"][0] - before["requests"][0]) / took, 1),
    }


def storm(authority, one, kind):
    """A new certificate of edge1's ends all connections at once."""
    before = one.counts()
    new = authority.issue("edge1", rsa=kind == "rsa")
    one.say("watch")
    one.install(new)
    until(lambda: one.counts()["replaced"] > before["replaced"], 10, "taken over")
    until(lambda: one.counts()["welcome"] >= before["welcome"] + N, 20, "all are back")
    late_ms, busy_ms = (int(us) / 1000 for us in one.ask("late").split())
    after = one.counts()
    return {"late_ms": late_ms, "busy_ms": busy_ms, "thread_ms": (after["cpu_us"] - before["cpu_us"]) / 1000}


def run(kind, seconds):
    lab = Lab()
    try:
        authority, one, others = build(lab, kind)
        for node in (one, *others):
            node.start()
            node.say(f"prefixes {PREFIXES}")
        until(lambda: all_fresh(one), 30, "all are fresh", every=0.5)
        result = steady(one, seconds)
        storms = [storm(authority, one, kind) for _ in range(5)]
        result["storm_busy_ms"] = sorted(s["busy_ms"] for s in storms)
        result["storm_late_ms"] = sorted(s["late_ms"] for s in storms)
        result["storm_thread_ms"] = round(sum(s["thread_ms"] for s in storms) / len(storms), 1)
        until(lambda: all_fresh(one), 30, "all are fresh", every=0.5)
        for node in (one, *others):
            node.stop()
        return result
    finally:
        lab.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", nargs="?", default="neighbours")
    parser.add_argument("--seconds", type=int, default=15)
    arguments = parser.parse_args()
    needs("openssl")
    results = {kind: run(kind, arguments.seconds) for kind in ("ecdsa", "rsa")}
    folder = pathlib.Path(os.environ.get("REDSHANK_BENCH", "build/bench"))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "neighbours.json").write_text(json.dumps({"kernel": platform.release(), **results}, indent=1), encoding="utf-8")
    failed = False
    for kind, r in results.items():
        late, busy = r["storm_late_ms"], r["storm_busy_ms"]
        good = r["cpu_percent"] < CPU and busy[-1] < LATE_MS
        failed = failed or not good
        print(f"{kind}: {r['cpu_percent']} % of a core ({r['loop_percent']} % the loop) for {r['reports_per_s']} reports asked "
              f"and {r['served_per_s']} served a second, {PREFIXES} prefixes each (bound {CPU} %)\n"
              f"{kind}: 64 at once: the loop worked {busy[-1]} ms at most (bound {LATE_MS}) and was late by {late[0]} to "
              f"{late[-1]} ms; the thread worked {r['storm_thread_ms']} ms{'' if good else '  FAILED'}")
    return 1 if failed else 0


sys.exit(main())
