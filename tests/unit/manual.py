#!/usr/bin/python3
"""The manual pages: each renders without a warning, mandb finds its name, and nothing that stands
in a table of its Markdown got lost. What a program's --help lists is in its page, and fits a terminal.

usage: manual.py DOCS BUILT
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

PAGES = ("redshankd.8", "redshankctl.1", "redshank.json.5")
DOCS, BUILT = map(pathlib.Path, sys.argv[1:])
ENVIRONMENT = {**os.environ, "LC_ALL": "C.UTF-8", "MAN_KEEP_FORMATTING": ""}
problems = []


def render(page, width):
    done = subprocess.run(["man", "--warnings", "-l", BUILT / page], capture_output=True, text=True, check=False,
                          env={**ENVIRONMENT, "MANWIDTH": str(width)})
    if done.returncode != 0 or done.stderr:
        problems.append(f"{page} at {width} columns: {done.stderr.strip()}")
    return done.stdout


def squeezed(text):
    """Without what a renderer may change: white space, markup, quotation marks, hyphens, capitals."""
    return re.sub(r"[\s*`\\\"'“”‘’‐−-]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text)).lower()


def check_page(page):
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    render(page, 80)
    rendered = squeezed(render(page, 1000))
    # A row is what follows a rule; the header above one is not shown as such.
    rows = re.findall(r"^\|(?! ?-)(?!.*\n\| ?-).*", text, re.M)
    headings = re.findall(r"^##+ (.*)$", text, re.M)
    wanted = headings + [cell for row in rows for cell in re.split(r"(?<!\\)\|", row) if cell.strip()]
    for piece in wanted:
        if squeezed(piece).rstrip(".") not in rendered:
            problems.append(f"{page}: lost: {piece.strip()}")
    name = page.rsplit(".", 1)[0]
    about = re.search(rf"^{re.escape(name)} - (.*)|^# \S+: (.*)", text, re.M)
    whatis = subprocess.run(["lexgrog", BUILT / page], capture_output=True, text=True, check=False).stdout
    if f'"{name} - {about[1] or about[2]}"' not in whatis.splitlines()[0]:
        problems.append(f"{page}: mandb finds no name in it: {whatis}")
    if len(wanted) < 5:
        problems.append(f"{page}: hardly anything to look for: {wanted}")


def check_help(page):
    name = page.rsplit(".", 1)[0]
    text = subprocess.run([BUILT.parent / name, "--help"], capture_output=True, text=True, check=True).stdout
    manual = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    options = set(re.findall(r"(?<![\w-])--[a-z]+", text))
    problems.extend(f"{page}: no `{option}`" for option in sorted(options) if not re.search(rf"`[^`\n]*{option}\b", manual))
    problems.extend(f"{name} --help: wider than 80 columns: {line}" for line in text.splitlines() if len(line) > 80)
    if len(options) < 5:
        problems.append(f"{name} --help: hardly any options: {text}")


missing = [program for program in ("man", "lexgrog", "groff") if not shutil.which(program)]
if missing:
    print(f"skip - not installed: {', '.join(missing)}")
    sys.exit(77)
for name in PAGES:
    check_page(name)
for name in PAGES[:2]:
    check_help(name)
print("\n".join(problems) or f"{len(PAGES)} pages, 0 problems")
sys.exit(1 if problems else 0)
