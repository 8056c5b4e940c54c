"""A client: one DNS question, one page, or a stream of questions that remembers every answer.

The question is `id.example.net TXT`; the answer is the name of the edge that served it, so that a
test can say where queries went and how many were lost.
"""

import http.client
import os
import selectors
import socket
import struct
import threading
import time
from dataclasses import dataclass

from lib.wait import TimedOut

NAME = "id.example.net"


def question(number, name=NAME, rrtype=16):
    """A DNS query (RFC 1035): header with id `number`, one question, class IN."""
    labels = b"".join(bytes([len(x)]) + x.encode() for x in name.split("."))
    return struct.pack("!HHHHHH", number, 0, 1, 0, 0, 0) + labels + b"\0" + struct.pack("!HH", rrtype, 1)


def answer(message):
    """(id, text of the first TXT answer or None)."""
    number, flags, questions, answers = struct.unpack_from("!HHHH", message)
    if not flags & 0x8000 or questions != 1 or answers < 1:
        return number, None
    at = message.index(b"\0", 12) + 5
    at += 2 if message[at] & 0xC0 == 0xC0 else message.index(b"\0", at) + 1 - at
    rrtype, _, _, _ = struct.unpack_from("!HHIH", message, at)
    if rrtype != 16:
        return number, None
    return number, message[at + 11 : at + 11 + message[at + 10]].decode()


def _socket(address, kind):
    return socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, kind)


def ask(address, timeout=1.0):
    """Asks once, from the calling thread's namespace. The serving edge's name, or None."""
    number = int.from_bytes(os.urandom(2), "big")
    with _socket(address, socket.SOCK_DGRAM) as sock:
        sock.settimeout(timeout)
        sock.connect((address, 53))
        try:
            sock.send(question(number))
            got, name = answer(sock.recv(4096))
        except OSError:
            return None
    return name if got == number else None


def fetch(address, path="/", timeout=1.0):
    """The body of http://address/path without its newline, or None."""
    connection = http.client.HTTPConnection(address, 80, timeout=timeout)
    try:
        connection.request("GET", path)
        return connection.getresponse().read().decode().strip()
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


@dataclass
class Query:
    sent: float  # CLOCK_REALTIME, seconds
    answered: float = 0.0  # 0: never
    by: str = ""  # the edge that answered


class Asker:
    """Asks `address` `rate` times a second from `host` until stop(); every Query is kept."""

    def __init__(self, host, address="192.0.2.53", rate=100):
        self.address = address
        self.period = 1.0 / rate
        self.queries = []
        with host.inside():
            self._sock = _socket(address, socket.SOCK_DGRAM)
        self._sock.setblocking(False)
        self._changed = threading.Condition()
        self._end = threading.Event()
        self._finished = False
        self._thread = threading.Thread(target=self._work, name="asker", daemon=True)
        self._thread.start()

    def _work(self):
        selector = selectors.DefaultSelector()
        selector.register(self._sock, selectors.EVENT_READ)
        due = time.monotonic()
        while not self._end.is_set():
            if selector.select(0.05 if self._finished else max(0.0, due - time.monotonic())):
                self._receive()
            if time.monotonic() >= due and not self._finished:
                self._send()
                # After a stop of the machine no more at once than a service's socket holds.
                due = max(due + self.period, time.monotonic() - 0.1)
        selector.close()

    def _send(self):
        number = len(self.queries) & 0xFFFF
        self.queries.append(Query(time.time()))
        try:
            self._sock.sendto(question(number), (self.address, 53))
        except OSError:
            pass  # no route, or the host says no: a lost query

    def _receive(self):
        try:
            while True:
                message = self._sock.recv(4096)
                number, name = answer(message)
                at = len(self.queries) - 1 - ((len(self.queries) - 1 - number) & 0xFFFF)
                if name and at >= 0 and not self.queries[at].by:
                    with self._changed:
                        self.queries[at].answered, self.queries[at].by = time.time(), name
                        self._changed.notify_all()
        except OSError:
            pass

    def wait_served(self, by, timeout=10.0, since=0.0):
        """The first query sent at or after `since` that the edge `by` answered."""
        deadline = time.monotonic() + timeout
        with self._changed:
            while True:
                for query in self.queries:
                    if query.by == by and query.sent >= since:
                        return query
                left = deadline - time.monotonic()
                if left <= 0:
                    raise TimedOut(f"no query was answered by {by} within {timeout:g} s; {self.summary(since)}")
                self._changed.wait(left)

    def between(self, start, end=float("inf")):
        """The queries sent in that time. Give answers a moment before counting the last ones."""
        return [q for q in list(self.queries) if start <= q.sent < end]

    def lost(self, start, end=float("inf")):
        """How many queries sent in that time have had no answer so far."""
        return sum(not q.by for q in self.between(start, end))

    def served(self, start, end=float("inf")):
        """{edge: number of answers} of the queries sent in that time."""
        found = {}
        for query in self.between(start, end):
            if query.by:
                found[query.by] = found.get(query.by, 0) + 1
        return found

    def summary(self, start=0.0):
        return f"{len(self.between(start))} queries, answered {self.served(start)}, lost {self.lost(start)}"

    def finish(self, start, timeout=3.0):
        """Asks no more, and takes the answers that are still on their way. How many queries since `start` had none."""
        self._finished, deadline = True, time.monotonic() + timeout
        while self.lost(start) and time.monotonic() < deadline:
            time.sleep(0.01)
        self.stop()
        return self.lost(start)

    def stop(self):
        self._end.set()
        self._thread.join(5)
        self._sock.close()
