"""DNS over TLS (RFC 7858) against a real nsd, with certificates of an authority of this test's own.

A certificate that is right, expired, of an unknown issuer, of another name; a name that is an address;
no name at all; a file of certificates that is replaced; and that no query leaves before the certificate
was found right. TLS 1.1 is not spoken.
"""

import os
import shutil
import socket
import ssl
import struct
import subprocess
import threading
import warnings

from lib.case import check, main
from lib.fakedns import Query, record, reply
from lib.netns import needs
from lib.services import Nsd
from lib.site import Site
from lib.wait import until

DNS = "192.0.2.53/32"


class Authority:
    """A certificate authority in a folder, by openssl(1)."""

    def __init__(self, folder, name):
        os.makedirs(folder)
        self.folder, self.certificate = folder, os.path.join(folder, "ca.pem")
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                     "-subj", f"/CN={name}", "-keyout", "ca.key", "-out", "ca.pem")

    def openssl(self, *arguments):
        run = subprocess.run(["openssl", *arguments], cwd=self.folder, capture_output=True, text=True, timeout=60)
        check(run.returncode == 0, "openssl " + " ".join(arguments), run.stderr)

    def issue(self, name, names, days=2):
        """(key, certificate) of a server with these subject alternative names."""
        with open(os.path.join(self.folder, name + ".ext"), "w", encoding="ascii") as f:
            f.write(f"subjectAltName={names}\n")
        self.openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", f"/CN={name}",
                     "-keyout", name + ".key", "-out", name + ".csr")
        self.openssl("x509", "-req", "-in", name + ".csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
                     "-days", str(days), "-extfile", name + ".ext", "-out", name + ".pem")
        return os.path.join(self.folder, name + ".key"), os.path.join(self.folder, name + ".pem")


class TlsNsd(Nsd):
    """nsd on port 853 of one address alone, with this key and certificate."""

    def __init__(self, host, name, address, pair):
        self.name = name
        super().__init__(host, (address,))
        with open(self.conf, encoding="ascii") as f:
            text = f.read()
        tls = f'\tip-address: {address}@853\n\ttls-port: 853\n\ttls-service-key: "{pair[0]}"\n\ttls-service-pem: "{pair[1]}"\n'
        with open(self.conf, "w", encoding="ascii") as f:
            f.write(text.replace("remote-control:", tls + "remote-control:"))


class FakeTls(threading.Thread):
    """A server by Python's ssl: `received` is what came inside TLS, `failed` why handshakes failed."""

    def __init__(self, host, address, port, pair, maximum=None):
        super().__init__(daemon=True)
        self.received, self.failed = [], []
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(pair[1], pair[0])
        if maximum:
            warnings.simplefilter("ignore", DeprecationWarning)
            self.context.set_ciphers("ALL:@SECLEVEL=0")
            self.context.minimum_version = ssl.TLSVersion.TLSv1
            self.context.maximum_version = maximum
        with host.inside():
            self.listener = socket.create_server((address, port))
        self.start()

    def run(self):
        while True:
            connection, _ = self.listener.accept()
            connection.settimeout(10)
            try:
                with self.context.wrap_socket(connection, server_side=True) as tls:
                    data = tls.recv(2048)
                    if data:
                        self.received.append(data)
                        answer = reply(Query(data[2:], True), answers=[record(1, b"\xc0\0\2\1")])
                        # In pieces, each a record of its own.
                        for piece in (struct.pack("!H", len(answer))[:1], struct.pack("!H", len(answer))[1:], answer):
                            tls.sendall(piece)
                        tls.recv(1)
            except OSError as e:  # ssl.SSLError, too
                self.failed.append(str(e))


def ask(authority, tls_name="dns.example.net", server="192.0.2.53", **more):
    names = {"tls_name": tls_name, "ca": authority.certificate if authority else None}
    return {"type": "dns", "server": server, "transport": "tls", "name": "health.example.net", "rrtype": "A",
            "interval": "300ms", "fast_interval": "250ms", "timeout": "250ms",
            **{key: value for key, value in names.items() if value}, **more}


def make_site():
    needs("openssl")
    site = Site(edges=1, services=False)
    edge = site.edges[0]
    site.good = Authority(edge.host.path("good"), "Example Authority")
    site.stranger = Authority(edge.host.path("stranger"), "Another Authority")
    names = "DNS:dns.example.net,IP:192.0.2.53"
    site.pair = site.good.issue("server", names)
    site.nsd = TlsNsd(edge.host, "nsd-good", "192.0.2.53", site.pair)
    site.old = TlsNsd(edge.host, "nsd-old", "2001:db8::53", site.good.issue("old", names, days=-1))
    site.nsd.start()
    site.old.start()
    return site


def use(site, checks):
    agent = site.edges[0].agent
    agent.config["services"] = {"dns": {"prefixes": {DNS: 100}, "checks": checks}}
    if agent.process:
        agent.reload()
    else:
        agent.start()
    until(lambda: set(agent.status()["services"]["dns"]["checks"]) == set(checks), what="the new checks")
    return agent


def test_certificates(site):
    """The right certificate is good; expired, unknown issuer and another name are bad, and the reason says which."""
    bad = {
        "expired": (ask(site.good, server="2001:db8::53"), "certificate: expired"),
        "stranger": (ask(site.stranger), "certificate: its issuer is unknown"),
        "this-host": (ask(None), "certificate: its issuer is unknown"),
        "other-name": (ask(site.good, "other.example.net"), "certificate: it has another name"),
        "other-address": (ask(site.good, "192.0.2.54"), "certificate: it has another name"),
    }
    good = {
        "right": ask(site.good),
        "address": ask(site.good, "192.0.2.53"),
        "anybody": ask(None, None),
        "anybody-expired": ask(None, None, "2001:db8::53"),
        "content": ask(site.good, expect={"answers": ["192.0.2.53"], "authoritative": True}),
    }
    agent = use(site, {**{name: entry[0] for name, entry in bad.items()}, **good})
    for name in good:
        agent.wait_check("dns", name, state="up")
    for name, (_, reason) in bad.items():
        state = agent.wait_check("dns", name, state="down", reason=reason)
        check("good" not in state["outcomes"], f"{name}: {reason}", state)


def test_the_file_is_replaced(site):
    """A file of certificates that appears, and is replaced, is read again without a reload."""
    path = site.edges[0].host.path("trust.pem")
    agent = use(site, {"trust": {**ask(site.good), "ca": path}})
    until(lambda: "No such file" in (agent.check("dns", "trust")["reason"] or ""), what="no file")
    check(agent.check("dns", "trust")["outcomes"][-1] == "unknown", "that is nobody's fault")
    shutil.copy(site.stranger.certificate, path)
    until(lambda: "issuer is unknown" in (agent.check("dns", "trust")["reason"] or ""), what="a stranger's certificate")
    shutil.copy(site.good.certificate, path + ".new")
    os.rename(path + ".new", path)
    agent.wait_check("dns", "trust", state="up")


def test_no_query_before_the_certificate(site):
    """Nothing is asked of a server whose certificate is wrong; a right one is asked, and answers in pieces."""
    host = site.edges[0].host
    fake = FakeTls(host, "192.0.2.53", 8853, site.pair)
    agent = use(site, {"wrong": ask(site.good, "other.example.net", port=8853)})
    agent.wait_check("dns", "wrong", state="down")
    until(lambda: len(fake.failed) >= 2, what="two handshakes that failed")
    check(not fake.received, "no query came", fake.received)
    agent = use(site, {"right": ask(site.good, port=8853)})
    agent.wait_check("dns", "right", state="up")
    check(fake.received, "the query came", fake.failed)


def test_old_versions(site):
    """A server that speaks TLS 1.1 at most is bad."""
    FakeTls(site.edges[0].host, "192.0.2.53", 8854, site.pair, ssl.TLSVersion.TLSv1_1)
    agent = use(site, {"old": ask(None, None, port=8854)})
    agent.wait_check("dns", "old", state="down")
    until(lambda: "TLS: " in agent.check("dns", "old")["reason"], what="it says so")


def test_a_server_that_hangs(site):
    """An nsd that hangs in front of TLS: a timeout, and the prefix leaves; it returns with it."""
    agent = use(site, {"right": ask(site.good)})
    site.wait_announced(DNS, "edge1")
    site.nsd.freeze()
    site.wait_route(DNS, set())
    agent.wait_check("dns", "right", reason="timeout after 250ms")
    site.nsd.thaw()
    site.wait_announced(DNS, "edge1")


main(make_site)
