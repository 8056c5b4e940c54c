"""A16: the deadline is for the whole check.

Servers that drip their head or their body for ever, one that stops just past a buffer, and one with
a body of a gigabyte. None moves its own next check or anybody else's, and memory stays as it is.
"""

import threading
import time

from lib.case import check, eventually, main
from lib.pulse import Pulse
from lib.site import Site
from lib.web import Fake, page, read_request

WEB = "192.0.2.80/32"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n"
INTERVAL, TIMEOUT = 2.5, 2.0
PULSE = Pulse()
NEXT = threading.Event()  # never set: a wait that ends when its time is over


def chunk(data):
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def drip_head(connection):
    read_request(connection)
    for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n":
        connection.sendall(bytes([byte]))
        NEXT.wait(0.3)


def drip_body(connection):
    read_request(connection)
    connection.sendall(HEAD + b"Content-Length: 50000\r\n\r\nok")
    while True:
        connection.sendall(b"x")
        NEXT.wait(0.3)


def just_more(connection):
    read_request(connection)
    connection.sendall(HEAD + b"Content-Length: 16385\r\n\r\n" + b"x" * 16383 + b"ok")


def gigabyte(connection):
    read_request(connection)
    connection.sendall(HEAD + b"Content-Length: 1073741824\r\n\r\nok")
    block = b"x" * 65536
    for _ in range(16384):
        connection.sendall(block)


def late_word(connection):
    """The expected word stands across two pieces, and across the limit of another check."""
    read_request(connection)
    body = b"x" * 9998 + b"heal"
    connection.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunk(body))
    NEXT.wait(0.05)
    connection.sendall(chunk(b"thy" + b"y" * 100) + chunk(b"y" * 10000) + b"0\r\n\r\n")


def endless_head(connection):
    read_request(connection)
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    line = b"X-More: " + b"x" * 1000 + b"\r\n"
    while True:
        connection.sendall(line)


def no_end(connection):
    """Less than Content-Length says."""
    read_request(connection)
    connection.sendall(HEAD + b"Content-Length: 100\r\n\r\nok")


def nothing(connection):
    read_request(connection)


def not_http(connection):
    read_request(connection)
    connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")


def slow_error(connection):
    """A status that is not expected, and a body that never ends."""
    read_request(connection)
    connection.sendall(b"HTTP/1.1 503 Unavailable\r\nContent-Length: 100\r\n\r\nsorry")
    NEXT.wait(5)


SERVERS = {
    "head": drip_head, "body": drip_body, "more": just_more, "giga": gigabyte, "word": late_word, "endless": endless_head,
    "end": no_end, "nothing": nothing, "ssh": not_http, "error": slow_error,
}
URLS = {name: f"http://192.0.2.80:{8100 + i}/" for i, name in enumerate(SERVERS)}


class Timed:
    """A server that remembers when each connection came."""

    def __init__(self, host, port, serve):
        self.times = []
        self.serve = serve
        self.fake = Fake(host, "192.0.2.80", port, self.accepted)

    def accepted(self, connection):
        self.times.append(time.monotonic())
        self.serve(connection)


def make_site():
    site = Site(edges=1, services=False)
    site.web = {n: Timed(site.edges[0].host, 8100 + i, serve) for i, (n, serve) in enumerate(SERVERS.items())}
    agent = site.edges[0].agent
    checks = {name: page(url, expect={"body": "ok"}) for name, url in URLS.items()}
    checks["word"] = page(URLS["word"], expect={"body": "healthy"})
    checks["limit"] = page(URLS["word"], expect={"body": "healthy"}, body_limit=10001)
    checks["any"] = page(URLS["giga"])
    checks["regex"] = page(URLS["more"], expect={"body_regex": "^x{200}"})
    checks["regex-far"] = page(URLS["more"], expect={"body_regex": "ok$"})
    agent.config["services"] = {"web": {"prefixes": {WEB: 100}, "checks": checks}}
    agent.config["defaults"] = {
        "interval": f"{INTERVAL * 1000:.0f}ms", "fast_interval": f"{INTERVAL * 1000:.0f}ms",
        "timeout": f"{TIMEOUT * 1000:.0f}ms", "rise": 1, "fall": 1,
    }
    agent.start()
    return site


def state_of(site, name, state):
    return site.edges[0].agent.wait_check("web", name, 10, state=state)["reason"]


def test_drips_end_at_the_deadline(site):
    """A head and a body that drip are bad after the timeout, not after their last byte."""
    for name in ("head", "body"):
        reason = state_of(site, name, "down")
        check(reason == "timeout after 2s", f"{name} is out of time", reason)


def test_large_bodies(site):
    """A body of a buffer and a byte is read to its end; one of a gigabyte is cut at the limit, and good."""
    for name in ("more", "giga", "any", "word", "regex"):
        state_of(site, name, "up")
    reason = state_of(site, "limit", "down")
    check(reason.startswith('expected "healthy" in the first 10001 bytes, got "xxx'), "cut within the word", reason)
    reason = state_of(site, "regex-far", "down")
    check(reason.startswith('expected a match of "ok$", got "xxx'), "only the first 4 KiB are matched", reason)


def test_bad_answers(site):
    """Answers that end early, have no end, or are none: each with its reason, none a crash."""
    for name, text in (
        ("endless", "headers of more than 65536 bytes"),
        ("end", "the connection was closed within the body"),
        ("nothing", "the connection was closed without an answer"),
        ("ssh", "the answer is not HTTP"),
        ("error", "status 503, expected 200"),
    ):
        reason = state_of(site, name, "down")
        check(reason == text, name, reason)


def memory(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS:"))


def test_on_schedule(site):
    """Each is asked again an interval after it was asked, and memory does not grow with what they send."""
    eventually(lambda: all(len(w.times) >= 3 for w in site.web.values()), 15, "three rounds of each")
    before = memory(site.edges[0].agent.pid)
    unix = time.time() - time.monotonic()  # what a server notes is of the other clock
    for name in ("head", "body", "endless", "error"):
        asked = list(zip(site.web[name].times, site.web[name].times[1:]))
        late = [abs(b - a - INTERVAL) - PULSE.withheld(unix + a - INTERVAL, unix + b) for a, b in asked]
        check(max(late) < 0.2, f"{name} keeps its schedule", asked, late)
    rounds = len(site.web["giga"].times)
    eventually(lambda: len(site.web["giga"].times) >= rounds + 4, 15, "two more rounds of a gigabyte, twice each")
    grown = memory(site.edges[0].agent.pid) - before
    check(grown < 8192, "memory stays (kB)", grown)


main(make_site)
