"""Web servers for tests of the http check: certificates, an nginx with what a test needs, and
servers of a few lines for what no real one does.

    authority = Authority(folder)                   # a CA, and certificates that it signs
    cert = authority.issue("www.example.net")       # Certificate: .cert and .key are paths
    web = Web(host, "server { ... }", http="log_format ...;")
    fake = Fake(host, "192.0.2.80", 8080, lambda connection: connection.sendall(b"..."))
"""

import os
import socket
import subprocess
import threading

from lib.services import Nginx, listens


def _openssl(*argv):
    done = subprocess.run(["openssl", *argv], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"openssl {' '.join(argv)}: {done.stderr}")


class Certificate:
    """The paths `cert` and `key`, and nginx's two lines of them."""

    def __init__(self, path):
        self.cert, self.key = path + ".pem", path + ".key"
        self.nginx = f"ssl_certificate {self.cert}; ssl_certificate_key {self.key};"


class Authority:
    """A certificate authority of its own; `cert` is the file that a client trusts."""

    def __init__(self, folder, name="ca"):
        self.path = os.path.join(folder, name)
        self.cert = self.path + ".pem"
        _openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30",
                 "-subj", f"/CN={name}", "-keyout", self.path + ".key", "-out", self.cert)

    def issue(self, label, names="DNS:www.example.net", days=30):
        """A certificate for these names; days=-1: one that has expired."""
        made = Certificate(self.path + "-" + label)
        _openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj",
                 f"/CN={label}", "-keyout", made.key, "-out", made.cert + ".csr")
        with open(made.cert + ".ext", "w", encoding="ascii") as f:
            f.write(f"subjectAltName={names}\n")
        _openssl("x509", "-req", "-in", made.cert + ".csr", "-CA", self.cert, "-CAkey", self.path + ".key",
                 "-CAcreateserial", "-days", str(days), "-extfile", made.cert + ".ext", "-out", made.cert)
        return made


class Web(Nginx):
    """An nginx with these server blocks; `ready` is (address, port) of one of them."""

    def __init__(self, host, servers, ready, http=""):
        super().__init__(host, addresses=())
        self.ready = ready
        temporary = "".join(
            f"{kind}_temp_path {self.dir}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        with open(self.conf, "w", encoding="ascii") as f:
            f.write(
                f"daemon off;\nuser root;\nworker_processes 1;\npid {self.pidfile};\nerror_log {self.dir}/error.log;\n"
                f"events {{ worker_connections 4096; }}\nhttp {{\n{temporary}\naccess_log off;\n"
                f"default_type text/plain;\n{http}\n{servers}\n}}\n"
            )

    def answers(self):
        return listens(self.host, *self.ready)


class Fake:
    """A server on TCP (or a Unix socket, port None) that hands each connection to `serve`, each in a
    thread of its own, and closes it when that returns. `count` is how many there were."""

    def __init__(self, host, address, port, serve):
        with host.inside():
            if port is None:
                self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                self.socket.bind(address)
                self.socket.listen(64)
            else:
                family = socket.AF_INET6 if ":" in address else socket.AF_INET
                self.socket = socket.create_server((address, port), family=family, backlog=64)
        self.serve = serve
        self.count = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            self.count += 1
            threading.Thread(target=self._one, args=(connection,), daemon=True).start()

    def _one(self, connection):
        with connection:
            try:
                self.serve(connection)
            except OSError:  # the client went away, as it may
                pass

    def close(self):
        self.socket.close()


def read_request(connection):
    """A request's head and its body by Content-Length, as bytes; what follows within 50 ms, too."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65536)
        if not more:
            return data
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    length = next((int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")), 0)
    while len(body) < length:
        body += connection.recv(65536)
    connection.settimeout(0.05)
    try:
        body += connection.recv(65536)
    except TimeoutError:
        pass
    connection.settimeout(None)
    return head + b"\r\n\r\n" + body


def page(url="http://192.0.2.80/", **keys):
    """An http check of a configuration."""
    return {"type": "http", "url": url, **keys}
