"""Coming back gently, leaving gently, and the guards, as the router sees them: first_rise, slow_start,
hold_down, start_spread, leave, shared, reload_guard."""

import http.client
import json
import os
import signal
import time

from lib import agentctl
from lib.case import check, eventually, main
from lib.pulse import Pulse
from lib.site import Site
from lib.wire import ANNOUNCE, WITHDRAW

DNS, DNS6, WEB = "192.0.2.53/32", "2001:db8::53/128", "192.0.2.80/32"
SHUTDOWN = (65535, 0)
PULSE = Pulse()


def fresh(site, dns=None, last_resort=False, wait=True, **top):
    """The agent anew on a BIRD that announces nothing; `dns` is added to that service."""
    edge = site.edges[0]
    agent = edge.agent
    if agent.process and agent.process.alive():
        agent.stop(signal.SIGKILL)
    if not edge.nsd.process or not edge.nsd.process.alive():
        edge.nsd.start()
    for name in os.listdir(edge.fragments):
        os.unlink(os.path.join(edge.fragments, name))
    edge.birdc("configure")
    for prefix in (DNS, DNS6, WEB):
        site.wait_route(prefix, set())
    if os.path.exists(edge.host.path("state.json")):
        os.unlink(edge.host.path("state.json"))
    agent.config = agent.default_config()
    agent.config["reload_guard"] = 50
    agent.config.update(top)
    agent.config["services"]["dns"].update(dns or {})
    if last_resort:
        agent.config["services"]["dns"]["prefixes"][DNS] = {"weight": 100, "last_resort": True}
    agent.start()
    if wait:
        for prefix in (DNS, DNS6, WEB):
            agent.wait_prefix(prefix, wanted="announce", reason="healthy", announced=True, exported=1)
            site.wait_announced(prefix, "edge1")
        agent.wait_status(lambda s: s["bird"]["settled"], what="settled")
    return agent


def ctl(agent, *arguments, code=0):
    done = agent.ctl(*arguments)
    check(done.returncode == code, f"redshankctl {arguments} exits {code}", done)
    return done


def explained(agent):
    return json.loads(agent.get("/v1/explain?name=192.0.2.53")[1])["services"]["dns"]["prefixes"][DNS]


def meds(site, prefix, since):
    return [event.med for event in site.wire.since(since, "edge1", prefix, (ANNOUNCE,))]


def withdrawn(site, prefix, since):
    return [event.time for event in site.wire.since(since, "edge1", prefix, (WITHDRAW,))]


def prompt(site, prefix, killed):
    """A death in the middle of something gentle is withdrawn at once."""
    took = site.wire.wait_withdraw("edge1", prefix, since=killed).time - killed
    check(took < 0.5 + PULSE.withheld(killed), "a death in the middle is withdrawn at once", took)


def shutdown_seen(site, prefix, since):
    """The first announcement with GRACEFUL_SHUTDOWN."""
    return site.wire.wait(
        lambda e: e.time >= since and e.kind == ANNOUNCE and e.prefix == prefix and SHUTDOWN in e.attributes.get("communities", []),
        what=f"{prefix} with GRACEFUL_SHUTDOWN",
    )


def test_slow_start(site):
    """MED goes to the prefix's own in steps, each one UPDATE; what is adopted has no ramp."""
    began = time.time()
    agent = fresh(site, {"slow_start": {"from": 500, "steps": 4, "for": "4s"}}, wait=False)  # long enough to be seen
    agent.wait_prefix(DNS, reason="ramping", announced=True)
    agent.wait_prefix(WEB, reason="healthy", announced=True)
    text = " ".join(ctl(agent, "explain", DNS).stdout.split())
    check("rule 7, ramping for" in text and "its weight takes the next step" in text, "explain", text)
    check("by `slow_start`; its own is 100, the service's own." in text, "the weight that it has", text)
    agent.wait_prefix(DNS, reason="healthy", weight=100)
    site.wire.wait_announce("edge1", DNS, since=began, med=100)
    seen, steps = meds(site, DNS, began), [500, 400, 300, 200, 100]
    # One that was due while the machine stood still is left out.
    check(seen == steps or (PULSE.withheld(began) > 0.9 and seen == [m for m in steps if m in seen] and seen[0] == 500),
          "the steps", seen)
    check(set(meds(site, WEB, began)) == {100}, "the other service has none", meds(site, WEB, began))
    check(not withdrawn(site, DNS, began), "nothing is withdrawn on the way")
    moment = site.moment()
    agent.stop(signal.SIGUSR2)
    agent.start()
    agent.wait_prefix(DNS, reason="healthy", announced=True, weight=100)
    agent.wait_status(lambda s: s["bird"]["settled"], what="settled")
    check(not site.wire.since(moment, "edge1", DNS), "adopted without an UPDATE")
    site.edges[0].nsd.kill()
    site.wait_route(DNS, set())
    moment = time.time()
    site.edges[0].nsd.start()
    agent.wait_prefix(DNS, reason="ramping")
    ctl(agent, "weight", DNS, "7")
    site.wire.wait_announce("edge1", DNS, since=moment, med=7)
    agent.wait_prefix(DNS, reason="healthy", weight=7)
    check(meds(site, DNS, moment)[0] == 500, "it came with `from`", meds(site, DNS, moment))


def test_reported_weight(site):
    """Neighbours hear the weight that the routers see, for that is who is preferred: on a ramp, by an operator's
    word, and while BIRD refuses another one."""
    edge = site.edges[0]
    port = 9480
    agent = fresh(site, {"slow_start": {"from": 500, "steps": 2, "for": "10m"}}, wait=False, neighbours={
        "listen": f"127.0.0.1:{port}", "site": "lab", "plain": True, "members": {"edge2": f"127.0.0.2:{port}"}})

    def reported():
        with edge.host.inside():
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.connect()
        connection.request("GET", "/v1/report")
        prefix = json.loads(connection.getresponse().read())["prefixes"].get(DNS, {})
        connection.close()
        return prefix.get("state"), prefix.get("weight")

    agent.wait_prefix(DNS, reason="ramping", announced=True)
    site.wire.wait_announce("edge1", DNS, med=500)
    eventually(lambda: reported() == ("healthy", 500), 20, lambda: reported(), every=0.2)
    ctl(agent, "weight", DNS, "7")
    eventually(lambda: reported() == ("healthy", 7), 20, lambda: reported(), every=0.2)
    plain = edge.bird.config
    edge.bird.write_config(plain + "\nnonsense;\n")
    try:
        ctl(agent, "weight", DNS, "9")
        agent.wait_prefix(DNS, weight=9)
        agent.wait_status(lambda s: s["bird"]["alarm"], what="BIRD refuses it")
        time.sleep(2.5)  # two reports later it is still so
        check(reported() == ("healthy", 7), "what BIRD has", reported())
    finally:
        edge.bird.write_config(plain)
    eventually(lambda: reported() == ("healthy", 9), 20, lambda: reported(), every=0.2)


def test_first_rise(site):
    """What never was up needs `first_rise` good outcomes, what comes back `rise`; what is found announced was up."""
    edge = site.edges[0]
    runs, bad = edge.host.path("runs"), edge.host.path("bad")
    proof = {"type": "exec", "command": ["/bin/sh", "-c", f"test ! -e {bad}; r=$?; date +%s.%N >>{runs}; exit $r"],
             "interval": "300ms", "fast_interval": "300ms", "rise": 2, "first_rise": 6}

    def needed(since):
        """How often it was asked until the router heard of it."""
        came = site.wire.wait_announce("edge1", DNS, since=since).time
        with open(runs, encoding="ascii") as f:
            return len([line for line in f if since < float(line) < came])

    def away_and_back():
        """The same of a service that was down."""
        with open(bad, "w", encoding="ascii"):
            pass
        site.wait_route(DNS, set())
        moment = time.time()
        os.unlink(bad)
        return needed(moment)

    checks = {**edge.agent.default_config()["services"]["dns"]["checks"], "proof": proof}
    began = time.time()
    agent = fresh(site, {"checks": checks}, wait=False)
    first = needed(began)
    check(first >= 6, "first_rise the first time", first)
    again = away_and_back()
    check(2 <= again < 6, "rise from then on", again)
    agent.wait_status(lambda s: s["bird"]["settled"], what="settled")
    # Found announced: it was up, and once down it needs no more than `rise`.
    agent.stop(signal.SIGUSR2)
    agent.start()
    agent.wait_check("dns", "proof", state="up")
    again = away_and_back()
    check(2 <= again < 6, "what was found announced was up", again)


def test_hold_down(site):
    """A service that flaps stays away though it is well, and comes back when its penalty has decayed."""
    agent = fresh(site, {"hold_down": {"penalty": 1000, "suppress": 1500, "reuse": 750, "half_life": "4s", "max": "6s"}})
    edge = site.edges[0]
    reason = "healthy"
    for _ in range(5):  # twice within half_life is enough, which a slow machine may not manage
        agent.wait_prefix(DNS, announced=True, exported=1)
        site.wait_announced(DNS, "edge1")
        flapped = edge.nsd.kill()
        site.wait_route(DNS, set())
        edge.nsd.start()
        found = agent.wait_status(lambda s: s["services"]["dns"]["health"] == "healthy", what="healthy")
        reason = found["services"]["dns"]["prefixes"][DNS]["reason"]
        if reason == "held_down":
            break
    check(reason == "held_down", "who flaps is held down", reason)
    agent.wait_prefix(DNS, wanted="withdraw", reason="held_down")
    text = " ".join(ctl(agent, "explain", DNS).stdout.split())
    check("rule 5, held_down for" in text and "its penalty has decayed in" in text, "explain", text)
    came = site.wire.wait_announce("edge1", DNS, since=flapped)
    took = came.time - flapped
    check(4.0 < took < 6.5 + PULSE.withheld(flapped), "between half_life and max after the last flap", took)
    agent.wait_prefix(DNS, wanted="announce", reason="healthy")


def test_start_spread(site):
    """Where nothing was announced, a start waits for a random part of the spread; a restart does not."""
    spread, held = 3.0, False
    for _ in range(12):  # a part that is shorter than the checks' first round shows nothing: one in seven at least
        before = time.time()
        agent = fresh(site, wait=False, defaults={**agentctl.DEFAULTS, "start_spread": "3s"})
        began = time.time()
        agent.wait_status(
            lambda s: s["services"]["dns"]["health"] == s["services"]["web"]["health"] == "healthy", what="healthy")
        healthy = time.time()
        prefix = explained(agent)
        if prefix["reason"] == "first_round":
            held = True
            check({"spread", "announce"} & {step["what"] for step in prefix["next"]}, "why is told", prefix["next"])
        came = [site.wire.wait_announce("edge1", prefix, since=before).time for prefix in (DNS, DNS6, WEB)]
        check(max(came) - began < spread + 2 + PULSE.withheld(began), "it comes when the delay is over, at the latest", came, began)
        if held:
            check(0 < min(came) - healthy and max(came) - min(came) < 0.5 + PULSE.withheld(healthy), "all together, behind it", came, healthy)
            break
    check(held, "what is healthy waits")
    for prefix in (DNS, DNS6, WEB):
        agent.wait_prefix(prefix, announced=True, exported=1)
    moment = site.moment()
    agent.stop(signal.SIGUSR2)
    agent.start()
    found = agent.wait_status(lambda s: s["services"]["dns"]["health"] == "healthy", what="healthy")
    check(found["services"]["dns"]["prefixes"][DNS]["reason"] == "healthy", "no delay", found["services"]["dns"])
    agent.wait_prefix(DNS, announced=True, exported=1)
    check(not site.wire.since(moment, "edge1"), "what was found announced has no delay", site.wire.tail())


def test_drain(site):
    """A drain is announced before it withdraws; the last resort needs no configure; a death does not wait."""
    agent = fresh(site, {"leave": {"graceful": "3s", "weight": 900}}, last_resort=True)
    moment = time.time()
    ctl(agent, "drain", "dns")
    seen = shutdown_seen(site, DNS6, moment)
    check(seen.med == 900, "the weight for leaving", seen)
    check(shutdown_seen(site, DNS, moment).med == 65535, "the last resort")
    agent.wait_prefix(DNS6, wanted="announce", reason="drained", graceful=True, weight=900)
    agent.wait_prefix(DNS, wanted="demote", reason="drained", graceful=False)
    for prefix in (DNS, DNS6):
        took = site.wire.wait_withdraw("edge1", prefix, since=moment).time - moment
        check(2.95 < took < 4.5 + PULSE.withheld(moment), f"{prefix} leaves when the time is over", took)
    agent.wait_prefix(DNS6, wanted="withdraw", reason="drained", graceful=False, weight=100)
    moment = time.time()
    ctl(agent, "undrain", "dns")
    back = site.wire.wait_announce("edge1", DNS6, since=moment)
    check(back.med == 100 and SHUTDOWN not in back.attributes.get("communities", []), "back as ever", back)
    agent.wait_prefix(DNS6, announced=True, reason="healthy")
    agent.config["services"]["dns"]["leave"]["graceful"] = "30s"
    agent.write_config()
    ctl(agent, "reload")
    moment = site.moment()
    ctl(agent, "drain", "dns")
    shutdown_seen(site, DNS6, moment)
    prompt(site, DNS6, site.edges[0].nsd.kill())


def test_drain_without_configure(site):
    """Where BIRD refuses to configure nothing can be announced first, and it is withdrawn all the same."""
    agent = fresh(site, {"leave": {"graceful": "700ms"}})
    site.edges[0].break_bird_conf()
    moment = site.moment()
    ctl(agent, "drain", "dns")
    gone = site.wire.wait_withdraw("edge1", DNS, since=moment)
    check(gone.time - moment < 2.5 + PULSE.withheld(moment), "in time", gone.time - moment)
    check(not meds(site, DNS, moment), "no UPDATE before")
    site.edges[0].repair_bird_conf()
    agent.wait_status(lambda s: not s["bird"]["alarm"], what="repaired", timeout=20)


def test_stop(site):
    """TERM says so first, too, for the services that leave gently; the agent stays until it is done."""
    agent = fresh(site, {"leave": {"graceful": "3s"}}, stop_grace="0ms")
    moment = time.time()
    agent.send_signal(signal.SIGTERM)
    shutdown_seen(site, DNS, moment)
    other = site.wire.wait_withdraw("edge1", WEB, since=moment)
    agent.wait_prefix(DNS, wanted="announce", reason="stopping", graceful=True)
    check(agent.process.wait(20) == 0, "exit status")
    gone = site.wire.wait_withdraw("edge1", DNS, since=moment)
    check(2.95 < gone.time - moment < 4.5 + PULSE.withheld(moment), "withdrawn when the time is over", gone.time - moment)
    check(gone.time - other.time > 2 - PULSE.withheld(moment), "the other service leaves at once", gone, other)

    agent = fresh(site, {"leave": {"graceful": "30s"}}, stop_grace="0ms")
    moment = time.time()
    agent.send_signal(signal.SIGTERM)
    shutdown_seen(site, DNS, moment)
    text = " ".join(ctl(agent, "explain", DNS).stdout.split())
    check("It leaves gently" in text and "it is withdrawn in 2" in text, "explain", text)
    check("Weight 65535, by `leave`; its own is 100" in text, "its weight", text)
    prompt(site, DNS, site.edges[0].nsd.kill())
    check(agent.process.wait(20) == 0, "and there is nothing to wait for")

    agent = fresh(site, {"leave": {"graceful": "30s"}}, stop_grace="0ms")
    moment = time.time()
    agent.send_signal(signal.SIGTERM)
    shutdown_seen(site, DNS, moment)
    agent.send_signal(signal.SIGTERM)
    site.wire.wait_withdraw("edge1", DNS, since=moment)
    check(agent.process.wait(20) == 0, "a second TERM does not wait")


def test_stop_of_many(site):
    """TERM of more than is decided in a moment: what leaves gently has left when the agent ends."""
    many = {f"10.2.0.{i}/32": {"weight": 100, "address_check": False} for i in range(200)}
    agent = fresh(site, {"leave": {"graceful": "1s"}, "prefixes": many}, wait=False, stop_grace="0ms")
    agent.wait_status(
        lambda s: s["bird"]["settled"] and all(p["exported"] == 1 for p in s["services"]["dns"]["prefixes"].values()),
        what="all are announced", timeout=20)
    moment = site.moment()
    check(agent.stop() == 0, "exit status")
    for prefix in many:
        site.wire.wait_withdraw("edge1", prefix, since=moment)


def test_shared(site):
    """What every server depends on demotes and does not withdraw."""
    agent = fresh(site, wait=False, last_resort=True, dns={})
    agent.config["services"]["dns"]["checks"]["upstream"] = {"type": "exec", "command": ["/usr/bin/test", "!", "-e", agent.edge.host.path("outage")], "shared": True}
    agent.reload()
    agent.wait_check("dns", "upstream", state="up")
    for prefix in (DNS, DNS6):
        agent.wait_prefix(prefix, reason="healthy", announced=True, exported=1)
    moment = site.moment()
    with open(agent.edge.host.path("outage"), "w", encoding="utf-8"):
        pass
    agent.wait_prefix(DNS6, wanted="announce", reason="shared_unhealthy")
    agent.wait_prefix(DNS, wanted="demote", reason="shared_unhealthy")
    eventually(lambda: meds(site, DNS, moment) == [65535], what=lambda: f"demoted: {site.wire.tail()}")
    check(not site.wire.since(moment, "edge1", DNS6) and not withdrawn(site, DNS, moment), "and nobody leaves")
    os.unlink(agent.edge.host.path("outage"))
    agent.wait_prefix(DNS, wanted="announce", reason="healthy")
    eventually(lambda: meds(site, DNS, moment) == [65535, 100], what=lambda: f"back: {site.wire.tail()}")


def test_reload_guard(site):
    """A reload that drops most of what is announced is refused by name; HUP never forces it."""
    agent = fresh(site)
    del agent.config["services"]["dns"]
    mark, moment = len(agent.text()), site.moment()
    agent.reload()
    agent.wait_log("reload refused: it would withdraw too much", after=mark)
    agent.wait_log("would be withdrawn: " + DNS + " of dns", after=mark)
    done = ctl(agent, "reload", code=1)
    for words in ("2 of the 3 prefixes that are announced now", "reload_guard (50 %)", "--force", DNS, DNS6):
        check(words in done.stderr, words, done)
    check(WEB not in done.stderr, "what stays is not named", done)
    check(agent.status()["services"]["dns"]["prefixes"][DNS]["announced"], "it runs on")
    check(not site.wire.since(moment, "edge1"), "without an UPDATE")
    check("reloaded: watching 1 services" in ctl(agent, "reload", "--force").stdout, "forced")
    site.wait_route(DNS, set())
    agent.wait_log("reload --force: by root")
    ctl(agent, "status", "--force", code=2)
    agent.config["services"]["web"]["prefixes"] = {"192.0.2.81/32": 100, WEB: 100}
    agent.write_config()
    ctl(agent, "reload")


main(lambda: Site(edges=1))
