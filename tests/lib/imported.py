"""`redshankctl import` of another program's configuration, and what redshankd makes of what comes out.

    configuration, told = imported.convert("ahc", FILE...)
    effective, said = imported.effective(site, configuration)
"""

import json
import os
import subprocess

from lib.agentctl import ROOT, build_folder
from lib.case import check

FILES = os.path.join(ROOT, "tests", "cases", "peerconf")


def convert(*arguments, expected=0):
    """(what came out as an object, or as text where it was refused; what was told) of one import."""
    done = subprocess.run([os.path.join(build_folder(), "redshankctl"), "import", *arguments],
                          capture_output=True, text=True, check=False)
    check(done.returncode == expected, f"exit {expected}", done.returncode, done.stderr)
    return json.loads(done.stdout) if expected == 0 else done.stdout, done.stderr


def effective(site, configuration):
    """(the effective configuration, what was said of it) of redshankd --check."""
    path = os.path.join(site.dir, "converted.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(configuration, f)
    done = subprocess.run([os.path.join(build_folder(), "redshankd"), "-c", path, "--check"],
                          capture_output=True, text=True, check=False)
    check(done.returncode == 0, "redshankd --check accepts it", done.stderr)
    return json.loads(done.stdout), done.stderr
