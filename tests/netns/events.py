"""What happened, as programs and people are told: the document, the stream, `redshankctl events`."""

import json
import os
import signal
import socket
import subprocess
import time

from lib.agentctl import build_folder
from lib.case import check, eventually, main
from lib.pulse import Pulse
from lib.site import Site

DNS, DNS6, WEB = "192.0.2.53/32", "2001:db8::53/128", "192.0.2.80/32"
STREAMS = 16
MOST = 0.1  # seconds from kill(2) to the wire, and what the machine withheld; a late one would be told in seconds
PULSE = Pulse()

EVIL = 'a"b\\c</script>\nid: 7\n\ndata: {"id": 0}\x1b[2J'


class Stream:
    """A client of the stream, read without waiting; `events` are those that came whole."""

    def __init__(self, path, headers=""):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(10)
        self.sock.connect(path)
        self.sock.sendall(f"GET /v1/events HTTP/1.0\r\nAccept: text/event-stream\r\n{headers}\r\n".encode())
        self.sock.settimeout(0)
        self.deaf, self.text, self.events, self.ids, self.closed = False, "", [], [], False
        self.head = ""

    def read(self):
        while not self.deaf and not self.closed:
            try:
                got = self.sock.recv(65536)
            except BlockingIOError:
                break
            self.closed = not got
            self.text += got.decode()
        if not self.head:
            self.head, found, rest = self.text.partition("\r\n\r\n")
            self.text, self.head = (rest, self.head) if found else (self.text, "")
        blocks = self.text.split("\n\n")
        self.text = blocks.pop()
        for block in blocks:
            lines = block.split("\n")
            self.events += [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
            self.ids += [line[4:] for line in lines if line.startswith("id: ")]
        return self.events

    def wait_head(self):
        """The first line of the answer."""
        eventually(lambda: self.read() is not None and self.head, what="an answer")
        return self.head.split("\r\n")[0]

    def close(self):
        self.sock.close()


def healthy(site):
    agent = site.edges[0].agent
    if agent.process and agent.process.alive():
        agent.stop(signal.SIGUSR2)
    agent.config = agent.default_config()
    agent.start()
    for prefix in (DNS, DNS6, WEB):
        agent.wait_prefix(prefix, announced=True, exported=1, reason="healthy")
    agent.wait_status(lambda s: s["bird"]["settled"], what="settled")
    return agent


def document(agent, query=""):
    code, body = agent.get("/v1/events" + query)
    check(code == 200, "the document", code, body)
    return json.loads(body)


def newest(agent):
    return document(agent, "?limit=0")["newest"]


def wait_event(agent, since, **fields):
    """The first event behind `since` that has these fields."""

    def found():
        for event in document(agent, f"?since={since}")["events"]:
            if all(event.get(key) == value for key, value in fields.items()):
                return event
        return None

    return eventually(found, 20, lambda: f"an event with {fields}\n{agent.tail()}")


def test_a_death(site):
    """A death is three facts in order: the check, the service, and what it did to its prefixes."""
    agent, nsd = healthy(site), site.edges[0].nsd
    since = newest(agent)
    nsd.kill()
    service = wait_event(agent, since, event="service", service="dns", to="unhealthy")
    before = next(e for e in document(agent, f"?since={since}")["events"] if e.get("service") == "dns")
    check(before["event"] == "check" and before["check"] == "process" and before["to"] == "down", "first", before)
    check(before["id"] < service["id"] and before["instance"] == service["instance"], "in order", before, service)
    check(sorted(service["prefixes"]) == [DNS, DNS6] and service["prefix_count"] == 2, "its prefixes", service)
    check(service["wanted"] == "withdraw" and service["rule"] == "unhealthy", "what is wanted, and why", service)
    check("has died" in service["reason"] and service["reason"] in service["message"], "the reason", service)
    check(service["message"] in agent.text(), "it is the log's line", service)
    nsd.start()
    wait_event(agent, service["id"], event="service", service="dns", to="healthy")
    back = wait_event(agent, service["id"], event="prefix", service="dns", to="announce")
    check(back["rule"] == "healthy" and sorted(back["prefixes"]) == [DNS, DNS6], "and back", back)


def test_operators(site):
    """Every command is an event with who, what, why and until when; hostile words stay words."""
    agent = healthy(site)
    stream = Stream(agent.socket)
    check(" 200 " in stream.wait_head(), "the stream", stream.head)
    since = newest(agent)
    code, answer = agent.get("/v1/drain", method="POST", body=json.dumps({"name": DNS, "reason": EVIL, "for": "2h"}))
    check(code == 200, "drained", answer)
    drain = wait_event(agent, since, event="drain")
    check(drain["service"] == "dns" and drain["prefixes"] == [DNS] and drain["to"] == "drained", "what", drain)
    check(drain["who"] == f"root (uid 0, pid {os.getpid()})", "who", drain)
    check(drain["why"] == EVIL.replace("\n", "\\x0a").replace("\x1b", "\\x1b"), "why", drain["why"])
    check(drain["until"].endswith("Z") and drain["level"] == "notice", "until when", drain)
    gone = wait_event(agent, drain["id"], event="prefix", service="dns", to="withdraw")
    check(gone["prefixes"] == [DNS] and gone["rule"] == "drained", "and what it did", gone)
    for command, body in (("undrain", {"name": DNS}), ("weight", {"name": WEB, "weight": 7}),
                          ("weight", {"name": WEB, "weight": None}), ("freeze", {}), ("thaw", None),
                          ("announce", {"name": "web", "for": "1h"}), ("announce", {"name": "web", "reset": True}),
                          ("check-now", None), ("reload", None)):
        at = newest(agent)
        code, answer = agent.get(f"/v1/{command}", method="POST", body=json.dumps(body) if body is not None else None)
        check(code == 200, command, answer)
        check("root" in wait_event(agent, at, event=command)["who"], f"who said {command}")
    wait_event(agent, since, event="config_loaded")
    last = newest(agent)
    eventually(lambda: stream.read() and stream.events[-1]["id"] >= last, what="the stream has it all")
    streamed = [e for e in stream.events if e["id"] > since]  # it began a moment before
    wanted = document(agent, f"?since={since}")["events"][: len(streamed)]
    check(streamed == wanted, "the stream and the document say the same", streamed, wanted)
    check(stream.ids == [f"{e['instance']}-{e['id']}" for e in stream.events], "and with their ids", stream.ids)
    stream.close()


def test_configuration_and_bird(site):
    """A refused reload, drift, a refusing BIRD, a session and BIRD itself, gone and back."""
    agent, bird = healthy(site), site.edges[0].bird
    since = newest(agent)
    agent.write_config('{"node": "edge1", "services" }')
    agent.send_signal(signal.SIGHUP)
    reload = wait_event(agent, since, event="reload")
    check(reload["who"] == f"root (uid 0, pid {os.getpid()})", "who sent the signal", reload)
    wait_event(agent, since, event="config_refused", level="error")
    agent.send_signal(signal.SIGUSR1)
    wait_event(agent, since, event="check-now", who=reload["who"])
    check("expected" in wait_event(agent, since, event="config_problem")["message"], "the problem")
    agent.reload()
    wait_event(agent, since, event="config_loaded")
    bird.birdc('disable "redshank:web:*"')
    drift = wait_event(agent, since, event="drift")
    check(drift["protocol"] == "redshank:web:192.0.2.80" and drift["from"] == "down" and drift["to"] == "up",
          "what was changed", drift)
    check(drift["service"] == "web", "of whom", drift)
    agent.wait_prefix(WEB, announced=True)
    bird.break_config()
    agent.ctl("weight", WEB, "11")
    refused = wait_event(agent, since, event="bird_refused", level="error")
    check("syntax error" in refused["reason"], "BIRD's words", refused)
    bird.repair_config()
    wait_event(agent, since, event="bird_accepted")
    agent.ctl("weight", WEB, "--reset")
    site.bird.stop()
    down = wait_event(agent, since, event="session_down", level="warning")
    check(down["session"] and down["to"] == "down", "which session", down)
    site.bird.start()
    wait_event(agent, down["id"], event="session_up")
    bird.kill()
    wait_event(agent, down["id"], event="bird_away", level="warning")
    bird.start()
    wait_event(agent, down["id"], event="bird_connected")
    agent.wait_prefix(WEB, announced=True, exported=1)


def test_follow(site):
    """redshankctl events -f goes on over a crash of the agent, says so, and tells nothing twice."""
    agent, nsd = healthy(site), site.edges[0].nsd
    output = site.edges[0].host.path("events.json")
    with open(output, "w", encoding="utf-8") as out:
        following = subprocess.Popen(
            [os.path.join(build_folder(), "redshankctl"), "--socket", agent.socket, "--json", "events", "-f", "dns"],
            stdout=out)

    def lines():
        with open(output, encoding="utf-8") as f:
            return [json.loads(line) for line in f if line.endswith("\n")]

    def told():
        return [line for line in lines() if "id" in line]

    def said():
        return [line["error"] for line in lines() if "error" in line]

    try:
        eventually(lambda: any(e["event"] == "service" for e in told()), what="what was is told")
        agent.kill()
        eventually(lambda: "the agent is gone: waiting for it" in said(), what="that it is gone")
        agent.start()
        eventually(lambda: "the agent has started anew" in said(), what="that it is back")
        mark = len(told())
        nsd.kill()
        eventually(lambda: any(e.get("wanted") == "withdraw" for e in told()[mark:]), 20, lambda: f"the death, last {told()[-3:]}")
        check(following.poll() is None, "it goes on")
    finally:
        following.terminate()
        following.wait(10)
    nsd.start()
    events = told()
    names = [(e["instance"], e["id"]) for e in events]
    check(len(names) == len(set(names)) and len({i for i, _ in names}) == 2, "two lives, nothing twice", names)
    check(all(e.get("service") in (None, "dns") for e in events), "nothing of others", events)
    check(len(said()) == 2, "two words", said())
    done = agent.ctl("events", "192.0.2.53")
    check(done.returncode == 0 and "withdrawing 192.0.2.53/32" in done.stdout, "the events of a prefix", done)
    check("\x1b" not in done.stdout and " web" not in done.stdout, "no colours, nothing of others", done.stdout)
    check(agent.ctl("events", "nobody").returncode == 1, "nobody of that name")
    check(agent.ctl("-f", "status").returncode == 2, "-f goes with events only")
    agent.stop(signal.SIGUSR2)
    done = agent.ctl("events", "-f")
    check(done.returncode == 3 and "Is redshankd running?" in done.stderr, "without an agent", done)


def test_streams_delay_nothing(site):
    """With every place taken, some by clients that do not read, a death is withdrawn at once, and the agent idles."""
    agent, nsd = healthy(site), site.edges[0].nsd
    streams = [Stream(agent.socket) for _ in range(STREAMS)]
    check(all(" 200 " in s.wait_head() for s in streams), "they are there")
    for stream in streams[::4]:
        stream.deaf = True
    refused = Stream(agent.socket)
    check(" 503 " in refused.wait_head(), "one more is refused", refused.head)
    refused.close()
    found = []
    for _ in range(3):
        killed = nsd.kill()
        gone = site.wire.wait_withdraw("edge1", DNS, since=killed).time
        found.append(gone - killed - PULSE.withheld(killed))
        nsd.start()
        site.wire.wait_announce("edge1", DNS, since=gone, timeout=20)
    print(f"    kill to withdrawal {[round(1000 * t, 1) for t in found]} ms")
    check(sorted(found)[1] < MOST, "the median", found)
    last = newest(agent)
    for stream in streams:
        if not stream.deaf:
            eventually(lambda s=stream: s.read() and s.events[-1]["id"] >= last, what="each gets all")
    begun = time.monotonic()
    with open(f"/proc/{agent.pid}/stat", encoding="ascii") as f:
        before = sum(map(int, f.read().split()[13:15]))
    time.sleep(1)  # a span to measure, not a wait
    with open(f"/proc/{agent.pid}/stat", encoding="ascii") as f:
        used = sum(map(int, f.read().split()[13:15])) - before
    took = time.monotonic() - begun
    check(used < 30 * took, "an agent that watches and streams does not spin", f"{used} ticks in {took:.1f} s")
    for stream in streams:
        stream.close()
    check(not agent.sanitizer_report(), "no sanitizer has a word", agent.sanitizer_report())


main(lambda: Site(edges=1))
