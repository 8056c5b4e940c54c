"""A real Prometheus scrapes the agents over TCP, in both of its formats, and sees a service die."""

import json
import os
import re
import urllib.parse
import urllib.request

from lib import exposition
from lib.agentctl import ROOT
from lib.case import check, eventually, main, skip
from lib.netns import find
from lib.site import Site

DNS = "192.0.2.53/32"
LISTEN = "198.51.100.6:9479"  # edge1's end of its link
EXAMPLES = os.path.join(ROOT, "docs", "examples")
CONFIG = f"""global: {{scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}}
rule_files: ["{EXAMPLES}/prometheus/redshank.rules.yml"]
scrape_configs:
  - job_name: redshank
    static_configs: [{{targets: ["{LISTEN}"]}}]
"""


def make_site():
    if not find("prometheus"):
        skip("not installed: prometheus")
    site = Site(edges=1)
    edge = site.edges[0]
    edge.agent.config["status"]["listen"] = LISTEN
    with open(site.client.path("prometheus.yml"), "w", encoding="utf-8") as f:
        f.write(CONFIG)
    site.client.start(
        [
            find("prometheus"),
            "--config.file=" + site.client.path("prometheus.yml"),
            "--storage.tsdb.path=" + site.client.path("tsdb"),
            "--web.listen-address=127.0.0.1:9090",
            "--log.level=warn",
        ],
        "prometheus.log",
        env={**os.environ, "GOMAXPROCS": "1"},
    )
    site.start_agents()
    return site


def fetch(site, url, accept="*/*"):
    with site.client.inside():
        request = urllib.request.Request(url, headers={"Accept": accept})
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.headers["Content-Type"], answer.read()


def api(site, path):
    """The data of an answer of Prometheus; None: it does not answer yet."""
    try:
        _, body = fetch(site, "http://127.0.0.1:9090/api/v1/" + path)
    except OSError:
        return None
    answer = json.loads(body)
    check(answer["status"] == "success", "the answer", answer)
    return answer["data"]


def wait_query(site, expression, expected, what):
    """Until Prometheus makes that of the expression; it has what it scraped last, up to a second ago."""
    seen = []

    def holds():
        seen[:] = [query(site, expression)]
        return seen[0] == expected

    eventually(holds, 15, lambda: f"{what}: {expression} is {expected}, last seen {seen}", every=0.05)


def query(site, expression):
    """{(service, prefix, ...): value} of what Prometheus makes of an expression; None: it does not answer yet."""
    data = api(site, "query?" + urllib.parse.urlencode({"query": expression}))
    if data is None:
        return None
    return {
        tuple(v for k, v in sorted(r["metric"].items()) if k not in ("instance", "job", "__name__")): float(r["value"][1])
        for r in data["result"]
    }


def test_formats(site):
    """Each format is well-formed over TCP and called by its name."""
    kind, body = fetch(site, f"http://{LISTEN}/metrics")
    check(kind == "text/plain; version=0.0.4; charset=utf-8", "the type", kind)
    plain = exposition.parse(body)
    kind, body = fetch(site, f"http://{LISTEN}/metrics", "application/openmetrics-text;version=1.0.0")
    check(kind == "application/openmetrics-text; version=1.0.0; charset=utf-8", "the type", kind)
    names = {n + "_total" if f.kind == "counter" else n for n, f in exposition.parse(body, openmetrics=True).items()}
    check(names == set(plain), "the same families", names ^ set(plain))


def test_health(site):
    """/healthz says that the agent is well, also over TCP, and that it is not while it leaves."""
    _, body = fetch(site, f"http://{LISTEN}/healthz")
    check(body == b"ok\n", "the text", body)


def test_scrapes(site):
    """Prometheus has what the agent says, a few seconds after its start."""
    eventually(lambda: query(site, "up") == {(): 1.0}, 30, lambda: open(site.client.path("prometheus.log")).read())
    wait_query(site, f'redshank_prefix_exported{{prefix="{DNS}"}}', {(DNS, "dns"): 1.0}, "exported")
    wait_query(site, "redshank_bird_up", {(): 1.0}, "bird_up")
    wait_query(site, 'redshank_prefix_reason{prefix="192.0.2.80/32"} == 1', {("192.0.2.80/32", "healthy", "web"): 1.0}, "the reason")
    eventually(
        lambda: query(site, 'histogram_quantile(0.9, rate(redshank_check_duration_seconds_bucket{service="dns",type="tcp"}[5s])) > 0'),
        what="a quantile",
    )


def test_rules(site):
    """Every alert of the example is evaluated without an error, and none goes off on a server that is well."""
    def rules():
        return [r for g in (api(site, "rules") or {"groups": []})["groups"] for r in g["rules"]]

    eventually(lambda: len(rules()) > 20 and all(r["health"] == "ok" for r in rules()), 15,
               lambda: [r for r in rules() if r["health"] != "ok"], every=0.1)
    # One that waits for something that is over goes by itself.
    wait_query(site, 'ALERTS{alertname!~"RedshankBirdWarning|RedshankRestarts"}', {}, "quiet")


def test_dashboard(site):
    """Every panel of the example dashboard gets an answer; those without one are of what has not happened, or is not configured."""
    with open(os.path.join(EXAMPLES, "grafana", "redshank.json"), encoding="utf-8") as f:
        dashboard = json.load(f)
    sampled = {name for family in exposition.parse(fetch(site, f"http://{LISTEN}/metrics")[1]).values() for name, _, _ in family.samples}
    may = {"Prefixes that are not simply healthy", "Checks that are down", "Restarts of units", "Outcomes that are not good",
           "Not served"}
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            expression = target["expr"].replace("$__rate_interval", "10s").replace("$instance", ".*").replace("$service", ".*")
            if panel["title"] in may or not sampled.issuperset(re.findall(r"\bredshank_\w+", expression)):
                check(query(site, expression) is not None, "an answer", expression)
            else:
                eventually(lambda e=expression: query(site, e), 15, f"something in the panel {panel['title']}: {expression}", every=0.1)


def test_death(site):
    """A service that dies is seen with its reason, its counters and what BIRD was told."""
    edge = site.edges[0]
    edge.nsd.kill()
    wait_query(site, f'redshank_prefix_announced{{prefix="{DNS}"}}', {(DNS, "dns"): 0.0}, "withdrawn")
    for expression, seen, what in (
        (f'redshank_prefix_wanted{{prefix="{DNS}"}}', {(DNS, "dns"): 0.0}, "wanted"),
        (f'redshank_prefix_reason{{prefix="{DNS}"}} == 1', {(DNS, "unhealthy", "dns"): 1.0}, "reason"),
        ('redshank_service_health{service="dns"} == 1', {("unhealthy", "dns"): 1.0}, "health"),
        ('redshank_check_state{check="process",service="dns"} == 1', {("process", "dns", "down"): 1.0}, "check"),
        ('redshank_service_transitions_total{service="dns",to="unhealthy"}', {("dns", "unhealthy"): 2.0}, "moves (once before it had risen)"),
        (f'redshank_prefix_transitions_total{{prefix="{DNS}",to="withdraw"}}', {(DNS, "dns", "withdraw"): 1.0}, "moves of the prefix"),
    ):
        wait_query(site, expression, seen, what)
    for expression in (
        'redshank_check_outcomes_total{check="process",service="dns",outcome="gone"} > 0',
        'redshank_bird_commands_total{command="disable",result="accepted"} > 0',
        'redshank_bird_command_duration_seconds_count{command="disable"} > 0',
        'ALERTS{alertname="RedshankServiceUnhealthy",service="dns"}',  # one that waits
    ):
        eventually(lambda e=expression: query(site, e), 15, expression, every=0.05)
    wait_query(site, 'ALERTS{alertname="RedshankServiceUnhealthy",service="web"}', {}, "none of the other service")


def test_bird_away(site):
    """While BIRD is away, what it does is not known: these series end, and bird_up says why."""
    site.edges[0].bird.stop()
    wait_query(site, "redshank_bird_up", {(): 0.0}, "away")
    wait_query(site, "redshank_prefix_announced", {}, "not known")
    wait_query(site, "redshank_bird_silent", {(): 0.0}, "it is away, and does not hang")
    lost = 'redshank_bird_connections_lost_total{reason=~"closed|absent"} > 0'
    eventually(lambda: len(query(site, lost) or ()) == 2, 15, lambda: f"how it was lost, and why it is away: {query(site, lost)}", every=0.05)
    eventually(lambda: len(query(site, "redshank_prefix_wanted") or ()) == 3, 15, "what is wanted is known", every=0.05)


def test_documented(site):
    """docs/metrics.md has every metric with its type and labels, and no other."""
    with open(os.path.join(ROOT, "docs", "metrics.md"), encoding="utf-8") as f:
        rows = [[c.strip() for c in line.split("|")[1:-1]] for line in f if line.startswith("| `redshank_")]
    said = {row[0].strip("`"): (row[1], set(row[2].replace("`", "").replace(",", " ").split())) for row in rows}
    families = exposition.parse(fetch(site, f"http://{LISTEN}/metrics")[1])
    check(set(said) == set(families), "the same names", set(said) ^ set(families))
    for name, family in families.items():
        check(said[name][0] == family.kind, "the type of " + name, said[name], family.kind)
        labels = {label for _, its, _ in family.samples for label in its} - {"le"}
        check(labels == said[name][1] or not family.samples, "the labels of " + name, said[name], labels)


def test_unwell(site):
    """/healthz is 503 with a reason while the agent leaves or is late."""
    agent = site.edges[0].agent
    check(agent.get("/healthz") == (200, b"ok\n"), "well", agent.get("/healthz"))
    site.edges[0].bird.start()
    site.wait_sessions()
    eventually(lambda: agent.status()["bird"]["settled"], 10, what="settled")
    agent.config["stop_grace"] = "5s"
    mark = len(agent.text())
    agent.reload()
    agent.wait_log("reloaded", after=mark)
    agent.send_signal(15)
    eventually(lambda: agent.get("/healthz") == (503, b"stopping\n"), what="stopping")


main(make_site)
