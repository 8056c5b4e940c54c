"""An agent does not grow: 100,000 checks and 10,000 changes of what is announced, and it holds the memory and the
descriptors that it held before (tests/run --long; a fifth of that by default). What it does until its memory is what
it will be comes first, and is not counted. Without sanitizers, whose allocator would keep what is freed.
"""

import json
import os
import subprocess
import time

from lib.agentctl import plain_agent
from lib.case import check, eventually, main
from lib.site import Site

SERVICES = 100
PART = 1 if os.environ.get("REDSHANK_LONG") else 5
CHECKS, CHANGES = 100_000 // PART, 10_000 // PART
WARM = 0.3  # of it, before
SLACK_KB = 512
ADDRESS = "198.18.0.1"
PORTS = range(7, 12)  # one alone runs out of connections that the kernel still remembers, and is slow then
INTERVAL = "100ms"
MOST = 0.9  # of the services: a busy machine makes some checks late

LISTENER = """
import os, select, socket, sys
control = sys.stdin.buffer
listeners = []
while True:
    readable, _, _ = select.select([control] + listeners, [], [])
    for listener in listeners:
        if listener in readable:
            listener.accept()[0].close()
    if control in readable:
        word = os.read(0, 1)
        if not word:
            break
        for listener in listeners:
            listener.close()
        listeners = []
        if word == b"o":
            for port in sys.argv[2:]:
                listener = socket.socket()
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                listener.bind((sys.argv[1], int(port)))
                listener.listen(1024)
                listeners.append(listener)
"""


def configure(edge):
    timing = {"interval": INTERVAL, "fast_interval": INTERVAL, "timeout": INTERVAL, "rise": 1, "fall": 1}
    edge.agent.config["services"] = {
        f"s{n}": {
            "prefixes": {f"198.18.1.{n}/32": 100},
            "address_check": False,
            "checks": {"port": {"type": "tcp", "address": ADDRESS, "port": PORTS[n % len(PORTS)], **timing}},
        }
        for n in range(SERVICES)
    }


def size(pid):
    """(anonymous memory in kB, descriptors)"""
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        fields = dict(line.split(":\t", 1) for line in f if ":\t" in line)
    return int(fields["RssAnon"].split()[0]), len(os.listdir(f"/proc/{pid}/fd"))


def metrics(agent):
    """(checks that were run, changes of prefixes)"""
    found = {"redshank_check_outcomes_total": 0, "redshank_prefix_transitions_total": 0}
    for line in agent.get("/metrics", timeout=20)[1].decode().splitlines():
        name = line.split("{")[0]
        if name in found:
            found[name] += int(float(line.rsplit(" ", 1)[1]))
    return tuple(found.values())


def count(agent, wanted):
    status = json.loads(agent.get("/v1/status", timeout=20)[1])
    return sum(p["wanted"] == wanted for s in status["services"].values() for p in s["prefixes"].values())


def test_growth(site):
    """Checks and changes later the agent is as large as before."""
    edge = site.edges[0]
    edge.add_address(ADDRESS)
    configure(edge)
    edge.agent.program = plain_agent()[0]
    listener = subprocess.Popen(edge.host.argv(["/usr/bin/python3", "-c", LISTENER, ADDRESS, *map(str, PORTS)]), stdin=subprocess.PIPE)
    try:
        edge.agent.start()
        opened, before, warm = False, None, (0, 0)
        end = time.monotonic() + 1800 / PART
        while True:
            checks, changes = metrics(edge.agent)
            if before is None and min(checks / CHECKS, changes / CHANGES) > WARM:
                before, warm = size(edge.agent.pid), (checks, changes)
            if before and checks - warm[0] >= CHECKS and changes - warm[1] >= CHANGES:
                break
            check(time.monotonic() < end, "so many in time", checks, changes)
            opened = not opened
            listener.stdin.write(b"o" if opened else b"c")
            listener.stdin.flush()
            wanted = "announce" if opened else "withdraw"
            eventually(lambda: count(edge.agent, wanted) >= MOST * SERVICES, 60, f"most of them {wanted}", every=0.1)
        eventually(lambda: edge.agent.status()["bird"]["settled"], 10, "BIRD has followed")
        after = size(edge.agent.pid)
        print(f"    {checks - warm[0]} checks, {changes - warm[1]} changes: {before[0]} kB and {before[1]} descriptors, then {after[0]} and {after[1]}")
        check(after[0] <= before[0] + SLACK_KB, f"at most {SLACK_KB} kB more", before, after)
        check(after[1] <= before[1] + SERVICES, "no descriptors but those of checks under way", before, after)
    finally:
        listener.stdin.close()
        listener.wait(10)


main(lambda: Site(edges=1, services=False))
