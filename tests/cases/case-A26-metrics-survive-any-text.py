"""A26: one bad label must not blind the scrape.

500 services with 2,000 checks, one of which says what no label could hold: a tab, a NUL, bytes that are
no UTF-8, quotes and backslashes, and something else each time. Read by promtool and by a strict parser.
"""

import json
import os
import subprocess
import time

from lib import exposition
from lib.agentctl import plain_agent
from lib.case import check, eventually, main, skip
from lib.netns import find
from lib.site import Site

SERVICES = 500
HOSTILE = r"""printf '%s a\tb\377\376 " \\ }{\000c\n' "$(date +%N)"; exit 1"""
# No warning, and no service has a `restart`.
# Without `load`, `neighbours` and `shed` there is nothing of these.
SHEDDING = ("redshank_load_", "redshank_neighbour", "redshank_shed_", "redshank_prefix_shed", "redshank_prefix_load")
ABSENT = {"redshank_bird_warnings", "redshank_service_repair_state", "redshank_service_restarts_total"}
ODD = ("-", "_", "0", "a-_9", "x" * 32)


def prefix(number):
    return f"10.26.{number // 250}.{number % 250}/32"


def service(number):
    port = {"type": "tcp", "address": "127.0.0.1", "port": 1, "interval": "60s", "fast_interval": "20s"}
    checks = {f"port{n}": dict(port) for n in range(4)}
    return {"prefixes": {prefix(number): 100}, "address_check": False, "checks": checks}


def make_site():
    if not find("promtool"):
        skip("not installed: promtool (package prometheus)")
    site = Site(edges=1, services=False)
    agent = site.edges[0].agent
    agent.program, _ = plain_agent()
    agent.config["services"] = {f"service{n}": service(n) for n in range(SERVICES)}
    agent.config["services"]["service0"]["checks"] = {
        name: {"type": "exec", "command": ["/bin/sh", "-c", HOSTILE], "interval": "200ms", "fast_interval": "200ms"}
        for name in ODD
        if name[0] not in "-_"
    }
    agent.start()
    agent.wait_check("service0", "0", state="down", timeout=20)
    return site


def metrics(site):
    code, body = site.edges[0].agent.get("/metrics", timeout=10)
    check(code == 200, "GET /metrics", code, body[:200])
    return body


def series(body):
    return {line.rsplit(b" ", 1)[0] for line in body.splitlines() if not line.startswith(b"#")}


def test_promtool(site):
    """promtool finds nothing to say, and neither does a strict parser."""
    body = metrics(site)
    done = subprocess.run([find("promtool"), "check", "metrics"], input=body, capture_output=True, check=False)
    check(done.returncode == 0 and not done.stderr, "promtool", done.returncode, done.stderr[:2000])
    families = exposition.parse(body)
    check(len(families["redshank_prefix_wanted"].samples) == SERVICES, "a sample for each prefix")
    empty = {name for name, family in families.items() if not family.samples and not name.startswith(SHEDDING)}
    check(empty <= ABSENT, "none is empty but what is not configured", empty - ABSENT)


def test_free_text_is_no_label(site):
    """What a check says is in the status and in no label, so no series comes or goes with it."""
    agent = site.edges[0].agent
    reason = agent.check("service0", "0")["reason"]
    check("\\xff" in reason and "\\x09" in reason, "the reason is what we meant", reason)
    before = metrics(site)
    check(b"\\xff" not in before and b"\xff" not in before and b"\t" not in before, "no reason in the metrics")
    eventually(lambda: agent.check("service0", "0")["reason"] != reason, what="it says something else")
    after = eventually(lambda: (b := metrics(site)) != before and b, what="another document")
    check(series(after) == series(before), "the same series", series(after) ^ series(before))


def test_events_hold_any_text(site):
    """What an operator says, and what a check said, is a word in the events."""
    agent = site.edges[0].agent
    why = "a\tbc\n\ndata: x\r\u2028\"\\\\</script>"
    code, answer = agent.get("/v1/freeze", method="POST", body=json.dumps({"reason": why, "for": "1h"}))
    check(code == 200, "the freeze", code, answer)
    code, body = agent.get("/v1/events")
    events = json.loads(body)["events"]
    said = [event["why"] for event in events if event["event"] == "freeze"]
    check(said and "a\\x09bc\\x0a\\x0adata: x\\x0d" in said[-1], "the word", said)
    check(len(events) <= 1024 and all(c >= 0x20 or c == 0x0A for c in body), "printable, and bounded", len(events))
    agent.get("/v1/thaw", method="POST", body="{}")


def test_odd_names_are_refused(site):
    """Names that would need escapes never come that far: the configuration is refused."""
    agent = site.edges[0].agent
    good = agent.config
    for name in ('MacBook 14" C:\\x\né', "a\tb", "\u2028"):
        agent.config = {**good, "services": {name: service(600)}}
        mark = len(agent.text())
        agent.reload()
        agent.wait_log("what ran keeps running", after=mark, timeout=10)
    agent.config = good
    check(len(exposition.parse(metrics(site))["redshank_prefix_wanted"].samples) == SERVICES, "what ran is told")


def test_cost(site):
    """A document costs the loop little, and many who ask at once share one."""
    agent = site.edges[0].agent

    def spent(body):
        return [exposition.value(body, f"redshank_metrics_{what}_total") for what in ("renders", "render_seconds")]

    time.sleep(0.25)  # what was made before is no longer fresh
    first = spent(metrics(site))
    time.sleep(0.25)
    askers = [
        subprocess.Popen(
            ["curl", "-sS", "-o", os.path.join(site.dir, f"scrape-{n}"), "--unix-socket", agent.socket, "http://x/metrics"]
        )
        for n in range(20)
    ]
    for asker in askers:
        check(asker.wait(20) == 0, "each is answered")
    bodies = {open(os.path.join(site.dir, f"scrape-{n}"), "rb").read() for n in range(20)}
    for body in bodies:
        exposition.parse(body)
    time.sleep(0.25)
    last = spent(metrics(site))
    renders = last[0] - first[0]
    cost = (last[1] - first[1]) / renders
    print(f"    {len(bodies)} documents of {len(body) / 1e6:.1f} MB for 20; one costs {cost * 1000:.2f} ms")
    check(len(bodies) <= 10, "they share", len(bodies))
    check(cost < 0.05, "what one costs (an unoptimised build, a busy machine)", cost)


main(make_site)
