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
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
WHOLE = ("systemd/security.py", "systemd/reboot.py", "netns/discreet.py")  # all their tests are claims
NO_CLAIMS = ("test_start", "test_before", "test_undrained", "test_reasons", "test_crash")

problems = []


def functions(path):
    text = (ROOT / "tests" / path).read_text(encoding="utf-8")
    pattern = r"^START_TEST \((\w+)\)" if path.endswith(".c") else r"^def (test_\w+)\("
    return re.findall(pattern, text, re.M)


def check_tests():
    named = re.findall(r"\b((?:unit|netns|systemd|scenario|fault|cases)/[\w.-]+\.(?:py|c)):(\w+)", PAGE)
    for path, name in named:
        if not (ROOT / "tests" / path).exists():
            problems.append(f"{path}: no such test")
        elif name not in functions(path):
            problems.append(f"{path}: {name} is none of its tests")
    for path in WHOLE:
        for name in functions(path):
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
    """The last cell of each row of a table "held by" names a test."""
    held = False
    for line in PAGE.splitlines():
        if line.startswith("|") and line.rstrip(" |").endswith("held by"):
            held = True
        elif not line.startswith("|"):
            held = False
        elif held and not line.startswith("| ---") and not re.search(r"\.(?:py|c):\w+", line.split("|")[-2]):
            problems.append(f"no test holds: {line[:80]}")


tests, bounds = check_tests(), check_bounds()
check_rows()
if tests < 40 or bounds < 20:
    problems.append(f"only {tests} tests and {bounds} numbers were found in the page")
for problem in problems:
    print(problem)
print(f"{tests} tests, {bounds} numbers")
sys.exit(1 if problems else 0)
