"""GET / over both sockets: one answer that needs nothing else, its headers, and its tag.

What it shows in a browser is in page-browser.py.
"""

import base64
import hashlib
import http.client
import re

from lib.agentctl import _UnixHTTP
from lib.case import check, main
from lib.site import Site

LISTEN = ("127.0.0.1", 9479)


def make_site():
    site = Site(edges=1, services=False)
    agent = site.edges[0].agent
    agent.config["status"]["listen"] = "%s:%d" % LISTEN
    agent.start()
    return site


def ask(site, method="GET", path="/", unix=False, **headers):
    """(status, headers in lower case, body)."""
    edge = site.edges[0]
    with edge.host.inside():
        connection = _UnixHTTP(edge.agent.socket, 5) if unix else http.client.HTTPConnection(*LISTEN, timeout=5)
        try:
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
        finally:
            connection.close()


def test_both_sockets(site):
    """The same page on the Unix socket and on TCP; HEAD has its headers and no body."""
    status, headers, body = ask(site)
    check(status == 200 and headers["content-type"] == "text/html; charset=utf-8", "GET /", status, headers)
    check(ask(site, unix=True)[2] == body, "the same on the Unix socket")
    check(ask(site, path="/?q=dns")[0] == 200, "its filter stands in the query")
    status, same, none = ask(site, "HEAD")
    check(status == 200 and none == b"" and same["etag"] == headers["etag"], "HEAD", status, same)
    check(ask(site, "POST")[0] == 405, "nothing is posted to it")


def test_policy(site):
    """Nothing but the page's own style and script, by the hashes of the bytes that were served."""
    _, headers, body = ask(site)
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    check(policy["default-src"] == "'none'", "nothing by default", policy)
    for tag, directive in (("style", "style-src"), ("script", "script-src")):
        inline = re.findall(rb"<%s>(.*?)</%s>" % (tag.encode(), tag.encode()), body, re.DOTALL)
        check(len(inline) == 1, "one " + tag, len(inline))
        digest = base64.b64encode(hashlib.sha256(inline[0]).digest()).decode()
        check(policy[directive] == f"'sha256-{digest}'", directive, policy[directive], digest)
    check(policy["connect-src"] == "'self'" and policy["frame-ancestors"] == "'none'", "only itself", policy)
    check("unsafe" not in headers["content-security-policy"], "no exception", policy)
    check(headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "no-referrer", "the rest", headers)
    foreign = re.findall(rb"""(?:src|href|action)=["']?(?!#|data:)[^"'> ]+""", body)
    check(not foreign, "it loads nothing", foreign)
    check(b"http://" not in body.replace(b"http://www.w3.org/2000/svg", b"") and b"https://" not in body, "and names nobody")


def test_tag(site):
    """A browser that has it is told so; the page knows its own tag."""
    _, headers, body = ask(site)
    tag = headers["etag"]
    check(headers["cache-control"] == "no-cache" and tag.strip('"').encode() in body, "the tag", headers)
    for known in (tag, "W/" + tag, '"other", ' + tag, "*"):
        status, again, none = ask(site, **{"If-None-Match": known})
        check(status == 304 and none == b"" and again["etag"] == tag, "not modified", known, status)
    check(ask(site, **{"If-None-Match": '"other"'})[0] == 200, "another tag")


def test_no_command_from_a_page(site):
    """A browser sends Origin with a POST: whoever forwards the socket to his own machine lends no page his rights."""
    edge = site.edges[0]
    for origin in ("http://evil.example", "null", "http://localhost:9479"):
        status, _, body = ask(site, "POST", "/v1/drain", unix=True, Origin=origin)
        check(status == 403 and b"redshankctl" in body, "a POST of a page", origin, status, body)
    check(edge.agent.status()["drains"] == [], "nothing was drained")
    check(ask(site, "POST", "/v1/check-now", unix=True)[0] == 200, "a program's is carried out")


main(make_site)
