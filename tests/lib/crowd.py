"""A crowd of made-up neighbours of one agent, who ask it for reports and promises as fast as they are let.

    crowd = Crowd(site, site.edges[0], 64)      # before the agent starts: certificates, and its configuration
    ...
    crowd.start()                               # each asks over a connection of its own, and answers when asked
    ...
    counts = crowd.stop()                       # {"200": N, "409": N, "503": N, "asked": N, "lost": N}

They are one process that runs when nobody else does (this file, run), on addresses of 198.18.0.0/24 at the client.
"""

import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time

PORT = 9480


class Crowd:
    def __init__(self, site, edge, n, prefix="192.0.2.53/32"):
        from lib.neighbours import Authority
        from lib.shedsite import Neighbours, address

        authority = Authority(site.lab.dir + "/crowd")
        site.router.ip("route add 198.18.0.0/24 via 198.51.100.2")
        site.client.ip(*(f"addr add 198.18.0.{i}/32 dev lo" for i in range(1, n + 1)))
        pair, files = authority.issue(edge.name), Neighbours.files(edge)
        for source, key in ((pair.certificate, "certificate"), (pair.key, "key"), (authority.certificate, "ca")):
            os.symlink(source, files[key])
        members = {f"n{i}": f"198.18.0.{i}" for i in range(1, n + 1)}
        edge.agent.config["neighbours"] = {
            "listen": f"{address(edge)}:{PORT}", "site": "lab", **files,
            "members": {name: f"{where}:{PORT}" for name, where in members.items()},
        }
        self.give_room(edge, prefix)
        self.site, self.process = site, None
        self.orders = {
            "target": address(edge), "ca": authority.certificate, "site": "lab", "prefix": prefix,
            "neighbours": [[name, where, *authority.issue(name)] for name, where in members.items()],
        }

    @staticmethod
    def give_room(edge, prefix):
        """The agent's load is known, and it has room to promise."""
        for name, text in (("busy", "40\n"), ("parts.json", '{"all": 30}\n')):
            with open(edge.host.path(name), "w", encoding="ascii") as f:
                f.write(text)
        edge.agent.config["load"] = {
            "signals": {"busy": {"type": "file", "file": edge.host.path("busy"), "limit": 100}},
            "prefixes": {"type": "file", "file": edge.host.path("parts.json"), "keys": {prefix: "all"}, "rate": False},
        }
        edge.agent.config["shed"] = {}

    def start(self):
        """Returns when each has had an answer."""
        self.process = subprocess.Popen(
            self.site.client.argv(["chrt", "-i", "0", sys.executable, os.path.abspath(__file__)]),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process.stdin.write(json.dumps(self.orders) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if line != "ready\n":
            raise AssertionError(f"the crowd is not ready: {line!r}")

    def stop(self):
        self.process.stdin.close()
        counts = json.loads(self.process.stdout.readline())
        self.process.wait(10)
        return counts


class Neighbour:
    """One of the crowd, in the process of its own."""

    def __init__(self, orders, name, where, key, certificate):
        self.orders, self.name, self.where = orders, name, where
        self.client = ssl.create_default_context(cafile=orders["ca"])
        self.server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        for context in self.client, self.server:
            context.load_cert_chain(certificate, key)
        self.client.check_hostname = False
        self.listener = socket.create_server((where, PORT), backlog=8)
        self.counts, self.first = {}, threading.Event()
        for work in self.ask, self.answer:
            threading.Thread(target=work, daemon=True).start()

    def count(self, what):
        self.counts[what] = self.counts.get(what, 0) + 1

    def requests(self):
        grant = {"version": 1, "node": self.name, "boot": 7, "prefix": self.orders["prefix"], "share": 1, "purpose": "shed"}
        number = 0
        while True:
            number += 1
            yield "GET", "/v1/report", None
            yield "POST", "/v1/grant", json.dumps({**grant, "request": number})
            if number % 8 == 0:
                yield "DELETE", "/v1/grant", json.dumps({**grant, "request": number})

    def connect(self):
        raw = socket.create_connection((self.orders["target"], PORT), 5, (self.where, 0))
        connection = http.client.HTTPConnection(self.orders["target"], PORT)
        connection.sock = self.client.wrap_socket(raw)
        return connection

    def ask(self):
        connection = None
        for method, path, body in self.requests():
            try:
                connection = connection or self.connect()
                connection.request(method, path, body)
                answer = connection.getresponse()
                answer.read()
                self.count(str(answer.status))
                self.first.set()
            except (OSError, http.client.HTTPException):
                self.count("lost")
                connection = None
                time.sleep(0.2)

    def report(self):
        state = {"state": "healthy", "weight": 100, "load": 100}
        return json.dumps({
            "version": 1, "node": self.name, "site": self.orders["site"], "boot": 7, "capacity": 100000, "load": 50000,
            "utilisation": 5000, "willing": True, "spare": 30000, "want": 0, "prefixes": {self.orders["prefix"]: state},
        }).encode()

    def answer(self):
        while True:
            connection, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        try:
            with self.server.wrap_socket(connection, server_side=True) as tls:
                while tls.recv(8192):
                    body = self.report()
                    tls.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
                    self.count("asked")
        except OSError:
            pass


def run():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.stack_size(256 * 1024)
    orders = json.loads(sys.stdin.readline())
    crowd = [Neighbour(orders, *one) for one in orders["neighbours"]]
    for one in crowd:
        one.first.wait(60)
    print("ready" if all(one.first.is_set() for one in crowd) else "not all were answered", flush=True)
    sys.stdin.read()
    total = {}
    for one in crowd:
        for what, n in list(one.counts.items()):
            total[what] = total.get(what, 0) + n
    print(json.dumps(total), flush=True)
    os._exit(0)


if __name__ == "__main__":
    run()
