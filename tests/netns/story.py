"""The first act of the story that tests/try tells, with the build under test: all of it has to happen.

It kills, freezes and breaks everything that a reader of tests/try sees dying, and fails unless the
router's packets and the client's answers show what must come of it.
"""

import os
import subprocess
import sys

from lib.agentctl import build_folder
from lib.case import check, main

STORY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib", "story.py")


def test_story():
    """All of the first act happens, and the client's queries follow."""
    environment = dict(os.environ, REDSHANK_BUILD=build_folder())
    done = subprocess.run(
        [sys.executable, STORY, "--once", "--act", "1"], capture_output=True, text=True, timeout=280, env=environment, check=False
    )
    check(done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}")
    kills = [line for line in done.stdout.splitlines() if ">>>" in line and "kill -9: nsd" in line]
    check(len(kills) == 2, "nsd was killed twice", done.stdout)
    told = [line for line in done.stdout.splitlines() if "edge1 announces 192.0.2.53/32" in line]
    check(any("weight 300" in line for line in told), "the router is told of another weight", done.stdout)
    check("All of it happened" in done.stdout, "the last line", done.stdout)


main()
