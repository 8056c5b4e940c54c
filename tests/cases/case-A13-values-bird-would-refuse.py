"""A13: values that BIRD would refuse are refused by us, with the key's path.

One bad thing in one file each. `--check` and a start refuse it with the file, the path or the line,
the value, and what is allowed; a reload says the same and keeps what runs, and BIRD is told nothing.
"""

import copy
import json
import os
import subprocess

from lib.agentctl import build_folder
from lib.case import check, main
from lib.site import Site

PREFIX = "192.0.2.61/32"
CHECK = "services.dns.checks.flag"


def interval(value):
    def spoil(config):
        config["services"]["dns"]["checks"]["flag"]["interval"] = value

    return spoil


def timing(**keys):
    def spoil(config):
        config["services"]["dns"]["checks"]["flag"].update(keys)

    return spoil


def prefixes(value):
    def spoil(config):
        config["services"]["dns"]["prefixes"] = value

    return spoil


def add_port(config):
    config["services"]["dns"]["checks"]["port"] = {"type": "tcp", "address": "192.0.2.61", "port": 70000}


def no_services(config):
    config["services"] = {}


# What is spoilt, and the words that the refusal must hold: path, value, what is allowed.
DURATION = ('expected a duration from "10ms" to "1h"',)
MEANING = [
    (prefixes({PREFIX: {"communities": ["65551:100"]}}), (f'["{PREFIX}"].communities[0]', '"65551:100"', "0 to 65535")),
    (prefixes({PREFIX: 4294967296}), (f'services.dns.prefixes["{PREFIX}"]', "got 4294967296", "0 to 65535")),
    (prefixes({PREFIX: -1}), (f'services.dns.prefixes["{PREFIX}"]', "got -1", "0 to 65535")),
    (prefixes({"192.0.2.1/24": 1}), ('services.dns.prefixes["192.0.2.1/24"]', '"192.0.2.0/24"')),
    (prefixes({"192.0.2.1": 1}), ('services.dns.prefixes["192.0.2.1"]', 'did you mean "192.0.2.1/32"')),
    (interval("10"), (CHECK + ".interval", 'got "10"', "the unit is missing") + DURATION),
    (interval(10.5), (CHECK + ".interval", "got 10.5", "no fractions") + DURATION),
    (interval(10), (CHECK + ".interval", "got 10;", '"10s"') + DURATION),
    (interval(0), (CHECK + ".interval", "got 0;") + DURATION),
    (interval("0s"), (CHECK + ".interval", 'got "0s"') + DURATION),
    (interval(1000000000), (CHECK + ".interval", "got 1000000000;") + DURATION),
    (interval("1000000000s"), (CHECK + ".interval", 'got "1000000000s"') + DURATION),
    (interval(-1), (CHECK + ".interval", "got -1") + DURATION),
    (timing(rise=0), (CHECK + ".rise", "got 0", "1 to 100")),
    (timing(timeout="2s", interval="1s"), (CHECK + ".timeout", 'got "2s"', 'at most the interval, "1s"')),
    (timing(fal=2), (CHECK + ".fal", "unknown key", 'did you mean "fall"')),
    (add_port, ("services.dns.checks.port.port", "got 70000", "1 to 65535")),
    (no_services, ("services", "got an empty object", "at least one service")),
]


def texts(good):
    """Bad ones that no JSON library would write, each with the words that must be there."""
    text = json.dumps(good, indent=2) + "\n"
    yield text.replace('"node":', '"node": "edge2",\n  "node":', 1), (":3:3:", '"node" stands twice')
    yield text[: text.rindex("}")].rstrip() + ",\n}\n", ("remove the comma",)
    yield text.replace('"fragments": "', '"fragments": "/run\\u0000', 1), ("must not hold \\u0000",)
    yield "", (":1:1:", "the file is empty")
    yield "[" * 1000000 + "]" * 1000000, (":1:33:", "nested")


def spoilt(good):
    for spoil, words in MEANING:
        config = copy.deepcopy(good)
        spoil(config)
        yield json.dumps(config, indent=2) + "\n", words
    yield from texts(good)


def make_site():
    site = Site(edges=1, services=False, bird_extra="debug commands 2;")
    edge = site.edges[0]
    edge.add_address(PREFIX.split("/")[0])
    edge.agent.config["services"] = {
        "dns": {"prefixes": {PREFIX: 100}, "checks": {"flag": {"type": "exec", "command": ["/bin/true"]}}}
    }
    return site


def refused(site, *arguments):
    agent = site.edges[0].agent
    program = os.path.join(build_folder(), "redshankd")
    return subprocess.run(
        [program, "-c", agent.conf, *arguments], capture_output=True, text=True, timeout=20, check=False
    )


def expect_words(text, where, words):
    for word in (where, *words):
        check(word in text, f"the refusal holds {word!r}", text[:2000])
    check(len(text) < 2000, "the refusal is short", len(text))


def test_check_and_start_refuse(site):
    """--check and a start refuse each, with file, path, value and what is allowed."""
    agent = site.edges[0].agent
    for text, words in spoilt(agent.config):
        agent.write_config(text)
        for arguments in ("--check",), ("--foreground",):
            run = refused(site, *arguments)
            check(run.returncode == 1, "exit status 1", run.returncode, words)
            check(run.stdout == "", "nothing on stdout", run.stdout)
            check(run.stderr.count("error: ") == 1, "one error", run.stderr[:2000])
            expect_words(run.stderr, agent.conf, words)


def test_right_values_pass(site):
    """What only looks wrong passes: a large community of 32 bits, "10s", a timeout as long as the interval."""
    agent = site.edges[0].agent
    config = copy.deepcopy(agent.config)
    prefixes({PREFIX: {"large_communities": ["65551:1:2"]}})(config)
    timing(interval="10s", timeout="10s")(config)
    agent.write_config(json.dumps(config))
    run = refused(site, "--check")
    check(run.returncode == 0 and "error:" not in run.stderr and "warning:" not in run.stderr, "accepted", run.stderr)
    agent.write_config(run.stdout)
    check(refused(site, "--check").stdout == run.stdout, "printed again, it is the same", run.stdout)


def test_reload_keeps_what_runs(site):
    """A reload of each says the same, keeps what runs, and tells BIRD nothing."""
    agent = site.edges[0].agent
    agent.start()
    site.wait_announced(PREFIX, "edge1")
    before = agent.wait_status(lambda s: s["bird"]["settled"], what="settled")
    with open(site.edges[0].bird.log, encoding="utf-8") as f:
        told = len([line for line in f if "CLI: " in line and "CLI: show" not in line])
    for text, words in spoilt(agent.config):
        mark = len(agent.text())
        agent.write_config(text)
        agent.send_signal(1)
        agent.wait_log("what ran keeps running", after=mark)
        expect_words(agent.text()[mark:], agent.conf, words)
    after = agent.status()
    check(list(after["services"]["dns"]["prefixes"]) == [PREFIX], "the prefix is configured", after)
    check(after["services"]["dns"]["prefixes"][PREFIX]["since"] == before["services"]["dns"]["prefixes"][PREFIX]["since"],
          "nothing changed since", before, after)
    check("edge1" in site.routes(PREFIX), "still announced", site.routes(PREFIX))
    with open(site.edges[0].bird.log, encoding="utf-8") as f:
        now = [line for line in f if "CLI: " in line and "CLI: show" not in line]
    changing = [line for line in now[told:] if "configure status" not in line]
    check(not changing, "BIRD was told nothing", changing)


main(make_site)
