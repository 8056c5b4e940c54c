"""redshank.service and its generator, as they are shipped, under a real systemd.

What it may not do, that it still sees what it must, that a hung agent is replaced without a word to
the routers, and that it stops before what it watches.
"""

import json
import os
import re
import subprocess
import time

from lib.agentctl import ROOT, DEFAULTS
from lib.case import check, eventually, main
from lib.machinesite import CONFIG, MachineSite

DNS = "192.0.2.53/32"
UNIT = os.path.join(ROOT, "systemd", "redshank.service")
EXAMPLES = os.path.join(ROOT, "docs", "examples")
CATALOG = os.path.join(ROOT, "systemd", "package", "redshank.catalog")
CAP_NET_ADMIN = 12
EXPOSURE = 1.8  # of 10, as systemd-analyze counts

# nsd is another user's process; the command runs under the agent's rules.
CHECKS = {
    "process": {"type": "process", "unit": "nsd.service"},
    "name": {"type": "process", "executable": "nsd: xfrd"},
    "command": {"type": "exec", "command": ["/usr/bin/sh", "-c", "test -e /proc/1/stat && id -un"]},
}
SITE = {**CONFIG, "defaults": DEFAULTS, "services": {"dns": {**CONFIG["services"]["dns"], "checks": CHECKS}}}
WATCHDOG = "WatchdogSec=3s\n"  # a machine that stands still for two is no agent that hangs


def analyze(*words):
    return subprocess.run(["systemd-analyze", "--no-pager", *words], capture_output=True, text=True, check=False)


def agent_pid(site):
    return site.machine.show("redshank.service", "MainPID")


def restarts(site):
    return int(site.machine.show("redshank.service", "NRestarts"))


def healthy(site):
    return site.status().get("services", {}).get("dns", {}).get("health") == "healthy"


def test_verify(site):
    """systemd-analyze has nothing to say of the unit, and counts its exposure at 1.8 or less."""
    copy = site.router.path("redshank.service")
    with open(UNIT, encoding="utf-8") as f, open(copy, "w", encoding="utf-8") as to:
        to.write(f.read().replace("/usr/sbin/redshankd", "/bin/true"))
    done = analyze("verify", "--man=no", copy)
    check(done.returncode == 0 and not done.stderr, "verify is silent", done.stderr)
    done = analyze("security", "--offline=true", UNIT)
    level = re.search(r"exposure level for .*: ([0-9.]+)", done.stdout)
    check(level and float(level[1]) <= EXPOSURE, f"exposure at most {EXPOSURE}", done.stdout[-100:])
    with open(UNIT, encoding="utf-8") as f:
        hidden = re.findall(r"^(?:ProtectProc|ProcSubset)=.*", f.read(), re.M)
    check(not hidden, "the processes of others are not hidden", hidden)


def test_rules(site):
    """The agent runs as redshank in group bird, without a capability, and its checks see what they must."""
    site.machine.systemctl("start", "bird.service", "nsd.service", "redshank.service")
    site.wait_sessions(["edge1"])
    site.wait_announced(DNS, "edge1")
    eventually(lambda: healthy(site), what="every check is up")
    status = site.machine.run(["cat", f"/proc/{agent_pid(site)}/status"]).stdout
    facts = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    for what in ("CapPrm", "CapEff", "CapBnd", "CapAmb"):
        check(int(facts[what], 16) == 0, f"{what} is empty", facts[what])
    check(facts["NoNewPrivs"] == "1" and facts["Seccomp"] == "2", "no new privileges, system calls filtered", facts)
    ids = site.machine.run(["sh", "-c", "id -u redshank; getent group bird | cut -d: -f3"]).stdout.split()
    check(facts["Uid"].split() == [ids[0]] * 4, "runs as redshank", facts["Uid"])
    check(ids[1] in facts["Groups"].split(), "is in group bird", facts["Groups"])
    reason = site.status()["services"]["dns"]["checks"]["command"]["reason"]
    check("redshank" in reason, "its commands are redshank, too", reason)
    socket = site.machine.run(["stat", "-c", "%U:%G %a", "/run/redshank/status.sock"]).stdout.strip()
    check(socket == "redshank:redshank 660", "the status socket is its group's", socket)
    refused = [line for line in site.machine.journal("redshank.service").splitlines() if "not permitted" in line]
    check(not refused, "nothing that the agent does is against the rules", refused)
    check(site.machine.run(["stat", "-c", "%U %a", "/var/lib/redshank"]).stdout.split() == ["redshank", "750"],
          "a folder for its state")


def logged(site, *match):
    """The agent's entries of the journal with these fields, oldest first, as dicts."""
    done = site.machine.run(["journalctl", "-q", "-u", "redshank.service", "-o", "json", "--all", *match])
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_journal(site):
    """What happened has its facts as fields of the journal, the same as in the events, and a catalog's help."""
    site.machine.run(["kill", "-9", site.machine.show("nsd.service", "MainPID")])
    down = ["REDSHANK_EVENT=service", "REDSHANK_SERVICE=dns", "REDSHANK_TO=unhealthy"]
    eventually(lambda: logged(site, *down), what="the death is in the journal")
    entry = logged(site, *down)[-1]
    wanted = {"REDSHANK_FROM": "healthy", "REDSHANK_WANTED": "withdraw", "REDSHANK_RULE": "unhealthy",
              "REDSHANK_PREFIX_COUNT": "2", "PRIORITY": "6", "SYSLOG_IDENTIFIER": "redshankd"}
    check({key: entry.get(key) for key in wanted} == wanted, f"it has {wanted}", entry)
    check(sorted(entry["REDSHANK_PREFIX"]) == sorted([DNS, "2001:db8::53/128"]), "both prefixes", entry)
    check("process" in entry["REDSHANK_REASON"], "the reason", entry)
    site.machine.run([site.ctl, "drain", DNS, "--for", "1s", "--reason", 'new "disks"\nPRIORITY=0'])
    eventually(lambda: logged(site, "REDSHANK_EVENT=word_ended"), what="the drain ends")
    said = logged(site, "REDSHANK_EVENT=drain", f"REDSHANK_PREFIX={DNS}")[-1]
    wanted = {"REDSHANK_WHY": 'new "disks"\\x0aPRIORITY=0', "PRIORITY": "5", "REDSHANK_TO": "drained"}
    check({key: said.get(key) for key in wanted} == wanted, f"the drain has {wanted}", said)
    check(said["REDSHANK_WHO"].startswith("root (uid 0, pid ") and "REDSHANK_UNTIL" in said, "who, until when", said)

    events = site.machine.run([site.ctl, "--json", "events"]).stdout.splitlines()
    messages = [json.loads(line)["message"] for line in events]
    check(entry["MESSAGE"] in messages and said["MESSAGE"] in messages, "the events have the same lines", messages)
    kept = [entry["MESSAGE"] for entry in logged(site) if "REDSHANK_EVENT" in entry]  # and what came since
    check(any(kept[at:at + len(messages)] == messages for at in range(len(kept))), "all of them, in that order", kept, messages)
    with open(CATALOG, encoding="utf-8") as f:
        site.machine.write("/run/catalog/redshank.catalog", f.read())
    site.machine.run(["mount", "--bind", "/run/catalog", "/usr/lib/systemd/catalog"])
    site.machine.run(["journalctl", "--update-catalog"])
    told = site.machine.run(["journalctl", "-q", "-x", "-u", "redshank.service", *down]).stdout
    site.machine.run(["umount", "/usr/lib/systemd/catalog"])
    check("Subject: Service dns is unhealthy" in told and "redshankctl explain dns" in told, "the catalog helps", told)
    site.machine.systemctl("restart", "nsd.service")
    eventually(lambda: healthy(site), what="every check is up")


def dropin(site, name):
    """The example of a drop-in with all its lines, every one of which systemd knows."""
    with open(os.path.join(EXAMPLES, name), encoding="utf-8") as f:
        example = re.sub(r"^#(?=\w+=)", "", f.read(), flags=re.M)
    copy = site.router.path("redshank.service")
    os.makedirs(copy + ".d", exist_ok=True)
    with open(os.path.join(copy + ".d", name), "w", encoding="utf-8") as f:
        f.write(example)
    done = analyze("verify", "--man=no", copy)
    check(done.returncode == 0 and not done.stderr, "verify is silent", done.stderr)
    return example


def test_network(site):
    """The example of a drop-in for the network is one that systemd knows, and allows what the example's checks ask."""
    allowed = re.findall(r"^IPAddressAllow=(.*)$", dropin(site, "network.conf"), re.M)
    check(len(allowed) == 5 and allowed[0] == "localhost", "the example's lines are found", allowed)
    with open(os.path.join(EXAMPLES, "redshank.json"), encoding="utf-8") as f:
        services = json.load(f)["services"].values()
    asked = json.dumps([s["checks"] for s in services])
    addresses = re.findall(r"(?:\d{1,3}\.){3}\d{1,3}|[0-9a-f]+:[0-9a-f:]*::[0-9a-f]*", asked)
    check(addresses and set(addresses) <= set(allowed[1].split()), "they may be asked", addresses, allowed)


def test_dropin(site):
    """Every line of the example of a drop-in is one that systemd knows, and a capability by it is there."""
    example = dropin(site, "capabilities.conf")
    check(example.count("\nAmbientCapabilities=") == 3, "the example's lines are found", example)
    site.machine.write(
        "/run/systemd/system/redshank.service.d/capabilities.conf",
        "[Service]\nAmbientCapabilities=CAP_NET_ADMIN\nCapabilityBoundingSet=CAP_NET_ADMIN\n",
    )
    site.machine.systemctl("daemon-reload")
    site.machine.systemctl("restart", "redshank.service")
    eventually(lambda: healthy(site), what="every check is up")
    status = site.machine.run(["grep", "^Cap", f"/proc/{agent_pid(site)}/status"]).stdout
    sets = dict(line.split(":\t") for line in status.splitlines())
    check(all(int(sets[w], 16) == 1 << CAP_NET_ADMIN for w in ("CapEff", "CapBnd", "CapAmb")), "that one alone", sets)
    site.machine.run(["rm", "/run/systemd/system/redshank.service.d/capabilities.conf"])
    site.machine.systemctl("daemon-reload")
    site.machine.systemctl("restart", "redshank.service")


def test_order(site):
    """redshank-generator orders the agent after what it watches, and again after a change."""
    after = site.machine.show("redshank.service", "After").split()
    check("nsd.service" in after and "bird.service" in after, "after nsd.service and bird.service", after)
    site.machine.write("/run/other.json", '{"services": {"x": {"prefixes": {"192.0.2.9/32": 1}}}}')
    site.machine.run(["mount", "--bind", "/run/other.json", "/etc/redshank/redshank.json"])
    site.machine.systemctl("daemon-reload")
    after = site.machine.show("redshank.service", "After").split()
    check("nsd.service" not in after, "no longer watched, no longer ordered", after)
    site.machine.write("/run/other.json", "{")
    site.machine.systemctl("daemon-reload")
    check("nsd.service" not in site.machine.show("redshank.service", "After").split(), "broken: nothing is ordered")
    site.machine.run(["umount", "/etc/redshank/redshank.json"])
    site.machine.systemctl("daemon-reload")
    check("nsd.service" in site.machine.show("redshank.service", "After").split(), "watched again")


def test_watchdog(site):
    """The watchdog is fed while checks move; a hung agent is replaced, and the routers hear nothing of it."""
    fed = set()

    def is_fed():
        fed.add(site.machine.show("redshank.service", "WatchdogTimestampMonotonic"))
        return len(fed) > 5  # longer than it would wait

    before = restarts(site)
    eventually(is_fed, 20, what="the watchdog is fed again and again")
    check(restarts(site) == before, "an agent that works is left alone", restarts(site))
    begun, pid = time.time(), agent_pid(site)
    site.machine.run(["kill", "-STOP", pid])
    eventually(lambda: agent_pid(site) not in (pid, "0") and healthy(site), 60, what="another agent")
    check(restarts(site) == before + 1, "started again once", restarts(site))
    check("Watchdog timeout" in site.machine.journal("redshank.service"), "by the watchdog")
    check(site.wire.since(begun, edge="edge1") == [], "no UPDATE", site.wire.since(begun, edge="edge1"))


def test_bird_stays_stopped(site):
    """A BIRD that somebody has stopped is not started by an agent that crashes, restarts or starts."""
    site.machine.systemctl("stop", "bird.service")
    pid = agent_pid(site)
    site.machine.run(["kill", "-9", pid])
    eventually(lambda: agent_pid(site) not in (pid, "0"), what="another agent")
    site.machine.systemctl("restart", "redshank.service")
    eventually(lambda: site.status().get("bird", {}).get("link") == "away", what="the agent runs, without BIRD")
    state = site.machine.systemctl("is-active", "bird.service", check=False)
    check(state == "inactive", "bird.service is left as it was", state)
    site.machine.systemctl("start", "bird.service")
    site.wait_sessions(["edge1"])
    site.wait_announced(DNS, "edge1")


def test_keeps_trying(site):
    """An agent that cannot start is tried again for as long as it takes."""
    before = restarts(site)
    site.machine.write("/run/broken.json", "{")
    site.machine.run(["mount", "--bind", "/run/broken.json", "/etc/redshank/redshank.json"])
    site.machine.run(["kill", "-9", agent_pid(site)])
    eventually(lambda: restarts(site) > before + 6, 60, what="more tries than systemd gives by default")
    site.machine.run(["umount", "/etc/redshank/redshank.json"])
    eventually(lambda: healthy(site), 60, what="it runs again")


main(lambda: MachineSite(config=SITE, dropin=WATCHDOG))
