"""Repair by a real systemd: what is restarted, what is left alone, and who lets the agent do it.

The agent runs as its own user by the unit that is shipped, so every restart goes through polkit, with the
rule that is shipped and a unit written into its list.
"""

import json
import os
import time

from lib.agentctl import DEFAULTS, ROOT
from lib.case import check, eventually, main, skip
from lib.machinesite import CONFIG, MachineSite
from lib.pulse import Pulse

DNS = "192.0.2.53/32"
PULSE = Pulse()
RULES = "/etc/polkit-1/rules.d/50-redshank.rules"
RESTART = {"unit": "nsd.service", "delay": "200ms", "limit": 20, "per": "10m", "checks": ["process", "answers"]}
NOTES = "/run/redshank/notes"
NOTE = "echo $(date +%s.%N) $REDSHANK_EVENT $REDSHANK_TO $REDSHANK_WANTED $REDSHANK_PREFIXES >>" + NOTES
HOOKS = {"note": {"command": ["/bin/sh", "-c", NOTE], "on": ["service"]}}
SERVICE = CONFIG["services"]["dns"]
ANSWERS = {"type": "dns", "server": "192.0.2.53", "name": "id.example.net", "rrtype": "TXT"}
SITE = {
    **CONFIG,
    "defaults": DEFAULTS,
    "services": {
        "dns": {**SERVICE, "checks": {**SERVICE["checks"], "answers": ANSWERS}, "restart": RESTART, "hooks": HOOKS}
    },
}
# Debian's unit is restarted by systemd itself; here that is the agent's part.
NSD = "[Unit]\nStartLimitIntervalSec=0\n[Service]\nRestart=no\n"
POLKIT_ON_THE_BUS = "/usr/share/dbus-1/system-services/org.freedesktop.PolicyKit1.service"
POLKITD = "/usr/lib/polkit-1/polkitd"


def rule(*units):
    """The rule as it is shipped, with units in its list."""
    with open(os.path.join(ROOT, "systemd", "redshank.rules"), encoding="utf-8") as f:
        text = f.read()
    check('// "nsd.service",' in text, "the list is where it was", text)
    return text.replace('// "nsd.service",', "".join(f'"{unit}", ' for unit in units))


def make_site():
    if not os.path.exists(POLKITD):
        skip("not installed: polkitd")
    files = {
        "/etc/systemd/system/nsd.service.d/norestart.conf": NSD,
        "/etc/sysusers.d/polkit.conf": "u polkitd - \"polkit\" /nonexistent\n",
    }
    site = MachineSite(config=SITE, files=files)
    site.machine.systemctl("start", "bird.service", "nsd.service", "redshank.service")
    site.wait_sessions(["edge1"])
    site.wait_announced(DNS, "edge1")
    return site


def dns(site):
    return site.status().get("services", {}).get("dns", {})


def healthy(site):
    return dns(site).get("health") == "healthy"


def repair(site):
    return dns(site).get("repair") or {}


def log(site):
    return site.machine.journal("redshank.service")


def said(site, mark, text):
    return text in log(site)[mark:]


def wait_said(site, mark, text):
    """The journal comes behind."""
    eventually(lambda: said(site, mark, text), 10, lambda: f"{text!r} in the log\n{log(site)[mark:]}")


NOT_STARTED = "nsd.service was not started: failed"


def nsd_pid(site):
    return site.machine.show("nsd.service", "MainPID")


def kill_nsd(site, signal="KILL"):
    site.machine.systemctl("kill", "--kill-whom=main", f"--signal={signal}", "nsd.service")


def notes(site):
    """What the hook has written: (time, the rest of the line)."""
    lines = site.machine.run(["cat", NOTES], check=False).stdout.splitlines()
    return [(float(line.split()[0]), line.split(maxsplit=1)[1]) for line in lines]


def denied(site):
    """nsd dies; the agent is not let, says so, and is well again when somebody has started nsd."""
    eventually(lambda: healthy(site), what="healthy")
    mark, begun = len(log(site)), time.time()
    kill_nsd(site)
    site.wire.wait_withdraw("edge1", DNS, since=begun)
    eventually(lambda: said(site, mark, "systemd does not let us: "), 10, lambda: log(site)[mark:])
    check(repair(site).get("state") == "denied", "denied", repair(site))
    check(repair(site).get("attempts") == 0, "is no attempt", repair(site))
    check(site.machine.show("nsd.service", "ActiveState") == "failed", "left as it was")
    explained = " ".join(site.machine.run([site.ctl, "explain", "dns"]).stdout.split())
    check("a polkit rule has to name it" in explained, "explained", explained)
    site.machine.systemctl("start", "nsd.service")
    eventually(lambda: healthy(site) and repair(site).get("state") == "idle", 20, lambda: dns(site))
    site.wait_announced(DNS, "edge1")
    check(log(site)[mark:].count("systemd does not let us") == 1, "said once", log(site)[mark:])


def test_without_polkit(site):
    """Where there is no polkit, or it is masked, access is denied, and nothing else suffers."""
    site.machine.systemctl("mask", "--runtime", "polkit.service")
    denied(site)
    site.machine.systemctl("unmask", "--runtime", "polkit.service")
    site.machine.run(["mount", "--bind", "/dev/null", POLKIT_ON_THE_BUS])
    site.machine.systemctl("reload", "dbus.service")
    denied(site)
    site.machine.run(["umount", POLKIT_ON_THE_BUS])
    site.machine.systemctl("reload", "dbus.service")


def test_without_rule(site):
    """The same without a rule: polkit says no."""
    denied(site)
    check(site.machine.systemctl("is-active", "polkit.service") == "active", "it was asked")


def test_hook(site):
    """A hook is told of the death, after the withdrawal."""
    begun = time.time()
    kill_nsd(site)
    gone = site.wire.wait_withdraw("edge1", DNS, since=begun)

    def of_the_death():  # that of a return before may come late
        return next((note for note in notes(site) if note[0] >= begun and "unhealthy" in note[1]), None)

    when, what = eventually(of_the_death, 10, lambda: log(site))
    check(what == "service unhealthy withdraw 192.0.2.53/32 2001:db8::53/128", "what it gets", what)
    # The command to BIRD comes first (netns-hot-path); BIRD may then hold its UPDATE back for 40 ms, and a busy machine BIRD.
    check(when > gone.time - 0.2 - PULSE.withheld(begun), "after the withdrawal", when - gone.time)
    site.machine.systemctl("start", "nsd.service")
    eventually(lambda: healthy(site), 20, lambda: dns(site))


def may(site, *words):
    """May the agent's user do that?"""
    return site.machine.run(["setpriv", "--reuid=redshank", "--regid=redshank", "--clear-groups",
                             "busctl", "call", "org.freedesktop.systemd1", "/org/freedesktop/systemd1",
                             "org.freedesktop.systemd1.Manager", *words], check=False).returncode == 0


def test_rule(site):
    """The rule lets the agent start and restart the units of its list, and nothing else."""
    site.machine.write(RULES, rule("nsd.service"))
    eventually(lambda: may(site, "StartUnit", "ss", "nsd.service", "fail"), 10, "the rule is taken up")
    check(may(site, "TryRestartUnit", "ss", "nsd.service", "fail"), "restart")
    eventually(lambda: healthy(site), 20, lambda: dns(site))
    for words in (("StopUnit", "ss", "nsd.service", "fail"), ("StartUnit", "ss", "bird.service", "fail"),
                  ("RestartUnit", "ss", "nsd.service", "fail"), ("MaskUnitFiles", "asbb", "1", "nsd.service", "1", "0")):
        check(not may(site, *words), "not allowed: " + " ".join(words))


def test_crash(site):
    """With the rule a dead service is started again, and returns when its checks have risen."""
    mark, begun, pid, before = len(log(site)), time.time(), nsd_pid(site), repair(site)["attempts"]
    kill_nsd(site)
    gone = site.wire.wait_withdraw("edge1", DNS, since=begun)
    back = site.wire.wait_announce("edge1", DNS, since=gone.time, timeout=20)
    check(nsd_pid(site) not in (pid, "0"), "another process")
    wait_said(site, mark, f"starting nsd.service, attempt {before + 1} of 20")
    wait_said(site, mark, "nsd.service was started")
    check(back.time - begun > 0.2, "not before the delay", back.time - begun)
    eventually(lambda: repair(site).get("state") == "idle", what="idle")
    check((repair(site)["attempts"], repair(site)["last_result"]) == (before + 1, "done"), "counted", repair(site))


def configure(site, config):
    """The agent takes this configuration."""
    site.machine.write("/run/other.json", json.dumps(config))
    site.machine.run(["mount", "--bind", "/run/other.json", "/etc/redshank/redshank.json"])
    site.machine.run([site.ctl, "reload"])


def configure_back(site):
    site.machine.run(["umount", "/etc/redshank/redshank.json"])
    site.machine.run([site.ctl, "reload"])
    eventually(lambda: healthy(site) and repair(site).get("state") == "idle", 20, lambda: dns(site))


def in_a_row(check_of):
    """The good outcomes that a check of the status ends with."""
    outcomes = check_of["outcomes"][::-1]
    return next((n for n, outcome in enumerate(outcomes) if outcome != "good"), len(outcomes))


def test_rise(site):
    """After a restart a service is back with the `rise`-th good outcome of the slowest of its checks, and not before."""
    service, rise = SITE["services"]["dns"], {"process": 2, "port": 3, "answers": 9}
    checks = {name: {**one, "rise": rise[name]} for name, one in service["checks"].items()}
    checks["answers"]["interval"] = "1h"  # it is asked at once after a death, and soon again, or the test would end first
    configure(site, {**SITE, "services": {"dns": {**service, "checks": checks}}})
    eventually(lambda: healthy(site) and repair(site).get("state") == "idle", 20, lambda: dns(site))
    begun = time.time()
    kill_nsd(site)
    gone = site.wire.wait_withdraw("edge1", DNS, since=begun)
    seen = []  # before the question, what it said

    def is_back():
        seen.append((time.time(), dns(site)["checks"]))
        return site.wire.since(gone.time + 0.001, edge="edge1", kinds=("announce",))

    back = eventually(is_back, 30, lambda: dns(site), every=0.05)[0]
    rising = [(when, {name: in_a_row(one) for name, one in told.items()}) for when, told in seen if when < back.time]
    check(any(2 < told["answers"] < rise["answers"] and told["port"] >= rise["port"] for _, told in rising),
          "it was seen on its way, when the others were up", rising)
    after = dns(site)["checks"]
    for name, needs in rise.items():
        check(in_a_row(after[name]) >= needs and after[name]["state"] == "up", f"{name} is up by {needs}", after[name])
    check(back.time > gone.time + 0.2 + (rise["answers"] - 1) * 0.1, "after the delay and eight intervals", back.time - gone.time)
    wrong = [(when, told) for when, told in seen if told["answers"]["state"] == "up" and in_a_row(told["answers"]) < rise["answers"]
             and "bad" in told["answers"]["outcomes"][-rise["answers"]:]]
    check(not wrong, "it was never up by fewer", wrong)
    configure_back(site)


GHOST, HAUNTED = "192.0.2.98/32", "/run/redshank/haunted"
GHOSTS = {
    "prefixes": {GHOST: 50}, "address_check": False,
    "checks": {"haunted": {"type": "exec", "command": ["/usr/bin/test", "-e", HAUNTED]}},
    "restart": {"unit": "ghost.service", "delay": "200ms", "checks": ["haunted"]},
}


def test_missing(site):
    """A unit that systemd does not know is told once and asked for no more; others are repaired; when it is there it is seen."""
    def ghost():
        return site.status().get("services", {}).get("ghost", {})

    def state():
        return (ghost().get("repair") or {}).get("state")

    site.machine.write(RULES, rule("nsd.service", "ghost.service"))
    mark = len(log(site))
    configure(site, {**SITE, "services": {**SITE["services"], "ghost": GHOSTS}})
    eventually(lambda: state() == "missing", 20, ghost)
    wait_said(site, mark, "ghost.service")
    for words in (["explain", "ghost"], ["status"]):
        said = " ".join(site.machine.run([site.ctl, *words], check=False).stdout.split())
        check("systemd has no unit that can be started called ghost.service" in said, f"redshankctl {words[0]} says it", said)
    before = repair(site)["attempts"]
    kill_nsd(site)
    eventually(lambda: healthy(site) and repair(site).get("attempts") == before + 1, 20, lambda: dns(site))
    told = log(site)[mark:].count("ghost.service")
    check((told, state(), ghost()["repair"]["attempts"]) == (1, "missing", 0), "said once, and tried no more", log(site)[mark:])
    site.machine.write("/run/systemd/system/ghost.service",
                       f"[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/usr/bin/touch {HAUNTED}\n")
    site.machine.systemctl("daemon-reload")
    for word in ("drain", "undrain"):  # somebody does not wait for the five minutes
        site.machine.run([site.ctl, word, "ghost"])
    eventually(lambda: state() == "stopped", 20, ghost)  # one that was never started is left so
    site.machine.systemctl("start", "ghost.service")
    eventually(lambda: ghost().get("health") == "healthy" and state() == "idle", 20, ghost)
    configure_back(site)


def test_stopped(site):
    """A unit that was stopped on purpose stays stopped."""
    mark, before = len(log(site)), repair(site)["attempts"]
    site.machine.systemctl("stop", "nsd.service")
    eventually(lambda: repair(site).get("state") == "stopped", 20, lambda: repair(site))
    wait_said(site, mark, "nsd.service was stopped")
    check(site.machine.show("nsd.service", "ActiveState") == "inactive", "stays stopped")
    site.machine.systemctl("start", "nsd.service")
    eventually(lambda: healthy(site), 20, "healthy")
    check(repair(site)["attempts"] == before, "no attempt", repair(site))


def test_stopped_badly(site):
    """Also one that fails when it is stopped."""
    before = repair(site)["attempts"]
    site.machine.write("/run/systemd/system/nsd.service.d/kill.conf", "[Service]\nKillSignal=SIGKILL\n")
    site.machine.systemctl("daemon-reload")
    site.machine.systemctl("stop", "nsd.service")
    check(site.machine.show("nsd.service", "ActiveState") == "failed", "fails",
          site.machine.show("nsd.service", "ActiveState"))
    eventually(lambda: repair(site).get("state") == "stopped", 20, lambda: repair(site))
    site.machine.run(["rm", "-r", "/run/systemd/system/nsd.service.d"])
    site.machine.systemctl("daemon-reload")
    site.machine.systemctl("start", "nsd.service")
    eventually(lambda: healthy(site), 20, "healthy")
    check(repair(site)["attempts"] == before, "no attempt", repair(site))


def test_drained(site):
    """While it is drained nothing is restarted; when the drain ends it is."""
    before = repair(site)["attempts"]
    site.machine.run([site.ctl, "drain", "dns"])
    kill_nsd(site)
    eventually(lambda: repair(site).get("state") == "held", 20, lambda: repair(site))
    begun = time.time()
    eventually(lambda: time.time() > begun + 1, what="five times the delay")
    check(site.machine.show("nsd.service", "ActiveState") == "failed", "left alone")
    site.machine.run([site.ctl, "undrain", "dns"])
    eventually(lambda: healthy(site), 20, lambda: dns(site))
    check(repair(site)["attempts"] == before + 1, "one attempt more", repair(site))


def test_systemd_too(site):
    """Where systemd restarts the unit itself, that is left to it."""
    site.machine.write("/run/systemd/system/nsd.service.d/restart.conf", "[Service]\nRestart=on-failure\nRestartSec=4s\n")
    site.machine.systemctl("daemon-reload")
    # /etc stands before /run: a name that comes later than norestart.conf counts.
    check(site.machine.show("nsd.service", "Restart") == "on-failure", "systemd's part")
    mark, before = len(log(site)), repair(site)["attempts"]
    kill_nsd(site)
    eventually(lambda: repair(site).get("state") == "left", 20, lambda: repair(site))
    eventually(lambda: healthy(site), 20, lambda: dns(site))
    wait_said(site, mark, "left to systemd")
    check(repair(site)["attempts"] == before, "no attempt", repair(site))
    site.machine.run(["rm", "-r", "/run/systemd/system/nsd.service.d"])
    site.machine.systemctl("daemon-reload")


def test_does_not_start(site):
    """A unit that does not start is tried again after growing pauses, and each try is counted."""
    site.machine.write("/run/systemd/system/nsd.service.d/broken.conf", "[Service]\nExecStartPre=/bin/false\n")
    site.machine.systemctl("daemon-reload")
    mark, before = len(log(site)), repair(site)["attempts"]
    kill_nsd(site)
    eventually(lambda: log(site)[mark:].count(NOT_STARTED) >= 2, 20, lambda: log(site)[mark:])

    def counted():  # the next attempt may be under way
        seen, told = repair(site), log(site)[mark:].count(NOT_STARTED)
        return seen.get("attempts") == before + told and seen.get("last_result") == "failed"

    eventually(counted, 20, lambda: f"counted: {repair(site)}\n{log(site)[mark:]}")
    site.machine.run(["rm", "-r", "/run/systemd/system/nsd.service.d"])
    site.machine.systemctl("daemon-reload")
    eventually(lambda: healthy(site), 20, lambda: dns(site))


def test_metrics(site):
    """The metrics count what came of each attempt, and of each hook."""
    eventually(lambda: repair(site).get("state") == "idle", 20, lambda: repair(site))

    def scrape():
        text = site.machine.run(["curl", "-sS", "--unix-socket", "/run/redshank/status.sock", "http://x/metrics"]).stdout
        return dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))

    eventually(lambda: int(scrape()['redshank_hooks_total{result="done"}']) == len(notes(site)), 10, lambda: f"hooks: {notes(site)}")
    samples = scrape()

    def restarts(result):
        return int(samples[f'redshank_service_restarts_total{{service="dns",result="{result}"}}'])

    check(restarts("failed") == log(site).count(NOT_STARTED) >= 2 and restarts("denied") >= 3, "failed, denied",
          restarts("failed"), restarts("denied"))
    check(restarts("done") + restarts("failed") == repair(site)["attempts"], "attempts", repair(site))
    check(samples['redshank_service_repair_state{service="dns",state="idle"}'] == "1", "idle")


def test_hangs(site):
    """A unit that runs and does not answer is restarted by a check that asks it."""
    eventually(lambda: repair(site).get("state") == "idle", 20, lambda: repair(site))
    before, mark, pid = repair(site)["attempts"], len(log(site)), nsd_pid(site)
    site.machine.systemctl("kill", "--signal=STOP", "nsd.service")
    eventually(lambda: said(site, mark, "restarting nsd.service"), 20, lambda: log(site)[mark:])
    eventually(lambda: healthy(site) and nsd_pid(site) != pid, 20, lambda: dns(site))
    check(repair(site)["attempts"] == before + 1, "one attempt", repair(site))


def test_frozen(site):
    """While the server is frozen nothing is restarted; after the thaw it is."""
    eventually(lambda: repair(site).get("state") == "idle", 20, lambda: repair(site))
    site.machine.run([site.ctl, "freeze"])
    kill_nsd(site)
    eventually(lambda: repair(site).get("state") == "held", 20, lambda: repair(site))
    check(site.machine.show("nsd.service", "ActiveState") == "failed", "left alone")
    site.machine.run([site.ctl, "thaw"])
    eventually(lambda: healthy(site), 20, lambda: dns(site))


def test_killed_agent(site):
    """The agent that comes after a kill, or a restart, counts on; the file is in the folder that the unit lets it write."""
    eventually(lambda: repair(site).get("state") == "idle", 20, lambda: repair(site))
    before = repair(site)["attempts"]
    check(before > 3, "some", before)
    for words in (["kill", "--signal=KILL", "redshank.service"], ["restart", "redshank.service"]):
        pid = site.machine.show("redshank.service", "MainPID")
        site.machine.systemctl(*words)
        eventually(lambda: site.machine.show("redshank.service", "MainPID") not in ("0", pid) and healthy(site), 20,
                   lambda: dns(site))
        check(repair(site)["attempts"] == before, "none is forgotten", before, repair(site))


def test_limit(site):
    """One that does not get well is tried `limit` times, and then no more; it says so, until somebody helps."""
    limited = {**SITE, "services": {"dns": {**SITE["services"]["dns"], "restart": {**RESTART, "limit": 2}}}}
    site.machine.write("/run/limited.json", json.dumps(limited))
    site.machine.run(["mount", "--bind", "/run/limited.json", "/etc/redshank/redshank.json"])
    site.machine.systemctl("stop", "redshank.service")
    site.machine.run(["sh", "-c", "rm /run/redshank/bird/.restarts"])  # the attempts of before
    site.machine.systemctl("start", "redshank.service")
    eventually(lambda: healthy(site) and repair(site).get("attempts") == 0, 20, lambda: dns(site))
    site.machine.write("/run/systemd/system/nsd.service.d/broken.conf", "[Service]\nExecStartPre=/bin/false\n")
    site.machine.systemctl("daemon-reload")
    mark, tries = len(log(site)), site.machine.journal("nsd.service").count("Starting nsd.service")
    kill_nsd(site)
    eventually(lambda: repair(site).get("state") == "exhausted", 20, lambda: repair(site))
    begun = time.time()
    eventually(lambda: time.time() > begun + 3, what="longer than the next pause would be")
    check(repair(site)["state"] == "exhausted" and repair(site)["attempts"] == 2, "no more", repair(site))
    tried = site.machine.journal("nsd.service").count("Starting nsd.service") - tries
    check(tried == 2, "systemd was asked twice", tried)
    check(log(site)[mark:].count("was restarted 2 times within 600 s and did not get well") == 1, "told once", log(site)[mark:])
    for words in (["explain", "dns"], ["status"]):
        said = " ".join(site.machine.run([site.ctl, *words], check=False).stdout.split())
        check("did not help" in said, f"redshankctl {words[0]} shows it", said)
    site.machine.run(["rm", "-r", "/run/systemd/system/nsd.service.d"])
    site.machine.systemctl("daemon-reload")
    site.machine.systemctl("start", "nsd.service")
    eventually(lambda: healthy(site) and repair(site)["state"] == "idle", 20, lambda: dns(site))


main(make_site)
