"""Network namespaces, processes that run in them, and their certain end.

A Lab owns a guardian (guardian.py), a folder on a tmpfs and some Hosts; a Host is one network
namespace with a name. Processes enter a namespace by nsenter(1), which becomes the program: the
pid that start() returns is the program's own. Nothing here has a name outside the process tree,
so any number of labs run side by side, and nothing is left when one is killed.
"""

import contextlib
import ctypes
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time

from lib.wait import until

CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


class Cannot(Exception):
    """This machine cannot hold a test site, with the reason; the test is skipped (77)."""


def _setns(fd):
    if _libc.setns(fd, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns: " + os.strerror(ctypes.get_errno()))


@contextlib.contextmanager
def inside(path):
    """The calling thread is in the namespace `path` within the block; sockets made there stay there."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    there = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _setns(there)
        yield
    finally:
        _setns(home)
        os.close(there)
        os.close(home)


def group_lives(group):
    """Is a process of this process group alive? Zombies are not: they hold nothing."""
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", encoding="ascii", errors="replace") as f:
                    state, _, its_group = f.read().rsplit(")", 1)[1].split()[:3]
            except OSError:
                continue
            if int(its_group) == group and state not in "ZX":
                return True
    return False


class Process:
    """A program in a namespace, in a session (and process group) of its own, its output in a log."""

    def __init__(self, argv, log, env=None, cwd=None):
        self.argv = argv
        self.log = log
        with open(log, "ab") as out:
            self.popen = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env, cwd=cwd, start_new_session=True
            )
        self.pid = self.popen.pid

    def alive(self):
        return self.popen.poll() is None

    def send_signal(self, number):
        """Sends it to the process alone. False when the process is gone already."""
        if not self.alive():
            return False
        os.kill(self.pid, number)
        return True

    def signal_group(self, number):
        """Sends it to the process and its children, also after the process itself has died."""
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            pass

    def freeze(self):
        self.signal_group(signal.SIGSTOP)

    def thaw(self):
        self.signal_group(signal.SIGCONT)

    def wait(self, timeout=20.0):
        """The exit status as subprocess gives it: negative when a signal ended it."""
        return self.popen.wait(timeout)

    def kill(self, rest=True):
        """kill(2) with SIGKILL; with `rest` its children right after. The time just before (UNIX s)."""
        when = time.time()
        self.send_signal(signal.SIGKILL)
        if rest:
            self.signal_group(signal.SIGKILL)
        self.popen.wait()
        return when

    def group_is_gone(self):
        """Neither the process nor a child of it is left, who could hold what the next start wants."""
        return not group_lives(self.pid)

    def stop(self, timeout=20.0):
        """TERM, and KILL to all of it past the timeout. The exit status."""
        self.thaw()
        self.send_signal(signal.SIGTERM)
        try:
            return self.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            return self.popen.returncode
        finally:
            self.signal_group(signal.SIGKILL)


class Host:
    """One network namespace with a folder of its own."""

    def __init__(self, lab, name, path, inode):
        self.lab = lab
        self.name = name
        self.netns = path  # for nsenter --net=, ip link set ... netns
        self.inode = inode
        self.dir = os.path.join(lab.dir, name)
        os.mkdir(self.dir)
        self.ip("link set lo up")

    def path(self, *parts):
        return os.path.join(self.dir, *parts)

    def argv(self, argv):
        return ["nsenter", f"--net={self.netns}", "--", *argv]

    def inside(self):
        return inside(self.netns)

    def start(self, argv, log, env=None, cwd=None):
        """Starts a program that stays; see Process. `log` is a name in the host's folder."""
        return Process(self.argv(argv), self.path(log), env=env, cwd=cwd or self.dir)

    def run(self, argv, check=True, timeout=60.0, input=None, env=None):
        """Runs a program to its end. A CompletedProcess with text in stdout and stderr."""
        done = subprocess.run(
            self.argv(argv), capture_output=True, text=True, timeout=timeout, input=input, env=env, check=False
        )
        if check and done.returncode != 0:
            raise AssertionError(f"{self.name}: {' '.join(argv)}: exit {done.returncode}: {done.stderr or done.stdout}")
        return done

    def ip(self, *commands):
        """Runs ip(8) commands, one string each, in one go."""
        return self.run(["ip", "-batch", "-"], input="\n".join(commands) + "\n").stdout

    def sysctl(self, **values):
        """Sets sysctls below net/: sysctl(**{"ipv4/ip_forward": 1})."""
        with inside(self.netns):
            # /proc/thread-self/net is this thread's; /proc/sys/net follows the thread as well.
            for key, value in values.items():
                with open(f"/proc/sys/net/{key}", "w", encoding="ascii") as f:
                    f.write(str(value))


def tmpfs_folder():
    """A folder on a tmpfs, as the agent's fragments have in life; /tmp where there is none."""
    found = {}
    with open("/proc/mounts", encoding="utf-8") as f:
        for line in f:
            where, kind = line.split()[1:3]
            found[where] = kind
    for candidate in ("/run", "/dev/shm"):
        if found.get(candidate) == "tmpfs" and os.access(candidate, os.W_OK):
            return candidate
    return "/tmp"


def needs(*programs):
    """Raises Cannot, with everything that is missing here, unless a lab with these can be built."""
    if os.geteuid() != 0:
        raise Cannot("network namespaces need root")
    if not os.path.exists("/proc/thread-self/ns/net"):
        raise Cannot("/proc is not mounted (mount -t proc proc /proc)")
    if not os.access("/proc/sys/net/ipv4/ip_forward", os.W_OK):
        raise Cannot("/proc/sys is read-only")
    missing = [p for p in ("ip", "nsenter", *programs) if not find(p)]
    if missing:
        raise Cannot("not installed: " + ", ".join(missing))


def find(program):
    return shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/bin:/bin")


class Lab:
    """Namespaces and a folder that end with this object, or with this process, whatever ends it."""

    def __init__(self):
        needs()
        self.id = f"rs-{os.getpid()}-{secrets.token_hex(3)}"
        self.dir = os.path.join(tmpfs_folder(), self.id)
        self.hosts = {}
        self._guardian = subprocess.Popen(
            [sys.executable, "-I", os.path.join(os.path.dirname(__file__), "guardian.py"), self.dir],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.guardian = self._guardian.pid
        os.mkdir(self.dir, 0o755)

    def _ask(self, line):
        """One line to the guardian; its answer as (path, number)."""
        self._guardian.stdin.write(line + "\n")
        self._guardian.stdin.flush()
        answer = self._guardian.stdout.readline().strip()
        path, _, number = answer.partition(" ")
        if not number.isdigit():
            raise Cannot(f"the guardian cannot make a {line}: {answer or 'it died'}")
        return path, number

    def cgroup(self, path):
        """A new cgroup that is removed when the lab ends."""
        self._ask(f"cgroup {path}")

    def host(self, name):
        path, inode = self._ask("netns")
        self.hosts[name] = Host(self, name, path, int(inode))
        return self.hosts[name]

    def link(self, a, b, a_end, b_end):
        """A veth between two hosts, both ends up."""
        a.ip(f"link add {a_end} type veth peer name {b_end} netns {b.netns}", f"link set {a_end} up")
        b.ip(f"link set {b_end} up")
        until(lambda: "LOWER_UP" in a.ip(f"link show {a_end}"), 20, f"link {a_end} of {a.name}")

    def close(self):
        """Ends every process, namespace and file of the lab."""
        if self._guardian.stdin.closed:
            return
        self._guardian.stdin.close()
        self._guardian.stdout.close()
        self._guardian.wait(60)
