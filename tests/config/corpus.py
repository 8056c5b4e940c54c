"""The corpus of configurations through `redshankd --check`, against what is written beside each.

  good/NAME.json    accepted: NAME.effective is printed byte for byte, NAME.stderr are its warnings
                    (no such file: none), and what was printed prints itself again
  bad/NAME.json     refused: exit 1, nothing on stdout, NAME.stderr on stderr
  merge/NAME/       redshank.json and conf.d, with `effective` or `stderr` in the folder

docs/examples/redshank.json, which people start from, is accepted without a word; what the pages quote of a
configuration is accepted, beside a service.

`corpus.py --write` writes what is printed now into these files, to be read by a person before it
is committed.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

# What a quotation is of: the whole, or a service.
OF_ALL = {"node", "bird", "status", "state", "reload_guard", "stop_grace", "defaults", "services", "weights", "neighbours",
          "shed", "load"}
OF_SERVICE = {"prefixes", "require", "checks", "restart", "hooks", "floor", "slow_start", "hold_down", "leave", "on_stop",
              "on_failure", "address_check", "manage_addresses"}
QUOTED = re.compile(r"```(?:json)?\n(.*?)```|((?:^    [^\n]*\n)+)|`([^`\n]+)`", re.M | re.S)

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("REDSHANK_BUILD", HERE.parents[1] / "build/dev"))
DAEMON = BUILD.resolve() / "redshankd"


def check(path):
    return subprocess.run([DAEMON, "-c", path, "--check"], cwd=HERE, capture_output=True, timeout=30)


def cases():
    for path in sorted(HERE.glob("good/*.json")) + sorted(HERE.glob("bad/*.json")):
        yield path.relative_to(HERE), path.with_suffix("")
    for folder in sorted(HERE.glob("merge/*/")):
        yield (folder / "redshank.json").relative_to(HERE), folder / ""


def beside(base, suffix):
    return base / suffix if base.is_dir() else base.with_name(base.name + "." + suffix)


def compare(what, got, path, failures):
    wanted = path.read_bytes() if path.exists() else b""
    if got != wanted:
        failures.append(f"{what}: {path.relative_to(HERE)}\n--- wanted\n{wanted.decode(errors='replace')}"
                        f"--- got\n{got.decode(errors='replace')}")


def fixed_point(name, printed, failures):
    with tempfile.TemporaryDirectory() as folder:
        again = pathlib.Path(folder, "redshank.json")
        again.write_bytes(printed)
        run = check(again)
    if run.returncode != 0 or run.stdout != printed:
        failures.append(f"{name}: printed again it is not the same\n{run.stderr.decode()}{run.stdout.decode()}")


def write(run, base):
    for suffix, text in ("effective", run.stdout), ("stderr", run.stderr):
        path = beside(base, suffix)
        path.unlink(missing_ok=True)
        if text:
            path.write_bytes(text)


def example(failures):
    path = HERE.parents[1] / "docs/examples/redshank.json"
    run = check(path)
    if run.returncode != 0 or run.stderr:
        failures.append(f"{path}: exit status {run.returncode}\n{run.stderr.decode()}")
    fixed_point(path, run.stdout, failures)


def quotations():
    """(page, object) of each that the pages quote and whose keys are of one of these."""
    root = HERE.parents[1]
    for page in [root / "README.md", *sorted(root.glob("docs/*.md"))]:
        for quoted in QUOTED.findall(page.read_text(encoding="utf-8")):
            text = "".join(quoted).strip()
            try:
                found = json.loads(text if text.startswith("{") else "{" + text + "}")
            except json.JSONDecodeError:
                continue
            if found and (set(found) <= OF_ALL or set(found) <= OF_SERVICE):
                yield page.name, found


def quoted(failures):
    n = 0
    for page, found in quotations():
        service = {"prefixes": {"192.0.2.53/32": 100},
                   "checks": {"process": {"type": "process", "unit": "nsd.service"}}}
        whole = {"node": "edge1", "services": {"dns": service}}
        (whole if set(found) <= OF_ALL else service).update(found)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "redshank.json")
            path.write_text(json.dumps(whole), encoding="utf-8")
            run = check(path)
        n += 1
        if run.returncode != 0:
            failures.append(f"{page}: {json.dumps(found)}\n{run.stderr.decode()}")
    if n < 20:
        failures.append(f"only {n} quotations were found")
    return n


def main():
    failures, seen = [], 0
    for path, base in cases():
        run = check(path)
        seen += 1
        if "--write" in sys.argv:
            write(run, base)
            continue
        refused = path.parts[0] == "bad" or (beside(base, "stderr").exists()
                                             and not beside(base, "effective").exists())
        if run.returncode != (1 if refused else 0):
            failures.append(f"{path}: exit status {run.returncode}")
        if refused and not run.stderr:
            failures.append(f"{path}: refused without a word")
        compare(str(path), run.stdout, beside(base, "effective"), failures)
        compare(str(path), run.stderr, beside(base, "stderr"), failures)
        if not refused:
            fixed_point(path, run.stdout, failures)
    example(failures)
    n = quoted(failures)
    print("\n".join(failures))
    print(f"{seen} configurations, {n} quotations, {len(failures)} failures")
    return 1 if failures or seen < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
