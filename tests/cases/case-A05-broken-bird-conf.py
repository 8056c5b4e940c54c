"""A05: somebody else's syntax error must not stop a withdrawal.

bird.conf is broken by its own text, by a file that it includes, and by our own fragment, while
services die and return; and a second service dies while it is broken. Every assertion on routes is
on the router's wire or table.
"""

import os
import re
import signal
import time

from lib.case import check, eventually, main
from lib.site import Site

DNS, DNS6, WEB = "192.0.2.53/32", "2001:db8::53/128", "192.0.2.80/32"


def make_site():
    site = Site(edges=2)
    edge = site.edges[0]
    edge.extra = edge.host.path("extra.conf")
    write(edge.extra, "# nothing\n")
    edge.bird.write_config(edge.bird.config + f'include "{edge.extra}";\n')
    edge.bird.configure()
    site.start_agents()
    return site


def write(path, text):
    with open(path + ".new", "w", encoding="utf-8") as f:
        f.write(text)
    os.rename(path + ".new", path)


def settled(edge):
    return edge.agent.wait_status(lambda s: s["bird"]["settled"], timeout=10, what="settled")


def alarm(edge):
    return edge.agent.status()["bird"]["alarm"] or ""


def wait_alarm(edge, *words, timeout=10):
    eventually(lambda: all(w in alarm(edge) for w in words), timeout, lambda: f"alarm with {words}: {alarm(edge)!r}")
    return alarm(edge)


def weigh(edge, weight, prefix=WEB):
    """Something that only `configure` can do."""
    edge.agent.config["services"]["web"]["prefixes"][prefix] = weight
    edge.agent.reload()


def live(site, edge):
    """nsd dies and its routes leave; it returns and they return: `bird.conf` plays no part in it."""
    begun = edge.nsd.kill()
    for prefix in (DNS, DNS6):
        site.wire.wait_withdraw("edge1", prefix, since=begun)
    edge.nsd.start()
    for prefix in (DNS, DNS6):
        site.wire.wait_announce("edge1", prefix, since=begun)
    edge.agent.wait_prefix(DNS, announced=True, exported=1)


def test_own_text(site):
    """bird.conf broken by its own text: a second death and a drain too, loud, and it converges when repaired."""
    edge = site.edges[0]
    settled(edge)
    mark = len(edge.agent.text())
    edge.break_bird_conf("nonsense;\n")
    weigh(edge, 150)
    text = wait_alarm(edge, f"{edge.bird.conf}:1:", "not a file of ours")
    check(re.search(r"bird\.conf:1:\d+ ", text), "FILE:LINE:COLUMN", text)
    edge.agent.wait_log(f"{edge.bird.conf}:1:", after=mark)
    begun = edge.nsd.kill()
    for prefix in (DNS, DNS6):
        site.wire.wait_withdraw("edge1", prefix, since=begun)
    second = edge.nginx.kill()
    site.wire.wait_withdraw("edge1", WEB, since=second)
    edge.nsd.start()
    edge.nginx.start()
    for prefix in (DNS, DNS6):
        site.wire.wait_announce("edge1", prefix, since=begun, med=100)
    # At its old weight: better than none. The new one needs a configure.
    site.wire.wait_announce("edge1", WEB, since=second, med=100)
    drained = time.time()
    check(edge.agent.ctl("drain", "dns").returncode == 0, "drained")
    for prefix in (DNS, DNS6):
        site.wire.wait_withdraw("edge1", prefix, since=drained)
    check(edge.agent.ctl("undrain", "dns").returncode == 0, "undrained")
    for prefix in (DNS, DNS6):
        site.wire.wait_announce("edge1", prefix, since=drained, med=100)
    check(not edge.agent.status()["bird"]["settled"], "not settled before the new weight is true")
    repaired = time.time()
    edge.repair_bird_conf()
    site.wire.wait_announce("edge1", WEB, since=repaired, med=150, timeout=10)
    eventually(lambda: alarm(edge) == "", 5, lambda: f"no alarm: {alarm(edge)!r}")
    settled(edge)
    lines = [l for l in edge.agent.text()[mark:].splitlines() if "refuses to configure" in l]
    check(len(lines) == 1, "said in the log once", lines)
    check(not [e for e in site.wire.since(repaired) if e.kind == "withdraw"], "no flap by the repair")


def test_include(site):
    """Broken by an include of somebody else: the alarm names that file; health goes on both ways."""
    edge = site.edges[0]
    write(edge.extra, "protocol static extra { ipv4; route 203.0.113.0/24 blackhole }\n")
    weigh(edge, 160)
    wait_alarm(edge, edge.extra + ":1:", "not a file of ours")
    live(site, edge)
    repaired = time.time()
    write(edge.extra, "# mended\n")
    site.wire.wait_announce("edge1", WEB, since=repaired, med=160, timeout=10)
    eventually(lambda: alarm(edge) == "", 5, lambda: f"no alarm: {alarm(edge)!r}")
    settled(edge)


def test_stranger(site):
    """Broken by somebody's file in our own folder: named, left alone, and gone with it."""
    edge = site.edges[0]
    path = os.path.join(edge.fragments, "zz-mine.conf")
    write(path, "oops\n")
    weigh(edge, 170)
    wait_alarm(edge, "zz-mine.conf:1:", "in our folder, but not a file of ours")
    live(site, edge)
    check(open(path, encoding="utf-8").read() == "oops\n", "it is left alone")
    repaired = time.time()
    os.unlink(path)
    site.wire.wait_announce("edge1", WEB, since=repaired, med=170, timeout=10)
    settled(edge)


def test_our_fragment(site):
    """Our own fragment is refused: the last good one is put back, with what is dead `disabled`."""
    edge = site.edges[0]
    good = edge.fragment("web")
    # bird.conf now holds a protocol whose name the grown service will want.
    clash = "protocol static 'redshank:web:192.0.2.81' { ipv4; }\n"
    edge.bird.write_config(edge.bird.config.replace("protocol device", clash + "protocol device", 1).replace(
        f'include "{edge.fragments}/*.conf";\n', ""
    ) + f'include "{edge.fragments}/*.conf";\n', keep=False)
    begun = time.time()
    edge.add_address("192.0.2.81")
    edge.agent.config["services"]["web"]["prefixes"]["192.0.2.81/32"] = 100
    edge.agent.reload()
    wait_alarm(edge, "web.conf:", "the last good one is put back")
    eventually(lambda: "192.0.2.81" not in (edge.fragment("web") or "192.0.2.81"), 5, "the good text is back")
    check(edge.fragment("web") == good, "byte for byte", edge.fragment("web"))
    check(edge.birdc("configure check").code == "0020", "others can configure again")
    check(not [e for e in site.wire.since(begun) if e.kind == "withdraw"], "nobody lost a route")
    dead = edge.nginx.kill()
    site.wire.wait_withdraw("edge1", WEB, since=dead)
    eventually(lambda: "disabled;" in edge.fragment("web"), 5, "the fragment that was put back says disabled")
    edge.bird.configure()
    time_of_check = time.time()
    eventually(lambda: time.time() - time_of_check > 0.5, 5, "half a second")
    check("edge1" not in site.routes(WEB), "somebody's configure does not bring the dead one back")
    edge.nginx.start()
    site.wire.wait_announce("edge1", WEB, since=dead)
    repaired = time.time()
    edge.repair_bird_conf()
    site.wire.wait_announce("edge1", "192.0.2.81/32", since=repaired, timeout=15)
    eventually(lambda: alarm(edge) == "", 5, lambda: f"no alarm: {alarm(edge)!r}")
    settled(edge)


def test_damaged(site):
    """Our fragment damaged by somebody: written again, counted, and nobody lost a route."""
    edge = site.edges[0]
    settled(edge)
    before = edge.agent.status()["bird"]["fragments_repaired"]
    good, begun = edge.fragment("dns"), time.time()
    edge.write_fragment("dns", good[: len(good) // 2])
    eventually(lambda: edge.fragment("dns") == good, 5, "it is whole again")
    eventually(lambda: edge.agent.status()["bird"]["fragments_repaired"] == before + 1, 5, "it is counted")
    os.unlink(os.path.join(edge.fragments, "dns.conf"))
    eventually(lambda: edge.fragment("dns") == good, 5, "it is there again")
    settled(edge)
    check(not site.wire.since(begun), "no UPDATE", site.wire.since(begun))


def test_alarm_without_need(site):
    """Nothing but health happens while bird.conf is broken: the alarm comes all the same, and goes."""
    edge = site.edges[0]
    edge.agent.stop()
    edge.agent.start()
    for prefix in (DNS, DNS6, WEB):
        site.wait_announced(prefix, "edge1")
    settled(edge)
    edge.break_bird_conf("more nonsense;\n")
    live(site, edge)
    wait_alarm(edge, f"{edge.bird.conf}:1:", timeout=15)
    edge.repair_bird_conf()
    eventually(lambda: alarm(edge) == "", 10, lambda: f"no alarm: {alarm(edge)!r}")


def test_latent(site):
    """Nothing happens at all, and a restart of BIRD would be an outage: a bird.conf that was broken before
    the agent started, somebody's file in our folder, a refused SIGHUP. Nobody loses a route."""
    edge = site.edges[0]
    settled(edge)
    begun = time.time()
    edge.agent.stop(number=signal.SIGUSR2)
    edge.break_bird_conf("older nonsense;\n")
    edge.agent.start()
    wait_alarm(edge, f"{edge.bird.conf}:1:", "not a file of ours")
    edge.repair_bird_conf()
    eventually(lambda: alarm(edge) == "", 5, lambda: f"no alarm: {alarm(edge)!r}")
    path = os.path.join(edge.fragments, "zz-mine.conf")
    write(path, "oops\n")
    wait_alarm(edge, "zz-mine.conf:1:", "in our folder, but not a file of ours", timeout=15)
    os.unlink(path)
    eventually(lambda: alarm(edge) == "", 5, lambda: f"no alarm: {alarm(edge)!r}")
    if edge.bird.version() < (3,):  # 3.x tells nobody of a SIGHUP
        edge.break_bird_conf("nonsense by SIGHUP;\n")
        edge.bird.process.send_signal(signal.SIGHUP)
        wait_alarm(edge, f"{edge.bird.conf}:1:", "not a file of ours", timeout=15)
        edge.repair_bird_conf()
        eventually(lambda: alarm(edge) == "", 5, lambda: f"no alarm: {alarm(edge)!r}")
    settled(edge)
    sent = edge.agent.status()["bird"]["commands_sent"]
    check(sent == 0, "nothing was sent that changes anything", sent)
    check(not [e for e in site.wire.since(begun) if e.kind == "withdraw"], "nobody lost a route")


main(make_site)
