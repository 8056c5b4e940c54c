"""The network that the drop-in docs/examples/network.conf leaves to the agent, in a real systemd and by a real kernel.

Its own checks and the commands of `exec` checks reach what the list names and nothing else, and nobody else reaches its
listener. The router beyond the machine stands for the rest of the world: it answers whoever asks it.
"""

import os

from lib.agentctl import DEFAULTS, ROOT
from lib.case import check, eventually, main, skip
from lib.machinesite import CONFIG, MachineSite
from lib.services import Nginx, listens

ROUTER, MACHINE, TCP = "198.51.100.5", "198.51.100.6", 9479
DROPIN = "/run/systemd/system/redshank.service.d/network.conf"
ASK = "import socket; socket.create_connection(('%s', %d), 1)"


def command(address, port):
    return {"type": "exec", "command": ["/usr/bin/python3", "-c", ASK % (address, port)]}


INSIDE = {
    "port": {"type": "tcp", "address": "192.0.2.53", "port": 53},
    "port6": {"type": "tcp", "address": "2001:db8::53", "port": 53},
    "answers": {"type": "dns", "server": "192.0.2.53", "name": "id.example.net", "rrtype": "TXT"},
    "command": command("192.0.2.53", 53),
}
OUTSIDE = {
    "port": {"type": "tcp", "address": ROUTER, "port": 80},
    "page": {"type": "http", "url": f"http://{ROUTER}/healthz"},
    "command": command(ROUTER, 80),
}
SITE = {
    **CONFIG,
    "defaults": DEFAULTS,
    "status": {"listen": f"{MACHINE}:{TCP}"},
    "services": {
        "dns": {**CONFIG["services"]["dns"], "checks": INSIDE},
        "outside": {"prefixes": {"192.0.2.99/32": 50}, "address_check": False, "checks": OUTSIDE},
    },
}


def make_site():
    site = MachineSite(config=SITE, bpf=True)
    # systemd says nothing where the kernel gives it no BPF; so it is asked what it does.
    done = site.machine.run(["systemd-run", "--quiet", "--wait", "-p", "IPAddressDeny=any", "/usr/bin/python3", "-c",
                             ASK % ("127.0.0.1", 9)], check=False)
    told = site.machine.run(["journalctl", "--no-pager", "-q", "-g", "ConnectionRefused"], check=False).stdout
    check(done.returncode == 1, "nothing listens there", done)
    if told:
        site.close()
        skip("systemd has no BPF for control groups here")
    site.web = Nginx(site.router, [ROUTER])
    site.web.start()
    return site


def states(site, service):
    checks = site.status().get("services", {}).get(service, {}).get("checks", {})
    return {name: one["state"] for name, one in checks.items()}


def wait_states(site, service, wanted, checks):
    eventually(lambda: states(site, service) == dict.fromkeys(checks, wanted), 30,
               lambda: f"all checks of {service} are {wanted}: {site.status().get('services', {}).get(service)}")


def answers_outside(site):
    """Does the agent's listener answer the router?"""
    return listens(site.router, MACHINE, TCP)


def test_without(site):
    """Without it the agent and its commands reach everything, and everybody its listener: what is refused later is there."""
    site.machine.systemctl("start", "bird.service", "nsd.service", "redshank.service")
    site.wait_sessions(["edge1"])
    wait_states(site, "dns", "up", INSIDE)
    wait_states(site, "outside", "up", OUTSIDE)
    check(answers_outside(site), "the listener answers the router")


def test_with(site):
    """With the example as it is shipped what it names is checked as ever, and the rest of the world is not there."""
    with open(os.path.join(ROOT, "docs", "examples", "network.conf"), encoding="utf-8") as f:
        example = f.read()
    site.machine.write(DROPIN, example)
    site.machine.systemctl("daemon-reload")
    site.machine.systemctl("restart", "redshank.service")
    wait_states(site, "outside", "down", OUTSIDE)
    wait_states(site, "dns", "up", INSIDE)
    for prefix in SITE["services"]["dns"]["prefixes"]:
        site.wait_announced(prefix, "edge1")
    check(not answers_outside(site), "nobody else reaches its listener")
    around = site.machine.run(["python3", "-c", ASK % (ROUTER, 80)], check=False)
    check(around.returncode == 0, "the rest of the machine reaches the router as before", around)


def test_one_more(site):
    """A line more in the list, and that is reached, too, both ways: it is the list that decides."""
    site.machine.run(["sh", "-c", f"printf 'IPAddressAllow={ROUTER}\\n' >>{DROPIN}"])
    site.machine.systemctl("daemon-reload")
    site.machine.systemctl("restart", "redshank.service")
    wait_states(site, "outside", "up", OUTSIDE)
    check(answers_outside(site), "the listener answers the router again")


main(make_site)
