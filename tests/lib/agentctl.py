"""A redshankd under control: configuration from a dict, status, signals, and its log.

The programs come from $REDSHANK_BUILD (ctest sets it), else from build/dev or build/release.
"""

import copy
import http.client
import json
import os
import signal
import socket
import subprocess

from lib.birds import tail
from lib.netns import Cannot
from lib.wait import TimedOut, until

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# Short, so that a test is short; long enough for two busy cores under sanitizers.
DEFAULTS = {"interval": "300ms", "fast_interval": "100ms", "timeout": "300ms", "rise": 2, "fall": 2}


def build_folder():
    named = os.environ.get("REDSHANK_BUILD")
    for folder in [named] if named else [f"{ROOT}/build/dev", f"{ROOT}/build/release"]:
        if os.access(os.path.join(folder, "redshankd"), os.X_OK):
            return os.path.abspath(folder)
    raise Cannot(f"redshankd is not built ({named or 'build/dev'}); tests/run builds it")


def plain_agent():
    """(redshankd without sanitizers, libfamine.so): for tests of system calls and of no memory."""
    folder = build_folder()
    shim = os.path.join(folder, "tests", "lib", "libfamine.so")
    for program in (os.path.join(folder, "tests", "lib", "redshankd-plain"), os.path.join(folder, "redshankd")):
        if os.access(program, os.X_OK) and os.access(shim, os.R_OK):
            return program, shim
    raise Cannot(f"tests/lib is not built in {folder}; tests/run builds it")


def default_config(edge, agent):
    """dns behind nsd and web behind nginx, each with its process and its port."""
    return {
        "node": edge.name,
        "bird": {"socket": edge.bird.socket, "fragments": edge.fragments},
        "status": {"socket": agent.socket, "group": "root"},
        "state": edge.host.path("state.json"),
        "reload_guard": 100,  # tests drop whatever they like; netns/gentle.py has it on
        "defaults": dict(DEFAULTS),
        "services": {
            "dns": {
                "prefixes": {"192.0.2.53/32": edge.weight, "2001:db8::53/128": edge.weight},
                "checks": {
                    "process": {"type": "process", "pidfile": edge.nsd.pidfile},
                    "port": {"type": "tcp", "address": "192.0.2.53", "port": 53},
                },
            },
            "web": {
                "prefixes": {"192.0.2.80/32": edge.weight},
                "checks": {
                    "process": {"type": "process", "pidfile": edge.nginx.pidfile},
                    "page": {
                        "type": "tcp",
                        "address": "192.0.2.80",
                        "port": 80,
                        "send": "GET /healthz HTTP/1.0\r\n\r\n",
                        "expect": "ok",
                    },
                },
            },
        },
    }


class _UnixHTTP(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Agent:
    """`config` is a dict to change before start(), or before reload(); `program` (None: redshankd of
    the build) and `environment` (added to ours) count from the next start()."""

    def __init__(self, edge):
        self.edge = edge
        self.conf = edge.host.path("redshank.json")
        self.socket = edge.host.path("status.sock")
        self.log = edge.host.path("redshankd.log")
        self.config = default_config(edge, self)
        self.program = None
        self.environment = {}
        self.process = None

    def default_config(self):
        return copy.deepcopy(default_config(self.edge, self))

    def write_config(self, text=None):
        """Writes self.config, or this text instead of it."""
        if text is None:
            text = json.dumps(self.config, indent=2) + "\n"
        with open(self.conf + ".new", "w", encoding="utf-8") as f:
            f.write(text)
        os.rename(self.conf + ".new", self.conf)

    @property
    def pid(self):
        return self.process.pid

    def start(self, wait=True, write=True, arguments=()):
        """Starts redshankd in the foreground; with wait, until its status socket answers."""
        if write:
            self.write_config()
        env = {k: v for k, v in os.environ.items() if k not in ("NOTIFY_SOCKET", "WATCHDOG_USEC", "JOURNAL_STREAM")}
        env.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
        env.update(self.environment)
        program = self.program or os.path.join(build_folder(), "redshankd")
        self.process = self.edge.host.start(
            [program, "-c", self.conf, "--foreground", *arguments],
            "redshankd.log",
            env=env,
        )
        if wait:
            self.wait_ready()

    def wait_ready(self, timeout=20.0):
        until(self._answers, timeout, lambda: f"the agent of {self.edge.name} answers\n{self.tail()}")

    def _answers(self):
        if not self.process.alive():
            raise AssertionError(
                f"the agent of {self.edge.name} ended with {self.process.popen.returncode}:\n{self.tail()}"
            )
        return self.get("/v1/status")[0] == 200

    def get(self, path, timeout=10.0, method="GET", body=None):
        """(HTTP status, body as bytes) over the status socket. OSError when nobody is there."""
        connection = _UnixHTTP(self.socket, timeout)
        try:
            connection.request(method, path, body)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except http.client.HTTPException as e:
            raise ConnectionError(f"status socket: {e!r}") from e
        finally:
            connection.close()

    def status(self):
        """The document of GET /v1/status."""
        code, body = self.get("/v1/status")
        if code != 200:
            raise ConnectionError(f"GET /v1/status: {code}")
        return json.loads(body)

    def prefix(self, prefix, service=None):
        """The prefix's part of the status: wanted, announced, exported, weight, reason, since."""
        for name, entry in self.status()["services"].items():
            if service in (None, name) and prefix in entry["prefixes"]:
                return entry["prefixes"][prefix]
        raise KeyError(prefix)

    def check(self, service, check):
        """The check's part of the status: state, reason, outcomes."""
        return self.status()["services"][service]["checks"][check]

    def wait_prefix(self, prefix, timeout=10.0, service=None, **fields):
        """Until the status of the prefix has these values: wait_prefix(P, wanted="announce", announced=True)."""
        return self._wait(lambda: self.prefix(prefix, service), prefix, timeout, fields)

    def wait_check(self, service, check, timeout=10.0, **fields):
        return self._wait(lambda: self.check(service, check), f"{service} {check}", timeout, fields)

    def _wait(self, look, name, timeout, fields):
        seen = {}

        def holds():
            seen.clear()
            seen.update(look())
            return all(seen.get(key) == value for key, value in fields.items()) and dict(seen)

        return until(holds, timeout, lambda: f"{self.edge.name}: {name} has {fields}, last seen {seen}\n{self.tail()}")

    def wait_status(self, condition, timeout=10.0, what="condition"):
        """Until condition(status) is true; returns that status."""

        def holds():
            status = self.status()
            return status if condition(status) else None

        return until(holds, timeout, lambda: f"{self.edge.name}: status: {what}\n{self.tail()}")

    def ctl(self, *arguments):
        """Runs redshankctl against this agent: a CompletedProcess with text."""
        return self.edge.host.run(
            [os.path.join(build_folder(), "redshankctl"), "--socket", self.socket, *arguments], check=False
        )

    def reload(self):
        """Writes self.config and sends HUP."""
        self.write_config()
        self.process.send_signal(signal.SIGHUP)

    def send_signal(self, number):
        self.process.send_signal(number)

    def stop(self, number=signal.SIGTERM, timeout=20.0):
        """TERM (or USR2: leave BIRD alone), and the exit status, which must come by itself."""
        self.process.send_signal(number)
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise TimedOut(f"the agent of {self.edge.name} did not stop in {timeout:g} s\n{self.tail()}") from None

    def kill(self):
        """SIGKILL to the agent alone; what it ran goes on. The time just before."""
        return self.process.kill(rest=False)

    def text(self):
        """The whole log."""
        try:
            with open(self.log, encoding="utf-8", errors="replace") as f:
                return f.read()
        except OSError:
            return ""

    def wait_log(self, text, timeout=10.0, after=0):
        """Until the log holds `text` behind offset `after` (see len(agent.text())); returns that line."""

        def found():
            return next((line for line in self.text()[after:].splitlines() if text in line), None)

        return until(found, timeout, lambda: f"{self.edge.name}: log line with {text!r}\n{self.tail()}")

    def sanitizer_report(self):
        """What a sanitizer had to say, or ""."""
        text = self.text()
        for mark in ("ERROR: AddressSanitizer", "ERROR: LeakSanitizer", "runtime error:", "Assertion `"):
            if mark in text:
                return text[max(0, text.index(mark) - 200) :][:6000]
        return ""

    def tail(self, n=25):
        return tail(self.log, n)
