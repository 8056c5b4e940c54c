"""Moving from birdwatcher, on a site whose bird.conf still is as birdwatcher wants it.

Its configuration is converted by `redshankctl import birdwatcher`, the effective configuration is
compared with what the file means, and an agent runs with what came out. The old function and the
old routes are first left in bird.conf, as they are when somebody forgets them: the dead service
stays at the router, and that is told, by name; they are taken out as docs/import.md says, and then
the new agent alone announces and withdraws.
"""

import os

from lib.case import check, eventually, main
from lib.imported import FILES, convert, effective
from lib.site import Site

DNS4, DNS6, WEB = "192.0.2.53/32", "2001:db8::53/128", "192.0.2.80/32"

# The routes, and the file that birdwatcher writes while the service is up.
LEFT = """
protocol direct addresses {
	ipv4;
	interface "lo";
}

function match_route()
{
	return net ~ [ 192.0.2.53/32 ];
}
"""


def make_site():
    return Site(edges=1, services=False, bird_extra=LEFT, export="redshank_export_med() || match_route()")


def write(site, name, text):
    path = os.path.join(site.dir, name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def test_table(site):
    """The effective table is what the file means."""
    converted, told = convert("birdwatcher", f"{FILES}/birdwatcher.conf")
    services = effective(site, converted)[0]["services"]
    check(sorted(services) == ["lab", "proxy-v4", "resolver"], "the services", sorted(services))
    expected = {
        "proxy-v4": (["192.0.2.80/32", "2001:db8::80/128"], "10s", "2500ms", 2, 3),
        "resolver": (["192.0.2.0/24"], "1s", "1s", 1, 1),
        "lab": (["192.0.2.53/32"], "30s", "30s", 1, 1),
    }
    for name, (prefixes, interval, timeout, rise, fall) in expected.items():
        command = services[name]["checks"]["command"]
        check(list(services[name]["prefixes"]) == prefixes, f"{name}: its prefixes", services[name])
        check([command[k] for k in ("interval", "timeout", "rise", "fall")] == [interval, timeout, rise, fall],
              f"{name}: interval, timeout, rise, fall", command)
    check(services["proxy-v4"]["checks"]["command"]["command"] == ["/usr/local/bin/check_proxy", "--port", "8080"],
          "its command")
    for text in ("birdwatcher.conf:12: function announce_proxy(): no equivalent",
                 "birdwatcher.conf:24: 192.0.2.99/24 is the prefix 192.0.2.0/24",
                 "birdwatcher.conf:29: timeout = 30 is so many nanoseconds"):
        check(text in told, f"told: {text}", told)


def test_refused(site):
    """A file that birdwatcher itself would not take gives nothing but its line."""
    path = write(site, "bad.conf", '[services.dns]\ncommand = "/bin/true"\nprefixes = ["192.0.2.53"]\n')
    out, told = convert("birdwatcher", path, expected=1)
    check(out == "" and f"{path}:3: error: " in told, "line 3", out, told)


def test_what_is_left(site):
    """While the old function and routes are there, the dead service stays at the router, and that is said."""
    site.flags = {name: os.path.join(site.dir, name) for name in ("dns-is-up", "web-is-up")}
    path = write(site, "birdwatcher.conf", f"""
configfile = "/etc/bird/birdwatcher.conf"

[services.dns]
  command = "/usr/bin/test -e {site.flags["dns-is-up"]}"
  interval = 1
  timeout = "500ms"
  fail = 2
  rise = 2
  prefixes = ["{DNS4}", "{DNS6}"]

[services.web]
  command = "/usr/bin/test -e {site.flags["web-is-up"]}"
  prefixes = ["{WEB}"]
""")
    converted, told = convert("birdwatcher", path)
    check("function match_route(): no equivalent" in told and "take their protocols out of bird.conf" in told,
          "what to take out is told", told)
    edge = site.edges[0]
    edge.agent.config["services"] = converted["services"]
    write(site, "dns-is-up", "")
    check(site.wait_announced(DNS4, "edge1").med is None, "so far it is birdwatcher's")
    edge.agent.start()
    site.wait_announced(DNS6, "edge1")
    eventually(lambda: site.routes(DNS4)["edge1"].med == 100, what="the agent's route goes before the old one")
    check(site.routes(WEB) == {}, "what fails is not announced", site.routes(WEB))
    os.unlink(site.flags["dns-is-up"])
    site.wait_route(DNS6, set())
    edge.agent.wait_prefix(DNS4, wanted="withdraw", elsewhere="addresses")
    check("edge1" in site.routes(DNS4), "the old route is still there", site.routes(DNS4))
    said = edge.agent.ctl("status").stdout
    check("STILL ANNOUNCED by addresses" in said, "and the first line says whose", said)


def test_taken_out(site):
    """Without them the agent alone announces and withdraws, each service by itself."""
    edge = site.edges[0]
    edge.bird.write_config(edge.bird.config.replace(LEFT, "").replace(" || match_route()", ""))
    edge.bird.configure()
    site.wait_route(DNS4, set())
    write(site, "dns-is-up", "")
    check(site.wait_announced(DNS4, "edge1").med == 100, "MED is the weight", site.routes(DNS4))
    site.wait_announced(DNS6, "edge1")
    check(site.routes(WEB) == {}, "the other service has nothing to do with it", site.routes(WEB))
    write(site, "web-is-up", "")
    site.wait_announced(WEB, "edge1")
    os.unlink(site.flags["dns-is-up"])
    site.wait_route(DNS4, set())
    site.wait_route(DNS6, set())
    check("edge1" in site.routes(WEB), "web stays", site.routes(WEB))
    eventually(lambda: edge.agent.status()["bird"]["settled"], what="settled")


main(make_site)
