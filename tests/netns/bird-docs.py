"""docs/bird.md shows what the tests ran: each line of its snippets stands in a configuration of theirs."""

import os
import re

from lib import birds, frr
from lib.agentctl import ROOT
from lib.case import check, main


class Host:
    """As much of a host as a configuration asks for."""

    def path(self, name):
        return "/" + name


def configurations(language):
    """All lines of the configurations that weighing.py's sites run on, without indentation."""
    host = Host()
    if language == "frr":
        text = frr.router_config(2, ecmp=True)
    else:
        text = birds.router_config(host, 2, ecmp=True)
        for export in ("med()", "local_pref(200)", "prepend(64501)"):
            text += birds.edge_config(host, 1, "/fragments", "/template", export="redshank_export_" + export)
    return {line.strip() for line in text.splitlines()}


def test_snippets():
    """Every line of a snippet is a line of a tested configuration."""
    with open(os.path.join(ROOT, "docs", "bird.md"), encoding="utf-8") as f:
        snippets = re.findall(r"^```(bird|frr)\n(.*?)^```$", f.read(), re.M | re.S)
    check({language for language, _ in snippets} == {"bird", "frr"}, "snippets for both", snippets)
    for language, text in snippets:
        tested = configurations(language)
        for line in text.splitlines():
            check(line.strip() in tested, f"a line that no test ran: {line.strip()}")


main()
