"""Twenty scrapers that never rest delay no withdrawal, and the agent tells their load."""

import os
import subprocess
import time

from lib import exposition
from lib.agentctl import build_folder, plain_agent
from lib.case import check, eventually, main
from lib.faults import LEAK
from lib.pulse import Pulse
from lib.site import Site

DNS = "192.0.2.53/32"
SCRAPERS, STATUS_READERS = 20, 4
KILLS = 5
PULSE = Pulse()
# The agent's own share is some milliseconds; the rest is what else is busy on the same two cores.
MOST_OF_MEDIAN = 0.030
MOST_OF_MEMORY_KB = 6144  # two documents of 2.6 MB, and little else for thousands of connections
MOST_OF_CORE = 0.3  # a tenth for what is sent and a tenth for each document, and this build is not optimised


def make_site():
    site = Site(edges=1)
    agent = site.edges[0].agent
    agent.program, _ = plain_agent()
    slow = {"type": "tcp", "address": "127.0.0.1", "port": 1, "interval": "60s", "fast_interval": "60s"}
    for n in range(250):
        agent.config["services"][f"other{n}"] = {
            "prefixes": {f"10.26.{n}.1/32": 100, f"10.26.{n}.2/32": 100},
            "address_check": False,
            "checks": {f"port{k}": dict(slow) for k in range(8)},
        }
    agent.start()
    for prefix in (DNS, "2001:db8::53/128"):
        site.wait_announced(prefix, "edge1")
    return site


class Readers:
    """`n` clients of `path` that never rest (tests/bench/scrapers.c)."""

    def __init__(self, agent, path, n):
        program = os.path.join(build_folder(), "tests", "bench", "bench-scrapers")
        self.process = subprocess.Popen([program, agent.socket, path, str(n)], stdout=subprocess.PIPE, text=True)
        check(self.process.stdout.readline() == "ready\n", "they have asked")

    def stop(self):
        """{"answers": N, "bytes": N, "wrong": N}"""
        self.process.terminate()
        words = self.process.communicate(timeout=10)[0].split()
        return dict(zip(words[::2], map(int, words[1::2])))


def cpu_seconds(agent):
    return exposition.value(agent.get("/metrics", timeout=10)[1], "redshank_process_cpu_seconds_total")


def withdrawals(site, kills):
    """Seconds from kill(2) to the UPDATE on the wire, without what the machine withheld, sorted."""
    edge, found = site.edges[0], []
    for _ in range(kills):
        killed = edge.nsd.kill()
        gone = site.wire.wait_withdraw("edge1", DNS, since=killed)
        found.append(max(0.0, gone.time - killed - PULSE.withheld(killed)))
        edge.nsd.start()
        edge.agent.wait_prefix(DNS, announced=True, exported=1, timeout=30)
        edge.agent.wait_prefix("2001:db8::53/128", announced=True, exported=1, timeout=30)
    return sorted(found)


def test_withdrawals_under_load(site):
    """A death is withdrawn as fast as without them, each is served, and most of the agent's time is its own."""
    agent = site.edges[0].agent
    alone = withdrawals(site, 2)
    begun, cpu = time.time(), cpu_seconds(agent)
    readers = [Readers(agent, "/metrics", SCRAPERS), Readers(agent, "/v1/status", STATUS_READERS)]
    loaded = withdrawals(site, KILLS)
    served = [r.stop() for r in readers]
    seconds = time.time() - begun
    share = (cpu_seconds(agent) - cpu) / seconds
    print(f"    alone {[round(1000 * t, 1) for t in alone]} ms")
    print(f"    with {SCRAPERS} scrapers, {served[0]['answers'] / seconds:.0f} documents/s, and {STATUS_READERS} readers, "
          f"{served[1]['answers'] / seconds:.0f}/s: {[round(1000 * t, 1) for t in loaded]} ms, {100 * share:.0f} % of a core")
    check(all(s["answers"] and not s["wrong"] for s in served), "each is served", served)
    check(loaded[KILLS // 2] < MOST_OF_MEDIAN, "the median", loaded)
    check(share < MOST_OF_CORE, "the agent's share of a core", share)


def test_bounded(site):
    """What they read at once was rendered once."""
    agent = site.edges[0].agent
    body = agent.get("/metrics", timeout=10)[1]
    answers = exposition.value(body, "redshank_http_requests_total", path="/metrics", code="200")
    renders = exposition.value(body, "redshank_metrics_renders_total")
    cost = exposition.value(body, "redshank_metrics_render_seconds_total")
    print(f"    {answers:.0f} answers, {renders:.0f} renders of {1000 * cost / renders:.1f} ms, {len(body) / 1e6:.1f} MB")
    check(renders * 2 < answers, "they share", renders, answers)


def memory(agent):
    """Anonymous memory in kB."""
    with open(f"/proc/{agent.pid}/status", encoding="ascii") as f:
        return int(next(line.split()[1] for line in f if line.startswith("RssAnon:")))


def test_leaking_client(site):
    """A process that opens thousands of connections and asks nothing shuts nobody out, costs little memory and no check."""
    agent = site.edges[0].agent
    before, begun = memory(agent), site.moment()
    leak = subprocess.Popen(["/usr/bin/python3", "-c", LEAK, agent.socket, "2000"], stdout=subprocess.DEVNULL)
    try:
        eventually(lambda: len(os.listdir(f"/proc/{leak.pid}/fd")) > 1500, 20, "it leaks")
        for _ in range(5):
            done = agent.ctl("status")
            check("nobody" not in done.stderr and done.stdout, "redshankctl has its answer", done.stderr)
        eventually(lambda: time.time() - begun > 1, 5, "each check has run meanwhile")
        check(memory(agent) - before < MOST_OF_MEMORY_KB, "bounded memory", before, memory(agent))
        services = agent.status()["services"]
        down = [c for name in ("dns", "web") for c in services[name]["checks"].values() if c["state"] != "up"]
        check(not down and not site.wire.since(begun), "no check suffers", down, site.wire.tail())
    finally:
        leak.kill()
        leak.wait()


main(make_site)
