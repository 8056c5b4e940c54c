"""An agent under valgrind at a site: a start, a hang, a repair, a drain, a reload, questions of every kind, a stop.
Run by tests/valgrind, which gives the command line in $VALGRIND. Without checks of processes: valgrind has no
pidfd_open(2).

Exit status 0: all of it happened, and valgrind has found nothing.
"""

import os
import sys

from lib.agentctl import build_folder
from lib.site import Site

DNS, WEB = "192.0.2.53/32", "192.0.2.80/32"
SLOW = 40.0  # seconds, for what takes valgrind long


def wrapper(edge):
    """A program that is the agent under valgrind; valgrind's own words go to a file beside it."""
    path = edge.host.path("valgrind-redshankd")
    log = edge.host.path("valgrind.log")
    with open(path, "w", encoding="utf-8") as f:
        f.write("#!/bin/sh\nexec %s --log-file=%s %s \"$@\"\n" % (
            " ".join(os.environ["VALGRIND"].split()), log, os.path.join(build_folder(), "redshankd")))
    os.chmod(path, 0o755)
    return path, log


def configure(agent):
    agent.config["defaults"] = {"interval": "1s", "fast_interval": "500ms", "timeout": "900ms", "rise": 2, "fall": 2}
    services = agent.config["services"]
    services["dns"]["checks"] = {
        "port": {"type": "tcp", "address": "192.0.2.53", "port": 53},
        "answers": {"type": "dns", "server": "192.0.2.53", "name": "health.example.net", "rrtype": "A",
                    "expect": {"rcodes": ["NOERROR", "NXDOMAIN", "REFUSED"], "min_answers": 0}},
        "silence": {"type": "udp", "address": "192.0.2.53", "port": 53, "send": "x"},
    }
    services["web"]["checks"] = {
        "page": {"type": "http", "url": "http://192.0.2.80/healthz", "host": "www.example.net",
                 "expect": {"status": [200], "body_regex": "o+k?"}},
    }


def ask_everything(agent):
    for path in ("/", "/metrics", "/healthz", "/v1/status", "/v1/events", "/v1/explain?name=web", "/v1/none"):
        agent.get(path, timeout=SLOW)


def live(site, edge, agent):
    agent.wait_ready(SLOW)
    for prefix in (DNS, WEB):
        agent.wait_prefix(prefix, timeout=SLOW, wanted="announce", announced=True)
    edge.nginx.freeze()
    agent.wait_prefix(WEB, timeout=SLOW, wanted="withdraw", announced=False)
    ask_everything(agent)
    edge.nginx.thaw()
    agent.wait_prefix(WEB, timeout=SLOW, wanted="announce", announced=True)
    done = agent.ctl("drain", "dns", "--reason", "valgrind", "--for", "5m")
    assert done.returncode == 0, done.stderr
    agent.wait_prefix(DNS, timeout=SLOW, wanted="withdraw", announced=False)
    done = agent.ctl("undrain", "dns")
    assert done.returncode == 0, done.stderr
    del agent.config["services"]["web"]
    agent.reload()
    agent.wait_status(lambda status: "web" not in status["services"], SLOW, "web is gone")
    agent.wait_prefix(DNS, timeout=SLOW, wanted="announce", announced=True)
    ask_everything(agent)


def main():
    with Site(edges=1) as site:
        edge = site.edges[0]
        agent = edge.agent
        agent.program, log = wrapper(edge)
        configure(agent)
        agent.start(wait=False)
        try:
            live(site, edge, agent)
        finally:
            status = agent.stop(timeout=SLOW)
            with open(log, encoding="utf-8", errors="replace") as f:
                found = [line for line in f.read().splitlines() if "unhandled" not in line]
            print("\n".join(found), agent.text(), sep="\n")
        print(f"the agent ended with {status}")
        return 0 if status == 0 else 1


sys.exit(main())
