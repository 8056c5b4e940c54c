"""Addresses that the agent manages: there before the announcement, and gone only when the router has
withdrawn and the grace is over; never anybody else's, and nothing of it needed for health."""

import ipaddress
import os
import signal
import socket
import struct
import threading
import time

from lib.agentctl import build_folder
from lib.case import check, eventually, main
from lib.pulse import Pulse
from lib.site import Site
from lib.wire import ANNOUNCE, WITHDRAW

DNS, DNS6, WEB = "192.0.2.53/32", "2001:db8::53/128", "192.0.2.80/32"
GRACE = 0.4
MARK = 82
NEW, GONE = 20, 21  # RTM_NEWADDR, RTM_DELADDR
PULSE = Pulse()


def decode(message):
    """An address as the kernel tells it: ("192.0.2.53/32", {attribute: bytes})."""
    attributes, rest = {}, message[8:]
    while len(rest) >= 4:
        length, kind = struct.unpack_from("=HH", rest)
        attributes[kind], rest = rest[4:length], rest[(length + 3) & ~3:]
    return f"{ipaddress.ip_address(attributes[1])}/{message[1]}", attributes  # IFA_ADDRESS


class Watcher:
    """Every change of the host's addresses as (heard at, time, NEW or GONE, prefix). The time of NEW is the kernel's, to
    10 ms: IFA_CACHEINFO has when it was added by a clock of the kernel's own, and what was heard of soonest sets that."""

    def __init__(self, host):
        self.seen, self._begun = [], float("inf")  # when that clock was 0, in UNIX s
        with host.inside():
            self._sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self._sock.bind((0, 0x10 | 0x100))  # RTMGRP_IPV4_IFADDR, RTMGRP_IPV6_IFADDR
        threading.Thread(target=self._work, daemon=True).start()
        for i in range(5):
            host.ip(f"addr add 203.0.113.{i}/32 dev lo", f"addr del 203.0.113.{i}/32 dev lo")
            self.wait(0, NEW, f"203.0.113.{i}/32")

    def _work(self):
        while True:
            try:
                data, now = self._sock.recv(65536), time.time()
            except OSError:
                return
            while len(data) >= 24:
                length, kind = struct.unpack_from("=IH", data)
                prefix, attributes = decode(data[16:length])
                when = now
                if kind == NEW:
                    stamp = struct.unpack_from("=8xI", attributes[6])[0] / 100
                    self._begun = min(self._begun, now - stamp)
                    when = self._begun + stamp
                self.seen.append((now, when, kind, prefix))
                data = data[(length + 3) & ~3:]

    def since(self, when, kind, prefix):
        return [at for heard, at, its, whose in self.seen if heard >= when and its == kind and whose == prefix]

    def wait(self, when, kind, prefix):
        return eventually(lambda: self.since(when, kind, prefix), what=lambda: f"{kind} of {prefix} in {self.seen}")[0]


def here(host, prefix, device="lo"):
    """None, "ours" or "others": the address on this interface. ip(8) of Debian 12 does not show the mark."""
    with host.inside():
        index = socket.if_nametoindex(device)
        sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
    with sock:
        sock.send(struct.pack("=IHHIIBxxxI", 24, 22, 0x301, 1, 0, 0, 0))  # RTM_GETADDR, a dump
        while True:
            data = sock.recv(65536)
            while len(data) >= 16:
                length, kind = struct.unpack_from("=IH", data)
                if kind == 3:  # NLMSG_DONE
                    return None
                message, data = data[16:length], data[(length + 3) & ~3:]
                its, attributes = decode(message)
                if its == prefix and struct.unpack_from("=I", message, 4)[0] == index:
                    check(not struct.unpack("=I", attributes[8])[0] & 0x48, "neither tentative nor dadfailed", prefix)
                    return "ours" if attributes.get(11) == bytes([MARK]) else "others"


def fresh(site, manage=True, start=True, address=None, **service):
    """The agent anew on edge1, whose addresses of `dns` are `address` ("others") or not there."""
    edge = site.edges[0]
    agent = edge.agent
    if agent.process and agent.process.alive():
        agent.stop(signal.SIGKILL)
    for name in os.listdir(edge.fragments):
        os.unlink(os.path.join(edge.fragments, name))
    if edge.bird.process.alive():
        edge.birdc("configure")
    for prefix in (DNS, DNS6, WEB):
        site.wait_route(prefix, {"edge2"})
    for prefix in (DNS, DNS6):
        edge.host.run(["ip", "addr", "del", prefix, "dev", "lo"], check=False)
        if address:
            edge.add_address(prefix)
    if os.path.exists(edge.host.path("state.json")):
        os.unlink(edge.host.path("state.json"))
    agent.program, agent.config = None, agent.default_config()
    agent.config["stop_grace"] = f"{int(GRACE * 1000)}ms"
    agent.config["services"]["dns"].update({"manage_addresses": manage, **service})
    if start:
        agent.start()
        announced(site)
    return agent


def announced(site):
    agent = site.edges[0].agent
    for prefix in (DNS, DNS6, WEB):
        agent.wait_prefix(prefix, wanted="announce", reason="healthy", announced=True, exported=1)
        site.wait_announced(prefix, "edge1")
    agent.wait_status(lambda s: s["bird"]["settled"], what="settled")


def address(agent, prefix=DNS):
    return agent.prefix(prefix)["address"]


def wait_address(agent, prefix=DNS, **fields):
    eventually(
        lambda: all(address(agent, prefix)[key] == value for key, value in fields.items()),
        10,
        lambda: f"{prefix}: {fields}, last {address(agent, prefix)}\n{agent.tail()}",
    )


def ctl(agent, *arguments, code=0):
    done = agent.ctl(*arguments)
    check(done.returncode == code, f"redshankctl {arguments} exits {code}", done)
    return done


def failures(agent):
    text = agent.get("/metrics")[1].decode()
    return int(text.split('redshank_managed_address_changes_total{result="failed"} ')[1].split()[0])


def explained(agent, words):
    text = " ".join(ctl(agent, "explain", DNS).stdout.split())
    check(words in text, words, text)


def follow(site):
    """Now, when all that was done before is on the wire. The addresses of its edge are watched from the first time on."""
    if not hasattr(site, "watcher"):
        site.watcher, site.queries = Watcher(site.edges[0].host), site.asker(rate=200)
    return site.moment()


def removed_after(site, since):
    """Both addresses have gone, each after the router has withdrawn it and the grace was over."""
    for prefix in (DNS, DNS6):
        gone_after(site, since, prefix)


def gone_after(site, since, prefix):
    left = site.wire.wait_withdraw("edge1", prefix, since=since).time
    gone = site.watcher.wait(since, GONE, prefix)
    # The grace begins with BIRD's word, which may be on the wire a moment later.
    check(gone - left > GRACE - 0.1, f"{prefix} goes when the grace is over", gone - left)
    check(gone - left < GRACE + 1.5 + PULSE.withheld(since), f"{prefix} goes when the grace is over", gone - left)


def nothing_lost(site, since):
    """Of all queries from `since` until now, when the address is gone."""
    queries, now = site.queries, time.time()
    queries.wait_served("edge2", since=now)
    eventually(lambda: queries.lost(since, now) == 0, what=lambda: f"no query is lost: {queries.summary(since)}")


def test_start(site):
    """The address is added, marked and permanent, before anything is announced."""
    moment = follow(site)
    agent = fresh(site)
    host = site.edges[0].host
    for prefix in (DNS, DNS6):
        came = site.watcher.wait(moment, NEW, prefix)
        first = site.wire.wait_announce("edge1", prefix, since=moment).time
        check(came < first, f"{prefix} is there before it is announced", came, first)
        check(here(host, prefix) == "ours", "marked", host.ip("addr show dev lo"))
        check("forever" in host.ip(f"addr show dev lo to {prefix}"), "permanent")
        check(address(agent, prefix) == {"interface": "lo", "state": "present", "ours": True, "restored": 0, "error": None},
              "the status", address(agent, prefix))
    check(agent.prefix(WEB)["address"] is None, "the other service's is not managed")
    check("addresses: added: 192.0.2.53 2001:db8::53" in agent.text(), "said", agent.tail())


def test_death(site):
    """A death withdraws and the address stays, for the checks to find it."""
    agent = fresh(site)
    moment = follow(site)
    edge = site.edges[0]
    edge.nsd.kill()
    site.wire.wait_withdraw("edge1", DNS, since=moment)
    time.sleep(GRACE + 0.3)  # nothing is to happen
    check(here(edge.host, DNS) == "ours" and not site.watcher.since(moment, GONE, DNS), "it stays")
    edge.nsd.start()
    announced(site)


def test_drain(site):
    """A drain removes it last, no query is lost, and undrain adds it first."""
    agent = fresh(site)
    moment = follow(site)
    site.queries.wait_served("edge1", since=moment)
    ctl(agent, "drain", "dns")
    removed_after(site, moment)
    wait_address(agent, state="absent", ours=False)
    explained(agent, "not here, since the service was sent away")
    nothing_lost(site, moment)
    moment = time.time()
    ctl(agent, "undrain", "dns")
    for prefix in (DNS, DNS6):
        came = site.watcher.wait(moment, NEW, prefix)
        check(came < site.wire.wait_announce("edge1", prefix, since=moment).time, "the address comes first")
    announced(site)


def test_leave(site):
    """Who leaves gently is announced for a time, and its address goes after that time and the grace."""
    agent = fresh(site, leave={"graceful": "3s"})  # long enough to be seen in it
    moment = follow(site)
    ctl(agent, "drain", "dns")
    wait_address(agent, state="announced")
    removed_after(site, moment)
    check(site.watcher.since(moment, GONE, DNS)[0] - moment >= 3 + GRACE, "after both")


def test_stop(site):
    """TERM withdraws, waits for the grace, removes, ends; no query is lost."""
    agent = fresh(site)
    moment = follow(site)
    site.queries.wait_served("edge1", since=moment)
    agent.send_signal(signal.SIGTERM)
    check(agent.process.wait(20) == 0, "exit status")
    removed_after(site, moment)
    nothing_lost(site, moment)
    check(here(site.edges[0].host, DNS) is None and here(site.edges[0].host, DNS6) is None, "they are gone")


def test_keep(site):
    """With `keep`, and with USR2, nothing is removed; the next agent adopts, without an UPDATE."""
    agent = fresh(site, on_stop="keep")
    moment = follow(site)
    for number in (signal.SIGTERM, signal.SIGUSR2, signal.SIGKILL):
        agent.stop(number)
        check(here(site.edges[0].host, DNS) == "ours", "it stays", number)
        agent.start()
        announced(site)
        wait_address(agent, state="present", ours=True)
    check(not site.watcher.since(moment, GONE, DNS), "and was never gone")
    agent.kill()
    site.edges[0].host.ip(f"addr del {DNS} dev lo", f"addr del {DNS6} dev lo")
    agent.start()
    announced(site)
    check(here(site.edges[0].host, DNS) == "ours", "one that was lost meanwhile is back before anything is decided")
    for prefix in (DNS, DNS6):  # web, without `keep`, leaves with TERM
        check(not site.wire.since(moment, "edge1", prefix), "nothing was seen outside", site.wire.tail())


def test_orphan(site):
    """After a crash, what is no longer configured is withdrawn, and its address removed after that."""
    agent = fresh(site)
    moment = follow(site)
    agent.kill()
    agent.config["services"]["dns"]["prefixes"] = {DNS6: 100}
    agent.start()
    gone_after(site, moment, DNS)
    check(here(site.edges[0].host, DNS6) == "ours", "the other stays")
    moment = time.time()
    del agent.config["services"]["dns"]
    agent.reload()
    gone_after(site, moment, DNS6)


def test_others(site):
    """What somebody else has added is used, left alone, and never removed."""
    agent = fresh(site, address="others")
    moment = follow(site)
    host = site.edges[0].host
    wait_address(agent, state="others", ours=False)
    ctl(agent, "drain", "dns")
    site.wire.wait_withdraw("edge1", DNS, since=moment)
    time.sleep(GRACE + 0.3)
    ctl(agent, "undrain", "dns")
    announced(site)
    check(agent.stop() == 0, "exit status")
    check(here(host, DNS) == here(host, DNS6) == "others", "still there", host.ip("addr show dev lo"))
    check(not site.watcher.since(moment, GONE, DNS) and not site.watcher.since(moment, NEW, DNS), "untouched")


def test_by_hand(site):
    """An address of ours that somebody removes comes back, at most once a second, and is counted."""
    agent = fresh(site)
    moment = follow(site)
    host = site.edges[0].host
    for times in range(1, 4):
        host.ip(f"addr del {DNS} dev lo")
        eventually(lambda n=times: len(site.watcher.since(moment, GONE, DNS)) >= n, what="it is gone")
        eventually(lambda: here(host, DNS) == "ours", what="it comes back")
    eventually(lambda: len(site.watcher.since(moment, NEW, DNS)) >= 3, what="the watcher, a thread of its own, has seen all")
    came = site.watcher.since(moment, NEW, DNS)
    check(len(came) == 3 and all(b - a > 0.95 for a, b in zip(came, came[1:])), "once a second", came)
    wait_address(agent, state="present", restored=3)
    check("added again, since somebody had removed it: 192.0.2.53" in agent.text(), "said", agent.tail())
    announced(site)


def test_bird_away(site):
    """While nobody knows what BIRD does, the address stays; when BIRD says it is withdrawn, it goes."""
    agent = fresh(site)
    edge, moment = site.edges[0], follow(site)
    edge.bird.stop()
    agent.wait_status(lambda s: s["bird"]["link"] == "away", what="away")
    ctl(agent, "drain", "dns")
    wait_address(agent, state="bird")
    time.sleep(GRACE + 0.3)
    check(here(edge.host, DNS) == "ours", "it stays")
    edge.bird.start()
    site.wait_sessions()
    site.watcher.wait(moment, GONE, DNS)
    ctl(agent, "undrain", "dns")
    announced(site)
    edge.bird.stop()
    agent.wait_status(lambda s: s["bird"]["link"] == "away", what="away")
    check(agent.stop() == 0, "exit status")
    check(here(edge.host, DNS) == "ours", "and so at a stop")
    edge.bird.start()
    site.wait_sessions()


def test_interface(site):
    """Another interface takes it over without a gap."""
    host = site.edges[0].host
    agent = fresh(site)
    host.ip("link add anycast0 type veth peer name anycast1", "link set anycast1 up", "link set anycast0 up")
    moment = follow(site)
    agent.config["services"]["dns"]["manage_addresses"] = {"interface": "anycast0"}
    agent.reload()
    for prefix in (DNS, DNS6):
        eventually(lambda p=prefix: here(host, p, "anycast0") == "ours" and not here(host, p), what=lambda: host.ip("addr"))
    check(not site.wire.since(moment, "edge1", DNS), "not seen outside", site.wire.tail())
    agent.config["services"]["dns"]["manage_addresses"] = {"interface": "nowhere0"}
    mark = len(agent.text())
    agent.reload()
    agent.wait_log("no such interface", after=mark)
    eventually(lambda: failures(agent) >= 6, 20, "three attempts for each of both")
    check(agent.text()[mark:].count("no such interface") == 1, "told once", agent.tail())
    check(here(host, DNS, "anycast0") == "ours", "and where there is none, it stays")
    host.ip("link del anycast0")


def run_with(site, *arguments):
    """The agent's program, run with other capabilities."""
    agent = site.edges[0].agent
    agent.program = site.edges[0].host.path("redshankd-with")
    with open(agent.program, "w", encoding="utf-8") as f:
        f.write(f'#!/bin/sh\nexec setpriv {" ".join(arguments)} {build_folder()}/redshankd "$@"\n')
    os.chmod(agent.program, 0o755)


def test_capability_alone(site):
    """CAP_NET_ADMIN is all that it takes."""
    agent = fresh(site, start=False)
    run_with(site, "--bounding-set=-all,+net_admin", "--inh-caps=-all,+net_admin", "--ambient-caps=+net_admin", "--no-new-privs")
    agent.start()
    announced(site)
    check(here(site.edges[0].host, DNS) == here(site.edges[0].host, DNS6) == "ours", "added")
    with open(f"/proc/{agent.pid}/status", encoding="utf-8") as f:
        check("CapEff:\t0000000000001000" in f.read(), "and nothing else")


def test_handed_over(site):
    """Where manage_addresses is taken away the address stays, and is nothing to the agent any more."""
    agent = fresh(site)
    moment = follow(site)
    del agent.config["services"]["dns"]["manage_addresses"]
    agent.reload()
    eventually(lambda: agent.prefix(DNS)["address"] is None, what="not managed")
    ctl(agent, "drain", "dns")
    site.wire.wait_withdraw("edge1", DNS, since=moment)
    check(agent.stop() == 0, "exit status")
    check(here(site.edges[0].host, DNS) == "ours" and not site.watcher.since(moment, GONE, DNS), "it stays")


def test_no_capability(site):
    """Without CAP_NET_ADMIN it is said once, what is there is used, and everything else goes on."""
    agent = fresh(site, start=False)
    run_with(site, "--bounding-set=-net_admin", "--inh-caps=-net_admin")
    mark = len(agent.text())
    agent.start()
    agent.wait_prefix(WEB, announced=True)
    agent.wait_prefix(DNS, wanted="withdraw", reason="address_missing")
    wait_address(agent, state="missing", error="Operation not permitted")
    agent.wait_log("CAP_NET_ADMIN", after=mark)
    explained(agent, "MISSING: to be added to lo; the last attempt failed: Operation not permitted")
    for prefix in (DNS, DNS6):
        site.edges[0].add_address(prefix)
    announced(site)
    check(agent.text()[mark:].count("CAP_NET_ADMIN") == 1, "once", agent.tail())
    moment = time.time()
    site.edges[0].nsd.kill()
    took = site.wire.wait_withdraw("edge1", DNS, since=moment).time - moment
    check(took < 0.5 + PULSE.withheld(moment), "health goes on", took)
    site.edges[0].nsd.start()


def leave_behind(host, addresses):
    """These IPv4 addresses on lo with the agent's mark, as one of another time may have left them."""
    with host.inside():
        index = socket.if_nametoindex("lo")
        sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
    with sock:
        for a in addresses:
            packed = ipaddress.ip_address(a).packed
            body = struct.pack("=BBBBI", socket.AF_INET, 32, 0, 0, index)
            body += struct.pack("=HH4sHH4sHHBxxx", 8, 1, packed, 8, 2, packed, 5, 11, MARK)
            sock.send(struct.pack("=IHHII", 16 + len(body), NEW, 0x605, 1, 0) + body)
            check(struct.unpack_from("=i", sock.recv(4096), 16)[0] == 0, f"{a} is added")


def test_many_that_cannot_be_removed(site):
    """More than go in one look, and the kernel refuses each: tried again now and then, and nothing waits for it."""
    agent, host = fresh(site, manage=False, start=False), site.edges[0].host
    leave_behind(host, [f"198.51.100.{i}" for i in range(1, 151)])
    run_with(site, "--bounding-set=-net_admin", "--inh-caps=-net_admin")
    agent.start()
    agent.wait_log("cannot change 198.51.100.", timeout=20)
    check(here(host, "198.51.100.1/32") == "ours", "they stay")
    check(agent.status()["node"] == "edge1", "it answers")
    check(agent.stop() == 0, "and ends")
    host.ip("addr flush dev lo to 198.51.100.0/24")


def make_site():
    site = Site(edges=2)
    site.edges[1].agent.start()
    site.wait_announced(DNS, "edge2")
    return site


main(make_site)
