"""A process check by `executable` finds nsd by its program, though its processes are called "nsd: xfrd".

All processes of the machine are looked at, those of other tests, too: this nsd has a name of its own.
"""

import os

from lib.case import check, eventually, main
from lib.services import Nsd
from lib.site import Site

DNS = "192.0.2.53/32"


class NamedNsd(Nsd):
    """nsd under another name."""

    def __init__(self, host):
        super().__init__(host)
        self.program = f"nsd-{os.getpid()}"
        os.symlink("/usr/sbin/nsd", os.path.join(self.dir, self.program))

    def argv(self):
        return [os.path.join(self.dir, self.program), *super().argv()[1:]]


def comm(pid):
    with open(f"/proc/{pid}/comm", encoding="ascii") as f:
        return f.read().strip()


def test_nsd_by_name(site):
    """nsd by its program's name; its death is an event like any other."""
    edge = site.edges[0]
    edge.nsd = NamedNsd(edge.host)
    edge.nsd.start()
    eventually(lambda: comm(edge.nsd.pid) != edge.nsd.program, what="nsd has given its process another name")
    edge.agent.config["services"] = {"dns": {"prefixes": {DNS: 100}, "checks": {
        "program": {"type": "process", "executable": edge.nsd.program, "interval": "10s"},
    }}}
    edge.agent.start()
    site.wait_announced(DNS, "edge1")
    killed = edge.nsd.kill()
    gone = site.wire.wait_withdraw("edge1", DNS, since=killed)
    check(gone.time - killed < 5, "long before the next attempt", gone.time - killed)
    edge.agent.wait_check("dns", "program", state="down")


main(lambda: Site(edges=1, services=False))
