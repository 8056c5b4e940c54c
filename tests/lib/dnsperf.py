"""dnsperf(1) at work: queries at a steady rate from many sockets, so that a router's ECMP shares them out.

Every answer is kept with the time at which it was told (dnsperf's own output, line by line) and its
latency; what was not answered within a second counts as lost.
"""

import subprocess
import threading
import time

from lib import netns
from lib.client import NAME


class Dnsperf:
    """Asks `address` `rate` times a second from `host`, from one socket after the other of `flows`, until stop()."""

    def __init__(self, host, address, rate, flows):
        netns.needs("dnsperf")
        self.address, self.rate = address, rate
        self.answers = []  # (when it was told, latency in seconds)
        self.losses = []  # when it was told
        questions = host.path("questions")
        with open(questions, "w", encoding="ascii") as f:
            f.write(NAME + " TXT\n")
        self.popen = subprocess.Popen(
            host.argv(["dnsperf", "-s", address, "-d", questions, "-c", str(flows), "-T", "1", "-Q", str(rate), "-t", "1",
                       "-q", "1000", "-l", "3600", "-v", "-W"]),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.popen.stdout:
            words = line.split()
            if line.startswith("> ") and len(words) == 5:
                self.answers.append((time.time(), float(words[4])))
            elif "timed out" in line:
                self.losses.append(time.time())

    def latencies(self, start, end=float("inf")):
        return [latency for when, latency in list(self.answers) if start <= when < end]

    def lost(self, start, end=float("inf")):
        """How many queries that were sent in that time were not answered within a second of it."""
        return sum(start <= when - 1.0 < end for when in list(self.losses))

    def stop(self):
        self.popen.kill()
        self.popen.wait()


def percentile(values, part):
    """The value below which this part of them lies; 0 of none."""
    values = sorted(values)
    return values[min(len(values) - 1, int(part * len(values)))] if values else 0.0
