"""Chance, for all tests: seeded, and the seed is said, so that a red run is red again.

    from lib.chance import chance

    dice = chance()              # as REDSHANK_SEED says, which tests/run and CI set
    dice = chance(3, "faults")   # another sequence of the same seed
    dice = chance(seed=77)       # of one's own

REDSHANK_SEED=N in front of a test runs the same sequence again. unit-style refuses any other use of `random`.
"""

import os
import random

DEFAULT = 20261130
_said = set()


def the_seed():
    return int(os.environ.get("REDSHANK_SEED") or DEFAULT)


def chance(*parts, seed=None):
    """A random.Random of the seed; with `parts`, of a sequence of their own."""
    seed = the_seed() if seed is None else seed
    if seed not in _said:
        _said.add(seed)
        print(f"# seed {seed} (REDSHANK_SEED={seed} runs the same again)", flush=True)
    return random.Random("/".join(map(str, (seed, *parts))) if parts else seed)
