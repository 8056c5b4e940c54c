"""What the agent and `redshankd --check` say of somebody's bird.conf that will hurt: each warning on a
real BIRD that has the fault, once in the log, in the status, and gone with its cure. (other_table,
session_without_ours, kernel_export and toggled: shapes.py; no_sessions: shapes-ospf.py.)
"""

import os
import time

from lib.agentctl import build_folder
from lib.case import check, eventually, main
from lib.shapes import V4, V6, Shape

ROUTER = """
template bgp edge { local as 64500; passive on; error wait time 1, 2; graceful restart aware; }
protocol bgp edge4 from edge { neighbor 198.51.100.2 as 64501; ipv4 { import all; export none; }; }
protocol bgp edge6 from edge { neighbor 2001:db8:ffff::2 as 64501; ipv6 { import all; export none; }; }
"""
DIRECT = 'protocol direct host { ipv4; ipv6; interface "lo"; }\n\n'
EXPORT = "\t\texport all;\n"


def shape(export, extra=""):
    """A5 with another export line, and the includes."""
    made = Shape("A5-exports-all", ROUTER, ("edge4", "edge6"))
    try:
        made.include(before="protocol device", configure=False)
        made.edit((EXPORT, f"\t\texport {export};\n"), ("protocol device", extra + "protocol device"))
    except BaseException:
        made.close()
        raise
    return made


def said(s, code):
    return s.agent.text().count(f"({code})")


def warned(s, code, *words):
    """Until a warning of this code has all these words: BIRD comes to what it says in steps, and so may the warning."""
    eventually(
        lambda: any(w["code"] == code and all(word in w["text"] for word in words) for w in s.warnings()), 20,
        lambda: f"{code} with {words}: {s.warnings()}\n{s.report()}",
    )


def test_not_exported():
    """An export line that asks for RTS_DEVICE: the prefix leaves as soon as ours is preferred, and that is said."""
    with shape("where source = RTS_DEVICE", DIRECT) as s:
        s.wait_routes({V4, V6})
        s.agent.start()
        s.wait_gone(V4)
        warned(s, "not_exported", f"{V4} and 1 more are", "protocol host", "RTS_DEVICE")
        shown = s.agent.ctl("status")
        check("warning: " in shown.stdout and "(not_exported)" in shown.stdout, "redshankctl shows it", shown.stdout)
        s.edit(("where source = RTS_DEVICE", "where redshank_export_med() || source = RTS_DEVICE"))
        s.wait_med(V4, 100)
        s.wait_no_warning("not_exported")
        s.agent.wait_log("no longer so: " + V4)
        check(said(s, "not_exported") == 2, "said once, and once that it is over", s.agent.text())


def test_by_name():
    """The same by a protocol's name, with nobody else's route to blame."""
    with shape('where proto ~ "static*"') as s:
        s.agent.start()
        warned(s, "not_exported", "a protocol's name")


def test_would_stay():
    """All is well with ours, and `export all` would keep a dead service's prefix from protocol direct: said before it dies."""
    with shape("all", DIRECT) as s:
        s.agent.start()
        s.wait_routes({V4, V6})
        warned(s, "would_stay", f"{V4} and 1 more are", "protocol host", "session UP4 and 1 more")
        check(s.agent.prefix(V4)["elsewhere"] is None, "while nobody but us announces it", s.agent.prefix(V4))
        check("(would_stay)" in s.agent.ctl("status").stdout, "redshankctl shows it")
        check("(would_stay)" in check_config(s).stderr, "and --check")
        # It is true; and it stands, and is not said anew, while the service is dead.
        s.fail()
        s.agent.wait_log("withdrawn here, but BIRD still announces it")
        check({V4, V6} <= s.table(), "the router still has them", s.table())
        look_again(s)
        check([w["code"] for w in s.warnings()] == ["would_stay"], "the warning stands", s.warnings())
        s.heal()
        s.agent.wait_prefix(V4, announced=True)
        look_again(s)
        check(said(s, "would_stay") == 1, "said once", s.agent.text())
        # The cure of the manual.
        s.edit(("export all", "export where redshank_export_med()"))
        s.wait_no_warning("would_stay")
        s.wait_med(V4, 100)
        check(said(s, "would_stay") == 2, "and that it is over", s.agent.text())
        s.fail()
        s.wait_gone(V4)


NAMED = """filter 'services-4.x' { if redshank_export_med() then accept; if ifname = "lo" then {0}; accept; }
"""


def test_would_stay_by_filter():
    """A filter with a name is asked, one without cannot be, and another source's export line is not ours to blame."""
    with shape("all", DIRECT) as s:
        s.edit(("export all", "export filter 'services-4.x'"), ("protocol device", NAMED.replace("{0}", "reject") + "protocol device"))
        s.agent.start()
        s.wait_med(V4, 100)
        s.wait_med(V6, 100)
        s.settled()
        done = check_config(s)
        check("2 of 2 sessions up, 0 warnings" in done.stderr, "the filter refuses direct's", done.stderr)
        s.edit(('"lo" then reject', '"lo" then accept'))
        warned(s, "would_stay", f"{V4} and 1 more are", "protocol host")  # the filter lets it pass, both families
        s.edit(('"lo" then accept', '"lo" && net.type = NET_IP6 then reject'))
        warned(s, "would_stay", f"{V4} is", "session UP4 by")  # one is left, on one session
        s.edit(("export filter 'services-4.x'", "export where redshank_export_med()"))
        s.wait_no_warning("would_stay")
        # Nobody can ask what this does with direct's route; it is right, so no word.
        s.edit(("export where redshank_export_med()", 'export filter { if redshank_export_med() then accept; if ifname = "lo" then reject; accept; }'))
        look_again(s)
        check(s.warnings() == [], "no false alarm", s.warnings())


def look_again(s):
    """After somebody's configure advise looks, and once more to be sure."""
    s.edge_bird.configure()
    begun = time.monotonic()
    eventually(lambda: time.monotonic() - begun > 5, 8, "two looks")


def test_outranked():
    """Another protocol's route of preference 250 or more; one of 240, as direct has it, is none of our business."""
    also = "protocol static other {{ ipv4 {{ preference {0}; }}; route 192.0.2.53/32 unreachable; }}\n\n".replace("other", "elsewhere4")
    with shape("filter { redshank_export_med(); accept; }", DIRECT + also.format(249)) as s:
        s.agent.start()
        s.wait_med(V4, 100)
        s.settled()
        done = check_config(s)
        check("2 of 2 sessions up, 0 warnings" in done.stderr, "nothing is said of 240 and 249", done.stderr)
        s.edit(("preference 249", "preference 251"))
        warned(s, "outranked", f"{V4} is", "elsewhere4", "251")
        check([w["code"] for w in s.warnings()] == ["outranked"], "and nothing that follows from it", s.warnings())
        s.edit(("preference 251", "preference 249"))
        s.wait_no_warning("outranked")


def test_graceful():
    """Graceful restart on a session: the router keeps the routes of a BIRD that was killed; `aware` is harmless."""
    line = "\tconnect delay time 1;\n"
    with shape("filter { redshank_export_med(); accept; }") as s:
        s.edit((line, line + "\tgraceful restart on;\n"))
        s.wait_sessions(("edge4", "edge6"))
        s.agent.start()
        warned(s, "graceful_restart", "UP4", "aware")
        s.wait_routes({V4, V6})
        # The sessions go and return, somebody reconfigures: it neither goes nor is it said again.
        s.bird.stop()
        s.agent.wait_status(lambda d: d["bird"]["sessions_up"] == 0, timeout=20, what="the sessions are down")
        for _ in range(2):
            s.edge_bird.configure()
            begun = time.monotonic()
            eventually(lambda: time.monotonic() - begun > 2, 5, "a look")
        s.bird.start()
        s.wait_sessions(("edge4", "edge6"))
        s.wait_routes({V4, V6})
        s.edge_bird.configure()
        begun = time.monotonic()
        eventually(lambda: time.monotonic() - begun > 2, 5, "a look")
        check(said(s, "graceful_restart") == 2, "one for each session, once", s.agent.text())
        # What it means.
        s.agent.stop(number=12)  # USR2
        s.edge_bird.kill()
        eventually(lambda: not s.bird.established(), 20, "the sessions are down")
        check(V4 in s.table(), "the router still sends packets to a dead BIRD", s.table())
        s.edge_bird.start()
        s.wait_sessions(("edge4", "edge6"))
        s.edit(("graceful restart on", "graceful restart aware"))
        s.wait_sessions(("edge4", "edge6"))
        s.agent.start()
        s.wait_routes({V4, V6})
        s.settled()
        done = check_config(s)
        check("0 warnings" in done.stderr, "no warning", done.stderr)
        s.agent.stop(number=12)
        s.edge_bird.kill()
        s.wait_gone(V4)


def test_templates_missing():
    """Started before the includes: said, with the line that is missing; over as soon as it is there."""
    with Shape("A5-exports-all", ROUTER, ("edge4", "edge6")) as s:
        s.agent.start()
        warned(s, "templates_missing", "redshank.conf")
        s.include(before="protocol device")
        s.wait_routes({V4, V6})
        s.wait_no_warning("templates_missing")


def check_config(s):
    return s.edge.run([os.path.join(build_folder(), "redshankd"), "-c", s.agent.conf, "--check"], check=False)


def test_check():
    """--check looks at the BIRD that runs, on stderr; stdout is the configuration and nothing else."""
    with shape("where source = RTS_DEVICE", DIRECT) as s:
        s.wait_routes({V4, V6})
        s.agent.write_config()
        before = s.edge_bird.tail(1000)
        done = check_config(s)
        check(done.returncode == 0 and done.stdout.startswith("{"), "valid", done)
        check("beside BIRD " in done.stderr and "2 of 2 sessions up" in done.stderr, "the section", done.stderr)
        check("(announced_elsewhere)" in done.stderr and "protocol host" in done.stderr, "what is there now", done.stderr)
        check(s.edge_bird.tail(1000) == before, "BIRD was only read")
        s.agent.start()
        s.wait_gone(V4)
        done2 = check_config(s)
        check("(not_exported)" in done2.stderr, "and what will not leave", done2.stderr)
        s.agent.config["bird"]["control"] = "birdc"
        s.agent.write_config()
        by_program = check_config(s)
        check("(not_exported)" in by_program.stderr, "by the birdc program, too", by_program.stderr)
        s.agent.config["bird"]["control"] = "socket"
        s.agent.write_config()
        s.agent.stop()
        s.edge_bird.stop()
        alone = check_config(s)
        check((alone.returncode, alone.stdout, alone.stderr) == (0, done.stdout, ""), "without BIRD the same, and no word", alone)


main()
