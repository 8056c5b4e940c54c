"""The site itself: what every other test believes of it.

Sessions, routes, the wire, the client and the end of a site, without an agent: the test writes
fragments and speaks to BIRD by hand.
"""

import os
import subprocess
import sys
import time

from lib import bgp
from lib.case import check, eventually, main
from lib.site import Site
from lib.wire import ANNOUNCE, CLOSED, OPENED, WITHDRAW

DNS, DNS6 = "192.0.2.53/32", "2001:db8::53/128"

FRAGMENT = """\
protocol static 'redshank:dns:192.0.2.53' {
	ipv4 { table redshank4; preference 250; };
	route 192.0.2.53/32 unreachable {
		redshank_weight = %d;
		bgp_community.add((64501, 53));
		bgp_large_community.add((64501, 1, 53));
	};
}
protocol static 'redshank:dns:2001:db8::53' {
	ipv6 { table redshank6; preference 250; };
	route 2001:db8::53/128 unreachable { redshank_weight = %d; };
}
"""


def announce(edge, weight):
    edge.write_fragment("dns", FRAGMENT % (weight, weight))
    edge.bird.configure()


def test_route(site):
    """A static route of an edge is on the wire with its time and attributes, and in the router's table."""
    opened = [e.edge for e in site.wire.since(0, kinds=(OPENED,))]
    check(sorted(opened) == ["edge1"] * 2 + ["edge2"] * 2, "two sessions of each edge, its own packets alone", opened)
    before = time.time()
    announce(site.edges[0], 100)
    for prefix in (DNS, DNS6):
        event = site.wire.wait_announce("edge1", prefix, med=100)
        seen = time.time()
        check(before < event.time < seen, "the time is that of the announcement", before, event.time, seen)
        check(event.attributes["as_path"] == [64501], "AS path", event)
    event = site.wire.wait_announce("edge1", DNS)
    check(event.attributes["communities"] == [(64501, 53)], "communities", event)
    check(event.attributes["large_communities"] == [(64501, 1, 53)], "large communities", event)
    for prefix in (DNS, DNS6):
        route = site.wait_route(prefix, {"edge1"})["edge1"]
        check(route.best and route.med == 100, "the router's table", route)
    check(site.routes(DNS)["edge1"].communities == [(64501, 53)], "communities at the router")
    check(site.routes(DNS)["edge1"].large_communities == [(64501, 1, 53)], "large communities at the router")


def test_wire_agrees(site):
    """The wire's times are those of the packets: 20 commands, each UPDATE between its two clock readings."""
    edge = site.edges[0]
    for _ in range(10):
        for command, kind in (("disable", WITHDRAW), ("enable", ANNOUNCE)):
            start = time.time()
            edge.birdc(f'{command} "redshank:dns:192.0.2.53"')
            event = site.wire.wait(lambda e, k=kind: e.kind == k and e.prefix == DNS, since=start)
            seen = time.time()
            check(start < event.time < seen, f"{command} lies between", start, event.time, seen)
            check(len(site.wire.since(start)) == 1, "one UPDATE and no other", site.wire.since(start))


def test_client_follows(site):
    """The client's queries follow the lowest MED, over IPv4 and IPv6, and none is lost on the way back."""
    eventually(lambda: site.ask() == "edge1", what="edge1 answers the client")
    announce(site.edges[1], 50)
    site.wait_route(DNS, {"edge1", "edge2"})
    eventually(lambda: site.best(DNS) == "edge2", what="edge2 is best")
    asker = site.asker(rate=200)
    asker.wait_served("edge2")
    eventually(lambda: site.ask("2001:db8::53") == "edge2", what="edge2 answers over IPv6")
    start = time.time()
    site.edges[1].birdc('disable "redshank:dns:*"')
    asker.wait_served("edge1", since=start)
    site.wire.wait_withdraw("edge2", DNS, since=start)
    site.wire.wait_withdraw("edge2", DNS6, since=start)
    site.wait_route(DNS, {"edge1"})
    moved = time.time()
    eventually(lambda: len(asker.between(moved)) > 20, what="20 more queries")
    asker.stop()
    check(set(asker.served(moved)) == {"edge1"}, "edge1 answers alone", asker.summary(moved))
    site.edges[1].birdc('enable "redshank:dns:*"')
    site.wait_route(DNS, {"edge1", "edge2"})


def test_lost_queries(site):
    """Queries to a dead nsd are counted as lost, and a frozen one answers nothing."""
    eventually(lambda: site.best(DNS) == "edge2", what="edge2 is best")
    asker = site.asker(rate=200)
    asker.wait_served("edge2")
    nsd = site.edges[1].nsd
    nsd.freeze()
    frozen = time.time()
    eventually(lambda: len(asker.between(frozen)) > 20, what="20 queries")
    check(not asker.served(frozen), "a frozen nsd answers nothing", asker.summary(frozen))
    nsd.thaw()
    nsd.kill()
    dead = time.time()
    eventually(lambda: len(asker.between(dead)) > 20, what="20 queries")
    check(not asker.served(dead), "a dead nsd answers nothing", asker.summary(dead))
    nsd.start()
    asker.wait_served("edge2", since=time.time())
    asker.stop()


def test_web(site):
    """nginx answers through the router, and not when it is gone."""
    for edge in site.edges[:1]:
        edge.write_fragment("web", FRAGMENT.replace("192.0.2.53", "192.0.2.80").replace(":dns:", ":web:")
            .replace("2001:db8::53", "2001:db8::80") % (10, 10))
        edge.bird.configure()
    site.wait_route("192.0.2.80", {"edge1"})
    eventually(lambda: site.fetch() == "edge1", what="edge1 serves the page")
    eventually(lambda: site.fetch(path="/healthz") == "ok", what="the health page")
    site.edges[0].nginx.kill()
    check(site.fetch(timeout=0.3) is None, "a dead nginx serves nothing")
    site.edges[0].nginx.start()


def test_broken_bird_conf(site):
    """A broken bird.conf is refused with 8002 while the BIRD runs on, and accepted when repaired."""
    edge = site.edges[0]
    edge.break_bird_conf()
    reply = edge.birdc("configure")
    check(reply.code == "8002" and "bird.conf:1:" in reply.text, "refused", reply)
    check("edge1" in site.routes(DNS), "the route stays")
    edge.repair_bird_conf()
    edge.bird.configure()


def test_killed_bird(site):
    """A killed BIRD closes its sessions on the wire, and its routes are gone; it comes back."""
    edge = site.edges[1]
    killed = edge.bird.kill()
    site.wire.wait(lambda e: e.kind == CLOSED and e.edge == "edge2", since=killed, what="edge2 closes")
    site.wait_route(DNS, {"edge1"})
    edge.bird.start()
    site.wait_sessions()
    site.wait_route(DNS, {"edge1", "edge2"})
    site.wire.wait_announce("edge2", DNS, since=killed, med=50)


def test_segments():
    """The watcher reads a stream in any cut and order, with repeats, and starts in the middle."""
    from lib.wire import _Stream

    body = bytes.fromhex("0000" "0015" "40010100" "400200" "400304c6336406" "80040400000064" "20c0000235")
    message = bgp.MARKER + (19 + len(body)).to_bytes(2, "big") + b"\x02" + body
    sent = message * 3
    for cut in range(1, len(message)):
        stream = _Stream()
        start = 0xFFFFFFFF - 30  # the sequence numbers wrap inside
        stream.segment(start - 1 & 0xFFFFFFFF, True, b"")
        pieces = [(start + i & 0xFFFFFFFF, sent[i : i + cut]) for i in range(0, len(sent), cut)]
        for seq, payload in pieces[1::2] + pieces[:3] + pieces[::2]:
            stream.segment(seq, False, payload)
        found = bgp.messages(stream.data)
        check(len(found) == 3 and not stream.data, f"three messages in pieces of {cut}", len(found))
        check(all(bgp.update(b).announced == [DNS] for _, b in found), "decoded", found)
    check(bgp.update(body).attributes["med"] == 100, "MED", bgp.update(body))
    stream = _Stream()
    stream.segment(1000, False, message[5:])
    stream.segment(2000, False, message)
    check(len(bgp.messages(stream.data)) == 1, "joined in the middle")


CHILD = """
import sys, time
from lib.site import Site
site = Site(edges=1)
print(site.dir, site.lab.guardian, *[h.inode for h in site.lab.hosts.values()], flush=True)
time.sleep(100)
"""


def _netns_of_all():
    found = set()
    for entry in os.listdir("/proc"):
        try:
            found.add(os.stat(f"/proc/{entry}/ns/net").st_ino)
        except OSError:
            pass
    return found


def test_end(site):
    """A site whose test is killed with SIGKILL leaves no process, namespace or file; another site lives on."""
    child = subprocess.Popen([sys.executable, "-c", CHILD], stdout=subprocess.PIPE, text=True)
    try:
        folder, guardian, *inodes = child.stdout.readline().split()
        inodes = {int(i) for i in inodes}
        standing = inodes & _netns_of_all()  # the client's has no process: the guardian holds it
        check(os.path.exists(folder) and len(standing) == 2, "the second site stands", folder, inodes)
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
    eventually(lambda: not inodes & _netns_of_all(), 10, "no process is left in its namespaces")
    eventually(lambda: not os.path.exists(folder), 10, "its folder is gone")
    eventually(lambda: not os.path.exists(f"/proc/{guardian}"), 10, "the guardian, which held them, is gone")
    strays = [n for e in site.edges for n in os.listdir("/tmp") if n.endswith(f"-{e.nsd.pid}")]
    check(not strays, "no service leaves files outside the site's folder", strays)
    check(len(site.bird.established()) == 4, "this site still stands", site.bird.protocols())
    eventually(lambda: site.ask() is not None, what="and answers")


main(lambda: Site(edges=2))
