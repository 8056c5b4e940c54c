"""bird-templates/redshank.conf between two real BIRDs: what the functions set arrives.

Everything is read at the receiver, since BIRD shows attributes at the sender that it never sends.
One edge has four sessions with one router, on a link of their own each: MED over eBGP in both
families, prepends over eBGP, local preference over iBGP. Fragments are those that the agent's own
code writes (test-bird-fragment print).
"""

import os
import subprocess

from lib import birds, netns
from lib.case import check, eventually, main
from lib.site import TEMPLATE

PRINT = os.path.join(os.environ["REDSHANK_BUILD"], "tests", "unit", "test-bird-fragment")

EDGE = """\
log "{log}" all;
router id 198.51.100.1;
include "{template}";
include "{fragments}/*.conf";
protocol device {{}}
protocol static theirs {{ ipv4; route 203.0.113.0/24 blackhole; route 203.0.114.0/24 blackhole; }}
template bgp session {{ connect delay time 1; connect retry time 1; error wait time 1, 2; }}

filter of_the_operator {{
	if redshank_export_prepend(64501) then {{
		if redshank_export_med() then bgp_community.add((64501, 100));
		accept;
	}}
	if net = 203.0.113.0/24 then accept;
	reject;
}}

protocol bgp med4 from session {{
	local 198.51.100.1 as 64501; neighbor 198.51.100.2 as 64500;
	ipv4 {{ import none; export where redshank_export_med(); next hop self; }};
}}
protocol bgp med6 from session {{
	local 2001:db8:ffff::1 as 64501; neighbor 2001:db8:ffff::2 as 64500;
	ipv6 {{ import none; export where redshank_export_med(); next hop self; }};
}}
protocol bgp prepend4 from session {{
	local 198.51.100.5 as 64501; neighbor 198.51.100.6 as 64500;
	ipv4 {{ import none; export filter of_the_operator; next hop self; }};
}}
protocol bgp internal4 from session {{
	local 198.51.100.9 as 64500; neighbor 198.51.100.10 as 64500;
	ipv4 {{ import none; export where redshank_export_local_pref(200); next hop self; }};
}}
"""

ROUTER = """\
log "{log}" all;
router id 198.51.100.2;
protocol device {{}}
template bgp session {{ passive on; error wait time 1, 2; }}
protocol bgp med4 from session {{
	local 198.51.100.2 as 64500; neighbor 198.51.100.1 as 64501; ipv4 {{ import all; export none; }};
}}
protocol bgp med6 from session {{
	local 2001:db8:ffff::2 as 64500; neighbor 2001:db8:ffff::1 as 64501; ipv6 {{ import all; export none; }};
}}
protocol bgp prepend4 from session {{
	local 198.51.100.6 as 64500; neighbor 198.51.100.5 as 64501; ipv4 {{ import all; export none; }};
}}
protocol bgp internal4 from session {{
	local 198.51.100.10 as 64500; neighbor 198.51.100.9 as 64500; ipv4 {{ import all; export none; }};
}}
"""


class Pair:
    """An edge and a router with three addresses each on one link."""

    def __init__(self):
        netns.needs("bird")
        self.lab = netns.Lab()
        try:
            self.start()
        except BaseException:
            self.close()
            raise

    def start(self):
        edge, router = self.lab.host("edge"), self.lab.host("router")
        self.lab.link(edge, router, "router", "edge")
        for host, end, name in ((edge, 1, "router"), (router, 2, "edge")):
            host.ip(
                *(f"addr add 198.51.100.{4 * i + end}/30 dev {name}" for i in range(3)),
                f"addr add 2001:db8:ffff::{end}/64 dev {name} nodad",
            )
        self.fragments = edge.path("fragments")
        os.mkdir(self.fragments)
        self.edge = birds.Bird(
            edge, EDGE.format(log=edge.path("bird.log"), template=TEMPLATE, fragments=self.fragments)
        )
        self.router = birds.Bird(router, ROUTER.format(log=router.path("bird.log")))
        for bird in (self.router, self.edge):
            bird.start()
        names = {"med4", "med6", "prepend4", "internal4"}
        eventually(lambda: self.router.established() >= names, 30, "four sessions")

    def write(self, text):
        path = os.path.join(self.fragments, "dns.conf")
        with open(path + ".new", "w", encoding="utf-8") as f:
            f.write(text)
        os.rename(path + ".new", path)
        self.edge.configure()

    def announce(self, *prefixes):
        self.write(subprocess.run([PRINT, "print", "announce", "dns", *prefixes], capture_output=True, text=True, check=True).stdout)

    def received(self, session, prefix):
        return next((r for r in self.router.routes(prefix) if r.protocol == session), None)

    def wait(self, session, prefix, holds, what):
        """The route that the router has from a session, once `holds` of it."""

        def route():
            found = self.received(session, prefix)
            return found if found and holds(found) else None

        return eventually(route, 10, lambda: f"{what}: {session} {prefix}: {self.received(session, prefix)}")

    def problems(self):
        return []

    def report(self):
        return self.edge.tail() + self.router.tail()

    def close(self):
        self.lab.close()


def test_med(pair):
    """MED is the weight, in both families, whatever else the route carries."""
    weights = {"192.0.2.1/32": 0, "192.0.2.2/32": 100, "192.0.2.3/32": 65535}
    pair.announce(*(f"{p}={w},2" for p, w in weights.items()), "2001:db8::53/128=77")
    for prefix, weight in weights.items():
        pair.wait("med4", prefix, lambda r, w=weight: r.med == w, f"MED {weight}")
        check(pair.received("med4", prefix).as_path == [64501], "no prepend where none was asked for")
    pair.wait("med6", "2001:db8::53/128", lambda r: r.med == 77, "MED 77")


def test_local_preference(pair):
    """Local preference is top minus weight, and never below 0."""
    weights = {"192.0.2.1/32": (0, 200), "192.0.2.2/32": (50, 150), "192.0.2.3/32": (199, 1),
               "192.0.2.4/32": (200, 0), "192.0.2.5/32": (65535, 0)}
    pair.announce(*(f"{p}={w}" for p, (w, _) in weights.items()))
    for prefix, (weight, preference) in weights.items():
        route = pair.wait("internal4", prefix, lambda r, p=preference: r.attributes.get("BGP.local_pref") == str(p),
                          f"local preference {preference} of weight {weight}")
        check(route.med is None, "no MED where none was asked for", route)


def test_prepends(pair):
    """redshank_prepend times, at most 10; MED and the operator's own community beside it."""
    pair.announce(*(f"192.0.2.{n}/32=10,{n}" for n in range(0, 11)))
    for n in range(0, 11):
        route = pair.wait("prepend4", f"192.0.2.{n}/32", lambda r, n=n: r.as_path == [64501] * (n + 1), f"{n} prepends")
        check(route.med == 10 and route.communities == [(64501, 100)], "MED and community", route)
    pair.write("protocol static x { ipv4 { table redshank4; preference 250; };"
               " route 192.0.2.99/32 unreachable { redshank_weight = 1; redshank_prepend = 300; }; }\n")
    pair.wait("prepend4", "192.0.2.99/32", lambda r: r.as_path == [64501] * 11, "at most 10")


def test_routes_of_others(pair):
    """False for routes that are not ours, untouched, and the caller's filter goes on."""
    pair.announce("192.0.2.53/32=100")
    pair.wait("prepend4", "192.0.2.53/32", lambda r: True, "ours")
    theirs = pair.wait("prepend4", "203.0.113.0/24", lambda r: True, "what the operator's filter accepts")
    check(theirs.med is None and theirs.as_path == [64501] and not theirs.communities, "untouched", theirs)
    check(not pair.received("prepend4", "203.0.114.0/24"), "what the operator's filter rejects")
    for session in ("med4", "internal4"):
        check(not pair.received(session, "203.0.113.0/24"), "not exported by our functions", session)


def test_tables(pair):
    """Our tables feed the main ones and nothing goes back; disable of ours leaves both."""
    pair.announce("192.0.2.53/32=100", "2001:db8::53/128=100")
    for table, prefix in (("redshank4", "192.0.2.53/32"), ("redshank6", "2001:db8::53/128")):
        eventually(lambda t=table, p=prefix: pair.edge.routes(p, t) and pair.edge.routes(p), 10, f"{prefix} in both tables")
    check(not pair.edge.routes("203.0.113.0/24", "redshank4"), "nothing goes back")
    check(pair.edge.birdc('disable "redshank:dns:*"').code == "0000", "disable")
    for table, prefix in (("redshank4", "192.0.2.53/32"), ("redshank6", "2001:db8::53/128")):
        eventually(lambda t=table, p=prefix: not pair.edge.routes(p, t) and not pair.edge.routes(p), 10, "gone")
    pair.write("")


main(Pair)
