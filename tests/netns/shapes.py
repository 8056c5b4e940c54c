"""Beside a BIRD that is there already: every shape of tests/cases/birdconf, in by the five steps of
docs/bird-beside.md and out again, with a router that must not lose a route on the way.
"""

import subprocess
import threading
import time

from lib import birds
from lib.case import check, eventually, main
from lib.shapes import V4, V6, Shape
from lib.site import TEMPLATE

EBGP = """
template bgp edge { local as 64500; passive on; error wait time 1, 2; }
protocol bgp edge4 from edge { neighbor 198.51.100.2 as 64501; ipv4 { import all; export none; }; }
protocol bgp edge6 from edge { neighbor 2001:db8:ffff::2 as 64501; ipv6 { import all; export none; }; }
"""
IBGP = EBGP.replace("as 64500", "as 64501")


def out(shape):
    """Step five backwards: bird.conf is as it was, then the agent stops, then the folder is empty."""
    check(shape.agent.stop() == 0, "the agent stops")


def test_a1_prefix_lists():
    """A1: lists and direct: ours takes over from the direct route, and the lists are emptied last."""
    router = EBGP.replace("passive on;", "passive on; bfd yes;") + 'protocol bfd { interface "*" { interval 300 ms; multiplier 3; }; }\n'
    router = router.replace("neighbor 2001:db8:ffff::2 as 64501;", "local fe80::1; neighbor fe80::2%edge as 64501;")
    with Shape("A1-prefix-lists", router, ("edge4", "edge6")) as shape:
        shape.wait_routes({V4, V6})
        shape.save()
        with shape.keeping():
            shape.include(before="router id")
            shape.edit(
                ("filter services4 {\n", "filter services4 {\n\tif redshank_export_med() then accept;\n"),
                ("filter services6 {\n", "filter services6 {\n\tif redshank_export_med() then accept;\n"),
            )
            shape.agent.start()
            shape.wait_med(V4, 100)
            shape.wait_med(V6, 100)
            shape.settled()
        shape.agent.wait_prefix(V4, announced=True, exported=1, elsewhere=None)
        # Not handed over yet: a dead service stays announced by the lists.
        shape.fail()
        shape.agent.wait_prefix(V4, wanted="withdraw", elsewhere="direct1")
        check(V4 in shape.table(), "the lists still announce it")
        shape.heal()
        shape.wait_med(V4, 100)
        # Handed over.
        with shape.keeping():
            shape.edit((", 192.0.2.53/32", ""), file="checked4.conf", configure=False)
            shape.edit((", 2001:db8::53/128", ""), file="checked6.conf")
            shape.settled()
        shape.fail()
        shape.wait_gone(V4)
        shape.wait_gone(V6)
        shape.heal()
        shape.wait_routes({V4, V6})
        with shape.keeping():
            shape.restore(["checked4.conf", "checked6.conf"])
            out(shape)
            eventually(lambda: [r.med for r in shape.routes(V4)] == [None], 10, "the direct route is back")
            shape.restore()


def test_a2_accepts_everything():
    """A2: what a filter of `accept` lets out: ours leaves at once, with a weight since it is called."""
    with Shape("A2-accepts-everything", EBGP, ("edge4", "edge6")) as shape:
        before = {"203.0.113.0/24", "2001:db8:a001::/48", "2001:db8:a003::/48"}
        shape.wait_routes(before)
        shape.save()
        with shape.keeping():
            shape.include(before="include \"site.conf\"")
            shape.edit(("filter to_uplink {\n", "filter to_uplink {\n\tredshank_export_med();\n"), file="site.conf")
            shape.agent.start()
            shape.wait_med(V4, 100)
            shape.wait_med(V6, 100)
        check((64502, 942) in shape.routes(V4)[0].communities, "with the filter's communities", shape.routes(V4))
        text = shape.wait_warning("graceful_restart")
        check("uplink_ipv4" in text, "names the session", text)
        with shape.keeping(V4, V6):
            shape.fail()
            shape.wait_gone(V4)
            shape.heal()
            shape.wait_routes({V4, V6})
            out(shape)
            shape.wait_gone(V4)
            shape.restore()
        shape.wait_table(before)


def test_a4_own_tables():
    """A4: sessions that look at tables of their own: a pipe for each family, and a condition."""
    with Shape("A4-own-tables", IBGP, ("edge4", "edge6")) as shape:
        shape.edge.ip("route add 192.0.2.10/32 dev eth0 table 198 proto static")
        shape.edge.ip("route add 2001:db8:40::10/128 dev eth0 table 198 proto static")
        before = {"192.0.2.10/32", "2001:db8:40::10/128"}
        shape.wait_routes(before)
        shape.save()
        with shape.keeping():
            shape.include(before="protocol device")
            conditions = [
                (f"filter to_reflector_v{n} {{\n", f"filter to_reflector_v{n} {{\n\tif redshank_export_local_pref(200) then accept;\n")
                for n in (4, 6)
            ]
            shape.edit(*conditions)
            shape.agent.start()
            text = shape.wait_warning("other_table")
            check("reflector_v4" in text and "lbv4" in text and "pipe" in text, "the cure", text)
            check(V4 not in shape.table(), "announced to nobody")
            pipes = "".join(
                f"protocol pipe redshank_lb{n} {{ table lbv{n}; peer table redshank{n}; import all; export none; }}\n" for n in (4, 6)
            )
            shape.edit(("filter from_reflector {", pipes + "\nfilter from_reflector {"))
            shape.wait_attribute(V4, "BGP.local_pref", 100)
            shape.wait_attribute(V6, "BGP.local_pref", 100)
            shape.wait_no_warning("other_table")
        shape.agent.wait_prefix(V4, announced=True, exported=1)
        check("192.0.2.53" not in shape.edge.ip("route show table 198"), "not in the kernel")
        with shape.keeping(V4, V6):
            shape.fail()
            shape.wait_gone(V4)
            shape.wait_gone(V6)
            out(shape)
            shape.restore()
        shape.wait_table(before)


def test_a5_exports_all():
    """A5: `export all` and statics without names: they keep their names and their routes."""
    with Shape("A5-exports-all", EBGP, ("edge4", "edge6")) as shape:
        before = {"198.18.0.0/24", "203.0.113.0/24", "2001:db8:112::/48", "2001:db8:113::/48"}
        shape.wait_routes(before)
        shape.save()
        with shape.keeping():
            shape.include(before="protocol device")
            check({"static1", "static2"} <= set(shape.edge_bird.protocols()), "the names stay", shape.edge_bird.protocols())
            shape.edit(("\t\texport all;\n", "\t\texport filter { redshank_export_med(); accept; };\n"))
            shape.agent.start()
            shape.wait_med(V4, 100)
            shape.wait_med(V6, 100)
        with shape.keeping(V4, V6):
            shape.fail()
            shape.wait_gone(V4)
            shape.heal()
            shape.wait_routes({V4, V6})
            out(shape)
            shape.wait_gone(V4)
            shape.restore()
        shape.wait_table(before)


# Two routers in one: an upstream (edge4) and another server of the same AS, told apart by address.
TWO = """
protocol bgp edge4 {
	local 198.51.100.1 as 64500; strict bind on; passive on; multihop; error wait time 1, 2;
	neighbor 198.51.100.2 as 64501;
	ipv4 { import all; export none; };
}
protocol bgp edge_inside {
	local 198.51.100.6 as 64501; strict bind on; passive on; multihop; error wait time 1, 2;
	neighbor 198.51.100.5 as 64501;
	ipv4 { import all; export none; };
	ipv6 { import all; export none; };
}
"""


def without_latency(text):
    """BIRD 3 has no `debug latency on`."""
    said = subprocess.run([birds.program(), "--version"], capture_output=True, text=True, check=False)
    if " 3." not in said.stdout + said.stderr:
        return text
    return text.replace("debug latency on;\ndebug latency limit 5 s;\n", "")


def test_a7_include_last():
    """A7: the includes stand above the templates that use their functions, not in the globbed folder."""
    with Shape("A7-include-last", TWO, ("edge4", "edge_inside"), prefixes=(V4,), configure=without_latency) as shape:
        shape.wait_routes({"203.0.113.0/24"})
        shape.save()
        export = ("if proto ~ \"own4\" then accept;", "if redshank_export_med() then accept;\n\t\t\tif proto ~ \"own4\" then accept;")
        # In the folder, as everything else here is: the template above does not know the function.
        shape.write("bird.d/10-redshank.conf", f'include "{TEMPLATE}";\ninclude "{shape.fragments}/*.conf";\n')
        shape.edit(export, configure=False)
        reply = shape.edge_bird.birdc("configure check")
        check(reply.code == "8002", "refused", reply)
        shape.write("bird.d/10-redshank.conf", "")
        shape.restore(["bird.conf"])
        with shape.keeping():
            shape.include(before="template bgp every")
            shape.edit(export, ("if proto ~ \"own4\" then reject;", "if proto ~ \"own4\" || redshank_is_ours() then reject;"))
            shape.agent.start()
            shape.wait_med(V4, 100, session="edge4")
            shape.agent.wait_prefix(V4, announced=True, exported=1)
        check(not shape.routes(V4, "edge_inside"), "not to the inside", shape.routes(V4))
        text = shape.wait_warning("session_without_ours")
        check("core1" in text, "names the session", text)
        with shape.keeping(V4):
            shape.fail()
            shape.wait_gone(V4)
            shape.heal()
            shape.wait_med(V4, 100)
            out(shape)
            shape.restore()


def test_a8_mesh():
    """A8: `direct`, `learn` and `export all` everywhere: out of the kernel, and handed over in the mesh."""
    router = TWO.replace("protocol bgp edge4 {", 'protocol bgp edge4 {\n\tpassword "documentation";')
    with Shape("A8-mesh", router, ("edge4", "edge_inside")) as shape:
        shape.edge.ip("route add 203.0.113.0/24 dev eth0 proto static")
        before = {"203.0.113.0/24", V4, V6}
        shape.wait_routes(before, timeout=25)
        check(not shape.routes(V4, "edge4"), "the upstream gets one prefix alone")
        shape.save()
        with shape.keeping():
            shape.include(before="protocol device")
            shape.edit(("\t\t\tif net = 203", "\t\t\tif redshank_export_med() then accept;\n\t\t\tif net = 203"), file="upstream.conf", configure=False)
            shape.edit(("\t\texport all;\n", "\t\texport filter { redshank_export_local_pref(200); accept; };\n"), file="mesh.conf")
            shape.agent.start()
            shape.wait_med(V4, 100, session="edge4")
            shape.wait_attribute(V4, "BGP.local_pref", 100, session="edge_inside")
            # Into the kernel it goes as well, until that is told not to.
            shape.wait_warning("kernel_export")
            check("192.0.2.53" in shape.edge.ip("route show type unreachable"), "in the kernel", shape.edge.ip("route show"))
            shape.edit(("\t\texport all;\n", "\t\texport where ! redshank_is_ours();\n"))
            shape.wait_no_warning("kernel_export")
            eventually(lambda: "192.0.2.53" not in shape.edge.ip("route show type unreachable"), 5, "out of the kernel")
        # Not handed over: the mesh still hears the address of lo.
        shape.fail()
        eventually(lambda: not shape.routes(V4, "edge4"), 5, "withdrawn from the upstream")
        check(shape.routes(V4, "edge_inside"), "the mesh still has it")
        shape.agent.wait_prefix(V4, elsewhere="direct1")
        shape.heal()
        shape.wait_med(V4, 100)
        with shape.keeping():
            # Not by another list of interfaces: that restarts `direct`, and all its routes flap.
            shape.edit(("(200); accept;", '(200); if ifname = "lo" then reject; accept;'), file="mesh.conf")
            shape.settled()
        shape.fail()
        shape.wait_gone(V4)
        shape.wait_gone(V6)
        shape.heal()
        shape.wait_routes(before)
        shape.wait_med(V4, 100, session="edge4")
        begun = time.time()
        with shape.keeping(V4):
            shape.edit(('if ifname = "lo" then reject; ', ""), file="mesh.conf")
            out(shape)
            eventually(lambda: [r.attributes.get("BGP.local_pref") for r in shape.routes(V4)] == ["100"], 5, "theirs")
            shape.restore()
            shape.wait_routes(before)
        gone = shape.wire.since(begun, prefix=V4, kinds=("withdraw",))
        check(len(gone) == 1, "from the upstream, which had it of us alone, and not from the mesh", gone)


SERVICE4 = """protocol static service4 {
	ipv4;
	route 192.0.2.53/32 via "lo";
};

"""


class Script(threading.Thread):
    """The script of A9: `birdc enable` or `disable` of both statics, by the same file, again and again."""

    def __init__(self, shape):
        super().__init__(daemon=True)
        self.shape = shape
        self.over = threading.Event()

    def run(self):
        import os

        while not self.over.wait(0.2):
            word = "enable" if os.path.exists(self.shape.flag) else "disable"
            for name in ("service4", "service6"):
                self.shape.edge_bird.birdc(f"{word} {name}")

    def stop(self):
        self.over.set()
        self.join()


def test_a9_toggled_statics():
    """A9: two agents at one prefix are told of; the script ends after redshank announces, no sooner."""
    router = """
protocol bfd { interface "*" { interval 300 ms; multiplier 3; }; }
protocol bgp edge4 {
	local 198.51.100.1 as 64501; passive on; bfd on; error wait time 1, 2;
	neighbor 198.51.100.2 as 64501;
	ipv4 { import all; export none; };
	ipv6 { import all; export none; };
}
"""
    with Shape("A9-toggled-statics", router, ("edge4",)) as shape:
        script = Script(shape)
        script.start()
        shape.wait_routes({V4, V6})
        shape.save()
        with shape.keeping():
            # Their own `disabled;` makes each `configure` of anybody a withdrawal, until the script's
            # next turn: it goes first, while all is well.
            shape.edit(("\tdisabled;\n", ""))
            shape.include(before="protocol device")
            shape.edit(*[(f"filter to_core{n} {{\n", f"filter to_core{n} {{\n\tif redshank_export_local_pref(300) then accept;\n") for n in (4, 6)])
            shape.agent.start()
            shape.wait_attribute(V4, "BGP.local_pref", 200)
            shape.wait_attribute(V6, "BGP.local_pref", 200)
        for _ in range(2):
            shape.fail()
            shape.wait_gone(V4)
            shape.wait_gone(V6)
            shape.heal()
            shape.wait_routes({V4, V6})
        if shape.agent.status()["bird"]["version"].startswith("2."):  # 3.x tells nobody
            text = shape.wait_warning("toggled")
            check("service4" in text, "names the protocol", text)
        with shape.keeping():
            shape.wait_attribute(V4, "BGP.local_pref", 200)
            script.stop()
            shape.edge_bird.birdc("disable service4")
            shape.edge_bird.birdc("disable service6")
            shape.edit((SERVICE4, ""))
            shape.settled()
        shape.fail()
        shape.wait_gone(V4)
        shape.heal()
        shape.wait_attribute(V4, "BGP.local_pref", 200)
        shape.wait_attribute(V6, "BGP.local_pref", 200)
        with shape.keeping():
            shape.edit(("protocol static service6", SERVICE4 + "protocol static service6"))
            script = Script(shape)
            script.start()
            eventually(lambda: all(shape.edge_bird.protocols()[n][2] == "up" for n in ("service4", "service6")), 5, "both up")
            out(shape)
            # As it was, but for `disabled;`, which is for the next `configure` of theirs.
            shape.edit((f'include "{TEMPLATE}";\ninclude "{shape.fragments}/*.conf";\n', ""), *[
                (f"\tif redshank_export_local_pref(300) then accept;\n", "")])
            shape.wait_routes({V4, V6})
        script.stop()


main()
