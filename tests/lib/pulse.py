"""What the machine withheld: for how long nobody ran here who wanted to.

A test that holds the product to a time on the wire gives it back what a busy or stopped machine took: no more
than this, so that a product that is late by itself is found late.

    pulse = Pulse()                                     # from now on
    begun = time.time()
    ...
    check(gone.time - begun < BOUND + pulse.withheld(begun), ...)
"""

import threading
import time

from lib.wait import until

BEAT = 0.01  # seconds; a beat that is late by less is as it is everywhere


class Pulse:
    def __init__(self):
        self._beats = 0
        self._gaps = []  # (UNIX time at its end, seconds)
        threading.Thread(target=self._beat, name="pulse", daemon=True).start()

    def _beat(self):
        while True:
            asleep = time.monotonic()
            time.sleep(BEAT)
            late = time.monotonic() - asleep - BEAT
            if late > BEAT:
                self._gaps.append((time.time(), late))
            self._beats += 1

    def withheld(self, since, before=float("inf")):
        """Seconds, since this UNIX time and before that one."""
        now = self._beats
        until(lambda: self._beats > now + 1, 30, "the pulse goes on", every=BEAT)
        return sum(late for end, late in list(self._gaps) if end >= since and end - late < before)
