"""A12: moving from exabgp's healthcheck.

exabgp.conf and the file that a --config names are converted by `redshankctl import exabgp`. The
weights are the metrics, seen as MED at the router; what is otherwise here (a failed service leaves,
where exabgp went on announcing it at a worse metric) is told, and is seen.
"""

import os

from lib.case import check, eventually, main
from lib.imported import FILES, convert, effective
from lib.site import Site

ADDRESSES = {"192.0.2.53/32": 100, "192.0.2.54/32": 110, "2001:db8:53::53/128": 120}
LAST = 65535  # the weight of a last resort


def test_table(site):
    """The effective table is what the two healthchecks mean."""
    converted, told = convert("exabgp", f"{FILES}/exabgp.conf")  # site-check.conf is found beside it
    services = effective(site, converted)[0]["services"]
    check(sorted(services) == ["dns", "web"], "the services, by their names", sorted(services))
    dns, web = services["dns"], services["web"]
    check({p: v["weight"] for p, v in dns["prefixes"].items()} == ADDRESSES, "metrics grow in the order given", dns)
    for prefix in dns["prefixes"].values():
        check(prefix["communities"] == ["64496:100", "64496:200"], "two communities in one string", prefix)
        check(prefix["last_resort"], "without --withdraw-on-down there is a last resort", prefix)
    check(list(web["prefixes"]) == ["203.0.113.80/32"], "web's prefix", web)
    check(not web["prefixes"]["203.0.113.80/32"]["last_resort"], "web is withdrawn when down", web)
    command = dns["checks"]["command"]
    check(command["command"] == ["/bin/sh", "-c", "kdig +time=1 @192.0.2.53 ready.example. A | grep -q NOERROR"],
          "a pipe needs a shell, which is written", command)
    check([command[k] for k in ("interval", "fast_interval", "timeout", "rise", "fall")] == ["5s", "1s", "3s", 3, 2],
          "its timing", command)
    check([web["checks"]["command"][k] for k in ("interval", "timeout", "rise", "fall")] == ["5s", "5s", 3, 3],
          "what is not said are exabgp's defaults", web)
    enabled = dns["checks"]["enabled"]
    check(enabled["command"] == ["/usr/bin/test", "!", "-e", "/run/dns_disable"] and enabled["fall"] == 1,
          "the maintenance file is a check that acts at once", enabled)
    for text in ("exabgp.conf:12: no --withdraw-on-down: when the service fails, exabgp goes on announcing it, with metric 1000",
                 "exabgp.conf:12: --disable became the check \"enabled\"",
                 "exabgp.conf:2: neighbor 198.51.100.1: sessions are BIRD's",
                 "exabgp.conf:7: route 192.0.2.200/32: announced without any check",
                 "exabgp.conf:22: process watcher runs no `exabgp healthcheck`",
                 "site-check.conf:10: --up-execute logger up: no equivalent"):
        check(text in told, f"told: {text}", told)
    check("neighbor *" not in told, "every neighbour is nothing to tell", told)


def test_it_runs(site):
    """The router sees metrics as MED and the communities; maintenance and failure take the good routes away."""
    flag, disable = os.path.join(site.dir, "flag"), os.path.join(site.dir, "disable")
    path = os.path.join(site.dir, "exabgp.conf")
    ips = " ".join(f"--ip {p}" for p in ADDRESSES)
    with open(path, "w", encoding="utf-8") as f:
        f.write("process dns { run python3 -m exabgp healthcheck "
                f"--cmd \"ls {flag} | grep -q flag\" {ips} --increase 10 --rise 2 --fall 2 --interval 0.3 "
                f"--fast-interval 0.1 --timeout 0.3 --disable {disable} --community '64496:100 64496:200' "
                "--no-ip-setup; }\n")
    converted, _ = convert("exabgp", path)
    open(flag, "w").close()
    edge = site.edges[0]
    for prefix in ("192.0.2.54/32", "2001:db8:53::53/128"):
        edge.add_address(prefix.split("/")[0])
    edge.agent.config["services"] = converted["services"]
    edge.agent.start()
    good(site)
    for name, trouble, mend in (
        ("maintenance", lambda: open(disable, "w").close(), lambda: os.unlink(disable)),
        ("failure", lambda: os.unlink(flag), lambda: open(flag, "w").close()),
    ):
        trouble()
        for prefix in ADDRESSES:
            gone(site, prefix, name)
        mend()
        good(site)


def good(site):
    for prefix, med in ADDRESSES.items():
        wait_med(site, prefix, {med})
        route = site.routes(prefix)["edge1"]
        check({(64496, 100), (64496, 200)} <= set(map(tuple, route.communities)), "both communities arrive", route)


def gone(site, prefix, why):
    """At its good metric it is not there any more; a last resort may be."""
    wait_med(site, prefix, {None, LAST}, why)


def wait_med(site, prefix, meds, why="health"):
    def holds():
        route = site.routes(prefix).get("edge1")
        return (route.med if route else None) in meds

    eventually(holds, 10.0, lambda: f"{why}: {prefix} with MED in {meds}, seen {site.routes(prefix)}")


main(lambda: Site(edges=1, services=False))
