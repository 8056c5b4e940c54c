"""strace(1), and its end."""

import subprocess


def end(strace):
    """Ends a strace (a Popen): what it traced goes on. One that does not hear (seen with a program of several
    threads) is killed, which detaches, too; every line that it wrote is in its file by then."""
    strace.terminate()
    try:
        strace.wait(2)
    except subprocess.TimeoutExpired:
        strace.kill()
        strace.wait(10)
