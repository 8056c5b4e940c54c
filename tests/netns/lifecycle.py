"""Stop, crash, start: what the router sees while an agent is away, and after its return.

Each way to leave (TERM, TERM with `keep`, USR2, kill -9) is combined with what can happen meanwhile:
nothing, a service dies, a service comes back, BIRD restarts. A new agent is right within a second of
its start, and no UPDATE is sent where nothing changed.
"""

import os
import shutil
import signal
import time

from lib.case import check, eventually, main
from lib.pulse import Pulse
from lib.site import Site
from lib.wire import ANNOUNCE, WITHDRAW

DNS, DNS6, WEB = "192.0.2.53/32", "2001:db8::53/128", "192.0.2.80/32"
ALL = {DNS, DNS6, WEB}
PULSE = Pulse()


def changes(site, since):
    return [(e.kind, e.prefix) for e in site.wire.since(since) if e.kind in (ANNOUNCE, WITHDRAW)]


def announced(site):
    return {prefix for prefix in ALL if "edge1" in site.routes(prefix)}


def all_up(site):
    edge = site.edges[0]
    for service in (edge.nsd, edge.nginx):
        if not service.process.alive():
            service.start()
    if not edge.agent.process or not edge.agent.process.alive():
        edge.agent.config = edge.agent.default_config()
        edge.agent.start()
    for prefix in ALL:
        site.wait_announced(prefix, "edge1")
        edge.agent.wait_prefix(prefix, announced=True, exported=1, reason="healthy")
    edge.agent.wait_status(lambda s: s["bird"]["settled"], what="settled")


def start_and_rest(site, expected, since):
    """Starts the agent; within a second of its start exactly `expected` was sent, and then nothing."""
    edge = site.edges[0]
    begun = time.time()
    edge.agent.start()
    for kind, prefix in expected:
        event = site.wire.wait(lambda e, k=kind, p=prefix: e.kind == k and e.prefix == p, since=since)
        took = event.time - begun
        check(took < 1.0 + PULSE.withheld(begun), f"{kind} {prefix} within a second of the start", took)
    edge.agent.wait_status(
        lambda s: s["bird"]["settled"] and all(p["reason"] != "first_round"
            for x in s["services"].values() for p in x["prefixes"].values()), what="decided and settled")
    eventually(lambda: time.time() - begun > 1.5, what="time for more to come")
    check(sorted(changes(site, since)) == sorted(expected), "exactly this was sent", changes(site, since))


def test_first_start(site):
    """After a boot nothing is announced before the checks have passed."""
    edge = site.edges[0]
    edge.nsd.stop()
    edge.agent.start()
    site.wait_announced(WEB, "edge1")
    edge.agent.wait_prefix(DNS, reason="unhealthy", announced=False)
    check(announced(site) == {WEB}, "what is healthy, and nothing else", announced(site))
    edge.nsd.start()
    site.wait_announced(DNS, "edge1")


def test_term(site):
    """TERM withdraws everything and then exits; the fragments that stay say `disabled`."""
    all_up(site)
    edge = site.edges[0]
    begun = time.time()
    check(edge.agent.stop(signal.SIGTERM) == 0, "exit status 0")
    left = time.time()
    for prefix in ALL:
        event = site.wire.wait_withdraw("edge1", prefix, since=begun)
        # It counts from BIRD's word, which may be on the wire a moment later.
        check(left - event.time >= 0.4, "stays for stop_grace, 500 ms, after that", left - event.time)
    for service in ("dns", "web"):
        text = edge.fragment(service)
        check(text.count("disabled;") == text.count("protocol static"), "every protocol is disabled", text)
    edge.birdc("configure")
    check(announced(site) == set(), "and a configure by anybody does not change that", announced(site))


def test_term_keep(site):
    """on_stop keep leaves its service announced, and the other one goes."""
    edge = site.edges[0]
    edge.agent.config["services"]["web"]["on_stop"] = "keep"
    edge.agent.start()
    for prefix in ALL:
        site.wait_announced(prefix, "edge1")
    begun = site.moment()
    check(edge.agent.stop(signal.SIGTERM) == 0, "exit status 0")
    check(announced(site) == {WEB}, "web is kept", announced(site))
    check(sorted(changes(site, begun)) == [(WITHDRAW, DNS), (WITHDRAW, DNS6)], "two UPDATEs", changes(site, begun))
    edge.agent.config["services"]["dns"]["on_stop"] = "keep"
    edge.agent.config["stop_grace"] = "10s"
    edge.agent.start()
    for prefix in ALL:
        site.wait_announced(prefix, "edge1")
    begun = time.time()
    check(edge.agent.stop(signal.SIGTERM) == 0, "exit status 0")
    took = time.time() - begun
    check(took < 5 + PULSE.withheld(begun), "no grace where nothing was withdrawn", took)
    check(announced(site) == ALL, "all is kept", announced(site))


def leave(edge, how):
    if how == "kill":
        edge.agent.kill()
    else:
        check(edge.agent.stop(signal.SIGUSR2) == 0, "exit status 0")


def test_away_nothing_happens(site):
    """USR2 and kill -9 leave BIRD alone, and the next agent sends no UPDATE."""
    for how in ("usr2", "kill"):
        all_up(site)
        begun = site.moment()
        leave(site.edges[0], how)
        start_and_rest(site, [], begun)
        check(site.edges[0].agent.status()["bird"]["commands_sent"] == 0, f"{how}: not one command that changes")


def test_away_service_dies(site):
    """A service that dies while the agent is away is withdrawn within a second of its return."""
    for how in ("usr2", "kill"):
        all_up(site)
        begun = site.moment()
        leave(site.edges[0], how)
        site.edges[0].nsd.kill()
        start_and_rest(site, [(WITHDRAW, DNS), (WITHDRAW, DNS6)], begun)


def test_away_service_returns(site):
    """A service that comes back while the agent is away earns its routes again."""
    for how in ("usr2", "kill"):
        all_up(site)
        edge = site.edges[0]
        edge.nsd.kill()
        for prefix in (DNS, DNS6):
            edge.agent.wait_prefix(prefix, announced=False, reason="unhealthy")
            site.wait_route(prefix, set())
        begun = time.time()
        leave(edge, how)
        edge.nsd.start()
        start_and_rest(site, [(ANNOUNCE, DNS), (ANNOUNCE, DNS6)], begun)


def all_anew(site, since):
    """A BIRD that was away since then announces all of it again, which the router's table does not tell from before."""
    site.wait_sessions()
    for prefix in ALL:
        site.wire.wait_announce("edge1", prefix, since=since, timeout=30)


def test_away_bird_restarts(site):
    """BIRD restarts while the agent is away: it announces what was true, and so does the next agent."""
    for how in ("usr2", "kill"):
        all_up(site)
        edge = site.edges[0]
        leave(edge, how)
        restarted = time.time()
        edge.bird.restart()
        all_anew(site, restarted)
        start_and_rest(site, [], time.time())


def test_away_both(site):
    """BIRD restarts and nsd dies while the agent is away: right within a second of its start."""
    for how in ("usr2", "kill"):
        all_up(site)
        edge = site.edges[0]
        leave(edge, how)
        killed = edge.bird.kill()
        edge.nsd.kill()
        edge.bird.start()
        all_anew(site, killed)
        start_and_rest(site, [(WITHDRAW, DNS), (WITHDRAW, DNS6)], time.time())


def test_bird_restarts(site):
    """BIRD restarts under a living agent: repaired within a second of its return, also when nsd died meanwhile."""
    all_up(site)
    edge = site.edges[0]
    edge.bird.kill()
    edge.agent.wait_status(lambda s: s["bird"]["link"] == "away", what="BIRD is away")
    for prefix in ALL:
        seen = edge.agent.prefix(prefix)
        check(seen["announced"] is None and seen["exported"] is None, "unknown while BIRD is away", seen)
    edge.nsd.kill()
    edge.agent.wait_prefix(DNS, wanted="withdraw")
    begun = time.time()
    edge.bird.start()
    site.wait_sessions()
    site.wait_announced(WEB, "edge1")
    edge.agent.wait_prefix(WEB, announced=True, exported=1)
    edge.agent.wait_prefix(DNS, announced=False, exported=0)
    check((ANNOUNCE, DNS) not in changes(site, begun), "the dead service was not announced", changes(site, begun))


def is_up(edge, service):
    """Whether BIRD says that all protocols of a service are up; none is not."""
    states = [p[2] for name, p in edge.bird.protocols().items() if name.startswith(f"redshank:{service}:")]
    return bool(states) and set(states) == {"up"}


def test_bird_returns_otherwise(site):
    """A BIRD that was away for long returns with what was true before: the dead service is down within a second."""
    all_up(site)
    edge = site.edges[0]
    old = edge.host.path("old-fragments")
    shutil.copytree(edge.fragments, old)
    edge.bird.kill()
    gone = time.time()
    edge.agent.wait_status(lambda s: s["bird"]["link"] == "away", what="BIRD is away")
    edge.nsd.kill()
    edge.agent.wait_prefix(DNS, wanted="withdraw")
    eventually(lambda: time.time() - gone > 2.5, what="it is looked for at its slowest")
    edge.bird.write_config(edge.bird.config.replace(edge.fragments, old), keep=False)
    edge.bird.start()
    returned = time.time()
    eventually(lambda: not is_up(edge, "dns"), 10, "the dead service is down", every=0.02)
    took = time.time() - returned
    check(took < 1 + PULSE.withheld(returned), "within a second of its return", took)
    early = (ANNOUNCE, DNS) in changes(site, gone)  # its sessions take a second
    check(not early or PULSE.withheld(returned) > 0.1, "the dead service was not announced", changes(site, gone))
    edge.bird.repair_config()
    edge.bird.configure()
    site.wait_sessions()
    site.wait_announced(WEB, "edge1")


def test_bird_forgets(site):
    """What BIRD has forgotten, since somebody removed a fragment and had it configure, is back within a second."""
    all_up(site)
    edge = site.edges[0]
    begun = site.moment()
    edge.agent.process.freeze()  # or it would be faster than somebody's second command
    os.unlink(os.path.join(edge.fragments, "web.conf"))
    edge.bird.configure()
    site.wire.wait_withdraw("edge1", WEB, since=begun)
    thawed = time.time()
    edge.agent.process.thaw()
    took = site.wire.wait_announce("edge1", WEB, since=thawed).time - thawed
    check(took < 1 + PULSE.withheld(thawed), "within a second", took)
    check({prefix for _, prefix in changes(site, begun)} == {WEB}, "and nothing else moved", changes(site, begun))


def test_term_without_bird(site):
    """TERM with BIRD away leaves withdrawn fragments and is quick."""
    all_up(site)
    edge = site.edges[0]
    edge.bird.kill()
    edge.agent.wait_status(lambda s: s["bird"]["link"] == "away", what="BIRD is away")
    begun = time.time()
    check(edge.agent.stop(signal.SIGTERM) == 0, "exit status 0")
    took = time.time() - begun
    check(took < 2 + PULSE.withheld(begun), "quick", took)
    edge.bird.start()
    site.wait_sessions()
    eventually(lambda: announced(site) == set(), what="nothing is announced")
    check(not changes(site, begun), "not for a moment", changes(site, begun))


def test_term_bird_hangs(site):
    """TERM while BIRD hangs waits for it, a second TERM does not; the fragments are withdrawn either way."""
    all_up(site)
    edge = site.edges[0]
    edge.bird.freeze()
    begun, mark = time.time(), len(edge.agent.text())
    edge.agent.send_signal(signal.SIGTERM)
    edge.agent.wait_log("stopping", after=mark)
    eventually(lambda: time.time() - begun > 0.5, what="half a second")
    check(edge.agent.process.alive(), "still waits for BIRD", edge.agent.tail())
    edge.agent.send_signal(signal.SIGTERM)
    check(edge.agent.process.wait(20) == 0, "exit status 0")
    took = time.time() - begun
    check(took < 4 + PULSE.withheld(begun), "a second TERM ends the wait, which is of 5 s", took)
    edge.agent.wait_log("birdc configure", after=mark)
    edge.bird.thaw()
    edge.bird.configure()
    eventually(lambda: announced(site) == set(), what=lambda: f"what the log says puts it right: {announced(site)}")


main(lambda: Site(edges=1))
