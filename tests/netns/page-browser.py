"""The page in a real browser (Chromium), beside a real BIRD and real services.

What a page of the status can not know is asked of the browser: what is on the screen, what Tab reaches,
what axe-core objects to, what was requested, what was executed.
"""

import contextlib
import http.server
import json
import os
import socketserver
import threading
import time
import urllib.request

from lib import browser
from lib.case import check, eventually, main
from lib.pulse import Pulse
from lib.site import Site
from lib.wait import until

os.environ["DBUS_SYSTEM_BUS_ADDRESS"] = "unix:path=/nonexistent/bus"
ADDRESS = "127.0.0.1:9479"
URL = f"http://{ADDRESS}/"
PULSE = Pulse()
DNS, DNS6, WEB = "192.0.2.53/32", "2001:db8::53/128", "192.0.2.80/32"
MANY_SERVICES, MANY_PREFIXES = 10, 50
ATTACK = """<img src=x onerror="alert(1)"></script><script>alert(2)</script>"'&amp;<b>\\u202ejavascript:alert(3)"""

VERDICT = "document.querySelector('#verdict').dataset.level"
LINK = "document.querySelector('#link').dataset.link"


def row(prefix):
    return f"document.querySelector('tr[data-prefix=\"{prefix}\"]')"


def says(prefix, word):
    return f"{row(prefix)}?.innerText.includes({json.dumps(word)})"


class Page(Site):
    """A site with one browser in the edge's namespace."""

    def __init__(self):
        browser.needs()
        super().__init__(edges=1)
        self.agent = self.edges[0].agent
        self.browser = None
        try:
            self.browser = browser.Browser(self.edges[0].host)
            self.healthy()
        except BaseException:
            self.close()
            raise

    def healthy(self):
        """Starts, or starts again, the agent with its default configuration."""
        self.fresh(self.agent.default_config())
        for prefix in (DNS, DNS6, WEB):
            self.agent.wait_prefix(prefix, announced=True, exported=1, reason="healthy", timeout=15)

    def fresh(self, config):
        if self.agent.process and self.agent.process.alive():
            self.agent.stop()
        self.agent.config = config
        self.agent.config["status"]["listen"] = ADDRESS
        self.agent.start()

    def open(self, **how):
        page = self.browser.open(URL, **how)
        page.wait("document.querySelector('.service') !== null")
        return page

    def well(self):
        """Until what the test before has broken is as it was: nothing moves on a page by itself then."""
        self.agent.wait_status(lambda s: s["verdict"]["level"] == "good" and s["bird"]["settled"], timeout=20, what="all is well")

    def close(self):
        if self.browser:
            self.browser.close()
        super().close()


def innocent(page, what):
    """Nothing was executed, blocked or complained of, and nothing left the origin. Ends the page."""
    seen = page.seen()
    check(not seen["dialogs"] and not seen["errors"], what + ": no dialog, no error", seen["dialogs"], seen["errors"])
    check(page.eval("window.violations") == [], what + ": the policy had nothing to stop", page.eval("window.violations"))
    foreign = [url for url in seen["requests"] if not url.startswith((URL, "data:"))]
    check(not foreign, what + ": no request leaves the origin", foreign)
    page.close()


def test_a_death_is_seen(site):
    """A service dies and comes back: the page says so without being loaded again."""
    edge, page = site.edges[0], site.open()
    page.wait(f"{VERDICT} === 'good' && {LINK} === 'live'")
    check(page.eval(says(DNS, "announced")) and page.eval(says(DNS, "healthy")), "announced", page.eval(row(DNS) + ".innerText"))
    bars = "document.querySelector('tr[data-check=process] svg.outcomes').getAttribute('aria-label')"
    page.wait(f"{bars}.includes('newest good')")
    page.wait("document.querySelector('tr[data-check=port] svg.latency .l').getAttribute('d').length > 20")
    edge.nsd.kill()
    page.wait(f"{VERDICT} === 'trouble'")
    page.wait(" && ".join((says(DNS, "withdrawn"), says(DNS6, "withdrawn"), says(WEB, "announced"))))
    def verdict():
        return page.eval("document.querySelector('#verdict').innerText")

    check("dns is unhealthy" in verdict() and "redshankctl explain dns" in verdict(), "what is wrong, and what says more", verdict())
    eventually(lambda: verdict().split(": ", 1)[1].splitlines()[0] in site.agent.ctl("status").stdout, 15,
               lambda: f"redshankctl says the same as {verdict()!r}", every=0.1)
    check(page.eval("document.querySelector('.service').dataset.service") == "dns", "trouble stands first")
    page.wait("document.querySelector('#events').innerText.includes('has died')")
    page.wait(f"{bars}.includes('gone')")
    edge.nsd.start()
    page.wait(f"{VERDICT} === 'good' && {says(DNS, 'announced')}")
    check(page.seen()["loads"] == 1, "never loaded again", page.seen())
    innocent(page, "a death")


def check_looks(page, width, what):
    """Nothing scrolls sideways, and axe-core is content."""
    wide = page.eval("document.documentElement.scrollWidth")
    check(wide <= width, "no horizontal scroll: " + what, wide)
    found = page.axe()
    check(not found, "axe: " + what, *found)
    shots = os.environ.get("REDSHANK_SHOTS")
    if shots:
        page.shot(os.path.join(shots, what.replace(", ", "-") + ".png"))


def check_everywhere(site, what, ready):
    """Both colour schemes, 360 and 1,280 pixels, when the page is `ready`."""
    for scheme in ("light", "dark"):
        for width in (360, 1280):
            page = site.open(scheme=scheme, width=width)
            page.wait(f"{ready} && {LINK} === 'live'")
            check_looks(page, width, f"{scheme}, {width}, {what}")
            page.close()


def test_axe_and_width(site):
    """Both colour schemes, 360 and 1,280 pixels, well and in trouble: axe-core is content, nothing scrolls sideways."""
    edge = site.edges[0]
    for trouble in (False, True):
        if trouble:
            edge.nsd.kill()
            site.agent.ctl("drain", "web", "--reason", "new disks", "--for", "2h")
        check_everywhere(site, "trouble" if trouble else "well", f"({VERDICT} === 'trouble') === {json.dumps(trouble)}")
    site.agent.ctl("undrain", "web")
    edge.nsd.start()
    site.well()


def test_keyboard(site):
    """Tab reaches every control, in sight and with a mark; / goes to the filter; Enter opens and closes."""
    for width in (1280, 360):
        page = site.open(width=width)
        page.wait("document.querySelectorAll('#events li').length > 0")
        controls = page.eval(
            "[...document.querySelectorAll('a[href],button,input,select,summary,[tabindex=\"0\"]')]"
            ".filter(n => n.checkVisibility()).map(n => n.id || n.textContent.trim().slice(0, 40))"
        )
        walked = page.tab()
        check([stop["name"] for stop in walked] == controls, f"every control, in order, at {width}", walked, controls)
        blind = [stop for stop in walked if not (stop["outlined"] and stop["visible"])]
        check(not blind, f"the focus shows at {width}", blind)
        page.eval("document.activeElement.blur()")
        page.press("/")
        check(page.eval("document.activeElement.id") == "filter", "/ goes to the filter")
        page.close()
    page = site.open()
    page.eval("document.querySelector('summary').focus()")
    was = page.eval("document.querySelector('details').open")
    page.press("Enter")
    check(page.eval("document.querySelector('details').open") != was, "Enter closes a service")
    page.eval("document.querySelector('[data-service=web] summary').focus()")
    site.edges[0].nginx.kill()
    page.wait("document.querySelector('.service').dataset.service === 'web'")
    check(page.eval("document.activeElement.parentNode.dataset.service") == "web", "the focus goes with what moves")
    site.edges[0].nginx.start()
    page.wait("document.querySelector('.service').dataset.service === 'dns'")
    check(page.eval("document.activeElement.parentNode.dataset.service") == "web", "and back")
    site.well()
    innocent(page, "the keyboard")


def test_filter(site):
    """The filter finds services, prefixes and states, is counted, and outlives a reload."""
    page = site.open()
    page.wait(f"{VERDICT} === 'good' && {LINK} === 'live'")
    visible = "[...document.querySelectorAll('tr[data-prefix]')].filter(n => n.checkVisibility()).map(n => n.dataset.prefix)"
    check(sorted(page.eval(visible)) == sorted([DNS, DNS6, WEB]), "all", page.eval(visible))
    for text, left in (("web", [WEB]), ("2001:", [DNS6]), ("dns 192", [DNS]), ("nobody", [])):
        page.fill("#filter", text)
        check(page.eval(visible) == left, text, page.eval(visible))
    page.fill("#filter", "web")
    check("1 of 3" in page.eval("document.querySelector('#count').innerText"), "counted")
    page.reload()
    page.wait("document.querySelector('.service') !== null")
    check(page.eval(visible) == [WEB] and page.eval("document.querySelector('#filter').value") == "web", "after a reload", page.eval("location.href"))
    page.fill("#filter", "")
    page.select("#show", "trouble")
    check(page.eval(visible) == [], "nothing is wrong", page.eval(visible))
    innocent(page, "the filter")


def test_agent_away_and_back(site):
    """The agent leaves: it is said, with the time. It comes back: so does the page, and another page is loaded."""
    page = site.open(reduce=True)
    page.wait(f"{LINK} === 'live'")
    moves = "(n => { n.className = 'new-a'; return getComputedStyle(n.firstChild).animationName })(" + row(DNS) + ")"
    check(page.eval(moves) == "none", "nothing moves where that is asked for", page.eval(moves))
    site.agent.kill()
    page.wait(f"{LINK} === 'away'")
    text = page.eval("document.querySelector('#link').innerText")
    check("does not answer since" in text, "it says so", text)
    check(page.eval("document.querySelector('#try').checkVisibility()"), "and offers to try now")
    check(page.eval("document.title") == "No answer: edge1 \u2013 Redshank", "the tab says so, too", page.eval("document.title"))
    found = page.axe()
    check(not found, "axe: away", *found)

    def tries():
        return len([url for url in page.seen()["requests"] if "v1/status" in url])

    moments = [(time.time(), tries())]  # when there were how many: it backs off, 0.5 s, then 1, 2, 4, 8 s

    def backs_off():
        n = tries()
        if n > moments[-1][1]:
            moments.append((time.time(), n))
        return len(moments) >= 2 and moments[-1][0] - moments[-2][0] > 1.5

    until(backs_off, 40, lambda: f"it backs off, and goes on trying: {moments}")
    now, tried = tries(), time.time()
    page.click("#try")  # by itself it would ask in some seconds: four, at least
    until(lambda: tries() > now, 10, "it tries")
    took = time.time() - tried
    check(took < 3.5 + PULSE.withheld(tried), "now", took)
    site.agent.start()
    page.wait(f"{LINK} === 'live' && {VERDICT} === 'good'", timeout=25)
    check(page.seen()["loads"] == 1, "the same page is not loaded again", page.seen()["loads"])
    check(page.eval("document.title") == "edge1 \u2013 Redshank", "and the tab is as it was", page.eval("document.title"))
    # An agent of another version: its page has another tag. Played by the page's own idea of its tag.
    older = site.browser.open("about:blank")
    with site.edges[0].host.inside():
        body = urllib.request.urlopen(URL, timeout=5).read().decode()
    tag = body.split('data-etag="', 1)[1].split('"', 1)[0]
    older.fake("/", body.replace(tag, "0123456789abcdef"), "text/html")
    older.eval(f"location.href = {json.dumps(URL)}")
    older.wait(f"{LINK} === 'live'")
    check(older.eval("document.documentElement.dataset.etag") == "0123456789abcdef", "the older page")
    older.unfake("/")
    site.agent.kill()
    older.wait(f"{LINK} === 'away'")
    site.agent.start()
    older.wait(f"document.documentElement.dataset.etag === {json.dumps(tag)} && {LINK} === 'live'", timeout=20)
    older.close()
    innocent(page, "away and back")


def hostile(value):
    """The document with every word of it that others can choose turned into an attack."""
    if isinstance(value, dict):
        return {key: hostile(item) for key, item in value.items()}
    if isinstance(value, list):
        return [hostile(item) for item in value]
    return ATTACK if isinstance(value, str) and not value[:4].isdigit() else value


def load_of(prefix):
    """What the row of a prefix says of its load, with its label on a narrow page; null where there is no such cell."""
    return f"(cell => cell.getClientRects().length ? cell.innerText : null)({row(prefix)}.querySelector('.load'))"


def among_neighbours(document):
    """The document as it is where neighbours are configured, the load of prefixes is counted and something is shed."""
    for service, prefix, load in (("dns", DNS, None), ("dns", DNS6, 30.26), ("web", WEB, 1562000.44)):
        document["services"][service]["prefixes"][prefix]["load"] = load
    document["neighbours"] = {"error": None, "warning": "it expires within 7 days", "members": {
        "edge2": {"state": "fresh", "asked": "2026-11-30T03:00:00.000Z", "error": None,
                  "report": {"utilisation": 4180, "willing": True, "spare": 402000, "want": 0, "sheds": 0}},
        "edge3": {"state": "silent", "asked": None, "error": "connection refused", "report": None}}}
    document["shed"] = {"neighbours": 2, "neighbours_fresh": 1, "out": 1, "utilisation": 7810, "alarm": True}
    document["sheds"] = [{"name": WEB, "who": "root", "reason": "hot disks", "until": None, "configured": True}]
    return document


def test_neighbours(site):
    """What neighbours report, who does not, what is shed and by whose word; nothing of it where there are none."""
    site.fresh(site.agent.default_config())
    page = site.open()
    check(page.eval("document.querySelector('#neighbours').hidden"), "none are configured, none are shown")
    check(page.eval(load_of(DNS)) is None, "nor loads of prefixes where they are not counted", page.eval(load_of(DNS)))
    document = among_neighbours(site.agent.status())
    page.fake("/v1/status", json.dumps(document))
    page.wait("document.querySelectorAll('#neighbours-body tr').length === 2")
    rows = page.eval("[...document.querySelectorAll('#neighbours-body tr')].map(row => [...row.children].map(c => c.innerText))")
    check(rows == [["edge2", "fresh", "41.8 %", "402000", "no", "0", "now", ""],
                   ["edge3", "silent", "?", "?", "?", "?", "never", "connection refused"]], "the two", rows)
    words = page.eval("document.querySelector('main').innerText")
    for said in ("78.1 %", "1 of 2", "Shed by hand: " + WEB + " by root", "hot disks", "Shedding had no effect", "expires within 7 days"):
        check(said in words, said, words[:1500])
    loads = [page.eval(load_of(prefix)) for prefix in (DNS, DNS6, WEB)]
    check(loads == ["?", "30.3", "1562000"], "what each prefix has of the load", loads)
    page.unfake("/v1/status")
    page.wait("document.querySelector('#neighbours').hidden")
    page.wait(load_of(DNS) + " === null")


def test_axe_and_width_of_neighbours(site):
    """The same of load and neighbours, with names, errors and reasons as long as they may be: no figure is broken."""
    name, error = "edge-" + "2" * 58, "certificate verify failed: " + "x" * 120
    document = among_neighbours(site.agent.status())
    members = document["neighbours"]["members"]
    members[name] = {**members.pop("edge3"), "error": error}
    document["sheds"][0]["reason"] = "y" * 200
    document["load"] = {
        "capacity": 2000000, "utilisation": 7810, "load": 1562000, "heaviest": "network", "prefixes": None, "signals": {
            "network": {"type": "interface", "value": 976250000.25, "limit": 1250000000, "utilisation": 7810, "error": None},
            name: {"type": "command", "value": None, "limit": 2000000, "utilisation": None, "error": error}},
        "of_a_newer_agent_" + "a" * 40: error}
    for scheme in ("light", "dark"):
        for width in (360, 1280):
            what = f"{scheme}, {width}, neighbours"
            page = site.open(scheme=scheme, width=width)
            page.fake("/v1/status", json.dumps(document))
            page.wait("document.querySelectorAll('#neighbours-body tr').length === 2 && !document.querySelector('#load').hidden")
            check_looks(page, width, what)
            cut = page.eval("[...document.querySelectorAll('#load *, #neighbours-body *')].filter(n => "
                            f"n.getBoundingClientRect().right > {width}).map(n => n.outerHTML.slice(0, 80))")
            check(not cut, "nothing is cut off: " + what, *cut)
            broken = page.eval("[...document.querySelectorAll('#neighbours-body td:not(:last-child)')].filter(n => n.firstChild && "
                               "(range => { range.selectNodeContents(n); return range.getClientRects().length > 1 })(document.createRange()))"
                               ".map(n => n.innerText)")
            check(not broken, "no figure is broken: " + what, *broken)
            said = page.eval("document.querySelector('#load').innerText")
            check("value 976250000," in said, "a large figure is written out", said)
            page.close()


def address_of(prefix):
    return f"{row(prefix)}.querySelector('.address').innerText"


ADDRESSES = "document.querySelector('[data-service=web] .addresses').innerText"
HERE = {"interface": "lo", "state": "present", "ours": True, "restored": 0, "error": None}
ODD_ADDRESSES = (
    *({**HERE, "state": state} for state in ("others", "missing", "announced", "bird", "grace", "absent", "kept", "of a newer agent")),
    {**HERE, "restored": 1}, {**HERE, "restored": 7},
    {**HERE, "state": "missing", "restored": 2, "error": "Operation not permitted"},
)


@contextlib.contextmanager
def answering(path, document):
    """A socket whose every answer is this document, as an agent would give it."""

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self):  # pylint: disable=invalid-name
            body = json.dumps(document).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):  # pylint: disable=arguments-differ
            pass

    with socketserver.UnixStreamServer(path, Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield
        finally:
            server.shutdown()
            os.unlink(path)


def explained(site, document=None):
    """What `redshankctl explain` says of the web's prefix, in one line; of this document, or of what is."""
    agent, real = site.agent, site.agent.socket
    if document is None:
        return " ".join(agent.ctl("explain", WEB).stdout.split())
    agent.socket = site.edges[0].host.path("answering.sock")
    try:
        with answering(agent.socket, document):
            return " ".join(agent.ctl("explain", WEB).stdout.split())
    finally:
        agent.socket = real


def test_words_of_addresses(site):
    """Of an address that the agent manages the page says what `redshankctl explain` says; once where all are as they
    should be, and nothing where none is managed."""
    page, status = site.open(), site.agent.status()
    check(page.eval("[...document.querySelectorAll('.address, .addresses')].every(n => !n.innerText)"), "none is managed")
    explain = json.loads(site.agent.get("/v1/explain?name=" + WEB)[1])
    web = status["services"]["web"]["prefixes"]
    web["192.0.2.81/32"] = {**web[WEB], "address": HERE}
    status["bird"]["settled"] = False  # it is asked for more often
    for n, address in enumerate((HERE, *ODD_ADDRESSES)):
        status["node"] = f"node{n}"
        explain["services"]["web"]["prefixes"][WEB]["address"] = web[WEB]["address"] = address
        page.fake("/v1/status", json.dumps(status))
        page.wait(f"document.querySelector('#node').innerText === 'node{n}'")
        own, all_of_them = page.eval(address_of(WEB)), page.eval(ADDRESSES)
        check(bool(own) == (address != HERE), "a sentence of its own where there is something to say", own)
        check(all_of_them == f"Addresses{' of the others' if own else ''}: managed, and present on lo.", "the service's", all_of_them)
        words = explained(site, explain)
        check((own or all_of_them).split(": ", 1)[1] in words, "the same words", address, own, words)
        page.unfake("/v1/status")
    innocent(page, "words of addresses")


def test_addresses(site):
    """An address that another has put there; that the agent has put there; that somebody has removed, and it was added
    again; that leaves; that cannot be added. axe-core is content, and nothing scrolls sideways."""
    edge, config = site.edges[0], site.agent.default_config()
    config["services"]["web"]["manage_addresses"] = True
    config["stop_grace"] = "8s"  # a page that asks every two seconds sees it on a busy machine, too, and redshankctl then
    site.fresh(config)
    site.agent.wait_prefix(WEB, announced=True, exported=1, reason="healthy", timeout=15)
    page = site.open()

    def says_as_explained(part, where):
        page.wait(f"{where}.includes({json.dumps(part)})")
        check(part in explained(site), part, explained(site))

    says_as_explained("managed, but somebody else has put it here: it is used, and never removed.", address_of(WEB))
    edge.remove_address("192.0.2.80")
    says_as_explained("managed, and present on lo.", ADDRESSES)
    edge.remove_address("192.0.2.80")
    says_as_explained("managed, and present on lo; somebody has removed it 1 time, and it was added again.", address_of(WEB))
    check_everywhere(site, "address restored", f"{address_of(WEB)} !== ''")
    site.agent.wait_prefix(WEB, announced=True, exported=1, reason="healthy")
    check(site.agent.ctl("drain", "web").returncode == 0, "drained")
    says_as_explained("to be removed when stop_grace is over: packets may still be under way", address_of(WEB))
    says_as_explained("managed, and not here, since the service was sent away", address_of(WEB))
    site.agent.ctl("undrain", "web")
    says_as_explained("managed, and present on lo", address_of(WEB))
    config["services"]["web"]["manage_addresses"] = {"interface": "nowhere0"}
    site.fresh(config)  # the agent before has taken its address with it
    says_as_explained("managed, and MISSING: to be added to nowhere0; the last attempt failed: No such device.", address_of(WEB))
    check_everywhere(site, "address missing", f"{address_of(WEB)}.includes('nowhere0')")
    page.close()
    edge.add_address("192.0.2.80")
    site.healthy()


def test_hostile_words(site):
    """Names, reasons and words that are HTML and script are text, and nothing of them runs (A26)."""
    config = site.agent.default_config()
    say = r"""printf '%s' '<img src=x onerror=alert(1)><script>alert(2)</script>"&lt;'; exit 1"""
    config["services"]["web"]["checks"]["page"] = {"type": "exec", "command": ["/bin/sh", "-c", say]}
    site.fresh(config)
    site.agent.wait_check("web", "page", state="down", timeout=15)
    done = site.agent.ctl("drain", "dns", "--reason", "<script>alert(4)</script><svg onload=alert(5)>")
    check(done.returncode == 0, "drained", done.stderr)
    page = site.open()
    page.wait("document.body.innerText.includes('<img src=x onerror=alert(1)>')")
    page.wait("document.body.innerText.includes('<svg onload=alert(5)>')")
    check(page.eval("document.querySelectorAll('main img, main script, main b').length") == 0, "no element came of it")
    innocent(page, "a hostile check and reason")
    # What no configuration could hold, too: every word of the document, names and keys of objects included.
    document = hostile(site.agent.status())
    service = document["services"].pop("web")
    document["services"] = {ATTACK: service, "__proto__": service, "constructor": document["services"].pop("dns")}
    service["prefixes"][ATTACK] = service["prefixes"].pop(WEB)
    service["prefixes"][ATTACK]["address"] = {key: ATTACK for key in HERE}
    service["prefixes"]["__proto__"] = {"address": {"state": "__proto__"}}
    document["load"] = {ATTACK: ATTACK, "__proto__": {"a": ATTACK}}
    document["neighbours"] = {"error": ATTACK, "members": {ATTACK: {"state": ATTACK, "error": ATTACK, "report": {"spare": ATTACK, "willing": True}},
                                                          "edge2": {"report": [7]}, "__proto__": {"state": "fresh"}}}
    document["shed"] = {"neighbours": 2, "neighbours_fresh": ATTACK, "out": ATTACK, "alarm": True}
    document["sheds"] = [{"name": ATTACK, "who": ATTACK, "reason": ATTACK, "until": None, "configured": True}]
    document["drains"] = [{"name": ATTACK, "who": ATTACK, "reason": ATTACK, "until": None, "configured": False}]
    event = {"id": 1, "instance": ATTACK, "time": ATTACK, "event": ATTACK, "level": ATTACK, "message": ATTACK}
    page = site.browser.open("about:blank")
    page.fake("/v1/status", json.dumps(document))
    page.fake("/v1/events*", f"data: {json.dumps(event)}\n\n", "text/event-stream")
    page.eval(f"location.href = {json.dumps(URL)}")
    page.wait("document.querySelectorAll('.service').length === 3")
    page.wait("document.querySelector('#events').innerText.includes('onerror')")
    page.wait("document.querySelector('#load').innerText.includes('onerror') && document.querySelector('#neighbours').innerText.includes('onerror')")
    check(page.eval("document.querySelectorAll('main img, main script, main b').length") == 0, "no element came of it")
    check(page.eval("({}).a === undefined && Object.prototype.health === undefined"), "no prototype was touched")
    # An older or a newer agent, which lacks keys or has other things there.
    for odd in ({}, {"services": 7, "bird": [], "verdict": "x", "drains": {}}, {"services": {"a": {}, "b": None, "c": {"prefixes": {"d": {"address": 7}}}}, "load": []}):
        page.unfake("/v1/status")
        page.fake("/v1/status", json.dumps({"node": f"odd{len(odd)}", **odd}))
        page.wait(f"document.querySelector('#node').innerText === 'odd{len(odd)}' && ['live', 'polling'].includes({LINK})")
    page.unfake("/v1/status")
    page.fake("/v1/status", json.dumps({"bird": {"sessions_down": [1, 2]}, "services": {"a": {"checks": {"c": {"outcomes": [{}]}}}}}))
    page.wait("document.querySelector('tr[data-check=c]') !== null")
    seen = page.seen()
    seen["requests"] = [url for url in seen["requests"] if url != "about:blank"]
    check(all(url.startswith((URL, "data:")) for url in seen["requests"]), "no request leaves", seen["requests"])
    check(not seen["dialogs"] and not seen["errors"] and page.eval("window.violations") == [], "nothing ran", seen)
    page.close()


WATCH = """
window.touched = new Set();
new MutationObserver(records => { for (const r of records) {
    const node = r.target.nodeType === 3 ? r.target.parentElement : r.target;
    const row = node?.closest?.('time') ? null : node?.closest?.('tr[data-prefix]'); /* ages grow by themselves */
    if (row) window.touched.add(row.dataset.prefix); } })
    .observe(document.querySelector('#list'), {subtree: true, childList: true, characterData: true, attributes: true});
window.gone = 0;
(function look() {
    if (document.querySelectorAll('tr[data-prefix] .state.out').length === COUNT) window.gone = Date.now();
    else setTimeout(look, 5); })();
"""


def test_five_hundred(site):
    """500 prefixes: all are new on the page within a second of the status; else only what changed is touched."""
    edge = site.edges[0]
    config = site.agent.default_config()
    many = {
        f"many{s}": {
            "prefixes": {f"10.77.{s}.{n}/32": 100 for n in range(MANY_PREFIXES)},
            "address_check": False,
            "checks": {"process": config["services"]["dns"]["checks"]["process"]},
        }
        for s in range(MANY_SERVICES)
    }
    config["services"] = {**many, "web": config["services"]["web"]}
    site.fresh(config)
    site.agent.wait_status(lambda status: status["verdict"]["level"] == "good", timeout=20, what="all is well")
    page = site.open()
    page.wait(f"{VERDICT} === 'good' && {LINK} === 'live'")
    count = MANY_SERVICES * MANY_PREFIXES
    check(page.eval("document.querySelectorAll('tr[data-prefix]').length") == count + 1, "a row for each")

    def withdrawn():
        services = site.agent.status()["services"]
        left = [p for s in many for p in services[s]["prefixes"].values() if p["wanted"] != "withdraw" or p["announced"]]
        return not left and time.time()

    for attempt in range(3):  # a busy machine may be late once
        page.eval(WATCH.replace("COUNT", str(count)))
        edge.nsd.kill()
        told = eventually(withdrawn, 10, "the status says so of all")
        page.wait("window.gone > 0")
        late = page.eval("window.gone") / 1000 - told
        print(f"    {count} prefixes on the page {late * 1000:+.0f} ms after the status said so")
        touched = page.eval("[...window.touched]")
        check(len(touched) == count and WEB not in touched, "rows that did not change were left alone", len(touched))
        if late < 1.0:
            break
        check(attempt < 2, "within a second", late)
        edge.nsd.start()
        page.wait(f"{VERDICT} === 'good'", timeout=20)
    innocent(page, "500 prefixes")


main(Page)
