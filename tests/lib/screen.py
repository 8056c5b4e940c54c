"""A terminal for a program under test: a pty, and a screen that understands what redshankctl top sends.

    with Screen(argv, width=80, height=24) as screen:
        screen.until(lambda s: "All is well" in s.text())
        screen.resize(100, 30)
        screen.press("q")
        check(screen.wait() == 0, ...)
"""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

from lib.wait import TimedOut

ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"
SEQUENCE = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])")


class Screen:
    def __init__(self, argv, width=80, height=24, env=None):
        self.width, self.height = width, height
        self.near, far = pty.openpty()
        self.far = far
        self._set_size()
        self.before = termios.tcgetattr(far)
        self.raw = b""  # all that ever came
        self.process = subprocess.Popen(
            argv, stdin=far, stdout=far, stderr=far, env=env, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.near)
        os.close(self.far)

    def _set_size(self):
        fcntl.ioctl(self.far, termios.TIOCSWINSZ, struct.pack("HHHH", self.height, self.width, 0, 0))

    def resize(self, width, height):
        self.width, self.height = width, height
        self._set_size()  # the kernel sends SIGWINCH

    def press(self, keys):
        os.write(self.near, keys.encode())

    def read(self, timeout=0.0):
        """Takes what has come."""
        while select.select([self.near], [], [], timeout)[0]:
            try:
                self.raw += os.read(self.near, 65536)
            except OSError:
                return
            timeout = 0

    def until(self, condition, timeout=15.0, what="the screen shows it"):
        """Until condition(self) holds; the seconds that it took."""
        begun = time.monotonic()
        while True:
            self.read(0.02)
            if condition(self):
                return time.monotonic() - begun
            if time.monotonic() - begun > timeout:
                raise TimedOut(f"{what}: in vain for {timeout:g} s\n{self.text()}")

    def wait(self, timeout=15.0):
        """Its exit status, and all its output taken: the kernel hands on the last of it when it comes to that."""
        deadline = time.monotonic() + timeout
        while self.process.poll() is None:
            self.read(0.02)
            if time.monotonic() > deadline:
                raise TimedOut(f"it does not end within {timeout:g} s\n{self.text()}")
        deadline = time.monotonic() + 2
        while (not self.raw or self.raw.count(ENTER) > self.raw.count(LEAVE)) and time.monotonic() < deadline:
            self.read(0.05)
        self.read()
        return self.process.returncode

    def frames(self):
        """The texts of the screens that were drawn, as they came."""
        return self.raw.decode("utf-8", "replace").split("\x1b[H")[1:]

    def lines(self):
        """The last screen that has come whole: with all rows, or with what clears the rest of them."""
        text = next((f for f in reversed(self.frames()) if "\x1b[J" in f or f.count("\x1b[2K") >= self.height), None)
        if text is None:
            return []
        rows, row, column, at = {}, 0, 0, 0
        while at < len(text):
            found = SEQUENCE.match(text, at)
            if found:
                if found[2] == "K":
                    rows[row] = ""
                elif found[2] == "J":
                    rows = {r: t for r, t in rows.items() if r < row}
                at = found.end()
                continue
            if text[at] == "\r":
                column = 0
            elif text[at] == "\n":
                row += 1
            else:
                rows[row] = rows.get(row, "")[:column] + text[at]
                column += 1
            at += 1
        return [rows.get(r, "") for r in range(max(rows, default=-1) + 1)]

    def text(self):
        return "\n".join(self.lines())

    def settings(self):
        """Of the terminal, as tcgetattr has them."""
        return termios.tcgetattr(self.far)

    def restored(self):
        """The terminal is as it was, and the alternate screen has been left as often as entered."""
        return self.settings() == self.before and self.raw.count(ENTER) == self.raw.count(LEAVE) > 0

    def stopped(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as f:
            return f.read().rsplit(")", 1)[1].split()[0] == "T"

    def signal(self, number=signal.SIGTERM):
        self.process.send_signal(number)
