"""A BIRD under control: its configuration, its control socket, and what it knows.

Each runs in the foreground in its host's namespace, from a bird.conf in the host's folder. Commands
go over the control socket (BIRD's doc/reply_codes), a fresh connection each.

$REDSHANK_BIRD names another BIRD than the installed one, for every BIRD that a test starts but the
router's, which is $REDSHANK_BIRD_ROUTER (tests/run --birds).
"""

import os
import re
import signal
import socket
from dataclasses import dataclass, field

from lib.wait import until


def program():
    """The BIRD under test."""
    return os.environ.get("REDSHANK_BIRD") or "bird"


def router_program():
    """The BIRD of the router."""
    return os.environ.get("REDSHANK_BIRD_ROUTER") or "bird"


@dataclass
class Reply:
    code: str  # of the final line, such as "0000" or "8002"
    lines: list  # (code, text) of every line; a continued line has its predecessor's code

    @property
    def text(self):
        return "\n".join(text for _, text in self.lines)


@dataclass
class Route:
    protocol: str
    best: bool
    gateway: str = ""
    attributes: dict = field(default_factory=dict)  # "BGP.med": "100", as BIRD 2 prints them

    @property
    def med(self):
        value = self.attributes.get("BGP.med")
        return None if value is None else int(value)

    @property
    def local_pref(self):
        value = self.attributes.get("BGP.local_pref")
        return None if value is None else int(value)

    @property
    def communities(self):
        return _tuples(self.attributes.get("BGP.community", ""))

    @property
    def large_communities(self):
        return _tuples(self.attributes.get("BGP.large_community", ""))

    @property
    def as_path(self):
        return [int(n) for n in self.attributes.get("BGP.as_path", "").split()]


def _tuples(text):
    return [tuple(int(n) for n in group.split(",")) for group in re.findall(r"\(([^)]*)\)", text)]


class Control:
    """One connection to a control socket; read by hand where a test wants to hold it open."""

    def __init__(self, path, timeout=10.0):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(timeout)
        self.sock.connect(path)
        self.file = self.sock.makefile("rb")
        self.greeting = self._reply()

    def _reply(self):
        lines = []
        code = ""
        while True:
            raw = self.file.readline()
            if not raw:
                raise ConnectionError("BIRD closed its control socket")
            line = raw.decode("utf-8", "replace").rstrip("\n")
            if line.startswith("+"):
                continue
            if line.startswith(" "):
                lines.append((code, line[1:]))
                continue
            code = line[:4]
            lines.append((code, line[5:]))
            if line[4:5] != "-":
                return Reply(code, lines)

    def ask(self, command):
        self.sock.sendall(command.encode() + b"\n")
        return self._reply()

    def close(self):
        self.file.close()
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Bird:
    """`config` is the text of bird.conf; rewrite it with write_config() and configure()."""

    def __init__(self, host, config, binary=None):
        self.host = host
        self.binary = binary or program()
        self.conf = host.path("bird.conf")
        self.socket = host.path("bird.ctl")
        self.log = host.path("bird.log")
        self.config = config
        self.process = None
        self.write_config(config)

    def write_config(self, text, keep=True):
        """Replaces bird.conf in one step; with keep this is what repair() goes back to."""
        if keep:
            self.config = text
        with open(self.conf + ".new", "w", encoding="utf-8") as f:
            f.write(text)
        os.rename(self.conf + ".new", self.conf)

    def break_config(self, text="nonsense;\n"):
        """bird.conf no longer parses; the running BIRD does not know it yet."""
        self.write_config(text + self.config, keep=False)

    def repair_config(self):
        self.write_config(self.config)

    def start(self, wait=True):
        self.process = self.host.start(
            [self.binary, "-f", "-c", self.conf, "-s", self.socket, "-P", self.host.path("bird.pid")], "bird.out"
        )
        if wait:
            self.wait_ready()

    def wait_ready(self, timeout=20.0):
        until(self._answers, timeout, lambda: f"the BIRD of {self.host.name} answers\n{self.tail()}")

    def _answers(self):
        if not self.process.alive():
            raise AssertionError(f"the BIRD of {self.host.name} ended at once:\n{self.tail()}")
        return self.birdc("show status").code == "0013"

    def birdc(self, command):
        """One command, one Reply. OSError when BIRD is not there."""
        with Control(self.socket) as control:
            return control.ask(command)

    def version(self):
        """(3, 4, 0), of its greeting."""
        with Control(self.socket) as control:
            return tuple(int(n) for n in re.search(r"BIRD ([0-9.]+)", control.greeting.text).group(1).split("."))

    def control(self):
        """A connection to keep."""
        return Control(self.socket)

    def configure(self):
        """`configure`; fails the test unless BIRD accepts it (0003, 0004, 0005)."""
        reply = self.birdc("configure")
        if reply.code not in ("0003", "0004", "0005"):
            raise AssertionError(f"{self.host.name}: configure: {reply.code} {reply.text}")
        return reply

    def protocols(self):
        """{protocol: (type, table, state, info)} of `show protocols`."""
        found = {}
        for code, text in self.birdc("show protocols").lines:
            words = text.split(None, 5)
            if code == "1002" and len(words) >= 4:
                found[words[0]] = (words[1], words[2], words[3], words[5] if len(words) > 5 else "")
        return found

    def established(self):
        """The names of the BGP sessions that are established."""
        return {
            name for name, (kind, _, _, info) in self.protocols().items() if kind == "BGP" and "Established" in info
        }

    def routes(self, prefix, table=None):
        """The Routes for exactly this prefix, the best one first; none is an empty list."""
        where = f" table {table}" if table else ""
        reply = self.birdc(f"show route {prefix}{where} all")
        return parse_routes(reply)

    def stop(self):
        return self.process.stop()

    def kill(self):
        """SIGKILL: the kernel closes the sessions. The time just before."""
        return self.process.kill()

    def restart(self):
        """A clean stop and a new start, as a package upgrade does it."""
        if self.process.alive():
            self.process.stop()
        self.start()

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def tail(self, n=15):
        return "".join(f"{tail(path, n)}" for path in (self.log, self.host.path("bird.out")))


def parse_routes(reply):
    """Routes from the reply of `show route ... all`."""
    found = []
    for code, text in reply.lines:
        if code == "1007":
            head = re.search(r"(?:^|\s)\w+ \[(\S+) [^\]]*\]\s*(\*?)", text)
            via = re.search(r"via (\S+)", text)
            if head:
                found.append(Route(head.group(1), head.group(2) == "*"))
            elif via and found and not found[-1].gateway:
                found[-1].gateway = via.group(1)
        elif code == "1012" and found:
            key, colon, value = text.strip().partition(":")
            if colon:
                found[-1].attributes[_name_of_2(key)] = value.strip()
    return found


def _name_of_2(attribute):
    """What BIRD 3 calls bgp_med, bgp_path and ospf_metric2 was BGP.med, BGP.as_path and OSPF.metric2."""
    if attribute == "bgp_path":
        return "BGP.as_path"
    return re.sub("^(bgp|ospf)_", lambda found: found.group(1).upper() + ".", attribute)


def tail(path, n):
    """The last n lines of a file; "" when there is none."""
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return "".join(f.readlines()[-n:])
    except OSError:
        return ""


ROUTER_AS = 64500
EDGE_AS = 64501


def edge_config(host, index, fragments, template, extra="", export="redshank_export_med()", ibgp=False):
    """bird.conf of an edge as its operator writes it: two includes, and a line at each export."""
    local_as = ROUTER_AS if ibgp else EDGE_AS
    return f"""\
log "{host.path('bird.log')}" all;
router id 198.51.100.{4 * index + 2};
debug protocols {{ states }};

include "{template}";
include "{fragments}/*.conf";
{extra}
protocol device {{ scan time 10; }}

template bgp uplink {{
	local as {local_as};
	connect delay time 1;
	connect retry time 1;
	error wait time 1, 2;
}}

protocol bgp router4 from uplink {{
	neighbor 198.51.100.{4 * index + 1} as {ROUTER_AS};
	ipv4 {{ import none; export where {export}; next hop self; }};
}}

protocol bgp router6 from uplink {{
	neighbor 2001:db8:ffff:{index}::1 as {ROUTER_AS};
	ipv6 {{ import none; export where {export}; next hop self; }};
}}
"""


def router_config(host, edges, ecmp=False, ibgp=False):
    """bird.conf of the router: learns from the edges, and its kernel forwards by what it learned."""
    edge_as, direct = (ROUTER_AS, "\n\tdirect;") if ibgp else (EDGE_AS, "")
    merge = "merge paths on;" if ecmp else ""
    text = f"""\
log "{host.path('bird.log')}" all;
router id 198.51.100.1;

protocol device {{ scan time 10; }}
protocol kernel {{ {merge} scan time 10; ipv4 {{ import none; export all; }}; }}
protocol kernel {{ {merge} scan time 10; ipv6 {{ import none; export all; }}; }}

template bgp edge {{
	local as {ROUTER_AS};
	passive on;
	error wait time 1, 2;
	hold time 30;{direct}
}}
"""
    for index in range(1, edges + 1):
        text += f"""
protocol bgp edge{index}_4 from edge {{
	neighbor 198.51.100.{4 * index + 2} as {edge_as};
	ipv4 {{ import all; export none; }};
}}
protocol bgp edge{index}_6 from edge {{
	neighbor 2001:db8:ffff:{index}::2 as {edge_as};
	ipv6 {{ import all; export none; }};
}}
"""
    return text
