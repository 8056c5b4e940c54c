"""redshank.socket, the status socket held by systemd, and a proxy that puts it behind a TCP port.

With the socket unit a connection made while the agent is away is answered by the next one; without it all
is as ever. Through systemd-socket-proxyd a real Prometheus scrapes the Unix socket, and who may change
things over it is the proxy's user.
"""

import json
import os
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

from lib.agentctl import DEFAULTS, ROOT
from lib.case import check, eventually, main, skip
from lib.machinesite import CONFIG, MachineSite
from lib.netns import find

DNS = "192.0.2.53/32"
PATH = "/run/redshank/status.sock"
LISTEN = "198.51.100.6:9479"  # edge1's end of its link
PROXYD = "/lib/systemd/systemd-socket-proxyd"
# A start that waits as long as /run/hold is there: so long the agent is away.
HOLD = "ExecStartPre=/bin/sh -c 'while test -e /run/hold; do sleep 0.02; done'\n"
SITE = {**CONFIG, "defaults": DEFAULTS}
PROMETHEUS = f"""global: {{scrape_interval: 1s, scrape_timeout: 1s}}
scrape_configs:
  - job_name: redshank
    static_configs: [{{targets: ["{LISTEN}"]}}]
"""


def read(*parts):
    with open(os.path.join(ROOT, *parts), encoding="utf-8") as f:
        return f.read()


def make_site():
    for program in (PROXYD, find("prometheus"), find("curl")):
        if not program or not os.path.exists(program):
            skip("not installed: systemd-socket-proxyd, prometheus or curl")
    files = {
        "/etc/systemd/system/redshank.socket": read("systemd", "redshank.socket"),
        "/etc/systemd/system-preset/redshank.preset": read("systemd", "redshank.preset") + "disable redshank-*\n",
        "/etc/systemd/system/redshank-metrics.socket":
            read("docs", "examples", "redshank-metrics.socket").replace("127.0.0.1:9479", LISTEN),
        "/etc/systemd/system/redshank-metrics.service": read("docs", "examples", "redshank-metrics.service"),
    }
    return MachineSite(config=SITE, files=files, dropin=HOLD)


def healthy(site):
    return site.status().get("services", {}).get("dns", {}).get("health") == "healthy"


def inode(site):
    return site.machine.run(["stat", "-c", "%i", PATH], check=False).stdout.strip()


def rights(site):
    return site.machine.run(["stat", "-c", "%U:%G %a", PATH], check=False).stdout.strip()


def post(site, url="http://" + LISTEN + "/v1/check-now"):
    """The status of a change that is asked for from the client's side of the network."""
    with site.client.inside():
        try:
            with urllib.request.urlopen(urllib.request.Request(url, data=b"{}"), timeout=15) as answer:
                return answer.status
        except urllib.error.HTTPError as e:
            return e.code


def journal_since(site, mark):
    return site.machine.journal("redshank.service")[mark:]


def test_verify(site):
    """systemd-analyze has nothing to say of the socket units and the proxy."""
    folder = site.router.path("verify")
    os.mkdir(folder)
    for name, text in (
        ("redshank.socket", read("systemd", "redshank.socket")),
        ("redshank.service", read("systemd", "redshank.service").replace("/usr/sbin/redshankd", "/bin/true")),
        ("redshank-metrics.socket", read("docs", "examples", "redshank-metrics.socket")),
        ("redshank-metrics.service", read("docs", "examples", "redshank-metrics.service")),
    ):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write(text)
    for name in ("redshank.socket", "redshank-metrics.socket", "redshank-metrics.service"):
        done = subprocess.run(["systemd-analyze", "--no-pager", "verify", "--man=no", os.path.join(folder, name)],
                              capture_output=True, text=True, check=False)
        check(done.returncode == 0 and not done.stderr, f"verify {name} is silent", done.stderr)


def test_without(site):
    """Without the socket unit the agent makes its socket and takes it away again."""
    site.machine.systemctl("start", "bird.service", "nsd.service", "redshank.service")
    site.wait_sessions(["edge1"])
    site.wait_announced(DNS, "edge1")
    check(site.machine.systemctl("is-active", "redshank.socket", check=False) == "inactive", "not enabled at the first boot")
    check(rights(site) == "redshank:redshank 660", "its group's", rights(site))
    site.machine.systemctl("stop", "redshank.service")
    check(inode(site) == "", "the file is gone", rights(site))


def test_held(site):
    """The socket unit's socket is the agent's, who leaves it where it is; a connection starts the agent."""
    site.machine.systemctl("start", "redshank.socket")
    check(rights(site) == "redshank:redshank 660", "mode and group", rights(site))
    check(site.machine.systemctl("is-active", "redshank.service", check=False) == "inactive", "nobody has connected")
    site.machine.run([site.ctl, "status"], check=False)  # waits for its answer for 5 s, and a start may take longer
    eventually(lambda: site.machine.systemctl("is-active", "redshank.service", check=False) == "active",
               what="the question has started it")
    eventually(lambda: healthy(site), what="healthy, as its status says")
    site.wait_announced(DNS, "edge1")
    before = inode(site)
    site.machine.systemctl("restart", "redshank.service")
    check(inode(site) == before, "the same file after a restart")
    eventually(lambda: healthy(site), what="healthy again")
    check("socket unit's" in site.machine.journal("redshank.service"), "said in the log")


def test_restart(site):
    """A connection made during a restart is answered after it, and the routers hear nothing."""
    eventually(lambda: healthy(site) and site.status().get("bird", {}).get("settled"), what="settled")
    begun = time.time()
    site.machine.run(["touch", "/run/hold"])
    site.machine.systemctl("restart", "--no-block", "redshank.service")
    eventually(lambda: site.machine.show("redshank.service", "SubState") == "start-pre", what="the agent is away")
    client = site.machine.start(
        ["curl", "-sv", "--max-time", "60", "--unix-socket", PATH, "http://localhost/v1/status"], "curl.log")
    log = site.machine.host.path("curl.log")
    eventually(lambda: "GET /v1/status" in open(log, encoding="utf-8").read(), what="connected, and has asked")
    check(client.alive() and "HTTP/1.1 200" not in open(log, encoding="utf-8").read(), "is not answered yet")
    site.machine.run(["rm", "/run/hold"])
    eventually(lambda: "HTTP/1.1 200" in open(log, encoding="utf-8").read(), 10, lambda: open(log, encoding="utf-8").read())
    eventually(lambda: healthy(site) and site.status().get("bird", {}).get("settled"), what="healthy")
    check(site.wire.since(begun, edge="edge1") == [], "no UPDATE", site.wire.since(begun, edge="edge1"))


def test_wrong(site):
    """A socket that is none for the status is refused with a word; without it the agent starts as ever."""
    site.machine.systemctl("stop", "redshank.socket", "redshank.service")
    check(inode(site) == "", "a socket unit that is stopped takes its file away", rights(site))
    site.machine.write("/run/systemd/system/redshank.socket.d/wrong.conf",
                       "[Socket]\nListenStream=\nListenDatagram=/run/redshank/status.sock\n")
    site.machine.systemctl("daemon-reload")
    site.machine.systemctl("start", "redshank.socket")
    mark = len(site.machine.journal("redshank.service"))
    site.machine.systemctl("start", "--no-block", "redshank.service")
    eventually(lambda: "is no stream socket; expected listening stream sockets" in journal_since(site, mark), 10,
               lambda: journal_since(site, mark))
    site.machine.systemctl("stop", "redshank.socket", "redshank.service")
    site.machine.run(["rm", "-r", "/run/systemd/system/redshank.socket.d"])
    site.machine.systemctl("daemon-reload")
    site.machine.systemctl("start", "redshank.service")
    eventually(lambda: healthy(site), what="healthy")


def test_proxy_shut_out(site):
    """The proxy as documented is nobody to the status socket: as it is made, it may not even read."""
    site.machine.systemctl("start", "redshank-metrics.socket")
    try:
        status = post(site)
    except OSError as e:
        status = e
    check(status != 200, "no change passes", status)


def test_proxy(site):
    """Opened for readers as documented, a Prometheus scrapes through the proxy, and no change passes."""
    site.machine.write("/run/systemd/system/redshank.service.d/readers.conf",
                       f"[Service]\nExecStartPost=+/bin/chmod 0666 {PATH}\n")
    site.machine.systemctl("daemon-reload")
    site.machine.systemctl("restart", "redshank.service")
    eventually(lambda: healthy(site), what="healthy")
    check(rights(site) == "redshank:redshank 666", "opened", rights(site))
    with open(site.client.path("prometheus.yml"), "w", encoding="utf-8") as f:
        f.write(PROMETHEUS)
    site.client.start(
        [find("prometheus"), "--config.file=" + site.client.path("prometheus.yml"),
         "--storage.tsdb.path=" + site.client.path("tsdb"), "--web.listen-address=127.0.0.1:9090", "--log.level=warn"],
        "prometheus.log", env={**os.environ, "GOMAXPROCS": "1"})
    eventually(lambda: query(site, f'redshank_prefix_wanted{{prefix="{DNS}"}}') == [1.0], 30, "a sample in Prometheus")
    check(post(site) == 403, "no change passes", post(site))


def query(site, expression):
    url = "http://127.0.0.1:9090/api/v1/query?" + urllib.parse.urlencode({"query": expression})
    with site.client.inside():
        with urllib.request.urlopen(url, timeout=10) as answer:
            return [float(r["value"][1]) for r in json.load(answer)["data"]["result"]]


def test_proxy_in_the_group(site):
    """What is warned of: a proxy in status.group lends its rights to everybody who reaches the port."""
    site.machine.write("/run/systemd/system/redshank-metrics.service.d/wrong.conf",
                       "[Service]\nSupplementaryGroups=redshank\n")
    site.machine.systemctl("daemon-reload")
    site.machine.systemctl("restart", "redshank-metrics.service")
    check(post(site) == 200, "a change passes", post(site))


main(make_site)
