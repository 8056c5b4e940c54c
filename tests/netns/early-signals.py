"""Signals that come before the agent knows what BIRD does are not lost: a second later they count."""

import signal
import time

from lib.case import check, eventually, main
from lib.site import Site

DNS, DNS6, WEB = "192.0.2.53/32", "2001:db8::53/128", "192.0.2.80/32"


def start_before_bird(site):
    """The agent runs and waits for a BIRD that hangs."""
    edge = site.edges[0]
    mark = len(edge.agent.text())
    edge.bird.process.freeze()
    edge.agent.start()
    check("watching" not in edge.agent.text()[mark:], "what BIRD does is not known yet", edge.agent.tail())
    return edge


def test_reload(site):
    """HUP: the configuration that lies there by then is the one that counts."""
    edge = start_before_bird(site)
    edge.agent.config["services"]["dns"]["prefixes"][DNS] = 555
    edge.agent.reload()
    edge.bird.process.thaw()
    site.wire.wait_announce("edge1", DNS, med=555, timeout=10)


def test_stop(site):
    """TERM: what an agent before announced is withdrawn before this one ends."""
    edge = site.edges[0]
    if not edge.agent.process:
        edge.agent.start()
    for prefix in (DNS, DNS6, WEB):
        site.wait_announced(prefix, "edge1")
    edge.agent.kill()
    begun = time.time()
    start_before_bird(site)
    edge.agent.send_signal(signal.SIGTERM)
    edge.bird.process.thaw()
    for prefix in (DNS, DNS6, WEB):
        site.wire.wait_withdraw("edge1", prefix, since=begun, timeout=10)
    eventually(lambda: not edge.agent.process.alive(), 10, "the agent ends")
    check(edge.agent.process.popen.returncode == 0, "exit status 0", edge.agent.tail())


def test_stop_twice(site):
    """A second TERM does not wait for anything."""
    edge = start_before_bird(site)
    mark = len(edge.agent.text())

    def is_gone():
        edge.agent.send_signal(signal.SIGTERM)  # two that come at once are one
        return not edge.agent.process.alive()

    eventually(is_gone, 5, "the agent ends")
    check("watching" not in edge.agent.text()[mark:], "it did not wait for BIRD", edge.agent.tail())
    edge.bird.process.thaw()


main(lambda: Site(edges=1))
