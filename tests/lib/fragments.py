"""Fragments as the agent's own code writes them, and `bird -p` to read them."""

import os
import subprocess
import tempfile

from lib import birds
from lib.netns import find, needs
from lib.site import TEMPLATE

PROGRAM = os.path.join(os.environ.get("REDSHANK_BUILD", "build/dev"), "tests", "unit", "test-bird-fragment")


def fragment(service, *prefixes, wanted="announce"):
    """The text for a service; a prefix is PREFIX=WEIGHT[,PREPEND[,last]]."""
    done = subprocess.run(
        [PROGRAM, "print", wanted, service, *prefixes], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise AssertionError(f"{PROGRAM}: {service} {prefixes}: exit {done.returncode}\n{done.stderr}")
    return done.stdout


def programs():
    """The BIRDs to ask: the one in PATH, and the one under test where that is another."""
    needs("bird")
    return sorted({find("bird"), find(birds.program())})


def parse(text, program=None, template=True):
    """What `bird -p` says against a bird.conf with the template and this text; "" when it takes it."""
    with tempfile.TemporaryDirectory(prefix="redshank-parse-") as folder:
        path = os.path.join(folder, "bird.conf")
        with open(path, "w", encoding="utf-8") as f:
            f.write("router id 198.51.100.1;\n")
            if template:
                f.write(f'include "{TEMPLATE}";\n')
            f.write(text)
        done = subprocess.run(
            [program or find("bird"), "-p", "-c", path], capture_output=True, text=True, timeout=20, check=False
        )
    said = (done.stdout + done.stderr).strip()
    return "" if done.returncode == 0 else said or f"exit {done.returncode}"
