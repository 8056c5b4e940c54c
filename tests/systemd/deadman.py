"""The agent is gone for good: systemd gives it up, and redshank-deadman goes by the list.

Each service by its on_failure, for BIRD and for its next configure, whether BIRD runs, hangs or is away; and
the agent is tried again until it runs, or somebody stops it. A stop is never undone, however it ended.
"""

import os
import shutil
import socket
import subprocess
import time

from lib.agentctl import DEFAULTS, ROOT
from lib.case import check, eventually, main
from lib.machinesite import CONFIG, MachineSite

DNS, DNS6, WEB = "192.0.2.53/32", "2001:db8::53/128", "192.0.2.80/32"
SITE = {
    **CONFIG,
    "defaults": DEFAULTS,
    "services": {
        "dns": {**CONFIG["services"]["dns"], "on_failure": "withdraw", "on_stop": "keep"},
        "web": {"prefixes": {WEB: 50}, "address_check": False},
    },
}
BROKEN = "/etc/redshank/redshank.json"
SCRIPT = os.path.join(ROOT, "systemd", "redshank-deadman")
UNIT, DEADMAN = "redshank.service", "redshank-deadman.service"


def deadman_log(site):
    return site.machine.journal(DEADMAN)


def start(site):
    site.machine.systemctl("start", "bird.service", "nsd.service", UNIT)
    site.wait_sessions(["edge1"])
    for prefix in (DNS, DNS6, WEB):
        site.wait_announced(prefix, "edge1")


def fail_for_good(site):
    """Its configuration is broken and it is killed. Returns when systemd gave it up."""
    site.machine.write("/run/broken.json", "{")
    site.machine.run(["mount", "--bind", "/run/broken.json", BROKEN])
    runs = deadman_log(site).count("kept as it is announced")
    pid = int(site.machine.show(UNIT, "MainPID"))
    check(pid > 0, "the agent runs")
    site.machine.run(["kill", "-9", str(pid)])
    eventually(lambda: deadman_log(site).count("kept as it is announced") > runs, 60, what="the dead man has acted")


def mend(site):
    """The configuration is as it was, and the dead man's next try succeeds."""
    site.machine.run(["umount", BROKEN])
    eventually(lambda: site.machine.systemctl("is-active", UNIT, check=False) == "active", 60, what="the agent runs")
    site.wait_announced(DNS, "edge1")


def announced(site, prefix):
    return "edge1" in site.routes(prefix)


def test_list(site):
    """The list is there while the agent lives, and a reload writes it anew."""
    start(site)
    text = site.machine.run(["cat", "/run/redshank/bird/.deadman"]).stdout
    check(text == "redshank-deadman 1\nsocket /run/bird/bird.ctl\nwithdraw dns\nstopped-keep dns\n"
          "keep web\nstopped-withdraw web\n", "the list", text)


def test_withdraws_or_keeps(site):
    """dns leaves and web stays, also after a configure; when the configuration is mended both are as before."""
    begun = time.time()
    fail_for_good(site)
    eventually(lambda: not announced(site, DNS) and not announced(site, DNS6), what="dns is withdrawn")
    check(announced(site, WEB), "web is kept")
    changes = site.wire.since(begun, edge="edge1", prefix=WEB)
    check(not changes, "no UPDATE of what is kept", changes)
    answer = site.machine.run(["birdc", "-v", "configure"]).stdout
    check("0003" in answer, "BIRD has read its configuration again", answer)
    check(not announced(site, DNS) and announced(site, WEB), "the same after BIRD's configure")
    check("dns: withdrawn" in deadman_log(site) and "web: kept" in deadman_log(site), "it says so", deadman_log(site))
    mend(site)


def test_shed_returns(site):
    """What is shed of a service that is kept is announced again, for BIRD and for its next configure."""
    site.machine.run(["/opt/redshankctl", "drain", "web"])  # out, as a shed prefix is
    eventually(lambda: not announced(site, WEB), what="web is out")
    site.machine.run(["sh", "-c", "echo restore redshank:web:192.0.2.80 >>/run/redshank/bird/.deadman"])
    fail_for_good(site)
    site.wait_announced(WEB, "edge1")
    answer = site.machine.run(["birdc", "-v", "configure"]).stdout
    check("0003" in answer, "BIRD has read its configuration again", answer)
    check(announced(site, WEB), "the same after BIRD's configure", site.machine.run(["cat", "/run/redshank/bird/web.conf"]).stdout)
    check("redshank:web:192.0.2.80: was shed" in deadman_log(site), "it says so", deadman_log(site))
    mend(site)
    eventually(lambda: not announced(site, WEB), what="the agent is back, and knows better")
    site.machine.run(["/opt/redshankctl", "undrain", "web"])
    site.wait_announced(WEB, "edge1")


def test_stop_ends_it(site):
    """Who stops the agent that was given up stops the dead man's tries, too."""
    fail_for_good(site)
    eventually(lambda: site.machine.show(DEADMAN, "ActiveState") == "activating", what="it waits for the next try")
    site.machine.systemctl("stop", UNIT)
    eventually(lambda: site.machine.show(DEADMAN, "ActiveState") in ("inactive", "failed"), what="the dead man is stopped")
    site.machine.run(["umount", BROKEN])
    site.machine.systemctl("reset-failed", UNIT)
    start(site)


def test_bird_hangs(site):
    """A BIRD that does not answer is not waited for without end; the fragment says it when BIRD reads it."""
    bird = site.machine.show("bird.service", "MainPID")
    site.machine.run(["kill", "-STOP", bird])
    fail_for_good(site)
    check("dns: BIRD does not answer" in deadman_log(site), "it says so", deadman_log(site))
    text = site.machine.run(["cat", "/run/redshank/bird/dns.conf"]).stdout
    check(text.count("protocol ") == text.count("\tdisabled;") == 2, "the fragment is withdrawn", text)
    site.machine.run(["kill", "-CONT", bird])
    mend(site)


def test_bird_away(site):
    """Without a BIRD the fragment says it: the BIRD that starts next announces nothing of dns."""
    site.machine.systemctl("stop", "bird.service")
    fail_for_good(site)
    check("dns: no BIRD at" in deadman_log(site), "it says so", deadman_log(site))
    site.machine.systemctl("start", "bird.service")
    site.wait_sessions(["edge1"])
    site.wait_announced(WEB, "edge1")
    check(not announced(site, DNS), "what was withdrawn stays so")
    mend(site)


def deaf(site, seconds=1):
    """The agent does nothing of what systemd asks it for, as one that hangs, for so long. (STOP would not do: systemd
    sends CONT.)"""
    text = f"[Service]\nKillSignal=SIGWINCH\nRestartKillSignal=SIGWINCH\nTimeoutStopSec={seconds}s\n"
    site.machine.write("/run/systemd/system/redshank.service.d/z-deaf.conf", text)
    site.machine.systemctl("daemon-reload")


def not_deaf(site):
    site.machine.run(["rm", "/run/systemd/system/redshank.service.d/z-deaf.conf"])
    site.machine.systemctl("daemon-reload")


def dead_man_is_done(site, mark, what):
    eventually(lambda: what in deadman_log(site)[mark:] and site.machine.show(DEADMAN, "ActiveState") == "inactive", 60,
               lambda: deadman_log(site)[mark:])


def test_stop_that_is_forced(site):
    """An agent that hangs or dies while it is stopped: each service by its on_stop, nothing shed returns, no start."""
    for what, result in (("hangs", "timeout"), ("dies", "signal")):
        site.machine.run(["sh", "-c", "echo restore redshank:web:192.0.2.80 >>/run/redshank/bird/.deadman"])
        pid, mark = site.machine.show(UNIT, "MainPID"), len(deadman_log(site))
        deaf(site, 1 if what == "hangs" else 60)
        site.machine.systemctl("stop", "--no-block", UNIT)
        if what == "dies":
            eventually(lambda: site.machine.show(UNIT, "ActiveState") == "deactivating", what="it is stopped")
            site.machine.run(["kill", "-9", pid])
        dead_man_is_done(site, mark, "is not started again")
        seen = [site.machine.show(UNIT, key) for key in ("ActiveState", "Result", "NRestarts", "Job")]
        check(seen[:2] == ["failed", result] and seen[3] in ("", "0"), f"{what}: stays stopped", seen)
        eventually(lambda: not announced(site, WEB), 10, f"{what}: web is withdrawn, as its on_stop says")
        check(announced(site, DNS), f"{what}: dns is kept, as its on_stop says", deadman_log(site)[mark:])
        check("web: withdrawn" in deadman_log(site)[mark:], "it says so", deadman_log(site)[mark:])
        not_deaf(site)
        site.machine.systemctl("reset-failed", UNIT)
        start(site)


def test_restart_that_is_forced(site):
    """The next agent runs: what the dead man would do is not its matter, and no UPDATE is sent."""
    begun, mark, pid = time.time(), len(deadman_log(site)), site.machine.show(UNIT, "MainPID")
    deaf(site)
    site.machine.systemctl("restart", UNIT)
    dead_man_is_done(site, mark, "is started again already")
    check(site.machine.show(UNIT, "MainPID") not in (pid, "0"), "another agent")
    eventually(lambda: (site.status().get("bird") or {}).get("settled"), 10, "settled")
    changes = [c for prefix in (DNS, DNS6, WEB) for c in site.wire.since(begun, edge="edge1", prefix=prefix)]
    check(not changes, "no UPDATE", changes)
    not_deaf(site)


def run_script(site, lines, argv=("sh",), **fragments):
    """The script alone, without a BIRD: (exit code, what it said, {file: text} of what is left)."""
    folder = site.router.path(f"fragments-{time.monotonic_ns()}")
    os.mkdir(folder)
    for name, text in [(".deadman", "".join(f"{line}\n" for line in lines))] * bool(lines) + list(fragments.items()):
        with open(os.path.join(folder, name.replace("__ready", "")), "w", encoding="utf-8") as f:
            f.write(text)
        if name.endswith("__ready"):
            os.rename(os.path.join(folder, name[:-7]), os.path.join(folder, f".{name[:-7]}.conf.withdrawn"))
        elif name != ".deadman":
            os.rename(os.path.join(folder, name), os.path.join(folder, f"{name}.conf"))
    done = subprocess.run([*argv, SCRIPT, folder], capture_output=True, text=True, timeout=30, check=False)
    left = {}
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), encoding="utf-8") as f:
            left[name] = f.read()
    left.pop(".deadman", None)
    return done.returncode, done.stderr, left


def test_files(site):
    """The fragment is withdrawn by what lies ready, stays where it is so already, and else is no more."""
    up = "protocol static 'redshank:a:192.0.2.1' {\n\tipv4;\n}\n"
    down = up.replace("ipv4;", "disabled;\n\tipv4;")
    other = down.replace("192.0.2.1'", "192.0.2.2'")
    head = ["redshank-deadman 1", f"socket {site.router.path('no-bird.ctl')}"]
    withdraw = [*head, "withdraw a"]
    for what, lines, fragments, code, left in (
        ("what lies ready", withdraw, {"a": up, "a__ready": down}, 0, {"a.conf": down}),
        ("withdrawn already", withdraw, {"a": down}, 0, {"a.conf": down}),
        ("nothing lies ready", withdraw, {"a": up}, 0, {}),
        ("one of two is up", withdraw, {"a": down + up}, 0, {}),
        ("no fragment at all", withdraw, {}, 0, {}),
        ("kept", [*head, "keep a"], {"a": up, "a__ready": down}, 0, {"a.conf": up, ".a.conf.withdrawn": down}),
        ("a name that leads elsewhere", [*head, "withdraw ../a", "withdraw a"], {"a": up}, 1, {}),
        ("shed, and kept", [*head, "keep a", "restore redshank:a:192.0.2.1"], {"a": down + other}, 0, {"a.conf": up + other}),
        ("announced already", [*head, "restore redshank:a:192.0.2.1"], {"a": up + other}, 0, {"a.conf": up + other}),
        ("another protocol", [*head, "restore redshank:a:192.0.2.3"], {"a": down + other}, 0, {"a.conf": down + other}),
        ("no protocol's name", [*head, "restore redshank:a:$(x)/", "restore ../a"], {"a": down}, 1, {"a.conf": down}),
        ("a word of another agent", [*head, "postpone a"], {"a": up}, 1, {"a.conf": up}),
        ("another version", ["redshank-deadman 2", "withdraw a"], {"a": up}, 2, {"a.conf": up}),
        ("no list", [], {"a": up}, 2, {"a.conf": up}),
    ):
        seen = run_script(site, lines, **fragments)
        check((seen[0], seen[2]) == (code, left), what, seen)
        asks = any(line.startswith(("withdraw a", "restore redshank:a:1")) for line in lines)
        check("no BIRD at" in seen[1] or not asks or code == 2, "a BIRD that is away is said", seen)


def test_birdc(site):
    """Only where nobody listens there is no BIRD. All else is said, and the exit tells of it."""
    socket_path, tools = site.router.path("some.ctl"), site.router.path("tools")
    os.mkdir(tools)
    for tool in ("sh", "timeout", "grep", "mv", "rm"):
        os.symlink(shutil.which(tool), os.path.join(tools, tool))
    birdc = os.path.join(tools, "birdc")
    lines = ["redshank-deadman 1", f"socket {socket_path}", "withdraw a"]
    up = "protocol static 'redshank:a:192.0.2.1' {\n\tipv4;\n}\n"
    unable = f"Unable to connect to server control socket ({socket_path}): "
    ok = "0001 BIRD 2.0.12 ready.\n"

    def see(what, code, said, argv=("env", f"PATH={tools}", "sh")):
        seen = run_script(site, lines, argv, a=up)
        check((seen[0], seen[2]) == (code, {}) and said in seen[1], what, seen)
        check(("a: withdrawn" in seen[1]) == (code == 0), f"{what}: withdrawn or not", seen)

    see("no birdc", 1, "could not be told")
    for what, exit_code, text, code, said in (
        ("no socket", 1, unable + "No such file or directory", 0, "no BIRD at"),
        ("nobody listens", 1, unable + "Connection refused", 0, "no BIRD at"),
        ("not allowed", 1, unable + "Permission denied", 1, "could not be told"),
        ("no room", 1, unable + "Resource temporarily unavailable", 1, "could not be told"),
        ("another error with its words", 1, "birdc: libreadline.so: No such file or directory", 1, "could not be told"),
        ("an unknown option", 1, "Usage: birdc [-s <control-socket>]", 1, "could not be told"),
        ("a library is missing", 127, "birdc: error while loading shared libraries", 1, "could not be told"),
        ("it may not be run", 126, "Permission denied", 1, "could not be told"),
        ("it was killed", 137, "", 1, "could not be told"),
        ("BIRD refuses", 0, ok + "8007 Access denied", 1, "BIRD refuses"),
        ("BIRD has none", 0, ok + "8003 No protocols match", 0, ""),
        ("done", 0, ok + "0009 redshank:a:192.0.2.1: disabled", 0, ""),
    ):
        with open(birdc, "w", encoding="utf-8") as f:
            f.write(f"#!/bin/sh\nprintf '%s\\n' '{text}'\nexit {exit_code}\n")
        os.chmod(birdc, 0o755)
        see(what, code, said)
    # And the real one.
    see("no socket for the real birdc", 0, "No such file or directory", ("sh",))
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(socket_path)
        see("nobody listens, for the real birdc", 0, "Connection refused", ("sh",))


def test_birdc_may_not(site):
    """A BIRD whose socket the dead man may not use announces on, and is not taken for one that is away."""
    site.machine.run(["chmod", "0700", "/run/bird/bird.ctl"])
    fail_for_good(site)
    check("dns: BIRD could not be told" in deadman_log(site) and "Permission denied" in deadman_log(site), "it says so",
          deadman_log(site))
    site.machine.run(["chmod", "0660", "/run/bird/bird.ctl"])
    mend(site)


def impatient():
    """As shipped, but for the time before the agent's next try."""
    with open(os.path.join(ROOT, "systemd", DEADMAN), encoding="utf-8") as f:
        unit = f.read().replace("/usr/libexec/redshank/", "/opt/")
    return {f"/etc/systemd/system/{DEADMAN}": unit.replace("--again 10", "--again 3")}


main(lambda: MachineSite(config=SITE, files=impatient(), dropin="TimeoutStopSec=1s\n"))
