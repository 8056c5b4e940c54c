"""A24: a reload must not forget health.

Three services: one down, one up, one rising (some of its good answers given). HUP with nothing
changed, an unrelated service added, the down service's check changed, the up service renamed with the
same prefix, the up service removed. What BIRD was told is read from BIRD's own log of commands.
"""

import os
import re
import time

from lib.case import check, eventually, main
from lib.site import Site

DOWN, UP, RISING, OTHER = "192.0.2.61/32", "192.0.2.62/32", "192.0.2.63/32", "192.0.2.64/32"
RISE = 12  # good answers of 200 ms each that `rising` needs


def flag(site, name):
    return os.path.join(site.dir, "flag-" + name)


def service(site, prefix, name, **more):
    command = {"type": "exec", "command": ["/usr/bin/test", "-e", flag(site, name)], "interval": "200ms",
               "fast_interval": "200ms", "timeout": "200ms"}
    return {"prefixes": {prefix: 100}, "checks": {"flag": {**command, **more}}}


def told(site, since):
    """The commands that change something in BIRD's log behind offset `since`."""
    with open(site.edges[0].bird.log, encoding="utf-8") as f:
        text = f.read()[since:]
    return re.findall(r"CLI: ((?:configure(?! status)|enable|disable|reload|restart).*)", text)


def log_length(site):
    return len(open(site.edges[0].bird.log, encoding="utf-8").read())


def make_site():
    site = Site(edges=1, services=False, bird_extra="debug commands 2;")
    edge = site.edges[0]
    for prefix in (DOWN, UP, RISING, OTHER):
        edge.add_address(prefix.split("/")[0])
    for name in ("up", "rising"):
        open(flag(site, name), "w").close()
    edge.agent.config["services"] = {
        "down": service(site, DOWN, "down"),
        "up": service(site, UP, "up"),
        "rising": service(site, RISING, "rising", rise=RISE),
    }
    return site


def reload(site):
    agent = site.edges[0].agent
    mark = len(agent.text())
    agent.reload()
    agent.wait_log("reloaded", after=mark)


def test_start(site):
    """One is up, one is down, one is rising."""
    agent = site.edges[0].agent
    agent.start()
    site.wait_announced(UP, "edge1")
    agent.wait_check("down", "flag", state="down")
    agent.wait_status(lambda s: s["bird"]["settled"], what="settled")
    check("edge1" not in site.routes(RISING), "rising is not announced yet")
    check(told(site, 0), "BIRD's log tells of commands", told(site, 0))


def test_unchanged(site):
    """HUP with nothing changed, and with an unrelated service: state, counters and schedule stay, BIRD is told nothing of them."""
    agent = site.edges[0].agent
    begun, mark = time.time(), log_length(site)
    before = {n: agent.check(n, "flag") for n in ("up", "down", "rising")}
    for _ in range(3):
        reload(site)
    after = {n: agent.check(n, "flag") for n in ("up", "down", "rising")}
    for name in before:
        check(after[name]["since"] == before[name]["since"], f"{name} keeps its state", before[name], after[name])
        check(len(after[name]["outcomes"]) >= len(before[name]["outcomes"]), f"{name} keeps its history")
    check(told(site, mark) == [], "not one command", told(site, mark))
    agent.config["services"]["other"] = service(site, OTHER, "other")
    reload(site)
    eventually(lambda: told(site, mark), what="the new service is loaded")
    agent.wait_status(lambda s: s["bird"]["settled"], what="settled")
    check(told(site, mark) == ["configure"], "one configure and no other command", told(site, mark))
    check(site.wire.since(begun) == [], "no UPDATE", site.wire.since(begun))
    outcomes = agent.check("rising", "flag")["outcomes"]
    check(outcomes.count("good") < RISE, "rising has not come through meanwhile", outcomes)
    site.wait_announced(RISING, "edge1", timeout=RISE * 0.2 + 3)
    # Had a reload begun the count anew, it would have had to wait longer than its own schedule.
    first = time.time() - begun
    check(first < RISE * 0.2 + 1.0, "rising kept its counter", first)


def test_changed_check(site):
    """A changed check starts anew and keeps its present announcement until it has spoken."""
    agent = site.edges[0].agent
    begun = time.time()
    agent.config["services"]["up"]["checks"]["flag"]["command"] = ["/usr/bin/test", "-f", flag(site, "up")]
    agent.config["services"]["down"]["checks"]["flag"]["command"] = ["/usr/bin/test", "-f", flag(site, "down")]
    reload(site)
    agent.wait_check("up", "flag", state="up")
    agent.wait_check("down", "flag", state="down")
    check(site.wire.since(begun) == [], "no UPDATE", site.wire.since(begun))
    open(flag(site, "down"), "w").close()
    site.wait_announced(DOWN, "edge1")


def test_renamed(site):
    """The up service renamed with the same prefix does not flap."""
    agent = site.edges[0].agent
    begun = time.time()
    agent.config["services"]["renamed"] = agent.config["services"].pop("up")
    reload(site)
    agent.wait_check("renamed", "flag", state="up")
    agent.wait_status(lambda s: s["bird"]["settled"], what="settled")
    agent.wait_prefix(UP, service="renamed", announced=True, exported=1)
    withdrawn = [e for e in site.wire.since(begun) if e.kind == "withdraw"]
    check(withdrawn == [], "never withdrawn", withdrawn)
    check("edge1" in site.routes(UP), "announced")


def test_removed(site):
    """A removed service's prefix is withdrawn, its fragment is gone, and nothing else moves."""
    agent = site.edges[0].agent
    begun = time.time()
    del agent.config["services"]["renamed"]
    reload(site)
    site.wire.wait_withdraw("edge1", UP, since=begun)
    agent.wait_status(lambda s: s["bird"]["settled"], what="settled")
    check(site.edges[0].fragment("renamed") is None, "the fragment is gone")
    check({e.prefix for e in site.wire.since(begun)} == {UP}, "only its own prefix", site.wire.since(begun))
    eventually(lambda: "renamed" not in site.edges[0].birdc('show protocols "redshank:*"').text, what="BIRD forgot it")


def test_bad_reload(site):
    """A reload with errors is refused with all of them, and what ran keeps running."""
    agent = site.edges[0].agent
    begun, mark, commands = time.time(), len(agent.text()), log_length(site)
    good = agent.config
    agent.config = {**good, "services": {**good["services"], "bad": {"prefixes": {"192.0.2.1/24": 1}, "chekcs": {}}}}
    agent.reload()
    agent.wait_log("what ran keeps running", after=mark)
    text = agent.text()[mark:]
    check("chekcs" in text and "checks" in text and "192.0.2.1/24" in text, "both mistakes are named", text)
    check(site.wire.since(begun) == [] and told(site, commands) == [], "nothing was sent")
    agent.config = good
    reload(site)


main(make_site)
