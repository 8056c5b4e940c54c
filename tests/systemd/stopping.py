"""A stop takes as long as what is configured takes: systemd waits for it, whatever TimeoutStopSec is.

TimeoutStopSec is a second here, and each duration that prolongs a stop is longer: one by one, then all at once.
"""

import json
import time

from lib.agentctl import DEFAULTS
from lib.case import check, eventually, main
from lib.machinesite import CONFIG, MachineSite

DNS, DNS6 = "192.0.2.53/32", "2001:db8::53/128"
UNIT, DEADMAN = "redshank.service", "redshank-deadman.service"
FILE = "/etc/redshank/redshank.json"
DROPIN = "TimeoutStopSec=1s\nAmbientCapabilities=CAP_NET_ADMIN\nCapabilityBoundingSet=CAP_NET_ADMIN\n"


def start(site, service, top):
    config = {**CONFIG, "defaults": DEFAULTS, "services": {"dns": {**CONFIG["services"]["dns"], **service}}, **top}
    site.machine.write("/run/case.json", json.dumps(config))
    site.machine.run(["mount", "--bind", "/run/case.json", FILE])
    site.machine.systemctl("start", "bird.service", "nsd.service", UNIT)
    site.wait_sessions(["edge1"])
    # By the agent's word, too: a BIRD that hung may not have read what the agent before said last, and announce them still.
    eventually(lambda: site.status().get("services", {}).get("dns", {}).get("health") == "healthy", 20, "it is healthy")
    for prefix in (DNS, DNS6):
        site.wait_announced(prefix, "edge1")


def stop(site, at_least):
    """Stops it; it ends by itself, not before `at_least` seconds, and stays stopped."""
    begun = time.time()
    site.machine.systemctl("stop", UNIT)
    took = time.time() - begun
    site.machine.run(["umount", FILE])
    seen = [site.machine.show(UNIT, key) for key in ("Result", "ActiveState")]
    check(seen == ["success", "inactive"], "ends by itself", seen, took, site.machine.journal(UNIT)[-1500:])
    check(took >= at_least, "and takes its time", took, at_least)
    check(not site.machine.journal(DEADMAN), "no dead man", site.machine.journal(DEADMAN))


def gone(site):
    for prefix in (DNS, DNS6):
        eventually(lambda p=prefix: "edge1" not in site.routes(p), 5, f"{prefix} is withdrawn")


def test_stop_grace(site):
    """stop_grace."""
    start(site, {}, {"stop_grace": "3s"})
    stop(site, 3)
    gone(site)


def test_leave_graceful(site):
    """leave.graceful."""
    start(site, {"leave": {"graceful": "3s"}}, {"stop_grace": "0ms"})
    stop(site, 3)
    gone(site)


def test_bird_hangs(site):
    """A BIRD that does not answer is waited for, within bounds."""
    start(site, {}, {"stop_grace": "0ms"})
    bird = site.machine.show("bird.service", "MainPID")
    site.machine.run(["kill", "-STOP", bird])
    stop(site, 1.5)
    site.machine.run(["kill", "-CONT", bird])
    text = site.machine.run(["cat", "/run/redshank/bird/dns.conf"]).stdout
    check(text.count("\tdisabled;") == 2, "the fragment is withdrawn", text)


def test_all_at_once(site):
    """All of them, and addresses of the agent's own, which go last."""
    site.machine.run(["ip", "addr", "del", DNS, "dev", "lo"])
    start(site, {"leave": {"graceful": "2s"}, "manage_addresses": True}, {"stop_grace": "2s"})
    check(DNS in site.machine.run(["ip", "addr", "show", "dev", "lo"]).stdout, "it has added its address")
    stop(site, 4)
    gone(site)
    check(DNS not in site.machine.run(["ip", "addr", "show", "dev", "lo"]).stdout, "and removed it")


main(lambda: MachineSite(dropin=DROPIN))
