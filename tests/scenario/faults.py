#!/usr/bin/python3
"""Puts each fault of faults.txt into a copy of agent/core and sees the property tests find it.

The sources hold no fault code: a fault is a few lines of one file, exchanged in a copy in the build
folder. Fails when a fault is not found, when its lines are not in the source exactly once, and when
the copy without a fault does not pass. The stories (*.scenario) are told to the same copies: one
that no fault can spoil expects nothing of worth, and fails the test, too.

usage: faults.py SOURCE_DIR WORK_DIR CC [NAME...]
"""
import glob
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

# So many, and where they do not find it, which is chance, so many others.
SEQUENCES = os.environ.get("REDSHANK_FAULT_SEQUENCES", "20000 400000").split()
DEADLINE_S = 240  # two of them are shorter than what ctest gives the whole
STORY_DEADLINE_S = 20
JOBS = 2
FLAGS = ["-std=gnu11", "-D_GNU_SOURCE", "-O1", "-w"]


class Fault:
    """One entry of faults.txt: `old` are lines that follow each other, `new` what replaces them."""

    def __init__(self, name, file):
        self.name, self.file = name, file
        self.old, self.new = [], []

    def add_line(self, sign, text):
        if sign in "=-":
            self.old.append(text)
        if sign in "=+":
            self.new.append(text)

    def apply(self, source):
        lines = source.split("\n")
        stripped = [line.strip() for line in lines]
        n = len(self.old)
        found = [i for i in range(len(lines)) if stripped[i : i + n] == self.old]
        if len(found) != 1 or self.old == self.new:
            raise ValueError(f"its lines are in {self.file} {len(found)} times, not once")
        return "\n".join(lines[: found[0]] + self.new + lines[found[0] + n :])


def read_faults(path):
    faults = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            if line[:2] in ("= ", "- ", "+ "):
                faults[-1].add_line(line[0], line[2:])
            elif len(line.split()) == 2:
                faults.append(Fault(*line.split()))
            else:
                sys.exit(f"{path}:{number}: neither a fault nor one of its lines: {line}")
    names = [fault.name for fault in faults]
    for name in names:
        if names.count(name) != 1:
            sys.exit(f"{path}: {name} stands twice")
    return faults


class Bench:
    """Compiles the tests and core once; a fault costs one file and one link."""

    PROGRAMS = {
        "engine": [
            "tests/scenario/property-engine.c",
            "tests/scenario/oracle.c",
            "tests/scenario/oracle-facts.c",
        ],
        "plan": ["tests/scenario/property-plan.c"],
        "repair": ["tests/scenario/property-repair.c"],
    }
    DRIVER = "tests/scenario/property.c"
    STORYTELLER = "tests/scenario/scenario.c"

    def __init__(self, source_dir, work_dir, cc):
        self.source_dir, self.work_dir, self.cc = source_dir, work_dir, cc
        os.makedirs(work_dir, exist_ok=True)
        self.core = {}
        for path in sorted(glob.glob(f"{source_dir}/agent/core/*.c")):
            self.core[os.path.basename(path)] = self.compile(path, os.path.basename(path) + ".o")
        self.tests = {}
        for name, sources in self.PROGRAMS.items():
            self.tests[name] = [
                self.compile(f"{source_dir}/{path}", os.path.basename(path) + ".o")
                for path in sources + [self.DRIVER]
            ]
        self.storyteller = self.compile(f"{source_dir}/{self.STORYTELLER}", "scenario.o")
        self.stories = sorted(glob.glob(f"{source_dir}/tests/scenario/*.scenario"))
        self.spoilt = set()  # stories that some fault made fail

    def compile(self, path, name):
        output = f"{self.work_dir}/{name}"
        command = [self.cc, *FLAGS, f"-I{self.source_dir}", "-c", path, "-o", output]
        subprocess.run(command, check=True)
        return output

    def run(self, program, core, name, counts):
        """Status and stderr of a property program with these objects of core: of the first count that ends badly."""
        binary = f"{self.work_dir}/{name}"
        subprocess.run([self.cc, *self.tests[program], *core, "-o", binary], check=True)
        for seed, count in enumerate(counts):
            others = ["--seed", str(seed)] if seed else []  # else the run's own
            try:
                done = subprocess.run(
                    [binary, "--count", count, *others],
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    text=True,
                    timeout=DEADLINE_S,
                )
            except subprocess.TimeoutExpired:
                return None, ""
            if done.returncode != 0:
                break
        return done.returncode, done.stderr

    def tell_stories(self, core, name):
        """The stories that fail with these objects of core."""
        binary = f"{self.work_dir}/{name}-stories"
        subprocess.run([self.cc, self.storyteller, *core, "-o", binary], check=True)
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return {
            story
            for story in self.stories
            if subprocess.run([binary, story], timeout=STORY_DEADLINE_S, **silent).returncode != 0
        }

    def try_fault(self, fault):
        """(found, what the test said)"""
        with open(f"{self.source_dir}/agent/core/{fault.file}", encoding="utf-8") as file:
            source = file.read()
        try:
            text = fault.apply(source)
        except ValueError as error:
            return False, str(error)
        copy = f"{self.work_dir}/{fault.name}.c"
        with open(copy, "w", encoding="utf-8") as file:
            file.write(text)
        try:
            mutated = self.compile(copy, fault.name + ".o")
        except subprocess.CalledProcessError:
            return False, "does not compile"
        core = [mutated if name == fault.file else path for name, path in self.core.items()]
        self.spoilt |= self.tell_stories(core, fault.name)
        own = fault.file.removesuffix(".c")
        program = own if own in self.PROGRAMS else "engine"
        status, stderr = self.run(program, core, fault.name, SEQUENCES)
        return self.judge(status, stderr)

    @staticmethod
    def judge(status, stderr):
        violated = re.search(r"^VIOLATED (.*)$", stderr, re.M)
        if status == 1 and violated:
            return True, violated.group(1)
        asserted = re.search(r"Assertion `(.*)' failed", stderr)
        if status is not None and status < 0 and asserted:
            return True, f"assert({asserted.group(1)})"
        if status == 0:
            return False, f"NOT FOUND in {SEQUENCES[-1]} sequences"
        return False, f"the test ended with {status}: {stderr.strip()[-200:]}"


def main():
    source_dir, work_dir, cc, *names = sys.argv[1:]
    faults = read_faults(f"{source_dir}/tests/scenario/faults.txt")
    bench = Bench(source_dir, work_dir, cc)
    for program in Bench.PROGRAMS:
        status, stderr = bench.run(program, list(bench.core.values()), f"none-{program}", SEQUENCES[:1])
        if status != 0:
            sys.exit(f"without a fault the {program} test ends with {status}:\n{stderr}")

    if bench.tell_stories(list(bench.core.values()), "none"):
        sys.exit("without a fault some stories fail")

    chosen = [fault for fault in faults if not names or fault.name in names]
    with ThreadPoolExecutor(JOBS) as pool:
        results = list(pool.map(bench.try_fault, chosen))
    for fault, (found, said) in zip(chosen, results):
        print(f"{'found' if found else 'MISSED':6} {fault.name:44} {said}")
    n_found = sum(found for found, _ in results)
    print(f"{n_found} of {len(chosen)} faults found")
    unspoilt = [] if names else sorted(set(bench.stories) - bench.spoilt)
    for story in unspoilt:
        print(f"no fault spoils {story}")
    return 0 if n_found == len(chosen) and chosen and not unspoilt else 1


if __name__ == "__main__":
    sys.exit(main())
