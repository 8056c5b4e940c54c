"""A tiny runner. A test script is some functions and one call:

    from lib.case import check, eventually, main
    from lib.site import Site

    def test_a_dead_service_leaves(site):
        '''A dead nsd loses its addresses.'''
        ...
        check(site.best("192.0.2.53/32") == "edge2", "edge2 is the best", site.routes("192.0.2.53/32"))

    main(lambda: Site(edges=2))

Functions named test_* run in the order in which they are written, all on the one site that main()
is given; without it each makes its own. A line is printed for each: "ok - its doc string". The
first failure prints what the site knows and ends the run. Exit status 0; 1 failed; 77 skipped,
with the reason in a line "skip - ...". Arguments on the command line pick functions by name.
"""

import inspect
import sys
import time
import traceback

from lib.netns import Cannot
from lib.wait import until as eventually

__all__ = ["check", "eventually", "main", "skip", "Failed"]

SKIPPED = 77


class Failed(AssertionError):
    pass


def check(condition, what, *seen):
    """Fails the test unless condition holds; `seen` are values that explain it."""
    if not condition:
        raise Failed(what + "".join(f"\n    seen: {value!r}" for value in seen))


def skip(reason):
    """This test cannot run here; tests/skips must explain the reason."""
    raise Cannot(reason)


def main(make_site=None):
    caller = sys.modules["__main__"]
    tests = [f for n, f in vars(caller).items() if n.startswith("test_") and inspect.isfunction(f)]
    if sys.argv[1:]:
        tests = [f for f in tests if any(word in f.__name__ for word in sys.argv[1:])]
    sys.exit(_run(tests, make_site))


def script(run):
    """Runs run() of a test that is no list of test_ functions: its exit status is what that returns, or SKIPPED."""
    try:
        sys.exit(run())
    except Cannot as e:
        print(f"skip - {e}", flush=True)
        sys.exit(SKIPPED)


def _run(tests, make_site):
    if not tests:
        print("not ok - no such test")
        return 1
    site = None
    name = "setting up"
    try:
        if make_site:
            site = make_site()
        for test in tests:
            name = (test.__doc__ or test.__name__[5:].replace("_", " ")).strip().splitlines()[0]
            start = time.monotonic()
            test(site) if inspect.signature(test).parameters else test()
            print(f"ok - {name} ({time.monotonic() - start:.2f} s)", flush=True)
        name = "nothing was wrong in the end"
        if site:
            found = site.problems()
            check(not found, "\n".join(found))
        return 0
    except Cannot as e:
        print(f"skip - {e}", flush=True)
        return SKIPPED
    except Exception as e:  # whatever it is, the site tells what it knows
        print(f"not ok - {name}: {e}", flush=True)
        if not isinstance(e, Failed):
            traceback.print_exc(file=sys.stdout)
        if site:
            print(site.report(), flush=True)
        return 1
    finally:
        if site:
            site.close()
