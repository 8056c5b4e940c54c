#!/usr/bin/python3
"""Puts each fault of faults.txt into a copy of agent/core/shed*.c and sees it found.

Tests are asked in turn, the quickest first: the stories and those about promises, the search through interleavings, the
random long runs. Fails when none finds a fault, when a fault's lines are not in the source
exactly once, and when the source without a fault does not pass all of them.

usage: faults.py SOURCE_DIR WORK_DIR CC [NAME...]
"""
import glob
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scenario"))
from faults import read_faults  # noqa: E402

JOBS = 2
FLAGS = ["-std=gnu11", "-D_GNU_SOURCE", "-O1", "-w"]
DEADLINE_S = 60
SIM = ["agent", "measure", "network", "plot", "rules", "scenarios", "sim", "world"]
PROGRAMS = {
    "stories": (["tests/unit/test-core-shed.c"], []),
    "promises": (["tests/unit/test-core-shed-promise.c"], []),
    "interleavings": (["tests/sim/model.c"], ["--quick"]),
    "long runs": ([f"tests/sim/{name}.c" for name in SIM], ["quick", "--sheds", "600"]),
}


class Bench:
    """Everything is compiled once; a fault costs one file and a link for each test."""

    def __init__(self, source_dir, work_dir, cc):
        self.source_dir, self.work_dir, self.cc = source_dir, work_dir, cc
        self.deadlines = {}  # program: seconds, by what it takes without a fault
        os.makedirs(work_dir, exist_ok=True)
        check = subprocess.run(["pkg-config", "--cflags", "--libs", "check"], check=True,
                               capture_output=True, text=True)
        self.libraries = {"stories": check.stdout.split(), "promises": check.stdout.split(), "long runs": ["-lm"]}
        paths = sorted(glob.glob(f"{source_dir}/agent/core/shed*.c"))
        with ThreadPoolExecutor(JOBS) as pool:
            objects = pool.map(lambda path: self.compile(path, os.path.basename(path) + ".o"), paths)
            self.core = dict(zip((os.path.basename(path) for path in paths), objects))
            self.tests = {
                name: list(pool.map(
                    lambda path: self.compile(f"{source_dir}/{path}", "test-" + os.path.basename(path) + ".o"),
                    sources))
                for name, (sources, _) in PROGRAMS.items()
            }

    def compile(self, path, name):
        output = f"{self.work_dir}/{name}"
        subprocess.run([self.cc, *FLAGS, f"-I{self.source_dir}", "-c", path, "-o", output], check=True)
        return output

    def passes(self, program, core, name, deadline):
        binary = f"{self.work_dir}/{name}-{program.split()[0]}"
        libraries = self.libraries.get(program, [])
        subprocess.run([self.cc, *self.tests[program], *core, "-o", binary, *libraries], check=True)
        try:
            done = subprocess.run([binary, *PROGRAMS[program][1]], timeout=deadline,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                  env={**os.environ, "CK_FORK": "no"})
            return done.returncode == 0
        except subprocess.TimeoutExpired:
            return False
        finally:
            os.unlink(binary)

    def try_fault(self, fault):
        """(found, by what)"""
        with open(f"{self.source_dir}/agent/core/{fault.file}", encoding="utf-8") as file:
            source = file.read()
        copy = f"{self.work_dir}/{fault.name}.c"
        try:
            text = fault.apply(source)
        except ValueError as error:
            return False, str(error)
        with open(copy, "w", encoding="utf-8") as file:
            file.write(text)
        try:
            mutated = self.compile(copy, fault.name + ".o")
        except subprocess.CalledProcessError:
            return False, "does not compile"
        core = [mutated if name == fault.file else path for name, path in self.core.items()]
        for program in PROGRAMS:
            if not self.passes(program, core, fault.name, self.deadlines[program]):
                return True, program
        return False, "NOT FOUND"


def main():
    source_dir, work_dir, cc, *names = sys.argv[1:]
    faults = read_faults(f"{source_dir}/tests/sim/faults.txt")
    bench = Bench(source_dir, work_dir, cc)
    for program in PROGRAMS:
        begun = time.monotonic()
        if not bench.passes(program, list(bench.core.values()), "none", 600):  # however busy the machine is
            sys.exit(f"without a fault the {program} fail")
        bench.deadlines[program] = DEADLINE_S + 5 * (time.monotonic() - begun)
    chosen = [fault for fault in faults if not names or fault.name in names]
    with ThreadPoolExecutor(JOBS) as pool:
        results = list(pool.map(bench.try_fault, chosen))
    for fault, (found, said) in zip(chosen, results):
        print(f"{'found' if found else 'MISSED':6} {fault.name:44} {said}")
    n_found = sum(found for found, _ in results)
    print(f"{n_found} of {len(chosen)} faults found")
    return 0 if n_found == len(chosen) and chosen else 1


if __name__ == "__main__":
    sys.exit(main())
