"""A27: the folder of fragments must not vanish under BIRD.

A real systemd with the units as they are shipped: BIRD starts before the agent ever ran, the agent is
restarted and stopped, and at each moment BIRD can be reconfigured and restarted.
"""

import time

from lib.case import check, eventually, main
from lib.machinesite import MachineSite

DNS, DNS6 = "192.0.2.53/32", "2001:db8::53/128"


def birdc(site, command):
    return site.machine.run(["birdc", "-v", command], check=False).stdout


def configure_is_accepted(site, when):
    answer = birdc(site, "configure")
    check(any(line.startswith(("0003", "0004", "0005")) for line in answer.splitlines()), when, answer)


def test_before_the_agent(site):
    """BIRD starts and is reconfigured before the agent ever ran."""
    site.machine.systemctl("start", "bird.service")
    check(site.machine.systemctl("is-active", "bird.service") == "active", "BIRD runs")
    eventually(lambda: "ready" in birdc(site, "show status"), what="BIRD answers")
    configure_is_accepted(site, "before the agent")
    site.wait_sessions(["edge1"])


def test_restart(site):
    """systemctl restart of the agent: the folder stays, BIRD is told nothing, no UPDATE is sent."""
    site.machine.systemctl("start", "nsd.service", "redshank.service")
    for prefix in (DNS, DNS6):
        site.wait_announced(prefix, "edge1")
    eventually(lambda: site.status()["bird"]["settled"], what="settled")
    before = site.machine.run(["stat", "-c", "%i", "/run/redshank/bird"]).stdout
    begun = time.time()
    site.machine.systemctl("restart", "redshank.service")
    configure_is_accepted(site, "after the restart")
    eventually(lambda: site.status()["services"]["dns"]["health"] == "healthy", what="the new agent has decided")
    check(site.machine.run(["stat", "-c", "%i", "/run/redshank/bird"]).stdout == before, "the same folder")
    check(site.wire.since(begun, edge="edge1") == [], "no UPDATE", site.wire.since(begun, edge="edge1"))


def test_killed(site):
    """A killed agent is started again by systemd and adopts: no UPDATE."""
    begun = time.time()
    pid = site.machine.show("redshank.service", "MainPID")
    site.machine.run(["kill", "-9", pid])
    eventually(lambda: site.machine.show("redshank.service", "MainPID") not in (pid, "0"), what="a new agent")
    eventually(lambda: site.status().get("services", {}).get("dns", {}).get("health") == "healthy", what="decided")
    check(site.wire.since(begun, edge="edge1") == [], "no UPDATE", site.wire.since(begun, edge="edge1"))


def test_stop(site):
    """systemctl stop of the agent withdraws; BIRD can be reconfigured and restarted, and announces nothing."""
    begun = time.time()
    site.machine.systemctl("stop", "redshank.service")
    for prefix in (DNS, DNS6):
        site.wire.wait_withdraw("edge1", prefix, since=begun)
    check(site.machine.show("redshank.service", "Result") == "success", "a clean stop")
    configure_is_accepted(site, "after the stop")
    site.machine.systemctl("restart", "bird.service")
    site.wait_sessions(["edge1"])
    check("edge1" not in site.routes(DNS), "nothing is announced", site.routes(DNS))
    site.machine.systemctl("start", "redshank.service")
    site.wait_announced(DNS, "edge1")


main(MachineSite)
