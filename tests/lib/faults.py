"""What can break around an agent, each as a thing that begins and ends; see nemesis.py for who breaks it.

A fault tells the ledger (promise.py) what it excuses, or promises, and nothing more: with the disk full, without
descriptors, with a clock that jumps, a dead service still leaves in time and a healthy one stays.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import threading
import time

from lib.promise import DEAD, DRAINED, EVERYTHING, HUNG, MISSING, RECONNECTS, REMOVED, WEIGHED, Span
from lib.wait import until

FAULTS = {}
WEB = "192.0.2.80/32"
FILES = (WEIGHED, REMOVED)  # what takes a fragment that can be written


def fault(name, **fields):
    """Registers a class under its name, which is what a log line shows and --only takes."""

    def register(cls):
        cls.name = name
        for key, value in fields.items():
            setattr(cls, key, value)
        FAULTS[name] = cls
        return cls

    return register


class Fault:
    """`lasts`: seconds, from and to. `alone`: what it must not be combined with (same `part`)."""

    name = ""
    part = ""
    lasts = (0.2, 2.0)
    long = False  # only in the long run
    plain = False  # only for the agent without sanitizers

    mended = None  # when all was in place again for what is to converge; None: when end() has returned

    def __init__(self, world, rng):
        self.world, self.rng = world, rng
        self.ledger = world.ledger

    def begin(self):
        raise NotImplementedError

    def end(self):
        pass

    def span(self, where, kinds=EVERYTHING):
        span = Span(time.time(), None, kinds, self.name)
        where.append(span)
        return span


# ---- the services: what really is ----


class _Killed(Fault):
    def begin(self):
        service = getattr(self.world.edge, self.program)
        self.down = self.ledger.down(self.service, DEAD)
        service.kill()

    def end(self):
        service = getattr(self.world.edge, self.program)
        self.down.mending = time.time()
        service.start(wait=False)
        until(service.answers, 10, f"{self.program} answers")
        self.down.end = time.time()


@fault("nsd-killed", part="dns", service="dns", program="nsd")
class NsdKilled(_Killed):
    pass


@fault("nginx-killed", part="web", service="web", program="nginx")
class NginxKilled(_Killed):
    pass


class _Hung(Fault):
    lasts = (0.1, 4.0)

    def begin(self):
        self.down = self.ledger.down(self.service, HUNG)
        getattr(self.world.edge, self.program).freeze()

    def end(self):
        self.down.mending = time.time()
        getattr(self.world.edge, self.program).thaw()
        self.down.end = time.time()


@fault("nsd-hung", part="dns", service="dns", program="nsd")
class NsdHung(_Hung):
    pass


@fault("nginx-hung", part="web", service="web", program="nginx")
class NginxHung(_Hung):
    pass


@fault("address-missing", part="web")
class AddressMissing(Fault):
    def begin(self):
        self.down = self.ledger.down("web", MISSING)
        self.world.edge.remove_address("192.0.2.80")

    def end(self):
        self.down.mending = time.time()
        self.world.edge.add_address("192.0.2.80")
        self.down.end = time.time()


@fault("flaps", part="flap", lasts=(1.0, 4.0))
class Flaps(Fault):
    """The service of a command goes down and comes up, faster than, as fast as and slower than rise and fall, in
    step with its checks and not."""

    def begin(self):
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.period = self.rng.choice([0.03, 0.1, 0.2, 0.25, 0.3, 0.4, 0.6, 1.2])
        self.jitter = self.rng.choice([0.0, 0.5])
        self.thread.start()

    def half(self):
        return self.period * self.rng.uniform(1 - self.jitter, 1 + self.jitter)

    def work(self):
        while not self.stop.is_set():
            down = self.ledger.down("flap", HUNG)
            self.world.n_flaps += 1
            self.world.set_flap("bad")
            self.stop.wait(self.half())
            down.mending = time.time()
            self.world.set_flap("good")
            down.end = time.time()
            self.stop.wait(self.half())

    def end(self):
        self.stop.set()
        self.thread.join(10)


class _Noise(Fault):
    """A command of another service misbehaves; whatever it does, nobody else may suffer."""

    part = "noise"

    def begin(self):
        self.world.set_noise(self.word)

    def end(self):
        self.world.set_noise("good")


for _word in ("hang", "fork", "flood"):
    fault(f"command-{_word}s", word=_word)(type("Noise", (_Noise,), {}))


@fault("address-removed", part="managed", lasts=(0.1, 2.0))
class AddressRemoved(Fault):
    """Somebody removes an address that the agent manages, once or again."""

    def begin(self):
        begun = time.time()
        if self.world.remove_managed():
            self.ledger.down("managed", MISSING, begun).end = time.time()
            self.ledger.removed.setdefault("managed", []).append(Span(begun, time.time(), (REMOVED,), self.name))

    def end(self):
        if self.rng.random() < 0.5:
            self.begin()


# ---- the agent ----


class _AgentAway(Fault):
    part = "agent"

    def begin(self):
        self.blind = self.span(self.ledger.blind)
        self.act()

    def end(self):
        self.mended = time.time()  # from then on the time is the agent's
        self.world.wait_agent()
        self.blind.end = time.time()


@fault("agent-killed", lasts=(0.0, 0.3))
class AgentKilled(_AgentAway):
    def act(self):
        self.world.expect_death()
        self.world.agent.process.send_signal(signal.SIGKILL)


@fault("agent-restarted", lasts=(0.0, 0.3))
class AgentRestarted(_AgentAway):
    def act(self):
        self.world.expect_death()
        self.world.agent.process.send_signal(signal.SIGUSR2)


@fault("agent-stopped", lasts=(0.5, 4.0))
class AgentStopped(_AgentAway):
    def act(self):
        self.world.agent.process.send_signal(signal.SIGSTOP)

    def end(self):
        self.world.agent.process.send_signal(signal.SIGCONT)
        super().end()


@fault("agent-stopped-for-long", lasts=(5.0, 60.0), long=True)
class AgentStoppedForLong(AgentStopped):
    pass


@fault("agent-killed-at-a-call", lasts=(0.5, 2.0))
class AgentKilledAtACall(_AgentAway):
    """Killed at its Nth system call from now on that is about files or sockets."""

    def act(self):
        self.world.expect_death()
        n = self.rng.randint(1, 60)
        self.strace = self.world.strace("trace=%file,%desc,%network", f"inject=%file,%desc,%network:signal=KILL:when={n}")

    def end(self):
        self.world.end_strace(self.strace)
        super().end()


@fault("reloads", part="reload")
class Reloads(Fault):
    """The same configuration again and again, and one with an error."""

    def begin(self):
        for broken in (False, True, False):
            self.world.agent.write_config("{" if broken else None)
            self.world.agent.process.send_signal(signal.SIGHUP)
            time.sleep(self.rng.uniform(0.0, 0.1))

    def end(self):
        self.world.agent.write_config()
        self.world.agent.process.send_signal(signal.SIGHUP)


# ---- the operator ----


class _Word(Fault):
    """What an operator says, and takes back. What the agent has confirmed holds, whatever happens to it; what it did
    not answer may be done all the same, then or when it can. Where it warns that a word is not on disk, the operator
    looks again when all is mended, for an agent that ended meanwhile has forgotten it."""

    lasts = (0.3, 3.0)

    def begin(self):
        self.said()
        self.sure = self.ask(*self.word) == (200, True)
        self.answered()

    def end(self):
        self.ends()
        if not self.undone():
            self.world.unfinished.append(lambda: until(self.undone, 15, f"{self.name} no more"))

    def undone(self):
        code, kept = self.ask(*self.undo)
        if code == 409 and self.sure:
            self.world.unexpected.append(f"{self.name}: what was confirmed is not known")
        self.sure = False  # from now on: a try without an answer may have done it
        done = code == 409 or (code == 200 and kept)
        if done:
            self.over()
        return done

    def ask(self, command, body):
        """The answer's code, or None; and whether it warns of nothing."""
        try:
            code, answer = self.world.agent.get(f"/v1/{command}", 1.0, "POST", json.dumps(body))
            return code, code == 200 and json.loads(answer)["warning"] is None
        except OSError:
            return None, False


@fault("drains", part="operator")
class Drains(_Word):
    word, undo = ("drain", {"name": "web"}), ("undrain", {"name": "web"})

    def said(self):
        self.down = self.ledger.down("web", DRAINED)

    def answered(self):
        self.down.mending = None if self.sure else self.down.begin

    def ends(self):
        self.down.mending = self.down.mending or time.time()

    def over(self):
        self.down.end = time.time()


@fault("freezes", part="freeze")
class Freezes(_Word):
    """What checks say changes nothing; a dead process and a missing address withdraw, and what they withdrew stays so."""

    word, undo = ("freeze", {}), ("thaw", {})
    held = None

    def said(self):
        self.blind = self.span(self.ledger.blind, (HUNG, REMOVED))

    def answered(self):
        if self.sure:
            self.held = self.span(self.ledger.frozen)

    def ends(self):
        if self.held:
            self.held.end = time.time()

    def over(self):
        self.blind.end = time.time()


@fault("weights", part="weight")
class Weights(_Word):
    """A prefix has another weight for a while, and nothing else changes."""

    undo = ("weight", {"name": WEB, "weight": None})

    def said(self):
        weight = self.rng.choice([0, 7, 150, 65535])
        self.word = ("weight", {"name": WEB, "weight": weight})
        self.given = Span(time.time(), None, (WEIGHED,), f"the operator's weight {weight}", weight=weight)
        self.ledger.weights.setdefault("web", []).append(self.given)

    def answered(self):
        self.given.begin = time.time()
        self.given.end = None if self.sure else self.given.begin

    def ends(self):
        self.given.end = self.given.end or time.time()

    def over(self):
        pass


# ---- BIRD ----


@fault("bird-killed", part="bird", lasts=(0.0, 2.0))
class BirdKilled(Fault):
    def begin(self):
        self.reset, self.blind = self.span(self.ledger.resets), self.span(self.ledger.blind)
        self.world.edge.bird.kill()

    def end(self):
        """It does not start while a fragment that somebody has cut lies there, and nobody is able to mend that; then it
        is tried again when all else is well, as systemd does."""
        if self.starts():
            self.finish()
        else:
            self.world.unfinished.append(self.finish)

    def finish(self):
        until(self.starts, 15, "BIRD starts")
        self.world.site.wait_sessions()
        self.reset.end = self.blind.end = time.time()

    def starts(self):
        bird = self.world.edge.bird
        if not bird.process.alive():
            with contextlib.suppress(AssertionError):
                bird.start()
        return bird.process.alive()


@fault("bird-restarted", part="bird", lasts=(0.0, 0.1))
class BirdRestarted(BirdKilled):
    def begin(self):
        self.reset, self.blind = self.span(self.ledger.resets), self.span(self.ledger.blind)
        self.world.edge.bird.stop()


@fault("bird-stopped", part="bird", lasts=(0.3, 4.0))
class BirdStopped(Fault):
    def begin(self):
        self.blind = self.span(self.ledger.blind)
        self.world.edge.bird.freeze()

    def end(self):
        self.world.edge.bird.thaw()
        self.blind.end = time.time()


class _Middleman(Fault):
    part = "socket"
    blinding = True

    def begin(self):
        self.blind = self.span(self.ledger.blind, EVERYTHING if self.blinding else FILES)
        self.world.middleman.mode = self.mode

    def end(self):
        self.world.middleman.mode = "pass"
        self.blind.end = time.time()


for _mode, _blinding in (("hang", True), ("garbage", True), ("refuse", True), ("drip", False)):
    fault(f"socket-{_mode}s", mode=_mode, blinding=_blinding)(type("Socket", (_Middleman,), {}))


@fault("bird-conf-broken", part="conf", lasts=(0.5, 3.0))
class BirdConfBroken(Fault):
    """Somebody breaks bird.conf, tries to load it, and repairs it. Only what has to be loaded is excused."""

    def begin(self):
        self.blind = self.span(self.ledger.blind, (WEIGHED,))
        self.world.edge.break_bird_conf()
        self.world.birdc("configure")

    def end(self):
        self.world.edge.repair_bird_conf()
        self.world.birdc("configure")
        self.blind.end = time.time()


class _Hand(Fault):
    lasts = (0.0, 0.2)

    def begin(self):
        hand = self.span(self.ledger.hands)
        self.act()
        hand.end = time.time()


@fault("hand-configures", part="conf", lasts=(0.0, 0.5))
class HandConfigures(Fault):
    """Somebody has BIRD read its configuration again, several times. Nothing is excused."""

    def begin(self):
        for _ in range(self.rng.randint(1, 4)):
            self.world.birdc("configure")
            time.sleep(self.rng.uniform(0.0, 0.1))


@fault("hand-disables", part="hand")
class HandDisables(_Hand):
    def act(self):
        self.world.birdc('disable "redshank:*"')


@fault("hand-enables", part="hand")
class HandEnables(_Hand):
    def act(self):
        self.world.birdc('enable "redshank:*"')


@fault("hand-restarts", part="hand")
class HandRestarts(_Hand):
    def act(self):
        self.world.birdc('restart "redshank:*"')


# ---- the fragments ----


class _Fragments(_Hand):
    part = "fragments"

    def files(self):
        return [os.path.join(self.world.edge.fragments, f) for f in sorted(os.listdir(self.world.edge.fragments))
                if f.endswith(".conf")]

    def act(self):
        for path in self.files():
            with contextlib.suppress(OSError):
                self.spoil(path)
        self.world.birdc("configure")


@fault("fragments-deleted")
class FragmentsDeleted(_Fragments):
    def spoil(self, path):
        os.unlink(path)


@fault("fragments-emptied")
class FragmentsEmptied(_Fragments):
    def spoil(self, path):
        os.truncate(path, 0)


@fault("fragments-cut")
class FragmentsCut(_Fragments):
    def spoil(self, path):
        os.truncate(path, self.rng.randint(0, os.path.getsize(path)))


@fault("fragments-of-others")
class FragmentsOfOthers(_Fragments):
    """A foreign file beside ours, which BIRD reads too."""

    def act(self):
        self.path = os.path.join(self.world.edge.fragments, "foreign.conf")
        with contextlib.suppress(OSError), open(self.path, "w", encoding="ascii") as f:
            f.write("# of somebody else\nprotocol static foreign { ipv4; }\n")
        self.world.birdc("configure")

    def end(self):
        with contextlib.suppress(OSError):
            os.unlink(self.path)
        self.world.birdc("configure")


@fault("disk-full", part="disk")
class DiskFull(Fault):
    def begin(self):
        self.blind = self.span(self.ledger.blind, FILES)
        self.path = os.path.join(self.world.edge.fragments, "ballast")
        with contextlib.suppress(OSError), open(self.path, "wb", buffering=0) as f:
            while True:
                f.write(b"x" * 4096)

    def end(self):
        with contextlib.suppress(OSError):
            os.unlink(self.path)
        self.blind.end = time.time()


@fault("disk-read-only", part="disk")
class DiskReadOnly(Fault):
    """Where it can not be made read-only because a file is being written, it is tried again."""

    def begin(self):
        self.blind = self.span(self.ledger.blind, FILES)
        self.world.remount("ro")
        self.world.n_stale_files += 1

    def end(self):
        self.world.remount("rw")
        self.world.n_stale_files -= 1
        self.blind.end = time.time()


# ---- the system's answers ----


class _Injected(Fault):
    """The kernel answers with an error. Connects that cannot be made say nothing about a service."""

    part = "agent"  # one tracer at a time
    blinding = ()

    def begin(self):
        self.blind = self.span(self.ledger.blind, self.blinding)
        self.world.n_stale_files += "unlinkat" in self.calls
        self.strace = self.world.strace(f"trace={self.calls}", f"inject={self.calls}:error={self.error}")

    def end(self):
        self.world.end_strace(self.strace)
        self.world.n_stale_files -= "unlinkat" in self.calls
        self.blind.end = time.time()


for _name, _calls, _error, _blinding in (
    ("no-space", "rename,renameat,renameat2,fsync,ftruncate", "ENOSPC", FILES),
    ("io-errors", "rename,renameat,renameat2,fsync,unlink,unlinkat", "EIO", FILES),
    ("read-only", "rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat", "EROFS", FILES),
    ("no-descriptors", "open,openat,socket,accept,accept4,pidfd_open,timerfd_create,pipe2,dup,dup2", "EMFILE", (HUNG, RECONNECTS, *FILES)),
    ("no-forks", "fork,vfork,clone,clone3", "EAGAIN", ()),
):
    fault(_name, calls=_calls, error=_error, blinding=_blinding)(type("Injected", (_Injected,), {}))


@fault("no-memory", part="agent", plain=True)
class NoMemory(Fault):
    """Every allocation of the agent fails; see famine.c."""

    def begin(self):
        self.blind = self.span(self.ledger.blind, (HUNG, RECONNECTS, *FILES))
        self.world.agent.process.send_signal(signal.SIGRTMIN + 1)

    def end(self):
        self.world.agent.process.send_signal(signal.SIGRTMIN + 2)
        self.blind.end = time.time()


@fault("clock-jumps", part="clock", lasts=(0.3, 2.0))
class ClockJumps(Fault):
    """The agent's wall clock is an hour ahead, or behind; then it jumps back."""

    def begin(self):
        self.world.jump(self.rng.choice([-3600, 3600]))

    def end(self):
        self.world.jump(0)


@fault("descriptors-leaked", part="clients", lasts=(1.0, 3.0))
class DescriptorsLeaked(Fault):
    """A client of the status socket opens 10,000 connections, and never asks or closes. Those that find no place
    are sockets that it holds, too."""

    def begin(self):
        self.leak = subprocess.Popen(
            ["/usr/bin/python3", "-c", LEAK, self.world.agent.socket, str(LEAKED)],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )

    def end(self):
        ready, _, _ = select.select([self.leak.stdout], [], [], 10)
        held = os.read(self.leak.stdout.fileno(), 64) if ready else b""
        self.leak.kill()
        self.leak.wait()
        self.leak.stdout.close()
        if held.strip() != str(LEAKED).encode():
            self.world.unexpected.append(f"only {held} of {LEAKED} descriptors were held")


LEAKED = 10000
LEAK = """
import resource, socket, sys, time
resource.setrlimit(resource.RLIMIT_NOFILE, (12000, 20000))
held = []
for n in range(int(sys.argv[2])):
    s = socket.socket(socket.AF_UNIX)
    s.setblocking(False)
    try:
        s.connect(sys.argv[1])
    except OSError:
        time.sleep(0.0001)
    held.append(s)
print(len(held), flush=True)
time.sleep(60)
"""


@fault("log-full", part="log")
class LogFull(Fault):
    """Nobody reads what the agent logs."""

    def begin(self):
        self.world.hold_log()

    def end(self):
        self.world.let_log()
