"""Somebody in the middle of BIRD's control socket: passes everything on, until told to be worse.

    middleman = Middleman(host.path("middle.ctl"), bird.socket)
    middleman.mode = "hang"      # see MODES
    middleman.close()

The agent speaks to the first path. What it sends always reaches BIRD, but in `hang` and `refuse`; what is
spoilt is BIRD's side.
"""

import contextlib
import os
import selectors
import socket
import threading
import time

MODES = ("pass", "hang", "drip", "garbage", "refuse")
GARBAGE = b"0000\n\x00\xff 9999-\n1002-\xc3(" + b"x" * 600 + b"\n" + b" \n" * 20
PIECE = 65536


class _Pair:
    def __init__(self, near, far):
        self.near, self.far = near, far
        self.pending = b""  # of BIRD, for the agent, while it drips
        self.spoilt = False


class Middleman:
    def __init__(self, path, target):
        self.path, self.target = path, target
        self.mode = "pass"
        self._pairs = {}
        self._selector = selectors.DefaultSelector()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(path)
        self._listener.listen(16)
        self._listener.setblocking(False)
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._running = True
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def _work(self):
        while self._running:
            for key, _ in self._selector.select(0.01):
                if self.mode == "hang":
                    time.sleep(0.01)
                elif key.fileobj is self._listener:
                    self._accept()
                else:
                    self._carry(key.fileobj)
            if self.mode == "refuse":
                for pair in set(self._pairs.values()):
                    self._drop(pair)
            if self.mode != "hang":
                for pair in set(self._pairs.values()):
                    self._drip(pair)

    def _accept(self):
        near, _ = self._listener.accept()
        far = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            if self.mode == "refuse":
                raise ConnectionError
            far.connect(self.target)
        except OSError:
            near.close()
            far.close()
            return
        pair = _Pair(near, far)
        for sock in (near, far):
            sock.settimeout(2)
            self._pairs[sock] = pair
            self._selector.register(sock, selectors.EVENT_READ)

    def _drop(self, pair):
        for sock in (pair.near, pair.far):
            if self._pairs.pop(sock, None):
                self._selector.unregister(sock)
            sock.close()

    def _carry(self, sock):
        pair = self._pairs.get(sock)
        if not pair:
            return
        try:
            data = sock.recv(PIECE)
            if not data:
                raise ConnectionError
            if sock is pair.near:
                pair.far.sendall(data)
            elif self.mode == "garbage":
                pair.near.sendall(GARBAGE if pair.spoilt else data[: len(data) // 2] + GARBAGE)
                pair.spoilt = True
            elif self.mode == "drip" or pair.pending:
                pair.pending += data
            else:
                pair.near.sendall(data)
        except OSError:
            self._drop(pair)

    def _drip(self, pair):
        """A few bytes a turn; all of it when times are better."""
        if not pair.pending:
            return
        n = 3 if self.mode == "drip" else len(pair.pending)
        try:
            pair.near.sendall(pair.pending[:n])
            pair.pending = pair.pending[n:]
        except OSError:
            self._drop(pair)

    def close(self):
        self._running = False
        self._thread.join(5)
        for pair in set(self._pairs.values()):
            self._drop(pair)
        self._selector.close()
        self._listener.close()
        with contextlib.suppress(OSError):
            os.unlink(self.path)
