"""The second act of tests/try: a server that has too much to do hands some of it to neighbours.

Every line about an outcome comes from the router's packets, from the clients' answers, or from what an
agent logged with the time at which it did. This file only does things, and waits for what must come.
"""

import datetime
import os
import re
import time

from lib import play
from lib.dnsperf import percentile
from lib.narrator import Narrator
from lib.shedsite import STARTING, LoadedSite, lowest
from lib.wait import TimedOut, until
from lib.wire import ANNOUNCE, WITHDRAW

OVERLOAD = 1.03  # of what fits through the slow edge's link
QUICK = 20  # milliseconds

INTRODUCTION = """
The second act: four edges share five addresses, each as good as the others (ECMP), and clients ask 600
times a second from 1,800 sockets. The agents are neighbours: they tell each other how much they have to
do, and promise each other room, over HTTPS with a certificate on both sides.

    clients ---- router -+- edge1   192.0.2.101 ... 192.0.2.105 (dns: nsd), all with weight 100
                         +- edge2   the same
                         +- edge3   the same
                         +- edge4   the same"""

# What an agent logs, and how it is told.
TOLD = (
    (r"promised (\S+) to go on announcing (\S+) while it does not", "promises {0} to go on announcing {1}, and has the room"),
    (r"shed (\S+) of \S+: overload, promised by (.*)", "sheds {0}: {1} have promised to take it"),
    (r"(\S+) is shed no more: released", "takes {0} back: there is room for it again"),
)


class Nobody:
    """In the place of an Asker, for the Narrator: nobody is told of query by query."""

    queries, period = (), 1.0


class Overload:
    def __init__(self):
        self.site = LoadedSite()
        self.edge1 = self.site.edges[0]
        self.teller = Narrator(self.site, Nobody())
        self._read = {edge.name: 0 for edge in self.site.edges}

    def listen(self):
        """What the agents have logged since the last time goes to the teller."""
        for edge in self.site.edges:
            text = edge.agent.text()
            whole = text.rfind("\n") + 1
            for line in text[self._read[edge.name]:whole].splitlines():
                stamp, _, said = line.partition(" redshankd: ")
                for pattern, words in TOLD:
                    found = re.fullmatch(pattern + r"(?: \(shed\))?", said)
                    if found:
                        when = datetime.datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp()
                        self.teller.hear(when, edge.name, words.format(*found.groups()))
            self._read[edge.name] = whole

    def until(self, condition, timeout, what):
        """Waits, and tells meanwhile."""

        def holds():
            self.listen()
            self.teller.tell()
            return condition()

        return until(holds, timeout, what, every=0.05)

    def moved(self, kind):
        return self.site.moves(self.teller.acted, kind)

    def served(self, seconds):
        """How fast the clients have been answered in the last seconds."""
        end = time.time()
        times = self.site.latencies(end - seconds, end)
        ms = 1000 * percentile(times, 0.9)
        self.teller.hear(end, "clients", f"9 of 10 answers come within {ms:.{0 if ms > 10 else 1}f} ms", "client")
        return ms

    def shares(self):
        rates = ", ".join(f"{e.name} {e.gauge.rate:.0f}" for e in self.site.edges)
        self.teller.note(f"queries a second: {rates}")

    def begin(self):
        self.teller.head("Who has just started asks for nothing: it may have promised something, and have forgotten it.")
        self.teller.act("redshankd starts on all four edges; the clients begin to ask")
        self.site.start()
        self.teller.skip()
        self.teller.note("all five addresses are announced by all four edges")
        self.site.ask()
        self.until(lambda: time.time() > self.teller.acted + 6, 8, "the load is known")
        for edge in self.site.edges:
            self.site.well(edge)
        self.shares()
        self.served(2)

    def overload(self):
        self.teller.head("An edge gets too much to do. Nothing is unhealthy; it is only slow.")
        self.teller.act("the link of edge1 no longer holds what it has to answer")
        self.site.slow(self.edge1, OVERLOAD)
        left = self.site.started + STARTING - time.time()
        self.teller.note(f"it looks on for a while, and asks the others before it does anything (some {left + 3:.0f} s)")
        self.until(lambda: time.time() > self.site.started + STARTING, STARTING, "the agents have started")
        slow = self.served(2)
        self.until(lambda: self.moved(WITHDRAW), 20, lambda: f"edge1 sheds a prefix\n{self.edge1.agent.ctl('explain', 'dns').stdout}")
        self.until(lambda: self.site.relieved(self.edge1, self.teller.acted), 60, lambda: f"edge1 is relieved: {self.edge1.gauge}\n{self.edge1.agent.ctl('explain', 'dns').stdout}")
        fast = max(slow / 2, QUICK)  # a queue that a stop of the machine has emptied is not slow
        self.until(lambda: self.site.faster(fast / 1000, 2), 10, f"the clients are served fast again, not in {slow:.1f} ms")
        self.served(2)
        self.shares()
        gone = [prefix for _, prefix, _ in self.moved(WITHDRAW)]
        if {edge for edge, _, _ in self.moved(WITHDRAW)} != {"edge1"}:
            raise TimedOut(f"edge1 alone should have shed: {self.moved(WITHDRAW)}")
        self.teller.note(f"{5 - len(gone)} of its 5 addresses stay: it has enough to do with them")
        return gone

    def well(self, gone):
        self.teller.head("And when it is well it takes back what it gave" + (", the last one first." if gone[1:] else "."))
        self.teller.act("the link of edge1 is as wide as before")
        acted = self.teller.acted
        self.site.heal(self.edge1)
        self.teller.note("it has to stay well for a while first (some 10 s for each address)")
        self.until(lambda: len(self.moved(ANNOUNCE)) >= len(gone), 15 + 15 * len(gone), "edge1 takes them back")
        back = [prefix for _, prefix, _ in self.moved(ANNOUNCE)]
        if back != gone[::-1]:
            raise TimedOut(f"they should have come back in reverse order: {gone}, {back}")
        self.until(lambda: time.time() > self.moved(ANNOUNCE)[-1][2] + 2.2, 4, "a moment")
        self.served(2)
        lost = self.site.lost(acted + 0.5, time.time() - 1.0)
        fewest = min(lowest(self.site, prefix, self.began) for prefix in gone)
        self.teller.note(f"{lost} queries lost on the way back; no address was ever announced by fewer than {fewest} edges")

    def tell(self):
        self.teller.say(INTRODUCTION)
        self.begin()
        self.began = time.time()
        self.well(self.overload())
        problems = self.site.problems()
        if problems:
            raise TimedOut("; ".join(problems))
        self.teller.head(f"That was the second act, in {time.time() - self.teller.start:.0f} s.")

    def stay(self):
        self.teller.settle()
        self.teller.forget_act()
        self.teller.say(play.text(play.write(self.site), self.site))
        slow = set()
        while True:
            for edge in self.site.edges:
                for thing in (edge.nsd, edge.bird, edge.agent):
                    thing.process.alive()  # reaps what the reader has killed
                wanted = os.path.exists(edge.host.path("slow"))
                if wanted and edge.name not in slow and edge.gauge.rate > 1:
                    slow.add(edge.name)
                    self.site.slow(edge, OVERLOAD)
                elif not wanted and edge.name in slow:
                    slow.discard(edge.name)
                    self.site.heal(edge)
            self.listen()
            self.teller.tell()
            time.sleep(0.2)
