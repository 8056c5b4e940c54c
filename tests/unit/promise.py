#!/usr/bin/python3
"""The judge of the breaking test (lib/promise.py) on made-up wires: what it names, and what it excuses. A judge that
excuses too much would let every round pass.

usage: promise.py ROOT
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(sys.argv[1]) / "tests"))
from lib.promise import DEAD, DRAINED, EVERYTHING, HUNG, MISSING, RECONNECTS, REMOVED, WEIGHED, Alone, Ledger, Span, judge  # noqa: E402
from lib.wire import ANNOUNCE, CLOSED, WITHDRAW, Event  # noqa: E402

PREFIX, NOW = "192.0.2.80/32", 30.0


def up(when, med=100):
    return Event(when, "edge1", ANNOUNCE, PREFIX, {"med": med}, "IPv4")


def down(when):
    return Event(when, "edge1", WITHDRAW, PREFIX, {}, "IPv4")


def closed(when):
    return Event(when, "edge1", CLOSED, session="IPv4")


def span(begin, end, *kinds, **more):
    return Span(begin, end, kinds or EVERYTHING, "it", **more)


def downs(*spans):
    return {"downs": {"web": list(spans)}}


def weights(*spans):
    return {"weights": {"web": list(spans)}}


def removed(*moments):
    return {**downs(*(span(t, t, MISSING) for t in moments)),
            "removed": {"web": [span(t, t, REMOVED) for t in moments]}}


FREEZE = {"frozen": [span(2.0, 8.0)], "blind": [span(1.9, 8.1, HUNG, REMOVED)]}
SEVEN = span(2.0, 8.0, WEIGHED, weight=7)
# What it says, what the ledger holds, what the wire carries.
ROWS = [
    ([], {}, []),
    (["wrong", "restless"], {}, [down(3.0), up(4.0)]),
    (["wrong"], {}, [closed(3.0)]),
    ([], {"resets": [span(3.0, 3.5)]}, [closed(3.0), up(4.0)]),
    ([], {"hands": [span(3.0, 3.1)]}, [down(3.0), up(4.0)]),
    ([], downs(span(3.0, 9.0, DEAD)), [down(3.2), up(9.2)]),
    (["late"], downs(span(3.0, 9.0, DEAD)), [down(4.2), up(9.2)]),
    (["late"], downs(span(3.0, 9.0, DRAINED)), []),
    ([], {**downs(span(3.0, 9.0, DEAD)), "blind": [span(2.0, 4.0)]}, [down(5.0), up(9.2)]),
    (["late"], {**downs(span(3.0, 9.0, DEAD)), "blind": [span(2.0, 4.0, HUNG)]}, [down(5.0), up(9.2)]),
    (["late"], {**downs(span(3.0, 9.0, DEAD)), "blind": [span(2.0, 7.0, RECONNECTS)]}, [down(7.5), up(9.2)]),
    ([], {**downs(span(3.0, 9.0, DEAD)), "blind": [span(1.0, 2.1), span(2.0, 7.0, RECONNECTS)]}, [down(7.5), up(9.2)]),
    (["restless"], downs(span(3.0, 9.0, DEAD)), [down(3.2), up(3.3), down(3.4), up(9.2)]),
    # A freeze holds what hangs, not what is dead or has no address; and what is out stays out.
    ([], {**FREEZE, **downs(span(3.0, 7.0, HUNG))}, []),
    (["wrong"], {**FREEZE, **downs(span(3.0, 9.0, HUNG))}, [down(5.0), up(9.5)]),
    ([], {**FREEZE, **downs(span(3.0, 9.0, HUNG))}, [down(8.5), up(9.5)]),
    ([], {**FREEZE, **downs(span(1.0, 9.0, HUNG))}, [down(2.2), up(9.5)]),
    (["late"], {**FREEZE, **downs(span(3.0, 20.0, HUNG))}, [down(11.0), up(20.1)]),
    (["late"], {**FREEZE, **downs(span(3.0, 9.0, DEAD))}, [down(4.2), up(9.5)]),
    ([], {**FREEZE, **downs(span(3.0, 5.0, DEAD))}, [down(3.2), up(8.1)]),
    (["thawed"], {**FREEZE, **downs(span(3.0, 5.0, DEAD))}, [down(3.2), up(5.2)]),
    ([], {**FREEZE, **downs(span(1.0, 1.5, DEAD))}, [down(1.2), up(2.5)]),
    ([], {**FREEZE, **downs(span(3.0, 5.0, DRAINED))}, [down(3.2), up(5.2)]),
    ([], {**FREEZE, **downs(span(3.0, 5.0, DEAD)), "resets": [span(4.0, 4.1)]}, [down(3.2), up(5.2)]),
    ([], {**FREEZE, **removed(3.0)}, [down(3.1), up(8.1)]),
    (["thawed"], {**FREEZE, **removed(3.0)}, [down(3.1), up(3.2)]),
    # A weight comes in time, stays, and is one UPDATE each way.
    ([], weights(SEVEN), [up(2.1, 7), up(8.1)]),
    (["weight"], weights(SEVEN), []),
    (["weight"], weights(SEVEN), [up(4.5, 7), up(8.1)]),
    (["weight"], weights(SEVEN), [up(2.1, 8), up(8.1)]),
    (["weight"], weights(SEVEN), [up(2.1, 7), up(6.0)]),
    (["wrong"], weights(SEVEN), [down(2.1), up(2.2, 7)]),
    (["restless"], weights(SEVEN), [up(2.1, 7), up(2.2, 7), up(8.1)]),
    ([], {**weights(SEVEN), "blind": [span(2.0, 6.0, WEIGHED)]}, [up(8.1)]),
    (["weight"], {**weights(SEVEN), "blind": [span(2.0, 4.0, HUNG)]}, [up(8.1)]),
    ([], {**weights(SEVEN), **downs(span(2.0, 7.9, DEAD))}, [down(2.1), up(8.1)]),
    ([], weights(span(2.0, 2.0, WEIGHED, weight=7)), []),
    # An address that the agent is to add again.
    ([], removed(3.0), [down(3.1), up(4.5)]),
    (["out"], removed(3.0), [down(3.1), up(5.5)]),
    (["wrong"], removed(3.0), [down(4.5), up(4.6)]),
    (["restless"], removed(3.0), [down(3.1), up(3.2), down(3.3), up(3.4)]),
    ([], removed(3.0, 4.8), [down(3.1), up(4.0), down(4.8), up(6.2)]),
    ([], {**removed(3.0), "blind": [span(3.0, 6.0)]}, [down(3.1), up(7.0)]),
    (["out"], {**removed(3.0), "blind": [span(3.0, 6.0, HUNG)]}, [down(3.1), up(7.0)]),
]


def rounds_of_their_own():
    """Who was not alone is named, and a long run goes on for it, though not without end."""
    wrong = 0
    for long, played, over, failed, said in [
        (True, [["a"], ["b"]], (False, True, True), False, "2 of 2 faults alone"),
        (True, [["a"], ["a", "b"]], (False, False, True), True, "1 of 2 faults alone, no time for b"),
        (False, [["a"], ["a", "b"]], (False, True, True), False, "1 of 2 faults alone, no time for b"),
        (False, [], (False, True, True), False, "0 of 2 faults alone, no time for a, b"),
    ]:
        alone = Alone(["b", "a"], long)
        for names in played:
            alone.played(names)
        seen = tuple(alone.is_over(took, 10.0) for took in (9.0, 11.0, 31.0)), alone.failed(), alone.story()
        if seen != (over, failed, said):
            wrong += 1
            print(f"{long}, {played}: expected {(over, failed, said)}, it said {seen}")
    return wrong


def main():
    wrong = 0
    for number, (expected, ledger, events) in enumerate(ROWS):
        said = judge(Ledger({"web": [PREFIX]}, **ledger), events, 0.0, NOW)
        if sorted({line.split(":")[0] for line in said}) != sorted(expected):
            wrong += 1
            print(f"row {number}: expected {expected}, it said {said}")
    print(f"{len(ROWS)} wires, {wrong} judged wrong")
    wrong += rounds_of_their_own()
    return 1 if wrong else 0


sys.exit(main())
