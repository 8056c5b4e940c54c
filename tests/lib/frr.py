"""FRR as the site's router: zebra and bgpd under control, with the part of Bird's interface that a
router needs (birds.py): start, wait_ready, established, routes, stop, kill, tail.

Both run in the router's namespace as their package's user, and everything of theirs lies in one
folder of that user in the host's: configuration, logs, pids, zebra's socket, the sockets of their
command lines. So any number of them run side by side, and beside an FRR of the machine, without its
/var/run/frr.

Commands go over a daemon's own command line socket, as vtysh sends them: the line and a NUL there;
the text, three NULs and a status byte back (lib/vty.c of FRR).
"""

import json
import os
import shutil
import socket

from lib.birds import EDGE_AS, ROUTER_AS, Route, tail
from lib.wait import until

FOLDER = "/usr/lib/frr"
DAEMONS = ("zebra", "bgpd")

# FRR prints names for those that RFC 1997 and RFC 8326 define.
WELL_KNOWN = {"graceful-shutdown": (65535, 0), "no-export": (65535, 65281), "no-advertise": (65535, 65282)}


def edges_of(edges):
    """{address of the edge: what the router calls the session}"""
    found = {}
    for index in range(1, edges + 1):
        found[f"198.51.100.{4 * index + 2}"] = f"edge{index}_4"
        found[f"2001:db8:ffff:{index}::2"] = f"edge{index}_6"
    return found


def router_config(edges, ecmp=False, ibgp=False):
    """bgpd.conf of the router: learns from the edges. zebra needs to be told nothing."""
    sessions = edges_of(edges)
    text = f"""\
router bgp {ROUTER_AS}
 bgp router-id 198.51.100.1
 no bgp ebgp-requires-policy
 no bgp default ipv4-unicast
 bgp bestpath as-path multipath-relax
 timers bgp 10 30
"""
    for address in sessions:
        text += f" neighbor {address} remote-as {ROUTER_AS if ibgp else EDGE_AS}\n neighbor {address} passive\n"
    for family in (4, 6):
        text += f" address-family ipv{family} unicast\n"
        text += f"  maximum-paths {8 if ecmp else 1}\n  maximum-paths ibgp {8 if ecmp else 1}\n"
        text += "".join(f"  neighbor {a} activate\n" for a, name in sessions.items() if name.endswith(f"_{family}"))
        text += " exit-address-family\n"
    return text


class Frr:
    def __init__(self, host, edges, config):
        self.host = host
        self.sessions = edges_of(edges)
        self.processes = {}
        self.config = config
        os.mkdir(self._path(""))
        shutil.chown(self._path(""), "frr", "frr")
        for daemon, text in (("zebra", ""), ("bgpd", config)):
            with open(self._path(daemon + ".conf"), "w", encoding="utf-8") as f:
                f.write(text)

    def _path(self, name):
        return self.host.path("frr", name)

    @property
    def process(self):
        return self.processes["bgpd"]

    def start(self, wait=True):
        for daemon in DAEMONS:
            self.processes[daemon] = self.host.start(
                [
                    f"{FOLDER}/{daemon}", "-P", "0",
                    "-f", self._path(daemon + ".conf"),
                    "-i", self._path(daemon + ".pid"),
                    "-z", self._path("zserv.api"),
                    "--vty_socket", self._path(""),
                    "--log", f"file:{self._path(daemon + '.log')}",
                ],
                daemon + ".out",
            )
            if daemon == "zebra":  # bgpd looks for its socket once, and then not for 10 s
                until(lambda: os.path.exists(self._path("zserv.api")), 10, lambda: f"zebra listens\n{self.tail()}")
        if wait:
            self.wait_ready()

    def wait_ready(self, timeout=10.0):
        until(self._answers, timeout, lambda: f"bgpd and zebra of {self.host.name} answer\n{self.tail()}")

    def _answers(self):
        for daemon, process in self.processes.items():
            if not process.alive():
                raise AssertionError(f"{daemon} of {self.host.name} ended at once:\n{self.tail()}")
        return all("FRRouting" in self.vty("show version", daemon) for daemon in DAEMONS)

    def vty(self, command, daemon="bgpd"):
        """The text that the daemon answers. OSError when it is not there."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
            sock.settimeout(10)
            sock.connect(self._path(daemon + ".vty"))
            sock.sendall(command.encode() + b"\0")
            answer = b""
            while not (len(answer) >= 4 and answer[-4:-1] == b"\0\0\0"):
                piece = sock.recv(65536)
                if not piece:
                    raise ConnectionError(f"{daemon} closed its command line")
                answer += piece
        return answer[:-4].decode()

    def established(self):
        """The names of the sessions that are established."""
        found = set()
        for family in json.loads(self.vty("show bgp summary json")).values():
            for address, peer in family.get("peers", {}).items():
                if peer.get("state") == "Established" and address in self.sessions:
                    found.add(self.sessions[address])
        return found

    def routes(self, prefix):
        """birds.Routes for exactly this prefix, the best one first; none is an empty list."""
        family = 6 if ":" in prefix else 4
        answer = json.loads(self.vty(f"show bgp ipv{family} unicast {prefix} json") or "{}")
        if answer.get("prefix") != prefix:
            return []
        found = [self._route(path) for path in answer["paths"]]
        return sorted(found, key=lambda route: not route.best)

    def _route(self, path):
        attributes = {"BGP.as_path": path["aspath"]["string"].replace("Local", "")}
        for key, ours in (("metric", "BGP.med"), ("locPrf", "BGP.local_pref")):
            if key in path:
                attributes[ours] = str(path[key])
        for key, ours in (("community", "BGP.community"), ("largeCommunity", "BGP.large_community")):
            if key in path:
                attributes[ours] = " ".join(_group(word) for word in path[key]["string"].split())
        return Route(
            self.sessions.get(path["peer"]["peerId"], path["peer"]["peerId"]),
            path.get("bestpath", {}).get("overall", False),
            path["nexthops"][0]["ip"],
            attributes,
        )

    def stop(self):
        for daemon in reversed(DAEMONS):
            self.processes[daemon].stop()

    def kill(self):
        """SIGKILL to both: the kernel closes the sessions. The time just before."""
        return min(self.processes[daemon].kill() for daemon in reversed(DAEMONS))

    def tail(self, n=15):
        logs = [self._path(d + ".log") for d in DAEMONS] + [self.host.path(d + ".out") for d in DAEMONS]
        return "".join(tail(path, n) for path in logs)


def _group(word):
    """ "64501:53" as BIRD prints it: "(64501,53)"."""
    return "(" + ",".join(str(n) for n in WELL_KNOWN.get(word, word.split(":"))) + ")"


def missing():
    """The programs that an FRR router needs and that are not installed."""
    return [f"{FOLDER}/{d}" for d in DAEMONS if not os.access(f"{FOLDER}/{d}", os.X_OK)]
