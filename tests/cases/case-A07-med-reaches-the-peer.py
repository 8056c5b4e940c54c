"""A07: MED in a static block is thrown away on the way to an eBGP peer; ours arrives.

Read at the receiving router, never at the sender, where BIRD shows a MED that it does not send. First
the trap itself, with routes as somebody would write them by hand; then the same with ours: MED alone,
beside communities, beside prepends.
"""

import time

from lib.case import check, main
from lib.site import Site

ALONE, COMMUNITY, PREPEND, V6 = "192.0.2.53/32", "192.0.2.80/32", "192.0.2.90/32", "2001:db8::53/128"

# By hand: MED in the static block, the export line lets them pass as they are.
BY_HAND = """
protocol static by_hand {
	ipv4 { preference 250; };
	route 192.0.2.201/32 unreachable { bgp_med = 50; };
	route 192.0.2.202/32 unreachable { bgp_med = 50; bgp_community.add((64501, 53)); };
}
"""


def make_site():
    site = Site(
        edges=1, services=False,
        bird_extra=BY_HAND + """
function to_router()
{
	if proto = "by_hand" then return true;
	if redshank_export_med() then { redshank_export_prepend(64501); return true; }
	return false;
}
""",
        export="to_router()",
    )
    site.edges[0].agent.config["services"] = {
        "dns": {
            "prefixes": {
                ALONE: 50,
                COMMUNITY: {"weight": 60, "communities": ["64501:53"], "large_communities": ["64501:1:53"]},
                PREPEND: {"weight": 70, "prepend": 2},
                V6: {"weight": 80, "communities": ["64501:53"]},
            },
            "address_check": False,
        }
    }
    return site


def test_trap(site):
    """By hand the MED is gone beside a community, though the sender shows it."""
    seen = site.wait_announced("192.0.2.202/32", "edge1")
    check(seen.communities == [(64501, 53)], "the community arrived", seen)
    check(seen.med is None, "the MED did not", seen)
    shown = site.edges[0].birdc("show route 192.0.2.202/32 all").text
    check("med" in shown.lower(), "the sender shows it", shown)


def test_ours(site):
    """Ours arrives: alone, beside communities, beside prepends, over IPv4 and IPv6."""
    begun = time.time()
    site.edges[0].agent.start()
    for prefix, med in ((ALONE, 50), (COMMUNITY, 60), (PREPEND, 70), (V6, 80)):
        seen = site.wait_announced(prefix, "edge1")
        check(seen.med == med, f"MED of {prefix}", seen)
        event = site.wire.wait_announce("edge1", prefix, since=begun, med=med)
        check(event.attributes["med"] == med, "and on the wire", event)
    check(site.routes(COMMUNITY)["edge1"].communities == [(64501, 53)], "community", site.routes(COMMUNITY))
    check(site.routes(COMMUNITY)["edge1"].large_communities == [(64501, 1, 53)], "large community")
    check(site.routes(PREPEND)["edge1"].as_path == [64501] * 3, "the path, twice longer", site.routes(PREPEND))
    check(site.routes(V6)["edge1"].communities == [(64501, 53)], "community, IPv6", site.routes(V6))


main(make_site)
