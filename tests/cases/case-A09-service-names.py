"""Names of services are not BIRD symbols: each accepted one gives valid, unique, stable protocols."""

import itertools
import json
import os
import subprocess
import tempfile

from lib import birds, netns
from lib.agentctl import build_folder
from lib.case import check, eventually, main
from lib.fragments import fragment, parse, programs
from lib.site import TEMPLATE

# Keywords, what a lexer takes for a number or a byte string, and names that fold to one symbol.
SERVICES = ["dns", "dns-v4", "dns_v4", "DNS", "s", "export", "4dns", "as", "d41d8cd98f00b204e9800998ecf8427e",
            "0", "redshank", "a" * 32, "b" * 31 + "-"]
REFUSED = ["a b", 'x"; quit', "caf\u00e9", "a" * 80, "a" * 33, "", "-a", "a/b", "a:b", "a*", "a\n"]


def prefixes(n):
    """Of every shape; each service has its own."""
    return [f"192.0.2.{n}/32=100,0,last", f"198.18.{n}.0/24=100", f"2001:db8::{n:x}/128=100,0,last",
            f"2001:db8:1111:2222:3333:4444:5555:{n + 0x1000:x}/128=100,0,last", f"2001:db8:{n:x}::/48=100",
            f"::{n + 1:x}/128=100"]


def everything(wanted="announce"):
    return {s: fragment(s, *prefixes(n), wanted=wanted) for n, s in enumerate(SERVICES)}


def names(text):
    return [line.split("'")[1] for line in text.splitlines() if line.startswith("protocol static ")]


def test_what_bird_takes():
    """BIRD takes every name, all services in one configuration; it refuses what names.h says it does."""
    for program in programs():
        for wanted in ("announce", "demote", "withdraw"):
            said = parse("".join(everything(wanted).values()), program)
            check(said == "", f"{program} takes all fragments, {wanted}", said)
        for bad in ("redshank:dns:192.0.2.0/24", "redshank:dns:" + "a" * 52, "redshank:dns:a b"):
            check(parse(f"protocol static '{bad}' {{ ipv4 {{ table redshank4; }}; }}\n", program), "refused", bad)
    check(parse("protocol static redshank:dns:x { ipv4 { table redshank4; }; }\n"), "refused without quotes")


def test_unique_and_stable():
    """No two protocols share a name, none is longer than 64, and one does not change with the others."""
    found = everything()
    every = list(itertools.chain.from_iterable(names(text) for text in found.values()))
    check(len(every) == len(set(every)) == 9 * len(SERVICES), "unique", len(every), len(set(every)))
    check(max(map(len, every)) <= 64, "at most 64 characters", max(every, key=len))
    for service, text in found.items():
        check(all(n.startswith(f"redshank:{service}:") for n in names(text)), "the service's own prefix", service)
        n = SERVICES.index(service)
        alone = [names(fragment(service, p))[0] for p in prefixes(n)]
        check([x for x in names(text) if not x.endswith(":last")] == alone, "stable", alone)


def test_pattern():
    """`disable "redshank:SERVICE:*"` takes all of one service and nothing of any other."""
    lab = netns.Lab()
    try:
        host = lab.host("edge")
        bird = birds.Bird(host, f'router id 198.51.100.1;\nlog "{host.path("bird.log")}" all;\ninclude "{TEMPLATE}";\n'
                          + "".join(everything().values()))
        bird.start()
        for service, text in everything().items():
            reply = bird.birdc(f'disable "redshank:{service}:*"')
            disabled = sorted(line.rsplit(":", 1)[0] for code, line in reply.lines if code == "0009")
            check(reply.code == "0000" and disabled == sorted(names(text)), service, reply.code, disabled)
            up = {name for name, p in bird.protocols().items() if p[2] == "up" and name.startswith("redshank:")}
            eventually(lambda s=service: not any(n.startswith(f"redshank:{s}:") for n in up), 2, "down")
            bird.birdc(f'enable "redshank:{service}:*"')
    finally:
        lab.close()


def test_refused():
    """What could end a statement or is no name is refused at load, and shown."""
    with tempfile.TemporaryDirectory(prefix="redshank-A09-") as folder:
        path = os.path.join(folder, "redshank.json")
        for name in REFUSED + ["dns"]:
            with open(path, "w", encoding="utf-8") as f:
                json.dump({"node": "edge1", "services": {name: {"prefixes": {"192.0.2.53/32": 100}}}}, f)
            done = subprocess.run([os.path.join(build_folder(), "redshankd"), "-c", path, "--check"],
                                  capture_output=True, text=True, timeout=20, check=False)
            if name == "dns":
                check(done.returncode == 0, "a good name is taken", done.stderr)
            else:
                check(done.returncode == 1, f"{name!r} is refused", done.returncode, done.stderr)
                shown = json.dumps(name).replace("\\u00e9", "\\u00E9")[:40].rstrip('"')
                check(f"got {shown}" in done.stderr, f"{name!r} is shown", done.stderr)
                check("expected a name of 1 to 32" in done.stderr, "what was expected", done.stderr)


main()
