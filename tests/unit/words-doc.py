#!/usr/bin/python3
"""Words that the agent says for a state, a reason or an answer, wherever somebody looks one up: each of the code
stands in the manual and has its sentence in redshankctl, and none stands there that the code does not know.
Commands, metrics, alerts and files that a page names are there, too.

usage: words-doc.py ROOT
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1])
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TOLD = [*PAGES, ROOT / "docs/examples/prometheus/redshank.rules.yml", ROOT / "systemd/package/redshank.catalog",
        *sorted((ROOT / "agent").rglob("*.c"))]
problems = []


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def part(path, begin, end):
    """The text between two others."""
    text = read(path)
    if begin not in text:
        problems.append(f"{path}: no \"{begin}\" in it")
        return ""
    return text.partition(begin)[2].partition(end)[0]


def said(path, begin, pattern=r'"([\w-]+)"', end="\n}\n"):
    """Words of a function or a table of the code."""
    return set(re.findall(pattern, part(path, begin, end)))


def told(path, begin, end="\n", column=None):
    """Words in backticks: of a row that begins so, or the first cells of the rows up to `end`."""
    text = part(path, begin, end)
    if column is not None:
        text = "\n".join(row.split(" | ")[column] for row in text.splitlines() if row.count(" | ") > column)
    return set(re.findall(r"`(\w[\w-]*)`", text))


def rows(path, begin, column=0):
    return told(path, begin, "\n\n", column)


# What: the code's words, without those that are never shown; then each place that has to have them, exactly
# (`==`) or among others (`<=`).
FAMILIES = {
    "the rule that decided": (
        said("agent/core/prefix.c", "prefix_reason_name(", r'return "(\w+)"'), (
            ("redshankctl(1)", "==", rows("docs/redshankctl.1.md", "| | reason | |\n", 1)),
            ("status.md", "==", told("docs/status.md", "| `....reason` | the rule")),
            ("metrics.md", "<=", told("docs/metrics.md", "| `redshank_prefix_reason` |")),
            ("explain", "<=", said("agent/ctl/explain_say.c", "static void say_rule("))),
    ),
    "what comes next": (
        said("agent/status/explain.c", "static void put_next_step(", r'(?:put_next|open_next|put_next_word)\(d, "(\w+)"',
             "/* ---- BIRD ---- */"), (
                 ("status.md", "==", rows("docs/status.md", "| `what` | |\n")),
                 ("explain", "<=", said("agent/ctl/explain_say.c", "static void say_next_step(") | {"check"})),
    ),
    "why something is shed or not": (
        said("agent/core/shed_words.c", "shed_why_names[", end="};") - {"new"}, (
            ("shedding.md", "==", rows("docs/shedding.md", "| word | meaning |\n")),
            ("explain", "==", said("agent/ctl/shed_say.c", "} rows[] = {", r'\{"(\w+)"', "};"))),
    ),
    "why a promise is refused": (
        said("agent/core/shed_words.c", "shed_refusal_names[", end="};") - {"granted"}, (
            ("shedding.md", "==", rows("docs/shedding.md", "| refused | why the neighbour does not promise |\n")),
            ("explain", "==", said("agent/ctl/shed_say.c", "} refusals[] = {", r'\{"(\w+)"', "};"))),
    ),
    "states of repair": (
        said("agent/core/repair.c", "repair_state_name(", r'return "(\w+)"'), (
            ("repair.md", "==", rows("docs/repair.md", "| `state` | |\n")),
            ("metrics.md", "<=", told("docs/metrics.md", "| `redshank_service_repair_state` |")),
            ("explain", "==", said("agent/ctl/repair_say.c", "} rows[] = {", r'\{"(\w+)"', "};"))),
    ),
    "what came of a restart": (
        said("agent/core/repair.c", "repair_result_name(", r'return "(\w+)"'), (
            ("repair.md", "<=", told("docs/repair.md", "What came of an attempt", "\n\n")),
            ("metrics.md", "<=", told("docs/metrics.md", "| `redshank_service_restarts_total` |"))),
    ),
    "states of a managed address": (
        said("agent/core/managed.c", "managed_state_name(", r'return "(\w+)"') - {"handed"}, (
            ("status.md", "==", told("docs/status.md", "| `....address.state` |")),
            ("explain", "==", said("agent/ctl/address_say.c", "} rows[] = {", r'\{"(\w+)"', "};"))),
    ),
    "why BIRD is away": (
        said("agent/bird/loss.c", "loss_name(", r'return "(\w+)"'), (
            ("status.md", "<=", told("docs/status.md", "| `bird.reason` |")),
            ("metrics.md", "<=", told("docs/metrics.md", "| `redshank_bird_connections_lost_total` |"))),
    ),
    "warnings about bird.conf": (
        said("agent/bird/advise_judge.c", "#include", r'judge_find\(v, "(\w+)"', "\f"), (
            ("bird-beside.md", "==", rows("docs/bird-beside.md", "| code | what is so |")),),
    ),
    "variables of hooks": (
        said("agent/hooks.c", "entry_add(", r'entry_add\(e, "(REDSHANK_\w+)"', "\f")
        | said("probes/child.c", "#define MARK", r'"(REDSHANK_\w+)="', "\n")
        | said("probes/child.c", "static", r'"([A-Z]+)=[^"]*",', "\f"), (
            ("hooks.md", "==", rows("docs/hooks.md", "| variable | |\n")),),
    ),
    "commands": (
        said("agent/ctl/command.c", "struct command commands[] = {", r'\{"([\w-]+)"', "};"), (
            ("redshankctl(1)", "==", set(re.findall(r"^`([\w-]+)[^\n]*`(?=\n:)",
                                                    part("docs/redshankctl.1.md", "## Commands\n", "\n## "), re.M))),),
    ),
}


def check_families():
    for what, (words, places) in FAMILIES.items():
        if len(words) < 5:
            problems.append(f"{what}: only {len(words)} words were found in the code")
        for where, how, there in places:
            problems.extend(f"{where}: {word} is missing ({what})" for word in sorted(words - there))
            if how == "==":
                problems.extend(f"{where}: {word} is none ({what})" for word in sorted(there - words))
    return sum(len(words) for words, _ in FAMILIES.values())


def check_commands():
    """Of redshankctl, wherever a person is told to run one: in backticks, in a runbook, in the code's texts."""
    commands = FAMILIES["commands"][0]
    n = 0
    for path in TOLD:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".c":
            text = "\n".join(re.findall(r'"(?:[^"\\\n]|\\.)*"', text))
        for found in re.finditer(r"\bredshankctl(?: --(?:json|plugin|socket PATH))* ([a-z][\w-]*)", text):
            line = text[text.rfind("\n", 0, found.start()) + 1: found.end()]
            if path.suffix in (".md", ".catalog") and line.count("`") % 2 == 0 and not line.startswith("    "):
                continue  # prose
            n += 1
            if found[1] not in commands:
                problems.append(f"{path.relative_to(ROOT)}: no such command: {found[0]}")
    return n


def check_names():
    """Metrics, and paths of this tree, that the pages name in backticks; testing.md names all of tests/."""
    metrics = set(re.findall(r"^\| `(redshank_\w+)` \|", read("docs/metrics.md"), re.M))
    in_bird = set(re.findall(r"\bredshank_\w+", read("bird-templates/redshank.conf")))
    for path in PAGES:
        for name in re.findall(r"`([^`\n]+)`", path.read_text(encoding="utf-8")):
            for metric in re.findall(r"\bredshank_\w*\w\b(?!\*)", name):
                if metric not in metrics | in_bird:
                    problems.append(f"{path.name}: no such metric: {metric}")
            if re.fullmatch(r"(?:agent|probes|tests|docs|systemd|bird-templates)/[\w./*-]+", name):
                if not any(ROOT.glob(name.rstrip("/"))):
                    problems.append(f"{path.name}: no such file: {name}")
    for path in TOLD:
        for page in re.findall(r"\bdocs/([\w-]+(?:\.\w+)*\.md)\b", path.read_text(encoding="utf-8")):
            if page != "NAME.md" and not (ROOT / "docs" / page).exists():
                problems.append(f"{path.relative_to(ROOT)}: no such page: docs/{page}")
    for path in sorted((ROOT / "tests").iterdir()):
        if path.name not in ("CMakeLists.txt", "__pycache__") and f"`tests/{path.name}" not in read("docs/testing.md"):
            problems.append(f"testing.md: tests/{path.name} is missing")


def check_alerts():
    found = re.findall(r"- alert: (\w+)\n(?: +(?:expr|for): .*\n)+ +labels: \{severity: (\w+)\}",
                       read("docs/examples/prometheus/redshank.rules.yml"))
    for severity in ("critical", "warning", "info"):
        there = set(re.findall(r"`(Redshank\w+)`", part("docs/monitoring.md", f"\n| {severity}", "\n")))
        rules = {name for name, its in found if its == severity}
        problems.extend(f"monitoring.md: {name} is missing ({severity})" for name in sorted(rules - there))
        problems.extend(f"monitoring.md: {name} is no alert ({severity})" for name in sorted(there - rules))
    return len(found)


words, commands, alerts = check_families(), check_commands(), check_alerts()
check_names()
if commands < 40 or alerts < 30:
    problems.append(f"only {commands} commands and {alerts} alerts were found")
print("\n".join([*problems, f"{words} words, {commands} commands, {alerts} alerts, {len(problems)} problems"]))
sys.exit(1 if problems else 0)
