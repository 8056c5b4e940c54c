#!/usr/bin/python3
"""The kinds of events stand in three places: the code, the journal's catalog, the page for readers.

Each has every kind of the others; each kind is said somewhere, at the levels that the page has and no
others; what a catalog entry quotes is a field that the agent sends; and journalctl takes the file.

usage: events-catalog.py ROOT
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(sys.argv[1])
CATALOG = ROOT / "systemd" / "package" / "redshank.catalog"

problems = []


def read(*path):
    return ROOT.joinpath(*path).read_text(encoding="utf-8")


def same(what, got, wanted):
    problems.extend(f"{what}: {name} is missing" for name in sorted(set(wanted) - set(got)))
    problems.extend(f"{what}: {name} is no kind of event" for name in sorted(set(got) - set(wanted)))
    problems.extend(f"{what}: {name} stands twice" for name in sorted({n for n in got if got.count(n) > 1}))


def entries(text):
    """(id, header lines, text) of each entry."""
    for part in re.split(r"^-- ", text, flags=re.M)[1:]:
        head, _, body = part.partition("\n\n")
        identity, *headers = head.splitlines()
        yield identity, headers, body.strip()


LEVELS = {"ERR": "error", "WARNING": "warning", "NOTICE": "notice", "INFO": "info"}  # debug is no event


def check_levels(source, page, kinds):
    """Levels and kinds that stand before the text in a call; of a kind that a variable holds nothing is known."""
    said = {}
    for call in re.findall(r'\b(?:event_)?say\((.*?)(?:"|;)', source, re.S):
        for kind in re.findall(r"\bEVENT_(\w+)", call):
            said.setdefault(kind, set()).update(re.findall(r"\bLOG_(\w+)", call) or ["?"])
    documented = dict(re.findall(r"^\| `([\w-]+)` \| ([a-z, ]+) \|", page, re.M))
    for name, word, _ in kinds:
        wanted = set(documented.get(word, "").split(", "))
        levels = {LEVELS[level] for level in said.get(name, ()) if level in LEVELS}
        problems.extend(f"docs/status.md: {word} is said as {level}, too" for level in sorted(levels - wanted))
        if levels and "?" not in said[name]:
            problems.extend(f"docs/status.md: {word} is never said as {level}" for level in sorted(wanted - levels))


def main():
    kinds = re.findall(r'X\((\w+), "([\w-]+)", "([0-9a-f]+)"\)', read("agent", "events", "kinds.h"))
    same("message ids", [identity for _, _, identity in kinds], {identity for _, _, identity in kinds})
    catalog = list(entries(CATALOG.read_text(encoding="utf-8")))
    same(CATALOG.name, [identity for identity, _, _ in catalog], [identity for _, _, identity in kinds])
    page = re.search(r"^The kinds:\n\n(.*?)\n\n", read("docs", "status.md"), re.M | re.S)
    same("docs/status.md", re.findall(r"^\| `([\w-]+)` \| \w", page[1], re.M), [word for _, word, _ in kinds])

    fields = set(re.findall(r'"((?:REDSHANK|MESSAGE)_\w+)"', read("agent", "events", "events.c")))
    manual = set(re.findall(r"`((?:REDSHANK|MESSAGE)_\w+)`", read("docs", "redshankd.8.md")))
    same("redshankd(8)", sorted(manual), fields)
    for identity, headers, body in catalog:
        if not re.fullmatch(r"[0-9a-f]{32}", identity):
            problems.append(f"{identity}: no id of 32 digits")
        names = [line.split(":")[0] for line in headers]
        if names[:2] != ["Subject", "Defined-By"] or "Documentation" not in names or not body:
            problems.append(f"{identity}: expected Subject, Defined-By, Documentation and a text, got {names}")
        quoted = set(re.findall(r"@(\w+)@", "\n".join([*headers, body])))
        problems.extend(f"{identity}: quotes @{name}@, which nothing sends" for name in sorted(quoted - fields))

    said = "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "agent").rglob("*.c")))
    problems.extend(f"EVENT_{name} is said nowhere" for name, _, _ in kinds if not re.search(rf"\bEVENT_{name}\b", said))

    check_levels(said, page[1], kinds)

    if shutil.which("journalctl"):
        with tempfile.TemporaryDirectory() as root:
            folder = pathlib.Path(root, "usr", "lib", "systemd", "catalog")
            folder.mkdir(parents=True)
            pathlib.Path(root, "var", "lib", "systemd", "catalog").mkdir(parents=True)
            shutil.copy(CATALOG, folder)
            done = subprocess.run(["journalctl", f"--root={root}", "--update-catalog"],
                                  capture_output=True, text=True, check=False)
            if done.returncode or done.stderr.strip():
                problems.append(f"journalctl --update-catalog: {done.returncode} {done.stderr.strip()}")
            done = subprocess.run(["journalctl", f"--root={root}", "--list-catalog"],
                                  capture_output=True, text=True, check=False)
            same("journalctl --list-catalog", re.findall(r"^([0-9a-f]{32}) ", done.stdout, re.M),
                 [identity for _, _, identity in kinds])
    print("\n".join(problems))
    print(f"{len(kinds)} kinds of events, {len(problems)} problems")
    return 1 if problems or len(kinds) < 30 else 0


sys.exit(main())
