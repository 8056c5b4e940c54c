"""The services of an edge: a real nsd and a real nginx, each with its own small configuration.

Both listen on the anycast addresses of their host only, run in the foreground as the test's child,
write a pidfile, and tell who they are: nsd answers `id.example.net TXT` with the host's name, nginx
sends it in the header X-Served-By.
"""

import os
import socket

from lib import client
from lib.birds import tail
from lib.wait import until

DNS_ADDRESSES = ("192.0.2.53", "2001:db8::53")
WEB_ADDRESSES = ("192.0.2.80",)


class Service:
    """What nsd and nginx have in common. A subclass has `name`, `argv` and answers()."""

    name = ""

    def __init__(self, host):
        self.host = host
        self.dir = host.path(self.name)
        os.makedirs(self.dir, exist_ok=True)
        self.pidfile = os.path.join(self.dir, self.name + ".pid")
        self.process = None

    @property
    def pid(self):
        """Of the main process: the one that the pidfile names."""
        return self.process.pid

    def argv(self):
        raise NotImplementedError

    def answers(self):
        raise NotImplementedError

    def start(self, wait=True):
        if self.process and not self.process.alive():
            until(self.process.group_is_gone, 20, f"the children of {self.name} {self.pid} are gone")
        self.process = self.host.start(self.argv(), self.name + ".log", cwd=self.dir)
        if wait:
            self.wait_ready()

    def wait_ready(self, timeout=20.0):
        until(self._ready, timeout, lambda: f"{self.name} of {self.host.name} answers\n{self.tail()}")

    def _ready(self):
        if not self.process.alive():
            raise AssertionError(f"{self.name} of {self.host.name} ended at once:\n{self.tail()}")
        with open(self.pidfile, encoding="ascii") as f:
            return f.read().strip() == str(self.pid) and self.answers()

    def kill(self, rest=True):
        """kill -9 of the main process, then of its orphans. The time just before the first kill(2)."""
        return self.process.kill(rest)

    def stop(self):
        """A clean stop by TERM; the pidfile goes with it."""
        return self.process.stop()

    def restart(self):
        if self.process.alive():
            self.stop()
        self.start()

    def freeze(self):
        """SIGSTOP to all of it: alive, and answering nothing."""
        self.process.freeze()

    def thaw(self):
        self.process.thaw()

    def tail(self, n=10):
        return tail(self.host.path(self.name + ".log"), n)


class Nsd(Service):
    """Serves example.net; health.example.net is an A record of it. With `control` it tells its counters."""

    name = "nsd"

    def __init__(self, host, addresses=DNS_ADDRESSES, control=False):
        super().__init__(host)
        self.control = os.path.join(self.dir, "nsd.ctl")
        self.addresses = addresses
        self.conf = os.path.join(self.dir, "nsd.conf")
        listen = "".join(f"\tip-address: {a}\n" for a in addresses)
        d = self.dir
        with open(self.conf, "w", encoding="ascii") as f:
            f.write(
                f'server:\n{listen}\tserver-count: 1\n\tusername: ""\n\tchroot: ""\n\tdatabase: ""\n'
                f'\tzonesdir: "{d}"\n\tpidfile: "{self.pidfile}"\n\txfrdir: "{d}"\n\txfrdfile: "{d}/xfrd.state"\n'
                f'\tzonelistfile: "{d}/zone.list"\n\trrl-ratelimit: 0\n\tip-transparent: yes\n\tverbosity: 1\n'
                f'remote-control:\n\tcontrol-enable: {"yes" if control else "no"}\n\tcontrol-interface: {self.control}\n'
                f'zone:\n\tname: example.net\n\tzonefile: "{d}/example.net.zone"\n'
            )
        with open(f"{d}/example.net.zone", "w", encoding="ascii") as f:
            f.write(
                "$ORIGIN example.net.\n$TTL 60\n@ SOA ns hostmaster 1 3600 600 86400 60\n@ NS ns\n"
                f'ns A 192.0.2.53\nhealth A 192.0.2.53\nid TXT "{host.name}"\n'
            )

    def argv(self):
        return ["nsd", "-d", "-c", self.conf]

    def queries(self):
        """How many queries it has had since its start, by its own counter."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
            sock.settimeout(2)
            sock.connect(self.control)
            sock.sendall(b"NSDCT1 stats_noreset\n")
            text = b"".join(iter(lambda: sock.recv(65536), b"")).decode()
        return int(next(line for line in text.splitlines() if line.startswith("num.queries=")).split("=")[1])

    def answers(self):
        with self.host.inside():
            return all(client.ask(a, timeout=1) == self.host.name for a in self.addresses)


class Nginx(Service):
    """/healthz answers "ok"; everything else the host's name."""

    name = "nginx"

    def __init__(self, host, addresses=WEB_ADDRESSES):
        super().__init__(host)
        self.addresses = addresses
        self.conf = os.path.join(self.dir, "nginx.conf")
        listen = " ".join(f"listen {'[' + a + ']' if ':' in a else a}:80;" for a in addresses)
        temporary = "".join(
            f"\t{kind}_temp_path {self.dir}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        with open(self.conf, "w", encoding="ascii") as f:
            f.write(
                f"daemon off;\nuser root;\nworker_processes 1;\npid {self.pidfile};\n"
                f"error_log {self.dir}/error.log;\nevents {{ worker_connections 512; }}\nhttp {{\n{temporary}"
                f"\taccess_log off;\n\tdefault_type text/plain;\n\tadd_header X-Served-By {host.name} always;\n"
                f"\tserver {{\n\t\t{listen}\n"
                f'\t\tlocation = /healthz {{ return 200 "ok\\n"; }}\n'
                f'\t\tlocation / {{ return 200 "{host.name}\\n"; }}\n\t}}\n}}\n'
            )

    def argv(self):
        return ["nginx", "-c", self.conf, "-e", os.path.join(self.dir, "error.log")]

    def answers(self):
        with self.host.inside():
            return all(client.fetch(a, timeout=1) == self.host.name for a in self.addresses)


def listens(host, address, port):
    """Does anything accept TCP connections there, asked from the host itself?"""
    with host.inside():
        sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    with sock:
        sock.settimeout(2)
        return sock.connect_ex((address, port)) == 0
