"""A floor holds only where somebody can promise to stay: not yet after a reload that brings the
neighbours with it, since they are there after a restart. Until then a service that hangs leaves within
its bound; after it the floor holds."""

import os
import signal
import time

from lib.case import check, main
from lib.pulse import Pulse
from lib.shedsite import Neighbours
from lib.site import Site

WEB = "192.0.2.80/32"
INTERVAL, FAST, TIMEOUT, FALL = 0.5, 0.2, 0.5, 2
BOUND = INTERVAL + TIMEOUT + (FALL - 1) * max(FAST, TIMEOUT)
PULSE = Pulse()


def hang(edge, hangs=True):
    path = edge.host.path("hangs")
    if hangs:
        with open(path, "w", encoding="utf-8"):
            pass
    elif os.path.exists(path):
        os.unlink(path)


def add_check(edge, config):
    config["services"] = {"web": config["services"]["web"]}
    config["services"]["web"]["checks"] = {"answers": {
        "type": "exec", "command": ["/bin/sh", "-c", f"test ! -e {edge.host.path('hangs')} || exec sleep 60"],
        "interval": f"{INTERVAL * 1000:.0f}ms", "fast_interval": f"{FAST * 1000:.0f}ms",
        "timeout": f"{TIMEOUT * 1000:.0f}ms", "fall": FALL, "rise": 1,
    }}


def leaves_in_time(site, edge):
    moment = time.time()
    hang(edge)
    left = site.wire.wait_withdraw(edge.name, WEB, since=moment)
    took = left.time - moment
    check(took < BOUND + 0.5 + PULSE.withheld(moment), f"within {BOUND} s and a moment", took)


def test_reload_that_brings_neighbours(site):
    """Reloads with `neighbours` and `floor` come and go; what hangs leaves in time after each."""
    edge = site.edges[0]
    agent = edge.agent
    with_neighbours, alone = agent.config, agent.default_config()
    add_check(edge, alone)
    add_check(edge, with_neighbours)
    with_neighbours["services"]["web"]["floor"] = 1
    agent.config = alone
    agent.start()
    agent.wait_prefix(WEB, announced=True, exported=1, reason="healthy")
    for config in (with_neighbours, alone, with_neighbours):
        mark = len(agent.text())
        agent.config = config
        agent.reload()
        agent.wait_log("reloaded: ", after=mark)
        told = "and no `floor` holds anything" in agent.text()[mark:]
        check(told == (config is with_neighbours), "it is said", agent.text()[mark:])
        leaves_in_time(site, edge)
        hang(edge, False)
        agent.wait_prefix(WEB, announced=True, exported=1, reason="healthy")
    # A weight is the engine's whole configuration anew: without the floor, as well.
    check(agent.ctl("weight", WEB, "7").returncode == 0, "another weight")
    leaves_in_time(site, edge)
    hang(edge, False)
    agent.wait_prefix(WEB, announced=True, exported=1, reason="healthy")


def test_restart(site):
    """After a restart the floor holds, since nobody promises."""
    edge = site.edges[0]
    check(edge.agent.stop(signal.SIGUSR2) == 0, "exit status 0")
    edge.agent.start()
    edge.agent.wait_prefix(WEB, announced=True, reason="healthy")
    hang(edge)
    edge.agent.wait_prefix(WEB, announced=True, reason="kept_by_floor")


def make_site():
    site = Site(edges=2)  # the other's agent does not run
    Neighbours(site)
    return site


main(make_site)
