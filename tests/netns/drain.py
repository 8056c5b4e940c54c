"""Drain and undrain on the real site: what the router sees, who may, what is kept and when it ends."""

import json
import os
import signal
import time

from lib.case import check, eventually, main
from lib.held import held_thread
from lib.pulse import Pulse
from lib.site import Site
from lib.wire import ANNOUNCE, WITHDRAW

DNS, DNS6, WEB = "192.0.2.53/32", "2001:db8::53/128", "192.0.2.80/32"
PULSE = Pulse()


def healthy(site):
    """The agent anew, without a word of before; everything is announced."""
    edge = site.edges[0]
    agent = edge.agent
    if agent.process and agent.process.alive():
        agent.stop(signal.SIGUSR2)
    for name in ("state.json", "state.json.bad"):
        if os.path.exists(edge.host.path(name)):
            os.unlink(edge.host.path(name))
    agent.config = agent.default_config()
    agent.start()
    for prefix in (DNS, DNS6, WEB):
        agent.wait_prefix(prefix, announced=True, exported=1, reason="healthy")
        site.wait_announced(prefix, "edge1")
    return agent


def post(agent, command, body):
    code, answer = agent.get("/v1/" + command, method="POST", body=json.dumps(body) if body is not None else None)
    return code, json.loads(answer)


def ctl(agent, *arguments, code=0):
    done = agent.ctl(*arguments)
    check(done.returncode == code, f"redshankctl {arguments} exits {code}", done)
    return done


def drained(site, agent, *prefixes):
    for prefix in prefixes:
        agent.wait_prefix(prefix, wanted="withdraw", reason="drained", announced=False)
        site.wait_route(prefix, set())


def announced(site, agent, *prefixes):
    for prefix in prefixes:
        agent.wait_prefix(prefix, wanted="announce", reason="healthy", announced=True)
        site.wait_route(prefix, {"edge1"})


def state(agent):
    """What is on the disk, where it comes a moment after the word."""
    with open(agent.edge.host.path("state.json"), encoding="utf-8") as f:
        return json.load(f)


def test_a_service(site):
    """A service leaves at once, with who, why and until when; and comes back at once."""
    agent = healthy(site)
    began = time.time()
    done = ctl(agent, "drain", "dns", "--reason", "new disks", "--for", "2h")
    check(done.stdout.startswith("drained dns until 20") and done.stdout.count("\n") == 1, "the word", done)
    for prefix in (DNS, DNS6):
        took = site.wire.wait_withdraw("edge1", prefix, since=began).time - began
        check(took < 3 + PULSE.withheld(began), "at once", took)
    drained(site, agent, DNS, DNS6)
    announced(site, agent, WEB)
    line = agent.wait_log("drain dns: by root (uid 0, pid ")
    check("until 20" in line and line.endswith(": new disks"), "who, what, why, until", line)
    document = agent.status()
    check(len(document["drains"]) == 1, "one drain", document["drains"])
    drain = document["drains"][0]
    check(drain["name"] == "dns" and drain["configured"] and drain["reason"] == "new disks", "the drain", drain)
    check(agent.prefix(DNS)["drain"]["who"].startswith("root (uid 0, pid "), "who", agent.prefix(DNS))
    check(agent.prefix(WEB)["drain"] is None, "the other is not", agent.prefix(WEB))
    text = " ".join(ctl(agent, "status").stdout.split())
    check("drained by root (uid 0, pid " in text and ": new disks" in text, "status", text)
    text = " ".join(ctl(agent, "explain", DNS).stdout.split())
    for words in ("rule 1, drained for", "its service was drained by root (uid 0, pid ", ": new disks.", "the operator's word ends in 1h59m"):
        check(words in text, words, text)
    done = ctl(agent, "drain", "dns", "--for", "2h", "--reason", "new disks")
    check("; this replaces what root (uid 0, pid " in done.stdout and done.stdout.endswith(": new disks\n"), "whose it ends", done)
    agent.wait_log("; this replaces what root")
    done = ctl(agent, "undrain", "dns")
    check(done.stdout == "undrained dns\n", "taken back", done)
    announced(site, agent, DNS, DNS6)
    line = agent.wait_log("undrain dns: by root (uid 0, pid ")
    check("it was drained by root" in line and line.endswith(": new disks"), "the log", line)
    check(agent.status()["drains"] == [], "nothing is left")


def test_a_prefix_and_the_server(site):
    """One prefix; the whole server; each is its own word, and both have to be taken back."""
    agent = healthy(site)
    ctl(agent, "drain", "192.0.2.53")
    drained(site, agent, DNS)
    ctl(agent, "drain", "2001:db8:0::53/128")
    drained(site, agent, DNS6)
    ctl(agent, "undrain", "2001:DB8::53")
    announced(site, agent, DNS6, WEB)
    text = " ".join(ctl(agent, "explain", DNS).stdout.split())
    check("until it is undrained; no reason was given." in text, "without an end", text)
    check("it stays so until an operator says otherwise" in text, "next", text)
    check(ctl(agent, "drain", "--all").stdout == "drained the whole server until it is undrained\n", "all")
    drained(site, agent, DNS, DNS6, WEB)
    line = agent.ctl("status").stdout.splitlines()[0]
    check(line.startswith("Look (redshankctl undrain --all): the server is drained by root (uid 0, pid "), "one line", line)
    check("dns is drained" not in line, "and not each service", line)
    done = ctl(agent, "undrain", DNS)
    check(done.stdout == f"undrained {DNS}, which stays drained with the whole server\n", "what remains", done)
    done = ctl(agent, "undrain", "dns", code=1)
    check("dns is not drained by that name; it is with the whole server" in done.stderr, "not that word", done)
    drained(site, agent, DNS)
    ctl(agent, "undrain", "--all")
    announced(site, agent, DNS, DNS6, WEB)
    check("the whole server is not drained" in ctl(agent, "undrain", "--all", code=1).stderr, "nothing to take back")


def test_an_end(site):
    """A drain ends when it said, by itself."""
    agent = healthy(site)
    began = time.time()
    ctl(agent, "drain", "web", "--for", "1500ms")
    gone = site.wire.wait_withdraw("edge1", WEB, since=began)
    agent.wait_log("drain web: its time is over; it was by root")
    back = site.wire.wait_announce("edge1", WEB, since=gone.time)
    check(back.time - began > 1.4, "not before", back.time - began)
    announced(site, agent, WEB)
    eventually(lambda: state(agent)["drains"] == [], what="nor is it kept")


def test_restart_and_reboot(site):
    """A drain survives HUP, USR2, a kill, TERM, and a reboot that leaves no fragment."""
    edge, agent = site.edges[0], healthy(site)
    ctl(agent, "drain", "dns", "--reason", "kept")
    drained(site, agent, DNS, DNS6)
    mark = len(agent.text())
    agent.reload()
    agent.wait_log("reloaded", after=mark)
    drained(site, agent, DNS, DNS6)
    for leave in (lambda: agent.stop(signal.SIGUSR2), agent.kill, agent.stop):
        leave()
        moment = time.time()
        agent.start()
        drained(site, agent, DNS, DNS6)
        announced(site, agent, WEB)
        check(not site.wire.since(moment, "edge1", DNS, (ANNOUNCE,)), "not announced, not for a moment")
        check("drain dns: still, by root" in agent.text(), "it is told at the start", agent.tail())
    agent.kill()
    edge.bird.kill()
    for name in os.listdir(edge.fragments):
        os.unlink(os.path.join(edge.fragments, name))
    edge.bird.start()
    site.wait_sessions()
    agent.start()
    announced(site, agent, WEB)
    drained(site, agent, DNS, DNS6)
    ctl(agent, "undrain", "dns")
    announced(site, agent, DNS, DNS6)


def test_an_end_while_away(site):
    """What ends while no agent runs has ended when the next one starts."""
    agent = healthy(site)
    ctl(agent, "drain", "web", "--for", "4s")
    over = time.time() + 4
    drained(site, agent, WEB)
    agent.stop(signal.SIGUSR2)
    eventually(lambda: time.time() > over, what="it is over")
    mark = len(agent.text())
    agent.start()
    agent.wait_log("drain web: its time is over", after=mark)
    check("drain web: still" not in agent.text()[mark:], "what is over is not said to hold", agent.tail())
    announced(site, agent, WEB)


def test_names(site):
    """A name that nobody has is refused with the nearest; one that is configured no more is kept."""
    agent = healthy(site)
    done = ctl(agent, "drain", "dnss", code=1)
    check('no service and no prefix is called "dnss"; did you mean "dns"?' in done.stderr, "the nearest", done)
    ctl(agent, "drain", "web")
    drained(site, agent, WEB)
    web = agent.config["services"].pop("web")
    mark = len(agent.text())
    agent.reload()
    agent.wait_log("reloaded", after=mark)
    check([d["configured"] for d in agent.status()["drains"]] == [False], "it is shown", agent.status()["drains"])
    agent.config["services"]["web"] = web
    mark = len(agent.text())
    agent.reload()
    agent.wait_log("reloaded", after=mark)
    agent.wait_prefix(WEB, wanted="withdraw", reason="drained")
    ctl(agent, "undrain", "web")
    announced(site, agent, WEB)


def test_refused(site):
    """Bodies that are none, keys that nobody knows, words of the command line: nothing is drained."""
    agent = healthy(site)
    for body, said in (
        ({"nmae": "dns"}, 'unknown key "nmae"; did you mean "name"?'),
        ({"name": "dns", "until": "2h"}, 'unknown key "until"'),
        ({"name": 1}, "name: expected"),
        ({"name": ""}, "name: expected"),
        ({"name": "dns", "for": "2"}, "for: expected"),
        ({"name": "dns", "for": "0s"}, "for: expected"),
        ({"name": "dns", "reason": "x" * 201}, "reason: expected"),
        ([], "expected a JSON object"),
        (None, "expected a JSON object"),
    ):
        code, answer = post(agent, "drain", body)
        check(code == 400 and said in answer["error"], said, code, answer)
    code, answer = agent.get("/v1/drain", method="POST", body='{"name": "' + "x" * 5000 + '"}')
    check(code == 413, "too long", code, answer)
    check(agent.get("/v1/drain")[0] == 405, "GET")
    for words in (["drain"], ["drain", "dns", "--all"], ["undrain", "dns", "--for", "1h"], ["reload", "--all"], ["status", "--all"]):
        ctl(agent, *words, code=2)
    check(agent.status()["drains"] == [] and not os.path.exists(agent.edge.host.path("state.json")), "nothing was done")
    announced(site, agent, DNS)


def test_bad_state(site):
    """A state file that is none: said loudly, kept aside, and the agent runs."""
    edge, agent = site.edges[0], healthy(site)
    agent.stop(signal.SIGUSR2)
    path = edge.host.path("state.json")
    with open(path, "w", encoding="utf-8") as f:
        f.write('{"format": 1, "drains": [')
    agent.start()
    agent.wait_log("what operators have said before is lost: ")
    check(os.path.exists(path + ".bad") and not os.path.exists(path), "kept aside")
    announced(site, agent, DNS)
    ctl(agent, "drain", "dns")
    drained(site, agent, DNS)
    ctl(agent, "undrain", "dns")


def test_disk_that_takes_nothing(site):
    """What cannot be kept is done all the same, and said."""
    edge, agent = site.edges[0], healthy(site)
    os.mkdir(edge.host.path("state.json"))
    done = ctl(agent, "drain", "dns")
    check("drained dns" in done.stdout, "done", done)
    drained(site, agent, DNS)
    # A disk that is quick has said so in the answer; else the status does.
    agent.wait_status(lambda s: s["state"]["error"] and "not on disk" in s["verdict"]["text"], what="said")
    check("warning: " in done.stderr or done.stderr == "", "nothing else", done)
    agent.wait_log("what is said now does not outlive the agent")
    os.rmdir(edge.host.path("state.json"))
    ctl(agent, "undrain", "dns")
    agent.wait_status(lambda s: s["state"]["error"] is None, what="and it is well again")
    agent.wait_log("what operators have said is on disk again")


def test_disk_that_hangs(site):
    """While the disk hangs, drains act, and a death is withdrawn as fast as ever; what waits is kept in the end."""
    edge, agent = site.edges[0], healthy(site)
    with held_thread(agent.process.pid):
        done = ctl(agent, "drain", "web")
        check(done.stdout == "drained web until it is undrained\n", "done", done)
        drained(site, agent, WEB)
        moment = edge.nsd.kill()
        update = site.wire.wait_withdraw("edge1", DNS, since=moment)
        site.wait_route(DNS, set())
        check(update.time - moment < 1 + PULSE.withheld(moment), "at once", update)
        check(not os.path.exists(edge.host.path("state.json")), "nothing is on the disk")
    eventually(lambda: os.path.exists(edge.host.path("state.json")), what="it is kept when the disk goes on")
    ctl(agent, "undrain", "web")
    agent.wait_status(lambda s: s["state"]["error"] is None, what="and the next one")
    edge.nsd.start()
    announced(site, agent, DNS, WEB)


def test_check_now_and_reload(site):
    """The two others: checks run at once; a configuration that is refused is told with its problems."""
    agent = healthy(site)
    check(ctl(agent, "check-now").stdout == "every check runs now\n", "check-now")
    agent.wait_log("check now: by root (uid 0, pid ")
    good = agent.config["services"]["dns"]["prefixes"]
    agent.config["services"]["dns"]["prefixes"] = dict(good, **{DNS: 70000, "nonsense": 1})
    agent.write_config()
    done = ctl(agent, "reload", code=1)
    check("the configuration is refused; what ran keeps running" in done.stderr, "refused", done)
    check("70000" in done.stderr and "nonsense" in done.stderr, "all its problems", done)
    code, answer = post(agent, "reload", None)
    check(code == 409 and len(answer["problems"]) == 2, "409 with the list", code, answer)
    agent.config["services"]["dns"]["prefixes"] = dict(good, **{DNS: 77})
    agent.write_config()
    check(ctl(agent, "reload").stdout == "reloaded: watching 2 services\n", "reloaded")
    agent.wait_prefix(DNS, weight=77)
    agent.wait_log("reload: by root (uid 0, pid ")


def test_drained_and_dead(site):
    """A drain outranks health both ways, and an undrain of what is dead announces nothing."""
    edge, agent = site.edges[0], healthy(site)
    ctl(agent, "drain", "dns")
    drained(site, agent, DNS)
    edge.nsd.kill()
    agent.wait_check("dns", "process", state="down")
    check(agent.prefix(DNS)["reason"] == "drained", "still the operator's word")
    ctl(agent, "undrain", "dns")
    agent.wait_prefix(DNS, wanted="withdraw", reason="unhealthy")
    edge.nsd.start()
    announced(site, agent, DNS)


def med(site, prefix, wanted):
    eventually(
        lambda: {e: r.med for e, r in site.routes(prefix).items()} == {"edge1": wanted}, 10,
        lambda: f"{prefix} has MED {wanted}: {site.routes(prefix)}",
    )


def test_weight(site):
    """A weight at run time: one UPDATE at the router, kept over HUP and restart, and reset."""
    agent = healthy(site)
    agent.config["weights"] = {"edge1": {DNS: 50}}
    agent.write_config()
    ctl(agent, "reload")
    med(site, DNS, 50)
    moment = site.moment()
    done = ctl(agent, "weight", DNS, "7", "--reason", "warm cache")
    check(done.stdout == f"{DNS} has weight 7 until it is reset\n", "the word", done)
    med(site, DNS, 7)
    check(not site.wire.since(moment, "edge1", DNS, (WITHDRAW,)), "without a withdrawal")
    check(not site.wire.since(moment, "edge1", WEB), "and no other prefix has an UPDATE")
    agent.wait_prefix(DNS, weight=7, announced=True)
    line = agent.wait_log(f"weight of {DNS}: 7 by root (uid 0, pid ")
    check(line.endswith("until it is reset: warm cache"), "the log", line)
    weights = agent.status()["weights"]
    check(weights[0]["weight"] == 7 and weights[0]["name"] == DNS and agent.status()["drains"] == [], "status", weights)
    text = " ".join(ctl(agent, "explain", DNS).stdout.split())
    check("Weight 7, given by root (uid 0, pid " in text, "explain", text)
    check("until it is reset: warm cache (configured is 50)." in text, "explain", text)
    mark = len(agent.text())
    agent.reload()
    agent.wait_log("reloaded", after=mark)
    agent.wait_prefix(DNS, weight=7)
    moment = site.moment()
    agent.stop(signal.SIGUSR2)
    agent.start()
    agent.wait_prefix(DNS, weight=7, announced=True, reason="healthy")
    agent.wait_status(lambda s: s["bird"]["settled"], what="settled")
    check(not site.wire.since(moment, "edge1", DNS), "a restart sends no UPDATE")
    agent.wait_log(f"weight of {DNS}: still, by root")
    ctl(agent, "weight", "192.0.2.53", "--reset")
    med(site, DNS, 50)
    done = ctl(agent, "weight", DNS, "--reset", code=1)
    check(f"{DNS} has the weight that is configured" in done.stderr, "nothing to reset", done)
    moment = time.time()
    ctl(agent, "weight", DNS, "9", "--for", "1200ms")
    site.wire.wait_announce("edge1", DNS, since=moment, med=9)
    agent.wait_log(f"weight of {DNS}: its time is over")
    med(site, DNS, 50)


def test_weight_refused(site):
    """What is no weight, and no prefix."""
    agent = healthy(site)
    for body, said in (
        ({"name": DNS}, "weight: expected"),
        ({"name": DNS, "weight": 65536}, "weight: expected"),
        ({"name": DNS, "weight": -1}, "weight: expected"),
        ({"name": DNS, "weight": 1.5}, "weight: expected"),
        ({"name": "dns", "weight": 1}, "name: expected a prefix"),
        ({"weight": 1}, "name: expected a prefix"),
    ):
        code, answer = post(agent, "weight", body)
        check(code == 400 and said in answer["error"], said, code, answer)
    check(post(agent, "weight", {"name": "192.0.2.54/32", "weight": 1})[0] == 404, "nobody's")
    for words in (["weight"], ["weight", DNS], ["weight", DNS, "x"], ["weight", DNS, "1", "--reset"], ["weight", DNS, "1", "2"], ["drain", DNS, "--reset"]):
        ctl(agent, *words, code=2)
    agent.wait_prefix(DNS, weight=100)


def test_weight_of_the_drained(site):
    """A weight that is given while drained counts when the prefix comes back."""
    agent = healthy(site)
    ctl(agent, "drain", "dns")
    drained(site, agent, DNS)
    ctl(agent, "weight", DNS, "33")
    agent.wait_status(lambda s: s["bird"]["settled"], what="settled")
    check(agent.prefix(DNS)["reason"] == "drained" and site.routes(DNS) == {}, "still drained", agent.prefix(DNS))
    ctl(agent, "undrain", "dns")
    med(site, DNS, 33)


main(lambda: Site(edges=1))
