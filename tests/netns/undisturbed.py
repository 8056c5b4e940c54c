"""A new agent, or a new configuration, announces everything with what it was announced with: see lib/undisturbed.py."""

from lib.case import main
from lib.site import Site
from lib.undisturbed import CALM, check_way


def test_reload(site):
    """A reload sends what it changes, whatever everything is announced with."""
    check_way(site, "reload")


def test_reload_that_withdraws(site):
    """A reload that withdraws a part of each service sends that, and nothing about the other part."""
    check_way(site, "reload", part=True)


def test_usr2(site):
    """A restart (USR2) sends what ends the ramp, and what the configuration changed meanwhile."""
    check_way(site, "usr2")


def test_usr2_that_withdraws(site):
    """An address went while the agent was away: withdrawn at once, and the rest is as it was."""
    check_way(site, "usr2", part=True)


def test_kill(site):
    """The same as USR2 after kill -9."""
    check_way(site, "kill")
    check_way(site, "kill", part=True)


def test_calm(site):
    """Where nothing changes not one UPDATE is sent, by USR2, kill -9 and reload."""
    for way in ("usr2", "kill", "reload"):
        check_way(site, way, kinds=CALM)


main(lambda: Site(edges=1))
