"""A17: how names go into a query.

A final dot changes nothing, the root is one zero byte, escapes are read, and what is no name is
refused when the configuration is loaded, with its path. The id is random, RD as configured.
"""

import json
import os

from lib.agentctl import build_folder
from lib.case import check, eventually, main
from lib.fakedns import OPT, RD, FakeDns, record, reply
from lib.site import Site

DNS = "192.0.2.53/32"
PORT = 5317
NAMES = {  # name in the configuration: bytes on the wire
    "example.net": b"\7example\3net\0",
    "example.net.": b"\7example\3net\0",
    ".": b"\0",
    "xn--bcher-kva.example": b"\x0dxn--bcher-kva\7example\0",
    "_dns.resolver.arpa": b"\4_dns\10resolver\4arpa\0",
    "\\046dot.example": b"\4.dot\7example\0",
    "x" * 63 + ".example": b"\x3f" + b"x" * 63 + b"\7example\0",
}
BAD = ["a..b", ".a", "x" * 64 + ".example", ".".join(["x" * 49] * 5) + ".xxxxx", "b\u00fccher.example", "a\\256.b", "a b"]


def make_site():
    site = Site(edges=1, services=False)
    edge = site.edges[0]
    site.fake = FakeDns(edge.host, "192.0.2.53", PORT, lambda q: [reply(q, answers=[record(1, b"\xc0\0\2\1")])])
    return site


def ask(name, **more):
    return {"type": "dns", "server": "192.0.2.53", "port": PORT, "name": name, "rrtype": "A",
            "interval": "200ms", "fast_interval": "100ms", "timeout": "200ms", **more}


def test_names(site):
    """Each name's bytes, the same with and without a final dot; ids that differ; RD as configured; an OPT of 1,232 bytes."""
    edge = site.edges[0]
    checks = {f"n{i}": ask(name) for i, name in enumerate(NAMES)}
    checks["direct"] = ask("direct.example", recursion_desired=False)
    edge.agent.config["services"] = {"dns": {"prefixes": {DNS: 100}, "checks": checks}}
    edge.agent.start()
    for check_name in checks:
        edge.agent.wait_check("dns", check_name, state="up")
    seen = list(site.fake.queries)
    check({q.name for q in seen} == set(NAMES.values()) | {b"\6direct\7example\0"}, "the names", {q.name for q in seen})
    check(len({q.id for q in seen}) > 0.9 * len(seen), "each query has its own id", [q.id for q in seen])
    for q in seen:
        wanted = 0 if q.name.startswith(b"\6direct") else RD
        check(q.flags == wanted, "RD and no other flag", q.name, hex(q.flags))
        check(q.additional == bytes([0, 0, OPT, 1232 >> 8, 1232 & 255, 0, 0, 0, 0, 0, 0]), "the OPT", q.additional)
    plain = [q.wire[2:] for q in seen if q.name == NAMES["example.net"]]
    check(len(plain) >= 4 and len(set(plain)) == 1, "with and without the dot: the same bytes", set(plain))


def test_bad_names(site):
    """What is no name is refused at load, with the JSON path, all in one run."""
    edge = site.edges[0]
    checks = {f"n{i}": ask(name) for i, name in enumerate(BAD)}
    path = edge.host.path("bad.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump({**edge.agent.config, "services": {"dns": {"prefixes": {DNS: 100}, "checks": checks}}}, f)
    run = edge.host.run([os.path.join(build_folder(), "redshankd"), "-c", path, "--check"], check=False)
    check(run.returncode == 1, "refused", run.returncode)
    for i in range(len(BAD)):
        check(f"services.dns.checks.n{i}.name: got " in run.stderr, f"{BAD[i]!r} has its line", run.stderr)
    check(len(run.stderr.splitlines()) == len(BAD), "and nothing else", run.stderr)


def test_a_real_server(site):
    """nsd reads the same names: an escaped dot is part of a label, and a final dot changes nothing."""
    edge = site.edges[0]
    zone = os.path.join(edge.nsd.dir, "example.net.zone")
    with open(zone, "a", encoding="ascii") as f:
        f.write("\\046dot A 192.0.2.46\nxn--bcher-kva A 192.0.2.47\n_dns A 192.0.2.48\n")
    edge.nsd.start()
    wanted = {"\\046dot.example.net": "192.0.2.46", "\\.dot.example.net.": "192.0.2.46",
              "xn--bcher-kva.example.net": "192.0.2.47", "_DNS.example.net.": "192.0.2.48"}
    edge.agent.config["services"]["dns"]["checks"] = {
        f"r{i}": ask(name, port=53, expect={"answers": [address], "authoritative": True})
        for i, (name, address) in enumerate(wanted.items())
    }
    edge.agent.reload()
    for i in range(len(wanted)):
        eventually(lambda i=i: edge.agent.check("dns", f"r{i}")["state"] == "up", what=f"r{i} is up")


main(make_site)
