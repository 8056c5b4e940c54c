"""A new agent, or a new configuration, announces everything with what it was announced with.

One service for each thing that can stand between what is configured and what is announced: an
operator's weight, a ramp, a drain that leaves gently, an announcement by force, a last resort, a
neighbour's promise by which a prefix is shed, in both modes; and one whose weight and communities are
others in the new configuration, which is one UPDATE. They go through each way in which an agent or a
configuration is replaced, while a check of each has not spoken yet, so that nothing but the replacing
itself can send an UPDATE. A part of each service is withdrawn in the same decision where the way says
so, which renders its fragment at once. Where nothing changes for the engine either (CALM) no decision
corrects what a start has rendered.
"""

import os
import signal
import time

from lib.case import check, eventually
from lib.shedsite import STARTING, touch
from lib.wire import ANNOUNCE, WITHDRAW

KINDS = ("weighed", "ramped", "leaving", "forced", "demoted", "changed")
CALM = ("weighed", "demoted")
SHED = {"shed": "withdraw", "lowered": "demote"}  # and the mode; one at a time
ALL = KINDS + tuple(SHED)
SHUTDOWN = (65535, 0)
OWN, RAMP, WORD, LEAVE, LAST, NEW = 100, 500, 50, 900, 65535, 80


def one(kind):
    return f"198.18.{ALL.index(kind)}.1/32"


def other(kind):
    return f"198.18.{ALL.index(kind)}.2/32"


def before(kinds):
    """What each is announced with at first, and its other prefix: {prefix: MED}."""
    of_one = dict(zip(ALL, (WORD, RAMP, LEAVE, OWN, LAST, OWN, None, LAST)))
    of_other = {"ramped": RAMP}
    all_of_them = {**{one(kind): of_one[kind] for kind in kinds}, **{other(kind): of_other.get(kind, OWN) for kind in kinds}}
    return {prefix: med for prefix, med in all_of_them.items() if med is not None}


def gate(edge, name):
    return edge.host.path(f"shut-{name}")


def shut(edge, name):
    touch(gate(edge, name))


def word(edge):
    return edge.host.path("the-slow-may-speak")


def slow(edge):
    """The command of a check that speaks when the test lets it."""
    return ["/bin/sh", "-c", f"until test -e {word(edge)}; do sleep 0.05; done"]


def configuration(edge, kinds, turn, part=False, new=False):
    """`turn` makes another slow check of it; with `part` the other prefixes lack their addresses."""
    config = edge.agent.default_config()
    config["services"] = {}
    config["reload_guard"] = 100
    for kind in kinds:
        prefixes = {one(kind): {"weight": OWN, "address_check": False}, other(kind): {"weight": OWN}}
        if not part:
            prefixes[other(kind)]["address_check"] = False
        config["services"][kind] = {
            "prefixes": prefixes,
            "checks": {
                "gate": {"type": "exec", "command": ["/usr/bin/test", "!", "-e", gate(edge, kind)], "rise": 1},
                "slow": {
                    "type": "exec", "command": slow(edge), "interval": f"{60 + turn}s", "timeout": "50s", "rise": 1,
                },
            },
        }
    manners = {
        "ramped": {"slow_start": {"from": RAMP, "steps": 2, "for": "10m"}},
        "leaving": {"leave": {"graceful": "10m", "weight": LEAVE}},
    }
    for kind in kinds:
        config["services"][kind].update(manners.get(kind, {}))
        if kind in SHED:
            config["shed"] = {"mode": SHED[kind]}
            config["neighbours"] = edge.agent.config["neighbours"]
        if kind in ("demoted", "lowered"):
            config["services"][kind]["prefixes"][one(kind)]["last_resort"] = True
    config["services"]["demoted"]["checks"]["gate"]["shared"] = True
    if new and "changed" in kinds:
        config["services"]["changed"]["prefixes"][one("changed")].update(weight=NEW, communities=["64501:7"])
    return config


def spoken(status):
    return status["bird"]["settled"] and all(
        c["state"] != "pending" for s in status["services"].values() for c in s["checks"].values())


def on_the_wire(site, prefixes):
    """The last announcement of each that has not been withdrawn since: {prefix: event}."""
    last = {}
    for event in site.wire.since(0, "edge1"):
        if event.kind in (ANNOUNCE, WITHDRAW) and event.prefix in prefixes:
            last[event.prefix] = event
    return {prefix: event for prefix, event in last.items() if event.kind == ANNOUNCE}


def as_before(site, kinds):
    seen = on_the_wire(site, [prefix for kind in kinds for prefix in (one(kind), other(kind))])
    return {prefix: event.med for prefix, event in seen.items()} == before(kinds) and (
        "leaving" not in kinds or SHUTDOWN in seen[one("leaving")].attributes.get("communities", []))


def speak(agent, kinds):
    words = {
        "weighed": ("weight", one("weighed"), str(WORD)), "leaving": ("drain", one("leaving")),
        "forced": ("announce", "forced", "--for", "1h"), **{kind: ("shed", one(kind)) for kind in SHED},
    }
    for kind in words.keys() & kinds:
        done = agent.ctl(*words[kind])
        check(done.returncode == 0, "said", done)


def prepare(site, kinds, turn):
    """Every service as in before(), by the configuration in which nothing lacks."""
    edge = site.edges[0]
    agent = edge.agent
    agent.config = configuration(edge, kinds, turn)
    touch(word(edge))
    for kind in ("demoted", "ramped"):  # what is adopted has no ramp: it comes anew
        touch(gate(edge, kind), False)
    if not agent.process:
        agent.start()
        agent.wait_status(spoken, what="all has spoken")
        speak(agent, kinds)
        shut(edge, "forced")
    else:
        if "ramped" in kinds:
            shut(edge, "ramped")
        agent.reload()
        speak(agent, kinds)
        if "ramped" in kinds:
            agent.wait_prefix(one("ramped"), reason="unhealthy", announced=False)
            os.unlink(gate(edge, "ramped"))
    if "ramped" in kinds:
        agent.wait_prefix(one("ramped"), reason="ramping", announced=True, weight=RAMP)
    agent.wait_status(spoken, what="all has spoken")
    if "forced" in kinds:
        agent.wait_prefix(one("forced"), reason="forced", announced=True)
        agent.wait_status(lambda s: s["services"]["forced"]["health"] == "unhealthy", what="what is forced is unhealthy")
    for kind in SHED.keys() & kinds:
        agent.wait_prefix(one(kind), reason="shed", announced=kind == "lowered", timeout=STARTING + 10)
    shut(edge, "demoted")
    agent.wait_prefix(one("demoted"), reason="shared_unhealthy", wanted="demote")
    eventually(lambda: as_before(site, kinds), 5, lambda: f"as it is to be: {on_the_wire(site, before(kinds))}")
    agent.wait_status(spoken, what="at rest")


def expected(kinds, way, part):
    sent = [(ANNOUNCE, one("changed"), NEW)] if "changed" in kinds else []
    if part:  # what is forced stays without its address
        sent += [(WITHDRAW, other(kind), None) for kind in kinds if kind != "forced"]
    for kind in SHED.keys() & kinds if way != "reload" else ():  # promises end with the agent, and come again
        gone = (WITHDRAW, one(kind), None) if kind == "shed" else (ANNOUNCE, one(kind), LAST)
        sent += [(ANNOUNCE, one(kind), OWN), gone]
    if way != "reload" and "ramped" in kinds:  # a restart ends a ramp, as the manual says
        sent += [(ANNOUNCE, prefix, OWN) for prefix in [one("ramped")] + ([] if part else [other("ramped")])]
    return sent


def replace(site, way):
    agent = site.edges[0].agent
    if way == "reload":
        mark = len(agent.text())
        agent.reload()
        agent.wait_log("reloaded: ", after=mark)
        return
    if way == "kill":
        agent.kill()
    else:
        check(agent.stop(signal.SIGUSR2) == 0, "exit status 0")
    agent.start()


turns = iter(range(0, 100, 2))


def check_way(site, way, kinds=KINDS, part=False):
    edge, turn = site.edges[0], next(turns)
    prepare(site, kinds, turn)
    begun = site.moment()
    edge.agent.config = configuration(edge, kinds, turn + 1, part, new=True)
    os.unlink(word(edge))
    replace(site, way)
    # What the replacing itself sends comes while no check has spoken; what the first round adds, after that.
    agent = edge.agent
    agent.wait_status(lambda s: s["bird"]["settled"], what="settled")
    pending = agent.status()["services"]["weighed"]["checks"]["slow"]["state"]
    check(pending == "pending", "a check has not spoken", pending)
    touch(word(edge))
    agent.wait_status(spoken, what="all has spoken")
    wanted = sorted(expected(kinds, way, part), key=str)

    def sent():
        return sorted([(e.kind, e.prefix, e.med) for e in site.wire.since(begun, "edge1")], key=str)

    eventually(lambda: len(sent()) >= len(wanted), STARTING + 10, lambda: f"{way}, {part=}: {wanted}, was sent: {sent()}")
    spoke = time.time()
    eventually(lambda: time.time() - spoke > 0.3, what="time for more to come")
    check(sent() == wanted, f"{way}, {part=}: exactly this was sent", sent())
