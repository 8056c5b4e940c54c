"""Tells in plain words, in time order, what the router's packets and the client's answers say.

A Narrator reads a site's wire and an Asker; it is told only what was *done* (act), never what came
of it. Each line has the time since the beginning, and the time since the last act.
"""

import sys
import time

from lib.wire import ANNOUNCE, CLOSED, NOTIFIED, OPENED, WITHDRAW

GIVEN_UP = 0.5  # seconds after which a query without an answer counts as lost

COLOURS = {"act": "1;33", WITHDRAW: "31", ANNOUNCE: "32", "client": "36", "bad": "1;31", "head": "1", "dim": "2"}


class Narrator:
    def __init__(self, site, asker, out=sys.stdout):
        self.site = site
        self.asker = asker
        self.out = out
        self.start = time.time()
        self.acted = None  # when the last act was done
        self._event = len(site.wire.events)
        self._query = 0
        self._by = None  # who answered last
        self._lost = 0  # since somebody answered last
        self._silent_since = 0.0
        self._names = {}
        for edge in site.edges:
            for name, service in edge.agent.config["services"].items():
                self._names.update({prefix: name for prefix in service["prefixes"]})

    def paint(self, kind, text):
        return f"\033[{COLOURS[kind]}m{text}\033[0m" if self.out.isatty() else text

    def say(self, text=""):
        print(text, file=self.out, flush=True)

    def head(self, text):
        self.say("\n" + self.paint("head", text))

    def _line(self, when, kind, who, text, since=True):
        after = ""
        if since and self.acted is not None:
            ms = (when - self.acted) * 1000
            after = f"{ms:.1f} ms" if ms < 1000 else f"{ms / 1000:.2f} s"
        self.say(f"{when - self.start:+9.3f} s {after:>10}  " + self.paint(kind, f"{who:<7} {text}"))

    def act(self, text, when=None):
        """Something was done at `when` (default now); what happens from here on is told against it."""
        self.tell()
        self.acted = when or time.time()
        self._line(self.acted, "act", ">>>", text, since=False)

    def note(self, text):
        """A fact that was checked, and is the absence of an event."""
        self._line(time.time(), "dim", "", text)

    def tell(self):
        """Tells what has happened since the last call, in time order."""
        lines = self._wire_lines() + self._client_lines()
        for line in sorted(lines, key=lambda line: line[0]):
            self._line(*line)

    def _wire_lines(self):
        events = self.site.wire.events
        fresh, self._event = events[self._event : len(events)], len(events)
        words = {
            ANNOUNCE: lambda e: f"{e.edge} announces {self._called(e.prefix)}, weight {e.med}",
            WITHDRAW: lambda e: f"{e.edge} withdraws {self._called(e.prefix)}",
            OPENED: lambda e: f"{e.edge} opens a BGP session",
            CLOSED: lambda e: f"{e.edge} closes a BGP session, and its routes with it",
            NOTIFIED: lambda e: f"{e.edge} ends a BGP session",
        }
        return [
            (e.time, e.kind if e.kind in COLOURS else "dim", "router", words[e.kind](e)) for e in fresh if e.kind in words
        ]

    def _called(self, prefix):
        return f"{prefix:<16} ({self._names[prefix]})" if prefix in self._names else prefix

    def _client_lines(self):
        """One line whenever somebody else answers, and when an outage begins or ends."""
        lines = []
        now = time.time()
        queries = self.asker.queries
        while self._query < len(queries):
            query = queries[self._query]
            if not query.by:
                if now - query.sent < GIVEN_UP:
                    break  # its answer may still come
                if not self._lost:
                    self._silent_since = query.sent
                self._lost += 1
            else:
                if query.by != self._by or self._lost:
                    lines.append((query.answered, "client", "client", self._served(query)))
                self._by, self._lost = query.by, 0
            self._query += 1
        return lines

    def _served(self, query):
        lost = f"; {self._lost} quer{'y' if self._lost == 1 else 'ies'} lost" if self._lost else "; no query lost"
        if self._by is None:
            return f"{query.by} answers"
        if query.by == self._by:
            return f"{query.by} answers again{lost}"
        return f"{query.by} answers, no longer {self._by}{lost}"
