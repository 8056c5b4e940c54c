"""The site that tests run on: some edges, a router and a client, each a network namespace.

      client ---- router ---- edge1, edge2, ...
                  AS 64500    AS 64501 each

    from lib.site import Site

    with Site(edges=2) as site:                  # BIRDs, nsd and nginx run, sessions are up
        edge1, edge2 = site.edges
        edge1.agent.start()                      # see agentctl.py; site.start_agents() for all
        site.wait_route("192.0.2.53/32", {"edge1"})
        killed = edge1.nsd.kill()                # the time just before kill(2)
        gone = site.wire.wait_withdraw("edge1", "192.0.2.53/32", since=killed)
        print(gone.time - killed)

Every edge has the anycast addresses on lo: 192.0.2.53, 2001:db8::53 (nsd) and 192.0.2.80 (nginx).
Its BIRD is configured as an operator would (birds.py: edge_config); fragments lie in edge.fragments.
The router's kernel forwards by what its BIRD learned; with equal weights the first edge wins, or
with ecmp=True all share. edge.weight (100 for edge1, 200 for edge2, ...) is what the agent's default
configuration gives every prefix, so that a client's queries go to edge1 while it announces.

Links are 198.51.100.0/24 and 2001:db8:ffff::/48; interfaces are called by who is at the other end.
Everything ends with the block, or with the process, even one that is killed with SIGKILL.
"""

import ipaddress
import os
import time

from lib import birds, frr, netns
from lib.agentctl import ROOT, Agent
from lib.client import Asker
from lib.services import DNS_ADDRESSES, WEB_ADDRESSES, Nginx, Nsd
from lib.wait import TimedOut, until
from lib.wire import ANNOUNCE, Wire, normal

TEMPLATE = os.path.join(ROOT, "bird-templates", "redshank.conf")


class Edge:
    """An edge server: host (netns.Host), bird, nsd, nginx, agent, fragments (a folder), weight."""

    def __init__(self, lab, index, **bird):
        self.index = index
        self.name = f"edge{index}"
        self.weight = 100 * index
        self.host = lab.host(self.name)
        self.fragments = self.host.path("fragments")
        os.mkdir(self.fragments, 0o755)
        self.bird = birds.Bird(
            self.host, birds.edge_config(self.host, index, self.fragments, TEMPLATE, **bird)
        )
        self.nsd = Nsd(self.host)
        self.nginx = Nginx(self.host)
        self.agent = Agent(self)

    def birdc(self, command):
        """One command on the BIRD's control socket: a birds.Reply with code and text."""
        return self.bird.birdc(command)

    def break_bird_conf(self, text="nonsense;\n"):
        self.bird.break_config(text)

    def repair_bird_conf(self):
        self.bird.repair_config()

    def add_address(self, address):
        self.host.ip(f"addr add {ipaddress.ip_network(address)} dev lo" + (" nodad" if ":" in address else ""))

    def remove_address(self, address):
        self.host.ip(f"addr del {ipaddress.ip_network(address)} dev lo")

    def fragment(self, service):
        """The text of a fragment, or None."""
        try:
            with open(os.path.join(self.fragments, service + ".conf"), encoding="utf-8") as f:
                return f.read()
        except FileNotFoundError:
            return None

    def write_fragment(self, service, text):
        """Plays the agent where there is none: a fragment, put in place as it does."""
        path = os.path.join(self.fragments, "." + service + ".conf")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.rename(path, os.path.join(self.fragments, service + ".conf"))


class Site:
    """See the top of the file. `services=False` leaves nsd and nginx off, `bird_extra` is added to
    each edge's bird.conf, `ecmp` makes the router share between equal routes, flow by flow. The
    edges export where `export` says so; with `ibgp` they are in the router's AS. `router` is "bird"
    or "frr"; site.bird is then an frr.Frr."""

    def __init__(
        self, edges=2, services=True, ecmp=False, bird_extra="", router="bird",
        export="redshank_export_med()", ibgp=False,
    ):
        netns.needs("bird", "birdc", *(("nsd", "nginx") if services else ()))
        if router == "frr" and frr.missing():
            raise netns.Cannot("not installed: " + ", ".join(frr.missing()))
        self.lab = netns.Lab()
        self.router_kind = router
        self.wire = None
        self._askers = []
        try:
            self._build(edges, ecmp, ibgp, {"extra": bird_extra, "export": export, "ibgp": ibgp})
            self._start(services)
        except BaseException:
            self.close()
            raise

    @property
    def dir(self):
        return self.lab.dir

    def edge(self, name):
        return next(e for e in self.edges if e.name == name)

    def _build(self, edges, ecmp, ibgp, bird):
        self.router = self.lab.host("router")
        self.client = self.lab.host("client")
        self.edges = [Edge(self.lab, index, **bird) for index in range(1, edges + 1)]
        self._connect(0, "client", self.client)
        for edge in self.edges:
            self._connect(edge.index, edge.name, edge.host)
            for address in DNS_ADDRESSES + WEB_ADDRESSES:
                edge.add_address(address)
        self.router.sysctl(**{"ipv4/ip_forward": 1, "ipv6/conf/all/forwarding": 1})
        if ecmp:  # by addresses and ports, not by addresses alone
            self.router.sysctl(**{f"ipv{family}/fib_multipath_hash_policy": 1 for family in (4, 6)})
        if self.router_kind == "frr":
            self.bird = frr.Frr(self.router, edges, frr.router_config(edges, ecmp, ibgp))
        else:
            self.bird = birds.Bird(
                self.router, birds.router_config(self.router, edges, ecmp, ibgp), birds.router_program()
            )
        self.wire = Wire(self.router, {edge.name: edge.name for edge in self.edges})

    def _connect(self, index, name, host):
        """A link from the router; the host's way to everywhere else leads over it."""
        v4, v6 = f"198.51.100.{4 * index}", f"2001:db8:ffff:{index}::"
        near, far = ipaddress.ip_address(v4) + 1, ipaddress.ip_address(v4) + 2
        self.lab.link(self.router, host, name, "router")
        self.router.ip(f"addr add {near}/30 dev {name}", f"addr add {v6}1/64 dev {name} nodad")
        host.ip(
            f"addr add {far}/30 dev router",
            f"addr add {v6}2/64 dev router nodad",
            f"route add default via {near}",
            f"route add ::/0 via {v6}1",
        )

    def _start(self, services):
        everything = [self.bird] + [e.bird for e in self.edges]
        if services:
            everything += [s for e in self.edges for s in (e.nsd, e.nginx)]
        for thing in everything:
            thing.start(wait=False)
        for thing in everything:
            thing.wait_ready()
        self.wait_sessions()

    def wait_sessions(self, edges=None, timeout=30.0):
        """Until the BGP sessions of these edges (names; default all) are established."""
        names = set(edges or [e.name for e in self.edges])
        wanted = {f"{name}_{family}" for name in names for family in (4, 6)}
        until(
            lambda: self.bird.established() >= wanted,
            timeout,
            lambda: f"sessions {sorted(wanted)}, established: {sorted(self.bird.established())}",
        )

    def start_agents(self, settled=True):
        """Starts redshankd on every edge; settled: until each prefix is announced at the router."""
        for edge in self.edges:
            edge.agent.start(wait=False)
        for edge in self.edges:
            edge.agent.wait_ready()
            if settled:
                for service in edge.agent.config["services"].values():
                    for prefix in service["prefixes"]:
                        self.wait_announced(prefix, edge.name)

    def routes(self, prefix):
        """The router's table: {edge: birds.Route} for exactly this prefix."""
        return {route.protocol.rsplit("_", 1)[0]: route for route in self.bird.routes(normal(prefix))}

    def best(self, prefix):
        """The edge that the router prefers, or None."""
        return next((edge for edge, route in self.routes(prefix).items() if route.best), None)

    def wait_route(self, prefix, edges, timeout=10.0):
        """Until exactly these edges (a set of names) are in the router's table; returns the routes."""
        last = {}

        def holds():
            last.clear()
            last.update(self.routes(prefix))
            return set(last) == set(edges)

        until(holds, timeout, lambda: f"router has {prefix} from {sorted(edges)}, last seen {sorted(last)}")
        return dict(last)

    def wait_announced(self, prefix, edge, timeout=20.0):
        """Until this edge's route is in the router's table, whoever else is; returns it."""
        return until(
            lambda: self.routes(prefix).get(edge), timeout, lambda: f"router has {prefix} from {edge}\n{self.report()}"
        )

    def moment(self):
        """The time now, once the wire shows all that the agents' status does: what it shows later is new.

        A status is ahead of the wire, and a last resort in the router's table is no proof that the
        prefix proper is there; a test that counts UPDATEs starts to count here.
        """
        for edge in self.edges:
            if edge.agent.process and edge.agent.process.alive():
                until(lambda e=edge: not self._behind(e), 20, lambda e=edge: f"{e.name}'s wire: {self._behind(e)}")
        return time.time()

    def _behind(self, edge):
        """What the last UPDATE of each prefix of this edge does not say yet of its agent's status."""
        status, last = edge.agent.status(), {}
        for event in self.wire.since(0, edge.name):
            last[event.prefix] = event
        if not status["bird"]["settled"]:
            return ["not settled"]
        late = []
        for service in status["services"].values():
            for prefix, state in service["prefixes"].items():
                event = last.get(prefix)
                there = bool(event) and event.kind == ANNOUNCE
                if there != bool(state["exported"]):
                    late.append((prefix, state["exported"], str(event)))
                elif there and state["wanted"] == "announce" and event.med not in (None, state["weight"]):
                    late.append((prefix, state["weight"], str(event)))
        return late

    def ask(self, address="192.0.2.53", timeout=1.0):
        """The client asks once: the name of the edge that answered, or None."""
        from lib import client

        with self.client.inside():
            return client.ask(address, timeout)

    def fetch(self, address="192.0.2.80", path="/", timeout=1.0):
        """The client fetches a page: its text, or None. "/" is the name of the edge."""
        from lib import client

        with self.client.inside():
            return client.fetch(address, path, timeout)

    def asker(self, address="192.0.2.53", rate=100):
        """A client that keeps asking; stopped with the site. See client.Asker."""
        self._askers.append(Asker(self.client, address, rate))
        return self._askers[-1]

    def report(self, n=20):
        """What a failed test wants to show: logs of agents and BIRDs, the wire's last messages."""
        parts = []
        for edge in self.edges:
            parts.append(f"--- {edge.name} redshankd\n{edge.agent.tail(n)}")
            parts.append(f"--- {edge.name} bird\n{edge.bird.tail(n)}")
        parts.append(f"--- router\n{self.bird.tail(n)}")
        if self.wire:
            parts.append(f"--- wire\n{self.wire.tail(n)}\n")
        return "".join(parts)

    def problems(self):
        """What makes a test fail although all its functions passed: a sanitizer's report, or blind eyes."""
        found = [f"{e.name}: {e.agent.sanitizer_report()}" for e in self.edges if e.agent.sanitizer_report()]
        if self.wire and self.wire.lost():
            found.append(f"the wire lost {self.wire.dropped} packets")
        if self.wire and self.wire.bad:
            found.append(f"the wire could not decode: {self.wire.bad[:5]}")
        return found

    def close(self):
        for asker in self._askers:
            asker.stop()
        self._askers = []
        if self.wire:
            self.wire.close()
            self.wire = None
        self.lab.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        found = [] if kind else self.problems()
        self.close()
        if found:
            raise AssertionError("\n".join(found))


__all__ = ["Site", "Edge", "TimedOut", "TEMPLATE"]
