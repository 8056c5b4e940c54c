"""What an operator is told: the first line, the plug-in, explain and the log of troubles made for real.

Each trouble is made, and what is said of it has to name the cause and what a person can do.
"""

import os
import re
import signal
import time

from lib.case import check, eventually, main
from lib.site import Site

DNS, DNS6, WEB = "192.0.2.53/32", "2001:db8::53/128", "192.0.2.80/32"
os.environ["DBUS_SYSTEM_BUS_ADDRESS"] = "unix:path=/nonexistent/bus"

DIRECT = """
protocol direct direct1 { disabled; ipv4; interface "lo"; }
"""


def first(agent):
    """`redshankctl status | head -1`."""
    return agent.ctl("status").stdout.splitlines()[0]


def wait_first(agent, *words, timeout=15.0):
    last = [""]

    def holds():
        last[0] = first(agent)
        return all(word in last[0] for word in words)

    eventually(holds, timeout, lambda: f"the first line says {words}, it says\n{last[0]}\n{agent.tail()}")
    return last[0]


def plugin(agent):
    done = agent.ctl("--plugin", "status")
    return done.returncode, done.stdout


def explain(agent, name):
    done = agent.ctl("explain", name)
    check(done.returncode == 0, f"explain {name} is answered", done)
    return " ".join(done.stdout.split())


def wait_explained(agent, name, *words, timeout=15.0):
    last = [""]

    def holds():
        last[0] = explain(agent, name)
        return all(word in last[0] for word in words)

    eventually(holds, timeout, lambda: f"explain {name} says {words}, it says\n{last[0]}\n{agent.tail()}")
    return last[0]


def healthy(site):
    agent = site.edges[0].agent
    if agent.process and agent.process.alive():
        agent.stop(signal.SIGUSR2)
    agent.config = agent.default_config()
    agent.start()
    for prefix in (DNS, DNS6, WEB):
        agent.wait_prefix(prefix, announced=True, exported=1, reason="healthy")
    wait_first(agent, "All is well")
    return agent


def test_refused_reload(site):
    """A reload that is refused stays in sight until a good one; the plug-in warns."""
    agent = healthy(site)
    loaded = agent.status()["config"]["loaded"]
    agent.write_config('{"node": "edge1",\n"services" }')
    agent.send_signal(signal.SIGHUP)
    agent.wait_log("reload refused")
    line = wait_first(agent, "Look (redshankd --check): the configuration on disk was refused, " + agent.conf)
    check("what ran keeps running" in line and ":2:" in line, "where and what then", line)
    config = agent.status()["config"]
    check(config["error"].startswith(agent.conf) and config["loaded"] == loaded, "the document", config)
    code, text = plugin(agent)
    check(code == 1 and "the configuration on disk was refused" in text, "the plug-in", code, text)
    check("would fail (redshankd --check)" in explain(agent, "dns"), "explain")
    agent.reload()
    wait_first(agent, "All is well")
    config = agent.status()["config"]
    check(config["error"] is None and config["loaded"] > loaded, "a good one clears it", config)
    check(plugin(agent)[0] == 0, "the plug-in is content")


def test_elsewhere(site):
    """A dead service whose prefix somebody else announces: who, and what a person can do."""
    edge, agent = site.edges[0], healthy(site)
    was = edge.bird.config
    edge.bird.write_config(
        was.replace("export where redshank_export_med();", "export where redshank_export_med() || source = RTS_DEVICE;")
        .replace("disabled; ipv4; interface", "ipv4; interface")
    )
    edge.bird.configure()
    wait_explained(agent, DNS, "protocol direct1 has a route for it.")
    edge.nsd.kill()
    line = wait_first(agent, "STILL ANNOUNCED")
    wait_first(agent, "TROUBLE (redshankctl explain dns): dns is unhealthy and STILL ANNOUNCED by direct1")
    check("not announced as wanted" not in line, "no riddle", line)
    text = wait_explained(agent, DNS, "ours is not exported on router4", "The route of direct1 leaves there.")
    check("FOR A PERSON: end the route of direct1" in text, "what to do", text)
    check("`export where redshank_export_med();`" in text and "docs/bird-beside.md" in text, "how", text)
    check(plugin(agent)[0] == 2, "critical")
    edge.bird.write_config(was)
    edge.bird.configure()
    edge.nsd.start()
    text = wait_explained(agent, DNS, "nothing: all is as wanted.")
    check("FOR A PERSON" not in text, "nothing left to do", text)


def test_folder_missing(site):
    """The folder of the fragments is gone: not BIRD's refusal; which folder, why, and what makes it."""
    edge, agent = site.edges[0], healthy(site)
    away = edge.fragments + ".away"
    os.rename(edge.fragments, away)
    line = wait_first(agent, "Look (systemd-tmpfiles --create): fragments can not be written")
    check(f"{edge.fragments}: No such file or directory (systemd-tmpfiles --create" in line, "where and why", line)
    check("refuses" not in line, "BIRD refuses nothing", line)
    bird = agent.status()["bird"]
    check(bird["alarm"] is None and edge.fragments in bird["files_error"], "apart", bird)
    code, text = plugin(agent)
    check(code == 1 and "fragments can not be written" in text and "refuses" not in text, "the plug-in", code, text)
    edge.nsd.kill()
    agent.wait_prefix(DNS, wanted="withdraw", announced=False)
    text = wait_explained(agent, DNS, "CAN NOT BE WRITTEN (above).", "Fragments can not be written.")
    check("written now" not in text and "the fragment is tried again each second" in text, "one story", text)
    os.rename(away, edge.fragments)
    edge.nsd.start()
    wait_first(agent, "All is well")
    check(agent.status()["bird"]["files_error"] is None, "over")


def test_session(site):
    """A session that goes down: which one, in the log, the first line and the plug-in; and up again."""
    agent = healthy(site)
    mark = len(agent.text())
    site.bird.birdc("disable edge1_6")
    line = agent.wait_log("bird: session router6 went down: ", after=mark)
    wait_first(agent, "TROUBLE (redshankctl explain dns): dns is announced to no session", "1 of 2 sessions down (router6)")
    agent.config["services"] = {"web": agent.config["services"]["web"]}
    agent.reload()
    wait_first(agent, "Look (birdc show protocols all router6): 1 of 2 sessions down (router6)")
    check(agent.status()["bird"]["sessions_down"] == ["router6"], "the document", agent.status()["bird"])
    code, text = plugin(agent)
    check(code == 1 and "1 of 2 sessions down (router6)" in text, "the plug-in agrees", code, text)
    site.bird.birdc("enable edge1_6")
    site.wait_sessions()
    agent.wait_log("bird: session router6 came up", after=mark)
    wait_first(agent, "All is well")
    check(agent.text()[mark:].count("router6 went down") == 1, "once", line, agent.tail())


def test_frozen(site):
    """BIRD hangs: not away; it keeps announcing, since when, and what ends that."""
    edge, agent = site.edges[0], healthy(site)
    mark = len(agent.text())
    edge.bird.freeze()
    edge.nsd.kill()
    line = wait_first(agent, "TROUBLE (systemctl restart bird): BIRD runs but does not answer (since 2", timeout=20)
    check("what it announces now it keeps announcing" in line and "dns is unhealthy" in line, "the line", line)
    check("is away" not in line, "not away", line)
    code, text = plugin(agent)
    check(code == 2 and "BIRD runs but does not answer (since" in text, "the plug-in", code, text)
    text = wait_explained(agent, DNS, "BIRD does not answer; what it announces now it keeps announcing.")
    check("FOR A PERSON: `systemctl restart bird`" in text, "what to do", text)
    since = agent.status()["bird"]["silent_since"]
    edge.bird.thaw()
    agent.wait_prefix(DNS, announced=False)
    agent.wait_status(lambda s: s["bird"]["silent_since"] is None, what="over")
    check(since, "since when", since)
    line = agent.wait_log("service dns: withdrawn now (BIRD answered after ", after=mark)
    check(float(line.split("after ")[1].split(" s)")[0]) >= 1, "how late", line)
    mark = len(agent.text())
    edge.nsd.start()
    wait_first(agent, "All is well")
    late = re.findall(r"service dns: announced now \(BIRD answered after ([0-9.]+) s", agent.text()[mark:])
    check(all(float(seconds) >= 1 for seconds in late), "what is in time has no line", agent.tail())
    mark = len(agent.text())
    edge.bird.kill()
    agent.wait_status(lambda s: s["bird"]["link"] != "up", what="BIRD is away")
    done = agent.ctl("weight", WEB, "70")
    check("NOT YET: BIRD is away" in done.stdout, "a weight that BIRD does not have", done)
    agent.ctl("weight", WEB, "--reset")
    check("whether 3 prefixes are announced is unknown" in plugin(agent)[1], "the plug-in", plugin(agent))
    edge.nsd.kill()
    agent.wait_prefix(DNS, wanted="withdraw")
    edge.nsd.start()
    agent.wait_prefix(DNS, wanted="announce")
    since = time.monotonic()
    eventually(lambda: time.monotonic() - since > 1.2, 5, "BIRD is away for a while")
    edge.bird.start()
    line = agent.wait_log("service dns: announced now (BIRD answered after ", after=mark)
    wait_first(agent, "All is well", timeout=15)
    check(agent.text()[mark:].count("service dns: announced now") == 1, "once", line, agent.tail())


def test_address(site):
    """An address that was taken from the host: the first line says which."""
    edge, agent = site.edges[0], healthy(site)
    edge.remove_address("192.0.2.80")
    line = wait_first(agent, "TROUBLE (redshankctl explain web): web", "192.0.2.80/32 has no address on this host")
    check("dns" not in line, "only that", line)
    edge.add_address("192.0.2.80")
    wait_first(agent, "All is well")


main(lambda: Site(edges=1, bird_extra=DIRECT))
