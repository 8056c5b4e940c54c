"""A BIRD 1: the real 1.6.8 that Debian has. It is refused politely, left alone, and the agent takes
over as soon as a BIRD 2 listens on the same socket.

Debian's package `bird` cannot be installed beside bird2, so it is downloaded and unpacked into
build/bird-1, once.
"""

import glob
import os
import re
import subprocess
import tempfile
import time

from lib.agentctl import ROOT, build_folder
from lib.birds import Bird
from lib.case import check, eventually, main, skip
from lib.shapes import V4, Shape
from lib.site import TEMPLATE

ROUTER = """
protocol bgp edge4 { local as 64500; neighbor 198.51.100.2 as 64501; passive on; error wait time 1, 2; ipv4 { import all; export none; }; }
"""
BIRD_2 = """
log stderr all;
router id 198.51.100.2;
include "%s";
include "%s/*.conf";
protocol device {}
protocol bgp reflector {
	local as 64501; neighbor 198.51.100.1 as 64500; connect delay time 1;
	ipv4 { import none; export where redshank_export_med(); };
}
"""


def bird_1():
    """The path of a bird 1.6.8; fetched when it is not there yet."""
    folder = os.path.join(ROOT, "build", "bird-1")
    program = os.path.join(folder, "usr", "sbin", "bird")
    if os.access(program, os.X_OK):
        return program
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    with tempfile.TemporaryDirectory(dir=os.path.dirname(folder)) as scratch:
        try:
            got = subprocess.run(
                ["apt-get", "-q", "download", "bird"], cwd=scratch, capture_output=True, text=True, timeout=60, check=False)
        except (OSError, subprocess.TimeoutExpired) as e:
            skip(f"Debian's package bird (1.6.8) cannot be had: {e}")
        packages = glob.glob(os.path.join(scratch, "bird_1.6*.deb"))
        if got.returncode != 0 or not packages:
            skip("Debian's package bird (1.6.8) cannot be had: " + (got.stderr.strip().splitlines() or ["another version"])[-1])
        subprocess.run(["dpkg-deb", "-x", packages[0], os.path.join(scratch, "x")], check=True, timeout=60)
        try:
            os.rename(os.path.join(scratch, "x"), folder)
        except OSError:  # another run was faster
            check(os.access(program, os.X_OK), "the other run's BIRD 1 is there")
    return program


def make():
    shape = Shape("A3-bird-1", ROUTER, ("edge4",), prefixes=(V4,), bird=bird_1(), configure=lambda text: "log stderr all;\ndebug commands 2;\n" + text)
    shape.wait_routes({"203.0.113.0/25", V4})
    return shape


def asked(shape, mark):
    """What BIRD 1 logged of its control socket: connections, and commands."""
    text = shape.edge_bird.tail(10000)[mark:]
    return len(re.findall(r"CLI connect$", text, re.M)), re.findall(r"CLI: (.*)", text)


def test_refused():
    """Refused with a clear word, not sent a byte, its routes left alone, greeted again each second; a BIRD 2 is taken."""
    with make() as shape:
        mark = len(shape.edge_bird.tail(10000))
        with shape.keeping():
            begun = time.monotonic()
            shape.agent.start()
            status = shape.agent.wait_status(lambda s: s["bird"]["link"] == "refused", what="refused")
            check("1.6.8" in status["bird"]["error"] and "2.0.12 or newer" in status["bird"]["error"], "the word", status["bird"])
            line = shape.agent.wait_log("is a BIRD 1.6.8; 2.0.12 or newer is needed")
            check("nothing was sent" in line, "in the log", line)
            shape.agent.wait_prefix(V4, reason="healthy", announced=None, exported=None)
            eventually(lambda: asked(shape, mark)[0] >= 3, 20, "it is greeted again")
            connections, commands = asked(shape, mark)
            took = time.monotonic() - begun
            check(connections <= took + 2 and not commands, "greeted each second, and nothing was sent", connections, took, commands)
            shown = shape.agent.ctl("status")
            check("BIRD is not spoken to" in shown.stdout and "1.6.8" in shown.stdout, "redshankctl says it", shown)
            plugin = shape.agent.ctl("--plugin", "status")
            check(plugin.returncode == 2, "critical", plugin)
            done = shape.edge.run([os.path.join(build_folder(), "redshankd"), "-c", shape.agent.conf, "--check"], check=False)
            check(done.returncode == 0 and "is a BIRD 1.6.8" in done.stderr, "--check says it, too", done)
            check(shape.agent.text().count(f"bird: {shape.edge_bird.socket} is a BIRD") <= 2, "said once, and once as the reason why nothing was found")
        check({"203.0.113.0/25", V4} <= shape.table(), "what it announces is untouched", shape.table())
        # It is replaced, on the same socket.
        shape.edge_bird.stop()
        eventually(lambda: shape.table() == set(), what="the old one's routes are gone")
        shape.edge_bird = Bird(shape.edge, BIRD_2 % (TEMPLATE, shape.fragments))
        shape.edge_bird.start()
        shape.agent.wait_status(lambda s: s["bird"]["link"] == "up" and not s["bird"]["version"].startswith("1."), timeout=20, what="up")
        shape.wait_med(V4, 100)
        check(shape.agent.stop() == 0, "a clean stop")


main()
