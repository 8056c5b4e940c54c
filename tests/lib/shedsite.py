"""A site whose agents are neighbours: certificates, the floor on the wire, and what may break them.

    with Site(edges=4) as site:
        circle = Neighbours(site)          # certificates, and `neighbours` in each agent's configuration
        site.start_agents()
        circle.wait_fresh()                # everybody has a report of everybody
        began = time.time()
        ...
        lowest(site, "192.0.2.53/32", began)   # the fewest announcers that the router had since then

Agents speak over the router, from 198.51.100.0/24. A cut (circle.cut) drops what an edge's neighbours
send to it or all of it at the edge's own interface, and leaves its BGP alone.
"""

import json
import os
import threading
import time

from lib.agentctl import build_folder
from lib.dnsperf import Dnsperf, percentile
from lib.neighbours import PORT, Authority, Node
from lib.pulse import Pulse
from lib.services import Nsd
from lib.site import Site
from lib.wait import until
from lib.wire import ANNOUNCE, CLOSED, WITHDRAW, normal

# From the start of an agent until it asks for anything: what it promised in its last life has lapsed
# (lease and stale_after), and a moment.
STARTING = 13.5

ANSWER = 121  # bytes on the wire of nsd's answer to client.NAME


def address(edge):
    return f"198.51.100.{4 * edge.index + 2}"


class Neighbours:
    """Certificates of one authority for all edges of a site, and the section `neighbours` for each."""

    def __init__(self, site, **section):
        self.site = site
        self.authority = Authority(site.lab.dir + "/authority")
        members = {edge.name: f"{address(edge)}:{PORT}" for edge in site.edges}
        for edge in site.edges:
            self.install(edge, self.authority)
            edge.agent.config["neighbours"] = {
                "listen": members[edge.name], "site": "lab", "members": members, **self.files(edge), **section,
            }

    @staticmethod
    def files(edge):
        return {key: edge.host.path(f"neighbour-{key}.pem") for key in ("certificate", "key", "ca")}

    def install(self, edge, authority):
        """A certificate of this authority, and trust in it alone; running agents take it by themselves."""
        pair, files = authority.issue(edge.name, days=90), self.files(edge)
        for source, key in ((pair.certificate, "certificate"), (pair.key, "key"), (authority.certificate, "ca")):
            with open(source, "rb") as f:
                Node.replace(files[key], f.read())
        os.chmod(files["key"], 0o600)

    def fresh(self, edge):
        """The names of those of whom this edge has a fresh report."""
        members = edge.agent.status()["neighbours"]["members"]
        return {name for name, member in members.items() if member["state"] == "fresh"}

    def wait_fresh(self, edges=None, timeout=15.0):
        """Until each of these edges (default: all) has a fresh report of every other of them."""
        edges = edges or self.site.edges
        names = {edge.name for edge in edges}
        until(
            lambda: all(self.fresh(e) >= names - {e.name} for e in edges), timeout,
            lambda: f"reports of all: { {e.name: sorted(self.fresh(e)) for e in edges} }\n{self.site.report(8)}",
            every=0.1,
        )

    def cut(self, edge, also_out=True):
        """Drops what neighbours say to this edge; its BGP goes on."""
        rules = f"add table inet cut; add chain inet cut in {{ type filter hook input priority 0; }}; "
        rules += f"add rule inet cut in tcp dport {PORT} drop; add rule inet cut in tcp sport {PORT} drop"
        if also_out:
            rules += "; add chain inet cut out { type filter hook output priority 0; }; "
            rules += f"add rule inet cut out tcp dport {PORT} drop; add rule inet cut out tcp sport {PORT} drop"
        edge.host.run(["nft", rules])

    def join(self, edge):
        edge.host.run(["nft", "delete table inet cut"])


def busy(edge, percent):
    """How busy an edge of load_by_numbers() is from now on."""
    Node.replace(edge.host.path("busy"), f"{percent}\n".encode())


def load_by_numbers(edge, parts, percent):
    """The load of this edge is what a test says: `percent`, see busy(), and {prefix: its part of a hundred}."""
    busy(edge, percent)
    file = edge.host.path("parts.json")
    Node.replace(file, json.dumps(parts).encode())
    edge.agent.config["load"] = {
        "interval": "500ms",
        "signals": {"busy": {"type": "file", "file": edge.host.path("busy"), "limit": 100}},
        "prefixes": {"type": "file", "file": file, "keys": {p: p.replace(".", "\\.") for p in parts}, "rate": False},
    }


def history(site, prefix, since):
    """[(time, the edges that announce it to the router from then on)], by the wire; the first is at `since`."""
    prefix, now = normal(prefix), set()
    family = "IPv6" if ":" in prefix else "IPv4"
    found = [(since, frozenset())]
    for event in site.wire.since(0, kinds=None):
        before = frozenset(now)
        if event.kind == ANNOUNCE and event.prefix == prefix:
            now.add(event.edge)
        elif event.kind == WITHDRAW and event.prefix == prefix:
            now.discard(event.edge)
        elif event.kind == CLOSED and event.session == family:
            now.discard(event.edge)
        if event.time < since:
            found[0] = (since, frozenset(now))
        elif before != now:
            found.append((event.time, frozenset(now)))
    return found


def lowest(site, prefix, since):
    """The fewest edges that announced the prefix at one time since then."""
    return min(len(edges) for _, edges in history(site, prefix, since))


def told(site, prefix, since):
    """history() as text."""
    return "; ".join(f"{t - since:.2f} s {' '.join(sorted(e)) or 'nobody'}" for t, e in history(site, prefix, since))


# Queries a second for each address, from the client: unequal shares, and the first is too large to be shed.
RATES = {"192.0.2.101": 240, "192.0.2.102": 144, "192.0.2.103": 96, "192.0.2.104": 72, "192.0.2.105": 48}
PREFIXES = [address + "/32" for address in RATES]
FLOOR = 3
HOT, SETTLE = 0.85, 12  # of the agents: the law's own, and seconds


class LoadedSite(Site):
    """Four edges that share the addresses of RATES by ECMP, nsd behind them, neighbours of each other. Each
    edge's signal is its gauge, and nftables counts its prefixes. start() starts the agents, ask() the load."""

    def __init__(self):
        super().__init__(edges=4, services=False, ecmp=True)
        self.loads = []
        self.pulse = Pulse()
        try:
            for edge in self.edges:
                for address in RATES:
                    edge.add_address(address)
                edge.nsd = Nsd(edge.host, tuple(RATES), control=True)
                edge.nsd.start(wait=False)
            for edge in self.edges:
                edge.nsd.wait_ready()
                edge.gauge = Gauge(edge, 1000000)
            self.circle = Neighbours(self)
            for edge in self.edges:
                self._configure(edge)
        except BaseException:
            self.close()
            raise

    @staticmethod
    def _configure(edge):
        edge.agent.config["services"] = {"dns": {
            "prefixes": {prefix: 100 for prefix in PREFIXES},
            "floor": FLOOR,
            "checks": {"process": {"type": "process", "pidfile": edge.nsd.pidfile}},
        }}
        edge.agent.config["load"] = {
            "interval": "500ms",
            "signals": {"queries": {"type": "file", "file": edge.gauge.path, "limit": 100}},
            "prefixes": {"type": "nftables"},
        }
        edge.agent.config["shed"] = {"over": "1s", "settle": f"{SETTLE}s", "under": "10s"}
        edge.agent.write_config()
        # The counters that the agent reads: its own script, loaded by nft(8).
        done = edge.host.run([build_folder() + "/redshankd", "-c", edge.agent.conf, "--counters"])
        edge.host.run(["nft", "-f", "-"], input=done.stdout)

    def start(self):
        self.started = time.time()
        self.start_agents()

    def ask(self):
        """From so many sockets that each is used once in what the gauge is an average of: it is steady then, and what
        ECMP gives each edge of an address is much the same in every run."""
        self.loads = [Dnsperf(self.client, address, rate, int(Gauge.SPAN * rate)) for address, rate in RATES.items()]

    def well(self, edge):
        """Three times as much as it has to do fits through."""
        edge.gauge.capacity = 3 * edge.gauge.rate

    def slow(self, edge, overload):
        """It has `overload` times as much to do as fits through its link from now on. What it has is read when the
        machine has not just stood still: the clients make good for that, all at once."""
        calm = time.monotonic() + 20
        while self.pulse.withheld(time.time() - Gauge.SPAN - 0.5) > 0.3 and time.monotonic() < calm:
            time.sleep(0.1)
        edge.usual = edge.gauge.rate
        edge.gauge.capacity = edge.gauge.rate / overload
        narrow(edge, edge.gauge.capacity)

    def heal(self, edge):
        narrow(edge, None)
        edge.gauge.capacity = 3 * edge.usual

    def latencies(self, start, end=float("inf")):
        return [latency for load in self.loads for latency in load.latencies(start, end)]

    def faster(self, than, seconds):
        """The 90th percentile of the last seconds, or 0 while it is not below that."""
        slow = percentile(self.latencies(time.time() - seconds), 0.9)
        return slow if slow < than else 0.0

    def lost(self, start, end=float("inf")):
        return sum(load.lost(start, end) for load in self.loads)

    def moves(self, since, kind):
        """[(edge, prefix, time)] of these UPDATEs."""
        return [(e.edge, e.prefix, e.time) for e in self.wire.since(since, kinds=(kind,))]

    def relieved(self, edge, since):
        """It has shed something since then, is not hot any more, and has left it at that: so far below `hot` that it
        will, or for so long that it could have shed again."""
        gone = self.moves(since, WITHDRAW)
        if not gone:
            return False
        quiet = time.time() - gone[-1][2]
        rest = SETTLE + 8  # `over`, three reports, promises, and a moment
        return (quiet > 5 and edge.gauge.highest() < (HOT - 0.015) * edge.gauge.capacity) or (
            quiet > rest and edge.gauge.rate < HOT * edge.gauge.capacity)

    def close(self):
        for load in getattr(self, "loads", ()):
            load.stop()
        for edge in getattr(self, "edges", ()):
            if hasattr(edge, "gauge"):
                edge.gauge.stop()
        super().close()


def wait_started(started, more=0.0):
    """Until agents that started at `started` (UNIX seconds) may ask and promise, and `more` seconds."""
    left = STARTING + more
    until(lambda: time.time() >= started + left, left + 1, "agents have started", every=0.1)


def touch(path, there=True):
    if there:
        with open(path, "w", encoding="ascii"):
            pass
    elif os.path.exists(path):
        os.unlink(path)


class Gauge(threading.Thread):
    """The service's own number: how many queries nsd has had in the last seconds, by its own counter, as per
    cent of its capacity, which a test may change. Written into a file for the agent, as a script would do."""

    SPAN = 3.0  # seconds that it is an average of

    def __init__(self, edge, capacity):
        super().__init__(daemon=True)
        self.edge, self.capacity = edge, capacity  # queries a second
        self.rate = 0.0
        self._rates = []  # (when, what it was)
        self.path = edge.host.path("busy")
        self._end = threading.Event()
        self._seen = []  # (when, queries)
        self._write(0)
        self.start()

    def _write(self, value):
        Node.replace(self.path, f"{value:.1f}\n".encode())

    def run(self):
        while not self._end.wait(0.25):
            try:
                self._seen.append((time.monotonic(), self.edge.nsd.queries()))
            except OSError:
                continue
            while self._seen[-1][0] - self._seen[0][0] > self.SPAN:
                self._seen.pop(0)
            (start, first), (end, last) = self._seen[0], self._seen[-1]
            if end - start > 1.0:
                self.rate = (last - first) / (end - start)
                self._rates = [r for r in self._rates if end - r[0] < self.SPAN] + [(end, self.rate)]
                self._write(100 * self.rate / self.capacity)

    def highest(self):
        """The highest of the last seconds: where the machine stands still, queries fail to come for a moment."""
        return max((rate for _, rate in self._rates), default=self.rate)

    def __str__(self):
        return f"{self.rate:.0f} queries a second, at most {self.highest():.0f}, of {self.capacity:.0f}"

    def stop(self):
        self._end.set()
        self.join(5)


def narrow(edge, queries):
    """Nothing more than so many answers a second leave this edge; what is too much waits in a short queue.
    BGP and neighbours are not slowed. None: as wide as ever."""
    run = edge.host.run
    if queries is None:
        run(["tc", "qdisc", "del", "dev", "router", "root"])
        return
    rate = f"{int(queries * ANSWER * 8)}bit"
    run(["tc", "qdisc", "add", "dev", "router", "root", "handle", "1:", "htb", "default", "1", "r2q", "1000"])
    run(["tc", "class", "add", "dev", "router", "parent", "1:", "classid", "1:1", "htb", "rate", "1gbit"])
    run(["tc", "class", "add", "dev", "router", "parent", "1:", "classid", "1:2", "htb", "rate", rate, "quantum", "1500", "burst", "1500"])
    run(["tc", "qdisc", "add", "dev", "router", "parent", "1:2", "pfifo", "limit", "60"])
    run(["tc", "filter", "add", "dev", "router", "parent", "1:", "protocol", "ip", "u32",
         "match", "ip", "protocol", "17", "0xff", "match", "ip", "sport", "53", "0xffff", "flowid", "1:2"])
