"""How busy a server is: its signals, and what each prefix has of them, on the real site.

The number of a service stands in a file, comes from a command and from a page; the kernel's signals
are the machine's own. Real packets to two addresses are counted by real rules of nftables.
"""

import json
import os
import socket
import subprocess
import sys
import threading
import time

from lib.agentctl import build_folder
from lib import exposition
from lib.case import check, eventually, main
from lib.netns import needs
from lib.site import Site
from lib.web import Fake

DNS, WEB = "192.0.2.53/32", "192.0.2.80/32"
FAST = "500ms"  # the shortest interval: ten samples are five seconds


def make_site():
    needs("nft")
    return Site(edges=1)


def with_load(site, load):
    """The agent with this section, anew or by a reload."""
    agent = site.edges[0].agent
    agent.config["load"] = load
    if agent.process and agent.process.alive():
        agent.write_config()
        code, answer = agent.get("/v1/reload", method="POST")
        check(code == 200, "the configuration is taken", answer)
    else:
        agent.start()
    return agent


def signal(agent, name):
    return agent.status()["load"]["signals"][name]


def wait_signal(agent, name, condition, timeout=20.0):
    return eventually(lambda: (lambda s: s if condition(s) else None)(signal(agent, name)), timeout,
                      lambda: f"signal {name}: {signal(agent, name)}")


def wait_load(agent, what, **fields):
    """A signal that a starved machine has not answered in time is back with the next sample."""
    agent.wait_status(lambda s: all(s["load"][key] == value for key, value in fields.items()), what=what)


def test_numbers_of_a_service(site):
    """A file, a command and a page give numbers; the largest part of a limit is the load."""
    host = site.edges[0].host
    path = host.path("queue")
    page = {"text": "# TYPE work gauge\nwork{kind=\"a\"} 20\nwork{kind=\"b\"} 15\nother 9\n"}

    def serve(connection):
        while connection.recv(4096):
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s"
                               % (len(page["text"]), page["text"].encode()))

    fake = Fake(host, "127.0.0.1", 8099, serve)
    with open(path, "w", encoding="ascii") as f:
        f.write("25\n")
    agent = with_load(site, {"capacity": 200, "interval": FAST, "signals": {
        "file": {"type": "file", "file": path, "limit": 100},
        "command": {"type": "command", "command": ["/bin/echo", '{"q": [{"n": 12.5}]}'], "format": "json",
                    "key": "q.0.n", "limit": 100},
        "page": {"type": "url", "url": "http://127.0.0.1:8099/metrics", "format": "prometheus", "key": "work",
                 "limit": 100}}})
    wait_signal(agent, "file", lambda s: s["value"] == 25 and s["utilisation"] == 2500 and s["error"] is None)
    wait_signal(agent, "command", lambda s: s["value"] == 12.5)
    wait_signal(agent, "page", lambda s: s["value"] == 35)
    wait_load(agent, "the largest counts", utilisation=3500, load=70, heaviest="page")
    page["text"] = "other 9\n"
    wait_signal(agent, "page", lambda s: s["value"] is None and "no series" in s["error"])
    wait_load(agent, "what is missing drops out", utilisation=2500, heaviest="file")
    agent.wait_log("load: signal page: not known: no series \"work\"")
    check(agent.text().count("signal page: not known: no series") == 1, "it is said once", agent.text())
    page["text"] = "work 90\n"
    wait_signal(agent, "page", lambda s: s["value"] == 90)
    agent.wait_log("load: signal page: known again")
    os.unlink(path)
    wait_signal(agent, "file", lambda s: s["value"] is None and "No such file" in s["error"])
    fake.close()


def test_what_hangs(site):
    """A command that hangs is ended in time; with no signal left, the load is not known."""
    agent = with_load(site, {"interval": FAST, "signals": {
        "slow": {"type": "command", "command": ["/bin/sleep", "60"], "limit": 1, "timeout": "100ms"}}})
    wait_signal(agent, "slow", lambda s: s["error"] == "no answer within 100ms")
    wait_load(agent, "not known", utilisation=None, load=None, heaviest=None)
    agent.wait_prefix(DNS, reason="healthy")


def ticks():
    """(now, busy, all) of all processors, by our own arithmetic."""
    with open("/proc/stat", encoding="ascii") as f:
        fields = [int(n) for n in f.readline().split()[1:9]]
    return time.monotonic(), sum(fields) - fields[3] - fields[4], sum(fields)


def shares(seen):
    """How busy they were in any span of ten samples or so that ended just now: what else runs here comes and goes."""
    now = seen[-1][0]
    return [100 * (b[1] - a[1]) / (b[2] - a[2])
            for a in seen for b in seen if now - b[0] < 0.8 and 4.2 < b[0] - a[0] < 5.8 and b[2] > a[2]]


def test_the_processors(site):
    """What the agent says of the processors is what the kernel counted, at rest and while they burn."""
    agent = with_load(site, {"interval": FAST, "signals": {"cpu": {"type": "cpu"},
                                                           "pressure": {"type": "pressure", "limit": 100}}})
    wait_signal(agent, "pressure", lambda s: s["value"] is not None)
    for burning in (False, True):
        burners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(burning and os.cpu_count())]
        try:
            seen = []

            def agrees():
                value = signal(agent, "cpu")["value"]
                seen.append(ticks())
                spans = shares(seen)
                return spans and min(spans) - 6 < value < max(spans) + 6 and (not burning or value > 90)

            eventually(agrees, 20, lambda: f"{signal(agent, 'cpu')} is near {shares(seen)}", every=0.1)
        finally:
            for burner in burners:
                burner.kill()
                burner.wait()


def test_the_uplink(site):
    """Bytes against the speed that is paid for; nobody knows that of a veth but who configures it."""
    edge = site.edges[0]
    name = next(link["ifname"] for link in json.loads(edge.host.run(["ip", "-j", "link"]).stdout)
                if link["ifname"] != "lo")
    agent = with_load(site, {"interval": FAST, "signals": {
        "uplink": {"type": "interface", "interface": name, "speed": 10, "limit": 100},
        "none": {"type": "interface", "interface": "nosuch0"},
        "drops": {"type": "softnet"}, "queues": {"type": "listen"}, "flows": {"type": "conntrack"}}})
    for signal_name in ("drops", "queues", "flows"):
        wait_signal(agent, signal_name, lambda s: s["value"] is not None)
    wait_signal(agent, "none", lambda s: s["value"] is None and "nosuch0" in s["error"])
    stop = threading.Event()

    def send():  # 600 datagrams of 1000 bytes a second are about 5 Mbit/s
        with site.client.inside():
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        while not stop.wait(0.01):
            for _ in range(6):
                s.sendto(b"x" * 960, ("192.0.2.53", 9))

    sender = threading.Thread(target=send)
    sender.start()
    try:
        wait_signal(agent, "uplink", lambda s: s["value"] is not None and 20 < s["value"] < 100, 15)
    finally:
        stop.set()
        sender.join()


def prefix_load(agent, prefix):
    service = "dns" if prefix == DNS else "web"
    return agent.status()["services"][service]["prefixes"][prefix]["load"]


def counters(agent):
    """Lays the rules that redshankd prints, twice: the second time changes nothing."""
    rules = subprocess.run([os.path.join(build_folder(), "redshankd"), "-c", agent.conf, "--counters"],
                           check=True, capture_output=True, text=True, timeout=20).stdout
    for _ in range(2):
        agent.edge.host.run(["nft", "-f", "-"], input=rules)


def test_counted_by_nftables(site):
    """Three packets for one address and one for the other: three quarters of the load, and one."""
    host = site.edges[0].host
    path = host.path("busy")
    with open(path, "w", encoding="ascii") as f:
        f.write("80\n")
    agent = with_load(site, {"interval": FAST, "signals": {"busy": {"type": "file", "file": path, "limit": 100}},
                             "prefixes": {"type": "nftables"}})
    eventually(lambda: agent.status()["load"]["prefixes"]["error"], what="no counters yet")
    check("have no counter" in agent.status()["load"]["prefixes"]["error"], "and it says what to do",
          agent.status()["load"])
    check(prefix_load(agent, DNS) is None, "not known", prefix_load(agent, DNS))
    began = time.monotonic()
    counters(agent)
    stop = threading.Event()

    def send():
        with site.client.inside():
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        while not stop.wait(0.01):
            for _ in range(3):
                s.sendto(b"x", ("192.0.2.53", 9))
            s.sendto(b"x", ("192.0.2.80", 9))

    sender = threading.Thread(target=send)
    sender.start()
    try:
        eventually(lambda: prefix_load(agent, WEB) is not None, 30, "the loads are known")
        check(time.monotonic() - began > 4, "after ten samples", time.monotonic() - began)
        check(agent.status()["load"]["prefixes"]["error"] is None, "nothing is wrong", agent.status()["load"])
        eventually(lambda: abs(prefix_load(agent, DNS) - 60) < 6 and abs(prefix_load(agent, WEB) - 20) < 6, 20,
                   lambda: f"shares: {prefix_load(agent, DNS)}, {prefix_load(agent, WEB)}; wanted 60 and 20")
        said = agent.ctl("explain", WEB).stdout
        check("of the 80.0 that this server does" in said, "explain says it", said)
        rows = {words[0]: words for words in map(str.split, agent.ctl("status").stdout.splitlines()) if words}
        column = rows["PREFIX"].index("LOAD")
        check(abs(float(rows[DNS][column]) - 60) < 8 and abs(float(rows[WEB][column]) - 20) < 8, "status has a column", rows)
        page = agent.get("/metrics")[1].decode()
        check(exposition.value(page, "redshank_load_utilisation_ratio") == 0.8, "the metric", page)
        check(exposition.value(page, "redshank_load_signal_value", signal="busy") == 80, "its signal", page)
        check(abs(exposition.value(page, "redshank_prefix_load", prefix=WEB) - 20) < 8, "its share", page)
        agent.write_config()  # a reload that changes nothing here keeps what was counted
        agent.get("/v1/reload", method="POST")
        check(prefix_load(agent, DNS) is not None, "a reload keeps it", agent.status()["load"])
        host.run(["nft", "reset", "counters", "table", "inet", "redshank"])
        eventually(lambda: prefix_load(agent, DNS) is None, 4, "a counter that fell begins anew")
        eventually(lambda: prefix_load(agent, DNS) is not None, 30, "and is known again")
        host.run(["nft", "delete", "table", "inet", "redshank"])
        eventually(lambda: prefix_load(agent, DNS) is None, what="without rules nothing is known")
    finally:
        stop.set()
        sender.join()


main(make_site)
