"""Every command of redshankctl with --json, in every outcome, and the exit codes of the manual."""

import json
import os
import re
import subprocess

from lib.agentctl import ROOT, build_folder
from lib.case import check, main
from lib.operators import WEB, announced, one_line, untold, withdrawn
from lib.site import Site

# What is said with each command so that it works; a word more than it takes; a name that is refused.
WORKS = {
    "status": ["web"],
    "explain": ["web"],
    "top": [],
    "drain": ["web"],
    "undrain": ["web"],
    "announce": ["web", "--for", "1h"],
    "weight": [WEB, "70"],
    "freeze": [],
    "thaw": [],
    "check-now": [],
    "reload": [],
    "shed": [WEB],
    "unshed": [WEB],
    "events": [],
    "version": [],
    "import": ["birdwatcher", "FILE"],
}
REFUSED = {"status": ["nobody"], "explain": ["nobody"], "drain": ["nobody"], "undrain": ["web"],
           "shed": [WEB], "unshed": [WEB],  # nothing is, without neighbours
           "announce": ["nobody", "--for", "1h"], "weight": ["192.0.2.99", "1"], "thaw": [], "events": ["nobody"],
           "import": ["exabgp", "/nonexistent"]}
seen = set()


def run(socket, *arguments):
    """(exit code, the one JSON document on standard output); nothing else may be said."""
    done = subprocess.run([os.path.join(build_folder(), "redshankctl"), "--socket", socket, "--json", *arguments],
                          capture_output=True, text=True, timeout=60, check=False)
    seen.add(done.returncode)
    try:
        return done.returncode, json.loads(done.stdout), done
    except ValueError:
        if arguments[0] == "events" and done.returncode == 0:  # one a line
            return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done
        check(False, f"one document for {arguments}", done)


def is_error(answer, done, *said):
    check(isinstance(answer, dict) and isinstance(answer.get("error"), str) and answer["error"], "an error", done)
    check(done.stderr == "", "and nothing beside it", done)
    for word in said:
        check(word in done.stdout, word, done)


def commands():
    """As --help lists them."""
    text = subprocess.run([os.path.join(build_folder(), "redshankctl"), "--help"], capture_output=True, text=True,
                          check=True).stdout
    return re.findall(r"^  ([a-z][a-z-]*) ", text[: text.index("\nOptions:")], re.M), text


def test_every_command_is_known(site):
    """What --help lists is what is tried here."""
    check(sorted(commands()[0]) == sorted(WORKS), "all of them", commands()[0])


def test_they_work(site):
    """Done: exit 0, and a document."""
    agent = untold(site)
    file = site.edges[0].host.path("birdwatcher.conf")
    with open(file, "w", encoding="utf-8") as f:
        f.write('[services]\n[services.web]\ncommand = "true"\nfunctionname = "match"\nprefixes = ["192.0.2.80/32"]\n')
    for name, words in WORKS.items():
        if name in ("top", "shed", "unshed"):  # goes on; want neighbours: netns-top and netns-shed-words
            continue
        code, answer, done = run(agent.socket, name, *[file if w == "FILE" else w for w in words])
        check(code == 0 and answer, f"{name} is done", done)
        check("error" not in answer, f"{name} has no error", done)
        if name not in ("status", "explain", "version", "import", "events"):
            check(set(answer) == {"text", "warning"}, f"{name} says what was done", done)


def test_they_are_refused(site):
    """Refused or unknown: exit 1, one object with `error`."""
    agent = site.edges[0].agent
    for name, words in REFUSED.items():
        code, answer, done = run(agent.socket, name, *words)
        check(code == 1, f"{name} is refused", done)
        is_error(answer, done)
    good = agent.config["services"]["web"]["prefixes"]
    agent.config["services"]["web"]["prefixes"] = {WEB: 70000}
    agent.write_config()
    code, answer, done = run(agent.socket, "reload")
    check(code == 1 and "70000" in answer["problems"][0], "reload has its problems", done)
    is_error(answer, done)
    agent.config["services"]["web"]["prefixes"] = good
    agent.write_config()


def test_wrong_usage(site):
    """Wrong usage: exit 2, one object with `error`, whatever it is that is wrong."""
    for name in WORKS:
        words = ["ahc"] if name == "import" else ["a", "b", "c", "d"]
        code, answer, done = run("/nonexistent", name, *words)
        check(code == 2, f"{name} {words}", done)
        is_error(answer, done)
    for words in ([], ["statsu"], ["status", "--fnord"], ["drain", "--reason"], ["-x"], ["status", "--plugin"],
                  ["drain", "web", "--all"], ["thaw", "--for", "1h"]):
        code, answer, done = run("/nonexistent", *words)
        check(code == 2, f"{words}", done)
        is_error(answer, done)


def test_no_agent(site):
    """No agent: exit 3, and what to try; at a socket that is missing, one that nobody listens at, a file."""
    dead = site.edges[0].host.path("dead.sock")
    site.edges[0].host.run(["/usr/bin/python3", "-c", f"import socket; socket.socket(socket.AF_UNIX).bind({dead!r})"])
    for socket, said in (("/nonexistent/s", "No such file"), (dead, "no agent listens"), ("/etc/passwd", "Connection refused")):
        for name, words in WORKS.items():
            if name in ("version", "import", "top"):
                continue
            code, answer, done = run(socket, name, *words)
            check(code == 3, f"{name} at {socket}", done)
            is_error(answer, done, "no agent at " + socket)
        check(said in answer["error"], said, answer)


def test_plugin(site):
    """The plug-in's codes, as the manual has them: OK, WARNING, CRITICAL, UNKNOWN."""
    edge, agent = site.edges[0], untold(site)
    codes = [agent.ctl("status", "--plugin")]
    agent.ctl("drain", "web")
    withdrawn(site, agent, "drained", WEB)
    codes.append(agent.ctl("status", "--plugin"))
    agent.ctl("undrain", "web")
    edge.nginx.stop()
    withdrawn(site, agent, "unhealthy", WEB)
    codes.append(agent.ctl("status", "--plugin"))
    edge.nginx.start()
    announced(site, agent, "healthy", WEB)
    codes.append(subprocess.run([os.path.join(build_folder(), "redshankctl"), "--socket", "/nonexistent", "status", "--plugin"],
                                capture_output=True, text=True, check=False))
    rows = re.findall(r"^\| (\d) \| ([A-Z]+) \|", manual(), re.M)
    check([int(code) for code, _ in rows] == [c.returncode for c in codes], "the codes", rows, codes)
    for done, (_, word) in zip(codes, rows):
        check(done.stdout.startswith(f"REDSHANK {word} - "), word, done)


def test_silence(site):
    """A check that has no outcome changes nothing, and the first line, the plug-in and `explain` say so."""
    edge, agent = site.edges[0], untold(site)
    code = edge.host.path("sensors")
    with open(code, "w", encoding="ascii") as f:
        f.write("0")
    agent.config["services"]["web"]["checks"]["sensors"] = {
        "type": "exec", "plugin": True, "command": ["/bin/sh", "-c", f"echo no sensors; exit $(cat {code})"]}
    agent.reload()
    well = agent.wait_status(lambda s: s["services"]["web"]["checks"].get("sensors", {}).get("state") == "up", what="it speaks")
    check(well["verdict"]["level"] == "good", "all is well", well["verdict"])
    with open(code, "w", encoding="ascii") as f:
        f.write("3")
    said = agent.wait_status(lambda s: s["verdict"]["level"] != "good", what="that it does not")
    text = "web is healthy, but check sensors says nothing"
    check(said["verdict"] == {"level": "look", "text": text, "command": "redshankctl explain web"}, text, said["verdict"])
    check(one_line(agent.ctl("status")).startswith(f"Look (redshankctl explain web): {text}"), "the first line")
    plugin = agent.ctl("status", "--plugin")
    check(plugin.returncode == 1 and "check sensors of web says nothing: unknown: no sensors" in plugin.stdout, "the plug-in", plugin)
    check("no sensors" in one_line(agent.ctl("explain", "web")), "why", agent.ctl("explain", "web"))
    announced(site, agent, "healthy", WEB)
    agent.config = agent.default_config()
    agent.reload()
    agent.wait_status(lambda s: s["verdict"]["level"] == "good", what="all is well")


def manual():
    with open(os.path.join(ROOT, "docs", "redshankctl.1.md"), encoding="utf-8") as f:
        text = f.read()
    return text[text.index("\n## Exit status") :]


def test_the_manual(site):
    """The table of exit codes has those that were seen, each once, and --help the same."""
    table = manual()
    table = table[: table.index("With `--plugin`")]
    rows = dict(re.findall(r"^\| (\d) \| (.+?) \|$", table, re.M))
    check({int(code) for code in rows} == seen == {0, 1, 2, 3}, "the codes", rows, seen)
    text = " ".join(commands()[1].split())
    check("Exit codes: 0 done, 1 refused or unknown, 2 usage, 3 no agent." in text, "--help", text)
    for code, word in (("0", "done"), ("1", "refused"), ("2", "usage"), ("3", "no agent")):
        check(word in rows[code], word, rows)


main(lambda: Site(edges=1))
