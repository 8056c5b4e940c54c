"""The end of a test run: what failed, what was skipped and why, and the count.

`summary.py JUNIT SKIPS` reads what ctest wrote and tests/skips; exit status 1 when a test failed,
did not run, or was skipped without an explanation there.
"""

import re
import sys
import xml.etree.ElementTree as ElementTree


def explained(path):
    """{name: reason} of tests/skips; a line is NAME REASON, # begins a comment."""
    found = {}
    with open(path, encoding="utf-8") as f:
        for line in f:
            name, _, reason = line.split("#")[0].strip().partition(" ")
            if name:
                found[name] = reason.strip()
    return found


def said(case):
    """The reason that the skipped test itself gave."""
    output = case.findtext("system-out") or ""
    lines = re.findall(r"^skip - (.*)$", output, re.MULTILINE)
    return lines[-1] if lines else "it did not say why"


def message(case):
    """Why ctest says that it did not run."""
    skipped = case.find("skipped")
    return "" if skipped is None else skipped.get("message") or ""


def main():
    junit, skips = sys.argv[1:3]
    reasons = explained(skips)
    try:
        cases = ElementTree.parse(junit).getroot().findall("testcase")
    except (OSError, ElementTree.ParseError) as e:
        print(f"no result of ctest: {e}")
        return 1
    failed = [c.get("name") for c in cases if c.get("status") == "fail"]
    unrun = [c for c in cases if c.get("status") not in ("run", "fail")]
    # ctest gives a test whose program is missing the same status as one that skipped itself.
    skipped = [c for c in unrun if "SKIP_RETURN_CODE" in message(c)]
    failed += [c.get("name") for c in unrun if c not in skipped]
    unexplained = [c for c in skipped if not reasons.get(c.get("name"))]

    for name in failed:
        print(f"FAILED   {name}")
    for case in skipped:
        name = case.get("name")
        print(f"SKIPPED  {name}: {said(case)}")
        if reasons.get(name):
            print(f"         explained in tests/skips: {reasons[name]}")
        else:
            print("         NOT explained in tests/skips: counts as a failure")
    print(f"{len(cases) - len(failed) - len(skipped)} passed, {len(failed)} failed, {len(skipped)} skipped")
    return 1 if failed or unexplained or not cases else 0


sys.exit(main())
