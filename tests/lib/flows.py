"""Flows of a client: a number of source ports that stay, and the edge that serves each.

A router that shares by addresses and ports sends all packets of a flow to one edge. Flows asks once
in each and tells who answered, so that a test sees which flows an edge's death moved.
"""

import ipaddress
import selectors
import socket
import time

from lib import client


class Flows:
    """`count` UDP sockets of `host` towards `address`, each with a port of its own, until close()."""

    def __init__(self, host, address, count):
        self.host = host
        self.target = (str(ipaddress.ip_address(address)), 53)
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._selector = selectors.DefaultSelector()
        self._socks = []
        with host.inside():
            for index in range(count):
                sock = socket.socket(family, socket.SOCK_DGRAM)
                sock.setblocking(False)
                sock.bind(("::" if family == socket.AF_INET6 else "0.0.0.0", 0))
                self._socks.append(sock)
                self._selector.register(sock, selectors.EVENT_READ, index)
        self._number = 0

    def ask(self, timeout=3.0):
        """Asks once in each flow: the edges that answered, in the flows' order; None: nobody did."""
        self._number = (self._number + 1) & 0xFFFF
        served = [None] * len(self._socks)
        for sock in self._socks:
            try:
                sock.sendto(client.question(self._number), self.target)
            except OSError:
                pass  # no route: nobody answers
        deadline = time.monotonic() + timeout
        while None in served and time.monotonic() < deadline:
            for key, _ in self._selector.select(deadline - time.monotonic()):
                self._receive(key.fileobj, key.data, served)
        return served

    def _receive(self, sock, index, served):
        try:
            number, name = client.answer(sock.recv(4096))
        except OSError:
            return  # an ICMP error: nobody answers
        if number == self._number:
            served[index] = name

    def close(self):
        self._selector.close()
        for sock in self._socks:
            sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
