"""Tests as the pages of docs/ name them: a claim without a test is a wish.

A test is PATH:NAME, PATH under tests/ and NAME a function there that runs; or, in backticks, the name under
which ctest has a whole program (`netns-story`; `case-A23` is enough). A row of a table whose last column is
headed "held by" or "test" names one at least.
"""

import re

PLACED = re.compile(r"\b((?:unit|netns|systemd|scenario|fault|cases)/[\w.-]+\.(?:py|c)):(\w+)")
WHOLE = re.compile(r"`((?:unit|netns|systemd|scenario|fault|case|sim|config|property|package)-[\w-]+)`")
HEADS = ("held by", "test")


def functions(root, path):
    """The tests of a program: those that it runs."""
    text = (root / "tests" / path).read_text(encoding="utf-8")
    if not path.endswith(".c"):
        return re.findall(r"^def (test_\w+)\(", text, re.M)
    run = set(re.findall(r"\btcase_add_\w*test\w*\(\s*\w+,\s*(\w+)", text))
    return [name for name in re.findall(r"^START_TEST \((\w+)\)", text, re.M) if name in run]


def placed(text):
    """(path, name) of each PATH:NAME."""
    return PLACED.findall(text)


def missing(root, text, registered=()):
    """What is wrong with the tests that `text` names; `registered`: the names that ctest has."""
    for path, name in placed(text):
        if not (root / "tests" / path).exists():
            yield f"{path}: no such test"
        elif name not in functions(root, path):
            yield f"{path}: {name} is none of its tests"
    for name in WHOLE.findall(text):
        if not any(known == name or known.startswith(name + "-") for known in registered):
            yield f"{name}: ctest has no such test"


def rows(page):
    """The cells of each row of the tables whose last column is for tests."""
    held = False
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        if not line.startswith("|"):
            held = False
        elif cells[-1] in HEADS:
            held = True
        elif held and not line.startswith("| ---"):
            yield cells
