"""A23: the address itself is not on this host, though a neighbour answers for it.

Without the address the check goes out by the default route, comes to the other edge, and is answered:
only the host's own addresses tell. So do states in which the kernel does not use an address.
"""

from lib.case import check, eventually, main
from lib.site import Site

DNS, DNS6 = "192.0.2.53/32", "2001:db8::53/128"


def lost_and_found(site, prefix, lose, find):
    edge = site.edges[0]
    lose()
    site.wait_route(prefix, {"edge2"})
    edge.agent.wait_prefix(prefix, wanted="withdraw", reason="address_missing")
    find()
    site.wait_route(prefix, {"edge1", "edge2"})
    edge.agent.wait_prefix(prefix, wanted="announce", reason="healthy")


def test_a_neighbour_answers(site):
    """The address is removed; the check still succeeds, by way of the other edge."""
    edge = site.edges[0]
    # The port alone: nsd keeps running, and its process says nothing about the address.
    edge.agent.config["services"]["dns"]["checks"].pop("process")
    site.start_agents()

    def lose():
        edge.remove_address(DNS)

    def find():
        state = edge.agent.wait_check("dns", "port", state="up")
        check(state["state"] == "up", "the check is answered by the other edge", state)
        check(edge.agent.prefix(DNS6)["wanted"] == "announce", "the other prefix of the service stays")
        edge.add_address(DNS)

    lost_and_found(site, DNS, lose, find)


def test_another_interface(site):
    """An address need not be on lo."""
    edge = site.edges[0]
    edge.host.ip("link add spare type veth peer name other", "link set spare up", "link set other up")
    edge.host.ip("addr add 192.0.2.53/32 dev spare")
    edge.remove_address(DNS)
    log = len(edge.agent.text())
    eventually(lambda: edge.agent.prefix(DNS)["wanted"] == "announce", what="announced")
    check(set(site.routes(DNS)) == {"edge1", "edge2"}, "both announce", site.routes(DNS))
    check("address_missing" not in edge.agent.text()[log:], "it was not withdrawn meanwhile", edge.agent.tail())
    lost_and_found(
        site, DNS, lambda: edge.host.ip("addr del 192.0.2.53/32 dev spare"), lambda: edge.add_address(DNS)
    )


def test_duplicate_address(site):
    """An IPv6 address that duplicate address detection found elsewhere is not used, and not announced."""
    edge = site.edges[0]
    edge.host.ip("addr add 2001:db8::53/128 dev other nodad")
    edge.remove_address(DNS6)
    edge.host.ip("addr add 2001:db8::53/128 dev spare")

    def dadfailed():
        return "dadfailed" in edge.host.run(["ip", "-6", "addr", "show", "dev", "spare"]).stdout

    def lose():
        eventually(dadfailed, timeout=8, what="duplicate address detection has failed")
        edge.host.ip("addr del 2001:db8::53/128 dev other")

    lost_and_found(site, DNS6, lose, lambda: edge.add_address(DNS6))


main(lambda: Site(edges=2))
