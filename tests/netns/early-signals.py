"""Signals that come before the agent knows what BIRD does are not lost: a second later they count."""

import signal
import time

from lib.case import check, eventually, main
from lib.site import Site
from lib.wait import TimedOut

DNS, DNS6, WEB = "192.0.2.53/32", "2001:db8::53/128", "192.0.2.80/32"


def before_bird(site, then):
    """then(edge) while the agent runs and waits for a BIRD that hangs. It waits a second: a machine that was stopped
    for as long tries again."""
    edge = site.edges[0]
    for _ in range(5):
        mark = len(edge.agent.text())
        edge.bird.process.freeze()
        edge.agent.config = edge.agent.default_config()
        edge.agent.start()
        then(edge)
        if "watching" not in edge.agent.text()[mark:]:
            return edge
        edge.agent.kill()
        edge.bird.process.thaw()
    raise TimedOut(f"the agent should wait for BIRD\n{edge.agent.tail()}")


def test_reload(site):
    """HUP: the configuration that lies there by then is the one that counts."""
    def reload(edge):
        edge.agent.config["services"]["dns"]["prefixes"][DNS] = 555
        edge.agent.reload()

    edge = before_bird(site, reload)
    edge.bird.process.thaw()
    site.wire.wait_announce("edge1", DNS, med=555, timeout=20)


def test_stop(site):
    """TERM: what an agent before announced is withdrawn before this one ends."""
    edge = site.edges[0]
    if not edge.agent.process:
        edge.agent.start()
    for prefix in (DNS, DNS6, WEB):
        site.wait_announced(prefix, "edge1")
    edge.agent.kill()
    begun = time.time()
    before_bird(site, lambda e: e.agent.send_signal(signal.SIGTERM))
    edge.bird.process.thaw()
    for prefix in (DNS, DNS6, WEB):
        site.wire.wait_withdraw("edge1", prefix, since=begun, timeout=20)
    eventually(lambda: not edge.agent.process.alive(), 20, "the agent ends")
    check(edge.agent.process.popen.returncode == 0, "exit status 0", edge.agent.tail())


def test_stop_twice(site):
    """A second TERM does not wait for anything."""
    def stop(edge):
        def is_gone():
            edge.agent.send_signal(signal.SIGTERM)  # two that come at once are one
            return not edge.agent.process.alive()

        eventually(is_gone, 20, "the agent ends")

    edge = before_bird(site, stop)
    edge.bird.process.thaw()


main(lambda: Site(edges=1))
