"""Neighbours for tests: certificates of an authority of their own, and nodes that are nothing but their
neighbours' module (neighbour-node.c), each with an address of its own on one host's loopback."""

import collections
import json
import os
import pathlib
import queue
import signal
import subprocess
import threading
import time

from lib.case import Failed, check

BUILD = pathlib.Path(os.environ.get("REDSHANK_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build/dev"))
NODE = BUILD.resolve() / "tests/lib/neighbour-node"
PORT = 9480
CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
Pair = collections.namedtuple("Pair", "key certificate")


class Authority:
    """Signs certificates, by openssl(1), into a folder that it makes."""

    def __init__(self, folder, name="Example Neighbours"):
        os.makedirs(folder)
        self.folder, self.certificate = folder, os.path.join(folder, "ca.pem")
        self.openssl("req", "-x509", *CURVE, "-days", "2", "-subj", f"/CN={name}", "-keyout", "ca.key", "-out", "ca.pem")

    def openssl(self, *arguments):
        done = subprocess.run(["openssl", *arguments], cwd=self.folder, capture_output=True, text=True, timeout=30, check=False)
        check(done.returncode == 0, "openssl " + " ".join(arguments), done.stderr)

    def issue(self, name, names=None, usage="serverAuth,clientAuth", days=2, rsa=False):
        """A Pair for these DNS names (`name` alone by default); `days` below 0: it has expired."""
        if isinstance(names, str):
            names = [names]
        file = f"{name}-{len(os.listdir(self.folder))}"
        with open(os.path.join(self.folder, file + ".ext"), "w", encoding="ascii") as f:
            dns = [f"DNS:{n}" for n in ([name] if names is None else names)]
            f.write(("subjectAltName=" + ",".join(dns) + "\n" if dns else "") + f"extendedKeyUsage={usage}\n")
        key = ("-newkey", "rsa:2048", "-nodes") if rsa else CURVE
        self.openssl("req", *key, "-subj", f"/CN={name}", "-keyout", file + ".key", "-out", file + ".csr")
        self.openssl("x509", "-req", "-in", file + ".csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
                     "-days", str(days), "-extfile", file + ".ext", "-out", file + ".pem")
        return Pair(*(os.path.join(self.folder, file + end) for end in (".key", ".pem")))


class Node:
    """A process of neighbour-node. `members`: a name to an address, or to another Node. More keys of the
    section `neighbours` come as keywords. It ends when its stdin does: with the test, whatever ends that."""

    def __init__(self, host, name, address, pair=None, ca=None, members=None, folder=None, **section):
        self.host, self.name, self.address = host, name, address
        self.dir = host.path(folder or name)
        os.makedirs(self.dir)
        self.files = {key: os.path.join(self.dir, key + ".pem") for key in ("certificate", "key", "ca")}
        if pair:
            self.install(pair, ca)
            section = {**self.files, **section}
        self.section = {"listen": f"{address}:{PORT}", "site": "lab", **section,
                        "members": {n: m if isinstance(m, str) and (":" in m or m == "bird") else f"{getattr(m, 'address', m)}:{PORT}"
                                    for n, m in (members or {}).items()}}
        self.lines, self.new = [], queue.Queue()
        self.popen = None

    def install(self, pair=None, ca=None):
        """Replaces these files, each in one step."""
        for source, key in ((pair and pair.certificate, "certificate"), (pair and pair.key, "key"), (ca, "ca")):
            if source:
                self.replace(self.files[key], pathlib.Path(source).read_bytes())

    @staticmethod
    def replace(path, data):
        temporary = path + ".new"
        pathlib.Path(temporary).write_bytes(data)
        os.rename(temporary, path)

    def configure(self, **section):
        self.section.update(section)
        config = {"node": self.name, "services": {"dns": {"prefixes": {"192.0.2.53/32": 100}}}, "neighbours": self.section}
        pathlib.Path(self.dir, "redshank.json").write_text(json.dumps(config), encoding="utf-8")

    def start(self):
        self.configure()
        self.popen = subprocess.Popen(
            self.host.argv([str(NODE), os.path.join(self.dir, "redshank.json")]), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1, start_new_session=True)
        threading.Thread(target=self._read, daemon=True).start()
        return self

    def _read(self):
        for line in self.popen.stdout:
            self.lines.append(line.rstrip("\n"))
            self.new.put(line.rstrip("\n"))

    def text(self):
        return "\n".join(self.lines)

    def say(self, command):
        self.popen.stdin.write(command + "\n")
        self.popen.stdin.flush()

    def wait(self, what, after=0, timeout=15.0):
        """The first line from number `after` on that begins with, or contains (from a space), `what`."""
        deadline = time.monotonic() + timeout
        while True:
            for line in self.lines[after:]:
                if line.startswith(what) or (what in line and not what[0].islower()):
                    return line
            left = deadline - time.monotonic()
            if left <= 0:
                raise Failed(f"{self.name}: waited {timeout:g} s in vain for {what!r}\n" + "\n".join(self.lines[-25:]))
            if self.popen.poll() is not None and self.new.empty():
                time.sleep(0.05)
                if not any(line.startswith(what) for line in self.lines[after:]):
                    raise Failed(f"{self.name}: has ended ({self.popen.returncode})\n" + self.text())
            try:
                self.new.get(timeout=min(left, 0.25))
            except queue.Empty:
                pass

    def mark(self):
        return len(self.lines)

    def ask(self, command):
        """The answer to a command, without its first word."""
        mark = self.mark()
        self.say(command)
        return self.wait(command.split()[0] + " ", after=mark).split(" ", 1)[1]

    def counts(self):
        """The counters as numbers, `requests` as a list, `error` as text."""
        text, _, error = self.ask("counts").partition(" error=")
        pairs = dict(word.split("=", 1) for word in text.split())
        requests = [int(n) for n in pairs.pop("requests").split(",")]
        return {**{k: int(v) for k, v in pairs.items()}, "requests": requests, "error": error}

    def view(self, name):
        """(state, reports, failures, error)"""
        parts = self.ask(f"view {name}").split(" ", 4)
        return parts[1], int(parts[2]), int(parts[3]), parts[4] if len(parts) > 4 else ""

    def cpu_s(self):
        """What the process has taken of the CPU, all threads."""
        with open(f"/proc/{self.popen.pid}/stat", encoding="ascii") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        """Its exit status: not 0 where a sanitizer found something."""
        if self.popen.poll() is None:
            self.popen.send_signal(signal.SIGCONT)
            self.popen.stdin.close()
            try:
                self.popen.wait(15)
            except subprocess.TimeoutExpired:
                self.popen.kill()
                self.popen.wait()
        return self.popen.returncode
