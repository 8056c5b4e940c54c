"""Twenty scrapers that never rest delay no withdrawal, and the agent tells their load."""

import http.client
import socket
import threading
import time

from lib import exposition
from lib.agentctl import plain_agent
from lib.case import check, main
from lib.site import Site

DNS = "192.0.2.53/32"
SCRAPERS = 20
KILLS = 5
# The agent's own share is some milliseconds; the rest is twenty busy clients on the same two cores.
MOST_OF_MEDIAN = 0.030


def make_site():
    site = Site(edges=1)
    agent = site.edges[0].agent
    agent.program, _ = plain_agent()
    slow = {"type": "tcp", "address": "127.0.0.1", "port": 1, "interval": "60s", "fast_interval": "60s"}
    for n in range(250):
        agent.config["services"][f"other{n}"] = {
            "prefixes": {f"10.26.{n}.1/32": 100, f"10.26.{n}.2/32": 100},
            "address_check": False,
            "checks": {f"port{k}": dict(slow) for k in range(8)},
        }
    agent.start()
    for prefix in (DNS, "2001:db8::53/128"):
        site.wait_announced(prefix, "edge1")
    return site


class Scraper(threading.Thread):
    """Asks again as soon as it is answered; reads as fast as it can."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path, self.stopped, self.n, self.wrong = path, False, 0, []

    def run(self):
        while not self.stopped:
            try:
                with socket.socket(socket.AF_UNIX) as s:
                    s.settimeout(10)
                    s.connect(self.path)
                    s.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
                    answer = http.client.HTTPResponse(s)
                    answer.begin()
                    while answer.read(1 << 20):
                        pass
                self.n += 1
                if answer.status != 200:
                    self.wrong.append(answer.status)
            except OSError as e:
                self.wrong.append(repr(e))


def withdrawals(site, kills):
    """Seconds from kill(2) to the UPDATE on the wire, sorted."""
    edge, found = site.edges[0], []
    for _ in range(kills):
        killed = edge.nsd.kill()
        found.append(site.wire.wait_withdraw("edge1", DNS, since=killed).time - killed)
        edge.nsd.start()
        edge.agent.wait_prefix(DNS, announced=True, exported=1, timeout=15)
        edge.agent.wait_prefix("2001:db8::53/128", announced=True, exported=1, timeout=15)
    return sorted(found)


def test_withdrawals_under_load(site):
    """A death is withdrawn as fast as without them, and each scraper is served."""
    alone = withdrawals(site, 2)
    scrapers = [Scraper(site.edges[0].agent.socket) for _ in range(SCRAPERS)]
    begun = time.time()
    for scraper in scrapers:
        scraper.start()
    loaded = withdrawals(site, KILLS)
    for scraper in scrapers:
        scraper.stopped = True
    for scraper in scrapers:
        scraper.join(15)
    rate = sum(s.n for s in scrapers) / (time.time() - begun)
    print(f"    alone {[round(1000 * t, 1) for t in alone]} ms")
    print(f"    with {SCRAPERS} scrapers, {rate:.0f} documents/s: {[round(1000 * t, 1) for t in loaded]} ms")
    check(not any(s.wrong for s in scrapers), "each is served", [s.wrong[:3] for s in scrapers if s.wrong])
    check(loaded[KILLS // 2] < MOST_OF_MEDIAN, "the median", loaded)


def test_bounded(site):
    """What they read at once was rendered once."""
    agent = site.edges[0].agent
    body = agent.get("/metrics", timeout=10)[1]
    answers = exposition.value(body, "redshank_http_requests_total", path="/metrics", code="200")
    renders = exposition.value(body, "redshank_metrics_renders_total")
    cost = exposition.value(body, "redshank_metrics_render_seconds_total")
    print(f"    {answers:.0f} answers, {renders:.0f} renders of {1000 * cost / renders:.1f} ms, {len(body) / 1e6:.1f} MB")
    check(renders * 2 < answers, "they share", renders, answers)


main(make_site)
