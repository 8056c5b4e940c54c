"""The story that tests/try tells: what happens at a router and to a client while things die.

Every line about an outcome comes from the router's packets or the client's answers (narrator.py);
this file only does things to the site and waits for what must come of them. What does not come in
time ends the story with exit status 1.
"""

import signal
import sys
import time

from lib.netns import Cannot
from lib.narrator import Narrator
from lib.overload import Overload
from lib.site import Site
from lib.wait import TimedOut, until
from lib.wire import ANNOUNCE

DNS, DNS6, WEB = "192.0.2.53/32", "2001:db8::53/128", "192.0.2.80/32"
RATE = 500

# As an operator might set them; the design's defaults, somewhat faster.
CHECKS = {"interval": "500ms", "fast_interval": "200ms", "timeout": "400ms", "rise": 3, "fall": 2}


INTRODUCTION = """
Two edges announce the same addresses; the router takes the one with the lower weight; a client asks
500 times a second. The times are those of the router's packets and of the client's answers, since
the beginning and since the last thing that was done (>>>).

    client ---- router -+- edge1   weight 100   192.0.2.53, 2001:db8::53 (dns: nsd)
                        +- edge2   weight 200   192.0.2.80 (web: nginx)"""


class Story:
    def __init__(self, site):
        self.site = site
        self.edge1, self.edge2 = site.edges
        for edge in site.edges:
            edge.agent.config["defaults"] = dict(CHECKS)
        self.asker = site.asker(rate=RATE)
        self.teller = Narrator(site, self.asker)

    # What must come, or the story ends here.

    def withdrawn(self, edge, *prefixes, timeout=10.0):
        for prefix in prefixes:
            self.site.wire.wait_withdraw(edge, prefix, timeout, since=self.teller.acted)

    def announced(self, edge, *prefixes, timeout=30.0):
        for prefix in prefixes:
            self.site.wire.wait_announce(edge, prefix, timeout, since=self.teller.acted)

    def served_by(self, edge):
        """The client's queries have moved to `edge`: 20 answers in a row; the next ones may still come."""

        def all_from_edge():
            recent = self.asker.queries[-RATE:]
            while recent and not recent[-1].by:
                recent.pop()
            last = recent[-20:]
            return len(last) == 20 and all(q.by == edge and q.sent >= self.teller.acted for q in last)

        until(all_from_edge, 20, lambda: f"{edge} answers the client; {self.asker.summary(self.teller.acted)}")
        self.teller.settle()

    def page_from(self, edge):
        until(lambda: self.site.fetch(timeout=0.5) == edge, 20, f"{edge} serves the page")
        self.teller.note(f"the client fetches a page: it comes from {edge}")

    def none_lost(self):
        """Every query since the last act has been answered, or is in a moment."""
        end = time.time()
        until(lambda: not self.asker.lost(self.teller.acted, end), 3,
              lambda: f"no query should have been lost, but {self.asker.lost(self.teller.acted, end)} were")

    def untouched(self, *prefixes):
        """No UPDATE about these prefixes since the last act."""
        touched = [e for p in prefixes for e in self.site.wire.since(self.teller.acted, prefix=p)]
        if touched:
            raise TimedOut("these should have been left alone: " + "; ".join(map(str, touched)))

    def quiet(self, seconds):
        """No UPDATE and no closed session for that long, counted from the last act."""
        end = self.teller.acted + seconds
        while time.time() < end:
            events = self.site.wire.since(self.teller.acted, kinds=None)
            if events:
                raise TimedOut("the router should have seen nothing: " + "; ".join(map(str, events)))
            time.sleep(0.02)
        self.none_lost()
        self.teller.note(f"for {seconds:g} s the router saw no UPDATE, and no query was lost")

    # The chapters.

    def begin(self):
        self.teller.head("Both edges start redshankd. Nothing is announced until its checks have passed.")
        self.teller.act("redshankd starts on edge1 and edge2")
        for edge in self.site.edges:
            edge.agent.start(wait=False)
        for edge in ("edge1", "edge2"):
            self.announced(edge, DNS, DNS6, WEB)
        self.served_by("edge1")

    def kill_nsd(self):
        self.teller.head("A process dies: its addresses leave, and no others.")
        self.teller.act("kill -9: nsd on edge1", self.edge1.nsd.kill())
        self.withdrawn("edge1", DNS, DNS6)
        self.served_by("edge2")
        self.untouched(WEB)
        self.teller.note(f"{WEB} (web) was not touched")

    def start_nsd(self):
        self.teller.head("It comes back, and earns its addresses: three good checks in a row.")
        self.teller.act("nsd starts on edge1")
        self.edge1.nsd.start()
        self.announced("edge1", DNS, DNS6)
        self.served_by("edge1")

    def freeze_nginx(self):
        self.teller.head("A service hangs: alive, and silent. Two checks in a row time out.")
        self.page_from("edge1")
        self.teller.act("SIGSTOP: nginx on edge1")
        self.edge1.nginx.freeze()
        self.withdrawn("edge1", WEB)
        self.page_from("edge2")
        self.untouched(DNS, DNS6)
        self.teller.act("SIGCONT: nginx on edge1")
        self.edge1.nginx.thaw()
        self.announced("edge1", WEB)
        self.page_from("edge1")

    def change_weight(self):
        self.teller.head("The network team prefers edge2 for a while: one table of weights for the whole fleet.")
        table = {"edge1": {DNS: 300, DNS6: 300}, "edge2": {DNS: 200, DNS6: 200}}
        self.weigh(table, "both edges get the table (edge1: 300, edge2: 200), and HUP", 300)
        self.served_by("edge2")
        self.moved_gently()
        self.weigh({}, "the table is taken back, and HUP", 100)
        self.served_by("edge1")
        self.moved_gently()

    def weigh(self, table, what, expected):
        self.teller.act(what)
        for edge in self.site.edges:
            edge.agent.config["weights"] = table
            edge.agent.reload()
        for prefix in (DNS, DNS6):
            self.site.wire.wait_announce("edge1", prefix, since=self.teller.acted, med=expected)

    def moved_gently(self):
        """What moved since the last act moved by one UPDATE a prefix of edge1, and lost nothing."""
        events = self.site.wire.since(self.teller.acted, kinds=None)
        if sorted((e.edge, e.kind, e.prefix) for e in events) != [("edge1", ANNOUNCE, DNS), ("edge1", ANNOUNCE, DNS6)]:
            raise TimedOut("edge1 should have announced two prefixes, and nothing else: " + "; ".join(map(str, events)))
        self.none_lost()
        self.teller.note("one UPDATE a prefix, no withdrawal, and nothing from edge2, whose weights are the same")

    def broken_conf(self):
        self.teller.head("Somebody breaks bird.conf, and then nsd dies: no `configure` would pass now.")
        self.teller.act("a line of nonsense gets into bird.conf on edge1")
        self.edge1.break_bird_conf()
        self.quiet(1.0)
        reply = self.edge1.birdc("configure check")
        if reply.code != "8002":
            raise TimedOut(f"BIRD should refuse its bird.conf: {reply}")
        self.teller.act("kill -9: nsd on edge1", self.edge1.nsd.kill())
        self.withdrawn("edge1", DNS, DNS6)
        self.served_by("edge2")
        self.teller.act("nsd starts on edge1; bird.conf is still broken")
        self.edge1.nsd.start()
        self.announced("edge1", DNS, DNS6)
        self.served_by("edge1")
        self.teller.act("bird.conf on edge1 is repaired")
        self.edge1.repair_bird_conf()
        self.quiet(1.0)

    def kill_agent(self):
        self.teller.head("redshankd itself dies: BIRD keeps what was true, and the next redshankd takes it over.")
        self.teller.act("kill -9: redshankd on edge1", self.edge1.agent.kill())
        self.quiet(1.0)
        self.teller.act("redshankd starts on edge1")
        self.edge1.agent.start()
        self.quiet(2.0)
        self.teller.head("And if the world changes while it is away, the next one corrects it at once.")
        self.teller.act("kill -9: redshankd, and then nsd, on edge1", self.edge1.agent.kill())
        self.edge1.nsd.kill()
        until(lambda: self.asker.lost(self.teller.acted) > 20, 10, "the client notices that nobody withdraws")
        self.teller.act("redshankd starts on edge1")
        self.edge1.agent.start(wait=False)
        self.withdrawn("edge1", DNS, DNS6)
        self.served_by("edge2")
        self.teller.act("nsd starts on edge1")
        self.edge1.nsd.start()
        self.announced("edge1", DNS, DNS6)
        self.served_by("edge1")

    def restart_bird(self):
        self.teller.head("BIRD dies and comes back: so do the routes.")
        self.teller.act("kill -9: BIRD on edge1", self.edge1.bird.kill())
        self.served_by("edge2")
        self.teller.act("BIRD starts on edge1")
        self.edge1.bird.start()
        self.announced("edge1", DNS, DNS6, WEB)
        self.served_by("edge1")

    def tell(self):
        self.teller.say(INTRODUCTION)
        self.begin()
        counted = time.time()  # before, nobody was there to answer
        for chapter in (
            self.kill_nsd, self.start_nsd, self.freeze_nginx, self.change_weight, self.broken_conf,
            self.kill_agent, self.restart_bird,
        ):
            chapter()
        problems = self.site.problems()
        if problems:
            raise TimedOut("; ".join(problems))
        end = time.time() - 0.3  # later queries may still be answered
        self.teller.head(
            f"All of it happened, in {end - self.teller.start:.0f} s: {len(self.asker.between(counted, end))} queries, "
            f"{self.asker.lost(counted, end)} lost."
        )


def stopped(*_):
    raise KeyboardInterrupt


ACTS = {"1": lambda: Story(Site(edges=2)), "2": Overload}


def tell(name, stays):
    """One act; stays, if it is told to. The exit status."""
    act = ACTS[name]()
    try:
        act.tell()
        if stays:
            act.stay()
        return 0
    except (AssertionError, OSError) as e:
        act.teller.tell()
        act.teller.say(act.teller.paint("bad", f"\nThis did not happen: {e}\n"))
        act.teller.say(act.site.report())
        return 1
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        act.site.close()
        signal.signal(signal.SIGINT, signal.default_int_handler)


def main():
    """Arguments: --once, and --act N for one of them alone."""
    once = "--once" in sys.argv[1:]
    acts = [sys.argv[sys.argv.index("--act") + 1]] if "--act" in sys.argv else list(ACTS)
    signal.signal(signal.SIGTERM, stopped)
    try:
        for name in acts:
            failed = tell(name, stays=not once and name == "2")
            if failed:
                return failed
        return 0
    except Cannot as e:
        print(f"This machine cannot hold the site: {e}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nEverything is taken down again.")
        return 130 if once else 0


sys.exit(main())
