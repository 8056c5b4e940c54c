"""The watcher of the router's wire.

A packet socket on each of the router's links, inside the router's namespace, sees every BGP packet
of the edges with the kernel's time stamp; the TCP streams are put together again and each UPDATE
becomes events. What the tests call "left the wire" or "arrived" is measured here and nowhere else:
CLOCK_REALTIME, seconds, as time.time() gives it.
"""

import ctypes
import ipaddress
import selectors
import socket
import struct
import threading
import time
from dataclasses import dataclass, field

from lib import bgp
from lib.wait import TimedOut

ETH_P_ALL = 3
SO_TIMESTAMPNS = 35
SO_ATTACH_FILTER = 26
PACKET_STATISTICS = 6
PACKET_OUTGOING = 4
PORT = 179

ANNOUNCE, WITHDRAW = "announce", "withdraw"
OPENED, CLOSED, NOTIFIED, END_OF_RIB = "opened", "closed", "notified", "end-of-rib"


@dataclass
class Event:
    time: float  # of the packet that completed the message, CLOCK_REALTIME, seconds
    edge: str
    kind: str  # announce, withdraw; opened (an OPEN), closed (FIN or RST), notified, end-of-rib
    prefix: str = ""
    attributes: dict = field(default_factory=dict)  # as in bgp.update(); of an announcement
    session: str = ""  # "IPv4" or "IPv6": the edge has a session over each

    @property
    def med(self):
        return self.attributes.get("med")

    def __str__(self):
        clock = time.strftime("%H:%M:%S", time.localtime(self.time)) + f".{int(self.time * 1e6) % 10**6:06d}"
        extra = " ".join(f"{k}={v}" for k, v in self.attributes.items() if k not in ("origin", "next_hop"))
        return f"{clock} {self.edge} {self.session}: {self.kind} {self.prefix} {extra}".rstrip()


def _filter():
    """Classic BPF: IPv4 or IPv6, TCP, either port 179; the kernel drops the rest for us."""
    code = [
        (0x28, 0, 0, 12),  # ldh ethertype
        (0x15, 0, 7, 0x0800),  # IPv4? else 9
        (0x30, 0, 0, 23),  # ldb protocol
        (0x15, 0, 11, 6),  # TCP? else drop
        (0xB1, 0, 0, 14),  # ldxb header length
        (0x48, 0, 0, 14),  # ldh source port
        (0x15, 7, 0, PORT),
        (0x48, 0, 0, 16),  # ldh destination port
        (0x15, 5, 6, PORT),
        (0x15, 0, 5, 0x86DD),  # IPv6? else drop
        (0x30, 0, 0, 20),  # ldb next header
        (0x15, 0, 3, 6),
        (0x28, 0, 0, 54),
        (0x15, 0, 2, PORT),  # else look at the destination port
        (0x06, 0, 0, 0x40000),  # accept
        (0x06, 0, 0, 0),  # drop
        (0x28, 0, 0, 56),
        (0x15, 0, 1, PORT),
        (0x06, 0, 0, 0x40000),
        (0x06, 0, 0, 0),
    ]
    return b"".join(struct.pack("HBBI", *c) for c in code), len(code)


class _Stream:
    """One direction of one connection: segments in order, whatever the order they came in."""

    def __init__(self):
        self.next = None
        self.early = {}
        self.data = bytearray()

    def restart(self):
        """After something undecodable: joins again where a message begins."""
        self.__init__()

    def segment(self, seq, syn, payload):
        """Adds a segment; True when the stream has grown."""
        if syn:
            self.next = (seq + 1) & 0xFFFFFFFF
            self.early.clear()
            self.data.clear()
            return False
        if self.next is None:
            if not payload.startswith(bgp.MARKER):
                return False  # joined in the middle: wait for the beginning of a message
            self.next = seq
        if payload:
            self.early[seq] = max(payload, self.early.get(seq, b""), key=len)
        grown = False
        while True:
            ready = [s for s in self.early if (self.next - s) & 0xFFFFFFFF < 0x80000000]
            if not ready:
                return grown
            for start in ready:
                piece = self.early.pop(start)
                fresh = piece[(self.next - start) & 0xFFFFFFFF :]
                self.data += fresh
                self.next = (self.next + len(fresh)) & 0xFFFFFFFF
                grown = grown or bool(fresh)


def decode_packet(frame):
    """(source, sport, destination, dport, seq, flags, payload) of a TCP packet, or None."""
    kind = frame[12:14]
    if kind == b"\x08\x00":
        head = (frame[14] & 15) * 4
        total = struct.unpack_from("!H", frame, 16)[0]
        source, destination = frame[26:30], frame[30:34]
        tcp = 14 + head
        end = 14 + total if total else len(frame)
    elif kind == b"\x86\xdd":
        length = struct.unpack_from("!H", frame, 18)[0]
        source, destination = frame[22:38], frame[38:54]
        tcp = 54
        end = 54 + length if length else len(frame)
    else:
        return None
    sport, dport, seq, _, offset, flags = struct.unpack_from("!HHIIBB", frame, tcp)
    return source, sport, destination, dport, seq, flags, bytes(frame[tcp + (offset >> 4) * 4 : end])


class Wire:
    """Watches links of `host` (the router); {interface: edge}. Ends with close()."""

    def __init__(self, host, interfaces):
        self.events = []  # only grows; of the edges' own packets, in order of arrival
        self.dropped = 0  # packets that the kernel had no room for: then nothing can be proved
        self.bad = []  # texts of messages that could not be decoded
        self._changed = threading.Condition()
        self._streams = {}
        self._as4 = {}
        self._sockets = []
        self._selector = selectors.DefaultSelector()
        for interface, edge in interfaces.items():
            self._open(host, interface, edge)
        self._call = socket.socketpair()  # a byte has the thread look at all links, "x" ends it
        self._asked = self._looked = 0
        self._selector.register(self._call[0], selectors.EVENT_READ, None)
        self._thread = threading.Thread(target=self._work, name="wire", daemon=True)
        self._thread.start()

    def _open(self, host, interface, edge):
        program, length = _filter()
        buffer = ctypes.create_string_buffer(program)
        with host.inside():
            sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        sock.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HL", length, ctypes.addressof(buffer)))
        sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        sock.setsockopt(socket.SOL_SOCKET, 33, 16 << 20)  # SO_RCVBUFFORCE
        sock.bind((interface, ETH_P_ALL))
        sock.setblocking(False)
        self._sockets.append(sock)
        self._selector.register(sock, selectors.EVENT_READ, edge)

    def _work(self):
        while True:
            for key, _ in self._selector.select():
                if key.data is not None:
                    self._drain(key.fileobj, key.data)
                elif b"x" in self._call[0].recv(4096):
                    return
                else:
                    self._look()

    def _look(self):
        asked = self._asked
        for key in self._selector.get_map().values():
            if key.data is not None:
                self._drain(key.fileobj, key.data)
        with self._changed:
            self._looked = asked
            self._changed.notify_all()

    def _catch_up(self):
        """What has passed the links by now is in `events`, however busy the machine is."""
        with self._changed:
            self._asked = asked = self._asked + 1
            self._call[1].send(b"?")
            if not self._changed.wait_for(lambda: self._looked >= asked, 30):
                raise TimedOut("the watcher of the wire stands still")

    def _drain(self, sock, edge):
        while True:
            try:
                frame, extra, _, address = sock.recvmsg(1 << 17, 256)
            except BlockingIOError:
                return
            when = time.time()
            for level, kind, data in extra:
                if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS:
                    seconds, nanoseconds = struct.unpack("ll", data[:16])
                    when = seconds + nanoseconds / 1e9
            try:
                self._packet(edge, address[2] != PACKET_OUTGOING, when, frame)
            except (bgp.BadMessage, struct.error, IndexError) as e:
                self.bad.append(f"{edge}: {e}")

    def _packet(self, edge, from_edge, when, frame):
        packet = decode_packet(frame)
        if not packet:
            return
        source, sport, destination, dport, seq, flags, payload = packet
        way = (edge, source, sport, destination, dport)
        stream = self._streams.setdefault(way, _Stream())
        found = []
        if stream.segment(seq, flags & 2, payload):
            connection = frozenset(((source, sport), (destination, dport)))
            try:
                for kind, body in bgp.messages(stream.data):
                    # What the router passes on is nobody's event, and may have path identifiers (RFC 7911).
                    if from_edge or kind != bgp.UPDATE:
                        found += self._message(edge, connection, kind, body, when)
            except bgp.BadMessage:
                stream.restart()
                raise
        if flags & 5:  # FIN or RST
            found.append(Event(when, edge, CLOSED))
            self._streams.pop(way, None)
        for event in found:
            event.session = "IPv4" if len(source) == 4 else "IPv6"
        if from_edge and found:
            with self._changed:
                self.events += found
                self._changed.notify_all()

    def _message(self, edge, connection, kind, body, when):
        if kind == bgp.OPEN:
            self._as4.setdefault(connection, []).append(bgp.open_has_as4(body))
            return [Event(when, edge, OPENED)]
        if kind == bgp.NOTIFICATION:
            return [Event(when, edge, NOTIFIED, attributes={"code": tuple(body[:2])})]
        if kind != bgp.UPDATE:
            return []
        update = bgp.update(body, all(self._as4.get(connection, [True])))
        found = [Event(when, edge, WITHDRAW, p) for p in update.withdrawn]
        found += [Event(when, edge, ANNOUNCE, p, update.attributes) for p in update.announced]
        if update.end_of_rib:
            found.append(Event(when, edge, END_OF_RIB))
        return found

    def wait(self, matches, timeout=10.0, since=0.0, what="a packet"):
        """The first event at or after `since` for which matches(event) is true."""
        deadline = time.monotonic() + timeout
        seen = 0
        with self._changed:
            while True:
                for event in self.events[seen:]:
                    if event.time >= since and matches(event):
                        return event
                seen = len(self.events)
                left = deadline - time.monotonic()
                if left <= 0 or not self._changed.wait(left):
                    if time.monotonic() >= deadline and len(self.events) == seen:
                        raise TimedOut(f"the wire did not show in {timeout:g} s: {what}\n{self.tail()}")

    def wait_withdraw(self, edge, prefix, timeout=10.0, since=0.0):
        prefix = normal(prefix)
        return self.wait(
            lambda e: e.kind == WITHDRAW and e.edge == edge and e.prefix == prefix,
            timeout, since, f"{edge} withdraws {prefix}",
        )

    def wait_announce(self, edge, prefix, timeout=10.0, since=0.0, med=None):
        prefix = normal(prefix)
        return self.wait(
            lambda e: e.kind == ANNOUNCE and e.edge == edge and e.prefix == prefix and med in (None, e.med),
            timeout, since, f"{edge} announces {prefix}" + ("" if med is None else f" with MED {med}"),
        )

    def since(self, when, edge=None, prefix=None, kinds=(ANNOUNCE, WITHDRAW)):
        """The events at or after `when`, by default the UPDATEs of all edges; kinds=None: all events."""
        self._catch_up()
        prefix = prefix and normal(prefix)
        with self._changed:
            return [
                e for e in self.events
                if e.time >= when and (kinds is None or e.kind in kinds)
                and edge in (None, e.edge) and prefix in (None, e.prefix)
            ]

    def lost(self):
        """How many packets the kernel had to drop before we read them; 0 or the test proves nothing."""
        for sock in self._sockets:
            self.dropped += struct.unpack("II", sock.getsockopt(263, PACKET_STATISTICS, 8))[1]
        return self.dropped

    def tail(self, n=20):
        """The last events as text, for a failed test."""
        lines = [str(e) for e in self.events[-n:]] + [f"not decoded: {b}" for b in self.bad[-5:]]
        return "\n".join(lines) or "(nothing was on the wire)"

    def close(self):
        self._call[1].send(b"x")
        self._thread.join(5)
        for sock in self._sockets:
            sock.close()
        self._selector.close()
        for end in self._call:
            end.close()


def normal(prefix):
    """A prefix as events have it: "2001:DB8::53" is "2001:db8::53/128"."""
    return str(ipaddress.ip_network(prefix))
