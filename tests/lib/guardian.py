"""The guardian: one small process for each site that outlives its parent by a moment.

It holds the site's network namespaces (as open descriptors: no name, no mount, nothing on disk)
and waits at a pipe. When the pipe closes, because the site was closed or because the test was
killed with SIGKILL, it kills every process inside these namespaces, which all are the site's,
unmounts and removes the site's folder and exits; with its descriptors the kernel drops the namespaces.

Run by netns.py as `python3 guardian.py FOLDER`. It reads lines on stdin and answers each: "netns"
with "PATH INODE", "cgroup PATH" (made here, removed in the end with all below it) with "PATH 0". It
never touches a process outside its namespaces.
"""

import ctypes
import os
import shutil
import signal
import sys
import time

CLONE_NEWNET = 0x40000000
MNT_DETACH = 2
libc = ctypes.CDLL(None, use_errno=True)


def new_namespace(home):
    """A new network namespace as a descriptor; this process then goes back to `home`."""
    if libc.unshare(CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "unshare(CLONE_NEWNET): " + os.strerror(ctypes.get_errno()))
    fd = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    if libc.setns(home, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns: " + os.strerror(ctypes.get_errno()))
    return fd


def inhabitants(inodes):
    """The processes whose network namespace is one of `inodes`."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            if os.stat(f"/proc/{entry}/ns/net").st_ino in inodes:
                found.append(int(entry))
        except OSError:
            pass  # gone, or a zombie: it has no namespace any more
    return found


def clear(inodes):
    """Kills the inhabitants until two looks in a row find none (one may have been on its way in)."""
    deadline = time.monotonic() + 10
    quiet = 0
    while quiet < 2 and time.monotonic() < deadline:
        pids = inhabitants(inodes)
        quiet = 0 if pids else quiet + 1
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.01)


def remove_cgroup(path):
    """Removes a cgroup and those below it; their processes have just been killed."""
    for _ in range(100):
        for where, _, _ in os.walk(path, topdown=False):
            try:
                os.rmdir(where)
            except OSError:
                pass  # a process is still on its way out
        if not os.path.exists(path):
            return
        time.sleep(0.02)


def unmount(folder):
    """What is mounted in the folder, the last one first. Whoever still has a file of it open keeps that alone."""
    with open("/proc/mounts", encoding="utf-8") as f:
        points = [line.split()[1] for line in f]
    for point in reversed(points):
        if point.startswith(folder + "/"):
            libc.umount2(point.encode(), MNT_DETACH)


def main():
    folder = sys.argv[1]
    cgroups = []
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    home = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    inodes = set()
    try:
        for line in sys.stdin:
            if line.strip() == "netns":
                fd = new_namespace(home)
                inode = os.fstat(fd).st_ino
                inodes.add(inode)
                print(f"/proc/{os.getpid()}/fd/{fd} {inode}", flush=True)
            elif line.startswith("cgroup "):
                cgroups.append(line.split(None, 1)[1].strip())
                os.mkdir(cgroups[-1])
                print(f"{cgroups[-1]} 0", flush=True)
    except (OSError, ValueError) as e:
        print(f"error {e}", flush=True)
        sys.stdin.read()
    finally:
        clear(inodes)
        for path in cgroups:
            remove_cgroup(path)
        unmount(folder)
        shutil.rmtree(folder, ignore_errors=True)


main()
