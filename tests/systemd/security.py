"""Least privilege, and who may change things, in a real systemd: redshank.service as it is shipped.

The command of a check lives under the agent's own rules, so it tells what they allow (lib/cage.py).
Then the status socket, with users of every kind. docs/security.md has the claims.
"""

import json
import os
import subprocess

from lib.agentctl import DEFAULTS, ROOT
from lib.case import check, eventually, main
from lib.machinesite import CONFIG, MachineSite

UNIT = "redshank.service"
TOLD = "/run/redshank/told.json"
CAGE = "/opt/cage.py"
TCP = 9479

SITE = {
    **CONFIG,
    "status": {"listen": f"127.0.0.1:{TCP}"},
    "defaults": DEFAULTS,
    "services": {
        "dns": CONFIG["services"]["dns"],
        "caged": {
            "prefixes": {"192.0.2.99/32": 50},
            "address_check": False,
            "checks": {
                "cage": {"type": "exec", "command": ["/usr/bin/python3", CAGE, TOLD], "env": {"API_TOKEN": "swordfish"},
                         "interval": "1h", "fast_interval": "1h", "timeout": "2m"},
            },
        },
    },
}

# alice by a supplementary group, dave by his primary one; bob is nobody's.
USERS = "g redshank -\nu alice - \"A\" /\nm alice redshank\nu bob - \"B\" /\nu carol - \"C\" /\nm carol redshank\n"

# Sockets that every process of the host may write to: their owners decide who is heard.
OPEN_SOCKETS = ("/run/systemd/", "/run/dbus/", "/run/udev/", "/dev/log")


def make_site():
    with open(os.path.join(ROOT, "tests", "lib", "cage.py"), encoding="utf-8") as f:
        cage = f.read()
    return MachineSite(
        config=SITE, files={CAGE: cage, "/etc/sysusers.d/users.conf": USERS},
        dropin="Environment=ASAN_OPTIONS=detect_leaks=0:quarantine_size_mb=1\n",
    )


def told(site):
    return json.loads(site.machine.run(["cat", TOLD]).stdout)


def test_start(site):
    """The agent runs, and its check has tried everything."""
    site.machine.run(["sh", "-c", "cp /usr/bin/id /srv/setuid-id && chmod 4755 /srv/setuid-id"])
    control = site.machine.run(["setpriv", "--reuid=redshank", "--clear-groups", "/srv/setuid-id", "-u"]).stdout.strip()
    check(control == "0", "without the unit's rules a setuid program becomes root", control)
    site.machine.systemctl("start", "bird.service", "nsd.service", UNIT)
    site.wait_sessions(["edge1"])
    site.machine.run([site.ctl, "check-now"])
    eventually(lambda: site.machine.run(["test", "-e", TOLD], check=False).returncode == 0, 90, what="it has told")


def test_files(site):
    """It writes to its folders, to its own /tmp and to what BIRD's group may, and nowhere else on this host."""
    seen = told(site)
    through = sorted(folder for folder, error in seen["put"].items() if error is None)
    check(through == ["/run/redshank", "/run/redshank/bird", "/tmp", "/var/lib/redshank", "/var/tmp"], "puts", through)
    strays = [
        [kind, path] for kind, path in seen["writable"]
        if not path.startswith(("/run/redshank/", "/var/lib/redshank/", "/tmp/", "/var/tmp/"))
    ]
    folders = [path for kind, path in strays if kind in "df"]
    wanted = ["/run/bird", "/run/redshank", "/tmp", "/var/lib/redshank", "/var/tmp"]
    check(folders == wanted, "folders and files that it may write", folders)
    sockets = [path for kind, path in strays if kind == "s" and not path.startswith(OPEN_SOCKETS)]
    check(sockets == ["/run/bird/bird.ctl"], "sockets that not every process may write to", sockets)
    devices = {path for kind, path in strays if kind in "cb"}
    check(devices <= {"/dev/" + n for n in ("full", "null", "zero", "random", "urandom", "tty", "ptmx", "pts/ptmx")},
          "devices that are none of the machine's", devices)
    left = site.machine.run(["sh", "-c", "ls /tmp /var/tmp"]).stdout
    check("put" not in left, "its /tmp is its own", left)
    check(seen["homes"] == {"/home": "EACCES", "/root": "EACCES"}, "no homes", seen["homes"])


def test_modes(site):
    """What the agent writes: its modes, and that neither BIRD's user nor members of the group may write there."""
    site.machine.run([site.ctl, "drain", "caged", "--for", "1s"])  # so that there is a state file
    wanted = {
        "/run/redshank": "755 redshank:redshank", "/run/redshank/bird": "2750 redshank:bird",
        "/run/redshank/bird/dns.conf": "640 redshank:bird", "/run/redshank/bird/.dns.conf.withdrawn": "640 redshank:bird",
        "/run/redshank/bird/.deadman": "640 redshank:bird", "/run/redshank/status.sock": "660 redshank:redshank",
        "/var/lib/redshank": "750 redshank:redshank", "/var/lib/redshank/state.json": "640 redshank:redshank",
    }
    seen = site.machine.run(["stat", "-c", "%n=%a %U:%G", *wanted]).stdout.splitlines()
    check(dict(line.split("=", 1) for line in seen) == wanted, "modes and owners", seen)
    everything = site.machine.run(["find", "/run/redshank", "/var/lib/redshank", "-perm", "/0022", "!", "-type", "s"]).stdout
    check(everything == "", "nobody else may write to anything", everything)
    plant = "for d in /run/redshank /run/redshank/bird /var/lib/redshank; do ln -s /etc/passwd $d/.dns.conf.new; " \
        "ln $d/.deadman $d/x; rm -f $d/dns.conf $d/state.json; true >>$d/state.json; done 2>/dev/null; " \
        "cat /run/redshank/bird/dns.conf >/dev/null && echo reads"
    for user, reads in (("bird", "reads\n"), ("alice", ""), ("bob", "")):
        done = site.machine.run(as_user(user, "sh", "-c", plant), check=False)
        check(done.stdout == reads, f"{user} plants nothing, and reads {reads or 'nothing'!r}", done.stdout)
    now = site.machine.run(["find", "/run/redshank", "/var/lib/redshank", "!", "-user", "redshank"]).stdout
    check(now == "", "nothing of somebody else is there", now)
    again = site.machine.run(["stat", "-c", "%n=%a %U:%G", *wanted]).stdout.splitlines()
    check(again == seen, "and everything is as it was", again)


def test_privileges(site):
    """No capability, no way to one, no other kinds of sockets, no look into others: each is refused by the kernel."""
    seen = told(site)
    capabilities = {key: value for key, value in seen["status"].items() if key.startswith("Cap")}
    check(set(capabilities.values()) == {"0" * 16}, "no capability", capabilities)
    check(seen["status"]["NoNewPrivs"] == "1" and seen["status"]["Seccomp"] == "2", "none to be had", seen["status"])
    check(seen["setuid"] == {"runs as": str(seen["uid"]), "made": "EPERM"}, "setuid programs", seen["setuid"])
    open_ones = {name for name, error in seen["families"].items() if error is None}
    check(open_ones == {"AF_UNIX", "AF_INET", "AF_INET6", "AF_NETLINK"}, "families", seen["families"])
    others = set(seen["families"].values()) - {None}
    check(others == {"EAFNOSUPPORT"}, "the others are refused", seen["families"])
    through = [what for what, error in seen["privileged"].items() if error is None]
    check(len(seen["privileged"]) >= 20 and not through, "nothing of it goes through", through)
    check(seen["environment"] == ["API_TOKEN", "HOME", "LANG", "PATH", "REDSHANK_CHECK_OF"], "what a command is told",
          seen["environment"])
    check(len(seen["descriptors"]) == 4, "none of the agent's descriptors (one is the list itself)", seen["descriptors"])


def test_secrets_close_the_memory(site):
    """An agent that knows a secret is dumpable no more; one that knows none is, and its commands may look."""
    seen = told(site)["privileged"]
    check(seen["memory of the agent"] == "EACCES" and seen["environment of the agent"] == "EACCES", "closed", seen)
    pid = site.machine.show(UNIT, "MainPID")
    owner = site.machine.run(["stat", "-c", "%U", f"/proc/{pid}/mem"]).stdout.strip()
    check(owner == "root", "its memory is root's", owner)
    plain = json.loads(json.dumps(SITE).replace("API_TOKEN", "PLACE"))
    site.machine.write("/run/plain.json", json.dumps(plain))
    site.machine.run(["mount", "--bind", "/run/plain.json", "/etc/redshank/redshank.json"])
    site.machine.run([site.ctl, "reload"])
    still = site.machine.run(["stat", "-c", "%U", f"/proc/{pid}/mem"]).stdout.strip()
    check(still == "root", "after a reload, too: memory is not wiped", still)
    site.machine.systemctl("restart", UNIT)
    pid = site.machine.show(UNIT, "MainPID")
    owner = site.machine.run(["stat", "-c", "%U", f"/proc/{pid}/mem"]).stdout.strip()
    check(owner == "redshank", "without a secret it may be dumped", owner)
    site.machine.run(["umount", "/etc/redshank/redshank.json"])
    site.machine.run([site.ctl, "reload"])
    owner = site.machine.run(["stat", "-c", "%U", f"/proc/{pid}/mem"]).stdout.strip()
    check(owner == "root", "a reload that brings one closes it", owner)


def test_deadman(site):
    """redshank-deadman.service has the fragments, BIRD's socket and nothing else: no network, no other process."""
    with open(os.path.join(ROOT, "systemd", "redshank-deadman.service"), encoding="utf-8") as f:
        unit = "".join(line for line in f if not line.startswith("ExecStart="))
    told_too = "/run/redshank/told-too.json"
    unit = unit.replace("[Service]\n", f"[Service]\nExecStart=/usr/bin/python3 {CAGE} {told_too}\n")
    site.machine.write("/run/systemd/system/deadman-cage.service", unit)
    site.machine.systemctl("daemon-reload")
    site.machine.systemctl("start", "deadman-cage.service")
    seen = json.loads(site.machine.run(["cat", told_too]).stdout)
    through = sorted(folder for folder, error in seen["put"].items() if error is None)
    check(through == ["/run/redshank", "/run/redshank/bird", "/tmp", "/var/tmp"], "puts", through)
    families = {name for name, error in seen["families"].items() if error is None}
    check(families == {"AF_UNIX"}, "no network", families)
    files = [path for kind, path in seen["writable"] if kind in "df" and not path.startswith("/run/redshank")]
    check(files == ["/tmp", "/var/tmp"], "folders and files that it may write", files)
    check(set(seen["status"][key] for key in seen["status"] if key.startswith("Cap")) == {"0" * 16}, "no capability")
    open_ones = [what for what, error in seen["privileged"].items() if error is None]
    check(not open_ones, "nothing that takes a privilege", open_ones)
    with open(os.path.join(ROOT, "systemd", "redshank-deadman.service"), encoding="utf-8") as f:
        roots = [line.strip() for line in f if line.startswith("ExecStart=+")]
    check(roots == ["ExecStart=+/usr/libexec/redshank/redshank-deadman --again 10 redshank.service"], "what root runs", roots)


def as_user(user, *argv, group=None):
    return ["setpriv", f"--reuid={user}", f"--regid={group or user}", "--init-groups", "env",
            "ASAN_OPTIONS=detect_leaks=0", *argv]


def drain(site, user, group=None):
    """(exit status, what was said) of a drain that changes nothing for long."""
    done = site.machine.run(as_user(user, site.ctl, "drain", "caged", "--for", "1s", "--reason", f"by {user}", group=group),
                            check=False)
    return done.returncode, done.stdout + done.stderr


def may(site, user, what, group=None):
    code, said = drain(site, user, group)
    check(code == 0 and "drained caged" in said, what, code, said)


def may_not(site, user, what, group=None):
    code, said = drain(site, user, group)
    check(code != 0 and "drained" not in said, what, code, said)
    return said


def test_callers(site):
    """Root, the agent's user and the group may change things, by either kind of membership; nobody else connects."""
    may(site, "root", "root")
    may(site, "redshank", "the agent's own user")
    may(site, "alice", "a supplementary member")
    may(site, "bob", "a primary member", group="redshank")
    said = may_not(site, "bob", "a stranger")
    check("ermission denied" in said, "the file's mode keeps strangers away", said)
    may_not(site, "bird", "BIRD's own user")
    who = site.machine.run([site.ctl, "events"]).stdout
    check("alice (uid " in who and "bob (uid " in who, "who it was is in the events", who[-800:])


def test_membership_that_ended(site):
    """Who is no member any more is refused; a process that was started as one keeps it, as everywhere in Unix."""
    later = as_user("carol", "sh", "-c", f"read go; exec {site.ctl} drain caged --for 1s --reason late")
    old = subprocess.Popen(site.machine.argv(later), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    # Its credentials are those of before: it stands at `read` once it is a shell.
    eventually(lambda: site.machine.run(["pgrep", "-u", "carol", "-x", "sh"], check=False).stdout, what="it waits")
    may(site, "carol", "a member")
    site.machine.run(["sed", "-i", "s/,carol$//; s/:carol$/:/", "/etc/group"])
    groups = site.machine.run(as_user("carol", "id", "-nG")).stdout.split()
    check("redshank" not in groups, "a member no more", groups)
    may_not(site, "carol", "and refused")
    said, _ = old.communicate("go\n", timeout=30)
    check(old.returncode == 0 and "drained caged" in said, "the old process is still one", old.returncode, said)


ASK = """\
import socket, sys
where, method, path, *headers = sys.argv[1:]
s = socket.socket(socket.AF_UNIX if where == "unix" else socket.AF_INET)
s.connect("/run/redshank/status.sock" if where == "unix" else ("127.0.0.1", int(where)))
body = "Content-Length: 2\\r\\n\\r\\n{}" if method == "POST" else "\\r\\n"
head = "".join(h + "\\r\\n" for h in ("Host: x", *headers))
s.sendall(f"{method} {path} HTTP/1.1\\r\\n{head}{body}".encode())
answer = b"".join(iter(lambda: s.recv(65536), b"")).decode()
print(answer.split(" ", 1)[1][:1000])
"""


def ask(site, user, where, method, path, *headers):
    return site.machine.run(as_user(user, "python3", "-c", ASK, where, method, path, *headers)).stdout


def test_socket_open_to_all(site):
    """Where somebody opens the socket to all, strangers look and change nothing; over TCP and from a page not even root."""
    site.machine.run(["chmod", "0666", "/run/redshank/status.sock"])
    check(ask(site, "bob", "unix", "GET", "/v1/status").startswith("200"), "a stranger may look")
    said = ask(site, "bob", "unix", "POST", "/v1/drain")
    check(said.startswith("403") and "members of status.group" in said, "and not change", said)
    check(ask(site, "bird", "unix", "POST", "/v1/reload").startswith("403"), "nor may BIRD's user")
    check(ask(site, "alice", "unix", "POST", "/v1/check-now").startswith("200"), "a member may")
    said = ask(site, "root", "unix", "POST", "/v1/check-now", "Origin: http://evil.example")
    check(said.startswith("403") and "browser" in said, "no page, whoever carries it", said)
    said = ask(site, "root", str(TCP), "POST", "/v1/check-now")
    check(said.startswith("403") and "Unix socket" in said, "nothing over TCP", said)
    check(ask(site, "bob", str(TCP), "GET", "/v1/status").startswith("200"), "where all may look")


STRANGER = """\
import contextlib, socket
held = []
for path in ("/run/redshank/status.sock", None):
    for kind in range(200):
        s = socket.socket(socket.AF_UNIX if path else socket.AF_INET)
        s.settimeout(0.05)
        with contextlib.suppress(OSError):
            s.connect(path or ("127.0.0.1", 9479))
            head = b"POST /v1/drain HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: 1000000000\\r\\n"
            s.sendall(head + (b"\\r\\n" + b"x" * 65536 if kind % 2 else b"X-A: " + b"y" * 65536))
        held.append(s)
print(len(held))
"""


def memory(site):
    pid = site.machine.show(UNIT, "MainPID")
    status = site.machine.run(["cat", f"/proc/{pid}/status"]).stdout
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("RssAnon:")))


def test_strangers_cost_little(site):
    """Hundreds of requests with endless heads and bodies: bounded memory, and the members are answered all the same."""
    site.machine.run(as_user("bob", "python3", "-c", STRANGER))  # what is taken once
    before = memory(site)
    for _ in range(3):
        check(site.machine.run(as_user("bob", "python3", "-c", STRANGER), timeout=120).stdout == "400\n", "400 strangers")
    after = memory(site)
    print(f"# {before} kB before, {after} kB after 1,200 requests of strangers")
    check(after - before < 8192, "less than 8 MiB, under the sanitizers", before, after)
    eventually(lambda: drain(site, "alice")[0] == 0, 30, what="a member is answered")


main(make_site)
