"""The ways of a prefix into BIRD that the main job does not go: a service that grows past what has a
protocol each, a part of a family, many prefixes at once, sessions that look at a table of their own,
and control by the birdc program. All on real BIRDs, judged on the router's wire.
"""

import contextlib
import os
import re
import time

from lib.case import check, eventually, main
from lib.site import Site

DNS, DNS6, WEB = "192.0.2.53/32", "2001:db8::53/128", "192.0.2.80/32"
OWN_TABLE = """
ipv4 table uplinks;
protocol pipe to_uplinks { table uplinks; peer table redshank4; import all; export none; }
"""


def make_site():
    site = Site(edges=2, bird_extra="debug commands 2;")
    edge = site.edges[0]
    edge.host.run(["mount", "-t", "tmpfs", "-o", "size=4m,mode=755", "fragments", edge.fragments])
    site.start_agents()
    return site


def log_of(edge):
    with open(edge.bird.log, encoding="utf-8") as f:
        return f.read()


def told(edge, mark):
    """The commands that change something, in BIRD's own log."""
    return re.findall(r"CLI: ((?:configure|enable .*|disable .*))$", log_of(edge)[mark:], re.M)


def settled(edge, timeout=20):
    return edge.agent.wait_status(lambda s: s["bird"]["settled"], timeout=timeout, what="settled")


def bulk(n):
    return [f"10.{i >> 8}.{i & 255}.1/32" for i in range(n)]


def resize(site, edge, n):
    """web has its own prefix and n others; address_check off, since they are on no interface."""
    prefixes = {WEB: 100}
    prefixes.update({p: {"weight": 100, "address_check": False} for p in bulk(n)})
    edge.agent.config["services"]["web"]["prefixes"] = prefixes
    edge.agent.reload()


def wait_all(site, kind, prefixes, since, timeout=20):
    def missing():
        seen = {e.prefix for e in site.wire.since(since) if e.edge == "edge1" and e.kind == kind}
        return set(prefixes) - seen

    eventually(lambda: not missing(), timeout, lambda: f"{kind} of {len(missing())} more, such as {sorted(missing())[:3]}")


def withdrawn(site, since):
    return [e for e in site.wire.since(since) if e.kind == "withdraw"]


def test_growth(site):
    """255 prefixes become 256, 257 and 255 again: whatever BIRD's protocols are then, no route flaps."""
    edge = site.edges[0]
    begun = time.time()
    resize(site, edge, 255)
    wait_all(site, "announce", bulk(255), begun)
    settled(edge)
    check(len([n for n in edge.bird.protocols() if ":web:" in n]) == 256, "one protocol each")
    begun = time.time()
    resize(site, edge, 256)
    wait_all(site, "announce", bulk(256)[255:], begun)
    settled(edge)
    check([n for n in edge.bird.protocols() if ":web:" in n] == ["redshank:web:v4"], "one for the family")
    check(not withdrawn(site, begun), "no flap by growing", withdrawn(site, begun)[:3])
    begun = time.time()
    resize(site, edge, 255)
    wait_all(site, "withdraw", bulk(256)[255:], begun)
    settled(edge)
    gone = {e.prefix for e in withdrawn(site, begun)}
    check(gone == set(bulk(256)[255:]), "no other prefix flaps by shrinking", sorted(gone)[:3])


def test_many(site):
    """A thousand prefixes: a death is one command, and so is the return."""
    edge = site.edges[0]
    begun = time.time()
    resize(site, edge, 1000)
    wait_all(site, "announce", bulk(1000)[255:], begun)
    settled(edge)
    edge.agent.wait_prefix(bulk(1000)[-1], announced=True, exported=1, timeout=20)
    mark = len(log_of(edge))
    begun = edge.nginx.kill()
    wait_all(site, "withdraw", [WEB] + bulk(1000), begun)
    check(told(edge, mark) == ['disable "redshank:web:*"'], "one command", told(edge, mark))
    settled(edge)
    mark, back = len(log_of(edge)), time.time()
    edge.nginx.start()
    wait_all(site, "announce", [WEB] + bulk(1000), back)
    check(told(edge, mark) == ['enable "redshank:web:*"'], "one command", told(edge, mark))
    check({e.prefix for e in site.wire.since(begun)} == {WEB, *bulk(1000)}, "nobody else moved")


def test_part_of_family(site):
    """One prefix of a family leaves and returns alone: by configure, and nobody else flaps."""
    edge = site.edges[0]
    settled(edge)
    begun = time.time()
    edge.remove_address("192.0.2.80")
    site.wire.wait_withdraw("edge1", WEB, since=begun)
    edge.agent.wait_prefix(WEB, announced=False, exported=0)
    check({e.prefix for e in withdrawn(site, begun)} == {WEB}, "only it", withdrawn(site, begun)[:3])
    back = time.time()
    edge.add_address("192.0.2.80")
    site.wire.wait_announce("edge1", WEB, since=back)
    settled(edge)
    check({e.prefix for e in withdrawn(site, begun)} == {WEB}, "only it", withdrawn(site, begun)[:3])
    resize(site, edge, 0)
    wait_all(site, "withdraw", bulk(1000), back)
    settled(edge)


def test_own_table(site):
    """Sessions that look at a table of their own: announced, and exported is what they would send."""
    edge = site.edges[0]
    plain = edge.bird.config
    own = plain.replace("protocol device", OWN_TABLE + "protocol device", 1)
    own = own.replace("ipv4 { import none; export where", "ipv4 { table uplinks; import none; export where", 1)
    edge.bird.write_config(own)
    begun = time.time()
    edge.bird.configure()  # another table restarts the session
    site.wire.wait_announce("edge1", DNS, since=begun, timeout=30)
    edge.agent.wait_prefix(DNS, announced=True, exported=1)
    begun = edge.nsd.kill()
    site.wire.wait_withdraw("edge1", DNS, since=begun)
    edge.agent.wait_prefix(DNS, announced=False, exported=0)
    edge.nsd.start()
    site.wire.wait_announce("edge1", DNS, since=begun)
    # The pipe is forgotten: BIRD announces it in its main table, and sends it to nobody.
    edge.bird.write_config(own.replace("peer table redshank4; import all; export none; }\n", "peer table redshank4; import none; export none; }\n", 1))
    edge.bird.configure()
    edge.agent.wait_prefix(DNS, announced=True, exported=0, timeout=15)
    edge.bird.write_config(plain)
    edge.bird.configure()
    site.wait_sessions()
    edge.agent.wait_prefix(DNS, announced=True, exported=1, timeout=15)
    settled(edge)


def test_session_down(site):
    """A session that is down exports nothing, and one that returns does, without anybody's help."""
    edge = site.edges[0]
    edge.birdc("disable router4")
    edge.agent.wait_prefix(DNS, announced=True, exported=0)
    settled(edge)  # nothing of that is ours to mend
    edge.birdc("enable router4")
    site.wait_sessions()
    edge.agent.wait_prefix(DNS, announced=True, exported=1)


def told_once(agent, mark, why):
    """Not what had to be done all the same, nor how often it was tried."""
    lines = [line for line in agent.text()[mark:].splitlines() if "can not be written" in line]
    check(len(lines) == 1 and why in lines[0], "said in the log once", lines)


def test_disk_read_only(site):
    """While no file can be changed a service leaves and returns as ever; that is said once, and so is its end."""
    edge, mark = site.edges[0], len(site.edges[0].agent.text())
    edge.host.run(["mount", "-o", "remount,ro", edge.fragments])
    try:
        for _ in range(3):
            begun = edge.nsd.kill()
            for prefix in (DNS, DNS6):
                site.wire.wait_withdraw("edge1", prefix, since=begun)
            edge.agent.wait_status(lambda s: "Read-only" in (s["bird"]["files_error"] or ""), what="it is in the status")
            edge.nsd.start()
            for prefix in (DNS, DNS6):
                site.wire.wait_announce("edge1", prefix, since=begun)
        told_once(edge.agent, mark, "Read-only file system")
    finally:
        edge.host.run(["mount", "-o", "remount,rw", edge.fragments])
    edge.agent.wait_log("fragments can be written again", after=mark)
    settled(edge)
    check(edge.agent.status()["bird"]["files_error"] is None, "over")
    told_once(edge.agent, mark, "Read-only file system")


def test_disk_full(site):
    """A disk that is full holds up what needs another file, and no death; that is said once, and all is as wanted then."""
    edge, mark = site.edges[0], len(site.edges[0].agent.text())
    path = edge.fragments + "/ballast"
    with contextlib.suppress(OSError), open(path, "wb", buffering=0) as ballast:
        while True:
            ballast.write(b"x" * 4096)
    begun = time.time()
    edge.agent.config["services"]["web"]["prefixes"][WEB] = 77
    edge.agent.reload()
    edge.agent.wait_status(lambda s: "No space left" in (s["bird"]["files_error"] or ""), what="it is in the status")
    killed = edge.nginx.kill()
    site.wire.wait_withdraw("edge1", WEB, since=killed)
    eventually(lambda: "disabled;" in (edge.fragment("web") or "disabled;"), what="no file announces it")  # written behind the command
    told_once(edge.agent, mark, "No space left on device")
    os.unlink(path)
    edge.agent.wait_log("fragments can be written again", after=mark)
    edge.nginx.start()
    site.wire.wait_announce("edge1", WEB, since=begun, med=77)
    settled(edge)
    told_once(edge.agent, mark, "No space left on device")


def test_birdc(site):
    """Control by the birdc program: the same, only slower."""
    edge = site.edges[1]
    edge.agent.stop()
    edge.agent.config["bird"]["control"] = "birdc"
    edge.agent.start()
    for prefix in (DNS, DNS6, WEB):
        site.wait_announced(prefix, "edge2")
    settled(edge)
    edge.agent.wait_prefix(DNS, announced=True, exported=1)
    begun = edge.nsd.kill()
    for prefix in (DNS, DNS6):
        site.wire.wait_withdraw("edge2", prefix, since=begun)
    edge.agent.wait_prefix(DNS, announced=False, exported=0)
    settled(edge)
    edge.birdc('enable "redshank:dns:*"')
    eventually(lambda: edge.bird.protocols()["redshank:dns:192.0.2.53"][2] == "down", 20, "noticed by the slow timer")
    edge.nsd.start()
    site.wire.wait_announce("edge2", DNS, since=begun)


main(make_site)
