"""A site whose first edge is a whole machine: systemd runs BIRD, nsd and redshankd by their units.

    with MachineSite() as site:
        site.machine.systemctl("start", "bird.service", "nsd.service", "redshank.service")

edge2 is an ordinary edge of site.py that announces the same prefixes at a higher MED, so that the
client's queries have somewhere to go. The machine has Debian's own bird.service and nsd.service, and
from this tree redshank.service with its tmpfiles, sysusers and generator; the programs are bound to /opt.
"""

import json
import os

from lib import birds
from lib.agentctl import ROOT, DEFAULTS, build_folder
from lib.machine import Machine
from lib.services import DNS_ADDRESSES, WEB_ADDRESSES
from lib.site import TEMPLATE, Edge, Site
from lib.wire import Wire

CONFIG = {
    "node": "machine",
    "defaults": DEFAULTS,
    "services": {
        "dns": {
            "prefixes": {"192.0.2.53/32": 50, "2001:db8::53/128": 50},
            "checks": {
                "process": {"type": "process", "unit": "nsd.service"},
                "port": {"type": "tcp", "address": "192.0.2.53", "port": 53},
            },
        }
    },
}

NSD = """\
server:
	ip-address: 192.0.2.53
	ip-address: 2001:db8::53
	server-count: 1
	username: ""
	zonesdir: "/run"
	pidfile: ""
	database: ""
	xfrdfile: ""
	zonelistfile: ""
	rrl-ratelimit: 0
	ip-transparent: yes
remote-control:
	control-enable: no
zone:
	name: example.net
	zonefile: "/etc/nsd/example.net.zone"
"""

ZONE = """\
$ORIGIN example.net.
$TTL 60
@ SOA ns hostmaster 1 3600 600 86400 60
@ NS ns
ns A 192.0.2.53
health A 192.0.2.53
id TXT "machine"
"""

# What edge2 announces, without an agent: it stands for the rest of the site.
OTHERS = """\
protocol static 'redshank:dns:192.0.2.53' {
	ipv4 { table redshank4; preference 250; };
	route 192.0.2.53/32 unreachable { redshank_weight = 200; };
}
protocol static 'redshank:dns:2001:db8::53' {
	ipv6 { table redshank6; preference 250; };
	route 2001:db8::53/128 unreachable { redshank_weight = 200; };
}
"""

# Where the programs lie in a test; a sanitizer may not abort what has no capability to be traced.
DROPIN = """\
[Service]
ExecStart=
ExecStart=/opt/redshankd -c /etc/redshank/redshank.json
Environment=ASAN_OPTIONS=detect_leaks=0
"""


# The generator as it is shipped, told where the daemon lies in a test.
GENERATOR = """\
#!/bin/sh
export REDSHANKD=/opt/redshankd ASAN_OPTIONS=detect_leaks=0
exec /opt/redshank-generator "$@"
"""


def _read(*parts):
    with open(os.path.join(ROOT, *parts), encoding="utf-8") as f:
        return f.read()


class MachineSite(Site):
    """`config` is redshank.json as a dict; `files` and `dropin` are added to the machine's; `kept`, `bpf`: see Machine."""

    tree = None  # see Machine
    ctl = "/opt/redshankctl"

    def __init__(self, config=None, files=None, dropin="", bird_extra="", kept=(), bpf=False):
        self.config = config or CONFIG
        self.extra_files = files or {}
        self.dropin = dropin
        self.kept, self.bpf = kept, bpf
        self.machine = None
        super().__init__(edges=2, bird_extra=bird_extra)

    def _build(self, edges, ecmp, ibgp, bird):
        self.router = self.lab.host("router")
        self.client = self.lab.host("client")
        self.edges = [Edge(self.lab, 2)]
        self.machine = Machine(self._files(bird["extra"]), self._binds(), lab=self.lab, tree=self.tree, kept=self.kept,
                               bpf=self.bpf)
        self._connect(0, "client", self.client)
        self._connect(1, "edge1", self.machine.host)
        self._connect(2, "edge2", self.edges[0].host)
        for address in DNS_ADDRESSES + WEB_ADDRESSES:
            self.edges[0].add_address(address)
        for address in DNS_ADDRESSES:
            length = 128 if ":" in address else 32
            self.machine.host.ip(f"addr add {address}/{length} dev lo" + (" nodad" if ":" in address else ""))
        self.router.sysctl(**{"ipv4/ip_forward": 1, "ipv6/conf/all/forwarding": 1})
        self.bird = birds.Bird(self.router, birds.router_config(self.router, edges, ecmp))
        self.wire = Wire(self.router, {"edge1": "edge1", "edge2": "edge2"})

    def _files(self, extra):
        bird = birds.edge_config(self.paths_inside(), 1, "/run/redshank/bird", "/opt/redshank.conf", extra)
        files = {
            "/etc/bird/bird.conf": bird,
            "/etc/bird/envvars": "BIRD_RUN_USER=bird\nBIRD_RUN_GROUP=bird\nBIRD_ARGS=\n",
            "/etc/nsd/nsd.conf": NSD,
            "/etc/nsd/example.net.zone": ZONE,
            "/etc/redshank/redshank.json": json.dumps(self.config, indent=2),
            "/etc/systemd/system/redshank.service": _read("systemd", "redshank.service"),
            "/etc/systemd/system/redshank.service.d/test.conf": DROPIN + self.dropin,
            "/etc/systemd/system/redshank-deadman.service": _read("systemd", "redshank-deadman.service").replace(
                "/usr/libexec/redshank/", "/opt/"
            ),
            "/etc/tmpfiles.d/nsd.conf": "d /var/lib/nsd 0755 nsd nsd -\n",
            "/etc/tmpfiles.d/redshank.conf": _read("systemd", "redshank.tmpfiles"),
            "/etc/sysusers.d/bird.conf": "u bird - \"BIRD\" /run/bird\nu nsd - \"NSD\" /\n",
            "/etc/sysusers.d/redshank.conf": _read("systemd", "redshank.sysusers"),
        }
        files.update(self.extra_files)
        return files

    @staticmethod
    def paths_inside():
        """Paths as they are inside the machine, for the parts of bird.conf that name some."""

        class Inside:
            @staticmethod
            def path(name):
                return "/run/bird/" + name

        return Inside()

    def _binds(self):
        build = build_folder()
        generator = self.router.path("generator")
        with open(generator, "w", encoding="utf-8") as f:
            f.write(GENERATOR)
        os.chmod(generator, 0o755)
        return [
            (os.path.join(build, "redshankd"), "/opt/redshankd"),
            (os.path.join(build, "redshankctl"), "/opt/redshankctl"),
            (TEMPLATE, "/opt/redshank.conf"),
            (os.path.join(ROOT, "systemd", "redshank-generator"), "/opt/redshank-generator"),
            (os.path.join(ROOT, "systemd", "redshank-deadman"), "/opt/redshank-deadman"),
            (generator, "/etc/systemd/system-generators/redshank-generator"),
        ]

    def _start(self, services):
        self.edges[0].write_fragment("dns", OTHERS)
        everything = [self.bird, self.edges[0].bird, self.edges[0].nsd]
        for thing in everything:
            thing.start(wait=False)
        for thing in everything:
            thing.wait_ready()
        self.wait_sessions(["edge2"])

    def status(self):
        """The agent's status in the machine, by redshankctl; {} while there is none."""
        done = self.machine.run([self.ctl, "--json", "status"], check=False)
        return json.loads(done.stdout) if done.returncode == 0 and done.stdout.startswith("{") else {}

    def report(self, n=20):
        logs = "".join(
            f"--- machine {unit}\n" + "\n".join(self.machine.journal(unit).splitlines()[-n:]) + "\n"
            for unit in ("redshank.service", "bird.service", "nsd.service")
        ) if self.machine and self.machine.leader else ""
        return logs + super().report(n)

    def close(self):
        if self.machine:
            self.machine.close()
        super().close()
