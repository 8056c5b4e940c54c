"""Beside a BIRD that speaks OSPF alone (tests/cases/birdconf/A6-ospf-only): see shapes.py."""

from lib.case import check, eventually, main
from lib.shapes import V4, V6, Shape

OSPF = """
protocol ospf v3 ospf4 { ipv4 { import all; export none; }; area 53 { interface "edge" { type broadcast; cost 1; hello 2; retransmit 2; dead count 2; }; }; }
protocol ospf v3 ospf6 { ipv6 { import all; export none; }; area 53 { interface "edge" { type broadcast; cost 1; hello 2; retransmit 2; dead count 2; }; }; }
"""


def metrics(shape, prefix):
    """What OSPF told the router of it."""
    return [{k: v for k, v in r.attributes.items() if k.startswith("OSPF")} for r in shape.routes(prefix)]


def test_a6_ospf_only():
    """A6: OSPF exports ours by its length, with health and without weights; the old static goes last."""
    with Shape("A6-ospf-only", OSPF) as shape:
        shape.wait_routes({"198.51.100.60/32", V6}, timeout=25)
        before = shape.table()
        shape.save()
        shape.agent.config["bird"]["sessions"] = ["ospf*"]
        with shape.keeping():
            shape.include(before="protocol device")
            shape.agent.start()
            shape.wait_routes({V4, V6})
            shape.agent.wait_prefix(V4, announced=True, exported=1)
            light = metrics(shape, V4)
            shape.agent.config["services"]["dns"]["prefixes"] = {V4: 200, V6: 200}
            shape.agent.reload()
            shape.settled()
            shape.agent.wait_prefix(V4, weight=200, announced=True, exported=1)
            check(light and metrics(shape, V4) == light, "a weight means nothing here", light, metrics(shape, V4))
            # Unless OSPF's own metric is made of it.
            metric = "export filter { if redshank_is_ours() then ospf_metric2 = redshank_weight; if is_host_v4() then accept; reject; };"
            shape.edit(("export where is_host_v4();", metric))
            eventually(lambda: [m.get("OSPF.metric2") for m in metrics(shape, V4)] == ["200"], 10, lambda: f"{metrics(shape, V4)}")
            shape.edit(("\troute 2001:db8::53/128 unreachable;\n", ""))
            shape.settled()
        with shape.keeping(V4, V6):
            shape.fail()
            shape.wait_gone(V4)
            shape.wait_gone(V6)
            shape.heal()
            shape.wait_routes({V4, V6})
        with shape.keeping(V4):
            shape.edit(("\tipv6;\n", "\tipv6;\n\troute 2001:db8::53/128 unreachable;\n"))
            check(shape.agent.stop() == 0, "the agent stops")
            shape.wait_gone(V4)
            shape.restore()
        shape.wait_table(before)


def test_a6_no_session_is_named():
    """A6: without `sessions` the agent says that it cannot tell what leaves."""
    with Shape("A6-ospf-only", OSPF) as shape:
        shape.include(before="protocol device")
        shape.agent.start()
        text = shape.wait_warning("no_sessions")
        check("OSPF" in text, "what to do", text)
        shape.agent.wait_prefix(V4, announced=True, exported=0)


main()
