"""The bench of the http checks and of an agent that rests: processor time and memory.

  http  1,000 http checks a second, in 50 services, beside bench-epoll-client doing the same requests
        to the same nginx for the same time; several rounds, one after the other, so that whatever
        the machine does meanwhile falls on both
  tls   200 https checks a second, verified, beside nothing: what a handshake costs
  dns   200 dns checks a second over UDP, in 50 services, against one nsd; then 20 a second over TLS,
        for what a handshake costs
  idle  50 services with three checks each a second (process, tcp, http), settled

Processor time is user and system of /proc/PID/stat; memory is /proc/PID/smaps_rollup.
"""

import argparse
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import time

from lib import client
from lib.agentctl import build_folder
from lib.services import Nginx, Nsd
from lib.site import Site
from lib.wait import until

TICK = os.sysconf("SC_CLK_TCK")
SERVICES, PER_SERVICE = 50, 20
RATIO, ANONYMOUS_AT_RATE, ANONYMOUS_IDLE, IDLE_CPU = 3.0, 30.0, 10.0, 0.5


class TlsNsd(Nsd):
    """Speaks TLS on port 853, too, with a certificate that is its own authority."""

    def __init__(self, host):
        super().__init__(host)
        run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
             "2", "-subj", "/CN=dns.example.net", "-addext", "subjectAltName=DNS:dns.example.net", "-keyout",
             f"{self.dir}/key.pem", "-out", f"{self.dir}/cert.pem"])
        with open(self.conf, encoding="ascii") as f:
            text = f.read()
        tls = (f'\tip-address: 192.0.2.53@853\n\ttls-port: 853\n\ttls-service-key: "{self.dir}/key.pem"\n'
               f'\ttls-service-pem: "{self.dir}/cert.pem"\n')
        with open(self.conf, "w", encoding="ascii") as f:
            f.write(text.replace("remote-control:", tls + "remote-control:"))


class FastNginx(Nginx):
    """Room for all connections at once, two processes, and TLS on port 443."""

    def __init__(self, host, workers=1):
        super().__init__(host)
        run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
             "2", "-subj", "/CN=www.example.net", "-addext", "subjectAltName=DNS:www.example.net", "-keyout",
             f"{self.dir}/key.pem", "-out", f"{self.dir}/cert.pem"])
        with open(self.conf, encoding="ascii") as f:
            text = f.read()
        text = text.replace("worker_connections 512", "worker_connections 8192")
        text = text.replace("worker_processes 1", f"worker_processes {workers}")
        text = text.replace(
            "listen 192.0.2.80:80;",
            "listen 192.0.2.80:80 backlog=4096; listen 192.0.2.80:443 ssl;"
            f"ssl_certificate {self.dir}/cert.pem; ssl_certificate_key {self.dir}/key.pem;",
        )
        text = text.replace("location = /healthz", "location = /served { stub_status; }\n\t\tlocation = /healthz")
        with open(self.conf, "w", encoding="ascii") as f:
            f.write(text)

    def served(self):
        """Requests so far."""
        with self.host.inside():
            return int(client.fetch("192.0.2.80", "/served", 5).split("requests")[1].split()[2])


def run(argv):
    subprocess.run(argv, check=True, capture_output=True)


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def memory(pid):
    """Anonymous and proportional memory in MB."""
    found = {}
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
        for line in f:
            word, *rest = line.split()
            found[word] = rest
    return int(found["Anonymous:"][0]) / 1024, int(found["Pss:"][0]) / 1024


def prefix(service):
    return f"10.2.{service}.1/32"


def config(agent, checks):
    made = agent.default_config()
    made["defaults"] = {"interval": "1s", "fast_interval": "1s", "timeout": "900ms", "rise": 2, "fall": 2}
    made["services"] = {
        f"web{s}": {
            "prefixes": {prefix(s): {"weight": 100, "address_check": False}},
            "checks": checks(s),
        }
        for s in range(SERVICES)
    }
    return made


def page(service, i, tls=None):
    check = {
        "type": "http",
        "url": f"{'https' if tls else 'http'}://192.0.2.80/healthz?{service}.{i}",
        "host": "www.example.net",
        "expect": {"body": "ok"},
    }
    return dict(check, ca=tls) if tls else check


def settle(site, edge):
    """Until every check has been good often enough."""
    edge.agent.start()
    edge.agent.wait_status(
        lambda s: all(c["state"] == "up" for v in s["services"].values() for c in v["checks"].values()), 60, "all up"
    )
    edge.agent.wait_status(lambda s: s["bird"]["settled"], 30, "settled")


def measure(pid, seconds):
    """Processor seconds that it used in so many seconds, by the clock; and what it holds then."""
    before, begun = cpu_seconds(pid), time.monotonic()
    time.sleep(seconds)
    used, passed = cpu_seconds(pid) - before, time.monotonic() - begun
    return used / passed * seconds, memory(pid)


def bare(edge, rate, seconds):
    program = os.path.join(build_folder(), "tests", "bench", "bench-epoll-client")
    done = edge.host.run(
        [program, "192.0.2.80", "80", "www.example.net", "/healthz", str(rate), str(seconds)], timeout=seconds + 20
    )
    words = done.stdout.split()
    if words[3] != "0":
        raise AssertionError(done.stdout)
    return float(words[5])


def with_site(checks, measured):
    with Site(edges=1, services=False) as site:
        edge = site.edges[0]
        edge.nginx = FastNginx(edge.host)
        edge.nginx.start()
        edge.agent.config = config(edge.agent, lambda s: checks(edge, s))
        settle(site, edge)
        return measured(site, edge)


def bench_http(rounds, seconds):
    def measured(site, edge):
        rate, samples = SERVICES * PER_SERVICE, []
        for _ in range(rounds):
            before = edge.nginx.served()
            agent, (anonymous, proportional) = measure(edge.agent.pid, seconds)
            served = (edge.nginx.served() - before) / seconds
            os.kill(edge.agent.pid, signal.SIGSTOP)
            try:
                floor = bare(edge, rate, seconds)
            finally:
                os.kill(edge.agent.pid, signal.SIGCONT)
            samples.append(
                {"agent_s": agent, "client_s": floor, "ratio": agent / floor, "served": served, "anonymous_mb": anonymous,
                 "proportional_mb": proportional}
            )
            print(f"  agent {agent / seconds:6.1%} of a core, bare client {floor / seconds:6.1%}, ratio "
                  f"{agent / floor:.2f}, anonymous {anonymous:.1f} MB, proportional {proportional:.1f} MB, "
                  f"{served:.0f} served a second", flush=True)
            until(lambda: time.sleep(2) or True)
        downs = sum(c["state"] != "up" for v in edge.agent.status()["services"].values() for c in v["checks"].values())
        ratio = statistics.median(s["ratio"] for s in samples)
        anonymous = max(s["anonymous_mb"] for s in samples)
        served = min(s["served"] for s in samples)
        return samples, [
            (f"{served:.0f} of {rate} requests a second were made", served > 0.97 * rate),
            (f"processor time {ratio:.2f} times the bare client's", ratio <= RATIO),
            (f"anonymous memory {anonymous:.1f} MB at {rate} checks a second", anonymous < ANONYMOUS_AT_RATE),
            (f"{downs} of {rate} checks are down", downs == 0),
        ]

    return with_site(lambda edge, s: {f"page{i}": page(s, i) for i in range(PER_SERVICE)}, measured)


def bench_tls(rounds, seconds):
    def measured(site, edge):
        samples = []
        for _ in range(rounds):
            agent, (anonymous, proportional) = measure(edge.agent.pid, seconds)
            samples.append({"agent_s": agent, "anonymous_mb": anonymous, "proportional_mb": proportional})
            print(f"  agent {agent / seconds:6.1%} of a core at {SERVICES * 4} handshakes a second, anonymous "
                  f"{anonymous:.1f} MB, proportional {proportional:.1f} MB", flush=True)
        anonymous = max(s["anonymous_mb"] for s in samples)
        return samples, [(f"anonymous memory {anonymous:.1f} MB", anonymous < ANONYMOUS_AT_RATE)]

    def checks(edge, s):
        return {f"page{i}": page(s, i, tls=f"{edge.nginx.dir}/cert.pem") for i in range(4)}

    return with_site(checks, measured)


def udp_datagrams(host):
    """UDP datagrams that this host has received, queries and answers alike."""
    names, values = [line.split() for line in host.run(["cat", "/proc/net/snmp"]).stdout.splitlines() if line[:4] == "Udp:"]
    return int(values[names.index("InDatagrams")])


def dns_rounds(transport, per_service, more, rounds, seconds):
    """One agent with these checks against nsd: its samples."""
    with Site(edges=1, services=False) as site:
        edge = site.edges[0]
        edge.nsd = TlsNsd(edge.host)
        edge.nsd.start()
        ask = {"type": "dns", "server": "192.0.2.53", "name": "health.example.net", "rrtype": "A", "transport": transport,
               "expect": {"answers": ["192.0.2.53"], "authoritative": True}, **more(edge)}
        edge.agent.config = config(edge.agent, lambda s: {f"ask{i}": dict(ask) for i in range(per_service)})
        settle(site, edge)
        samples = []
        for _ in range(rounds):
            before = udp_datagrams(edge.host)
            agent, (anonymous, proportional) = measure(edge.agent.pid, seconds)
            served = (udp_datagrams(edge.host) - before) / 2 / seconds
            downs = sum(c["state"] != "up" for v in edge.agent.status()["services"].values() for c in v["checks"].values())
            samples.append({"transport": transport, "agent_s": agent, "served": served, "downs": downs,
                            "anonymous_mb": anonymous, "proportional_mb": proportional})
            print(f"  {transport}: agent {agent / seconds:6.2%} of a core, anonymous {anonymous:.1f} MB, proportional "
                  f"{proportional:.1f} MB" + (f", {served:.0f} queries a second" if transport == "udp" else ""), flush=True)
        return samples


def bench_dns(rounds, seconds):
    udp = dns_rounds("udp", 4, lambda edge: {}, rounds, seconds)
    tls = dns_rounds(
        "tls", 1,
        lambda edge: {"tls_name": "dns.example.net", "ca": f"{edge.nsd.dir}/cert.pem", "interval": "2500ms",
                      "fast_interval": "2500ms"},
        rounds, seconds,
    )
    used = {t: statistics.median(s["agent_s"] for s in samples) / seconds for t, samples in (("udp", udp), ("tls", tls))}
    anonymous, served = max(s["anonymous_mb"] for s in udp), min(s["served"] for s in udp)
    return udp + tls, [
        (f"{served:.0f} of 200 queries a second were answered", served > 0.97 * 200),
        (f"anonymous memory {anonymous:.1f} MB with {SERVICES} services", anonymous < ANONYMOUS_IDLE),
        (f"{max(s['downs'] for s in udp + tls)} checks are down", not any(s["downs"] for s in udp + tls)),
        (f"{used['udp'] / 200 * 1e6:.0f} us of processor time a query over UDP, {used['tls'] / 20 * 1e6:.0f} us over TLS", True),
    ]


def bench_idle(rounds, seconds):
    def measured(site, edge):
        samples = []
        for _ in range(rounds):
            agent, (anonymous, proportional) = measure(edge.agent.pid, seconds)
            samples.append({"agent_s": agent, "anonymous_mb": anonymous, "proportional_mb": proportional})
            print(f"  agent {agent / seconds:6.2%} of a core, anonymous {anonymous:.1f} MB, proportional "
                  f"{proportional:.1f} MB", flush=True)
        cpu = statistics.median(s["agent_s"] for s in samples) / seconds * 100
        anonymous = max(s["anonymous_mb"] for s in samples)
        return samples, [
            (f"anonymous memory {anonymous:.1f} MB with {SERVICES} services", anonymous < ANONYMOUS_IDLE),
            (f"{cpu:.2f} % of a core with {SERVICES} services", cpu < IDLE_CPU),
        ]

    return measured


def idle(rounds, seconds):
    """Two shapes: a process each, which is what rests, and three checks a second each."""
    measured = bench_idle(rounds, seconds)
    print("  50 services, one process check each:")
    first = with_site(lambda edge, s: {"process": {"type": "process", "pidfile": edge.nginx.pidfile}}, measured)
    print("  50 services, three checks a second each (process, tcp, http), for information:")
    second = with_site(
        lambda edge, s: {
            "process": {"type": "process", "pidfile": edge.nginx.pidfile},
            "port": {"type": "tcp", "address": "192.0.2.80", "port": 80},
            "page": page(s, 0),
        },
        measured,
    )
    memory_only = [check for check in second[1] if "memory" in check[0]]
    return first[0] + second[0], first[1] + memory_only


SCENARIOS = {"http": bench_http, "tls": bench_tls, "dns": bench_dns, "idle": idle}


def main():
    parser = argparse.ArgumentParser(prog="tests/bench/run", description=__doc__.splitlines()[0])
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=", ".join(SCENARIOS) + " (default: all)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=20, help="of a round")
    given = parser.parse_args()
    failed = False
    os.makedirs("build/bench", exist_ok=True)
    for name in given.scenarios or SCENARIOS:
        print(f"{name} ({platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f})", flush=True)
        samples, verdicts = SCENARIOS[name](given.rounds, given.seconds)
        with open(f"build/bench/{name}.json", "w", encoding="utf-8") as f:
            json.dump(samples, f, indent=1)
        for text, good in verdicts:
            print(f"  {'ok' if good else 'NOT OK'} - {text}", flush=True)
            failed = failed or not good
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
