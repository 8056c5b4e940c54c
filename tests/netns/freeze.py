"""Freeze and thaw on the real site: a check that fails withdraws nothing, a death and a missing address
do, operators act, and the thaw lets everything catch up."""

import json
import signal
import time

from lib.case import check, eventually, main
from lib.operators import DNS, DNS6, WEB, announced, ctl, one_line, untold, withdrawn
from lib.site import Site
from lib.wire import ANNOUNCE, WITHDRAW


def fresh(site):
    """dns is asked over DNS and web over HTTP, each with its process beside."""
    config = site.edges[0].agent.default_config()
    config["services"]["dns"]["checks"]["port"] = {
        "type": "dns", "server": "192.0.2.53", "name": "health.example.net", "rrtype": "A"}
    config["services"]["web"]["checks"]["page"] = {"type": "http", "url": "http://192.0.2.80/healthz"}
    return untold(site, config)


def test_hangs_are_held_and_deaths_are_not(site):
    """Frozen, services that hang stay announced; one whose process is killed leaves; thaw: all catch up."""
    edge, agent = site.edges[0], fresh(site)
    done = ctl(agent, "freeze", "--reason", "the checks lie")
    check(done.stdout.startswith("frozen until it is thawed: nothing is announced or withdrawn but for"), "the word", done)
    agent.wait_log("freeze the whole server: by root (uid 0, pid ")
    text = ctl(agent, "status").stdout
    check(text.startswith("Look (redshankctl thaw): the server is frozen by root (uid 0, pid "), "the first line", text)
    check("The server is frozen: only a dead process" in " ".join(text.split()), "and more", text)
    moment = time.time()
    edge.nsd.freeze()
    edge.nginx.freeze()
    agent.wait_check("dns", "port", state="down")
    agent.wait_check("web", "page", state="down")
    announced(site, agent, "frozen", DNS, DNS6, WEB)
    document = agent.status()
    check(document["services"]["web"]["health"] == "unhealthy", "and that is seen", document["services"]["web"])
    check(document["freeze"]["reason"] == "the checks lie", "who froze", document["freeze"])
    done = ctl(agent, "status", "--plugin", code=2)
    check(f"{WEB} is kept announced by the freeze" in done.stdout, "monitoring", done)
    check("web is unhealthy and KEPT ANNOUNCED BY THE FREEZE" in one_line(ctl(agent, "status")), "loud")
    text = one_line(ctl(agent, "explain", WEB))
    for words in ("rule 1, frozen for", "the whole server was frozen by root", "it stays announced, although the rules say",
                  "until an operator thaws the server"):
        check(words in text, words, text)
    check("redshank_frozen 1" in agent.get("/metrics")[1].decode(), "metrics")
    check(not site.wire.since(moment, "edge1", WEB, (WITHDRAW,)), "no withdrawal on the wire")
    edge.nginx.kill()
    withdrawn(site, agent, "unhealthy", WEB)
    announced(site, agent, "frozen", DNS, DNS6)
    check(not site.wire.since(moment, "edge1", DNS, (WITHDRAW,)), "the other stays")
    done = ctl(agent, "thaw")
    check(done.stdout == "thawed: the checks decide again\n", "thaw", done)
    withdrawn(site, agent, "unhealthy", DNS, DNS6)
    line = agent.wait_log("thaw the whole server: by root (uid 0, pid ")
    check("it was frozen by root" in line and line.endswith(": the checks lie"), "who thawed", line)
    check(agent.status()["freeze"] is None, "no more")
    edge.nsd.thaw()
    edge.nginx.start()
    announced(site, agent, "healthy", DNS, DNS6, WEB)


def test_a_recovery_waits(site):
    """What was down when it was frozen stays down, however well it is, until the thaw."""
    edge, agent = site.edges[0], fresh(site)
    edge.nginx.freeze()
    withdrawn(site, agent, "unhealthy", WEB)
    ctl(agent, "freeze")
    edge.nginx.thaw()
    agent.wait_check("web", "page", state="up")
    withdrawn(site, agent, "frozen", WEB)
    check("web is KEPT WITHDRAWN BY THE FREEZE" in one_line(ctl(agent, "status")), "said", ctl(agent, "status"))
    ctl(agent, "thaw")
    announced(site, agent, "healthy", WEB)
    check("the whole server is not frozen" in ctl(agent, "thaw", code=1).stderr, "once is enough")


def test_restarts_and_an_end(site):
    """It survives a kill and USR2 without an UPDATE, and ends by itself when it said."""
    edge, agent = site.edges[0], fresh(site)
    ctl(agent, "freeze", "--for", "1h", "--reason", "kept")
    edge.nginx.freeze()
    agent.wait_check("web", "page", state="down")
    announced(site, agent, "frozen", WEB)
    for leave in (agent.kill, lambda: agent.stop(signal.SIGUSR2)):
        leave()
        moment = time.time()
        agent.start()
        agent.wait_check("web", "page", state="down")
        announced(site, agent, "frozen", WEB)
        check(not site.wire.since(moment, "edge1", WEB, (WITHDRAW, ANNOUNCE)), "no UPDATE", site.wire.since(moment, "edge1", WEB))
        check("freeze the whole server: still, by root" in agent.text(), "told at the start", agent.tail())
    ctl(agent, "freeze", "--for", "1s")
    agent.wait_log("freeze the whole server: its time is over; it was by root")
    withdrawn(site, agent, "unhealthy", WEB)
    edge.nginx.thaw()
    announced(site, agent, "healthy", WEB)

    def state():
        with open(edge.host.path("state.json"), encoding="utf-8") as f:
            return json.load(f)

    eventually(lambda: "freezes" not in state(), what="nor is it kept")


def test_operators_and_addresses(site):
    """While frozen a drain withdraws, its end gives back what the freeze holds, and a missing address withdraws."""
    edge, agent = site.edges[0], fresh(site)
    ctl(agent, "freeze")
    ctl(agent, "drain", "web")
    withdrawn(site, agent, "drained", WEB)
    ctl(agent, "undrain", "web")
    agent.wait_prefix(WEB, wanted="announce", announced=True)
    edge.remove_address("192.0.2.80")
    withdrawn(site, agent, "address_missing", WEB)
    edge.add_address("192.0.2.80")
    ctl(agent, "thaw")
    eventually(lambda: agent.prefix(WEB)["announced"], what="it is back")


def test_refused(site):
    """Names and times that are none."""
    agent = fresh(site)
    for command, body, said in (("freeze", {"name": "dns"}, 'unknown key "name"'), ("freeze", {"for": "x"}, "for: expected"),
                                ("thaw", {"for": "1h"}, 'unknown key "for"')):
        code, answer = agent.get("/v1/" + command, method="POST", body=json.dumps(body))
        check(code == 400 and said in json.loads(answer)["error"], said, code, answer)
    check(agent.status()["freeze"] is None, "nothing was done")


main(lambda: Site(edges=1))
