"""The world that the breaking test breaks: a site of one edge, whose agent somebody restarts as systemd would.

    with World(seed) as world:
        world.round(["bird-killed", "nsd-killed"], chance(1))

A round begins with everything announced, lets each fault begin and end at times of its own, and is over when
all is announced again; how long that took after the last end is the convergence. Then the wire is judged.
"""

import contextlib
import os
import subprocess
import threading
import time

from lib import netns, tracing
from lib.agentctl import build_folder, plain_agent
from lib.birds import Control
from lib.faults import FAULTS
from lib.middleman import Middleman
from lib.promise import Ledger, Span, judge
from lib.pulse import Pulse
from lib.site import Site
from lib.wait import TimedOut, until
from lib.wire import normal

CONVERGENCE = 5.0  # seconds after the last fault has ended
RESTART = 0.2  # as RestartSec of redshank.service
STATUS = ("State", "TracerPid", "SigPnd", "ShdPnd", "SigBlk")
PULSE = Pulse()
FLAP, NOISE, MANAGED = "192.0.2.99", "192.0.2.98", "192.0.2.97"
SERVICES = {
    "dns": ["192.0.2.53/32", "2001:db8::53/128"],
    "web": ["192.0.2.80/32"],
    "flap": [f"{FLAP}/32"],
    "managed": [f"{MANAGED}/32"],  # its address is the agent's to add, and it has no checks
}
NOISE_SCRIPT = """\
case $(cat "$0.word") in
hang) sleep 60 ;;
fork) for n in 1 2 3 4 5; do sleep 60 & done ;;
flood) head -c 1000000000 /dev/zero ;;
esac
"""


class World:
    def __init__(self, plain=False):
        if not netns.find("strace"):
            raise netns.Cannot("not installed: strace")
        self.site = Site(edges=1)
        self.edge = self.site.edges[0]
        self.agent = self.edge.agent
        self.ledger = Ledger(SERVICES)
        self.n_flaps = 0
        self.unfinished = []  # ends of faults that have to wait for other ends
        self.n_stale_files = 0  # faults that keep the agent from changing its files
        self.deaths = 0  # that somebody here has caused and nobody has seen yet
        self.unexpected = []
        self.middleman = None
        self.straces = []
        self._lock = threading.Lock()
        self._watch = self._stop = None
        self._pipe = None
        self._hold = threading.Event()
        try:
            self._prepare(plain)
        except BaseException:
            self.close()
            raise

    # ---- the setup ----

    def _prepare(self, plain):
        edge, agent = self.edge, self.agent
        self.edge.host.run(["mount", "-t", "tmpfs", "-o", "size=2m,mode=755", "fragments", edge.fragments])
        self.middleman = Middleman(edge.host.path("middle.ctl"), edge.bird.socket)
        for address in (FLAP, NOISE):
            edge.add_address(address)
        self.flap, self.noise = edge.host.path("flap"), edge.host.path("noise")
        with open(self.noise, "w", encoding="ascii") as f:
            f.write(NOISE_SCRIPT)
        self.set_flap("good")
        self.set_noise("good")
        config = agent.config
        config["bird"]["socket"] = self.middleman.path
        config["services"]["dns"]["checks"]["port"] = {
            "type": "dns", "server": "192.0.2.53", "name": "health.example.net", "rrtype": "A",
        }
        config["services"]["flap"] = {
            "prefixes": {f"{FLAP}/32": 100},
            "checks": {"flag": {"type": "exec", "command": ["/usr/bin/grep", "-q", "good", self.flap]}},
        }
        config["services"]["noise"] = {
            "prefixes": {f"{NOISE}/32": 100},
            "checks": {"command": {"type": "exec", "command": ["/bin/sh", self.noise]}},
        }
        config["services"]["managed"] = {"prefixes": {f"{MANAGED}/32": 100}, "manage_addresses": True}
        self.clock = edge.host.path("clock")
        self.jump(0)
        shims = [os.path.join(build_folder(), "tests", "lib", "libclockjump.so")]
        if plain:
            agent.program, famine = plain_agent()
            shims.append(famine)
        agent.environment = {
            "REDSHANK_CLOCK": self.clock, "LD_PRELOAD": ":".join(shims),
            "ASAN_OPTIONS": "verify_asan_link_order=0:detect_leaks=0",
        }
        self._tap_log()
        agent.start()
        self._stop = threading.Event()
        self._watch = threading.Thread(target=self._restarts, daemon=True)
        self._watch.start()
        self.converged(15)

    def _tap_log(self):
        """The agent writes into a pipe, from which its log is copied as long as somebody wants to."""
        fifo = self.agent.log
        os.mkfifo(fifo)
        self.agent.log = fifo + ".text"
        self._pipe = os.open(fifo, os.O_RDWR)
        self._hold.set()

        def copy():
            with open(self.agent.log, "ab", buffering=0) as log:
                while True:
                    self._hold.wait()
                    data = os.read(self._pipe, 65536)
                    if not data or data.endswith(b"\0end\0"):
                        return
                    log.write(data)

        self._copier = threading.Thread(target=copy, daemon=True)
        self._copier.start()

    # ---- what faults do ----

    def hold_log(self):
        self._hold.clear()

    def let_log(self):
        self._hold.set()

    def set_flap(self, word):
        self._put(self.flap, word)

    def set_noise(self, word):
        self._put(self.noise + ".word", word)

    def jump(self, seconds):
        self._put(self.clock, str(seconds))

    @staticmethod
    def _put(path, text):
        with open(path + ".new", "w", encoding="ascii") as f:
            f.write(text)
        os.rename(path + ".new", path)

    def birdc(self, command):
        """By hand, past the middleman; whatever BIRD says to it, and not for long. Where the agent can neither
        write nor remove a fragment, a `configure` makes BIRD do what the old one says until the agent sees it."""
        if command == "configure" and self.n_stale_files > 0:
            self.ledger.hands.append(Span(time.time(), time.time(), what="a fragment that cannot be changed is loaded"))
        with contextlib.suppress(OSError), Control(self.edge.bird.socket, timeout=0.5) as control:
            control.ask(command)

    def remount(self, mode):
        argv = ["mount", "-o", f"remount,{mode}", self.edge.fragments]
        until(lambda: self.edge.host.run(argv, check=False).returncode == 0, 2, f"remounted {mode}")

    def remove_managed(self):
        """Whether the address was there."""
        argv = ["ip", "addr", "del", f"{MANAGED}/32", "dev", "lo"]
        return self.edge.host.run(argv, check=False).returncode == 0

    def expect_death(self):
        with self._lock:
            self.deaths += 1

    def strace(self, *expressions):
        """Of the agent's threads, but not of what it runs: nobody promises anything for a broken command."""
        pid = self.agent.pid
        threads = os.listdir(f"/proc/{pid}/task")
        argv = ["strace", "-qq", "-o", "/dev/null"]
        for thread in threads:
            argv += ["-p", thread]
        for expression in expressions:
            argv += ["-e", expression]
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.straces.append(process)
        tracing.attached(process, pid, threads)
        return process

    def end_strace(self, process):
        tracing.end(process)
        self.straces.remove(process)

    # ---- the agent, as systemd keeps it ----

    def _restarts(self):
        while not self._stop.wait(0.02):
            if self.agent.process.alive():
                continue
            with self._lock:
                expected, self.deaths = self.deaths > 0, 0
            code = self.agent.process.popen.returncode
            if not expected or code not in (-9, 0):
                self.unexpected.append(f"the agent ended by itself: {code}\n{self.agent.sanitizer_report()}")
            self._stop.wait(RESTART)
            while not self._started():
                self._stop.wait(RESTART)

    def _started(self):
        try:
            self.agent.start(wait=False, write=False)
        except OSError:  # of the program, or of its log
            return self._stop.is_set()
        return True

    def wait_agent(self):
        def answers():
            return self.agent.process.alive() and self.agent.get("/v1/status")[0] == 200

        until(answers, 15, lambda: f"the agent answers\n{self.autopsy()}\n{self.agent.tail()}")

    def autopsy(self):
        """Where an agent that does not answer is, as its kernel and a debugger see it."""
        found = []
        for name in ("status", "wchan", "syscall", "stack"):
            with contextlib.suppress(OSError), open(f"/proc/{self.agent.pid}/{name}", encoding="ascii") as f:
                keep = [line for line in f if name != "status" or line.split(":")[0] in STATUS]
                found.append(f"{name}: " + "".join(keep).strip())
        if netns.find("gdb"):
            done = subprocess.run(["gdb", "-p", str(self.agent.pid), "-batch", "-ex", "bt"], capture_output=True,
                                  text=True, timeout=60, check=False)
            found += [line for line in done.stdout.splitlines() if line.startswith("#")]
        return "\n".join(found)

    # ---- rounds ----

    def is_converged(self):
        """All that is healthy is announced at the router, and the agent has nothing left to do."""
        status = self.agent.status()
        for name, prefixes in SERVICES.items():
            for prefix in prefixes:
                entry, route = status["services"][name]["prefixes"][prefix], self.site.routes(prefix).get("edge1")
                if not (entry["wanted"] == "announce" and entry["announced"] and route and route.med == entry["weight"]):
                    return False
        return status["bird"]["settled"] and not status["state"]["error"]

    def converged(self, timeout):
        begun = time.time()
        until(self.is_converged, timeout, lambda: f"convergence\n{self.site.report()}", every=0.03)
        return time.time() - begun

    def round(self, names, rng):
        """Breaks, mends, waits, judges. (seconds to convergence, broken promises)."""
        self.ledger = self.ledger.following()
        begun = time.time()
        plan = []
        for name in names:
            fault = FAULTS[name](self, rng)
            start = rng.uniform(0.0, 1.0)
            plan.append((start, 0, fault))
            plan.append((start + rng.uniform(*fault.lasts), 1, fault))
        mended = begun
        for moment, is_end, fault in sorted(plan, key=lambda step: step[:2]):
            time.sleep(max(0.0, begun + moment - time.time()))
            if not is_end:
                fault.begin()
                continue
            fault.end()
            mended = max(mended, fault.mended or time.time())
        while self.unfinished:
            self.unfinished.pop()()
            mended = time.time()
        try:
            self.wait_agent()  # one that a tracer's last signal is still to end does not answer
            with self._lock:  # a death that never came is not one that may come later
                self.deaths = 0
            self.converged(CONVERGENCE + 10)
            took = time.time() - mended
        except TimedOut as e:
            return None, [f"no convergence: {e}"]
        events = [e for e in self.site.wire.since(begun, edge="edge1", kinds=None)]
        withheld = PULSE.withheld(begun)
        broken = judge(self.ledger, events, begun, withheld=withheld)
        if took > CONVERGENCE + withheld:
            broken.append(f"converged only {took:.1f} s after the last fault")
        status = self.agent.status()
        broken += [f"still said: {key} {status[key]}" for key in ("drains", "weights", "freeze") if status[key]]
        broken += self.unexpected + self.site.problems()
        self.unexpected = []
        return took, broken

    def story(self):
        """What happened in this round, for a person."""
        spans = sorted(self.ledger.spans(), key=lambda s: s.begin)
        if not spans:
            return ""
        zero = spans[0].begin
        lines = [f"    {s.begin - zero:7.3f} to {(s.end or time.time()) - zero:7.3f}  {s.what}" for s in spans]
        wanted = {normal(p) for prefixes in SERVICES.values() for p in prefixes} | {""}
        lines += [f"    {e.time - zero:7.3f}  wire: {e.session} {e.kind} {e.prefix}"
                  for e in self.site.wire.since(zero, edge="edge1", kinds=None) if e.prefix in wanted]
        return "\n".join(lines)

    def close(self):
        if self._stop:
            self._stop.set()
            self._watch.join(10)
        for process in list(self.straces):
            process.kill()
            process.wait()
        self._hold.set()
        if self._pipe is not None:
            os.write(self._pipe, b"\0end\0")
            self._copier.join(5)
            os.close(self._pipe)
        if self.middleman:
            self.middleman.close()
        self.site.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
