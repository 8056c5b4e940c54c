#!/usr/bin/python3
"""What an operator's Prometheus and Grafana take from us: the alert rules and the dashboard.

Each alert fires for what it is about, with the labels that its texts speak of, not before its time,
and not for what is next to it; every expression of both is one to promtool, and every metric in
them is one of docs/metrics.md, which a real scrape is held against (netns-prometheus). The other way
round, each metric there is in an alert or on the dashboard, or QUIET has why nobody need look at it.

usage: monitoring.py DOCS
"""
import collections
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

DOCS = pathlib.Path(sys.argv[1])
RULES = DOCS / "examples" / "prometheus" / "redshank.rules.yml"
MANUAL = (DOCS / "monitoring.md").read_text(encoding="utf-8")
DASHBOARD = DOCS / "examples" / "grafana" / "redshank.json"
STEP, LONG_STEP = 15, 600  # seconds between two samples; of what waits for an hour or more
SERVICE, PREFIX = 'service="dns"', 'service="dns",prefix="192.0.2.53/32"'
CHECK = 'service="dns",check="answers"'
problems = []

Case = collections.namedtuple("Case", "fires labels quiet at", defaults=[None])


def series(name, labels=""):
    return f'{name}{{instance="edge1"{"," if labels else ""}{labels}}}'


def prefix(wanted, announced, exported=1, elsewhere=0):
    """The series of one prefix, each with one value all along."""
    values = {"wanted": wanted, "announced": announced, "exported": exported, "elsewhere": elsewhere}
    return {series("redshank_prefix_" + name, PREFIX): value for name, value in values.items()}


def one(name, labels, fires, quiet):
    """A series that fires with one value, and does not with the other."""
    its = dict(re.findall(r'(\w+)="([^"]*)"', labels))
    return Case({series(name, labels): fires}, its, [{series(name, labels): quiet}])


def several(name, reason):
    """Of a state that is counted over the prefixes of a service."""
    case = one(name, f'{PREFIX},reason="{reason}"', 1, 0)
    return case._replace(labels={"service": "dns", "reason": reason})


# A value, or how many it grows by in each step; "" is no sample. Times in seconds.
CASES = {
    "RedshankAgentDown": one("up", 'job="redshank"', 0, 1),
    "RedshankNotReady": one("redshank_ready", "", 0, 1),
    "RedshankRestarts": Case(
        {series("redshank_process_start_time_seconds"): "1 1 2 2 3 3 4 4 4 4 4 4"}, {},
        [{series("redshank_process_start_time_seconds"): "1 1 2 2 2 2 2 2 2 2 2 2"}], 150),
    "RedshankConfigurationRefused": one("redshank_config_error", "", 1, 0),
    "RedshankStateNotKept": one("redshank_state_error", "", 1, 0),
    "RedshankFrozen": one("redshank_frozen", "", 1, 0),
    "RedshankLoopLate": Case(
        {series("redshank_loop_lateness_seconds_bucket", 'le="0.1"'): "0+1x200",
         series("redshank_loop_lateness_seconds_bucket", 'le="0.5"'): "0+5x200",
         series("redshank_loop_lateness_seconds_bucket", 'le="+Inf"'): "0+5x200"}, {},
        [{series("redshank_loop_lateness_seconds_bucket", 'le="0.1"'): "0+99x200",
          series("redshank_loop_lateness_seconds_bucket", 'le="0.5"'): "0+100x200",
          series("redshank_loop_lateness_seconds_bucket", 'le="+Inf"'): "0+100x200"}], 1500),
    "RedshankDescriptorsRunOut": Case(
        {series("redshank_process_open_fds"): 900, series("redshank_process_max_fds"): 1000}, {},
        [{series("redshank_process_open_fds"): 700, series("redshank_process_max_fds"): 1000}]),
    "RedshankBirdAway": one("redshank_bird_up", "", 0, 1),
    "RedshankBirdSilent": one("redshank_bird_silent", "", 1, 0),
    "RedshankBirdLost": Case(
        {series("redshank_bird_connections_lost_total", 'reason="garbled"'): "0+1x200"}, {"reason": "garbled"},
        [{series("redshank_bird_connections_lost_total", 'reason="absent"'): "0+1x200"},
         {series("redshank_bird_connections_lost_total", 'reason="closed"'): "0 1 1 1 2+0x200"}], 1800),
    "RedshankNoSession": Case(
        {series("redshank_bird_sessions"): 2, series("redshank_bird_sessions_established"): 0}, {},
        [{series("redshank_bird_sessions"): 2, series("redshank_bird_sessions_established"): 1},
         {series("redshank_bird_sessions"): 0, series("redshank_bird_sessions_established"): 0}]),
    "RedshankSessionDown": one("redshank_bird_session_up", 'session="upstream1"', 0, 1),
    "RedshankBirdRefusesConfiguration": one("redshank_bird_alarm", "", 1, 0),
    "RedshankBirdNotSettled": one("redshank_bird_settled", "", 0, 1),
    "RedshankBirdCommandsFail": Case(
        {series("redshank_bird_commands_total", 'command="enable",result="refused"'): "0+1x100"},
        {"command": "enable"},
        [{series("redshank_bird_commands_total", 'command="enable",result="accepted"'): "0+9x100"}], 600),
    "RedshankChangedByOthers": Case(
        {series("redshank_bird_repairs_total"): "0+1x200",
         series("redshank_bird_fragments_repaired_total"): 0}, {},
        [{series("redshank_bird_repairs_total"): "0 1 1 1 1+0x200",
          series("redshank_bird_fragments_repaired_total"): 0}], 1800),
    "RedshankBirdWarning": one("redshank_bird_warnings", 'code="direct"', 1, ""),
    "RedshankPrefixGone": Case(
        {'redshank_prefix_exported{instance="edge1",prefix="192.0.2.53/32"}': 0,
         'redshank_prefix_exported{instance="edge2",prefix="192.0.2.53/32"}': 0},
        {"prefix": "192.0.2.53/32"},
        [{'redshank_prefix_exported{instance="edge1",prefix="192.0.2.53/32"}': 0,
          'redshank_prefix_exported{instance="edge2",prefix="192.0.2.53/32"}': 1}]),
    "RedshankStillAnnounced": Case(
        prefix(0, 1), {"service": "dns", "prefix": "192.0.2.53/32"}, [prefix(0, 0), prefix(1, 1), prefix(0, "")]),
    "RedshankWithdrawalDefeated": Case(
        prefix(0, 0, 1, 1), {"service": "dns", "prefix": "192.0.2.53/32"}, [prefix(0, 0), prefix(1, 0, 1, 1)]),
    "RedshankNotAnnounced": Case(
        prefix(1, 0), {"service": "dns", "prefix": "192.0.2.53/32"}, [prefix(1, 1), prefix(0, 0), prefix(1, "")]),
    "RedshankNotExported": Case(
        prefix(1, 1, 0), {"service": "dns", "prefix": "192.0.2.53/32"},
        [prefix(1, 1, 1), prefix(0, 0, 0), prefix(1, 1, "")]),
    "RedshankFlapping": Case(
        {series("redshank_prefix_transitions_total", PREFIX + ',to="withdraw"'): "0+1x60"},
        {"service": "dns", "prefix": "192.0.2.53/32", "to": "withdraw"},
        [{series("redshank_prefix_transitions_total", PREFIX + ',to="announce"'): "0+1x60"},
         {series("redshank_prefix_transitions_total", PREFIX + ',to="withdraw"'): "0 1 1 1 2 2+0x60"}], 900),
    "RedshankForced": several("redshank_prefix_reason", "forced"),
    "RedshankDrained": several("redshank_prefix_reason", "drained"),
    "RedshankServiceUnhealthy": one("redshank_service_health", SERVICE + ',health="unhealthy"', 1, 0),
    "RedshankCheckDown": Case(
        {series("redshank_check_state", CHECK + ',state="down"'): 1,
         series("redshank_service_health", SERVICE + ',health="unhealthy"'): 0},
        {"service": "dns", "check": "answers", "state": "down"},
        [{series("redshank_check_state", CHECK + ',state="down"'): 1,
          series("redshank_service_health", SERVICE + ',health="unhealthy"'): 1},
         {series("redshank_check_state", CHECK + ',state="up"'): 1}]),
    "RedshankCheckUnknown": Case(
        {series("redshank_check_outcomes_total", CHECK + ',outcome="unknown"'): "0+1x100"},
        {"service": "dns", "check": "answers", "outcome": "unknown"},
        [{series("redshank_check_outcomes_total", CHECK + ',outcome="bad"'): "0+1x100"}], 1200),
    "RedshankAddressesMissing": one("redshank_managed_addresses", 'state="missing"', 1, 0),
    "RedshankOverloaded": one("redshank_load_utilisation_ratio", "", 0.97, 0.9),
    "RedshankShedNoEffect": one("redshank_shed_alarm", "", 1, 0),
    "RedshankNeighbourStale": one("redshank_neighbour_fresh", 'neighbour="edge2"', 0, 1),
    "RedshankAlone": Case(
        {series("redshank_neighbour_fresh", f'neighbour="edge{n}"'): n // 4 for n in (2, 3, 4)}, {},
        [{series("redshank_neighbour_fresh", f'neighbour="edge{n}"'): n // 3 for n in (2, 3)}]),
    "RedshankNeighbourFilesRefused": one("redshank_neighbours_error", "", 1, 0),
    "RedshankCertificateExpires": one("redshank_neighbours_certificate_expires_time_seconds", "", 86400, 86400 * 99),
    "RedshankRepairGivenUp": one("redshank_service_repair_state", SERVICE + ',state="exhausted"', 1, 0),
}

QUIET = {name: why for why, names in {
    "it is meant, and ends by itself": "stopping config_loaded_time_seconds prefix_demoted shed_want shed_neighbours_hot"
                                       " neighbour_want prefix_shed",
    "how much there is to do, not how it went": "events_total event_streams metrics_renders_total neighbours_connections"
                                                " neighbour_reports_total shed_grants_total",
    "part of what is shown": "metrics_render_seconds_total neighbours_cpu_seconds_total prefix_exported_sessions"
                             " check_transitions_total neighbour_report_age_seconds",
    "configured, or a name": "load_capacity load_signal_limit bird_info",
    "of one signal, prefix or neighbour: for who looks into what is shown of all":
        "load_signal_value load_signal_utilisation_ratio prefix_load shed_spare neighbour_utilisation_ratio"
        " neighbour_spare neighbour_willing",
}.items() for name in ("redshank_" + n for n in names.split())}


def promtool(arguments, folder, name, text):
    """0 and what it said."""
    path = pathlib.Path(folder) / name
    path.write_text(text, encoding="utf-8")
    done = subprocess.run([PROMTOOL, *arguments, path], capture_output=True, text=True, check=False, cwd=folder)
    return done.returncode == 0, done.stdout + done.stderr


def read_rules(text):
    """{alert: {expr, for, severity, summary, runbook}} of a file in the layout of ours."""
    found = {}
    for block in re.split(r"^ +- alert: ", text, flags=re.M)[1:]:
        name = block.split("\n", 1)[0]
        found[name] = {"for": "0s", **{
            key: value.strip('"') for key, value in re.findall(r"^ +(expr|for|summary|runbook): (.*)$", block, re.M)
        }}
        found[name]["severity"] = re.search(r"severity: (\w+)", block)[1]
    return found


def seconds(text):
    return int(text[:-1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[text[-1]]


def step_of(rule):
    return LONG_STEP if seconds(rule["for"]) >= 3600 else STEP


def values(value, end, step):
    steps = end // step + 4
    if value == "":
        return f"_x{steps}"
    return value if isinstance(value, str) else f"{value}x{steps}"


def expected(rule, labels):
    said = {key: re.sub(r"\{\{ \$labels\.(\w+) \}\}", lambda m: labels.get(m[1], "NONE " + m[1]), rule[key])
            for key in ("summary", "runbook")}
    return [{"exp_labels": {"severity": rule["severity"], **labels}, "exp_annotations": said}]


def rule_test(name, rule, its, at, alerts):
    return {
        "interval": f"{step_of(rule)}s",
        "input_series": [{"series": s, "values": values(v, at, step_of(rule))} for s, v in its.items()],
        "alert_rule_test": [{"eval_time": f"{at}s", "alertname": name, "exp_alerts": alerts}],
    }


def test_alerts(folder, rules):
    if set(rules) != set(CASES):
        problems.append(f"alerts without a test, or tests without an alert: {set(rules) ^ set(CASES)}")
    tests = {STEP: [], LONG_STEP: []}
    for name, case in CASES.items():
        if name not in rules:
            continue
        rule = rules[name]
        after, step = seconds(rule["for"]), step_of(rule)
        at = case.at or after + 4 * step
        labels = dict(case.labels) if name == "RedshankPrefixGone" else {"instance": "edge1", **case.labels}
        tests[step].append(rule_test(name, rule, case.fires, at, expected(rule, labels)))
        if after > step and not case.at:
            tests[step].append(rule_test(name, rule, case.fires, after - step, []))
        tests[step] += [rule_test(name, rule, quiet, at, []) for quiet in case.quiet]
    (pathlib.Path(folder) / "rules.yml").write_text(RULES.read_text(encoding="utf-8"), encoding="utf-8")
    for step, its in tests.items():
        good, said = promtool(["test", "rules"], folder, "tests.json", json.dumps(
            {"rule_files": ["rules.yml"], "evaluation_interval": f"{step}s", "tests": its}))
        if not good:
            problems.append(said)
    for name, rule in rules.items():
        if rule["severity"] not in ("critical", "warning", "info"):
            problems.append(f"{name}: severity {rule['severity']}")
        if not re.search(r"redshankctl|systemctl|journalctl|birdc|redshankd|docs/|/proc/", rule.get("runbook", "")):
            problems.append(f"{name}: no command in its runbook")
        row = re.search(rf"^\| {rule['severity']}: .*", MANUAL, re.M)
        if not row or f"`{name}`" not in row[0]:
            problems.append(f"{name}: docs/monitoring.md does not have it as {rule['severity']}")
    return sum(map(len, tests.values()))


def panels(dashboard):
    for panel in dashboard["panels"]:
        yield panel
        yield from panel.get("panels", [])


def dashboard_expressions(dashboard):
    """Every expression, with what Grafana would put in the place of its variables."""
    found = [t["expr"] for panel in panels(dashboard) for t in panel.get("targets", [])]
    found += [a["expr"] for a in dashboard["annotations"]["list"] if "expr" in a]
    return [re.sub(r"\$(\w+)", lambda m: "5m" if m[1] == "__rate_interval" else "x", e) for e in found]


def test_dashboard(folder):
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    expressions = dashboard_expressions(dashboard)
    rules = [{"record": f"x:{i}", "expr": e} for i, e in enumerate(expressions)]
    good, said = promtool(["check", "rules", "--lint=none"], folder, "dashboard.json", json.dumps(
        {"groups": [{"name": "dashboard", "rules": rules}]}))
    if not good:
        problems.append(said)
    ids = [panel["id"] for panel in panels(dashboard)]
    if len(ids) != len(set(ids)):
        problems.append("two panels have the same id")
    variables = {v["name"] for v in dashboard["templating"]["list"]} | {"__rate_interval"}
    used = set(re.findall(r"\$(\w+)", json.dumps(dashboard["panels"])))
    if not used <= variables:
        problems.append(f"variables that are none: {used - variables}")
    taken = {}
    for panel in dashboard["panels"]:
        at = panel["gridPos"]
        for x in range(at["x"], at["x"] + at["w"]):
            for y in range(at["y"], at["y"] + at["h"]):
                if x >= 24 or (x, y) in taken:
                    problems.append(f"panel {panel['title']} lies on {taken.get((x, y), 'nothing')}")
                taken[x, y] = panel["title"]
        if panel["type"] != "row" and not panel.get("description"):
            problems.append(f"panel {panel['title']}: no description")
    return expressions + [v["query"]["query"] for v in dashboard["templating"]["list"] if v["type"] == "query"]


def declared():
    """{family: names of its samples} of docs/metrics.md."""
    text = (DOCS / "metrics.md").read_text(encoding="utf-8")
    return {name: {name + s for s in (("_bucket", "_sum", "_count") if kind == "histogram" else ("",))}
            for name, kind in re.findall(r"^\| `(redshank_\w+)` \| (\w+) \|", text, re.M)}


def test_metrics(expressions):
    """Every name in them is a metric, and every metric is in one of them, or is to be quiet."""
    families = declared()
    samples = set().union(*families.values())
    used = {name for expression in expressions for name in re.findall(r"redshank_\w+", expression)}
    problems.extend(f"{name} is no metric of docs/metrics.md" for name in sorted(used - samples))
    for family, its in families.items():
        if (family in QUIET) == bool(its & used):
            problems.append(f"{family}: " + ("shown, and said to be quiet" if its & used else
                                             "in no alert, not on the dashboard, and no reason why"))
    problems.extend(f"{name}: said to be quiet, and no metric" for name in QUIET.keys() - families)


def main():
    rules = read_rules(RULES.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory(prefix="redshank-monitoring-") as folder:
        tests = test_alerts(folder, rules)
        expressions = test_dashboard(folder)
    test_metrics(expressions + [rule["expr"] for rule in rules.values()])
    print("\n".join(problems) or f"{len(rules)} alerts, {tests} tests of them, {len(expressions)} expressions of the dashboard")
    return 1 if problems else 0


PROMTOOL = shutil.which("promtool")
if not PROMTOOL:
    print("skip - not installed: promtool")
    sys.exit(77)
sys.exit(main())
