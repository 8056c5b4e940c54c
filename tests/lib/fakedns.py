"""A DNS server that answers as a test wants it, over UDP and TCP.

    fake = FakeDns(edge.host, "192.0.2.53", 5301, answer)
    fake.queries          # [Query, ...]: what came, over both
    fake.stop()

`answer(query)` returns the messages to send, a list of bytes; an item may also be ("other", bytes),
which over UDP is sent from another port. Builders for messages, wrong ones too, are below.
"""

import socket
import struct
import threading

A, NS, CNAME, TXT, OPT = 1, 2, 5, 16, 41
QR, AA, TC, RD = 0x8000, 0x0400, 0x0200, 0x0100


class Query:
    """A query as it came: wire, id, flags, name (bytes on the wire), type, tcp."""

    def __init__(self, wire, tcp):
        self.wire = wire
        self.tcp = tcp
        self.id, self.flags = struct.unpack("!HH", wire[:4])
        end = 12
        while wire[end]:
            end += wire[end] + 1
        self.name = wire[12 : end + 1]
        self.type, self.qclass = struct.unpack("!HH", wire[end + 1 : end + 5])
        self.question = wire[12 : end + 5]
        self.additional = wire[end + 5 :]


def name(text):
    """ "example.net" on the wire, without escapes."""
    return b"".join(bytes([len(label)]) + label.encode() for label in text.split(".") if label) + b"\0"


def record(rrtype, rdata, owner=b"\xc0\x0c"):
    """A record, by default of the name that was asked for."""
    return owner + struct.pack("!HHIH", rrtype, 1, 60, len(rdata)) + rdata


def reply(query, rcode=0, answers=(), flags=QR, question=None, qdcount=1, change_id=0):
    """An answer to the query; the keywords make it a wrong one."""
    head = struct.pack("!HHHHHH", query.id ^ change_id, flags | rcode, qdcount, len(answers), 0, 0)
    return head + (query.question if question is None else question) + b"".join(answers)


class FakeDns:
    def __init__(self, host, address, port, answer):
        self.answer = answer
        self.queries = []
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with host.inside():
            self.udp = socket.socket(family, socket.SOCK_DGRAM)
            self.udp.bind((address, port))
            self.other = socket.socket(family, socket.SOCK_DGRAM)
            self.other.bind((address, 0))
            self.tcp = socket.create_server((address, port), family=family)
        for serve in (self._serve_udp, self._serve_tcp):
            threading.Thread(target=serve, daemon=True).start()

    def _answers(self, wire, tcp):
        query = Query(wire, tcp)
        self.queries.append(query)
        return self.answer(query)

    def _serve_udp(self):
        while True:
            try:
                wire, peer = self.udp.recvfrom(4096)
            except OSError:
                return
            for message in self._answers(wire, False):
                if isinstance(message, tuple):
                    self.other.sendto(message[1], peer)
                else:
                    self.udp.sendto(message, peer)

    def _serve_tcp(self):
        while True:
            try:
                connection, _ = self.tcp.accept()
            except OSError:
                return
            with connection:
                try:
                    connection.settimeout(1)
                    length = struct.unpack("!H", connection.recv(2, socket.MSG_WAITALL))[0]
                    for message in self._answers(connection.recv(length, socket.MSG_WAITALL), True):
                        connection.sendall(struct.pack("!H", len(message)) + message)
                    connection.recv(1)  # until the other end has closed
                except (OSError, struct.error):
                    pass

    def stop(self):
        for sock in (self.udp, self.other, self.tcp):
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            sock.close()
