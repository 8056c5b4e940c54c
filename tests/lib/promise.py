"""What the breaking test holds true on the router's wire, whatever is broken beside.

A Ledger is told what really is: which service is down from when to when, when nobody could have known or
acted (the agent was dead, BIRD hung), when sessions ended for reasons of their own, and when somebody's hand
changed BIRD. judge() then goes through the wire's UPDATEs and names each one, and each silence, that breaks a
promise:

  late      a prefix is announced although its service is down, or drained, for longer than the promise
  wrong     a prefix is withdrawn although its service is up, and nothing else excuses it
  restless  a prefix changed more often than everything that happened gives reason for

The bounds are those of a machine with two busy cores: what is fast is measured elsewhere.
"""

import ipaddress
import time
from dataclasses import dataclass, field

from lib.wire import ANNOUNCE, CLOSED, NOTIFIED, OPENED, WITHDRAW, normal

DEAD, HUNG, MISSING, DRAINED = "dead", "hung", "missing", "drained"
EVERYTHING = (DEAD, HUNG, MISSING, DRAINED)
# Seconds from the fact to the wire. Hung: interval + timeout + (fall - 1) x timeout, and a second.
BOUNDS = {DEAD: 1.0, MISSING: 1.0, DRAINED: 1.0, HUNG: 0.3 + 0.3 + 0.3 + 1.0}
RECOVERY = 2.5  # from the end of what made it blind: a new agent has looked, or BIRD has read
SETTLED = 1.0  # from the end of what ended sessions: the router knows


@dataclass
class Span:
    begin: float
    end: float = None  # None: it goes on
    kinds: tuple = EVERYTHING
    what: str = ""
    mending: float = None  # of a service: from then on it may be up, though nobody knows before `end`

    def until(self, now):
        return now if self.end is None else self.end


@dataclass
class Ledger:
    services: dict  # name: [prefixes]
    downs: dict = field(default_factory=dict)  # service: [Span with one kind]
    blind: list = field(default_factory=list)  # [Span]: these kinds of down are not seen or not acted upon
    resets: list = field(default_factory=list)  # [Span]: sessions end
    hands: list = field(default_factory=list)  # [Span]: somebody changes what BIRD announces

    def following(self):
        """One for what comes next. What a hand did to BIRD at the last may reach the wire when all looked well
        already, and nobody has noticed: it goes on into the next."""
        recent = time.time() - RECOVERY
        return Ledger(self.services, hands=[s for s in self.hands if s.until(time.time()) > recent])

    def down(self, service, kind, begin=None):
        span = Span(begin or time.time(), None, (kind,), f"{service} is {kind}")
        self.downs.setdefault(service, []).append(span)
        return span

    def spans(self):
        return [*self.blind, *self.resets, *self.hands, *(s for spans in self.downs.values() for s in spans)]

    def _extended(self, moment, kind, now):
        """`moment`, or later, where nobody could have known or acted around it."""
        excuses = [s for s in self.blind if kind in s.kinds] + self.hands
        while True:
            later = max([moment] + [s.until(now) + RECOVERY for s in excuses
                                    if s.begin <= moment and s.until(now) + RECOVERY > moment])
            if later == moment:
                return moment
            moment = later

    def late(self, span, states, now, withheld=0.0):
        """The first moment at which the prefix was announced past the promise, or None."""
        kind = span.kinds[0]
        deadline = self._extended(span.begin + BOUNDS[kind] + withheld, kind, now)
        end = span.mending or span.until(now)
        for (when, up), following in zip(states, [*states[1:], (now, None)]):
            if up and max(when, deadline) < min(following[0], end):
                return max(when, deadline)
        return None

    def excuses(self, service, when, now):
        """Why a withdrawal at that time is right, or ""."""
        for span in self.downs.get(service, []):
            if span.begin <= when <= self._extended(span.until(now) + BOUNDS[span.kinds[0]], span.kinds[0], now):
                return span.what
        for span in self.resets:
            if span.begin <= when <= span.until(now) + SETTLED:
                return span.what
        for span in self.hands:
            if span.begin <= when <= span.until(now) + RECOVERY:
                return span.what
        return ""

    def budget(self, service):
        return 2 * (len(self.downs.get(service, [])) + len(self.resets) + 2 * len(self.hands))


def states_of(prefix, events, since):
    """[(time, announced)] of a prefix from `since` on, when it was announced, and the withdrawals."""
    session = "IPv6" if ipaddress.ip_network(prefix).version == 6 else "IPv4"
    states, withdrawals, changes = [(since, True)], [], 0
    for event in events:
        was = states[-1][1]
        if event.kind == ANNOUNCE and event.prefix == normal(prefix):
            changes += 1
            if not was:
                states.append((event.time, True))
        elif event.kind == WITHDRAW and event.prefix == normal(prefix):
            changes += 1
            if was:
                states.append((event.time, False))
                withdrawals.append((event.time, "withdrawn"))
        elif event.kind in (OPENED, CLOSED, NOTIFIED) and event.session == session and was:
            states.append((event.time, False))
            withdrawals.append((event.time, f"its session was {event.kind}"))
    return states, withdrawals, changes


def judge(ledger, events, since, now=None, withheld=0.0):
    """The broken promises, as lines. `events` are one edge's, of every kind, from `since` on. `withheld`: by the machine,
    in seconds: what is late by no more is not."""
    now = now or time.time()
    broken = []
    for service, prefixes in ledger.services.items():
        for prefix in prefixes:
            states, withdrawals, changes = states_of(prefix, events, since)
            for span in ledger.downs.get(service, []):
                when = ledger.late(span, states, now, withheld)
                if when:
                    broken.append(f"late: {prefix} announced {when - span.begin:.2f} s after {span.what}")
            for when, how in withdrawals:
                if not ledger.excuses(service, when, now):
                    broken.append(f"wrong: {prefix} {how} at +{when - since:.2f} s although {service} is up")
            if changes > ledger.budget(service):
                broken.append(f"restless: {prefix} changed {changes} times, {ledger.budget(service)} have a reason")
    return broken
