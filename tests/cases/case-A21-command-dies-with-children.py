"""A21: a command that is too slow dies with its children, however they hide.

A check's command starts children in its group, in a session of their own, and orphans of both; it hangs
and is ended by its timeout, round after round. Nothing piles up: no process, no zombie, no descriptor.
"""

import os

from lib.case import check, eventually, main
from lib.site import Site

DNS = "192.0.2.53/32"
HANGS = """test -e {good} && exit 0
trap '' TERM HUP INT
sleep 600 &
setsid sleep 600 &
(sh -c 'sleep 600 & setsid sleep 600 & sleep 600' &)
sleep 600"""


def marked(agent):
    """Processes that a check of this agent started, wherever they have gone."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                if f"REDSHANK_CHECK_OF={agent.pid}.".encode() in f.read():
                    found.append(int(pid))
        except OSError:
            pass
    return found


def children(agent):
    with open(f"/proc/{agent.pid}/task/{agent.pid}/children", encoding="ascii") as f:
        return f.read().split()


def descriptors(agent):
    return len(os.listdir(f"/proc/{agent.pid}/fd"))


def test_hanging_commands(site):
    """Twenty rounds of a hanging command leave nothing behind."""
    edge = site.edges[0]
    agent = edge.agent
    good = edge.host.path("good")
    with open(good, "w", encoding="ascii"):
        pass
    agent.config["services"]["dns"]["checks"] = {
        "script": {
            "type": "exec",
            "command": ["/bin/sh", "-c", HANGS.format(good=good)],
            "interval": "200ms",
            "timeout": "150ms",
            "fast_interval": "200ms",
        }
    }
    agent.start()
    site.wait_announced(DNS, "edge1")
    before = descriptors(agent)
    os.unlink(good)
    site.wait_route(DNS, set())
    state = agent.wait_check("dns", "script", state="down")
    check("timeout after 150ms" in state["reason"], "the reason", state)

    seen = []

    def rounds():
        seen.append((len(marked(agent)), len(children(agent)), descriptors(agent)))
        outcomes = agent.check("dns", "script")["outcomes"]
        return len([o for o in outcomes if o in ("bad", "b", "-", "x")]) >= 20 or len(seen) >= 60

    eventually(rounds, timeout=20, every=0.1, what="20 rounds")
    most = [max(column) for column in zip(*seen)]
    check(most[0] < 40, "processes do not pile up", most)
    check(most[1] < 60, "zombies do not pile up", most)
    check(most[2] <= before + 6, "descriptors do not pile up", before, most)

    with open(good, "w", encoding="ascii"):
        pass
    site.wait_announced(DNS, "edge1")
    eventually(lambda: not [p for p in marked(agent) if not runs_now(p, agent)], timeout=5, what="nothing is left")


def runs_now(pid, agent):
    """A command of this very moment: a child of the agent that is not a sleep."""
    try:
        with open(f"/proc/{pid}/comm", encoding="ascii") as f:
            return f.read().strip() != "sleep"
    except OSError:
        return True


def test_reasons(site):
    """An end by a signal, 126 and 127 are failures that explain themselves."""
    agent = site.edges[0].agent
    for script, reason in (
        ("kill -SEGV $$", "killed by SIGSEGV"),
        ("exit 126", "exit 126 (a command cannot be executed)"),
        ("no-such-command-here", "exit 127 (a command was not found)"),
        ("echo no zone; exit 1", "exit 1: no zone"),
    ):
        agent.config["services"]["dns"]["checks"]["script"]["command"] = ["/bin/sh", "-c", script]
        agent.config["services"]["dns"]["checks"]["script"]["timeout"] = "200ms"
        agent.reload()
        state = eventually(
            lambda r=reason: (s := agent.check("dns", "script"))["state"] == "down" and r in (s["reason"] or "") and s,
            what=lambda r=reason: f"{r!r}: {agent.check('dns', 'script')}",
        )
        check(state["state"] == "down", "down", state)
        site.wait_route(DNS, set())


main(lambda: Site(edges=1))
