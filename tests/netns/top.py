"""redshankctl top on a real terminal (a pty) and a real site: what it shows, that it resizes, keeps working
while the agent restarts or hangs, and gives the terminal back."""

import json
import os
import re
import shutil
import signal
import subprocess
import time

from lib.agentctl import build_folder
from lib.case import check, eventually, main, skip
from lib.operators import untold
from lib.pulse import Pulse
from lib.screen import Screen
from lib.site import Site

COLOUR = re.compile(rb"\x1b\[[0-9;]*m")
PULSE = Pulse()


def top(site, *arguments, width=80, height=24, prefix=(), **env):
    agent = site.edges[0].agent
    if not agent.process:
        untold(site)
    environment = {**os.environ, "TERM": "xterm", **env}
    if "NO_COLOR" not in env:
        environment.pop("NO_COLOR", None)
    return Screen([*prefix, os.path.join(build_folder(), "redshankctl"), "--socket", agent.socket, *arguments, "top"],
                  width, height, environment)


def fits(screen):
    """It is no higher and no wider than the terminal."""
    lines = screen.lines()
    return lines and len(lines) <= screen.height and all(len(line) <= screen.width for line in lines)


def test_what_it_shows(site):
    """It shows all services, and a death within a second, worst first; q gives the terminal back."""
    edge = site.edges[0]
    untold(site)
    with top(site) as screen:
        screen.until(lambda s: "All is well: 2 services" in s.text())
        check(fits(screen), "it fits", screen.text())
        check(screen.lines()[0].startswith("edge1: redshankd "), "the node", screen.text())
        check(screen.lines()[-1] == "q quits, space asks now", "the foot", screen.text())
        check(len(screen.lines()) < 24, "the rest is clear")
        check(screen.settings() != screen.before, "keys come at once")
        killed = edge.nginx.kill()
        screen.until(lambda s: "web is unhealthy" in s.text())
        took = time.time() - killed - PULSE.withheld(killed)
        check(took < 3, "soon", took)
        rows = [line.split()[0] for line in screen.lines() if re.match(r"(web|dns) ", line)]
        check(rows == ["web", "dns"], "the worst first", screen.text())
        check("check process down" in screen.text() and "192.0.2.80/32 withdraw" in screen.text(), "why", screen.text())
        edge.nginx.start()
        screen.until(lambda s: "All is well" in s.text())
        check(COLOUR.search(screen.raw), "in colour")
        screen.press("q")
        check(screen.wait() == 0 and screen.restored(), "q restores the terminal", screen.raw[-100:])


def test_resizing(site):
    """A new size is drawn at once, not a second later, from very small to large."""
    with top(site) as screen:
        screen.until(lambda s: "All is well" in s.text())
        for width, height in ((100, 30), (40, 6), (20, 2), (1, 1), (132, 50)):
            screen.read()
            mark, begun = len(screen.frames()), time.time()
            screen.resize(width, height)
            # The first that comes may have been drawn before.
            screen.until(lambda s: len(s.frames()) > mark and fits(s), what=f"a screen of {width} by {height}")
            took = time.time() - begun - PULSE.withheld(begun)
            check(took < 0.7, "at once", took)
        screen.until(lambda s: "q quits" in s.text())
        screen.press("q")
        check(screen.wait() == 0, "q")


def test_no_color(site):
    """NO_COLOR and a dumb terminal: not one colour."""
    for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        with top(site, **env) as screen:
            screen.until(lambda s: "All is well" in s.text())
            screen.press("q")
            check(screen.wait() == 0, "q")
            check(COLOUR.sub(b"", screen.raw).count(b"\x1b[") == screen.raw.count(b"\x1b[") - 1,
                  "no colour but the reset at the end", screen.raw[:300])


def test_an_agent_that_restarts(site):
    """Without an agent it says so and keeps what was; with the next one it goes on."""
    agent = site.edges[0].agent
    with top(site) as screen:
        screen.until(lambda s: "All is well" in s.text())
        agent.kill()
        # Not that it was reset, which is what a question that was under way is told.
        screen.until(lambda s: "NO AGENT ANSWERS. Below is what was" in s.text() and "Connection refused" in s.text())
        check("web" in screen.text(), "what was", screen.text())
        check(fits(screen), "it fits", screen.text())
        agent.start()
        screen.until(lambda s: "NO AGENT" not in s.text() and "All is well" in s.text())
        # One that hangs keeps no key from working.
        agent.send_signal(signal.SIGSTOP)
        try:
            moment = time.monotonic()
            screen.until(lambda s: time.monotonic() - moment > 1.5)
            pressed = time.time()
            screen.press("q")
            status = screen.wait()
            took = time.time() - pressed - PULSE.withheld(pressed)
            check(status == 0 and took < 1, "q at once", status, took)
        finally:
            agent.send_signal(signal.SIGCONT)
        check(screen.restored(), "and the terminal is back")


def test_signals(site):
    """^C, TERM and HUP give the terminal back; ^Z does, and comes back when it goes on."""
    for end in (lambda s: s.press("\x03"), lambda s: s.signal(signal.SIGTERM), lambda s: s.signal(signal.SIGHUP)):
        with top(site) as screen:
            screen.until(lambda s: "All is well" in s.text())
            end(screen)
            check(screen.wait() == 0 and screen.restored(), "restored", screen.raw[-80:])
    with top(site) as screen:
        screen.until(lambda s: "All is well" in s.text())
        screen.press("\x1a")
        eventually(screen.stopped, 10, "it stops")
        screen.until(lambda s: s.restored(), what="the shell gets its terminal back")
        screen.signal(signal.SIGCONT)
        screen.until(lambda s: s.raw.count(b"\x1b[?1049h") == 2 and "All is well" in s.text())
        screen.press("q")
        check(screen.wait() == 0 and screen.restored(), "restored")


def test_one_write_a_refresh(site):
    """A refresh is one write(2)."""
    if not shutil.which("strace"):
        skip("no strace")
    log = site.edges[0].host.path("top.strace")
    with top(site, prefix=("strace", "-qq", "-e", "trace=write", "-e", "signal=none", "-s", "20", "-o", log),
             ASAN_OPTIONS="detect_leaks=0") as screen:
        screen.until(lambda s: len(s.frames()) >= 4, timeout=15)
        screen.press("q")
        screen.wait(15)
    with open(log, encoding="utf-8", errors="replace") as f:
        writes = [line for line in f if line.startswith("write(1, ")]
    frames = [line for line in writes if "\\33[H" in line or "\\33[?1049h" in line]
    check(len(frames) >= 4 and len(writes) == len(frames) + 1, "one write a screen, and one to leave", writes)


def test_without_a_terminal(site):
    """In a pipe it is refused with what to use instead; --json is a document a line; no agent is said."""
    agent = site.edges[0].agent
    if not agent.process:
        untold(site)
    program = [os.path.join(build_folder(), "redshankctl"), "--socket", agent.socket]
    done = agent.ctl("top")
    check(done.returncode == 2 and "top: expected a terminal" in done.stderr and not done.stdout, "refused", done)
    with subprocess.Popen([*program, "--json", "top"], stdout=subprocess.PIPE, text=True) as live:
        try:
            lines = [json.loads(live.stdout.readline()) for _ in range(2)]
        finally:
            live.terminate()
    check(all(line["services"]["web"]["health"] == "healthy" for line in lines), "documents", lines)
    with subprocess.Popen([program[0], "--socket", b"/none/\xff", "--json", "top"], stdout=subprocess.PIPE, text=True) as live:
        try:
            check("no agent at /none/\\xff" in json.loads(live.stdout.readline())["error"], "an error a line, whatever its bytes")
        finally:
            live.terminate()
    with Screen([*program[:2], "/nonexistent/status.sock", "top"]) as screen:
        check(screen.wait() == 3 and b"no agent at /nonexistent/status.sock" in screen.raw, "no agent", screen.raw)
        check(b"\x1b[" not in screen.raw, "and the screen was left alone", screen.raw)


main(lambda: Site(edges=1))
