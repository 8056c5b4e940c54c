#!/usr/bin/python3
"""Habits of this tree that a compiler does not keep, each with the fault that it has once let in.

  1. A local with a cleanup attribute has an initialiser: a return before it is set would release
     what happens to lie on the stack.
  2. core/ includes nothing of the outside world (core-wall.py reads the symbols; this the headers).
  3. No file of C is longer than 900 lines, and no function than 90.
  4. No words of unfinished work.
  5. The top level holds what it says and nothing else, so that everything of one kind lies in one
     room.
  6. A relative link in a page leads somewhere.
  7. No function of a Python file is defined twice at its top level: the second silently wins.
  8. No two decisions, and no two invariants, have one number.
  9. README.md leads to every page of docs/.
  10. docs/design.md names every file of C in agent/ and probes/, and none that is not there: who looks for something
      begins there.
  11. Chance in the tests' Python comes from lib/chance.py, which has a seed and says it: a red run is red again.
  12. What the tests' faults (faults.txt) exchange in a copy of core stands there once: else the long test of them
      breaks, a while after the source was changed.

usage: style.py ROOT
"""
import fnmatch
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1])
FOLDERS = ("agent", "probes", "tests")
OUTSIDE = re.compile(r'#include <(systemd|curl|libmnl|jansson|microhttpd|ldns|time\.h|stdio\.h|unistd)')
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")
UNSET = re.compile(r"^\s+_cleanup_\w*(\([^)]*\))?_?\s[^=;(]*;")
TOP_LEVEL = {"agent", "probes", "bird-templates", "systemd", "tests", "docs", "build", "CMakeLists.txt",
             "CMakePresets.json", "README.md", "NEWS.md", "LICENSE"}
CHANCE = re.compile(r"^\s*(?:import|from) random\b|(?<![\w.])random\.\w|environ\b.*\bREDSHANK_SEED\b|environ\b.*[\"']SEED\b")
LINES_OF_FILE, LINES_OF_FUNCTION = 900, 90

problems = []


def complain(path, line, text):
    problems.append(f"{path.relative_to(ROOT)}:{line}: {text}")


def sources(*endings):
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in endings and path.is_file():
                yield path, path.read_text(encoding="utf-8").splitlines()


def functions(lines):
    """(first line, number of lines) of each function: from a '{' to a '}' in the first column."""
    start = None
    for number, line in enumerate(lines, 1):
        if line == "{":
            start = number
        elif line == "}" and start:
            yield start, number - start
            start = None


def numbered_once(name, pattern):
    numbers = set()
    for number, line in enumerate((ROOT / name).read_text(encoding="utf-8").splitlines(), 1):
        found = re.match(pattern, line)
        if found and found.group(1) in numbers:
            complain(ROOT / name, number, f"a second {found.group(1)}")
        numbers.update(found.groups() if found else ())


def led_to():
    readme, design = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/design.md"))
    for path in sorted((ROOT / "docs").glob("*.md")):
        if f"](docs/{path.name})" not in readme:
            complain(ROOT / "README.md", 1, f"does not lead to docs/{path.name}")
    named = set(re.findall(r"[\w*]+\.c\b", design))
    files = {path.name: path for folder in ("agent", "probes") for path in sorted((ROOT / folder).rglob("*.c"))}
    for name, path in files.items():
        if not any(fnmatch.fnmatch(name, known) for known in named):
            complain(ROOT / "docs/design.md", 1, f"does not name {path.relative_to(ROOT)}")
    for known in sorted(named):
        if not fnmatch.filter(files, known):
            complain(ROOT / "docs/design.md", 1, f"names {known}, which is not there")


def exchanged():
    sys.path.insert(0, str(ROOT / "tests" / "scenario"))
    from faults import read_faults

    for name in ("tests/scenario/faults.txt", "tests/sim/faults.txt"):
        for fault in read_faults(ROOT / name):
            try:
                fault.apply((ROOT / "agent" / "core" / fault.file).read_text(encoding="utf-8"))
            except (ValueError, OSError) as error:
                complain(ROOT / name, 1, f"{fault.name}: {error}")


def dressed():
    """A configuration reaches apply in agent_apply() alone, which puts on it what is announced."""
    for path in sorted((ROOT / "agent").glob("*.c")):
        text = path.read_text(encoding="utf-8")
        for found in re.finditer(r"\bapply_configure\(", text):
            if not re.search(r"^int agent_apply\([^}]*$", text[: found.start()], re.M):
                complain(path, text.count("\n", 0, found.start()) + 1, "apply_configure() without agent_apply()")


def main():
    n = 0
    for path, lines in sources(".c", ".h"):
        n += 1
        if len(lines) > LINES_OF_FILE:
            complain(path, 1, f"{len(lines)} lines; at most {LINES_OF_FILE}")
        for number, length in functions(lines):
            if length > LINES_OF_FUNCTION:
                complain(path, number, f"a function of {length} lines; at most {LINES_OF_FUNCTION}")
        for number, line in enumerate(lines, 1):
            if UNSET.match(line):
                complain(path, number, "a local with a cleanup attribute and no initialiser")
            if "agent/core" in str(path) and OUTSIDE.match(line):
                complain(path, number, f"core/ includes the outside world: {line}")
    for path, lines in sources(".c", ".h", ".py", ".sh", ".txt"):
        for number, line in enumerate(lines, 1):
            if UNFINISHED.search(line):
                complain(path, number, f"a word of unfinished work: {line.strip()}")
    for path, lines in sources(".py"):
        defined = set()
        for number, line in enumerate(lines, 1):
            found = re.match(r"(?:def|class) (\w+)", line)
            if found and found.group(1) in defined:
                complain(path, number, f"{found.group(1)} is defined a second time")
            defined.update(found.groups() if found else ())
            if CHANCE.search(line) and path.name != "chance.py":
                complain(path, number, f"chance without lib/chance.py: {line.strip()}")
    for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for link in LINK.findall(line):
                if not (path.parent / link).exists():
                    complain(path, number, f"a link that leads nowhere: {link}")
    numbered_once("docs/decisions.md", r"(\d+)\. \*\*")
    numbered_once("docs/invariants.md", r"\| ([A-Z]\d+) \|")
    led_to()
    dressed()
    exchanged()
    for path in ROOT.iterdir():
        if path.name not in TOP_LEVEL and not path.name.startswith("."):
            complain(path, 1, "does not belong at the top level")
    print("\n".join(problems))
    print(f"{n} files of C, {len(problems)} problems")
    return 1 if problems or n < 50 else 0


sys.exit(main())
