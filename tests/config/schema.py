"""The JSON Schema against the loader, over the whole corpus.

What the loader accepts, and the effective configuration that it prints, is valid. What the loader
refuses for something that a table says (an unknown key, a wrong kind of value, a number out of its
range, a word that is none of those) is not. The loader's own message tells which of the refused ones
these are; the rest is beyond a schema, and may be valid or not.
"""
import json
import os
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("REDSHANK_BUILD", HERE.parents[1] / "build/dev"))

# Of the message, what stands behind "expected ".
SAID_BY_A_TABLE = re.compile(
    r"one of [a-z_]+, |one of \"|\"\w+\" or \"\w+\"|an integer from|a weight, |true or false|a string|a list of|an object"
    r"|at least 1 item|an absolute path, starting|a name of 1 to 32|a host name:|an IPv4 or IPv6 address literal, such as \""
    r"|a unit's name|ADDRESS:PORT|a path of at most 107|a duration from .*; "
)
# These stand in the same words for what only the whole can tell.
BEYOND = re.compile(r"one of unit, pidfile and executable")


def said_by_a_table(messages):
    expected = re.findall(r"; expected (.*)", messages)
    return any(SAID_BY_A_TABLE.match(text) and not BEYOND.match(text) for text in expected)


def load(path):
    try:
        return json.loads(path.read_bytes())
    except ValueError:
        return None  # of syntax


def main():
    try:
        import jsonschema  # pylint: disable=import-outside-toplevel
    except ImportError:
        print("skip - not installed: python3-jsonschema")
        return 77
    schema = load(BUILD / "docs/redshank.schema.json")
    jsonschema.Draft7Validator.check_schema(schema)
    validator = jsonschema.Draft7Validator(schema)
    failures, accepted, refused = [], 0, 0
    good = [*HERE.glob("good/*.json"), *HERE.glob("good/*.effective"), *HERE.glob("merge/*/effective"),
            HERE.parents[1] / "docs/examples/redshank.json"]
    for path in sorted(good):
        accepted += 1
        for error in validator.iter_errors(load(path)):
            failures.append(f"{path.name}: accepted by the loader, and not valid: {error.json_path}: {error.message}")
    for path in sorted(HERE.glob("bad/*.json")):
        config = load(path)
        messages = path.with_suffix(".stderr").read_text(encoding="utf-8")
        if config is None or not said_by_a_table(messages):
            continue
        refused += 1
        if validator.is_valid(config):
            failures.append(f"{path.name}: valid, and refused by the loader: {messages.strip()}")
    if accepted < 15 or refused < 50:
        failures.append(f"only {accepted} and {refused} configurations to compare")
    print("\n".join(failures))
    print(f"{accepted} accepted, {refused} refused, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
