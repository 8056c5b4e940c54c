"""Wait for a condition with a deadline. Nothing in the tests sleeps for luck."""

import time


class TimedOut(AssertionError):
    """A condition did not come true in time; a failed test, not an error in it."""


def until(condition, timeout=10.0, what="condition", every=0.007):
    """Polls condition() until it returns something true, and returns that.

    An OSError from condition() counts as "not yet" (a socket that is not there yet). `what` says
    what was waited for; a callable is asked at the end, so that it can tell the last state seen.
    """
    deadline = time.monotonic() + timeout
    problem = None
    while True:
        try:
            value = condition()
            problem = None
        except OSError as e:
            value, problem = None, e
        if value:
            return value
        if time.monotonic() >= deadline:
            text = what() if callable(what) else what
            raise TimedOut(f"waited {timeout:g} s in vain for: {text}" + (f" ({problem})" if problem else ""))
        time.sleep(every)
