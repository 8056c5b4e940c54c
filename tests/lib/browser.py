"""A real browser in a host's network namespace: Chromium by playwright-core, examined by axe-core.

    from lib.browser import Browser

    with Browser(edge.host) as browser:
        page = browser.open("http://127.0.0.1:9479/", scheme="dark", width=360)
        page.wait("document.querySelector('#verdict').dataset.level === 'good'")
        check(not page.axe(), "axe finds nothing")

The two modules come from npm, pinned by browser/package-lock.json, into build/PRESET/browser: once.
Where that cannot be, or there is no Chromium or Node, the test is skipped with the reason.
"""

import fcntl
import json
import os
import select
import shutil
import subprocess
import time

from lib.agentctl import build_folder
from lib.netns import Cannot, find

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "browser")


def _modules():
    """The folder with node_modules."""
    folder = os.path.join(build_folder(), "browser")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with open(os.path.join(HERE, "package-lock.json"), "rb") as f:
            wanted = f.read()
        mark = os.path.join(folder, "installed")
        if os.path.exists(mark):
            with open(mark, "rb") as f:
                if f.read() == wanted:
                    return folder
        if not find("npm"):
            raise Cannot("not installed: npm, which fetches playwright-core and axe-core")
        for name in ("package.json", "package-lock.json"):
            shutil.copy(os.path.join(HERE, name), folder)
        done = subprocess.run(
            ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1", "--fetch-timeout=20000"],
            cwd=folder, env={**os.environ, "npm_config_cache": os.path.join(folder, "cache")},
            capture_output=True, text=True, timeout=100, check=False,
        )
        if done.returncode != 0:
            raise Cannot("npm does not get playwright-core and axe-core: " + " ".join(done.stderr.split())[:300])
        with open(mark, "wb") as f:
            f.write(wanted)
    return folder


def needs():
    """Skips the test where there can be no browser. (the program, the folder with its modules)."""
    program = find("chromium")
    if not program:
        raise Cannot("not installed: chromium")
    if not find("node"):
        raise Cannot("not installed: node (package nodejs)")
    return program, _modules()


class Page:
    def __init__(self, browser, number):
        self.browser = browser
        self.number = number

    def _do(self, what, patience=60.0, **arguments):
        return self.browser.ask(what, patience, page=self.number, **arguments)

    def eval(self, js):
        return self._do("eval", js=js)

    def wait(self, js, timeout=30.0):
        """Until the expression is true; its value."""
        return self._do("wait", timeout + 15, js=js, timeout=timeout * 1000)

    def press(self, key):
        self._do("press", key=key)

    def fill(self, selector, text):
        self._do("type", selector=selector, text=text)

    def select(self, selector, value):
        self._do("select", selector=selector, value=value)

    def click(self, selector):
        self._do("click", selector=selector)

    def axe(self):
        """What axe-core finds: lines."""
        return self._do("axe", 120)

    def tab(self):
        """What Tab reaches, in order: {name, tag, outlined, visible}."""
        return self._do("tab", 120)

    def fake(self, path, body, type="application/json"):
        """From now on the page gets this body at `path` instead of the agent's."""
        self._do("fake", path=path, body=body, type=type)

    def unfake(self, path):
        self._do("unfake", path=path)

    def reload(self):
        self._do("reload")

    def shot(self, path, full=True):
        self._do("shot", path=path, full=full)

    def seen(self):
        """{requests: addresses, dialogs, errors, loads} since it was opened."""
        return self._do("seen")

    def close(self):
        self._do("close")


class Browser:
    def __init__(self, host):
        program, modules = needs()
        self.dir = host.path("browser")
        os.makedirs(self.dir, exist_ok=True)
        env = {**os.environ, "MODULES": modules, "CHROMIUM": program, "HOME": self.dir, "TMPDIR": self.dir,
               "XDG_CONFIG_HOME": self.dir, "XDG_CACHE_HOME": self.dir}
        self.log = open(os.path.join(self.dir, "log"), "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            host.argv(["node", os.path.join(HERE, "driver.mjs")]), cwd=self.dir, env=env, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log,
        )
        self.n = 0
        self.rest = b""
        try:
            self.version = self._read(120.0)["ready"]
        except BaseException:
            self.close()
            raise

    def _read(self, timeout):
        deadline = time.monotonic() + timeout
        while b"\n" not in self.rest:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))
            piece = os.read(self.process.stdout.fileno(), 1 << 20) if ready else b""
            if not piece:
                self.log.seek(0)
                raise AssertionError(f"the browser does not answer: {self.log.read()[-3000:]}")
            self.rest += piece
        line, self.rest = self.rest.split(b"\n", 1)
        return json.loads(line)

    def ask(self, what, patience=60.0, **arguments):
        self.n += 1
        self.process.stdin.write(json.dumps({"id": self.n, "do": what, **arguments}).encode() + b"\n")
        self.process.stdin.flush()
        answer = self._read(patience)
        if "error" in answer:
            asked = str(arguments.get("js", arguments))
            raise AssertionError(f"browser: {what} {asked[:500]}: {answer['error'][:1500]}")
        return answer["value"]

    def open(self, url, **how):
        """A page of its own context: scheme="light", width=1280, height=900, reduce=False (motion)."""
        return Page(self, self.ask("open", 60, url=url, **how))

    def close(self):
        """Ends it: an orderly end by the end of its input, else by its process group."""
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, 9)
            self.process.wait()
        self.log.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
