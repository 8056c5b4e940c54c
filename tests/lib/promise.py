"""What the breaking test holds true on the router's wire, whatever is broken beside.

A Ledger is told what really is: which service is down from when to when, when nobody could have known or
acted (the agent was dead, BIRD hung), when sessions ended for reasons of their own, when somebody's hand
changed BIRD, and what an operator said. judge() then goes through the wire's UPDATEs and names each one, and each silence, that breaks a
promise:

  late      a prefix is announced although its service is down, or drained, for longer than the promise
  wrong     a prefix is withdrawn although its service is up, or the freeze holds it, and nothing else excuses it
  thawed    what a dead process or a missing address withdrew in a freeze is announced before the thaw
  weight    a prefix is announced with another weight than the operator's, for longer than the promise
  out       a prefix is not announced although the agent was to put its address back
  restless  a prefix changed more often than everything that happened gives reason for

The bounds are those of a machine with two busy cores: what is fast is measured elsewhere.
"""

import ipaddress
import time
from dataclasses import dataclass, field

from lib.wire import ANNOUNCE, CLOSED, NOTIFIED, OPENED, WITHDRAW, normal

DEAD, HUNG, MISSING, DRAINED = "dead", "hung", "missing", "drained"
WEIGHED, REMOVED = "weighed", "removed"
RECONNECTS = "reconnects"  # no down: who is blind to it cannot connect to BIRD again, and is as blind where that was lost
EVERYTHING = (DEAD, HUNG, MISSING, DRAINED, WEIGHED, REMOVED)
# Seconds from the fact to the wire. Hung: interval + timeout + (fall - 1) x timeout, and a second. Removed: an
# address is added again once a second at most.
BOUNDS = {DEAD: 1.0, MISSING: 1.0, DRAINED: 1.0, HUNG: 0.3 + 0.3 + 0.3 + 1.0, WEIGHED: 2.0, REMOVED: 1.0 + 1.0}
RECOVERY = 2.5  # from the end of what made it blind: a new agent has looked, or BIRD has read
SETTLED = 1.0  # from the end of what ended sessions: the router knows


@dataclass
class Span:
    begin: float
    end: float = None  # None: it goes on
    kinds: tuple = EVERYTHING
    what: str = ""
    mending: float = None  # of a service: from then on it may be up, though nobody knows before `end`
    weight: int = None  # of a prefix, by an operator's word

    def until(self, now):
        return now if self.end is None else self.end


@dataclass
class Ledger:
    services: dict  # name: [prefixes]
    downs: dict = field(default_factory=dict)  # service: [Span with one kind]
    blind: list = field(default_factory=list)  # [Span]: these kinds of down are not seen or not acted upon
    resets: list = field(default_factory=list)  # [Span]: sessions end
    hands: list = field(default_factory=list)  # [Span]: somebody changes what BIRD announces
    frozen: list = field(default_factory=list)  # [Span]: a freeze that the agent has confirmed
    weights: dict = field(default_factory=dict)  # service: [Span]; one that was not confirmed ends as it begins
    removed: dict = field(default_factory=dict)  # service: [Span]: somebody has removed the address that the agent manages

    def following(self):
        """One for what comes next. What a hand did to BIRD at the last may reach the wire when all looked well
        already, and nobody has noticed: it goes on into the next. So does an address that was removed."""
        recent = time.time() - RECOVERY
        return Ledger(
            self.services, hands=[s for s in self.hands if s.until(time.time()) > recent],
            downs={service: [s for s in self.downs[service] if s.end > recent] for service in self.removed})

    def down(self, service, kind, begin=None):
        span = Span(begin or time.time(), None, (kind,), f"{service} is {kind}")
        self.downs.setdefault(service, []).append(span)
        return span

    def spans(self):
        by_service = [*self.downs.values(), *self.weights.values(), *self.removed.values()]
        return [*self.blind, *self.resets, *self.hands, *self.frozen, *(s for spans in by_service for s in spans)]

    def _extended(self, moment, kind, now, also=()):
        """`moment`, or later, where nobody could have known or acted around it."""
        lost = [s for s in self.blind if s.kinds == EVERYTHING]
        away = [s for s in self.blind if RECONNECTS in s.kinds and any(
            l.begin < s.until(now) and s.begin < l.until(now) + RECOVERY for l in lost)]
        excuses = [s for s in self.blind if kind in s.kinds] + away + self.hands + list(also)
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

    def out(self, service, states, now, withheld=0.0):
        """The removals of an address after which the prefix stayed out past the promise."""
        removed = self.removed.get(service, [])
        for span in removed:
            deadline = self._extended(span.begin + BOUNDS[REMOVED] + withheld, REMOVED, now,
                                      [*self.resets, *(s for s in removed if s is not span)])
            if deadline < now and not [up for when, up in states if when <= deadline][-1]:
                yield deadline - span.begin

    def weighs_else(self, service, announced, now, withheld=0.0):
        """(weight, seconds) of what is announced with another weight than the operator's past the promise."""
        for span in self.weights.get(service, []):
            deadline = self._extended(span.begin + BOUNDS[WEIGHED] + withheld, WEIGHED, now, self.resets)
            for begin, end, med in announced:
                if med != span.weight and max(begin, deadline) < min(end, span.until(now)):
                    yield med, max(begin, deadline) - span.begin

    def thawed(self, service, states, now):
        """When something came back that a freeze was to hold down."""
        kinds = {kind for span in self.downs.get(service, []) for kind in span.kinds}
        for freeze in self.frozen:
            end = freeze.until(now)
            others = [s for s in self.hands + self.resets if s.begin < end and s.until(now) + RECOVERY > freeze.begin]
            if others or DRAINED in kinds:
                continue
            since = min([s.begin for s in self.downs.get(service, [])
                         if s.kinds[0] in (DEAD, MISSING) and s.begin >= freeze.begin], default=end)
            for (gone, _), (back, up) in zip(states, states[1:]):
                if up and since <= gone and back < end:
                    yield back

    def excuses(self, service, when, now):
        """Why a withdrawal at that time is right, or ""."""
        for span in self.downs.get(service, []):
            held = span.kinds[0] == HUNG and any(f.begin <= span.begin and when <= f.until(now) for f in self.frozen)
            if not held and span.begin <= when <= self._extended(span.until(now) + BOUNDS[span.kinds[0]], span.kinds[0], now):
                return span.what
        for span in self.resets:
            if span.begin <= when <= span.until(now) + SETTLED:
                return span.what
        for span in self.hands:
            if span.begin <= when <= span.until(now) + RECOVERY:
                return span.what
        return ""

    def budget(self, service):
        own = len(self.downs.get(service, [])) + len(self.weights.get(service, []))
        return 2 * (own + len(self.resets) + 2 * len(self.hands))


ENDINGS = (OPENED, CLOSED, NOTIFIED)  # of a session


class Alone:
    """Which faults have had a round of their own. A long run does not end before all have, or fails."""

    def __init__(self, names, long):
        self.n, self.left, self.long = len(names), set(names), long

    def played(self, names):
        if len(names) == 1:
            self.left.discard(names[0])

    def is_over(self, took, seconds):
        """Of a run that is to last `seconds`; on a slow machine a long one takes up to three times that for what is left."""
        return took > seconds * (3 if self.long and self.left else 1)

    def failed(self):
        return self.long and bool(self.left)

    def story(self):
        without = ", no time for " + ", ".join(sorted(self.left)) if self.left else ""
        return f"{self.n - len(self.left)} of {self.n} faults alone{without}"


def session_of(prefix):
    return "IPv6" if ipaddress.ip_network(prefix).version == 6 else "IPv4"


def states_of(prefix, events, since):
    """[(time, announced)] of a prefix from `since` on, when it was announced, and the withdrawals."""
    session = session_of(prefix)
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
        elif event.kind in ENDINGS and event.session == session and was:
            states.append((event.time, False))
            withdrawals.append((event.time, f"its session was {event.kind}"))
    return states, withdrawals, changes


def announced_as(prefix, events, since, now):
    """[(begin, end, weight)] of a prefix; None is the weight that it had before, at `since`."""
    session = session_of(prefix)
    found = [(since, now, None)]
    for event in events:
        ended = event.session == session and event.kind in ENDINGS
        if ended or (event.prefix == normal(prefix) and event.kind in (ANNOUNCE, WITHDRAW)):
            begin, end, weight = found[-1]
            found[-1] = (begin, min(end, event.time), weight)
        if event.prefix == normal(prefix) and event.kind == ANNOUNCE:
            found.append((event.time, now, event.med))
    return found


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
            for when in ledger.thawed(service, states, now):
                broken.append(f"thawed: {prefix} announced at +{when - since:.2f} s although the freeze holds")
            for weight, after in ledger.weighs_else(service, announced_as(prefix, events, since, now), now, withheld):
                broken.append(f"weight: {prefix} has {weight} {after:.2f} s after the operator gave it another")
            for after in ledger.out(service, states, now, withheld):
                broken.append(f"out: {prefix} not announced {after:.2f} s after its address was removed")
            if changes > ledger.budget(service):
                broken.append(f"restless: {prefix} changed {changes} times, {ledger.budget(service)} have a reason")
    return broken
