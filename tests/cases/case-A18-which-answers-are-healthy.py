"""A18: which answers mean "healthy"?

A fake server for each kind of answer, a check for each, all in one agent. By default only NOERROR with
an answer of the asked type is healthy. What is no answer to the query is ignored until the deadline:
alone it is a timeout that says what was ignored, and before a good answer it changes nothing. Garbage
harms nobody. Then real servers: nsd's own rcodes, a TXT too large for UDP, and an nsd that hangs.
"""

import os

from lib.case import check, main
from lib.fakedns import A, CNAME, QR, TC, TXT, FakeDns, name, record, reply
from lib.site import Site
from lib.wait import until

DNS = "192.0.2.53/32"
ADDRESS = record(A, b"\xc0\0\2\1")


def good(q):
    return reply(q, answers=[ADDRESS])


def loop(q):
    """The owner of the answer is a pointer to itself."""
    return reply(q, answers=[record(A, b"\xc0\0\2\1", owner=bytes([0xC0, 12 + len(q.question)]))])


def alias(q, last=A):
    return reply(q, answers=[record(CNAME, name("a.example.net")), record(last, b"\xc0\0\2\1", owner=name("a.example.net"))])


# name: (answers to a query, what the check says: None is up, else down with this in the reason)
TURNS = {
    "good": (lambda q: [good(q)], None),
    "alias": (lambda q: [alias(q)], None),
    "empty": (lambda q: [reply(q)], "NOERROR without an answer of type A"),
    "other-type": (lambda q: [reply(q, answers=[record(TXT, b"\1x")])], "NOERROR without an answer of type A"),
    "dead-alias": (lambda q: [alias(q, TXT)], "NOERROR without an answer of type A"),
    "formerr": (lambda q: [reply(q, 1)], "answered FORMERR"),
    "servfail": (lambda q: [reply(q, 2)], "answered SERVFAIL"),
    "servfail-answer": (lambda q: [reply(q, 2, [ADDRESS])], "answered SERVFAIL"),
    "nxdomain": (lambda q: [reply(q, 3)], "answered NXDOMAIN"),
    "notimp": (lambda q: [reply(q, 4)], "answered NOTIMP"),
    "refused": (lambda q: [reply(q, 5)], "answered REFUSED"),
    "bare-formerr": (lambda q: [reply(q, 1, question=b"", qdcount=0)], "answered FORMERR"),
    "loop": (lambda q: [loop(q)], "malformed answer"),
    "truncated": (lambda q: [good(q) if q.tcp else reply(q, flags=QR | TC)], None),
    # No answers to the query: timeouts.
    "no-reply": (lambda q: [reply(q, answers=[ADDRESS], flags=0)], "the last because it is a query, not a reply"),
    "other-id": (lambda q: [reply(q, answers=[ADDRESS], change_id=0x4711)], "the last because it has another id"),
    "other-name": (lambda q: [reply(q, answers=[ADDRESS], question=name("x.net") + b"\0\1\0\1")], "another question"),
    "other-type-asked": (lambda q: [reply(q, answers=[ADDRESS], question=q.question[:-3] + b"\x10\0\1")], "another question"),
    "other-port": (lambda q: [("other", good(q))], "timeout after 200ms"),
    "three-bytes": (lambda q: [good(q)[:3]], "the last because 3 bytes are no DNS message"),
    "question-loop": (lambda q: [reply(q, answers=[ADDRESS], question=b"\xc0\x0c\0\1\0\1")], "another question"),
    "nothing": (lambda q: [], "timeout after 200ms"),
    # The same ahead of a good answer: no harm.
    "strays-and-good": (
        lambda q: [reply(q, 2, change_id=1), reply(q, 2, flags=0), reply(q, 5, question=name("x.net") + b"\0\1\0\1"),
                   b"abc", b"", ("other", reply(q, 2)), good(q)], None),
}
EXPECTING = {
    "accepts-nxdomain": ("nxdomain", {"rcodes": ["NXDOMAIN"]}, None),
    "accepts-both": ("nxdomain", {"rcodes": ["NOERROR", "NXDOMAIN"]}, None),
    "wants-nxdomain": ("good", {"rcodes": ["NXDOMAIN"]}, "answered NOERROR"),
    "wants-none": ("empty", {"min_answers": 0}, None),
    "wants-two": ("good", {"min_answers": 2}, "1 answer of type A, expected at least 2"),
    "wants-content": ("good", {"answers": ["192.0.2.1"]}, None),
    "wants-other-content": ("good", {"answers": ["192.0.2.2"]}, "expected the answer 192.0.2.2, got 192.0.2.1"),
    "wants-authority": ("good", {"authoritative": True}, "the answer is not authoritative"),
}


def ask(port, **more):
    return {"type": "dns", "server": "192.0.2.53", "port": port, "name": "health.example.net", "rrtype": "A",
            "interval": "300ms", "fast_interval": "250ms", "timeout": "200ms", **more}


def make_site():
    site = Site(edges=1)
    host = site.edges[0].host
    site.ports = {turn: 5400 + i for i, turn in enumerate(TURNS)}
    site.fakes = {turn: FakeDns(host, "192.0.2.53", site.ports[turn], TURNS[turn][0]) for turn in TURNS}
    return site


def decided(agent, names):
    """The checks' part of the status once every one of them is up or down."""

    def look():
        checks = agent.status()["services"]["dns"]["checks"]
        return all(checks[n]["state"] in ("up", "down") and len(checks[n]["outcomes"]) >= 3 for n in names) and checks

    return until(look, 10, "every check has decided")


def hold(checks, name, wanted):
    state = checks[name]
    if wanted is None:
        check(state["state"] == "up" and "bad" not in state["outcomes"], f"{name} is up", state)
    else:
        check(state["state"] == "down" and "good" not in state["outcomes"], f"{name} is down", state)
        check(wanted in state["reason"], f"{name} says {wanted!r}", state)


def test_each_answer(site):
    """Every kind of answer, by default and with expectations, against the rule of the manual."""
    agent = site.edges[0].agent
    checks = {turn: ask(port) for turn, port in site.ports.items()}
    checks.update({n: ask(site.ports[turn], expect=expect) for n, (turn, expect, _) in EXPECTING.items()})
    agent.config["services"] = {"dns": {"prefixes": {DNS: 100}, "checks": checks}}
    agent.start()
    seen = decided(agent, checks)
    for turn, (_, wanted) in TURNS.items():
        hold(seen, turn, wanted)
    for n, (_, _, wanted) in EXPECTING.items():
        hold(seen, n, wanted)


def test_prefix_follows(site):
    """The prefix follows: announced while the answer is good, gone with SERVFAIL, back with NOERROR, gone with strays alone."""
    agent, fake = site.edges[0].agent, site.fakes["good"]
    agent.config["services"]["dns"]["checks"] = {"answers": ask(site.ports["good"])}
    agent.reload()
    site.wait_announced(DNS, "edge1")
    for turn in ("servfail", "other-id"):
        fake.answer = TURNS[turn][0]
        site.wait_route(DNS, set())
        fake.answer = TURNS["good"][0]
        site.wait_announced(DNS, "edge1")


def test_a_real_server(site):
    """nsd: an answer, a name that does not exist, a zone it does not have, authority; and a TXT too large for UDP over TCP."""
    edge = site.edges[0]
    with open(os.path.join(edge.nsd.dir, "example.net.zone"), "a", encoding="ascii") as f:
        f.writelines(f'large TXT "{i:0200}"\n' for i in range(60))
        f.write("www CNAME health\n")
    edge.nsd.restart()
    zone = {
        "answer": ({"authoritative": True, "answers": ["192.0.2.53"]}, {}, None),
        "alias": ({"authoritative": True, "answers": ["192.0.2.53"]}, {"name": "www.example.net"}, None),
        "missing": ({}, {"name": "nope.example.net"}, "answered NXDOMAIN"),
        "missing-wanted": ({"rcodes": ["NXDOMAIN"], "authoritative": True}, {"name": "nope.example.net"}, None),
        "no-data": ({}, {"rrtype": "AAAA"}, "NOERROR without an answer of type AAAA"),
        "elsewhere": ({}, {"name": "example.org"}, "answered REFUSED"),
        "large": ({"min_answers": 60, "answers": [f'"{59:0200}"']}, {"name": "large.example.net", "rrtype": "TXT"}, None),
        "tcp": ({}, {"transport": "tcp"}, None),
        "v6": ({}, {"server": "2001:db8::53"}, None),
    }
    edge.agent.config["services"]["dns"]["checks"] = {n: ask(53, expect=e, **more) for n, (e, more, _) in zone.items()}
    edge.agent.reload()
    until(lambda: set(edge.agent.status()["services"]["dns"]["checks"]) == set(zone), 5, "the new checks")
    seen = decided(edge.agent, zone)
    for n, (_, _, wanted) in zone.items():
        hold(seen, n, wanted)


def test_a_server_that_hangs(site):
    """An nsd that hangs: over UDP a timeout, over TCP, where the kernel still accepts, one, too; the prefix leaves and returns."""
    edge = site.edges[0]
    edge.agent.config["services"]["dns"]["checks"] = {"udp": ask(53), "tcp": ask(53, transport="tcp")}
    edge.agent.reload()
    site.wait_announced(DNS, "edge1")
    edge.nsd.freeze()
    site.wait_route(DNS, set())
    for n in ("udp", "tcp"):
        state = edge.agent.wait_check("dns", n, state="down")
        check(state["reason"] == "timeout after 200ms", "it says so", state)
    edge.nsd.thaw()
    site.wait_announced(DNS, "edge1")


main(make_site)
