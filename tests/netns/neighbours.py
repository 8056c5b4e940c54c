"""Neighbours speak with each other, and nobody else gets a word in.

Nodes of the agent's own module on one loopback, with certificates of an authority that the test makes.
Whom they turn away is judged by what the caller sees: never a byte of HTTP; and by their counters. What
broken, slow, lying, old and new neighbours cost is judged by the good one beside them, whose reports must
stay fresh.
"""

import http.client
import json
import pathlib
import socket
import ssl
import threading
import time
import warnings

from lib.case import check, eventually, main
from lib.netns import Lab, needs
from lib.neighbours import PORT, Authority, Node
from lib.pulse import Pulse

GRANT = {"version": 1, "node": "edge2", "boot": 7, "prefix": "192.0.2.53/32", "share": 50, "purpose": "shed", "request": 1}
REQUEST = b"GET /v1/report HTTP/1.1\r\nHost: edge1\r\n\r\n"
PULSE = Pulse()
PATIENCE = 2.0  # seconds that an answer is waited for


def held_up(since):
    """The machine stood still for so long since then that somebody's patience may have ended."""
    return PULSE.withheld(since) > PATIENCE / 4


def stays_fresh(node, name, what=""):
    state = node.view(name)[0]
    check(state == "fresh" or held_up(time.time() - 5), f"{what}{name} is fresh", state)


class Site:
    """One host; edge1 and edge2, who know each other."""

    def __init__(self):
        needs("openssl")
        self.lab = Lab()
        self.host = self.lab.host("site")
        self.authority = Authority(self.host.path("authority"))
        self.pairs = {name: self.authority.issue(name) for name in ("edge1", "edge2", "edge3", "edge4")}
        self.nodes = []
        self.edge1 = self.node("edge1", "127.0.0.1", {"edge2": "127.0.0.2", "edge3": "127.0.0.3"})
        self.edge2 = self.node("edge2", "127.0.0.2", {"edge1": "127.0.0.1", "edge4": "127.0.0.4"})
        for node in (self.edge1, self.edge2):
            node.start().wait("members ")

    def node(self, name, address, members, **section):
        node = Node(self.host, name, address, self.pairs[name], self.authority.certificate, members, **section)
        self.nodes.append(node)
        return node

    def context(self, pair=None, version=None):
        """A client's TLS that trusts everybody and shows this certificate."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if pair:
            context.load_cert_chain(pair.certificate, pair.key)
        if version:
            warnings.simplefilter("ignore", DeprecationWarning)
            context.set_ciphers("ALL:@SECLEVEL=0")
            context.minimum_version = ssl.TLSVersion.TLSv1
            context.maximum_version = version
        return context

    def connect(self, address="127.0.0.1", source=None):
        with self.host.inside():
            connection = socket.create_connection((address, PORT), 10, (source, 0) if source else None)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def call(self, pair, version=None, address="127.0.0.1"):
        """What a caller with this certificate gets to read after a request: bytes, or the error."""
        with self.connect(address) as plain:
            try:
                with self.context(pair, version).wrap_socket(plain) as tls:
                    tls.sendall(REQUEST)
                    return tls.recv(65536)
            except OSError as e:
                return e

    def http(self, pair, address="127.0.0.1"):
        """A connection of http.client's, as this neighbour."""
        connection = http.client.HTTPSConnection("edge1", PORT, timeout=15)
        connection.sock = self.context(pair).wrap_socket(self.connect(address))
        return connection

    def problems(self):
        return [f"{node.name}: exit status {node.stop()}\n{node.text()[-3000:]}" for node in self.nodes
                if node.popen and node.stop() != 0]

    def report(self):
        return "\n".join(f"--- {node.name}\n" + "\n".join(node.lines[-30:]) for node in self.nodes)

    def close(self):
        for node in self.nodes:
            if node.popen and node.popen.poll() is None:
                node.popen.kill()
        self.lab.close()


def request(connection, method, path, body=None, headers=None):
    """(status, document)"""
    connection.request(method, path, body if body is None or isinstance(body, (str, bytes)) else json.dumps(body),
                       headers or {})
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def test_two_neighbours(site):
    """Two neighbours know each other's reports, fresh, over one connection; grants go both ways."""
    for node, other in (site.edge1, "edge2"), (site.edge2, "edge1"):
        node.wait(f"report {other} 100 ")
    begun = time.time()
    _, reports, failures, _ = site.edge1.view("edge2")  # it may have been asked before it was there
    site.edge2.say("spare 77")
    site.edge1.wait("report edge2 77 ")
    site.edge1.say("call edge2 192.0.2.53/32 50 1")
    site.edge2.wait("asked edge1 192.0.2.53/32 50 granted")
    site.edge1.wait("answered edge2 granted 10000")
    site.edge1.say("call edge2 192.0.2.53/32 78 2")
    site.edge1.wait("answered edge2 no_room 0")
    site.edge1.say("back edge2 192.0.2.53/32 50 1")
    site.edge2.wait("asked edge1 192.0.2.53/32 50 back")
    eventually(lambda: site.edge1.view("edge2")[1] >= reports + 3, what="three reports more")
    state, _, now, error = site.edge1.view("edge2")
    check((state, now, error) == ("fresh", failures, "") or held_up(begun), "edge2 is fresh", state, now, error)
    counts = site.edge2.counts()
    check((counts["connections"] <= 2 and counts["welcome"] <= 2) or held_up(begun), "connections are kept", counts)
    check(site.edge1.view("edge3")[0] == "never", "edge3 is not there")


def test_renewals_in_step(site):
    """As many promises as can be held at one time are renewed at the same moment, again and again: all are answered,
    over few connections; and a neighbour that answers nothing is nobody else's trouble."""
    edge1, n = site.edge1, 32
    before = site.edge2.counts()
    with site.host.inside(), socket.socket() as silent:
        silent.bind(("127.0.0.3", PORT))
        silent.listen(64)
        for _ in range(3):  # not more: a neighbour has 120 requests at once, and 40 a second
            mark = edge1.mark()
            calls = [f"call {name} 192.0.2.{k}/32 1 {k}\n" for name in ("edge3", "edge2") for k in range(1, n + 1)]
            edge1.popen.stdin.write("".join(calls))
            edge1.popen.stdin.flush()

            def answered():
                return len([line for line in edge1.lines[mark:] if line.startswith("answered edge2 granted")])
            eventually(lambda: answered() == n, 15, lambda: f"{n} answers: {answered()}; {site.edge2.counts()}")
    after = site.edge2.counts()
    check(after["connections"] - before["connections"] <= 4, "connections are kept", before, after)
    check(after["turned_away"] == before["turned_away"], "nobody was turned away", before, after)


def turned_away(site, why, pair, **more):
    """Not a byte of HTTP for this caller, and one more is counted under `why`."""
    before = site.edge1.counts()
    for version in (None, ssl.TLSVersion.TLSv1_2):
        got = site.call(pair, version, **more)
        check(not isinstance(got, bytes) or got == b"", f"{why}: nothing to read", got)
    eventually(lambda: site.edge1.counts()[why] == before[why] + 2, what=f"two more {why}")


def test_no_certificate(site):
    """A caller without a certificate is turned away in the handshake, with TLS 1.3 and 1.2."""
    turned_away(site, "no_certificate", None)
    site.edge1.wait(" neighbours: a caller from 127.0.0.1:")


def test_of_another_authority(site):
    """A certificate of another authority is turned away, whatever name it bears."""
    other = Authority(site.host.path("other"))
    turned_away(site, "untrusted", other.issue("edge2"))


def test_not_for_a_client(site):
    """A certificate that is for servers alone is turned away."""
    turned_away(site, "untrusted", site.authority.issue("edge2", usage="serverAuth"))


def test_expired(site):
    """An expired certificate is turned away."""
    turned_away(site, "expired", site.authority.issue("edge2", days=-1))


def test_names_of_nobody(site):
    """Names that are no neighbour's are turned away: a stranger's, our own, a wildcard, a common name alone."""
    for names in (["edge9"], ["edge1"], ["*"], ["edge2.example.net"], []):
        turned_away(site, "stranger", site.authority.issue("edge2", names=names))


def test_two_names(site):
    """A certificate with two neighbours' names is turned away; with one and something else it is not."""
    turned_away(site, "ambiguous", site.authority.issue("edge2", names=["edge2", "edge3"]))
    got = site.call(site.authority.issue("edge2", names=["mail.example.net", "edge2"]))
    check(isinstance(got, bytes) and b"200 OK" in got, "the neighbour is let in", got)


def test_old_tls(site):
    """TLS 1.1 is not spoken; a neighbour's with 1.2 is."""
    got = site.call(site.pairs["edge2"], ssl.TLSVersion.TLSv1_1)
    check(isinstance(got, OSError), "no handshake", got)
    got = site.call(site.pairs["edge2"], ssl.TLSVersion.TLSv1_2)
    check(isinstance(got, bytes) and b"200 OK" in got, "the neighbour is let in", got)


def test_no_tls_at_all(site):
    """Plain HTTP, garbage and silence get no answer, and an end."""
    silent = site.connect()
    for data in (REQUEST, b"\x16\x03\x01\xff\xff" + b"\0" * 3000, bytes(range(256)) * 40):
        with site.connect() as plain:
            plain.settimeout(10)
            try:
                plain.sendall(data)
                answer = plain.recv(4096)
                while answer and (more := plain.recv(4096)):
                    answer += more
            except ConnectionError:
                answer = b""
            check(b"HTTP" not in answer, "no HTTP", answer)
    silent.settimeout(10)
    try:
        silent.recv(1)
    except ConnectionError:
        pass
    except TimeoutError:
        check(False, "silence ends")
    stays_fresh(site.edge1, "edge2")


def test_requests(site):
    """What is wrong with a request is said, and a caller is only who its certificate says."""
    c = site.http(site.pairs["edge2"])
    status, report = request(c, "GET", "/v1/report")
    check(status == 200 and report["node"] == "edge1" and report["site"] == "lab", "a report", status, report)
    check(request(c, "POST", "/v1/grant", GRANT) == (200, {"granted": 50, "lease_ms": 10000}), "granted")
    check(request(c, "POST", "/v1/grant", {**GRANT, "later": [1]}) == (200, {"granted": 50, "lease_ms": 10000}), "newer")
    check(request(c, "POST", "/v1/grant", {**GRANT, "share": 101}) == (409, {"refused": "no_room"}), "refused")
    check(request(c, "DELETE", "/v1/grant", GRANT) == (200, {}), "given back")
    rows = [
        ("POST", "/v1/grant", {**GRANT, "node": "edge3"}, 403, "`node` is not the name in the certificate"),
        ("POST", "/v1/grant", {**GRANT, "purpose": "fun"}, 400, "`purpose`: expected 'shed' or 'health'"),
        ("POST", "/v1/grant", "{", 400, "line 1, column 1"),
        ("POST", "/v1/grant", json.dumps(GRANT)[:-1] + ', "share": 1}', 400, "duplicate object key"),
        ("POST", "/v1/grant", "", 400, "line"),
        ("POST", "/v1/grant", "{" + " " * 1000000, 413, "at most 2048"),
        ("PUT", "/v1/grant", GRANT, 405, "only POST and DELETE"),
        ("POST", "/v1/report", GRANT, 405, "only GET"),
        ("GET", "/v1/status", None, 404, "no such resource"),
    ]
    for method, path, body, wanted, words in rows:
        c = site.http(site.pairs["edge2"])
        status, document = request(c, method, path, body)
        check(status == wanted and words in document["error"], f"{method} {path} {str(body)[:60]}", status, document)
    site.edge1.counts()  # its answer comes behind all that it has said
    asked = [line for line in site.edge1.lines if line.startswith("asked edge2")]
    check(len(asked) == 4, "the good ones were asked, no others", asked)


def test_storm_of_grants(site):
    """A neighbour that asks for grants as fast as it can gets few a second, and the loop hardly notices."""
    site.edge1.say("watch")
    before, begun, answers = site.edge1.cpu_s(), time.monotonic(), []

    def ask():
        c = site.http(site.pairs["edge2"])
        while time.monotonic() < begun + 3 or (503 not in answers and time.monotonic() < begun + 15):
            try:
                answers.append(request(c, "POST", "/v1/grant", GRANT)[0])
            except (OSError, http.client.HTTPException):
                c = site.http(site.pairs["edge2"])

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(40)
    took = time.monotonic() - begun
    busy_ms = int(site.edge1.ask("late").split()[1]) / 1000
    check(answers.count(200) < 120 + 40 * (took + 1) and 503 in answers, "some of them", len(answers), answers.count(200), took)
    check(busy_ms < 5, "the loop was held for less than 5 ms", busy_ms)
    check(site.edge1.cpu_s() - before < took / 2, "half a core at most", site.edge1.cpu_s() - before, took)
    site.edge2.wait("report edge1 ", after=site.edge2.mark(), timeout=12)


def test_sent_away_while_it_waits(site):
    """A connection that makes room for another while its request waits ends, and keeps no place."""
    was = site.edge1.counts()
    c, text = site.context(site.pairs["edge2"]).wrap_socket(site.connect()), b""
    c.settimeout(15)
    c.sendall(400 * REQUEST)  # all at once: more than a busy machine lets one ask in turn
    while b"HTTP/1.1 503" not in text and (more := c.recv(65536)):
        text = text[-100:] + more
    check(b"HTTP/1.1 503" in text, "too many requests wait", text[-300:])
    held = []
    for _ in range(20):
        with site.connect() as plain:
            held.append(site.context(site.pairs["edge2"]).wrap_socket(plain))
        held[-1].sendall(8 * REQUEST)
    for connection in [c, *held]:
        connection.close()

    def all_seen():
        now = site.edge1.counts()
        return now["connections"] >= was["connections"] + 1 + len(held) and now["open"] <= was["open"]

    eventually(all_seen, 15, lambda: (was, site.edge1.counts()))


def test_slow_callers(site):
    """A neighbour that sends its request a byte at a time is cut off, and no other waits for it."""
    def drip(data, ends):
        with site.context(site.pairs["edge2"]).wrap_socket(site.connect()) as tls:
            tls.settimeout(12)
            start = time.monotonic()
            try:
                for i in range(120):
                    tls.sendall(data[i:i + 1])
                    time.sleep(0.1)
            except OSError:
                ends.append(time.monotonic() - start)

    body = json.dumps(GRANT).encode()
    head = b"POST /v1/grant HTTP/1.1\r\nHost: edge1\r\nContent-Length: 9999\r\n\r\n"
    ends = []
    start, began = time.monotonic(), time.time()
    # A member has four places: with edge2's own, and a second one while it connects anew, two are ours.
    with site.context(site.pairs["edge2"]).wrap_socket(site.connect()) as tls:
        tls.sendall(head)
        threading.Thread(target=drip, args=(b"G" * 200, []), daemon=True).start()
        mark = site.edge2.mark()
        tls.settimeout(12)
        try:
            for i in range(400):
                tls.sendall(body[i % len(body):i % len(body) + 1])
                time.sleep(0.05)
        except OSError:
            ends.append(time.monotonic() - start)
    late = ends[0] - 5 - PULSE.withheld(began) if ends else 0
    check(ends and ends[0] >= 5 and late < 2, "cut off after five seconds", ends, late, site.edge1.counts())
    reports = [line for line in site.edge2.lines[mark:] if line.startswith("report edge1")]
    check(len(reports) >= 3 or held_up(began), "edge2 went on", reports)


class Fake(threading.Thread):
    """A server in a neighbour's place: `answer` is bytes, or a function of the TLS connection."""

    def __init__(self, site, address, pair, answer=b""):
        super().__init__(daemon=True)
        self.requests, self.answer, self.connections = [], answer, 0
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(pair.certificate, pair.key)
        with site.host.inside():
            self.listener = socket.create_server((address, PORT), backlog=64)
        self.start()

    def serve(self, connection):
        connection.settimeout(20)
        try:
            with self.context.wrap_socket(connection, server_side=True) as tls:
                while data := tls.recv(4096):
                    self.requests.append(data)
                    if callable(self.answer):
                        self.answer(tls)
                    else:
                        tls.sendall(self.answer)
        except OSError:
            pass

    def run(self):
        while True:
            connection, _ = self.listener.accept()
            self.connections += 1
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()


def response(document, status="200 OK"):
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def drip(tls):
    """An answer that takes longer than anybody waits."""
    for byte in response({"node": "drips"}):
        tls.sendall(bytes([byte]))
        time.sleep(0.1)


def endless(tls):
    tls.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        tls.sendall(b"10000\r\n" + b" " * 0x10000 + b"\r\n")


def said(name, **more):
    return {"version": 1, "node": name, "site": "lab", "boot": 9, "capacity": 1000, "load": 1, "willing": True,
            "spare": 5, **more}


def test_what_neighbours_answer(site):
    """Who answers in a neighbour's place gets no request; lying, endless, slow, silent, broken and old ones give no room."""
    issue, other = site.authority.issue, Authority(site.host.path("third"))
    # A name to a certificate, an answer, words of the reason, and whether it gets to see a request.
    rows = {
        "another": (site.pairs["edge2"], b"", "another", False),
        "wild": (issue("wild", names=["*.example.net", "wild", "edge2"]), b"", "two neighbours'", False),
        "wild.example.net": (issue("wild", names=["*.example.net"]), b"", "does not bear its name", False),
        "common": (issue("common", names=[]), b"", "does not bear its name", False),
        "third": (other.issue("third"), b"", "certificate", False),
        "expired": (issue("expired", days=-1), b"", "expired", False),
        "client": (issue("client", usage="clientAuth"), b"", "certificate", False),
        "lies": (issue("lies"), response(said("edge2")), "of the node edge2", True),
        "elsewhere": (issue("elsewhere"), response(said("elsewhere", site="far")), 'of the site "far"', True),
        "twice": (issue("twice"), response(b'{"node": "twice", "site": "lab", "spare": 1, "spare": 9}'), "duplicate", True),
        "garbage": (issue("garbage"), response(b"\x00\xff<html>"), "line 1", True),
        "older": (issue("older"), response({"error": "no such resource"}, "404 Not Found"), "status 404", True),
        "moved": (issue("moved"), response(b"", "302 Found\r\nLocation: http://127.0.0.1/"), "status 302", True),
        "long": (issue("long"), response(b" " * 1048577), "too long", True),
        "ssh": (issue("ssh"), b"SSH-2.0-OpenSSH\r\n", "HTTP", True),
        "endless": (issue("endless"), endless, "too long", True),
        "drips": (issue("drips"), drip, "time", True),
        "silent": (issue("silent"), lambda tls: time.sleep(9), "time", True),
    }
    addresses = {name: f"127.0.2.{i}" for i, name in enumerate([*rows, "newer", "unwilling"], 1)}
    fakes = {name: Fake(site, addresses[name], *row[:2]) for name, row in rows.items()}
    Fake(site, addresses["newer"], issue("newer"), response(said("newer", version=9, spare=321, later={"a": [1, None]})))
    Fake(site, addresses["unwilling"], issue("unwilling"), response(said("unwilling", willing=None)))
    begun = time.time()
    edge4 = site.node("edge4", "127.0.0.4", {"edge2": "127.0.0.2", **addresses}).start()
    edge4.wait("report newer 321 ")
    edge4.wait("report unwilling 0 ")
    for name, (_, _, words, requests) in rows.items():
        state, reports, _, error = eventually(
            lambda n=name: (v := edge4.view(n))[2] >= 2 and v, 15, lambda n=name: f"two failures of {n}: {edge4.view(n)}")
        check(words in error, f"{name}: {words!r}", error)
        check(state == "never" and reports == 0, f"{name}: no report counts", state, reports)
        check(bool(fakes[name].requests) == requests, f"{name}: the requests that it saw", fakes[name].requests)
        stays_fresh(edge4, "edge2", f"{name}: ")
    for i in range(2):
        edge4.wait("report edge2 ", after=edge4.mark())
    check(edge4.view("edge2")[2] == 0 or held_up(begun), "and nothing of edge2 was missed", edge4.view("edge2"))
    check(edge4.stop() == 0, "edge4 ends well", edge4.popen.returncode, [t for t in edge4.lines if t[:4] not in ("view", "repo")][-60:])


def test_connections_are_kept(site):
    """A dozen neighbours are asked over one connection each, again and again."""
    names = [f"kept{i}" for i in range(12)]
    addresses = {name: f"127.0.4.{i}" for i, name in enumerate(names, 1)}
    fakes = [Fake(site, addresses[name], site.authority.issue(name), response(said(name))) for name in names]
    site.pairs["edge5"], begun = site.authority.issue("edge5"), time.time()
    edge5 = site.node("edge5", "127.0.0.5", addresses).start()
    eventually(lambda: all(len(fake.requests) >= 3 for fake in fakes), 15, lambda: [len(fake.requests) for fake in fakes])
    connections = [fake.connections for fake in fakes]
    check(connections == [1] * 12 or held_up(begun), "one connection each", connections)
    check(edge5.stop() == 0, "edge5 ends well", edge5.text()[-3000:])


def test_members_of_a_file(site):
    """A file of members is read whenever it changes: who joins is asked and let in, who leaves is turned away."""
    path = site.host.path("members.json")
    pathlib.Path(path).write_text("{}", encoding="utf-8")
    site.edge2.configure(file=path, members={"edge1": "127.0.0.1:9480"})
    site.edge2.say("reload")
    site.edge2.wait("members 1 edge1", after=1)
    edge3 = site.node("edge3", "127.0.0.3", {"edge2": "127.0.0.2"}).start()
    eventually(lambda: site.edge2.counts()["stranger"] > 0, what="edge3 is turned away")
    mark = site.edge2.mark()
    Node.replace(path, b'{"edge2": "127.0.0.2:9480", "edge3": "127.0.0.3:9480"}')
    site.edge2.wait("members 2 edge1 edge3", after=mark)
    site.edge2.wait("report edge3 ", after=mark)
    edge3.wait("report edge2 ")
    mark = site.edge2.mark()
    for text, words in (b"{", "members.json: line 1"), (b'{"edge3": "edge3:9480"}', "edge3: expected an address literal"):
        Node.replace(path, text)
        site.edge2.wait(f" neighbours: {path}", after=mark)
        check(words in site.edge2.counts()["error"], "the view says it, too", site.edge2.counts())
        stays_fresh(site.edge2, "edge3", "what was in use stays in use: ")
        mark = site.edge2.mark()
    Node.replace(path, b"{}")
    site.edge2.wait("members 1 edge1", after=mark)
    mark = edge3.mark()
    edge3.wait(" neighbour edge2: no report: ", after=mark)
    check(edge3.stop() == 0, "edge3 ends well", edge3.text())


def test_found_in_bird(site):
    """Neighbours whose address BIRD shows are looked for among the next hops, and known by their certificates alone."""
    seeker = site.node("edge4", "127.0.0.4", {"edge1": "bird", "edge2": "bird", "edge3": "bird"}, folder="edge4-again").start()
    seeker.wait(" neighbour edge2: no report: BIRD knows no other server's route")
    site.edge1.configure(members={"edge2": "127.0.0.2:9480", "edge4": "127.0.0.4:9480"})
    site.edge1.say("reload")
    site.edge2.configure(members={"edge1": "127.0.0.1:9480", "edge4": "127.0.0.4:9480"})
    site.edge2.say("reload")
    seeker.say("found 127.0.0.77 127.0.0.2 127.0.0.1")
    seeker.wait("report edge1 ", timeout=15)
    seeker.wait("report edge2 ", timeout=15)
    check(seeker.view("edge3")[:2] == ("never", 0), "who is nowhere is not found", seeker.view("edge3"))
    seeker.say("call edge2 192.0.2.53/32 5 1")
    seeker.wait("answered edge2 granted")
    check(seeker.stop() == 0, "edge4 ends well", seeker.text()[-3000:])


def test_new_certificates(site):
    """New certificates without a restart: half of a pair is not taken; what the old authority signed is worth nothing."""
    new = Authority(site.host.path("new"))
    pairs = {name: new.issue(name) for name in ("edge1", "edge2")}
    old = site.http(site.pairs["edge2"])
    check(request(old, "GET", "/v1/report")[0] == 200, "the old one is let in")
    mark = site.edge1.mark()
    Node.replace(site.edge1.files["key"], pathlib.Path(pairs["edge1"].key).read_bytes())
    site.edge1.wait(" what was in use stays in use", after=mark)
    check(request(old, "GET", "/v1/report")[0] == 200, "and stays in")
    for node in (site.edge1, site.edge2):
        node.install(pairs[node.name], new.certificate)
    for node, other in (site.edge1, "edge2"), (site.edge2, "edge1"):
        eventually(lambda n=node: n.counts()["error"] == "", what="the files are in use")
        eventually(lambda n=node: n.counts()["replaced"] >= 2, what="taken over")
        node.wait(f"report {other} ", after=node.mark())
    try:
        request(old, "GET", "/v1/report")
        check(False, "the old connection is closed")
    except (OSError, http.client.HTTPException):
        pass
    turned_away(site, "untrusted", site.pairs["edge2"])
    got = site.call(pairs["edge2"])
    check(isinstance(got, bytes) and b"200 OK" in got, "the new one is let in", got)
    site.pairs.update(pairs)


def test_reload_with_broken_files(site):
    """Another site while a file is broken: taken when the file is well again, though it is as it was before."""
    pair = [site.authority.issue(name) for name in ("moving1", "moving2")]
    one, two = (Node(site.host, f"moving{i}", f"127.0.6.{i}", pair[i - 1], site.authority.certificate,
                     {f"moving{3 - i}": f"127.0.6.{3 - i}"}) for i in (1, 2))
    site.nodes += [one.start(), two.start()]
    one.wait("report moving2 ")
    Node.replace(one.files["certificate"], b"broken")
    for node in (one, two):
        node.configure(site="other")
        node.say("reload")
    eventually(lambda: one.counts()["error"], what="the file is found broken")
    one.install(pair[0])
    eventually(lambda: not one.counts()["error"], what="and read again")
    mark = one.mark()
    one.wait("report moving2 ", after=mark)
    eventually(lambda: one.view("moving2")[3] == "", what=lambda: f"both are of one site again: {one.view('moving2')}")


def test_sixty_four_at_once(site):
    """Sixty-four neighbours that come at once never make the loop work for 5 ms."""
    # By the clock it is late by what the machine gives to others, too: there the best of some rounds counts, and
    # only that it is far from the time that the handshakes take.
    hosts = [f"127.0.3.{i}" for i in range(1, 65)]
    members = {"edge2": "127.0.0.2:9480", **{f"n{i}": f"{host}:9480" for i, host in enumerate(hosts)}}
    mark = site.edge1.mark()
    site.edge1.configure(members=members)
    site.edge1.say("reload")
    site.edge1.wait("members 65 ", after=mark)
    context, best = site.context(site.pairs["edge2"]), None
    for _ in range(6):
        barrier, served, begun = threading.Barrier(65), [], time.time()

        def come(host, barrier=barrier, served=served):
            with site.connect(source=host) as plain:
                plain.settimeout(20)
                barrier.wait(30)
                try:
                    with context.wrap_socket(plain) as tls:
                        tls.sendall(REQUEST)
                        served.append(tls.recv(65536))
                except OSError:
                    pass

        threads = [threading.Thread(target=come, args=(host,)) for host in hosts]
        for thread in threads:
            thread.start()
        before = site.edge1.counts()
        site.edge1.say("watch")
        barrier.wait(30)
        for thread in threads:
            thread.join(30)
        late_ms, busy_ms = (int(us) / 1000 for us in site.edge1.ask("late").split())
        check(busy_ms < 5, "the loop worked for less than 5 ms", busy_ms)
        if len(served) < 64 and held_up(begun):
            continue
        check(len(served) == 64, "all were served", len(served))
        after = eventually(lambda b=before: (c := site.edge1.counts())["welcome"] >= b["welcome"] + 64 and c, what="64 more")
        work_ms = (after["cpu_us"] - before["cpu_us"]) / 1000
        check(work_ms > 25, "the work would have held it for longer", work_ms)
        if best is None or late_ms < best[0]:
            best = late_ms, work_ms
        if late_ms < 5:
            break
    check(best, "a round in which the machine went on")
    print(f"# the loop was late by {best[0]:.2f} ms, while the thread worked for {best[1]:.0f} ms")
    check(best[0] < 20, "nothing made it wait for the work", best)
    site.edge1.wait("report edge2 ", after=site.edge1.mark())


def still_open(connection):
    connection.setblocking(False)
    try:
        return connection.recv(1) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


def test_strangers_do_not_shut_out_neighbours(site):
    """Crowds that stop in the middle of a handshake, and come again, keep no neighbour out."""
    before, begun = site.edge1.counts(), time.time()
    held = []
    for _ in range(150):
        try:
            held.append(site.connect(source="127.0.0.99"))
        except OSError:
            pass
    eventually(lambda: site.edge1.counts()["turned_away"] > before["turned_away"] + 60, what="most are turned away at once")
    site.call(site.pairs["edge2"], address="127.0.0.1")
    with site.connect(source="127.0.0.2") as plain, site.context(site.pairs["edge2"]).wrap_socket(plain) as tls:
        tls.sendall(REQUEST)
        got = tls.recv(65536)
    check(b"200 OK" in got, "a neighbour's host comes in", got)
    check(any(still_open(c) for c in held) or held_up(begun), "meanwhile: not when all of the crowd were gone")
    for connection in held:
        connection.close()


def test_plain(site):
    """Without TLS only where the configuration says so, and who is no member's gets no grant."""
    one = Node(site.host, "plain1", "127.0.1.1", members={"plain2": "127.0.1.2"}, plain=True)
    two = Node(site.host, "plain2", "127.0.1.2", members={"plain1": "127.0.1.1"}, plain=True)
    site.nodes += [one.start(), two.start()]
    one.wait("report plain2 100 ")
    two.wait("report plain1 100 ")
    with site.host.inside():
        c = http.client.HTTPConnection("127.0.1.1", PORT, timeout=5)
        check(request(c, "POST", "/v1/grant", {**GRANT, "node": "plain2"})[0] == 200, "a member's")
        check(request(c, "POST", "/v1/grant", GRANT)[0] == 403, "nobody's")


main(Site)
