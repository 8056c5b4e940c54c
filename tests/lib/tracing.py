"""strace(1): its begin and its end."""

import contextlib
import subprocess
import time

from lib.wait import until


def _follows(strace, pid, thread):
    """Whether the thread is traced, and goes on; or there is nobody to wait for."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/status", encoding="ascii") as f:
        fields = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
        return strace.poll() is not None or (fields["TracerPid"] == str(strace.pid) and fields["State"][0] not in "tZX")
    return True


def attached(strace, pid, threads):
    """Waits until the strace (a Popen) follows these threads: from then on no call of theirs is missed."""
    def follows():
        return all(_follows(strace, pid, thread) for thread in threads)

    until(follows, 10, f"strace follows {pid}")
    time.sleep(0.005)  # a thread that is seized stops only then, for the first time
    until(follows, 10, f"strace follows {pid}")


def end(strace):
    """Ends a strace (a Popen): what it traced goes on. One that does not hear (seen with a program of several
    threads) is killed, which detaches, too; every line that it wrote is in its file by then."""
    strace.terminate()
    try:
        strace.wait(2)
    except subprocess.TimeoutExpired:
        strace.kill()
        strace.wait(10)
