"""Nobody reads the journal: systemd-journald stands still, and the socket that the log goes to is full.

A death is on the router's wire all the same, nobody waits for the agent, and when the journal is read again the
log says how many lines were lost.
"""

import os
import re
import socket
import time

from lib.agentctl import DEFAULTS
from lib.case import check, eventually, main
from lib.machinesite import CONFIG, MachineSite
from lib.pulse import Pulse

DNS, DNS6 = "192.0.2.53/32", "2001:db8::53/128"
LOST = r"log: (\d+) lines lost, the reader was too slow"
SITE = {**CONFIG, "defaults": DEFAULTS}
PULSE = Pulse()


def make_site():
    return MachineSite(config=SITE)


def journal(site):
    return site.machine.journal("redshank.service")


def post(site, command):
    """One change over the status socket, from outside: how long it took, in seconds, without what the machine withheld."""
    began = time.time()
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(15)
        s.connect(f"/proc/{site.machine.leader}/root/run/redshank/status.sock")
        s.sendall(f"POST /v1/{command} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
        answer = b""
        while piece := s.recv(4096):
            answer += piece
    check(answer.startswith(b"HTTP/1.1 200"), command, answer)
    took = time.time() - began
    return took if took < 0.5 else took - PULSE.withheld(began)


def room(site):
    """How many datagrams the journal's socket takes."""
    return int(site.machine.run(["cat", "/proc/sys/net/unix/max_dgram_qlen"]).stdout)


def test_full_journal(site):
    """The log's socket is full when a service dies: withdrawn within a second; later the lost lines are counted."""
    machine = site.machine
    machine.systemctl("start", "bird.service", "nsd.service", "redshank.service")
    site.wait_sessions(["edge1"])
    for prefix in (DNS, DNS6):
        site.wait_announced(prefix, "edge1")
    agent = machine.show("redshank.service", "MainPID")
    nsd, journald = (machine.show(unit, "MainPID") for unit in ("nsd.service", "systemd-journald.service"))
    eventually(lambda: "announc" in journal(site), what="the journal is read")
    before = len(journal(site))
    machine.run(["kill", "-STOP", journald])
    try:
        changes, slowest = 2 * (room(site) // 2 + 50), 0.0
        for n in range(changes):
            slowest = max(slowest, post(site, "thaw" if n % 2 else "freeze"))
        check(slowest < 1.0, "nobody waits for the log", slowest)
        before_kill = time.time()
        machine.run(["kill", "-KILL", nsd])
        killed = time.time()
        for prefix in (DNS, DNS6):
            gone = site.wire.wait_withdraw("edge1", prefix, since=before_kill)
            late = gone.time - killed - PULSE.withheld(before_kill)
            check(late < 1.0, f"{prefix} is withdrawn within a second", gone.time - killed, late)
    finally:
        machine.run(["kill", "-CONT", journald])
    print(f"    {changes} changes, the slowest took {slowest * 1000:.0f} ms; withdrawn {(gone.time - before_kill) * 1000:.0f} ms after the kill began")
    machine.systemctl("restart", "nsd.service")
    told = eventually(lambda: re.search(LOST, journal(site)[before:]), 10, lambda: journal(site)[before:][-2000:])
    check(int(told[1]) > 50, "lines were lost and counted", told[0])
    check(f"process {nsd} " not in journal(site)[before:], "that of the death is one of them")
    eventually(lambda: f"announcing {DNS}" in journal(site)[before:][told.end():], 10, "the log goes on")
    check(machine.show("redshank.service", "MainPID") == agent, "the agent is the same")
    for prefix in (DNS, DNS6):
        site.wait_announced(prefix, "edge1")


main(make_site)
