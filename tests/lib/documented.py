"""A document of the status socket beside docs/status.md: every key of it is told there, and every key that
is told is there.

A page's row is `PATH` or several of them, and what they are; a path that begins with dots is one more of
the object that the row before is about. Keys of small objects are told in the row of the object, in
backticks; "the keys of `PATH`" lends those of another row.
"""

import os
import re

from lib.agentctl import ROOT

# Objects whose keys are names: the word that the page has for them.
NAMES = (
    (r"^services\.[^/]*?(?=\.(health|level|repair|prefixes|checks|require|on_stop|fragment)\b|$)", "services.NAME"),
    (r"\.prefixes\.[0-9a-f.:]+/\d+", ".prefixes.PREFIX"),
    (r"\.checks\.[\w-]+", ".checks.NAME"),
    (r"^load\.signals\.[\w-]+", "load.signals.NAME"),
    (r"^neighbours\.members\.[\w-]+", "neighbours.members.NAME"),
    (r"^neighbours\.refused\.\w+", "neighbours.refused.REASON"),
    (r"^sessions\.\w+", "sessions.NAME"),
    (r"\.protocols\.redshank:[^ ]*?(?=\.(wanted|state|loaded|weight|last_resort)$|$)", ".protocols.NAME"),
)


class Page:
    """What the tables of the given headings of docs/status.md tell."""

    def __init__(self, *headings):
        with open(os.path.join(ROOT, "docs/status.md"), encoding="utf-8") as f:
            parts = re.split(r"^## (.*)$", f.read(), flags=re.M)
        self.rows = {}
        for heading in headings:
            self._read(parts[parts.index(heading) + 1])

    def _read(self, text):
        base = path = ""
        for line in text.splitlines():
            cells = line.strip("| ").split(" | ", 1)
            if not line.startswith("| `") or len(cells) != 2:
                continue
            words = re.findall(r"`([\w.]+)`", cells[0])
            for word in words:
                if word.startswith("...."):
                    path = base + word[3:]
                elif word.startswith("."):
                    path = path.rpartition(".")[0] + word
                elif word == words[0] or "." in word:
                    path, base = word, base_of(word)
                else:  # `A.B.NAME.type`, `interval_ms`, ...
                    path = ".".join(part for part in (path.rpartition(".")[0], word) if part)
                self.rows.setdefault(path, cells[1])
            if "also of each prefix and each check" in cells[0]:
                for item in ("prefixes.PREFIX", "checks.NAME"):
                    self.rows[f"services.NAME.{item}.level"] = cells[1]

    def tells(self, path, depth=0):
        if path in self.rows or any(row.startswith(path + ".") for row in self.rows):
            return True
        parent, _, key = path.rpartition(".")
        while parent:
            told = self.rows.get(parent, "")
            if re.search(rf"`{re.escape(path[len(parent) + 1:])}`|`{re.escape(key)}(\.\w+)?`", told):
                return True
            for other in re.findall(r"the keys (?:that|of) `([.\w]+)`", told):
                other = other if not other.startswith("....") else "services.NAME.prefixes.PREFIX" + other[3:]
                if depth < 3 and self.tells(other + "." + key, depth + 1):
                    return True
            parent = parent.rpartition(".")[0]
        return False


def base_of(path):
    found = re.match(r"services\.NAME\.(prefixes\.PREFIX|checks\.NAME)", path)
    return found.group(0) if found else path.rpartition(".")[0]


def paths(value, path=""):
    """(path, is it an object) of everything in it, with names put as the page puts them; a list's are its items'."""
    if isinstance(value, list):
        for item in value:
            yield from paths(item, path)
    if not isinstance(value, dict):
        return
    for key, item in value.items():
        whole = f"{path}.{key}" if path else key
        for pattern, name in NAMES:
            whole = re.sub(pattern, name, whole)
        yield whole, isinstance(item, dict)
        yield from paths(item, whole)


def untold(document, *headings):
    """Keys of the document that the tables under these headings do not tell."""
    page = Page(*headings)
    return sorted({p for p, _ in paths(document) if not p.endswith((".NAME", ".PREFIX", ".REASON")) and not page.tells(p)})


def missing(document, *headings):
    """Keys that have a row there and are not in the document, although the object that they are of is. What is
    only there "where" something is configured may be."""
    there = dict(paths(document))
    objects = {path for path, is_object in there.items() if is_object} | {""}
    rows = Page(*headings).rows
    return sorted(
        row for row, told in rows.items()
        if row not in there and row.rpartition(".")[0] in objects and not row.endswith("NAME") and not told.startswith("where ")
    )
