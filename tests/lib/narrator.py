"""Tells in plain words, in time order, what the router's packets and the client's answers say.

A Narrator reads a site's wire and an Asker; it is told only what was *done* (act), never what came
of it. Each line has the time since the beginning, and the time since the last act. A line is held
back while something earlier may still turn up: a query counts as lost only after a while.
"""

import sys
import time

from lib.wait import until
from lib.wire import ANNOUNCE, CLOSED, NOTIFIED, OPENED, WITHDRAW

GIVEN_UP = 0.5  # seconds after which a query without an answer counts as lost

COLOURS = {"act": "1;33", WITHDRAW: "31", ANNOUNCE: "32", "client": "36", "bad": "1;31", "head": "1", "dim": "2"}

WORDS = {
    ANNOUNCE: "{e.edge} announces {name}, weight {e.med}",
    WITHDRAW: "{e.edge} withdraws {name}",
    OPENED: "{e.edge} opens its {e.session} session",
    CLOSED: "{e.edge} closes its {e.session} session, and its routes go with it",
    NOTIFIED: "{e.edge} ends its {e.session} session",
}


class Narrator:
    def __init__(self, site, asker, out=sys.stdout):
        self.site = site
        self.asker = asker
        self.out = out
        self.start = None  # the first act
        self.acted = 0.0  # when the last act was done
        self._told_act = None  # the last act that has been told: what times are counted from
        self._held = []  # lines that are not told yet: (time, kind, who, text)
        self._event = len(site.wire.events)  # the first one that was not looked at
        self._query = 0  # likewise
        self._by = None  # who answered last
        self._lost = 0  # since then
        self._names = {}
        for edge in site.edges:
            for name, service in edge.agent.config["services"].items():
                self._names.update({prefix: name for prefix in service["prefixes"]})

    def paint(self, kind, text):
        return f"\033[{COLOURS[kind]}m{text}\033[0m" if self.out.isatty() else text

    def say(self, text=""):
        print(text, file=self.out, flush=True)

    def head(self, text):
        self.settle()
        self.say("\n" + self.paint("head", text))

    def act(self, text, when=None):
        """Something was done at `when` (default now); what happens from here on is told against it."""
        self.acted = when or time.time()
        self.start = self.start or self.acted
        self._held.append((self.acted, "act", ">>>", text))

    def forget_act(self):
        """From here on others act, and times are counted from the beginning alone."""
        self._told_act = None

    def note(self, text):
        """A fact that was checked, and is the absence of an event, or what the client saw just now."""
        self._held.append((time.time(), "dim", "", text))

    def hear(self, when, who, text, kind="dim"):
        """Somebody else's word, with the time at which it was said."""
        self._held.append((when, kind, who, text))

    def skip(self):
        """What the wire has shown until now is not told."""
        self._event = len(self.site.wire.events)

    def tell(self):
        """Tells, in time order, all that is certain by now."""
        self._look_at_wire()
        certain = self._look_at_queries()
        self._held.sort(key=lambda line: line[0])
        while self._held and self._held[0][0] <= certain:
            self._line(*self._held.pop(0))

    def settle(self):
        """Tells all that has happened until now; takes as long as a lost query needs to be one."""
        now = time.time()

        def told():
            self.tell()
            return self._certain >= now

        until(told, 15, "the client's queries are answered or lost")

    def _line(self, when, kind, who, text):
        after = ""
        if kind == "act":
            self._told_act = when
        elif self._told_act is not None:
            ms = (when - self._told_act) * 1000
            after = f"{ms:.1f} ms" if ms < 1000 else f"{ms / 1000:.2f} s"
        self.say(f"{when - self.start:+9.3f} s {after:>10}  " + self.paint(kind, f"{who:<7} {text}"))

    def _look_at_wire(self):
        events = self.site.wire.events
        while self._event < len(events):
            e = events[self._event]
            self._event += 1
            if e.kind in WORDS:
                name = f"{e.prefix:<16} ({self._names[e.prefix]})" if e.prefix in self._names else e.prefix
                kind = e.kind if e.kind in COLOURS else "dim"
                self._held.append((e.time, kind, "router", WORDS[e.kind].format(e=e, name=name)))

    def _look_at_queries(self):
        """Holds a line whenever somebody else answers. Returns the time until which all is known."""
        queries = self.asker.queries
        self._certain = time.time()
        while self._query < len(queries):
            query = queries[self._query]
            if query.by:
                if query.by != self._by or self._lost:
                    self._held.append((query.answered, "client", "client", self._served(query)))
                self._by, self._lost = query.by, 0
            elif self._certain - query.sent < GIVEN_UP:
                self._certain = query.sent  # its answer may still come
                break
            else:
                self._lost += self._by is not None
                self._silence(query)
            self._query += 1
        return self._certain

    def _silence(self, query):
        """Every second without an answer is worth a line."""
        if self._lost and self._lost % max(1, round(1 / self.asker.period)) == 0:
            self._held.append((query.sent, "client", "client", f"nobody answers; {self._lost} queries lost so far"))

    def _served(self, query):
        if self._by is None:
            return f"{query.by} answers"
        lost = {0: "no query lost", 1: "1 query lost"}.get(self._lost, f"{self._lost} queries lost")
        if query.by == self._by:
            return f"{query.by} answers again; {lost}"
        return f"{query.by} answers, no longer {self._by}; {lost}"
