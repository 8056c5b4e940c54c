"""One thread of a program is held, and the others run on: what a disk that hangs does to the thread that writes.

    with held_thread(agent.process.pid):
        ...
"""

import contextlib
import ctypes
import os

PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT = 17, 0x4206, 0x4207
WALL = 0x40000000


def _ptrace(request, tid):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    libc.ptrace.restype = ctypes.c_long
    if libc.ptrace(request, tid, None, None) < 0:
        raise OSError(ctypes.get_errno(), f"ptrace {request:#x} of {tid}")


@contextlib.contextmanager
def held_thread(pid):
    """The program has its first thread and one more, which stands still inside the block."""
    tids = [int(name) for name in os.listdir(f"/proc/{pid}/task") if int(name) != pid]
    assert len(tids) == 1, f"one more thread expected, got {tids}"
    _ptrace(PTRACE_SEIZE, tids[0])
    try:
        _ptrace(PTRACE_INTERRUPT, tids[0])
        os.waitpid(tids[0], WALL)
        yield
    finally:
        _ptrace(PTRACE_DETACH, tids[0])
