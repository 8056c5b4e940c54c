"""A28: stop means withdraw, wait, then exit.

A client sends 100 queries a second while a real systemd stops the agent, the service, BIRD, and at last
the whole machine. Queries that were sent after the withdrawal had reached the router are not lost.
"""

import time

from lib.case import check, eventually, main
from lib.machinesite import MachineSite
from lib.wire import CLOSED

DNS, DNS6 = "192.0.2.53/32", "2001:db8::53/128"
SETTLE = 0.05  # for the router's kernel to take what its BIRD was told


def asking(site):
    site.machine.systemctl("start", "bird.service", "nsd.service", "redshank.service")
    site.wait_sessions(["edge1"])
    site.wait_announced(DNS, "edge1")
    asker = site.asker(rate=100)
    asker.wait_served("machine", timeout=10)
    return asker


def lost_after(asker, moment):
    """Queries lost of those sent from then on; the last ones get a moment for their answers."""
    eventually(lambda: len(asker.between(moment)) > 40, what="40 queries more")
    asker.stop()
    return asker.lost(moment, time.time() - 0.2)


def test_stop_agent(site):
    """systemctl stop redshank: not one query is lost."""
    asker = asking(site)
    begun = time.time()
    site.machine.systemctl("stop", "redshank.service")
    stopped = time.time()
    check(site.wire.wait_withdraw("edge1", DNS, since=begun).time < stopped, "withdrawn before it exits")
    check(stopped - begun < 15, "within TimeoutStopSec", stopped - begun)
    asker.wait_served("edge2", since=begun)
    check(lost_after(asker, begun) == 0, "no query is lost", asker.summary(begun))


def test_stop_service(site):
    """systemctl stop nsd: withdrawn at once, and nothing is lost once the router knows."""
    asker = asking(site)
    begun = time.time()
    site.machine.systemctl("stop", "nsd.service")
    gone = site.wire.wait_withdraw("edge1", DNS, since=begun).time
    check(lost_after(asker, gone + SETTLE) == 0, "no query is lost after that", asker.summary(gone + SETTLE))


def test_stop_bird(site):
    """systemctl stop bird: the session closes; the agent waits for BIRD's return and repairs it."""
    asker = asking(site)
    begun = time.time()
    site.machine.systemctl("stop", "bird.service")
    gone = site.wire.wait(lambda e: e.kind == CLOSED and e.edge == "edge1", since=begun).time
    check(lost_after(asker, gone + SETTLE) == 0, "no query is lost after that", asker.summary(gone + SETTLE))
    eventually(lambda: site.status()["bird"]["link"] == "away", what="the agent knows that BIRD is away")
    site.machine.systemctl("start", "bird.service")
    site.wait_sessions(["edge1"])
    site.wait_announced(DNS, "edge1")


def test_shutdown(site):
    """A shutdown stops the agent first (redshank-generator): withdrawn while nsd still answers, no query is lost."""
    asker = asking(site)
    begun = time.time()
    site.machine.systemctl("poweroff", "--no-block")
    site.wire.wait_withdraw("edge1", DNS, since=begun)
    eventually(lambda: not site.machine.process.alive(), 30, what="the machine is off")
    asker.wait_served("edge2", since=begun)
    check(lost_after(asker, begun) == 0, "no query is lost", asker.summary(begun))


main(MachineSite)
