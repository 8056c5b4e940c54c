#!/usr/bin/python3
"""docs/faults.md against the tree: each test that it names is there, each fault of the breaking test is named
there, and no other; each of its rows has a test.

usage: faults-doc.py ROOT BUILD
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(ROOT / "tests"))
from lib import claims  # noqa: E402
from lib.faults import FAULTS  # noqa: E402

PAGE = (ROOT / "docs" / "faults.md").read_text(encoding="utf-8")
problems = []


def registered():
    done = subprocess.run(["ctest", "-N", "--test-dir", sys.argv[2]], capture_output=True, text=True, check=True)
    return re.findall(r"^ +Test +#\d+: (\S+)$", done.stdout, re.M)


def nemesis(cell):
    """The faults behind the word nemesis, among which a program of ctest's may stand."""
    behind = cell.partition("nemesis ")[2]
    return [name for name in re.findall(r"`([\w-]+)`", behind) if not claims.WHOLE.fullmatch(f"`{name}`")]


def main():
    rows = list(claims.rows(PAGE))
    named = {name for cells in rows for name in nemesis(cells[-1])}
    programs = registered()
    problems.extend(claims.missing(ROOT, PAGE, programs))
    problems.extend(f"{name}: a test of faults that the page does not name" for name in programs
                    if name.startswith("fault-") and name != "fault-nemesis" and f"`{name}`" not in PAGE)
    problems.extend(f"{name}: no fault of tests/lib/faults.py" for name in sorted(named - set(FAULTS)))
    problems.extend(f"{name}: a fault that the page does not name" for name in sorted(set(FAULTS) - named))
    for cells in rows:
        if not (claims.placed(cells[-1]) or claims.WHOLE.search(cells[-1]) or nemesis(cells[-1])):
            problems.append(f"no test holds: {' | '.join(cells)[:80]}")
    if len(rows) < 30:
        problems.append(f"only {len(rows)} rows were found in the page")
    print("\n".join([*problems, f"{len(rows)} rows, {len(named)} faults"]))
    return 1 if problems else 0


sys.exit(main())
