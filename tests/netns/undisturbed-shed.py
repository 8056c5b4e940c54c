"""The same as undisturbed.py beside a neighbour, by whose promise a prefix is shed."""

from lib.case import check, eventually, main
from lib.shedsite import Neighbours, touch
from lib.site import Site
from lib.undisturbed import (
    CALM, KINDS, OWN, SHED, as_before, check_way, on_the_wire, one, prepare, slow, spoken, turns, word,
)


def test_reload(site):
    """A reload sends what it changes, whatever everything is announced with."""
    for kind in SHED:
        check_way(site, "reload", kinds=KINDS + (kind,))


def test_reload_that_withdraws(site):
    """A reload that withdraws a part of each service sends that, and nothing about the other part."""
    for kind in SHED:
        check_way(site, "reload", kinds=KINDS + (kind,), part=True)


def test_neighbour(site):
    """A reload of who has promised, which asks its checks anew, ends no promise."""
    kinds, (edge, other) = KINDS + ("lowered",), site.edges
    prepare(site, kinds, next(turns))
    begun = site.moment()
    for service in other.agent.config["services"].values():
        service["checks"]["gate"]["command"] = slow(other)
    other.agent.reload()
    for _ in range(2):  # the first may have been under way
        until = edge.agent.prefix(one("lowered"))["shed"]["until"]
        eventually(lambda u=until: edge.agent.prefix(one("lowered"))["shed"]["until"] != u, 20, "the promise is renewed")
    check(not spoken(other.agent.status()), "its checks have not spoken")
    touch(word(other))
    other.agent.wait_status(spoken, what="all has spoken")
    check(not site.wire.since(begun), "nothing was sent", [str(e) for e in site.wire.since(begun)])


def test_shed(site):
    """What was shed comes back once with a new agent, when its checks have spoken, and leaves once, when promised."""
    for kind, way in (("lowered", "usr2"), ("shed", "kill")):
        check_way(site, way, kinds=CALM + (kind,))
        check(as_before(site, CALM + (kind,)), "it is out", on_the_wire(site, [one(kind)]))


def make_site():
    """The second edge promises what is shed."""
    site = Site(edges=2)
    site.circle = Neighbours(site)
    agent = site.edges[1].agent
    agent.config["load"] = {"signals": {"none": {"type": "command", "command": ["/bin/echo", "1"], "limit": 100}}}
    agent.config["services"] = {kind: {
        "prefixes": {one(kind): {"weight": 2 * OWN, "address_check": False}},
        "checks": {"gate": {"type": "exec", "command": ["/usr/bin/true"], "timeout": "50s", "interval": "60s", "rise": 1}},
    } for kind in SHED}
    agent.start()
    return site


main(make_site)
