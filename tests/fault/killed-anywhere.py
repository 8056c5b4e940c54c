"""kill -9 of the agent at each system call of a withdrawal, of a return and of another weight (which writes the
operators' words, a fragment, and has BIRD read it): of the files, of BIRD's exchange, of everything around. Whatever
was half done, the next agent makes right, and the router sees no more than that.

By default some of the calls, by the seed; with REDSHANK_LONG in the environment (tests/run --long) each.
"""

import os
import time

from lib.case import script
from lib.chance import chance
from lib.nemesis import CONVERGENCE, PULSE, SERVICES, World
from lib.promise import DEAD, Ledger, Span, judge
from lib.wait import TimedOut, until
from lib.wire import ANNOUNCE, WITHDRAW, normal

CALLS = "%file,%desc,%network"
SAMPLE = 8
MOST = 800  # calls; a path that has more is not understood
PAST = 10  # this many numbers in a row to which the path did not come: there are no more


def kill_at(world, n):
    world.expect_death()
    return world.strace(f"trace={CALLS}", f"inject={CALLS}:signal=KILL:when={n}")


def watch(world, n, act, done):
    """Kills the agent at its nth call from now on while act() has it work. False: it was done before that."""
    blind = Span(time.time(), what=f"agent killed at call {n}")
    world.ledger.blind.append(blind)
    life = world.agent.process
    strace = kill_at(world, n)
    act()
    until(lambda: not life.alive() or done(), 20, "the agent was killed, or has done its work")
    world.end_strace(strace)  # until then it may still be killed, and then die a little later:
    world.wait_agent()  # only one that answers now has survived
    survived = life.alive()
    if survived:
        with world._lock:
            world.deaths = 0
    blind.end = time.time()
    return not survived


def one(world, path, n):
    """(whether it was killed, broken promises: each is told, too)"""
    try:
        killed, broken = attempt(world, path, n)
    except TimedOut as e:
        killed, broken = True, [str(e)]
    if broken:
        print("\n".join(f"{path}, killed at call {n}: {line}" for line in broken))
        print(world.story() + "\n" + world.agent.tail(30), flush=True)
    return killed, broken


def attempt(world, path, n):
    """A path returns whether it was killed, and its own judge of the wire's events where lib/promise.py is none."""
    world.ledger, begun = Ledger(SERVICES), time.time()
    killed, own = PATHS[path](world, n)
    took = world.converged(CONVERGENCE + 10)
    events = world.site.wire.since(begun, edge="edge1", kinds=None)
    withheld = PULSE.withheld(begun)
    broken = own(events) if own else judge(world.ledger, events, begun, withheld=withheld)
    if took > CONVERGENCE + withheld:
        broken.append(f"converged only after {took:.1f} s")
    broken += world.unexpected + world.site.problems()
    world.unexpected = []
    return killed, broken


def withdrawn(world):
    status = world.agent.status()
    gone = all("edge1" not in world.site.routes(prefix) for prefix in SERVICES["dns"])
    return gone and status["bird"]["settled"]


def die(world):
    world.ledger.down("dns", DEAD)
    world.edge.nsd.kill()


def come_back(world):
    down = world.ledger.downs["dns"][0]
    down.mending = time.time()
    world.edge.nsd.start()
    down.end = time.time()


def withdrawal(world, n):
    killed = watch(world, n, lambda: die(world), lambda: withdrawn(world))
    come_back(world)
    return killed, None


def comes_back(world, n):
    die(world)
    until(lambda: withdrawn(world), 20, "withdrawn")
    return watch(world, n, lambda: come_back(world), world.is_converged), None


def weigh(world, n):
    """Killed before it has kept the word, the old weight stands, else the new one; at the router, too."""
    prefix = SERVICES["web"][0]
    was = world.agent.prefix(prefix)["weight"]
    new = 50 if was != 50 else 70

    def told():
        return world.is_converged() and world.site.routes(prefix)["edge1"].med == new

    killed = watch(world, n, lambda: world.agent.ctl("weight", prefix, str(new)), told)

    def judge_weights(events):
        broken = [str(e) for e in events if e.kind == WITHDRAW or (e.kind == ANNOUNCE and e.prefix != normal(prefix))]
        weights = [e.med for e in events if e.kind == ANNOUNCE]
        if weights not in ([], [new]):
            broken.append(f"weights on the wire: {weights}, from {was} to {new}")
        if not killed and weights != [new]:
            broken.append(f"it lived, and the router heard {weights} instead of {new}")
        return broken

    return killed, judge_weights


PATHS = {"withdrawal": withdrawal, "return": comes_back, "weight": weigh}


def calls(world, path):
    """About how many calls the path makes: what one run makes says not much of the next."""
    lower, upper = 1, MOST
    while lower < upper:
        middle = (lower + upper) // 2
        killed, broken = one(world, path, middle)
        if broken:
            return middle, broken
        lower, upper = (middle + 1, upper) if killed else (lower, middle)
    return lower, []


def sample(world, path, rng):
    """(at how many calls it was killed, broken promises)"""
    most, broken = calls(world, path)
    results = [one(world, path, n) for n in sorted(rng.sample(range(1, most + 1), min(SAMPLE, most)))]
    return sum(killed for killed, _ in results), broken + [line for _, found in results for line in found]


def sweep(world, path):
    """The same, of each call: on until the path has ended before the call some times in a row."""
    kills, survived, all_broken = 0, 0, []
    for n in range(1, MOST):
        killed, broken = one(world, path, n)
        all_broken += broken
        kills, survived = (kills + 1, 0) if killed else (kills, survived + 1)
        if survived == PAST:
            return kills, all_broken
    return kills, [*all_broken, f"more than {MOST} calls"]


def run():
    rng = chance()
    failed = 0
    with World() as world:
        for path in PATHS:
            kills, broken = sweep(world, path) if os.environ.get("REDSHANK_LONG") else sample(world, path, rng)
            failed += len(broken)
            print(f"{'not ok' if broken else 'ok'} - {path}: killed at {kills} calls", flush=True)
    return 1 if failed else 0


script(run)
