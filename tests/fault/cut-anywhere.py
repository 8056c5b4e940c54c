"""A fragment is cut behind each of its bytes, and BIRD made to read it: the file is whole again, what BIRD took
from it is undone, and no other service's prefix has moved.

By default some of the bytes, by the seed; with REDSHANK_LONG in the environment (tests/run --long) each.
"""

import os
import signal
import time

from lib.case import script
from lib.chance import chance
from lib.nemesis import CONVERGENCE, PULSE, SERVICES, World
from lib.promise import Ledger, Span, judge
from lib.wait import TimedOut, until
from lib.wire import ANNOUNCE, WITHDRAW, normal

SAMPLE = 16
FREE = 3  # repairs of a file that an agent makes at once; more in a minute, and it takes its time
CUT = "dns"
OTHERS = {normal(prefix) for name, prefixes in SERVICES.items() if name != CUT for prefix in prefixes}


def read(path):
    with open(path, "rb") as f:
        return f.read()


def fresh(world):
    """Another agent, with repairs to spare."""
    world.expect_death()
    process = world.agent.process
    process.send_signal(signal.SIGUSR2)
    until(lambda: not process.alive(), 10, "the agent has gone")
    world.wait_agent()
    world.converged(CONVERGENCE + 10)


def cut(world, path, n, whole):
    """The broken promises."""
    world.ledger, begun = Ledger(SERVICES), time.time()
    hand = Span(begun, what=f"{CUT}.conf cut at byte {n}")
    world.ledger.hands.append(hand)
    os.truncate(path, n)
    world.birdc("configure")
    hand.end = time.time()
    try:
        until(lambda: read(path) == whole, CONVERGENCE + 10, "the fragment is whole again")
        world.converged(CONVERGENCE + 10)
    except TimedOut as e:
        return [str(e)]
    withheld = PULSE.withheld(begun)
    late = time.time() - hand.end - withheld
    events = world.site.wire.since(begun, edge="edge1", kinds=None)
    moved = [str(e) for e in events if e.kind in (ANNOUNCE, WITHDRAW) and e.prefix in OTHERS]
    broken = judge(world.ledger, events, begun, withheld=withheld) + world.unexpected + world.site.problems() + moved
    if late > 2 * CONVERGENCE:
        broken.append(f"converged only after {late:.1f} s")
    world.unexpected = []
    return broken


def run():
    rng = chance()
    failed = withdrawn = 0
    with World() as world:
        path = os.path.join(world.edge.fragments, f"{CUT}.conf")
        whole, begun = read(path), time.time()
        numbers = range(len(whole))
        if not os.environ.get("REDSHANK_LONG"):
            numbers = sorted(rng.sample(numbers, SAMPLE))
        for i, n in enumerate(numbers):
            if i % FREE == 0 and i > 0:
                fresh(world)
            broken = cut(world, path, n, whole)
            if broken:
                failed += 1
                print("\n".join(f"cut at byte {n}: {line}" for line in broken) + "\n" + world.story() + "\n" +
                      world.agent.tail(30), flush=True)
        for e in world.site.wire.since(begun, edge="edge1", kinds=None):
            withdrawn += e.kind == WITHDRAW
        print(f"{'not ok' if failed else 'ok'} - cut at {len(numbers)} of {len(whole)} bytes: "
              f"{withdrawn} withdrawals until the agent had seen it", flush=True)
    return 1 if failed else 0


script(run)
