"""The bench of the wire: from kill(2) of a watched process to its last UPDATE on the router's veth.

Each scenario takes N samples of the agent and N of the floor, one after the other on the same
process, the same BIRD and the same protocols, so that whatever the machine does meanwhile falls on
both. Before each sample the service has come back and is announced. For a floor sample the agent
is stopped by SIGSTOP, and bench-floor, a bare watcher of the process's pidfd, writes one raw
`disable`; see floor.c. Times: kill(2) by the clock just before it, the UPDATE by the kernel's time
stamp of the packet, both CLOCK_REALTIME. What counts is the UPDATE after which no prefix of the
dead service is left.
"""

import argparse
import dataclasses
import ipaddress
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import time

from lib import birds
from lib.agentctl import ROOT, build_folder
from lib.chance import chance
from lib.crowd import Crowd
from lib.netns import Cannot
from lib.services import Nsd, Service
from lib.shedsite import wait_started
from lib.site import Site
from lib.wait import until
from lib.wire import ANNOUNCE, WITHDRAW

MEASURED = "192.0.2.53/32"
FEED_AS = 64502
RENDER_MS = 5.0  # of the loop for a scrape with 500 prefixes and 2,000 checks


@dataclasses.dataclass
class Scenario:
    name: str
    text: str
    prefixes: int = 1  # of the service that dies
    others: int = 0  # services beside it, with as many prefixes each
    table: int = 0  # routes in the edge's main table
    megabytes: int = 0  # of the process that dies; 0: nsd
    timed: bool = True  # is it held against 2 and 10 ms too, or only against the floor?
    beside: int = 0  # prefixes of each of those services; 0: as many as `prefixes`
    checks: int = 0  # of each of those services; 0: one that watches BIRD's process
    scrapers: int = 0  # clients that never rest and ask for `path`
    path: str = "/metrics"
    crowd: int = 0  # made-up neighbours that ask for reports and promises as fast as they are let


SCENARIOS = [
    Scenario("one", "1 prefix"),
    Scenario("fifty", "a service of 50 prefixes", prefixes=50),
    Scenario("many", "a service of 5,000 prefixes", prefixes=5000, timed=False),
    Scenario("spread", "50 services of 100 prefixes, one dies", prefixes=100, others=49, timed=False),
    Scenario("full", "1 prefix, 900,000 routes in the table", table=900000),
    Scenario("big", "1 prefix, a process of 1 GB", megabytes=1024, timed=False),
    Scenario("unscraped", "250 services with 500 prefixes and 2,000 checks beside it", others=250, beside=2, checks=8),
    Scenario("scraped", "the same, and 20 scrapers of the metrics that never rest", others=250, beside=2, checks=8, scrapers=20),
    Scenario("watched", "5,000 prefixes, and 4 readers of the status that never rest", others=50, beside=100, scrapers=4, path="/v1/status"),
    Scenario("storm", "64 neighbours that ask for reports and promises as fast as they are let", crowd=64),
]


class Ballast(Service):
    """A process that holds memory and serves nobody."""

    name = "ballast"

    def __init__(self, host, megabytes):
        super().__init__(host)
        self.megabytes = megabytes

    def argv(self):
        return [program("bench-ballast"), str(self.megabytes), self.pidfile]

    def answers(self):
        return True


class Scrapers:
    """They go on during the floor's samples, too, but the agent is stopped then and they wait."""

    def __init__(self, path, scenario):
        self.process = subprocess.Popen(
            [program("bench-scrapers"), path, scenario.path, str(scenario.scrapers)],
            stdout=subprocess.PIPE, text=True,
        )
        self.begun, self.said = time.time(), None
        if self.process.stdout.readline() != "ready\n":
            raise AssertionError("bench-scrapers is not ready")

    def stop(self):
        """Ends them, once. They were all served, and what they got is printed."""
        if self.said is not None:
            return
        self.process.terminate()
        words = self.process.communicate(timeout=10)[0].split()
        self.said = dict(zip(words[::2], map(int, words[1::2])))
        seconds = time.time() - self.begun
        print(f"  {self.said['answers'] / seconds:.0f} answers/s, {self.said['bytes'] / seconds / 1e6:.0f} MB/s, wrong: {self.said['wrong']}")
        if self.said["answers"] == 0 or self.said["wrong"]:
            raise AssertionError(f"scrapers: {self.said}")


def program(name):
    path = os.path.join(build_folder_of(name), name)
    if not os.access(path, os.X_OK):
        raise Cannot(f"{path} is not built")
    return path


def build_folder_of(name):
    try:
        return os.path.join(build_folder(), "tests", "bench")
    except Cannot:  # the floor can be measured without an agent
        return os.path.join(ROOT, os.environ.get("REDSHANK_BUILD", "build/release"), "tests", "bench")


def prefixes_of(scenario):
    """The dead service's prefixes: the measured one, and hosts of 10.0.0.0/8."""
    base = int(ipaddress.ip_address("10.0.0.0"))
    return [MEASURED] + [f"{ipaddress.ip_address(base + i)}/32" for i in range(1, scenario.prefixes)]


def other_prefixes(scenario, index):
    each = scenario.beside or scenario.prefixes
    base = int(ipaddress.ip_address("10.1.0.0")) + index * each
    return [f"{ipaddress.ip_address(base + i)}/32" for i in range(each)]


class Bench:
    """One scenario: a site with one edge, its service, and an agent unless `floor_only`."""

    def __init__(self, scenario, floor_only):
        self.scenario = scenario
        self.floor_only = floor_only
        self.scrapers = self.crowd = None
        self.told = {}  # by the agent's own metrics
        self.dice = chance()
        feed = FEED_CONFIG if scenario.table else ""
        self.site = Site(edges=1, services=False, bird_extra=feed)
        try:
            self.edge = self.site.edges[0]
            self.service = Ballast(self.edge.host, scenario.megabytes) if scenario.megabytes else Nsd(self.edge.host)
            self.prefixes = prefixes_of(scenario)
            if scenario.table:
                self.fill_table()
            self.begin()
        except BaseException:
            self.site.close()
            raise

    def fill_table(self):
        """A neighbour with a full table, over BGP as in life."""
        feeder = self.site.lab.host("feeder")
        self.site.lab.link(self.edge.host, feeder, "feeder", "edge1")
        self.edge.host.ip("addr add 203.0.113.1/30 dev feeder")
        feeder.ip("addr add 203.0.113.2/30 dev edge1")
        with open(feeder.path("routes.conf"), "w", encoding="ascii") as f:
            base = int(ipaddress.ip_address("16.0.0.0"))
            for i in range(self.scenario.table):
                f.write(f"route {ipaddress.ip_address(base + i * 256)}/24 unreachable;\n")
        bird = birds.Bird(feeder, feeder_config(feeder))
        bird.start()
        until(
            lambda: f"{self.scenario.table} of {self.scenario.table} routes"
            in self.edge.birdc("show route protocol feed count").text,
            180, lambda: "the full table, now " + self.edge.birdc("show route protocol feed count").text, every=1,
        )

    def begin(self):
        """The service runs and is announced for the first time."""
        since = time.time()
        self.service.start()
        if self.floor_only:
            self.edge.write_fragment("dns", fragment(self.prefixes))
            self.edge.bird.configure()
        else:
            self.edge.agent.config["services"] = self.services()
            if self.scenario.crowd:
                self.crowd = Crowd(self.site, self.edge, self.scenario.crowd, MEASURED)
            self.edge.agent.start()
        self.wait_all(ANNOUNCE, since, 60)
        self.settle()
        if self.scenario.scrapers and not self.floor_only:
            self.scrapers = Scrapers(self.edge.agent.socket, self.scenario)
        if self.crowd:
            self.crowd.start()
            wait_started(since)

    def services(self):
        """The agent's configuration: the service that dies, and the others, which never do."""
        checks = {"process": {"type": "process", "pidfile": self.service.pidfile}}
        if not self.scenario.megabytes:
            checks["port"] = {"type": "tcp", "address": "192.0.2.53", "port": 53}
        found = {"dns": {"prefixes": {p: weight(p) for p in self.prefixes}, "checks": checks}}
        for i in range(self.scenario.others):
            found[f"other{i}"] = {
                "prefixes": {p: weight(p) for p in other_prefixes(self.scenario, i)},
                "checks": self.other_checks(),
            }
        return found

    def other_checks(self):
        """Those of a service that is there to be told of, and costs nothing else."""
        if not self.scenario.checks:
            return {"process": {"type": "process", "pidfile": self.edge.bird.host.path("bird.pid")}}
        slow = {"type": "tcp", "address": "127.0.0.1", "port": 1, "interval": "60s", "fast_interval": "60s"}
        return {f"port{i}": dict(slow) for i in range(self.scenario.checks)}

    def wait_all(self, kind, since, timeout=10):
        """The times of the first and the last event of this kind over all prefixes of the service."""
        left = set(self.prefixes)
        times = []

        def is_last(event):
            if event.kind == kind and event.time >= since and event.prefix in left:
                left.discard(event.prefix)
                times.append(event.time)
            return not left

        self.site.wire.wait(is_last, timeout, since, f"{kind} of {len(self.prefixes)} prefixes; missing {len(left)}")
        return times[0], times[-1]

    def settle(self):
        """Nothing is under way, and then a moment that is not in step with the checks."""
        if not self.floor_only:
            self.edge.agent.wait_status(lambda s: s["bird"]["settled"] is True, 20, "settled")
        time.sleep(self.dice.uniform(0.02, 0.1))

    def recover(self):
        since = time.time()
        self.service.start()
        if self.floor_only:
            self.edge.birdc(f'enable "{self.protocol()}"')
        self.wait_all(ANNOUNCE, since, 30)
        self.settle()

    def protocol(self):
        return "redshank:dns:192.0.2.53" if len(self.prefixes) == 1 else "redshank:dns:*"

    def sample_agent(self):
        killed = self.service.kill()
        first, last = self.wait_all(WITHDRAW, killed)
        return {"killed": killed, "first_us": us(first - killed), "update_us": us(last - killed)}

    def sample_floor(self):
        command = f'disable "{self.protocol()}"'
        if not self.floor_only:
            self.edge.agent.process.freeze()
        floor = subprocess.Popen(
            [program("bench-floor"), str(self.service.pid), self.edge.bird.socket, command],
            stdout=subprocess.PIPE, text=True,
        )
        try:
            if floor.stdout.readline() != "ready\n":
                raise AssertionError("bench-floor is not ready")
            killed = self.service.kill()
            first, last = self.wait_all(WITHDRAW, killed)
            stamps = dict(line.split() for line in floor.stdout)
        finally:
            floor.kill()
            floor.wait()
            floor.stdout.close()
            if not self.floor_only:
                self.edge.agent.process.thaw()
        word, written = int(stamps["word"]) / 1e9, int(stamps["written"]) / 1e9
        return {
            "killed": killed,
            "word_us": us(word - killed),
            "disable_us": us(last - word),
            "written_us": us(written - word),
            "first_us": us(first - killed),
            "update_us": us(last - killed),
        }

    def run(self, samples):
        agent, floor = [], []
        for i in range(samples):
            for measure, kept in ((self.sample_floor, floor), (self.sample_agent, agent)):
                if self.floor_only and kept is agent:
                    continue
                kept.append(measure())
                self.recover()
            progress(self.scenario.name, i + 1, samples)
        if self.scrapers:
            self.scrapers.stop()
            if self.scenario.path == "/metrics":
                self.tell_renders()
        if self.crowd:
            self.tell_loop()
            print(f"  the crowd was answered: {self.crowd.stop()}")
        if self.site.problems():
            raise AssertionError("\n".join(self.site.problems()))
        return agent, floor

    def tell_renders(self):
        """What one document of the metrics costs the agent's loop, however many share it."""
        text = self.edge.agent.get("/metrics", timeout=10)[1].decode()
        renders, seconds = (float(re.search(f"^redshank_metrics_{what}_total ([0-9.e+-]+)", text, re.M)[1])
                            for what in ("renders", "render_seconds"))
        self.told["render_ms"] = round(1000 * seconds / renders, 2)
        print(f"  {renders:.0f} documents of the metrics were made, of {self.told['render_ms']} ms each")

    def tell_loop(self):
        """How long a turn of the agent's loop took, by its own metrics; whatever else runs on the machine."""
        text = self.edge.agent.get("/metrics", timeout=10)[1].decode()
        turns = re.findall(r'^redshank_loop_turn_duration_seconds_bucket\{le="([^"]+)"\} (\d+)', text, re.M)
        last = int(turns[-1][1])
        bound = next(le for le, n in turns if int(n) == last)
        print(f"  of {last} turns of the agent's loop, while it was asked, none took over {bound} s")

    def close(self):
        if self.scrapers:
            self.scrapers.stop()
        self.site.close()


FEED_CONFIG = f"""
protocol bgp feed {{
	local 203.0.113.1 as {birds.EDGE_AS};
	neighbor 203.0.113.2 as {FEED_AS};
	connect delay time 1;
	connect retry time 1;
	error wait time 1, 2;
	ipv4 {{ import all; export none; }};
}}
"""


def feeder_config(host):
    return f"""\
log "{host.path('bird.log')}" all;
router id 203.0.113.2;
protocol device {{ scan time 10; }}
protocol static full {{
	ipv4;
	include "{host.path('routes.conf')}";
}}
protocol bgp edge {{
	local 203.0.113.2 as {FEED_AS};
	neighbor 203.0.113.1 as {birds.EDGE_AS};
	connect delay time 1;
	connect retry time 1;
	error wait time 1, 2;
	ipv4 {{ import none; export all; next hop self; }};
}}
"""


def weight(prefix):
    return 100 if prefix == MEASURED else {"weight": 100, "address_check": False}


def fragment(prefixes):
    """What the agent would write, for a floor without it."""
    routes = "".join(f"\troute {p} unreachable {{ redshank_weight = 100; }};\n" for p in prefixes)
    return (
        "protocol static 'redshank:dns:192.0.2.53' {\n"
        f"\tipv4 {{ table redshank4; preference 250; }};\n{routes}}}\n"
    )


def us(seconds):
    return round(seconds * 1e6, 1)


def progress(name, done, samples):
    if sys.stderr.isatty():
        print(f"\r{name}: {done}/{samples} ", end="" if done < samples else "\r", file=sys.stderr, flush=True)


def figures(samples, key="update_us"):
    """min, median, 99th percentile (nearest rank) and max, in microseconds."""
    values = sorted(s[key] for s in samples)
    rank = max(1, -(-99 * len(values) // 100))
    return {
        "min": values[0], "median": round(statistics.median(values), 1), "p99": values[rank - 1], "max": values[-1],
    }


def summary(agent, floor):
    found = {"floor": figures(floor), "word": figures(floor, "word_us"), "disable": figures(floor, "disable_us")}
    if agent:
        found["agent"] = figures(agent)
        found["ratio"] = round(found["agent"]["median"] / found["floor"]["median"], 2)
    return found


def verdict(scenario, found):
    if "agent" not in found:
        return "floor only"
    missed = []
    if scenario.timed and found["agent"]["median"] >= 2000:
        missed.append("median over 2 ms")
    if found["ratio"] > 1.5:
        missed.append("over 1.5 times the floor")
    if scenario.timed and found["agent"]["p99"] >= 10000:
        missed.append("p99 over 10 ms")
    if found.get("render_ms", 0) >= RENDER_MS:
        missed.append(f"a scrape takes {found['render_ms']} ms of the loop")
    text = ", ".join(missed) or "met"
    if scenario.timed and missed and (found["floor"]["median"] > 1500 or found["floor"]["p99"] > 5000):
        text += " (but so slow a floor means a busy machine: measure again)"
    return text


def row(name, f):
    return f"  {name:<28}{f['min'] / 1000:>9.2f}{f['median'] / 1000:>9.2f}{f['p99'] / 1000:>9.2f}{f['max'] / 1000:>9.2f}"


def report(scenario, samples, found):
    print(f"{scenario.name}: {scenario.text}, {samples} kills (ms)")
    print(f"  {'':<28}{'min':>9}{'median':>9}{'p99':>9}{'max':>9}")
    if "agent" in found:
        print(row("kill to UPDATE, agent", found["agent"]))
    print(row("kill to UPDATE, floor", found["floor"]))
    print(row("  kill to kernel's word", found["word"]))
    print(row("  word to UPDATE (disable)", found["disable"]))
    ratio = f"ratio of medians {found['ratio']:.2f}; " if "ratio" in found else ""
    print(f"  {ratio}{verdict(scenario, found)}\n", flush=True)


def keep(scenario, agent, floor, found, version):
    folder = os.path.join(ROOT, "build", "bench")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, scenario.name + ".json")
    document = {
        "scenario": dataclasses.asdict(scenario),
        "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "kernel": platform.release(),
        "cpus": os.cpu_count(),
        "load": os.getloadavg(),
        "bird": version,
        "summary": found,
        "agent": agent,
        "floor": floor,
    }
    with open(path, "w", encoding="ascii") as f:
        json.dump(document, f, indent=1)
        f.write("\n")


def main():
    names = [s.name for s in SCENARIOS]
    text = "\n".join(f"  {s.name:<8} {s.text}" for s in SCENARIOS)
    parser = argparse.ArgumentParser(
        prog="tests/bench/run", description="scenarios (default all):\n" + text,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("scenario", nargs="*", choices=[*names, []], metavar="SCENARIO")
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--floor-only", action="store_true", help="without an agent")
    arguments = parser.parse_args()
    missed = False
    for scenario in SCENARIOS:
        if arguments.scenario and scenario.name not in arguments.scenario:
            continue
        bench = Bench(scenario, arguments.floor_only)
        try:
            agent, floor = bench.run(arguments.samples)
            version = bench.edge.birdc("show status").lines[0][1]
        except Exception:
            print(bench.site.report(), file=sys.stderr)
            raise
        finally:
            bench.close()
        found = {**summary(agent, floor), **bench.told}
        report(scenario, arguments.samples, found)
        keep(scenario, agent, floor, found, version)
        missed = missed or verdict(scenario, found) not in ("met", "floor only")
    return 1 if missed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Cannot as e:
        print(f"skip - {e}")
        sys.exit(77)
