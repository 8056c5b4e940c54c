"""A22: a pidfile after an unclean stop.

It outlives its writer, and its number comes to mean another process, a zombie or nothing. Only a living
process that is older than the file keeps the prefix announced; everything else withdraws it, and says why.
"""

import os
import subprocess
import time

from lib.case import check, main
from lib.site import Site

DNS = "192.0.2.53/32"


def write(site, text, age=0):
    path = site.pidfile
    with open(path + ".new", "w", encoding="ascii") as f:
        f.write(text)
    when = time.time() - age
    os.utime(path + ".new", (when, when))
    os.rename(path + ".new", path)


def announced(site):
    write(site, f"{site.edges[0].nsd.pid}\n")
    site.wait_announced(DNS, "edge1")


def withdrawn(site, reason):
    site.wait_route(DNS, set())
    state = site.edges[0].agent.wait_check("dns", "process", state="down")
    check(reason in state["reason"], f"the reason says {reason!r}", state)


def test_a_living_process(site):
    """The process that wrote the file is healthy."""
    edge = site.edges[0]
    site.pidfile = edge.host.path("watched.pid")
    edge.agent.config["services"]["dns"]["checks"] = {"process": {"type": "process", "pidfile": site.pidfile}}
    write(site, f"{edge.nsd.pid}\n")
    edge.agent.start()
    site.wait_announced(DNS, "edge1")


def test_contents(site):
    """Whatever else the file holds withdraws with a reason of its own."""
    for text, reason in (
        ("0\n", "holds 0"),
        ("-1\n", 'holds "-1"'),
        ("1\n", "names process 1, which is init"),
        ("", "is empty"),
        ("12 34\n", 'holds "12 34"'),
        ("99999999999\n", 'holds "99999999999"'),
        ("4194303\n", "names process 4194303, which does not exist"),
    ):
        announced(site)
        write(site, text)
        withdrawn(site, reason)


def test_an_unrelated_process(site):
    """A process that was started after the file was written is another one."""
    announced(site)
    other = site.edges[0].host.start(["sleep", "600"], "sleep.log")
    write(site, f"{other.pid}\n", age=60)
    withdrawn(site, "which is newer than the file")
    other.kill()


def test_a_zombie(site):
    """A dead process that its parent has not noticed is dead."""
    announced(site)
    zombie = subprocess.Popen(["true"])
    os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
    write(site, f"{zombie.pid}\n")
    withdrawn(site, "which is a zombie")
    zombie.wait()


def test_missing(site):
    """No file while nothing is known to live; then the service starts anew and is seen."""
    announced(site)
    killed = site.edges[0].nsd.kill()
    gone = site.wire.wait_withdraw("edge1", DNS, since=killed)
    check(gone.time - killed < 1.0, "the death of the process itself leaves at once", gone.time - killed)
    os.unlink(site.pidfile)
    withdrawn(site, "")
    site.edges[0].nsd.start()
    announced(site)


main(lambda: Site(edges=1))
