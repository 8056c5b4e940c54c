"""The Debian package in a Debian of its own: installed, upgraded while it announces, removed, purged.

The first edge of the site is a machine with its own tree, in which nothing of redshank is but what the
package brings. REDSHANK_DEB is the package and REDSHANK_TREE the tree; tests/run --package makes both.
"""

import json
import os
import re
import shutil
import subprocess
import time

from lib import birds
from lib.case import check, eventually, main, skip
from lib.machinesite import NSD, ZONE, MachineSite

DNS, DNS6 = "192.0.2.53/32", "2001:db8::53/128"
DEB, TREE = os.environ.get("REDSHANK_DEB", ""), os.environ.get("REDSHANK_TREE", "")
ETC = "/etc/redshank/redshank.json"
NEWER = "0.1.0+upgraded"


def repacked(lab_path, version):
    """The same package as if it were another version."""
    folder = lab_path("repacked")
    subprocess.run(["dpkg-deb", "-R", DEB, folder], check=True)
    control = os.path.join(folder, "DEBIAN", "control")
    with open(control, encoding="utf-8") as f:
        text = f.read()
    old = subprocess.run(["dpkg-deb", "-f", DEB, "Version"], capture_output=True, text=True, check=True).stdout.strip()
    with open(control, "w", encoding="utf-8") as f:
        f.write(text.replace(f"Version: {old}\n", f"Version: {version}\n"))
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", folder, lab_path("newer.deb")], check=True,
                   stdout=subprocess.DEVNULL)
    return lab_path("newer.deb")


class PackageSite(MachineSite):
    tree = TREE
    ctl = "redshankctl"

    def _files(self, extra):
        bird = birds.edge_config(
            self.paths_inside(), 1, "/run/redshank/bird", "/usr/share/redshank/bird/redshank.conf", extra
        )
        return {"/etc/bird/bird.conf": bird, "/etc/nsd/nsd.conf": NSD, "/etc/nsd/example.net.zone": ZONE}

    def _binds(self):
        return [(DEB, "/opt/redshank.deb"), (repacked(self.router.path, NEWER), "/opt/newer.deb")]

    def dpkg(self, *words):
        """dpkg in the machine, as apt calls it. What it said."""
        done = self.machine.run(["env", "DEBIAN_FRONTEND=noninteractive", "dpkg", *words], check=False, timeout=240)
        check(done.returncode == 0, f"dpkg {' '.join(words)}", done.stdout, done.stderr)
        return done.stdout + done.stderr

    def configure(self, text):
        self.machine.write(ETC, text)

    def shell(self, command):
        return self.machine.run(["bash", "-c", command]).stdout.strip()

    def pid(self):
        return self.machine.show("redshank.service", "MainPID")

    def is_healthy(self):
        return self.status().get("services", {}).get("dns", {}).get("health") == "healthy"

    def settled(self):
        return self.is_healthy() and self.status().get("bird", {}).get("settled")

    def updates(self, since):
        return self.wire.since(since, edge="edge1")


def make_site():
    if not DEB or not TREE:
        skip("there is no package to try; tests/run --package makes one")
    return PackageSite()


def test_lintian(site):
    """lintian has nothing to say."""
    check(shutil.which("lintian"), "lintian is installed")
    done = subprocess.run(["lintian", "--allow-root", "--fail-on=error,warning", DEB],
                          capture_output=True, text=True, check=False)
    check(done.returncode == 0 and not done.stdout, "no word of lintian", done.stdout, done.stderr)


def test_install(site):
    """Installed: user, folders, manual pages, an example that is accepted; and nothing runs or is enabled."""
    site.dpkg("-i", "/opt/redshank.deb")
    check(site.shell("id -nG redshank") == "redshank bird", "its user", site.shell("id redshank"))
    check(site.shell("stat -c '%U:%G %a' /run/redshank/bird") == "redshank:bird 2750", "the folder of fragments")
    check(site.machine.systemctl("is-enabled", "redshank.service", check=False) == "disabled", "is not enabled")
    check(site.machine.systemctl("is-active", "redshank.service", check=False) == "inactive", "does not run")
    check(site.machine.systemctl("is-enabled", "redshank.socket", check=False) == "disabled", "nor is its socket unit")
    check(site.shell("test -e /etc/polkit-1/rules.d/50-redshank.rules || echo none") == "none", "polkit is told nothing")
    check("redshank" in site.shell("cat /usr/share/redshank/polkit/50-redshank.rules"), "an example of a rule")
    site.machine.run(["man", "-w", "redshankd", "redshankctl", "redshank.json"])
    named = set(re.findall(r"docs/([\w-]+\.md)", site.shell("cat /usr/lib/systemd/catalog/redshank.catalog")))
    check("bird-beside.md" in named, "messages name pages", named)
    missing = [page for page in named if site.shell(f"test -s /usr/share/doc/redshank/{page} || echo none")]
    check(not missing, "the pages that messages name are installed", missing)
    check(site.shell("dpkg -V redshank") == "", "every file is as it was packed", site.shell("dpkg -V redshank"))
    done = site.machine.run(["systemd-analyze", "verify", "redshank.service"], check=False)
    check(done.returncode == 0 and not done.stderr, "systemd-analyze verify is silent", done.stderr)
    done = site.machine.run(["redshankd", "--check", "-c", "/usr/share/doc/redshank/examples/redshank.json"], check=False)
    check(done.returncode == 0, "the example is accepted", done.stderr)


def test_start(site):
    """A configuration is written, the unit is enabled and started: announced."""
    site.configure(json.dumps(site.config))
    site.machine.systemctl("start", "bird.service", "nsd.service")
    site.wait_sessions(["edge1"])
    check("edge1" not in site.routes(DNS), "nothing before")
    site.machine.systemctl("enable", "--now", "redshank.service")
    for prefix in (DNS, DNS6):
        site.wait_announced(prefix, "edge1")
    site.machine.systemctl("daemon-reload")
    check("nsd.service" in site.machine.show("redshank.service", "After").split(), "ordered after nsd.service")


COMPLETE = """
. /usr/share/bash-completion/completions/redshankctl
complete_line() {
	COMP_LINE=$1 COMP_POINT=${#1}
	COMP_WORDS=($1); case $1 in *' ') COMP_WORDS+=("") ;; esac
	COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
	_redshankctl; echo "${COMPREPLY[*]}"
}
"""


def test_completion(site):
    """The shells complete commands, options, services and prefixes."""
    for line, wanted in (
        ("redshankctl sta", "status"),
        ("redshankctl --js", "--json"),
        ("redshankctl explain d", "dns"),
        ("redshankctl explain 192", DNS),
        # What stands before the last colon is on the line already.
        ("redshankctl --json explain 2001:db8:", ":53/128"),
    ):
        got = site.shell(COMPLETE + f"complete_line '{line}'")
        check(got == wanted, f"bash: {line}", got)
    check(site.shell("zsh -fc 'autoload -U compinit; compinit -D; echo $_comps[redshankctl]'") == "_redshankctl",
          "zsh knows its function")
    check(site.shell("zsh -n /usr/share/zsh/vendor-completions/_redshankctl && echo fine") == "fine", "zsh parses it")


def test_upgrade(site):
    """Upgraded while it announces: another agent, and not one UPDATE on the wire."""
    eventually(site.settled, what="settled")
    begun, pid = time.time(), site.pid()
    site.dpkg("-i", "/opt/newer.deb")
    check(site.shell("dpkg-query -W -f '${Version}' redshank") == NEWER, "upgraded")
    check(site.pid() not in (pid, "0"), "the new agent runs", pid, site.pid())
    eventually(site.settled, what="the new agent has decided")
    check(site.updates(begun) == [], "no UPDATE", site.updates(begun))
    check(site.machine.systemctl("is-enabled", "redshank.service") == "enabled", "still enabled")


def test_upgrade_refused(site):
    """Where the new agent would refuse the configuration, the old one keeps running."""
    begun, pid = time.time(), site.pid()
    site.configure("{")
    said = site.dpkg("-i", "/opt/newer.deb")
    check("keeps running" in said and ETC in said, "said, with the reason", said)
    eventually(site.is_healthy, what="healthy")
    check(site.pid() == pid, "the same agent", pid, site.pid())
    check(site.updates(begun) == [], "no UPDATE", site.updates(begun))
    site.configure(json.dumps(site.config))


def test_remove(site):
    """Removed: withdrawn before dpkg is done, and bird.conf's includes are named; the configuration stays."""
    begun = time.time()
    said = site.dpkg("-r", "redshank")
    done = time.time()
    for prefix in (DNS, DNS6):
        check(site.wire.wait_withdraw("edge1", prefix, since=begun).time < done, f"{prefix} was withdrawn in time")
    check("/etc/bird/bird.conf" in said, "the includes that stay behind are named", said)
    check(site.shell(f"test -e {ETC} && echo there") == "there", "the configuration stays")
    check(site.shell("test -e /run/redshank/bird && echo there") == "there", "the folder that BIRD includes stays")
    check(site.shell("pidof redshankd; true") == "", "nothing runs")


def test_remove_keep(site):
    """What on_stop keeps stays announced after a removal, and that is said."""
    keep = json.loads(json.dumps(site.config))
    keep["services"]["dns"]["on_stop"] = "keep"
    site.configure(json.dumps(keep))
    site.dpkg("-i", "/opt/redshank.deb")
    site.machine.systemctl("start", "redshank.service")
    site.wait_announced(DNS, "edge1")
    eventually(site.settled, what="settled")
    said = site.dpkg("-r", "redshank")
    check("stay announced" in said, "that they stay is said", said)
    check("edge1" in site.routes(DNS), "still announced", site.routes(DNS))
    advice = said.split("to withdraw them, too: ")[1].splitlines()[0]
    site.shell(advice)
    eventually(lambda: "edge1" not in site.routes(DNS), what="the advice withdraws them")
    site.configure(json.dumps(site.config))


def test_purge(site):
    """Installed again and purged while it announces: withdrawn, and nothing is left but the user."""
    site.dpkg("-i", "/opt/redshank.deb")
    site.machine.systemctl("enable", "redshank.socket")
    site.dpkg("-i", "/opt/newer.deb")
    check(site.machine.systemctl("is-enabled", "redshank.socket") == "enabled", "its socket unit still is, where it was")
    check(site.machine.systemctl("is-active", "redshank.service", check=False) == "inactive",
          "one that somebody stopped is not started by an install or an upgrade")
    site.machine.systemctl("start", "redshank.socket", "redshank.service")
    site.wait_announced(DNS, "edge1")
    begun = time.time()
    site.dpkg("-P", "redshank")
    check(site.machine.systemctl("is-active", "redshank.socket", check=False) != "active", "nobody listens for it")
    site.wire.wait_withdraw("edge1", DNS, since=begun)
    others = "".join(f" -not -path '{path}/*'" for path in ("/opt", "/tmp", "/var/tmp", "/var/cache/man"))
    left = site.shell(f"find / /run -xdev -iname '*redshank*'{others}; true")
    check(left == "", "no file is left", left)
    check(site.shell("id -un redshank") == "redshank", "the user stays")


main(make_site)
