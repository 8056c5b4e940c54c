"""Shed and unshed by hand among real agents: refused where nothing is shed, gone when neighbours promise and
never before, told by status, explain, metrics, events and the dead man's list; kept over a restart; back at
once; and back when the agent stops for good."""

import contextlib
import json
import os
import signal
import time

from lib.case import check, eventually, main
from lib.documented import missing, untold
from lib.operators import ctl
from lib.shedsite import Neighbours, history, lowest, told, wait_started
from lib.site import Site

DNS, WEB = "192.0.2.53/32", "192.0.2.80/32"


def signal_file(edge):
    return edge.host.path("busy")


def make_site():
    site = Site(edges=3)
    site.circle = Neighbours(site)
    for edge in site.edges:
        config = edge.agent.config
        with open(signal_file(edge), "w", encoding="ascii") as f:
            f.write("40\n")
        config["load"] = {"capacity": 1000, "interval": "1s",
                          "signals": {"queue": {"type": "file", "file": signal_file(edge), "limit": 100}}}
        for service in config["services"].values():
            service["on_stop"] = "keep"
        if edge.name != "edge3":
            config["shed"] = {}
    site.started = time.time()
    site.start_agents()
    site.circle.wait_fresh()
    return site


def deadman(edge):
    with open(os.path.join(edge.fragments, ".deadman"), encoding="utf-8") as f:
        return f.read()


def shed_of(agent, prefix=WEB):
    return agent.prefix(prefix)["shed"]


def explained(agent, prefix=WEB):
    return " ".join(agent.ctl("explain", prefix).stdout.split())


def test_refused(site):
    """Without `shed` nothing is shed, and that is said; a service and a stranger are no prefixes."""
    agent, other = site.edges[0].agent, site.edges[2].agent
    done = ctl(other, "shed", WEB, code=1)
    check("without the section `shed`" in done.stderr, "it says what is missing", done)
    check("expected a prefix" in ctl(agent, "shed", "web", code=1).stderr, "a service is none")
    check("is called" in ctl(agent, "unshed", "192.0.2.99", code=1).stderr, "nor is a stranger")
    check("not shed by an operator" in ctl(agent, "shed", WEB, "--reset", code=1).stderr, "nothing to take back")
    status = agent.wait_status(lambda s: s["shed"]["neighbours_fresh"] == 2, what="both report")
    check(status["shed"]["out"] == 0, "the server", status["shed"])
    check(shed_of(agent)["out"] is False and shed_of(agent)["floor"] == 1, "the prefix", shed_of(agent))
    check("not out: " in explained(agent), "why it is not out", explained(agent))
    # Nothing to do is known, too.
    with open(signal_file(site.edges[2]), "w", encoding="ascii") as f:
        f.write("0\n")
    other.wait_status(lambda s: s["shed"]["utilisation"] == 0, what="a load of nothing")


@contextlib.contextmanager
def broken_bird_conf(edge):
    """Meanwhile somebody's bird.conf is not one, and BIRD has just been told to load it."""
    edge.break_bird_conf()
    reply = edge.birdc("configure")
    check(reply.code == "8002", "BIRD refuses", reply)
    yield
    reply = edge.birdc("configure")
    check(reply.code == "8002", "BIRD still refuses", reply)
    edge.repair_bird_conf()


def test_waits_for_promises(site):
    """Said too early it waits, and says for what; then it goes, when somebody has promised, whatever bird.conf is."""
    with broken_bird_conf(site.edges[0]):
        waits_for_promises(site)


def waits_for_promises(site):
    agent = site.edges[0].agent
    began = time.time()
    done = ctl(agent, "shed", WEB, "--reason", "hot disks")
    check("when neighbours have promised" in done.stdout, "it is not out yet, and that is said", done)
    check([w["name"] for w in agent.status()["sheds"]] == [WEB], "the word is in the status")
    text = explained(agent)
    if time.time() < site.started + 12:
        check("has just started" in text and "hot disks" in text, "what it waits for", text)
    wait_started(site.started)
    agent.wait_prefix(WEB, wanted="withdraw", reason="shed", announced=False, timeout=20)
    site.wait_route(WEB, {"edge2", "edge3"})
    check(lowest(site, WEB, began) >= 2, "two go on announcing it", told(site, WEB, began))
    agent.wait_log("shed 192.0.2.80/32 of web: operator, promised by edge2", after=0)
    given = [n for n in ("edge2", "edge3") if "promised edge1 to go on announcing 192.0.2.80/32" in site.edge(n).agent.text()]
    check(given, "those who promised say so", site.edge("edge2").agent.tail())


def test_told(site):
    """Status, explain, metrics and the dead man's list have it, and who promised."""
    agent, edge = site.edges[0].agent, site.edges[0]
    shed = shed_of(agent)
    check(shed["out"] and shed["why"] == "operator" and shed["promised"] >= 1 and shed["order"] == 1, "the prefix", shed)
    check(shed["word"]["word"] == "shed" and shed["word"]["reason"] == "hot disks", "the word", shed)
    check(agent.status()["shed"]["out"] == 1, "the server")
    text = explained(agent)
    for words in ("out for", "an operator wants it so", "Promises (its floor is 1): edge2 (for", "By hand: shed by", "hot disks"):
        check(words in text, words, text)
    check("shed: operator, " in agent.ctl("status").stdout and "shedding: 1 prefix out" in agent.ctl("status").stdout,
          "status", agent.ctl("status").stdout)
    check("has shed prefixes to neighbours" in agent.ctl("status").stdout.splitlines()[0], "the verdict")
    plugin = agent.ctl("status", "--plugin")
    check(plugin.returncode == 1 and f"{WEB} is shed to neighbours" in plugin.stdout, "the plug-in", plugin)
    metrics = agent.get("/metrics")[1].decode()
    for line in ("redshank_shed_prefixes 1", f'redshank_prefix_shed{{service="web",prefix="{WEB}"}} 1',
                 'redshank_neighbour_willing{neighbour="edge2"} 1', "redshank_shed_alarm 0"):
        check(line in metrics, line, [m for m in metrics.splitlines() if "shed" in m or "neighbour_" in m])
    eventually(lambda: "restore redshank:web:192.0.2.80\n" in deadman(edge), what="the dead man brings it back")
    other = site.edge("edge2").agent
    check(shed_of(other)["owed"] == 1, "the neighbour owes it", shed_of(other))
    check("this server has promised it to edge1" in explained(other), "and says so", explained(other))


def test_documented(site):
    """docs/status.md tells every key of this document, which has nearly all, and none that is not there."""
    agent = site.edges[0].agent
    for words in (("drain", "dns"), ("weight", DNS, "70"), ("freeze",)):
        ctl(agent, *words)
    document, explained = agent.status(), json.loads(agent.get("/v1/explain?name=web")[1])
    for words in (("thaw",), ("weight", DNS, "--reset"), ("undrain", "dns")):
        ctl(agent, *words)
    check(not untold(document, "The status"), "keys of the status that the page does not tell", untold(document, "The status"))
    both = ("The status", "The document that explains")
    check(not untold(explained, *both), "the same of explain", untold(explained, *both))
    check(not missing(document, "The status"), "keys that the page tells and nobody sends", missing(document, "The status"))


def test_no_router_hears_it(site):
    """Who announces to no router is no announcer, whatever its BIRD has: what was shed on its promise comes back, and
    nothing is shed on such a promise."""
    agent = site.edges[0].agent
    # It is the server's last prefix while the test before drains the others, and comes back for that time.
    agent.wait_prefix(WEB, wanted="withdraw", reason="shed", announced=False, timeout=60)
    site.wait_route(WEB, {"edge2", "edge3"})
    cut = time.time()
    for other in site.edges[1:]:
        other.birdc("disable router4")
    try:
        site.wire.wait_announce("edge1", WEB, 15, since=cut)
        eventually(lambda: shed_of(agent)["why"] == "floor", 30, lambda: f"nobody else announces it: {shed_of(agent)}")
        site.wait_route(WEB, {"edge1"})
    finally:
        for other in site.edges[1:]:
            other.birdc("enable router4")
    agent.wait_prefix(WEB, wanted="withdraw", reason="shed", timeout=60)
    check(lowest(site, WEB, time.time() - 1) >= 1, "others announce it", told(site, WEB, cut))


def test_unshed(site):
    """Back at once, whatever bird.conf is, and held; the newest word counts, and each is taken back by its name."""
    agent = site.edges[0].agent
    with broken_bird_conf(site.edges[0]):
        ctl(agent, "unshed", WEB, "--for", "1h")
        agent.wait_prefix(WEB, wanted="announce", reason="healthy", announced=True, timeout=5)  # its lease would end later
        site.wait_announced(WEB, "edge1")
    status = agent.status()
    check(not status["sheds"] and [w["name"] for w in status["unsheds"]] == [WEB], "one word", status["sheds"])
    check("an operator keeps it here" in explained(agent), "it is held", explained(agent))
    agent.wait_log("192.0.2.80/32 is shed no more: unshed")
    eventually(lambda: "restore" not in deadman(site.edges[0]), what="nothing to bring back")
    ctl(agent, "unshed", WEB, "--reset")
    check(not agent.status()["unsheds"], "taken back")


def test_restart_and_stop(site):
    """The word outlives the agent; a stop with `keep` brings what is shed back before the agent is gone."""
    edge, agent = site.edges[0], site.edges[0].agent
    ctl(agent, "shed", WEB)
    agent.wait_prefix(WEB, reason="shed", announced=False, timeout=20)
    before = time.time()
    agent.stop()
    site.wait_route(WEB, {"edge1", "edge2", "edge3"})
    check("edge1" in history(site, WEB, before)[-1][1], "announced by nobody's agent", told(site, WEB, before))
    check("is shed no more: stopping" in agent.text(), "it says why", agent.tail())
    check("disabled" not in edge.fragment("web"), "its fragment says so, too", edge.fragment("web"))
    agent.start(write=False)
    check([w["name"] for w in agent.status()["sheds"]] == [WEB], "the word is still there")
    agent.wait_prefix(WEB, reason="shed", announced=False, timeout=25)
    ctl(agent, "shed", WEB, "--reset")
    agent.wait_prefix(WEB, reason="healthy", announced=True, timeout=5)


def test_promises_end(site):
    """Neighbours that are gone promise nothing: it comes back by itself, and the word stays."""
    agent = site.edges[0].agent
    ctl(agent, "shed", WEB)
    agent.wait_prefix(WEB, reason="shed", announced=False, timeout=20)
    for edge in site.edges[1:]:
        edge.agent.send_signal(signal.SIGSTOP)
    agent.wait_prefix(WEB, reason="healthy", announced=True, timeout=20)
    eventually(lambda: "not out: " in explained(agent) and "leases" not in explained(agent), 5, what="the sentence is one of words")
    line = agent.ctl("status").stdout
    check("only 0 of 2 neighbours report" in line, "the verdict says that nobody reports", line)
    for edge in site.edges[1:]:
        edge.agent.send_signal(signal.SIGCONT)
    ctl(agent, "shed", WEB, "--reset")
    check(json.loads(agent.get("/v1/events")[1]), "events are there")


def test_no_neighbours_any_more(site):
    """A reload that takes the neighbours away brings back what is shed, and says why."""
    agent = site.edges[0].agent
    site.circle.wait_fresh()
    ctl(agent, "shed", WEB)
    agent.wait_prefix(WEB, reason="shed", announced=False, timeout=25)
    mark, section = len(agent.text()), agent.config.pop("neighbours")
    agent.reload()
    agent.wait_prefix(WEB, wanted="announce", reason="healthy", announced=True, timeout=5)
    agent.wait_log("192.0.2.80/32 is shed no more: off", after=mark)
    check(agent.status()["neighbours"] is None, "there are none")
    agent.config["neighbours"] = section
    agent.reload()
    agent.wait_log("`neighbours` is new, which takes a restart of the agent", after=mark)


main(make_site)
