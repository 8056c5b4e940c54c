#!/usr/bin/python3
"""Makes a manual page of its Markdown file: man.py docs/NAME.SECTION.md VERSION >NAME.SECTION

lowdown(1) does the work. Before it, what reads well in a browser becomes what reads well in a
terminal of 80 columns: each row of a table is an item of its own ("Default: ..."), links are their
text, and sections have the names that mandb(8) looks for; those that are keys stay as they are.
"""

import pathlib
import re
import subprocess
import sys

EXAMPLES = "/usr/share/doc/redshank/examples/"
VOLUMES = {"1": "Commands", "5": "File formats", "8": "Daemons"}
CELL = re.compile(r"(?<!\\)\|")


def cells(line):
    return [cell.strip().replace("\\|", "|") for cell in CELL.split(line.strip().strip("|"))]


def item(header, row):
    """One row as a definition: its first cell is the term, the others say what they are."""
    texts = []
    for name, text in list(zip(header, row))[1:]:
        if not text:
            continue
        if text == "required":
            texts.append("Required.")
            continue
        named = f"{name.capitalize()}: {text}" if name and name != "meaning" else text[0].upper() + text[1:]
        texts.append(named.rstrip(".") + ".")
    return [row[0], ": " + " ".join(texts), ""]


def tables(lines):
    """Yields the lines, with each table as a list of definitions."""
    header = None
    for line in lines:
        if not line.startswith("|"):
            header = None
            yield line
        elif header is None:
            header = cells(line)
            yield ""
        elif not re.fullmatch(r"[| :-]+", line):
            yield from item(header, cells(line))


def links(line):
    line = re.sub(r"\[[^]]*\]\(examples/([^)]*)\)", EXAMPLES + r"\1", line)
    return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", line)


def page(text, name):
    """The Markdown for lowdown: without its title, sections one level up and in capitals."""
    lines = text.splitlines()
    title = re.fullmatch(r"# \S+\(\d\)(?:: (.*))?", lines[0])
    if title[1]:
        lines[:1] = ["## Name", f"{name} - {title[1]}", "", "## Description"]
    else:
        lines[:1] = []
    out = []
    for line in tables(lines):
        heading = re.fullmatch(r"#(#+) (.*)", line)
        if heading:
            is_section = heading[1] == "#" and heading[2][0].isupper()
            line = f"{heading[1]} {heading[2].upper() if is_section else heading[2]}"
        out.append(links(line))
    return "\n".join(out) + "\n"


def main():
    source, version = pathlib.Path(sys.argv[1]), sys.argv[2]
    name, section = source.stem.rsplit(".", 1)
    facts = {"title": name, "section": section, "date": " ", "source": f"Redshank {version}", "volume": VOLUMES[section]}
    argv = ["lowdown", "-s", "-tman", *[word for key, value in facts.items() for word in ("-m", f"{key}: {value}")]]
    done = subprocess.run(argv, input=page(source.read_text(encoding="utf-8"), name), stdout=subprocess.PIPE,
                          text=True, check=True)
    sys.stdout.write(done.stdout)


main()
