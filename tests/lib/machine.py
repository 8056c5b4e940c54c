"""A real systemd in a container of its own, for what only systemd can show.

    with Machine({"x.service": UNIT_TEXT}) as machine:
        machine.systemctl("start", "x.service")

systemd-nspawn boots the host's own /usr with an empty /etc and /var on tmpfs, in a network
namespace of the lab; nothing of the host's systemd takes part. Files are handed in as a dict of
path: text. reboot() boots it anew: of what was written only the `kept` folders are left. What boots, writes and starts in there ends with the lab (guardian.py).
"""

import contextlib
import os
import select
import signal
import subprocess

from lib.netns import Cannot, Lab, Process, find
from lib.wait import until

# cgroup v1 beside v2 (hybrid), or v2 alone.
HYBRID = ("/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified")
HIERARCHIES = HYBRID if os.path.exists(HYBRID[0]) else ("/sys/fs/cgroup",)
BOOT = (
    "systemd.unit=basic.target",
    "systemd.mask=systemd-firstboot.service",
    "systemd.mask=nftables.service",
)


def root_is_a_mount():
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        return any(line.split()[4] == "/" for line in f)


class Machine:
    """`files`: text by absolute path in the machine, read-only there. `binds`: (host, machine) paths.
    `kept`: folders of the machine that are still there after a reboot, as on a disk.
    `tree`: a Debian of its own instead of the host's /usr; what is changed in there is forgotten.
    `bpf`: its systemd may load programs into the kernel, as one of a whole host may: IPAddressDeny= works."""

    def __init__(self, files=None, binds=(), lab=None, tree=None, kept=(), bpf=False):
        if not find("systemd-nspawn"):
            raise Cannot("not installed: systemd-container")
        if not root_is_a_mount():
            raise Cannot("/ is no mount of its own (a plain chroot), so systemd-nspawn cannot use it")
        if not all(os.access(path, os.W_OK) for path in HIERARCHIES):
            raise Cannot(f"no cgroup hierarchy to write to ({', '.join(HIERARCHIES)})")
        self.own_lab = lab is None
        self.lab = lab or Lab()
        self.host = self.lab.host("machine")
        self.name = self.lab.id
        self.leader = self.leader_fd = None
        self.root = [f"--directory={tree}", "--volatile=overlay"] if tree else ["--directory=/", "--volatile=yes"]
        self.rights = ["--capability=CAP_NET_ADMIN"]
        if bpf:
            self.rights += ["--capability=CAP_BPF", "--system-call-filter=bpf"]
        for hierarchy in HIERARCHIES:
            self.lab.cgroup(os.path.join(hierarchy, self.name))
        binds = [*binds]
        for n, (path, text) in enumerate((files or {}).items()):
            source = self.host.path(f"file-{n}")
            with open(source, "w", encoding="utf-8") as f:
                f.write(text)
            os.chmod(source, 0o644)
            binds.append((source, path))
        self.binds = [f"--bind-ro={source}:{target}" for source, target in binds]
        for n, path in enumerate(kept):
            os.mkdir(self.host.path(f"kept-{n}"))
            self.binds.append(f"--bind={self.host.path(f'kept-{n}')}:{path}")
        self._boot()

    def _boot(self, wants=()):
        groups = [os.path.join(h, self.name, "cgroup.procs") for h in HIERARCHIES]
        enter = "for group; do [ \"$group\" = -- ] && break; echo $$ >\"$group\"; shift; done; shift; exec \"$@\""
        nspawn = [
            "systemd-nspawn", "--boot", "--quiet", "--register=no", "--keep-unit", "--console=pipe",
            f"--machine={self.name}", *self.root,
            f"--network-namespace-path={self.host.netns}", *self.rights,
            *self.binds, *BOOT, *[f"systemd.wants={unit}" for unit in wants],
        ]
        self.process = Process(["sh", "-c", enter, "sh", *groups, "--", *nspawn], self.host.path("boot.log"))
        until(self._booted, 90, lambda: f"basic.target in the container\n{self.process_log()}")

    def process_log(self):
        with open(self.host.path("boot.log"), encoding="utf-8", errors="replace") as f:
            return f.read()[-2000:]

    def _find_leader(self):
        """The container's systemd: nspawn's child that has become it (an earlier child only prepares)."""
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="ascii") as f:
            children = f.read().split()
        for child in children:
            with open(f"/proc/{child}/comm", encoding="utf-8") as f:
                if f.read().strip() == "systemd":
                    return int(child)
        return None

    def _booted(self):
        if not self.process.alive():
            raise AssertionError(f"the container ended:\n{self.process_log()}")
        self.leader = self.leader or self._find_leader()
        if not self.leader:
            return False
        if self.leader_fd is None:
            self.leader_fd = os.pidfd_open(self.leader)
        done = self.run(["systemctl", "is-active", "basic.target"], check=False)
        return done.stdout.strip() == "active"

    def reboot(self, wants=(), cut=False):
        """Shuts down and boots anew, with these units as if they were enabled; `cut`: the power goes."""
        if not cut:
            self.systemctl("poweroff", check=False)
            until(lambda: not self.process.alive(), 60, lambda: f"the machine is off\n{self.process_log()}")
        self._off()
        self._boot(wants)

    def argv(self, argv):
        return ["nsenter", "-t", str(self.leader), "-a", "--", *argv]

    def run(self, argv, check=True, timeout=90.0):
        """Runs a program in the machine. A CompletedProcess with text."""
        done = subprocess.run(self.argv(argv), capture_output=True, text=True, timeout=timeout, check=False)
        if check and done.returncode != 0:
            raise AssertionError(f"{' '.join(argv)}: exit {done.returncode}: {done.stderr or done.stdout}")
        return done

    def start(self, argv, log):
        """Starts a program in the machine that stays. Its log is on the host's side."""
        return Process(self.argv(argv), self.host.path(log))

    def systemctl(self, *words, check=True):
        return self.run(["systemctl", "--no-pager", *words], check=check).stdout.strip()

    def show(self, unit, what):
        return self.systemctl("show", "-P", what, unit)

    def write(self, path, text):
        subprocess.run(self.argv(["sh", "-c", 'mkdir -p "$(dirname "$1")"; cat >"$1"', "sh", path]),
                       input=text, text=True, check=True)

    def journal(self, unit):
        return self.run(["journalctl", "--no-pager", "-o", "cat", "-u", unit], check=False).stdout

    def _off(self):
        if self.process.alive():
            self.process.kill()
        if self.leader_fd is not None:  # outlives an nspawn that was killed; everything inside ends with it
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.leader_fd, signal.SIGKILL)
            until(lambda: select.select([self.leader_fd], [], [], 0)[0], 20, "the machine's systemd is gone")
            os.close(self.leader_fd)
        self.leader = self.leader_fd = None
        for left in (f"propagate/{self.name}", f"unix-export/{self.name}"):
            with contextlib.suppress(OSError):  # nspawn's own, empty, and only there if it was killed
                os.rmdir(os.path.join("/run/systemd/nspawn", left))

    def close(self):
        self._off()
        if self.own_lab:
            self.lab.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
