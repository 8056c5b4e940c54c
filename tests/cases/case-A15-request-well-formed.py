"""A15: the request itself, byte for byte.

A recorder stands in for the service, on TCP and on a Unix socket. One request line, one Host, one
Connection, a Content-Length that equals the body, exactly one empty line, the body last, and nothing
after it. What would break that is refused at load.
"""

import json
import os
import subprocess
import urllib.parse

from lib.agentctl import build_folder
from lib.case import check, eventually, main
from lib.site import Site
from lib.web import Fake, page, read_request

WEB = "192.0.2.80/32"
NAME = "www.example.net"
BODY = '{"a":1}'
AGENT = "redshank/" + subprocess.run([f"{build_folder()}/redshankd", "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]


class Recorder:
    """Answers every request with 200, or redirects /from/N as told; `requests` holds them all."""

    def __init__(self, host, address="192.0.2.80", port=80):
        self.requests = []
        self.fake = Fake(host, address, port, self.serve)

    def serve(self, connection):
        request = read_request(connection)
        self.requests.append(request)
        path = request.split(b" ")[1].decode()
        if path.startswith("/from/"):
            code, _, to = path[6:].partition("/")
            to = urllib.parse.unquote(to)
            connection.sendall(f"HTTP/1.1 {code} Moved\r\nLocation: {to}\r\nContent-Length: 4\r\n\r\nmove".encode())
        else:
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n")

    def of(self, path):
        return [r for r in self.requests if r.split(b" ")[1] == path.encode()]


def make_site():
    site = Site(edges=1, services=False)
    site.recorder = Recorder(site.edges[0].host)
    os.environ.update(http_proxy="http://192.0.2.80:9", ALL_PROXY="http://192.0.2.80:9", no_proxy="")
    return site


def run(site, **checks):
    agent = site.edges[0].agent
    agent.config["services"] = {"web": {"prefixes": {WEB: 100}, "checks": checks}}
    if agent.process:
        agent.reload()
    else:
        agent.start()
    return agent


def good(site, path, **keys):
    """The one request of a check that is good."""
    name = f"page{len(site.recorder.requests)}"
    agent = run(site, **{name: page("http://192.0.2.80" + path, host=NAME, **keys)})
    agent.wait_check("web", name, state="up")
    requests = site.recorder.of(path)
    check(len(set(requests)) == 1, "each attempt sends the same", requests)
    return requests[0].decode()


def test_get(site):
    """GET: the request line, four headers, one empty line, nothing after it."""
    check(
        good(site, "/get?a=b%20c") == f"GET /get?a=b%20c HTTP/1.1\r\nHost: {NAME}\r\nUser-Agent: {AGENT}\r\nAccept: */*\r\n"
        "Connection: close\r\n\r\n",
        "the bytes", site.recorder.requests,
    )


def test_path_as_it_is(site):
    """The path is sent as it is written, dots too."""
    check(good(site, "/x/../y").startswith("GET /x/../y HTTP/1.1\r\n"), "the path", site.recorder.requests)


def test_post(site):
    """POST: Content-Length is the body's, the body is last, and its type is the operator's."""
    check(
        good(site, "/post", method="POST", body=BODY, headers={"Content-Type": "application/json"})
        == f"POST /post HTTP/1.1\r\nHost: {NAME}\r\nUser-Agent: {AGENT}\r\nAccept: */*\r\nContent-Type: application/json\r\n"
        f"Connection: close\r\nContent-Length: {len(BODY)}\r\n\r\n{BODY}",
        "the bytes", site.recorder.requests,
    )
    text = good(site, "/empty", method="POST")
    check(text.endswith("\r\nContent-Length: 0\r\n\r\n") and "Content-Type" not in text, "an empty body", text)


def test_other_methods(site):
    """HEAD, OPTIONS and a method of one's own; headers that are empty, or take the place of ours."""
    check(good(site, "/head", method="HEAD").startswith("HEAD /head HTTP/1.1\r\nHost: "), "HEAD", site.recorder.requests)
    text = good(site, "/own", method="PURGE", headers={"X-Empty": "", "User-Agent": "me", "Accept": "text/plain"})
    check(
        text == f"PURGE /own HTTP/1.1\r\nHost: {NAME}\r\nX-Empty:\r\nUser-Agent: me\r\nAccept: text/plain\r\n"
        "Connection: close\r\n\r\n",
        "the bytes", text,
    )


def test_unix(site):
    """Over a Unix socket the same, whatever host the url names."""
    edge = site.edges[0]
    path = edge.host.path("web.sock")
    recorder = Recorder(edge.host, path, None)
    agent = run(site, sock=page("http://service.local/x", unix=path), gone=page("http://localhost/", unix=path + "2"))
    agent.wait_check("web", "sock", state="up")
    check(recorder.requests[0].startswith(b"GET /x HTTP/1.1\r\nHost: service.local\r\n"), "Host", recorder.requests)
    state = agent.wait_check("web", "gone", state="down")
    check(state["reason"] == f"connect to {path}2: No such file or directory", "the reason", state)


def redirect(to, code=302):
    return f"/from/{code}/" + urllib.parse.quote(to, safe="")


def test_redirects(site):
    """Redirects to the same host and port are followed as far as `redirects` says, with the right method."""
    text = good(site, redirect("/landed"), redirects=1)
    check(text.startswith("GET /from"), "the first", text)
    check(site.recorder.of("/landed")[0].startswith(b"GET /landed HTTP/1.1\r\nHost: " + NAME.encode() + b"\r\n"), "the second")
    good(site, redirect(f"http://{NAME}:80/kept", 307), redirects=1, method="POST", body=BODY)
    check(site.recorder.of("/kept")[0].endswith(b"Content-Length: 7\r\n\r\n" + BODY.encode()), "307 keeps the method")
    good(site, redirect("/got", 303), redirects=1, method="POST", body=BODY)
    check(site.recorder.of("/got")[0].startswith(b"GET /got HTTP/1.1\r\n"), "303 becomes GET")
    check(b"Content-Length" not in site.recorder.of("/got")[0], "without the body")
    good(site, redirect("/never", 301), expect={"status": [301]}, redirects=3)
    check(not site.recorder.of("/never"), "a status that is expected is not followed")


def test_redirects_that_are_not_followed(site):
    """Elsewhere, too often, to nowhere: a reason each."""
    twice = redirect(redirect("/end"))
    for name, path, count, reason in (
        ("off", redirect("/end"), 0, "status 302, expected 200"),
        ("often", twice, 1, "status 302 after 1 redirect, expected 200"),
        ("host", redirect("http://www.example.org/"), 5, 'redirect to another scheme, host or port: "http://www.example.org/"'),
        ("port", redirect(f"http://{NAME}:81/"), 5, f'redirect to another scheme, host or port: "http://{NAME}:81/"'),
        ("scheme", redirect(f"https://{NAME}/"), 5, f'redirect to another scheme, host or port: "https://{NAME}/"'),
        ("user", redirect(f"http://a:b@{NAME}/"), 5, f'redirect that cannot be followed: "http://***@{NAME}/"'),
        ("file", redirect("file:///etc/passwd"), 5, 'redirect to another scheme, host or port: "file:///etc/passwd"'),
    ):
        agent = run(site, **{name: page("http://192.0.2.80" + path, host=NAME, redirects=count)})
        state = agent.wait_check("web", name, state="down")
        check(state["reason"] == reason, name, state)
    check(not site.recorder.of("/end"), "nobody got to the end")


def refusal(site, **keys):
    """What --check says of a check."""
    path = site.edges[0].host.path("refused.json")
    config = {"node": "edge1", "services": {"web": {"prefixes": {WEB: 1}, "checks": {"page": page(**keys)}}}}
    with open(path, "w", encoding="utf-8") as f:
        json.dump(config, f)
    done = subprocess.run([f"{build_folder()}/redshankd", "-c", path, "--check"], capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def test_refused_at_load(site):
    """Headers and methods that would break the message, and those that are the agent's own."""
    for keys, words in (
        ({"headers": {"X-A": "b\r\nX-C: d"}}, "without CR, LF"),
        ({"headers": {"X-A\r\nX-B": "c"}}, "names of letters"),
        ({"headers": {"X A": "c"}}, "names of letters"),
        ({"headers": {"X-A": "\u0001"}}, "without CR, LF"),
        ({"headers": {"Host": "a"}}, "`host`"),
        ({"headers": {"connection": "keep-alive"}}, "the agent writes it"),
        ({"headers": {"Content-Length": "3"}}, "the agent writes it"),
        ({"headers": {"Transfer-Encoding": "chunked"}}, "the agent writes it"),
        ({"headers": {"X-A": "1", "x-a": "2"}}, "each name once"),
        ({"method": "GET /x"}, "without spaces"),
        ({"method": "GET\r\nX: y"}, "without spaces"),
        ({"host": "a\r\nb"}, "a host's name"),
        ({"url": "http://192.0.2.80/a b"}, "without spaces"),
        ({"url": "http://192.0.2.80/\r\nX: y"}, "without spaces"),
        ({"url": "http://www.example.net/"}, "address literal"),
        ({"url": "http://127.1/"}, "address literal"),
        ({"url": "ftp://192.0.2.80/"}, "address literal"),
        ({"body": "x"}, "a method that has one"),
    ):
        code, text = refusal(site, **keys)
        check(code == 1 and words in text, f"{keys} is refused with {words!r}", text)


def test_fresh_connections(site):
    """Each attempt is a connection of its own, although the server would keep one open."""
    edge = site.edges[0]

    def keep(connection):
        while read_request(connection):
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n")

    fake = Fake(edge.host, "192.0.2.80", 8090, keep)
    run(site, kept=page("http://192.0.2.80:8090/"))
    eventually(lambda: fake.count >= 3, what="three connections")
    fake.close()


main(make_site)
