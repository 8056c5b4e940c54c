"""A thousand http checks at once keep their schedule, and those that hang delay no other.

Every check asks for a page of its own, once a second; nginx's log says when each request came. A
tenth of the checks ask servers that accept and never answer, and run into their timeout each time.
How far a check is off its own schedule is held to 50 ms: all but one in a hundred, because a busy
machine stops everybody now and then; the median to a fifth of it. Where the agent had to wait for a
processor (the kernel counts that) it is looked at again, and a machine that never has one free shows
only that what hangs is not waited for.
"""

import collections
import socket
import statistics
import time

from lib.case import check, eventually, main
from lib.pulse import Pulse
from lib.site import Site
from lib.web import Web, page

WEB = "192.0.2.80/32"
CHECKS, HUNG, SECONDS = 1000, 100, 6
LIMIT = 0.05
LOOKS = 3
PULSE = Pulse()
FREE = 0.2  # of the time: the agent may wait as long for a processor on a machine that has one for it


def checks():
    made = {}
    for i in range(CHECKS):
        port = 81 if i % (CHECKS // HUNG) == 0 else 80
        made[f"page{i}"] = page(f"http://192.0.2.80:{port}/{i}", host="www.example.net", expect={"body": "ok"})
    return made


def make_site():
    site = Site(edges=1, services=False)
    edge = site.edges[0]
    servers = (
        "server { listen 192.0.2.80:80 backlog=4096; access_log "
        + edge.host.path("seen.log")
        + ' seen; location / { return 200 "ok\\n"; } }'
    )
    edge.nginx = Web(edge.host, servers, ("192.0.2.80", 80), 'log_format seen "$msec $uri";')
    edge.nginx.start()
    with edge.host.inside():
        site.hung = socket.create_server(("192.0.2.80", 81), backlog=4096)  # the kernel accepts, nobody answers
    agent = edge.agent
    agent.config["services"] = {"web": {"prefixes": {WEB: 100}, "require": CHECKS - HUNG, "checks": checks()}}
    agent.config["defaults"] = {"interval": "1s", "fast_interval": "1s", "timeout": "900ms", "rise": 2, "fall": 2}
    return site


def requests(site):
    """{page: when it was asked for}"""
    found = collections.defaultdict(list)
    with open(site.edges[0].host.path("seen.log"), encoding="ascii") as f:
        for line in f:
            msec, _, path = line.strip().partition(" ")
            found[path].append(float(msec))
    return found


def waited(agent):
    """Seconds that it was ready to run, and had no processor."""
    with open(f"/proc/{agent.pid}/schedstat", encoding="ascii") as f:
        return int(f.read().split()[1]) / 1e9


def look(site):
    """Some seconds: (how often the page was asked for that was so least, lateness: median, 99 %, part of the time that
    the agent had to wait)."""
    agent = site.edges[0].agent
    begun, before = time.time(), waited(agent)
    eventually(lambda: time.time() - begun > SECONDS + 1, SECONDS + 60, "some seconds")
    busy = (waited(agent) - before + PULSE.withheld(begun)) / (time.time() - begun)
    least, late = SECONDS, []
    for times in requests(site).values():
        times = [t for t in times if begun < t < begun + SECONDS]
        least = min(least, len(times))
        late += [abs(t - times[0] - round(t - times[0])) for t in times]
    late.sort()
    median, most = statistics.median(late), late[int(len(late) * 0.99)]
    print(f"# off schedule: median {median * 1000:.0f} ms, 99 % {most * 1000:.0f} ms, worst {late[-1] * 1000:.0f} ms of "
          f"{len(late)}; the agent waited {100 * busy:.0f} % of the time for a processor")
    return least, median, most, busy


def test_schedule(site):
    """Nine hundred pages once a second each, beside a hundred checks that hang."""
    agent = site.edges[0].agent
    agent.start()
    eventually(lambda: len(requests(site)) == CHECKS - HUNG, 20, "every page is asked for", every=0.1)
    for _ in range(LOOKS):
        least, median, most, busy = look(site)
        if least >= SECONDS - 1 and median <= LIMIT / 5 and most <= LIMIT:
            return
        check(busy > FREE, "each once a second, and on schedule", least, median, most, busy)
    check(least >= SECONDS / 2, "what hangs is not waited for", least, median, busy)


def test_hung_and_well(site):
    """The checks that hang say so, the others are good, and the prefix that needs only these is announced."""
    agent = site.edges[0].agent
    site.wait_announced(WEB, "edge1")

    def down():
        found = agent.status()["services"]["web"]["checks"]
        return [c["reason"] for c in found.values() if c["state"] != "up"]

    eventually(lambda: down() == HUNG * ["timeout after 900ms"], 20, lambda: f"a hundred are out of time: {down()}", every=0.1)


main(make_site)
