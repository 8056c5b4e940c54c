"""The breaking test: a real agent, BIRD, router and services, and somebody who breaks each of them.

    nemesis.py [--seed N] [--seconds S] [--round K] [--only FAULT[,FAULT]] [--plain | --sanitized]

First each fault alone, then random combinations with a service that dies beside, until the time is over; half of it
with an agent under sanitizers, half with one without, whose memory can be taken away. The router's wire is judged after each round (lib/promise.py). A round is its seed and number: `--seed N --round K` is the
same faults at the same times again. seeds.txt holds rounds that once failed; they come first.
"""

import argparse
import os
import time

from lib.case import script
from lib.chance import chance, the_seed
from lib.faults import FAULTS
from lib.nemesis import World
from lib.promise import Alone

SEEDS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "seeds.txt")
LIVES = ["nsd-killed", "nsd-hung", "nginx-killed", "nginx-hung", "address-missing", "flaps"]


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=the_seed())
    parser.add_argument("--seconds", type=float, default=float(os.environ.get("REDSHANK_NEMESIS") or 60))
    parser.add_argument("--round", type=int)
    parser.add_argument("--only")
    parser.add_argument("--plain", action="store_true", help="only the agent without sanitizers")
    parser.add_argument("--sanitized", action="store_true", help="only the agent with sanitizers")
    args = parser.parse_args()
    if args.round is not None and not args.plain:
        args.sanitized = True
    return args


def faults(plain):
    """Those that this run has; a round chooses among them, so they are part of what a seed means."""
    long = bool(os.environ.get("REDSHANK_LONG"))
    return [name for name, cls in sorted(FAULTS.items()) if cls.long <= long and cls.plain <= plain]


def choose(rng, plain):
    """Some faults that do not exclude each other, and mostly a service that dies or hangs among them."""
    n = rng.randint(2, 5)
    chosen = [rng.choice(LIVES)] if rng.random() < 0.7 else []
    names = faults(plain)
    for name in rng.sample(names, len(names)):
        if len(chosen) >= n:
            break
        if FAULTS[name].part not in {FAULTS[c].part for c in chosen}:
            chosen.append(name)
    return chosen


def known():
    """(seed, round, faults) of what once failed."""
    with open(SEEDS, encoding="ascii") as f:
        lines = [line.split("#")[0].split() for line in f]
    return [(int(words[0]), int(words[1]), words[2].split(",")) for words in lines if words]


def alone(args, plain):
    """Those that begin with a round each; the other half of the run has the rest."""
    if args.only or args.round is not None:
        return []
    return [name for name in faults(plain) if not plain or FAULTS[name].plain or args.plain]


def rounds(args, plain):
    """(seed, number, faults or None: those of that round's choice), without end."""
    if args.only:
        n = args.round or 0
        while True:
            yield args.seed, n, args.only.split(",")
            n += 1
    if args.round is not None:
        yield args.seed, args.round, None
        return
    for seed, number, names in known():
        if set(names) <= set(faults(plain)):
            yield seed, number, names
    names = alone(args, plain)
    for number, name in enumerate(chance(seed=args.seed).sample(names, len(names))):
        yield args.seed, -1 - number, [name]
    number = 0
    while True:
        yield args.seed, number, None
        number += 1


def run(args, plain, seconds):
    """How many rounds broke a promise; None: there was none at all."""
    failed, done, slowest = 0, 0, (0.0, "")
    each = Alone(alone(args, plain), bool(os.environ.get("REDSHANK_LONG")))
    begun = time.monotonic()
    with World(plain=plain) as world:
        for seed, number, names in rounds(args, plain):
            if each.is_over(time.monotonic() - begun, seconds) and not (args.round is not None and not args.only):
                break
            rng = chance(number, seed=seed)
            names = names or choose(chance(number, "faults", seed=seed), plain)
            took, broken = world.round(names, rng)
            done += 1
            each.played(names)
            label = f"{seed}/{number} {' + '.join(names)}"
            print(f"{'not ok' if broken else 'ok'} - {label}: " + (f"{took:.2f} s" if took else "never"), flush=True)
            if broken:
                failed += 1
                print("\n".join(broken) + "\n" + world.story() + "\n" + world.agent.tail(40), flush=True)
                if took is None:
                    break
            elif took > slowest[0]:
                slowest = (took, label)
        print(f"{done} rounds {'without' if plain else 'with'} sanitizers, {failed} broke a promise, {world.n_flaps} flaps; "
              f"slowest convergence {slowest[0]:.2f} s ({slowest[1]}); {each.story()}", flush=True)
    return failed + each.failed() if done else 1


def main():
    args = arguments()
    kinds = [plain for plain in (False, True) if not (args.sanitized if plain else args.plain)]
    return 1 if sum(run(args, plain, args.seconds / len(kinds)) for plain in kinds) else 0


script(main)
