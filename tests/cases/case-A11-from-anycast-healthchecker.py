"""A11: moving from anycast-healthchecker.

Its files are converted by `redshankctl import ahc`, the effective configuration is compared with what
those files mean, and then an agent runs with what came out: the same services are announced, withdrawn
and never touched, for real.
"""

import os

from lib.case import check, eventually, main
from lib.imported import FILES, convert, effective
from lib.site import Site

DUMMIES = ("203.0.113.1/32", "2001:db8::1/128")


def row(service):
    """The line of the table: prefixes, and of the check its timing and command."""
    checks = list(service["checks"].values())
    check(len(checks) <= 1, "one check at most", checks)
    timing = {k: checks[0][k] for k in ("interval", "fast_interval", "timeout", "rise", "fall", "command")} if checks else None
    return list(service["prefixes"]), timing


def test_table(site):
    """The effective table is what the three files mean."""
    converted, told = convert("ahc", f"{FILES}/ahc.conf", f"{FILES}/ahc.d")
    config, said = effective(site, converted)
    services = config["services"]
    check(sorted(services) == ["cache-example-net", "resolver-example-net", "resolver-example-net-ipv6",
                               "status_page", "time-example-net"], "the services", sorted(services))
    expected = {
        "resolver-example-net": ("192.0.2.53/32", "1s", "1s", 10, 1),
        "resolver-example-net-ipv6": ("2001:db8:53::53/128", "3s", "500ms", 10, 1),
        "cache-example-net": ("192.0.2.99/32", "3s", "2s", 2, 2),
    }
    for name, (prefix, interval, timeout, rise, fall) in expected.items():
        prefixes, timing = row(services[name])
        check(prefixes == [prefix], f"{name}: its prefix, and no other", prefixes)
        got = (timing["interval"], timing["timeout"], timing["rise"], timing["fall"])
        check(got == (interval, timeout, rise, fall), f"{name}: interval, timeout, rise, fall", got)
        check(timing["fast_interval"] == interval, f"{name}: nothing is faster than its interval", timing)
        check(services[name]["prefixes"][prefix]["address_check"], f"{name}: its address is looked for")
    command = row(services["resolver-example-net-ipv6"])[1]["command"]
    check(command == ["/usr/bin/curl", "--fail", "--silent", 'http://[2001:db8:53::53]:8888/a b?x="1"'],
          "the quoted URL is one argument", command)
    prefixes, timing = row(services["time-example-net"])
    check(prefixes == ["192.0.2.123/32"] and timing is None, "time: no check", prefixes, timing)
    check(not services["time-example-net"]["prefixes"]["192.0.2.123/32"]["address_check"],
          "time: ip_check_disabled")
    announced = [p for s in services.values() for p in s["prefixes"]]
    check(not set(announced) & set(DUMMIES), "dummy prefixes are nobody's", announced)
    check("192.0.2.98/32" not in announced, "a disabled check that withdraws is left out", announced)
    check("time-example-net" in said and "no checks" in said, "redshankd says so at load, too", said)
    for text in ("20-others.conf:2: [time.example.net]: no check, always announced",
                 "20-others.conf:14: [spare.example.net]: no check, never announced",
                 "20-others.conf:12: custom_bird_reconfigure_cmd = /usr/local/bin/tell-chat-and-configure: no equivalent",
                 "ahc.conf:14: dummy_ip_prefix = 203.0.113.1/32: not needed, and never announced"):
        check(text in told, f"told: {text}", told)


def test_refused(site):
    """A file that anycast-healthchecker itself would not take gives nothing but its line."""
    path = os.path.join(site.dir, "bad.conf")
    with open(path, "w", encoding="utf-8") as f:
        f.write("[dns]\nip_prefix = 192.0.2.53/32\ncheck_disabled = false\ncheck_cmd = /bin/sh -c 'exit 0\n")
    out, told = convert("ahc", path, expected=1)
    check(out == "" and f"{path}:4: error: check_cmd: got a quote that does not end" in told, "line 4", out, told)


def test_it_runs(site):
    """The converted services are announced, withdrawn when their check fails, and announced again."""
    flag = os.path.join(site.dir, "the flag")
    files = []
    for name, text in {
        "main.conf": "[DEFAULT]\ncheck_interval = 0.2\ncheck_timeout = 0.2\n\n[daemon]\n"
                     "dummy_ip_prefix = 203.0.113.1/32\n",
        "dns.conf": f"[dns.example.net]\ncheck_cmd = test -e '{flag}'\ncheck_rise = 2\ncheck_fail = 2\n"
                    "check_disabled = false\nip_prefix = 192.0.2.53\n",
        "ntp.conf": "[ntp]\ncheck_cmd = /bin/false\nip_prefix = 192.0.2.123/32\non_disabled = advertise\n"
                    "ip_check_disabled = true\n[off]\ncheck_cmd = /bin/true\nip_prefix = 192.0.2.80/32\n",
    }.items():
        files.append(os.path.join(site.dir, name))
        with open(files[-1], "w", encoding="utf-8") as f:
            f.write(text)
    converted, _ = convert("ahc", *files)
    open(flag, "w").close()
    edge = site.edges[0]
    edge.agent.config["services"] = converted["services"]
    edge.agent.start()
    route = site.wait_announced("192.0.2.53/32", "edge1")
    check(route.med == 100, "MED is the weight", route)
    site.wait_announced("192.0.2.123/32", "edge1")  # no address, no check
    os.unlink(flag)
    site.wait_route("192.0.2.53/32", set())
    open(flag, "w").close()
    site.wait_announced("192.0.2.53/32", "edge1")
    check("edge1" in site.routes("192.0.2.123/32"), "what is never checked is never withdrawn")
    for prefix in ("192.0.2.80/32", *DUMMIES):
        check(site.routes(prefix) == {}, f"{prefix} is never announced", site.routes(prefix))
    eventually(lambda: edge.agent.status()["bird"]["settled"], what="settled")


main(lambda: Site(edges=1, services=False))
