"""The machine reboots, and loses its power: nothing is announced until checks have passed, and what
operators have said holds.

BIRD and the agent start with the machine, the service behind the prefix later; what they announce is what
the router hears.
"""

import time

from lib.agentctl import DEFAULTS
from lib.case import check, eventually, main
from lib.machinesite import CONFIG, MachineSite
from lib.wire import ANNOUNCE

DNS, DNS6, WEB, LOG = "192.0.2.53/32", "2001:db8::53/128", "192.0.2.80/32", "192.0.2.81/32"
AT_BOOT = ("bird.service", "redshank.service")
SITE = {
    **CONFIG,
    "defaults": DEFAULTS,
    "services": {
        "dns": CONFIG["services"]["dns"],
        # Without a check: healthy from the first moment on, so that only the drain holds it back.
        "web": {"prefixes": {WEB: 50}, "address_check": False},
        "log": {"prefixes": {LOG: 50}, "address_check": False},
    },
}


def make_site():
    return MachineSite(config=SITE, kept=["/var/lib/redshank"])


def prefix(site, name):
    for service in site.status().get("services", {}).values():
        if name in service["prefixes"]:
            return service["prefixes"][name]
    return {}


def test_before(site):
    """Everything is announced; a drain, a weight, and a drain that ends before the machine is back."""
    site.machine.systemctl("start", "nsd.service", *AT_BOOT)
    site.wait_sessions(["edge1"])
    for name in (DNS, DNS6, WEB, LOG):
        site.wait_announced(name, "edge1")
    site.machine.run([site.ctl, "weight", DNS, "77"])
    site.machine.run([site.ctl, "drain", "web", "--reason", "new disks"])
    eventually(lambda: "edge1" not in site.routes(WEB), what="web is drained")
    eventually(lambda: site.routes(DNS)["edge1"].med == 77, what="the weight is at the router")


def came_back(site, cut):
    """A boot, up to where the service behind dns is started."""
    before = time.time()
    site.machine.run([site.ctl, "drain", "log", "--for", "1s"])
    site.wire.wait_withdraw("edge1", LOG, since=before)
    old, off = site.machine.leader, time.time()
    site.machine.reboot(wants=AT_BOOT, cut=cut)
    check(site.machine.leader != old, "another systemd")
    site.wait_sessions(["edge1"])
    eventually(lambda: site.status().get("services", {}).get("dns", {}).get("health") == "unhealthy", 60,
               what="dns has been looked at, and is down")
    site.wait_announced(LOG, "edge1")  # whose drain has ended, and which has no check
    early = [e for name in (DNS, DNS6, WEB) for e in site.wire.since(off, "edge1", name, (ANNOUNCE,))]
    check(not early, "nothing is announced that no check has passed, or that is drained", early)
    for name in (DNS, DNS6):
        eventually(lambda n=name: prefix(site, n).get("wanted") == "withdraw", what="withdrawn")
    eventually(lambda: prefix(site, WEB).get("reason") == "drained", what="the drain holds")
    begun = time.time()
    site.machine.systemctl("start", "nsd.service")
    site.wait_announced(DNS, "edge1")
    first = site.wire.wait_announce("edge1", DNS, since=off)
    check(first.time >= begun, "not before its service ran", first, begun)
    check(first.med == 77, "and with the weight that was given, at once", first)
    site.wait_announced(DNS6, "edge1")
    check("edge1" not in site.routes(WEB), "web is still drained", site.routes(WEB))
    said = " ".join(site.machine.run([site.ctl, "explain", "web"]).stdout.split())
    check("new disks" in said and "root" in said, "with its reason, and who gave it", said)


def test_reboot(site):
    """A clean reboot: the routers hear nothing of dns until its checks have passed; drain and weight hold."""
    came_back(site, cut=False)


def test_power_cut(site):
    """The same when the machine just stops."""
    came_back(site, cut=True)


def test_undrained(site):
    """The drain ends when it is taken back, and the next boot knows."""
    site.machine.run([site.ctl, "undrain", "web"])
    site.machine.run([site.ctl, "weight", DNS, "--reset"])
    site.wait_announced(WEB, "edge1")
    off = time.time()
    site.machine.reboot(wants=AT_BOOT, cut=True)
    site.wait_sessions(["edge1"])
    site.wire.wait_announce("edge1", WEB, 30, since=off, med=50)


main(make_site)
