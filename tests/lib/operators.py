"""What tests of operators' words share: an agent that was told nothing yet, redshankctl with the exit
status that is expected, and a prefix as agent and router see it."""

import os
import signal

from lib.case import check

DNS, DNS6, WEB = "192.0.2.53/32", "2001:db8::53/128", "192.0.2.80/32"


def untold(site, config=None):
    """The agent of the first edge, anew and without a word of before; all its services run and are announced."""
    edge = site.edges[0]
    agent = edge.agent
    if agent.process and agent.process.alive():
        agent.stop(signal.SIGUSR2)
    if os.path.exists(edge.host.path("state.json")):
        os.unlink(edge.host.path("state.json"))
    agent.config = config or agent.default_config()
    agent.start()
    for prefix in (DNS, DNS6, WEB):
        agent.wait_prefix(prefix, announced=True, exported=1, reason="healthy")
        site.wait_announced(prefix, "edge1")
    return agent


def ctl(agent, *arguments, code=0):
    done = agent.ctl(*arguments)
    check(done.returncode == code, f"redshankctl {arguments} exits {code}", done)
    return done


def one_line(done):
    """Its output without the line breaks of a narrow terminal."""
    return " ".join(done.stdout.split())


def announced(site, agent, reason, *prefixes):
    for prefix in prefixes:
        agent.wait_prefix(prefix, wanted="announce", reason=reason, announced=True, exported=1)
        site.wait_route(prefix, {"edge1"})


def withdrawn(site, agent, reason, *prefixes):
    for prefix in prefixes:
        agent.wait_prefix(prefix, wanted="withdraw", reason=reason, announced=False)
        site.wait_route(prefix, set())
