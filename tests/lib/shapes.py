"""A BIRD as somebody runs it (tests/cases/birdconf), with redshankd beside it and a router at its side.

    router ---- edge (eth0)
    198.51.100.1, .6            198.51.100.2, .5
    2001:db8:ffff::1, fe80::1   2001:db8:ffff::2, fe80::2

    with Shape("A5-exports-all", ROUTER) as shape:
        shape.wait_routes({"203.0.113.0/24"})
        with shape.keeping():                       # nothing that the router has now may go
            shape.include(before="protocol device")
            shape.agent.start()
            shape.wait_med("192.0.2.53/32", 100)
        shape.fail(); shape.wait_gone("192.0.2.53/32")

The service is a file: while it exists the agent's one check is good. fail() removes it, heal() makes
it. 192.0.2.53/32 and 2001:db8::53/128 are on the edge's lo.
"""

import contextlib
import os
import re
import shutil
import time
import types

from lib import birds, netns
from lib.agentctl import ROOT, Agent
from lib.case import check
from lib.site import TEMPLATE
from lib.wait import until
from lib.wire import CLOSED, NOTIFIED, WITHDRAW, Wire

FOLDER = os.path.join(ROOT, "tests", "cases", "birdconf")
V4, V6 = "192.0.2.53/32", "2001:db8::53/128"

HEAD = """
log stderr all;
router id 198.51.100.1;
protocol device { scan time 10; }
"""


class Shape:
    """`router` is the router's bird.conf without its head; `sessions` are the names on the router
    that must be established before anything is done (none where there is no BGP). `configure` may
    change the text of bird.conf before BIRD reads it."""

    def __init__(self, name, router, sessions=(), prefixes=(V4, V6), bird=None, configure=None):
        netns.needs("bird", "birdc")
        self.lab = netns.Lab()
        self.wire = None
        self.name = name
        try:
            self._build(name, router, bird, configure or (lambda text: text))
            self._configure(prefixes)
            self.bird.start(wait=False)
            self.edge_bird.start(wait=False)
            self.bird.wait_ready()
            self.edge_bird.wait_ready()
            self.wait_sessions(sessions)
        except BaseException:
            self.close()
            raise

    def _build(self, name, router, bird, configure):
        self.router, self.edge = self.lab.host("router"), self.lab.host("edge")
        self.lab.link(self.router, self.edge, "edge", "eth0")
        self.router.ip(
            "addr add 198.51.100.1/29 dev edge", "addr add 198.51.100.6/29 dev edge",
            "addr add 2001:db8:ffff::1/64 dev edge nodad", "addr add fe80::1/64 dev edge nodad",
        )
        self.edge.ip(
            "addr add 198.51.100.2/29 dev eth0", "addr add 198.51.100.5/29 dev eth0",
            "addr add 2001:db8:ffff::2/64 dev eth0 nodad",
            "addr add fe80::2/64 dev eth0 nodad", f"addr add {V4} dev lo", f"addr add {V6} dev lo nodad",
        )
        source = os.path.join(FOLDER, name)
        for entry in os.listdir(source):
            whole = os.path.join(source, entry)
            copy = shutil.copytree if os.path.isdir(whole) else shutil.copyfile
            copy(whole, self.edge.path(entry))
        self.fragments = self.edge.path("fragments")
        os.mkdir(self.fragments)
        self.edge_bird = birds.Bird(self.edge, configure(self.read("bird.conf")), bird or birds.program())
        self.bird = birds.Bird(self.router, HEAD + router, birds.router_program())
        self.wire = Wire(self.router, {"edge": "edge"})

    def _configure(self, prefixes):
        nobody = types.SimpleNamespace(pidfile="/nonexistent")
        edge = types.SimpleNamespace(
            name="edge", host=self.edge, bird=self.edge_bird, fragments=self.fragments, weight=100, nsd=nobody, nginx=nobody
        )
        self.flag = self.edge.path("healthy")
        self.agent = Agent(edge)
        # A machine that is stopped for a second makes one outcome bad, and not two.
        timing = {"interval": "500ms", "fast_interval": "100ms", "timeout": "500ms", "rise": 1, "fall": 2}
        self.agent.config["services"] = {
            "dns": {
                "prefixes": {p: 100 for p in prefixes},
                "checks": {"flag": {"type": "exec", "command": ["/usr/bin/test", "-e", self.flag], **timing}},
            }
        }
        self.heal()

    # the service

    def heal(self):
        with open(self.flag, "w", encoding="ascii"):
            pass

    def fail(self):
        os.unlink(self.flag)

    # bird.conf

    def read(self, name):
        with open(self.edge.path(name), encoding="utf-8") as f:
            return f.read()

    def edit(self, *changes, file="bird.conf", configure=True):
        """Each change is (old, new) and must be found; then `configure`, which must be accepted."""
        text = self.read(file)
        for old, new in changes:
            check(old in text, f"{self.name}: {file} has the line to change", old)
            text = text.replace(old, new)
        self.write(file, text)
        if configure:
            self.edge_bird.configure()

    def write(self, file, text):
        if file == "bird.conf":
            self.edge_bird.write_config(text)
            return
        with open(self.edge.path(file + ".new"), "w", encoding="utf-8") as f:
            f.write(text)
        os.rename(self.edge.path(file + ".new"), self.edge.path(file))

    def save(self):
        """What restore() goes back to."""
        files = [os.path.relpath(os.path.join(d, n), self.edge.dir) for d, _, names in os.walk(self.edge.dir) for n in names]
        self._saved = {n: self.read(n) for n in files if n.endswith(".conf") and not n.startswith("fragments")}

    def restore(self, files=None):
        for name, text in self._saved.items():
            if files is None or name in files:
                self.write(name, text)
        self.edge_bird.configure()

    def include(self, before, file="bird.conf", configure=True):
        """The two includes, in front of a line."""
        lines = f'include "{TEMPLATE}";\ninclude "{self.fragments}/*.conf";\n\n'
        self.edit((before, lines + before), file=file, configure=configure)

    # the router

    def wait_sessions(self, names, timeout=15.0):
        until(
            lambda: self.bird.established() >= set(names), timeout,
            lambda: f"{self.name}: sessions {sorted(names)}, established {sorted(self.bird.established())}\n{self.report()}",
        )

    def table(self):
        """The prefixes that the router has from the edge."""
        found = set()
        net = None
        for code, text in self.bird.birdc("show route").lines:
            head = re.match(r"(\S+/\d+)?\s+\w+.* \[(\S+) ", text) if code == "1007" else None
            if head:
                net = head.group(1) or net
                if head.group(2).startswith(("edge", "ospf")):
                    found.add(net)
        return found

    def wait_routes(self, prefixes, timeout=15.0):
        """Until the router has these, at least."""
        until(
            lambda: self.table() >= set(prefixes), timeout,
            lambda: f"{self.name}: {sorted(prefixes)}, the router has {sorted(self.table())}\n{self.report()}",
        )

    def wait_table(self, prefixes):
        """Until the router has these and no others."""
        until(
            lambda: self.table() == set(prefixes), 10,
            lambda: f"{self.name}: {sorted(prefixes)} alone, the router has {sorted(self.table())}\n{self.report()}",
        )

    def wait_gone(self, prefix, timeout=15.0):
        until(lambda: prefix not in self.table(), timeout, lambda: f"{self.name}: {prefix} leaves\n{self.report()}")

    def routes(self, prefix, session=None):
        return [r for r in self.bird.routes(prefix) if session in (None, r.protocol)]

    def wait_attribute(self, prefix, key, value, timeout=15.0, session=None):
        """Until the router has the prefix with this BGP attribute, such as BGP.med."""
        def holds():
            return any(r.attributes.get(key) == str(value) for r in self.routes(prefix, session))

        until(holds, timeout, lambda: f"{self.name}: {prefix} with {key} {value}: {self.routes(prefix)}\n{self.report()}")

    def wait_med(self, prefix, value, **kwargs):
        self.wait_attribute(prefix, "BGP.med", value, **kwargs)

    @contextlib.contextmanager
    def keeping(self, *except_for):
        """Within the block no session ends and no prefix that the router has now is withdrawn, even
        for a moment; at its end they are all still there."""
        begun, before = time.time(), self.table() - set(except_for)
        yield before
        # The wire has everything up to here when it has what BIRD sent before it answered this.
        self.edge_bird.birdc("show status")
        missing = before - self.table()
        lost = [
            e for e in self.wire.since(begun, kinds=(WITHDRAW, CLOSED, NOTIFIED))
            if e.kind != WITHDRAW or e.prefix in before
        ]
        check(not lost and not missing, f"{self.name}: nothing is lost", [str(e) for e in lost], sorted(missing), self.report())

    # the agent

    def wait_warning(self, code, timeout=15.0):
        """Until the status has this warning; its text."""
        def found():
            return next((w["text"] for w in self.warnings() if w["code"] == code), None)

        return until(found, timeout, lambda: f"{self.name}: warning {code}, has {self.warnings()}\n{self.report()}")

    def wait_no_warning(self, code, timeout=15.0):
        until(
            lambda: code not in [w["code"] for w in self.warnings()], timeout,
            lambda: f"{self.name}: no warning {code}: {self.warnings()}",
        )

    def warnings(self):
        return self.agent.status()["bird"]["warnings"]

    def settled(self):
        self.agent.wait_status(lambda s: s["bird"]["settled"], timeout=10, what="settled")

    def report(self, n=25):
        parts = [f"--- edge bird\n{self.edge_bird.tail(n)}", f"--- router bird\n{self.bird.tail(n)}"]
        if hasattr(self, "agent"):
            parts.append(f"--- redshankd\n{self.agent.tail(n)}")
        return "\n".join(parts) + (f"\n--- wire\n{self.wire.tail(n)}\n" if self.wire else "")

    def close(self):
        if self.wire:
            self.wire.close()
            self.wire = None
        self.lab.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        found = self.agent.sanitizer_report() if kind is None and hasattr(self, "agent") else ""
        self.close()
        if found:
            raise AssertionError(found)
