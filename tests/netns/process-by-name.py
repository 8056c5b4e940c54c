"""A process check by `executable` finds nsd, which calls its processes "nsd: xfrd" and "nsd: main"."""

from lib.case import check, main
from lib.site import Site

DNS = "192.0.2.53/32"


def test_nsd_by_name(site):
    """nsd by its program's name and by the names of its processes; its death is an event like any other."""
    edge = site.edges[0]
    with open(f"/proc/{edge.nsd.pid}/comm", encoding="ascii") as f:
        comm = f.read().strip()
    check(comm != "nsd", "nsd has given its process another name", comm)
    edge.agent.config["services"] = {"dns": {"prefixes": {DNS: 100}, "checks": {
        "program": {"type": "process", "executable": "nsd", "interval": "10s"},
        "comm": {"type": "process", "executable": comm, "interval": "10s"},
    }}}
    edge.agent.start()
    site.wait_announced(DNS, "edge1")
    killed = edge.nsd.kill()
    gone = site.wire.wait_withdraw("edge1", DNS, since=killed)
    check(gone.time - killed < 1, "long before the next attempt", gone.time - killed)
    edge.agent.wait_check("dns", "program", state="down")


main(lambda: Site(edges=1))
