"""What a program can do where it runs, as JSON on a file: python3 cage.py FILE.

For tests/systemd/security.py, where the agent runs it as a check's command, so that it lives under the
rules of redshank.service. It tries and tells; the test judges. Each try either gives None (it went
through) or the name of the errno.
"""

import contextlib
import ctypes
import errno
import json
import mmap
import os
import signal
import socket
import subprocess
import sys

libc = ctypes.CDLL(None, use_errno=True)
CLONE_NEWUSER, CLONE_NEWNET, CLONE_NEWNS = 0x10000000, 0x40000000, 0x00020000
PTRACE_SEIZE, MS_BIND = 0x4206, 4096
# x86-64 and arm64 (asm/unistd.h); what is not here is not tried.
NUMBERS = {
    "x86_64": {"finit_module": 313, "bpf": 321, "perf_event_open": 298, "kexec_load": 246, "keyctl": 250},
    "aarch64": {"finit_module": 273, "bpf": 280, "perf_event_open": 241, "kexec_load": 104, "keyctl": 219},
}.get(os.uname().machine, {})
FAMILIES = ("AF_UNIX", "AF_INET", "AF_INET6", "AF_NETLINK", "AF_PACKET", "AF_VSOCK", "AF_ALG", "AF_BLUETOOTH", "AF_TIPC")


def call(function, *arguments):
    """None, or the name of the errno."""
    ctypes.set_errno(0)
    if function(*arguments) != -1:
        return None
    return errno.errorcode.get(ctypes.get_errno(), "?")


def attempt(function, *arguments):
    """The same of a function of Python."""
    try:
        function(*arguments)
    except OSError as e:
        return errno.errorcode.get(e.errno, "?")
    return None


def family(name):
    number = getattr(socket, name, {"AF_TIPC": 30}.get(name))
    kind = socket.SOCK_DGRAM if name in ("AF_UNIX", "AF_INET", "AF_INET6", "AF_TIPC") else socket.SOCK_RAW
    kind = socket.SOCK_SEQPACKET if name in ("AF_ALG",) else kind
    return attempt(lambda: socket.socket(number, kind).close())


def put(path):
    """Makes a file and removes it."""
    def make():
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        os.unlink(path)
    return attempt(make)


def look(path):
    with open(path, "rb") as f:
        f.read(1)


def writable():
    """Type and path of whatever may be written, but for /proc, where everything of this process is its own."""
    found = subprocess.run(["find", "/", "-path", "/proc", "-prune", "-o", "!", "-type", "l", "-writable", "-printf",
                            "%y %p\\n"], capture_output=True, text=True, check=False)
    return sorted(line.split(" ", 1) for line in found.stdout.splitlines())


def privileged(agent):
    """What takes a privilege, or looks into somebody else."""
    libc.syscall.restype = ctypes.c_long
    tries = {name: call(libc.syscall, number, -1, 0, 0, 0, 0) for name, number in NUMBERS.items()}
    tries |= {
        "ptrace of the agent": call(libc.ptrace, PTRACE_SEIZE, agent, None, None),
        "ptrace of systemd": call(libc.ptrace, PTRACE_SEIZE, 1, None, None),
        "memory of the agent": attempt(look, f"/proc/{agent}/mem"),
        "environment of the agent": attempt(look, f"/proc/{agent}/environ"),
        "memory of systemd": attempt(look, "/proc/1/mem"),
        "kill systemd": attempt(os.kill, 1, signal.SIGTERM),
        "mount": call(libc.mount, b"/run/redshank", b"/run/redshank", None, MS_BIND, None),
        "chroot": attempt(os.chroot, "/run/redshank"),
        "setuid 0": attempt(os.setuid, 0),
        "clock": attempt(__import__("time").clock_settime, 0, 0.0),
        "host name": attempt(socket.sethostname, "other"),
        "real time": attempt(os.sched_setscheduler, 0, os.SCHED_FIFO, os.sched_param(1)),
        "writable code": attempt(mmap.mmap, -1, 4096, mmap.MAP_PRIVATE, mmap.PROT_WRITE | mmap.PROT_EXEC),
        "sysctl": attempt(os.open, "/proc/sys/net/ipv4/ip_forward", os.O_WRONLY),
        "kernel log": attempt(os.open, "/dev/kmsg", os.O_RDONLY),
        "raw socket": attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP).close()),
        "bind to 80": attempt(lambda: socket.create_server(("127.0.0.1", 80)).close()),
    }
    for name, flag in (("user", CLONE_NEWUSER), ("network", CLONE_NEWNET), ("mount", CLONE_NEWNS)):
        tries[f"new {name} namespace"] = call(libc.unshare, flag)
    return tries


def setuid():
    """What a program with the setuid bit becomes, and whether one can be made."""
    done = subprocess.run(["/srv/setuid-id", "-u"], capture_output=True, text=True, check=False)
    path = "/run/redshank/setuid"
    with open(path, "wb"):
        made = attempt(os.chmod, path, 0o4755)
    os.unlink(path)
    return {"runs as": done.stdout.strip(), "made": made}


def main():
    agent = os.getppid()
    with open("/proc/self/status", encoding="ascii") as f:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
    told = {
        "uid": os.getuid(),
        "status": {key: status[key] for key in ("CapPrm", "CapEff", "CapBnd", "CapAmb", "CapInh", "NoNewPrivs", "Seccomp")},
        "environment": sorted(os.environ),
        "descriptors": sorted(int(fd) for fd in os.listdir("/proc/self/fd")),
        "devices": sorted(os.listdir("/dev")),
        "homes": {path: attempt(os.listdir, path) for path in ("/home", "/root")},
        "families": {name: family(name) for name in FAMILIES},
        "put": {folder: put(os.path.join(folder, "put")) for folder in (
            "/run", "/run/redshank", "/run/redshank/bird", "/var/lib/redshank", "/var/lib", "/etc", "/etc/redshank",
            "/usr", "/opt", "/run/lock", "/dev/shm", "/tmp", "/var/tmp")},
        "setuid": setuid(),
        "privileged": privileged(agent),
        "writable": writable(),
    }
    path = sys.argv[1]
    with open(path + ".new", "w", encoding="utf-8") as f:
        json.dump(told, f)
    os.rename(path + ".new", path)
    with contextlib.suppress(OSError):
        print("told")


if __name__ == "__main__":
    main()
