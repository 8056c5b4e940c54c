"""A08: temporary and backup files in an include directory.

The agent is killed again and again while it rewrites its fragments; whatever is left must be read by
BIRD, must never announce a withdrawn prefix, and the next agent cleans it up.
"""

import ctypes
import os
import socket
import struct
import signal
import time

from lib.case import check, eventually, main
from lib.chance import chance
from lib.site import Site

ROUNDS = 40
PREFIXES = [f"192.0.2.{i}/32" for i in range(101, 141)]


def flag(site):
    return os.path.join(site.dir, "flag")


def make_site():
    site = Site(edges=1, services=False)
    edge = site.edges[0]
    for prefix in PREFIXES:
        edge.add_address(prefix.split("/")[0])
    open(flag(site), "w").close()
    timing = {"interval": "100ms", "fast_interval": "100ms", "timeout": "100ms", "rise": 1, "fall": 1}
    edge.agent.config["services"] = {
        "many": {
            "prefixes": {p: 100 for p in PREFIXES},
            "checks": {"flag": {"type": "exec", "command": ["/usr/bin/test", "-e", flag(site)], **timing}},
        }
    }
    return site


def parses(edge):
    done = edge.host.run([edge.bird.binary, "-p", "-c", edge.bird.conf], check=False)
    return done.returncode == 0, done.stderr


def killed(edge):
    """kill -9. A check's child that is not in its own program yet holds the status socket a moment longer."""
    edge.agent.kill()

    def silent():
        with socket.socket(socket.AF_UNIX) as s:
            return s.connect_ex(edge.agent.socket) != 0

    eventually(silent, 5, "nobody holds the status socket")


def visible(edge):
    return sorted(n for n in os.listdir(edge.fragments) if not n.startswith("."))


class Watch:
    """inotify(7) of a folder: (mask, name) of everything that happened in it."""

    MODIFY, MOVED_TO, CREATE = 0x2, 0x80, 0x100

    def __init__(self, folder):
        libc = ctypes.CDLL(None, use_errno=True)
        self.fd = libc.inotify_init1(os.O_NONBLOCK)
        check(self.fd >= 0 and libc.inotify_add_watch(self.fd, folder.encode(), 0xFFF) >= 0, "inotify")

    def events(self):
        data, found = b"", []
        try:
            while True:
                data += os.read(self.fd, 65536)
        except BlockingIOError:
            pass
        while data:
            _, mask, _, n = struct.unpack_from("iIII", data)
            found.append((mask, data[16 : 16 + n].rstrip(b"\0").decode()))
            data = data[16 + n :]
        return found


def test_renamed(site):
    """What BIRD includes is only ever renamed into its place, whole; never created or written there."""
    edge = site.edges[0]
    watch = Watch(edge.fragments)
    edge.agent.start()
    site.wait_announced(PREFIXES[0], "edge1")
    os.unlink(flag(site))
    edge.agent.wait_prefix(PREFIXES[0], wanted="withdraw", announced=False)
    open(flag(site), "w").close()
    site.wait_announced(PREFIXES[0], "edge1")
    edge.agent.wait_status(lambda s: s["bird"]["settled"], what="settled")
    ours = [mask for mask, name in watch.events() if name == "many.conf"]
    check(len([m for m in ours if m & Watch.MOVED_TO]) >= 3, "renamed each time", ours)
    check(not [m for m in ours if m & (Watch.MODIFY | Watch.CREATE)], "never written in place", ours)
    os.close(watch.fd)
    killed(edge)


def revived(edge):
    """BIRD 3 can die when a reader's connection ends before its answer (docs/bird.md): False, and a new one."""
    if edge.bird.process.alive():
        return True
    check(edge.bird.process.popen.returncode == -signal.SIGSEGV and edge.bird3, "only BIRD 3, and only so")
    print("BIRD died of the agent's death, and was started again")
    edge.bird.start()
    return False


def test_killed(site):
    """Killed at any moment of a rewrite, forty times: BIRD reads what is left, and it is one file."""
    edge = site.edges[0]
    dice = chance()
    edge.bird3 = edge.bird.version() >= (3,)
    edge.agent.start()
    begun_all = time.time()
    unscathed = True
    site.wait_announced(PREFIXES[0], "edge1")
    for weight in range(200, 200 + ROUNDS):
        edge.agent.config["services"]["many"]["prefixes"] = {p: weight for p in PREFIXES}
        edge.agent.reload()
        begun, pause = time.monotonic(), dice.uniform(0, 0.012)
        while time.monotonic() - begun < pause:  # the moment is what this test is about
            pass
        killed(edge)
        good, said = parses(edge)
        check(good, "bird -p takes what is left", said, os.listdir(edge.fragments))
        check(visible(edge) == ["many.conf"], "no file that BIRD would include", os.listdir(edge.fragments))
        unscathed = revived(edge) and unscathed
        edge.agent.start()
    edge.agent.wait_status(lambda s: s["bird"]["settled"], what="settled")
    check(not [n for n in os.listdir(edge.fragments) if n.endswith(".new")], "stale files are cleaned", os.listdir(edge.fragments))
    withdrawn = [e for e in site.wire.since(begun_all) if e.kind == "withdraw"]
    check(not (unscathed and withdrawn), "nobody lost a route", withdrawn[:3])


def test_foreign_files(site):
    """An editor's backup and a half-written file beside ours: told once, left alone, not read by `*.conf`."""
    edge = site.edges[0]
    mark = len(edge.agent.text())
    for name in ("many.conf~", ".many.conf.swp", "many.conf.bak"):
        with open(os.path.join(edge.fragments, name), "w", encoding="utf-8") as f:
            f.write("protocol static '")
    with open(os.path.join(edge.fragments, "operators.conf"), "w", encoding="utf-8") as f:
        f.write("# the operator's own\n")
    edge.agent.wait_log("operators.conf is not the agent's", after=mark)
    check(parses(edge)[0], "BIRD reads the folder")
    edge.agent.stop(signal.SIGUSR2)
    edge.agent.start()
    edge.agent.wait_status(lambda s: s["bird"]["settled"], what="settled")
    check({"many.conf~", "many.conf.bak", "operators.conf"} <= set(os.listdir(edge.fragments)), "left alone")


def test_mode(site):
    """Our file is 0640: BIRD's group reads it, others do not."""
    mode = os.stat(os.path.join(site.edges[0].fragments, "many.conf")).st_mode & 0o777
    check(mode == 0o640, "mode 0640", oct(mode))


main(make_site)
