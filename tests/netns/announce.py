"""Announce by force on the real site: it holds a dead service up, loudly, and always ends."""

import json
import signal
import time

from lib.case import check, eventually, main
from lib.operators import DNS, DNS6, WEB, announced, ctl, one_line, untold, withdrawn
from lib.site import Site
from lib.wire import WITHDRAW


def test_over_ununtold(site):
    """A dead service is announced again, everybody is told loudly, and without the word it leaves."""
    edge, agent = site.edges[0], untold(site)
    edge.nsd.kill()
    withdrawn(site, agent, "unhealthy", DNS, DNS6)
    done = ctl(agent, "announce", "dns", "--for", "2h", "--reason", "the checks lie")
    check(done.stdout.startswith("announcing dns by force until 20"), "the word", done)
    check(done.stdout.endswith(", whatever its checks say\n"), "the word", done)
    announced(site, agent, "forced", DNS, DNS6)
    line = agent.wait_log("announce dns: by root (uid 0, pid ")
    check("until 20" in line and line.endswith(": the checks lie"), "who, what, why, until", line)
    document = agent.status()
    check(document["announces"][0]["name"] == "dns" and document["drains"] == [], "listed", document["announces"])
    check(agent.prefix(DNS)["announce"]["reason"] == "the checks lie", "of the prefix", agent.prefix(DNS))
    check(agent.prefix(WEB)["announce"] is None, "of no other", agent.prefix(WEB))
    text = ctl(agent, "status").stdout
    check(text.startswith("TROUBLE (redshankctl explain dns): dns is unhealthy and ANNOUNCED BY FORCE\n"), "loud", text)
    check("announced by force by root (uid 0, pid " in " ".join(text.split()), "who", text)
    done = ctl(agent, "status", "--plugin", code=2)
    check(f"{DNS} is announced by force" in done.stdout, "monitoring", done)
    text = one_line(ctl(agent, "explain", DNS))
    for words in ("rule 1, forced for", "its service was announced by force by root", ": the checks lie.",
                  "THE SERVICE IS UNHEALTHY: without that word", "the operator's word ends in 1h"):
        check(words in text, words, text)
    metrics = agent.get("/metrics")[1].decode()
    check(f'redshank_prefix_reason{{service="dns",prefix="{DNS}",reason="forced"}} 1' in metrics, "metrics")
    done = ctl(agent, "announce", "dns", "--reset")
    check(done.stdout == "dns is announced by force no more\n", "taken back", done)
    withdrawn(site, agent, "unhealthy", DNS, DNS6)
    agent.wait_log("announce dns: by root (uid 0, pid ")
    edge.nsd.start()


def test_an_end_and_restarts(site):
    """It survives USR2, a kill and TERM, and ends when it said, by itself: nobody has to remember it."""
    edge, agent = site.edges[0], untold(site)
    edge.nginx.stop()
    withdrawn(site, agent, "unhealthy", WEB)
    ctl(agent, "announce", WEB, "--for", "1h")
    announced(site, agent, "forced", WEB)
    for leave in (lambda: agent.stop(signal.SIGUSR2), agent.kill):
        leave()
        moment = time.time()
        agent.start()
        announced(site, agent, "forced", WEB)
        check(not site.wire.since(moment, "edge1", WEB, (WITHDRAW,)), "not withdrawn, not for a moment")
        check(f"announce {WEB}: still, by root" in agent.text(), "it is told at the start", agent.tail())
    agent.stop()
    site.wait_route(WEB, set())
    agent.start()
    announced(site, agent, "forced", WEB)
    ctl(agent, "announce", WEB, "--for", "1200ms")
    agent.wait_log(f"announce {WEB}: its time is over; it was by root")
    withdrawn(site, agent, "unhealthy", WEB)

    def state():
        with open(edge.host.path("state.json"), encoding="utf-8") as f:
            return json.load(f)

    eventually(lambda: state() == {"format": 1, "drains": [], "weights": []}, what="an older agent could read the file")
    edge.nginx.start()


def test_beside_a_drain(site):
    """A drain goes first, whichever was said first; of the same name it ends the word."""
    agent = untold(site)
    ctl(agent, "announce", DNS, "--for", "1h")
    announced(site, agent, "forced", DNS)
    check(ctl(agent, "status").stdout.startswith("Look (redshankctl explain dns): dns is announced by force\n"), "Look")
    ctl(agent, "drain", "dns", "--reason", "new disks")
    withdrawn(site, agent, "drained", DNS, DNS6)
    done = ctl(agent, "announce", DNS, "--for", "1h", code=1)
    check(f"{DNS} is drained with dns by root (uid 0, pid " in done.stderr, "refused", done)
    check(": new disks; a drain goes before an announcement by force: undrain it first" in done.stderr, "why", done)
    ctl(agent, "undrain", "dns")
    announced(site, agent, "forced", DNS)
    done = ctl(agent, "drain", DNS)
    check(done.stdout == f"drained {DNS} until it is undrained; it is announced by force no more\n", "both", done)
    withdrawn(site, agent, "drained", DNS)
    done = ctl(agent, "announce", "dns", "--for", "1h")
    check(done.stdout.endswith("; 1 of its 2 prefixes stay drained\n"), "a part", done)
    announced(site, agent, "forced", DNS6)
    withdrawn(site, agent, "drained", DNS)
    done = ctl(agent, "announce", DNS, "--reset", code=1)
    check(f"{DNS} is not announced by force by that name; it is with dns" in done.stderr, "not that word", done)
    ctl(agent, "undrain", DNS)
    announced(site, agent, "forced", DNS)
    ctl(agent, "announce", "dns", "--reset")
    agent.wait_prefix(DNS, reason="healthy")
    check("dns is not announced by force" in ctl(agent, "announce", "dns", "--reset", code=1).stderr, "no more to reset")


def test_refused(site):
    """Without an end, with one too far, of the whole server, of nobody: nothing is announced."""
    agent = untold(site)
    for body, status, said in (
        ({"name": "dns"}, 400, "has to end"),
        ({"name": "dns", "for": None}, 400, "has to end"),
        ({"name": "dns", "for": "25h"}, 400, "at most a day"),
        ({"name": "dns", "for": "0s"}, 400, "for: expected"),
        ({"for": "1h"}, 400, "the whole server is not announced by force"),
        ({"name": "dns", "for": "1h", "reset": 1}, 400, "reset: expected"),
        ({"name": "dns", "for": "1h", "reset": True}, 400, "reset: expected it with `name` alone"),
        ({"name": "dnss", "for": "1h"}, 404, 'did you mean "dns"?'),
        ({"name": "dnss", "reset": True}, 404, 'did you mean "dns"?'),
        ({"name": "dns", "fro": "1h"}, 400, 'did you mean "for"?'),
    ):
        code, answer = agent.get("/v1/announce", method="POST", body=json.dumps(body))
        check(code == status and said in json.loads(answer)["error"], said, code, answer)
    check(agent.status()["announces"] == [] and agent.prefix(DNS)["reason"] == "healthy", "nothing was done")


def test_address(site):
    """It holds also a prefix whose address has gone: the operator has said so, and knows why."""
    edge, agent = site.edges[0], untold(site)
    edge.host.run(["ip", "address", "del", WEB, "dev", "lo"])
    withdrawn(site, agent, "address_missing", WEB)
    ctl(agent, "announce", WEB, "--for", "1h")
    announced(site, agent, "forced", WEB)
    ctl(agent, "announce", WEB, "--reset")
    agent.wait_prefix(WEB, wanted="withdraw")
    edge.host.run(["ip", "address", "add", WEB, "dev", "lo"])
    eventually(lambda: agent.prefix(WEB)["announced"], what="it is back")


main(lambda: Site(edges=1))
