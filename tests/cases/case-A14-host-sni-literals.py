"""A14: HTTPS with the configured name in SNI, Host and certificate, and IPv6 literals.

A real nginx refuses every handshake whose SNI is not www.example.net, and logs what it was sent.
Certificates are checked against the configured name, and the reason says what is wrong with one.
"""

import os

from lib.case import check, eventually, main
from lib.site import Site
from lib.web import Authority, Fake, Web, page, read_request

WEB = "192.0.2.80/32"
NAME = "www.example.net"
LOG = 'log_format seen "$server_port|$ssl_server_name|$http_host|$server_protocol|$uri";'


def servers(folder, authority, other):
    good = authority.issue("good", f"DNS:{NAME},IP:2001:db8::80")
    expired = authority.issue("expired", days=-1)
    wrong = authority.issue("wrong", "DNS:mail.example.net")
    foreign = other.issue("foreign")
    log = f"access_log {folder}/seen.log seen;"
    ok = 'location / { return 200 "ok\\n"; }'

    def tls(listen, cert):
        return f"server {{ listen {listen} ssl http2; {cert.nginx} {log} {ok} }}\n"

    return (
        "server { listen 192.0.2.80:443 ssl http2 default_server; ssl_reject_handshake on; }\n"
        f"server {{ listen 192.0.2.80:443 ssl http2; server_name {NAME}; {good.nginx} {log} {ok} }}\n"
        + tls("[2001:db8::80]:8443", good)
        + tls("192.0.2.80:8001", expired)
        + tls("192.0.2.80:8002", wrong)
        + tls("192.0.2.80:8003", foreign)
        + f"server {{ listen 192.0.2.80:8080; listen [2001:db8::80]:80; {log} {ok} }}\n"
    )


def make_site():
    site = Site(edges=1, services=False)
    edge = site.edges[0]
    edge.add_address("2001:db8::80")
    site.ca = Authority(edge.host.dir, "ca")
    text = servers(edge.host.dir, site.ca, Authority(edge.host.dir, "other"))
    edge.nginx = Web(edge.host, text, ("192.0.2.80", 8080), LOG)
    edge.nginx.start()
    return site


def seen(edge, port):
    """What nginx logged on that port: (SNI, Host, protocol, path)."""
    with open(edge.host.path("seen.log"), encoding="utf-8") as f:
        return {tuple(line.strip().split("|")[1:]) for line in f if line.startswith(f"{port}|")}


def run(site, **checks):
    """The agent with these checks of one service, as it is or reloaded."""
    agent = site.edges[0].agent
    agent.config["services"] = {"web": {"prefixes": {WEB: 100}, "checks": checks}}
    agent.config["defaults"].update(interval="500ms", fast_interval="100ms", timeout="500ms")
    if agent.process:
        agent.reload()
    else:
        os.environ.update(http_proxy="http://192.0.2.80:9", HTTPS_PROXY="http://192.0.2.80:9", ALL_PROXY="socks5://192.0.2.80:9")
        agent.start()
    return agent


def test_name_in_sni_and_host(site):
    """SNI and Host are the configured name, without the default port; HTTP/2 where it is offered; no proxy."""
    edge = site.edges[0]
    agent = run(site, page=page("https://192.0.2.80/a", host=NAME, ca=site.ca.cert, expect={"body": "ok"}))
    agent.wait_check("web", "page", state="up")
    check(seen(edge, 443) == {(NAME, NAME, "HTTP/2.0", "/a")}, "SNI, Host, protocol, path", seen(edge, 443))
    site.wait_announced(WEB, "edge1")


def test_no_literal_in_sni(site):
    """Without `host` there is no SNI: the literal is never sent as one, and nginx refuses the handshake."""
    agent = run(site, page=page("https://192.0.2.80/b", verify=False))
    state = agent.wait_check("web", "page", state="down")
    check(state["reason"].startswith("TLS: ") and "unrecognized name" in state["reason"], "the reason", state)


def test_ipv6_literal(site):
    """Host of an IPv6 literal has brackets and the port; the certificate's address is what counts then."""
    edge = site.edges[0]
    agent = run(
        site,
        port=page("https://[2001:db8::80]:8443/ready", ca=site.ca.cert),
        plain=page("http://[2001:db8::80]/plain"),
        named=page("http://[2001:db8::80]:80/named", host=NAME),
        other=page("http://192.0.2.80:8080/other", host=NAME),
    )
    for name in ("port", "plain", "named", "other"):
        agent.wait_check("web", name, state="up")
    check(seen(edge, 8443) == {("-", "[2001:db8::80]:8443", "HTTP/2.0", "/ready")}, "on 8443", seen(edge, 8443))
    check(
        seen(edge, 80) == {("-", "[2001:db8::80]", "HTTP/1.1", "/plain"), ("-", NAME, "HTTP/1.1", "/named")},
        "on 80", seen(edge, 80),
    )
    check(seen(edge, 8080) == {("-", NAME + ":8080", "HTTP/1.1", "/other")}, "on 8080", seen(edge, 8080))


def test_zone(site):
    """A zone chooses the interface, and is never sent."""
    edge = site.edges[0]
    local = eventually(
        lambda: next((w.split("/")[0] for w in edge.host.ip("addr show dev router scope link").split() if w.startswith("fe80")), None)
    )
    requests = []

    def serve(connection):
        requests.append(read_request(connection))
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    fake = Fake(edge.host, "::", 8088, serve)
    agent = run(site, zone=page(f"http://[{local}%25router]:8088/"), none=page(f"http://[{local}%25nowhere]:8088/"))
    agent.wait_check("web", "zone", state="up")
    state = agent.wait_check("web", "none", state="down")
    check(state["reason"] == f"connect to {local}%nowhere port 8088: no interface nowhere", "the reason", state)
    check(f"\r\nHost: [{local}]:8088\r\n".encode() in requests[0], "Host has no zone", requests[0])
    fake.close()


def test_certificates(site):
    """The reason says expired, wrong name or unknown issuer; without verification all are good."""
    bad = {"expired": 8001, "wrong": 8002, "foreign": 8003}
    reasons = {
        "expired": "certificate: expired",
        "wrong": f"certificate: wrong name, expected {NAME}",
        "foreign": "certificate: unknown issuer",
    }
    checks = {n: page(f"https://192.0.2.80:{p}/", host=NAME, ca=site.ca.cert) for n, p in bad.items()}
    checks["bundle"] = page("https://192.0.2.80/", host=NAME)
    agent = run(site, **checks)
    for name in bad:
        state = agent.wait_check("web", name, state="down")
        check(state["reason"] == reasons[name], f"the reason of {name}", state)
    state = agent.wait_check("web", "bundle", state="down")
    check(state["reason"] == "certificate: unknown issuer", "this machine's own authorities", state)
    agent = run(site, **{n + "-unverified": page(f"https://192.0.2.80:{p}/", host=NAME, verify=False) for n, p in bad.items()})
    for name in bad:
        agent.wait_check("web", name + "-unverified", state="up")


def test_missing_authority(site):
    """A `ca` that cannot be read is this host's fault, and no outcome of the service."""
    agent = run(site, page=page("https://192.0.2.80/", host=NAME, ca="/nowhere/ca.pem"))
    state = eventually(lambda: (s := agent.check("web", "page"))["reason"] and s)
    check("cannot read the issuers" in state["reason"] and state["state"] != "down", "unknown", state)


main(make_site)
