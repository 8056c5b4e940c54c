"""kill -9 of the agent at each system call of a withdrawal and of a return: of the fragment's files, of BIRD's
exchange, of everything around. Whatever was half done, the next agent makes right, and the router sees no more than
that.

By default some of the calls, by the seed; with REDSHANK_LONG in the environment (tests/run --long) each.
"""

import os
import random
import sys
import time

from lib.case import SKIPPED
from lib.nemesis import CONVERGENCE, SERVICES, World
from lib.netns import Cannot
from lib.promise import DEAD, Ledger, Span, judge
from lib.wait import TimedOut, until

CALLS = "%file,%desc,%network"
SAMPLE = 8
MOST = 400  # calls; a path that has more is not understood
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
    until(lambda: not life.alive() or done(), 10, "the agent was killed, or has done its work")
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
    world.ledger, begun, edge = Ledger(SERVICES), time.time(), world.edge

    def withdrawn():
        status = world.agent.status()
        gone = all("edge1" not in world.site.routes(prefix) for prefix in SERVICES["dns"])
        return gone and status["bird"]["settled"]

    def die():
        world.ledger.down("dns", DEAD)
        edge.nsd.kill()

    def come_back():
        world.ledger.downs["dns"][0].mending = time.time()
        edge.nsd.start()
        world.ledger.downs["dns"][0].end = time.time()

    if path == "withdrawal":
        killed = watch(world, n, die, withdrawn)
        come_back()
    else:
        die()
        until(withdrawn, 10, "withdrawn")
        killed = watch(world, n, come_back, world.is_converged)
    took = world.converged(CONVERGENCE + 10)
    broken = judge(world.ledger, world.site.wire.since(begun, edge="edge1", kinds=None), begun)
    if took > CONVERGENCE:
        broken.append(f"converged only after {took:.1f} s")
    broken += world.unexpected + world.site.problems()
    world.unexpected = []
    return killed, broken


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
            break
    return kills, all_broken


def run():
    rng = random.Random(int(os.environ.get("REDSHANK_SEED") or 20261130))
    failed = 0
    with World() as world:
        for path in ("withdrawal", "return"):
            kills, broken = sweep(world, path) if os.environ.get("REDSHANK_LONG") else sample(world, path, rng)
            failed += len(broken)
            print(f"{'not ok' if broken else 'ok'} - {path}: killed at {kills} calls", flush=True)
    return 1 if failed else 0


try:
    sys.exit(run())
except Cannot as e:
    print(f"skip - {e}")
    sys.exit(SKIPPED)
