#!/usr/bin/python3
"""docs/security.md against the tree: each test that it names is there, and so is each number.

A test is PATH:NAME, PATH under tests/; a number is a row of its table "Bounds", with the constant and the file
where it stands. Every claim of a table has a test, and the tests that were written for this page are all named.

usage: security-doc.py ROOT
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(ROOT / "tests"))
from lib import claims  # noqa: E402

PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
WHOLE = ("systemd/security.py", "systemd/reboot.py", "netns/discreet.py")  # all their tests are claims
NO_CLAIMS = ("test_start", "test_before", "test_undrained", "test_reasons", "test_crash")

problems = []


def check_tests():
    named = claims.placed(PAGE)
    problems.extend(claims.missing(ROOT, PAGE))
    for path in WHOLE:
        for name in claims.functions(ROOT, path):
            if name not in NO_CLAIMS and (path, name) not in named:
                problems.append(f"{path}: {name} is not named in docs/security.md")
    return len(named)


def value_of(constant, path):
    """What #define says, or None: numbers, with their suffixes, parentheses and arithmetic."""
    text = (ROOT / path).read_text(encoding="utf-8") if (ROOT / path).exists() else ""
    found = re.search(rf"^#define {constant}\s+([^/\n]+)", text, re.M)
    plain = re.sub(r"(?<=\d)[UL]+\b", "", found[1]).strip() if found else ""
    return eval(plain) if plain and re.fullmatch(r"[\d\s()*+<-]+", plain) else None


def check_bounds():
    rows = re.findall(r"^\| [^|]+ \| (\d+) \| `(\w+)` ([\w./-]+) \|$", PAGE, re.M)
    for number, constant, path in rows:
        if value_of(constant, path) != int(number):
            problems.append(f"{constant} of {path} is {value_of(constant, path)}, the page says {number}")
    return len(rows)


def check_rows():
    for cells in claims.rows(PAGE):
        if not claims.placed(cells[-1]):
            problems.append(f"no test holds: {' | '.join(cells)[:80]}")


tests, bounds = check_tests(), check_bounds()
check_rows()
if tests < 40 or bounds < 20:
    problems.append(f"only {tests} tests and {bounds} numbers were found in the page")
for problem in problems:
    print(problem)
print(f"{tests} tests, {bounds} numbers")
sys.exit(1 if problems else 0)
