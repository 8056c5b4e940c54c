"""The second act of the story that tests/try tells, with the build under test: an overload, and what comes of it."""

import os
import subprocess
import sys

from lib.agentctl import build_folder
from lib.case import check, main
from lib.netns import needs

STORY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib", "story.py")


def test_story():
    """Neighbours promise, an edge sheds, the clients are served fast again, and it takes back what it gave."""
    needs("dnsperf", "nft", "tc", "openssl")
    environment = dict(os.environ, REDSHANK_BUILD=build_folder())
    done = subprocess.run(
        [sys.executable, STORY, "--once", "--act", "2"], capture_output=True, text=True, timeout=280, env=environment, check=False
    )
    check(done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}")
    told = done.stdout.splitlines()
    for words in ("promises edge1 to go on announcing", "edge1   sheds 192.0.2.", "edge1 withdraws 192.0.2.",
                  "back: there is room for it again", "edge1 announces 192.0.2.", "fewer than 3 edges"):
        check(any(words in line for line in told), words, done.stdout)


main()
