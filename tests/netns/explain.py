"""`redshankctl explain` at three in the morning: each trouble made for real, and what it says of it.

The facts are asked of the document (GET /v1/explain), the words of the command, with its line
breaks taken out. The sentences are made in agent/ctl/explain_say.c alone.
"""

import json
import os
import re
import signal

from lib.case import check, eventually, main
from lib.site import Site

DNS, DNS6, WEB = "192.0.2.53/32", "2001:db8::53/128", "192.0.2.80/32"
os.environ["DBUS_SYSTEM_BUS_ADDRESS"] = "unix:path=/nonexistent/bus"

DIRECT = """
protocol direct lofirst { disabled; ipv4; interface "lo"; }
"""


def explain(agent, name):
    """(the document, the text on one line); the document is the later of the two."""
    done = agent.ctl("explain", name)
    code, body = agent.get("/v1/explain?name=" + name.replace("/", "%2F"))
    check(code == 200 and done.returncode == 0, f"explain {name} is answered", code, body, done.stderr)
    for line in done.stdout.splitlines():
        check(len(line) <= 80 or " " not in line.strip(), "80 columns", line)
    return json.loads(body), " ".join(done.stdout.split())


def wait_explained(agent, name, *words, timeout=15.0):
    """Until the text holds all these words; returns the document and the text of that moment."""
    last = ["", ""]

    def holds():
        last[:] = explain(agent, name)
        return all(word in last[1] for word in words)

    eventually(holds, timeout, lambda: f"explain {name} says {words}, it says\n{last[1]}\n{agent.tail()}")
    return last


def whats(document, service, prefix):
    return [n["what"] for n in document["services"][service]["prefixes"][prefix]["next"]]


def restart(site, change=None, **start):
    """The agent anew with its default configuration, changed; what BIRD announces stays."""
    agent = site.edges[0].agent
    if agent.process and agent.process.alive():
        agent.stop(signal.SIGUSR2)
    agent.config = agent.default_config()
    if change:
        change(agent.config)
    agent.start(**start)
    return agent


def healthy(site, change=None):
    agent = restart(site, change)
    for prefix in (DNS, DNS6, WEB):
        agent.wait_prefix(prefix, announced=True, exported=1, reason="healthy")
    agent.wait_status(lambda s: s["bird"]["settled"], what="settled")
    return agent


def test_healthy(site):
    """All is well, and it says which rule, session, weight and text of the fragment that is."""
    agent = healthy(site, lambda c: c.update(weights={"edge1": {DNS: 50}, "edge2": {DNS: 70}}))
    document, _ = wait_explained(
        agent, "dns", "service dns on edge1: healthy", "exported on router4",
        "State announced, as it should be.",
        "rule 7, healthy for",
        "all 2 must be up",
        "protocol redshank:dns:192.0.2.53 is up, loaded as wanted",
        "exported on router4; of another family: router6.",
        "exported on router6; of another family: router4.",
        "nobody else's route",
        "50, from the row of edge1 in `weights` (the service's own is 100).",
        "100, the service's own.",
        "nothing: all is as wanted.",
    )
    p = document["services"]["dns"]["prefixes"][DNS]
    check(p["rule"] == 7 and p["next"] == [] and p["exported_to"] == ["router4"], "the facts", p)
    check(p["protocols"]["redshank:dns:192.0.2.53"]["loaded"] is True, "loaded", p)
    check(document["services"]["dns"]["fragment"]["state"] == "true", "the fragment", document)
    done = agent.ctl("status")
    check(done.stdout.startswith("All is well: 2 services, 3 of 3 prefixes announced.\n"), "status", done)
    c = document["services"]["dns"]["checks"]["port"]
    check(c["type"] == "tcp" and 0 < c["duration_us"] < 3000000 and c["last"] <= document["time"], "a check's run", c)
    status = agent.check("dns", "port")
    check(status["next"] is None or status["next"] > status["last"], "its next run stands in the status, too", status)


def test_one_of_a_service(site):
    """A prefix or an address in it is explained alone; what is unknown has a neighbour's name."""
    agent = healthy(site)
    for name in (WEB, "192.0.2.80"):
        document, _ = explain(agent, name)
        check(list(document["services"]) == ["web"], "one service", document)
        check(list(document["services"]["web"]["prefixes"]) == [WEB], "one prefix", document)
    for name, near in (("wbe", "web"), ("192.0.2.81/32", WEB), ("x" * 64, None)):
        code, body = agent.get("/v1/explain?name=" + name)
        check(code == 404 and json.loads(body)["nearest"] == near, "the nearest", name, body)
    done = agent.ctl("explain", "wbe")
    check(done.returncode == 1 and 'did you mean "web"?' in done.stderr, "the command says it", done)
    check(agent.get("/v1/explain")[0] == 400, "nothing asked")


def test_process_dead(site):
    """A dead process: which one, and that it takes good outcomes of it to come back."""
    agent = healthy(site)
    site.edges[0].nsd.kill()
    document, text = wait_explained(agent, DNS, "withdrawn, as it should be.", "not exported on router4")
    check("rule 3, unhealthy for" in text, "the rule", text)
    check("Check process is down: process" in text and "has died" in text, "the check", text)
    check("check process needs 2 more good outcomes: at the earliest" in text, "what it takes", text)
    check(whats(document, "dns", DNS)[-1] == "check", "next", document["services"]["dns"]["prefixes"][DNS])
    first = agent.ctl("status").stdout.splitlines()[0]
    check(first == "TROUBLE (redshankctl explain dns): dns is unhealthy", "the first line of status", first)


def test_waiting_to_rise(site):
    """Back again: how many good outcomes are missing, and when that can be."""
    agent = site.edges[0].agent
    agent.config["defaults"].update(rise=30, fast_interval="200ms")
    mark = len(agent.text())
    agent.reload()
    agent.wait_log("reloaded", after=mark)
    site.edges[0].nsd.start()
    document, text = wait_explained(agent, DNS, "Check process is still down, and rising:", "of 30 good outcomes.")
    check("check process needs" in text and "more good outcomes: at the earliest in" in text, "next", text)
    need = document["services"]["dns"]["checks"]["process"]["needs"]
    check(need["outcome"] == "good" and 0 < need["count"] <= 30 and need["earliest"] > document["time"], "needs", need)
    counted = need["count"]
    eventually(
        lambda: (explain(agent, DNS)[0]["services"]["dns"]["checks"]["process"]["needs"] or {"count": 0})["count"]
        < counted,
        10,
        "the count goes down",
    )


def test_hang(site):
    """A service that hangs: the timeout, and which run is under way."""
    agent = healthy(site)
    site.edges[0].nginx.freeze()
    _, text = wait_explained(agent, "web", "withdrawn, as it should be.", "Check page is down: timeout after 300ms.")
    check("check page needs 2 more good outcomes" in text, "what it takes", text)
    check("Check process" not in text, "the process lives", text)
    site.edges[0].nginx.thaw()
    agent.wait_prefix(WEB, announced=True)


def test_address(site):
    """An address that was taken from the host."""
    agent = healthy(site)
    site.edges[0].remove_address("192.0.2.80")
    document, text = wait_explained(agent, WEB, "rule 2, address_missing for", "withdrawn, as it should be.")
    check("no address of this host lies in it" in text, "why", text)
    check("as soon as an address of this host lies in it, the checks decide" in text, "next", text)
    check("address" in whats(document, "web", WEB), "next", document)
    site.edges[0].add_address("192.0.2.80")
    agent.wait_prefix(WEB, announced=True)


def test_first_round(site):
    """Just started, with a check that takes its time: what is waited for, and that nothing changes."""

    def slow(config):
        config["services"]["dns"]["checks"]["slow"] = {
            "type": "exec", "command": ["/bin/sleep", "20"], "timeout": "30s", "interval": "30s"
        }

    healthy(site)
    agent = restart(site, slow)
    document, text = wait_explained(
        agent, DNS, "rule 4, first_round", "found: announced. Check slow has not spoken yet.", "check slow runs, and"
    )
    check("Until then it stays as BIRD was" in text, "why", text)
    within = re.search(r"and speaks within (\d+(?:\.\d+)?)s", text)
    check(within and 10 < float(within[1]) <= 30, "next", text)
    check(whats(document, "dns", DNS) == ["check"], "next", document)
    check(document["services"]["dns"]["checks"]["slow"]["running"] is True, "it runs", document)
    eventually(
        lambda: agent.ctl("status").stdout.startswith("Look (redshankctl explain dns): dns is not decided yet\n"),
        10,
        lambda: "status: " + agent.ctl("status").stdout,
    )


def test_unknown(site):
    """A check that cannot find out, by this server's own fault: no bus to ask for a unit."""

    def unit(config):
        config["services"]["dns"]["checks"]["unit"] = {"type": "process", "unit": "nsd.service"}

    agent = restart(site, unit)
    _, text = wait_explained(agent, DNS, "the system bus is away")
    check("cannot be asked now by a fault of this server" in text, "whose fault", text)
    check("counts neither as good nor as bad" in text, "and what it means", text)
    check("check unit is tried again" in text or "check unit runs, and speaks within" in text, "next", text)
    log = agent.text()
    check("the system bus is away" in log, "it is said in the log, too")
    mark = len(log)
    agent = healthy(site)
    check("system bus" not in agent.text()[mark:], "and not where no unit is watched", agent.tail())


def test_bird_away(site):
    """BIRD is gone: nothing is guessed, and the next try has its time."""
    agent = healthy(site)
    site.edges[0].bird.kill()
    document, text = wait_explained(agent, "dns", "BIRD is away: next try in")
    check("should be announced; whether it is, is unknown." in text, "state", text)
    check("BIRD away; what it announces is unknown." in text and "says what is wanted." in text, "BIRD", text)
    p = document["services"]["dns"]["prefixes"][DNS]
    check(p["announced"] is None and p["exported_to"] is None and p["others"] is None, "unknown is null", p)
    check(p["protocols"]["redshank:dns:192.0.2.53"]["state"] is None, "unknown is null", p)
    first = agent.ctl("status").stdout.splitlines()[0]
    check(first.startswith("TROUBLE (systemctl status bird): BIRD is away"), "status", first)
    site.edges[0].bird.start()
    site.wait_sessions()
    agent.wait_prefix(DNS, announced=True, exported=1, timeout=20)


def test_just_started(site):
    """Nothing is known yet, since BIRD hangs: that is said, and no rule is named for it."""
    edge = site.edges[0]
    healthy(site)
    edge.bird.freeze()
    mark = len(edge.agent.text())
    agent = restart(site, wait=False)
    eventually(lambda: agent.get("/v1/status")[0] == 200, 20, "the socket answers")
    document, text = explain(agent, "dns")
    check(not document["ready"] or "watching 2 services" in agent.text()[mark:], "not ready before it decides")
    if not document["ready"]:
        check("the agent has just started, and asks BIRD what it announces." in text, "why", text)
        check("rule" not in text and "State not decided yet." in text, "no rule decided", text)
    wait_explained(agent, "dns", "BIRD is away: a try is under way.", "rule 7, healthy")
    edge.bird.thaw()
    agent.wait_prefix(DNS, announced=True, exported=1)


def test_bird_conf_broken(site):
    """Somebody broke bird.conf: BIRD's own words, what waits for it, and until when."""
    agent = healthy(site)
    site.edges[0].break_bird_conf()
    agent.config["services"]["dns"]["prefixes"][DNS] = 77
    agent.reload()
    document, text = wait_explained(agent, DNS, "BIRD refuses its configuration; tried when its file is saved, or in")
    check("bird.conf:1:" in text, "BIRD's own words", text)
    check("LOADED WITH OTHER ATTRIBUTES than wanted (weight 100, wanted 77)" in text, "what BIRD holds", text)
    check("announced, but with an older weight or older attributes than wanted." in text, "state", text)
    check("77, the service's own." in text, "what is wanted", text)
    check("configure_retry" in whats(document, "dns", DNS), "next", document)
    site.edges[0].repair_bird_conf()
    wait_explained(agent, DNS, "nothing: all is as wanted.", "loaded as wanted")


def test_elsewhere(site):
    """Somebody else's route of the address: seen while harmless, loud when it defeats a withdrawal."""
    edge, agent = site.edges[0], healthy(site)
    was = edge.bird.config
    edge.bird.write_config(
        was.replace("export where redshank_export_med();", "export where redshank_export_med() || source = RTS_DEVICE;")
        .replace("disabled; ipv4; interface", "ipv4; interface")
    )
    edge.bird.configure()
    wait_explained(agent, DNS, "protocol lofirst has a route for it.", "announced, as it should be.")
    edge.nsd.kill()
    document, text = wait_explained(agent, DNS, "STILL ANNOUNCED by protocol lofirst", "the route of lofirst LEAVES")
    check("protocol lofirst has a route for it, which BIRD prefers" in text, "the best", text)
    p = document["services"]["dns"]["prefixes"][DNS]
    check({"protocol": "lofirst", "best": True} in p["others"] and p["elsewhere"] == "lofirst", "facts", p)
    first = agent.ctl("status").stdout.splitlines()[0]
    check(first.startswith("TROUBLE (redshankctl explain dns): dns is unhealthy and STILL ANNOUNCED by lofirst"), "status", first)
    edge.bird.write_config(was)
    edge.bird.configure()
    wait_explained(agent, DNS, "withdrawn, as it should be.", "nobody else's route")
    edge.nsd.start()


def test_session_down(site):
    """A session that is down: which one, and who therefore does not get it."""
    agent = healthy(site)
    site.bird.birdc("disable edge1_4")
    document, text = wait_explained(agent, DNS, "DOWN: router4", "EXPORTED ON NO SESSION")
    check("of another family: router6" in text, "the other", text)
    check("nothing that the agent does by itself." in text, "next", text)
    check(document["sessions"] == {"router4": {"up": False}, "router6": {"up": True}}, "sessions", document)
    first = agent.ctl("status").stdout.splitlines()[0]
    check("1 of 2 sessions down" in first, "status", first)
    site.bird.birdc("enable edge1_4")
    site.wait_sessions()
    wait_explained(agent, DNS, "exported on router4")


def test_dead_at_the_start(site):
    """A process that is dead when the agent starts is withdrawn at once, whatever its turn was."""
    edge = site.edges[0]
    healthy(site)
    edge.agent.stop(signal.SIGUSR2)
    edge.nginx.kill()

    def rare(config):
        config["defaults"].update(interval="600s", fast_interval="400s")

    agent = restart(site, rare, wait=False)
    edge.agent.wait_ready()
    agent.wait_prefix(WEB, wanted="withdraw", reason="unhealthy", announced=False, timeout=15)
    edge.nginx.start()


def test_many(site):
    """Hundreds of prefixes die together: one paragraph, and what is not read back yet is no alarm."""
    edge = site.edges[0]

    def many(config):
        config["services"]["web"]["prefixes"] = {
            f"10.1.{i // 256}.{i % 256}/32": {"weight": 100, "address_check": False} for i in range(600)
        }

    agent = restart(site, many)
    agent.wait_status(
        lambda s: all(p["exported"] == 1 for p in s["services"]["web"]["prefixes"].values()), 30, "all are exported"
    )
    _, text = wait_explained(agent, "web", "600 prefixes: 10.1.0.0/32,", "and 592 more", "protocol redshank:web:* is up")
    _, text = wait_explained(agent, "10.1.1.1", "protocol redshank:web:v4 is up")
    edge.nginx.kill()
    seen = []

    def all_read():
        document = json.loads(agent.get("/v1/explain?name=web")[1])
        for name, p in document["services"]["web"]["prefixes"].items():
            down = all(q["state"] == "down" for q in p["protocols"].values())
            stale = down and p["wanted"] == "withdraw" and (p["announced"] or p["exported"] != 0)
            check(not stale or p["reading"], "what is of before is said to be", name, p)
            seen.append(stale)
        return all(p["exported"] == 0 for p in document["services"]["web"]["prefixes"].values())

    eventually(all_read, 20, "all are read back", every=0)
    print(f"    {sum(seen)} of {len(seen)} were seen before they were read back", flush=True)
    wait_explained(agent, "web", "600 prefixes:", "withdrawn, as it should be.")
    edge.nginx.start()


def test_stopping(site):
    """The agent is on its way out, and BIRD does not answer: rule 0, and what it waits for."""
    edge, agent = site.edges[0], healthy(site)
    edge.bird.freeze()
    agent.send_signal(signal.SIGTERM)
    document, text = wait_explained(agent, DNS, "rule 0, stopping")
    check("on_stop is `withdraw`" in text, "why", text)
    check("the agent leaves when BIRD has done what is wanted" in text, "next", text)
    check("BIRD was told to do what is wanted, and has not answered yet." in text, "who is waited for", text)
    check(document["stopping"] is True and whats(document, "dns", DNS)[0] == "leave", "facts", document)
    edge.bird.thaw()
    check(agent.process.wait(20) == 0, "a clean end")


main(lambda: Site(edges=1, bird_extra=DIRECT))
