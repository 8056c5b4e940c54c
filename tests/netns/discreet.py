"""No secret is said: what checks know is in no log, status, metric, event, page, explanation, file or crash.

Every secret bears a mark. The services are as indiscreet as they can be: they answer with the request's own
headers, redirect to URLs with passwords, and commands print their environment. Then the configuration is
broken around the secrets, in every way that quotes what stands there, and reloaded.
"""

import contextlib
import json
import os
import signal

from lib.agentctl import build_folder, plain_agent
from lib.case import check, eventually, main
from lib.site import Site
from lib.web import Fake, page, read_request

MARK = "Hush0ne"
TOKEN, COOKIE, BODY, VARIABLE = f"{MARK}-token-1", f"{MARK}-cookie-2", f"{MARK}-body-3", f"{MARK}-variable-4"
TALK, URL = f"{MARK}-talk-5", f"{MARK}-url-6"
WEB = "192.0.2.80"


def answer(connection, status, body, *headers):
    read = "".join(header + "\r\n" for header in headers)
    connection.sendall(f"HTTP/1.1 {status} x\r\n{read}Content-Length: {len(body)}\r\n\r\n{body}".encode())


def header_of(connection, name):
    lines = read_request(connection).decode(errors="replace").split("\r\n")
    return next((line for line in lines if line.lower().startswith(name)), "no " + name)


def serve(site):
    """Port: what its service says."""
    host = site.edges[0].host
    parts = {
        8001: lambda c: answer(c, 200, header_of(c, "authorization")),
        8002: lambda c: answer(c, 200, "bad token: " + header_of(c, "authorization").split()[-1]),
        8003: lambda c: answer(c, 302, "", f"Location: http://admin:{URL}@{WEB}:8003/ {header_of(c, 'cookie')}"),
        8004: lambda c: answer(c, 302, "", "Location: http://192.0.2.81/" + header_of(c, "cookie")),
        8005: lambda c: c.sendall(header_of(c, "authorization").encode() + b"\r\n\r\n"),
        8008: lambda c: c.recv(100) and c.sendall(b"HTTP/1.1 400 no TLS here\r\n\r\n"),
        8006: lambda c: c.recv(100) and c.sendall(b"-ERR no\r\n"),
        8007: lambda c: c.recv(100) and c.sendall(f"-ERR see ftp://root:{URL}@192.0.2.9/\r\n".encode()),
    }
    return [Fake(host, WEB, port, part) for port, part in parts.items()]


def secret_checks():
    headers = {"Authorization": f"Bearer {TOKEN}", "Cookie": f"sid={COOKIE}", "X-Api": TOKEN}
    wants = {"headers": headers, "expect": {"body": "never"}}
    shell = ["/bin/sh", "-c", 'echo "login as $DB_PASSWORD failed at http://admin:$DB_PASSWORD@db/"; exit 1']
    return {
        "echo": page(f"http://{WEB}:8001/", method="POST", body=BODY, **wants),
        "cut": page(f"http://{WEB}:8002/", **wants),
        "moved": page(f"http://{WEB}:8003/", redirects=3, **wants),
        "away": page(f"http://{WEB}:8004/", redirects=3, **wants),
        "garbage": page(f"http://{WEB}:8005/", **wants),
        "tls": page(f"https://{WEB}:8008/", **wants),
        "refused": page(f"http://{WEB}:8099/", **wants),
        "talk": {"type": "tcp", "address": WEB, "port": 8006, "send": f"AUTH {TALK}\r\n", "expect": "+OK"},
        "url": {"type": "tcp", "address": WEB, "port": 8007, "send": f"AUTH {TALK}\r\n", "expect": "+OK"},
        "command": {"type": "exec", "command": shell, "env": {"DB_PASSWORD": VARIABLE}},
        "missing": {"type": "exec", "command": ["/nowhere/" + "x"], "env": {"DB_PASSWORD": VARIABLE}},
    }


def make_site():
    site = Site(edges=1)
    site.fakes = serve(site)
    agent = site.edges[0].agent
    agent.config["services"]["web"]["checks"] = secret_checks()
    agent.config["load"] = {"interval": "500ms", "signals": {
        "talk": {"type": "command", "command": ["/bin/echo", f"ftp://u:{URL}@db/"], "limit": 1}}}
    agent.start(arguments=("--debug",))
    return site


def surfaces(site):
    """Everything that the agent says or writes, by what it is called."""
    edge = site.edges[0]
    agent = edge.agent
    paths = ["/v1/status", "/metrics", "/v1/events", "/", "/healthz", "/v1/explain?name=web", "/v1/explain?name=192.0.2.80/32"]
    found = {path: agent.get(path)[1].decode() for path in paths}
    for words in (["status"], ["--json", "status"], ["explain", "web"], ["events"], ["--json", "events"], ["status", "--plugin"]):
        done = agent.ctl(*words)
        found["redshankctl " + " ".join(words)] = done.stdout + done.stderr
    found["the log"] = agent.text()
    for folder in (edge.fragments, edge.host.path()):
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            with contextlib.suppress(FileNotFoundError):  # replaced while we look: it has another name by now
                if os.path.isfile(path) and name not in ("redshank.json", "redshankd.log") and os.path.getsize(path) < 10**6:
                    with open(path, encoding="utf-8", errors="replace") as f:
                        found[name] = f.read()
    return found


def discreet(site):
    for what, text in surfaces(site).items():
        at = text.find(MARK)
        check(at < 0, f"{what} holds no secret", text[max(0, at - 300):at + 60])


def test_reasons(site):
    """Each check has said why it is down, and what its service told is masked, not missing."""
    agent = site.edges[0].agent
    wanted = {
        "echo": "***", "cut": "bad token: ***", "moved": "***@", "away": "another scheme, host or port: \"http://192.0.2.81/Cookie: ***\"",
        "garbage": "", "tls": "TLS", "refused": "refused", "talk": "-ERR no", "url": "ftp://***@192.0.2.9/",
        "command": "login as *** failed at http://***@db/", "missing": "",
    }
    for name, text in wanted.items():
        agent.wait_status(
            lambda s, n=name, t=text: s["services"]["web"]["checks"][n]["state"] == "down"
            and t in s["services"]["web"]["checks"][n]["reason"], what=f"{name} is down: {text}")
    agent.wait_log('load: signal talk: not known: "ftp://***@db/"')


def test_surfaces(site):
    """No surface holds a mark: documents, metrics, events, page, redshankctl, the log with --debug, files."""
    check(len(surfaces(site)) > 15, "surfaces", list(surfaces(site)))
    discreet(site)


def test_check_prints_the_file(site):
    """--check is for who may read the file: it prints what the file holds, and nothing on stderr."""
    agent = site.edges[0].agent
    done = site.edges[0].host.run([os.path.join(build_folder(), "redshankd"), "-c", agent.conf, "--check"])
    check(all(secret in done.stdout for secret in (TOKEN, COOKIE, BODY, VARIABLE, TALK)), "as the file has it")
    check(MARK not in done.stderr, "no warning has one", done.stderr)


def broken(site):
    """Texts of configurations that are wrong right at a secret."""
    good = json.dumps(site.edges[0].agent.config)
    for secret in (TOKEN, COOKIE, BODY, VARIABLE, TALK):
        quoted = good[good[:good.index(secret)].rindex('"'):]
        quoted = quoted[:quoted.index('"', 1) + 1]
        yield good.replace(quoted, quoted[:-1], 1)  # no end
        yield good.replace(quoted, quoted[1:-1], 1)  # no quotes
        yield good.replace(": " + quoted, " " + quoted, 1)  # no colon
        yield good.replace(quoted, quoted + " " + quoted, 1)  # no comma
        yield good.replace(quoted, quoted[:-1] + '\\q"', 1)  # no such escape
        yield good.replace(quoted, f"[{quoted}]", 1)  # a list
        yield good.replace(quoted, f'{{"x": {quoted}}}', 1)  # an object
        yield good.replace(quoted, quoted[:-1] + '\\u0000"', 1)
        yield good.replace(quoted, quoted[:-1] + '\\n"', 1)
    yield good.replace(f"http://{WEB}:8001/", f"http://admin:{URL}@{WEB}:8001/")
    yield good.replace(f"http://{WEB}:8001/", f"http://admin:{URL}@{WEB}:8001/ x")


def test_broken_around_secrets(site):
    """A reload that is refused right at a secret says where, and not what stands there."""
    agent = site.edges[0].agent
    refused = 0
    for text in broken(site):
        agent.write_config(text)
        done = agent.ctl("reload")
        refused += done.returncode != 0
        check(MARK not in done.stdout + done.stderr, "its answer", done.stdout + done.stderr)
    check(refused > 35, "most of them are refused", refused)
    agent.write_config()
    twice = agent.conf.replace("redshank.json", "conf.d")
    os.mkdir(twice)
    with open(os.path.join(twice, "again.json"), "w", encoding="utf-8") as f:
        json.dump({"services": {"web": {"checks": {"echo": secret_checks()["echo"], "command": {"env": {"DB_PASSWORD": URL}}}}}}, f)
    done = agent.ctl("reload")
    check("has it already" in done.stderr and MARK not in done.stderr, "two files", done.stderr)
    os.unlink(os.path.join(twice, "again.json"))
    discreet(site)
    check(agent.ctl("reload").returncode == 0, "well again")


def test_crash(site):
    """What a crash leaves in the log holds none."""
    agent = site.edges[0].agent
    agent.send_signal(signal.SIGABRT)
    eventually(lambda: not agent.process.alive(), what="it is gone")
    text = agent.text()
    check(MARK not in text, "the log", text[-500:])


def cores(site):
    """The core files, and those of them that hold a mark."""
    folder = site.edges[0].host.path()
    found = [os.path.join(folder, name) for name in os.listdir(folder) if name.startswith("core")]
    marked = []
    for path in found:
        with open(path, "rb") as f:
            if MARK.encode() in f.read():
                marked.append(path)
    return found, marked


def crash(site, secret):
    """The agent without sanitizers, which take the core away, ends by SIGABRT where cores are kept."""
    agent = site.edges[0].agent
    if agent.process.alive():
        agent.stop()
    agent.program = site.edges[0].host.path("kept")
    with open(agent.program, "w", encoding="utf-8") as f:
        f.write(f'#!/bin/sh\nulimit -c unlimited\nexec {plain_agent()[0]} "$@"\n')
    os.chmod(agent.program, 0o755)
    agent.config["services"]["web"]["checks"] = secret_checks() if secret else {
        "plain": {"type": "exec", "command": ["/bin/true"], "env": {"PLACE": MARK}}}
    agent.start()
    agent.send_signal(signal.SIGABRT)
    eventually(lambda: not agent.process.alive(), what="it is gone")
    return cores(site)


def test_core(site):
    """The kernel writes no core of an agent that knows a secret, and one of an agent that knows none."""
    with open("/proc/sys/kernel/core_pattern", encoding="ascii") as f:
        if f.read().strip() != "core":
            print("# cores of this host go elsewhere: not looked for")
            return
    found, marked = crash(site, secret=True)
    check(not found, "no core", found, marked)
    found, marked = crash(site, secret=False)
    check(found and marked, "a core, in which that would have been found", found, marked)


main(make_site)
