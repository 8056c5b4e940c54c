"""A reload that changes what takes a restart: it says so, and all that the agent uses or writes stays where it was.

For every such key: the sockets, the fragments, the state, and the list for the dead man, which an agent that
is gone leaves behind.
"""

import json
import os
import stat

from lib.case import check, eventually, main
from lib.site import Site

DNS, WEB = "192.0.2.53/32", "192.0.2.80/32"


def keys(edge):
    """(section, key, another value); of `state` the key is the section."""
    elsewhere = edge.host.path("elsewhere")
    return [
        ("bird", "socket", elsewhere + "/bird.ctl"),
        ("bird", "fragments", elsewhere),
        ("bird", "control", "birdc"),
        ("bird", "sessions", ["nobody*"]),
        ("status", "socket", elsewhere + "/status.sock"),
        ("status", "group", "daemon"),
        ("status", "listen", "127.0.0.1:9479"),
        ("state", "state", elsewhere + "/state.json"),
    ]


def the_list(edge):
    with open(os.path.join(edge.fragments, ".deadman"), encoding="utf-8") as f:
        return f.read()


def state(edge):
    with open(edge.agent.config_before["state"], encoding="utf-8") as f:
        return f.read()


def uses(site, edge, services):
    """Everything is used where it was, and follows what a reload does change."""
    agent = edge.agent
    words = "".join(f"keep {name}\nstopped-withdraw {name}\n" for name in services)
    eventually(lambda: the_list(edge) == f"redshank-deadman 1\nsocket {edge.bird.socket}\n{words}", 10,
               lambda: the_list(edge))
    check(os.listdir(edge.host.path("elsewhere")) == [], "nothing is written elsewhere")
    for word, there in (("drain", False), ("undrain", True)):
        done = agent.ctl(word, "dns")
        check(done.returncode == 0, word, done)
        eventually(lambda t=there: ('"dns"' in state(edge)) != t, what=f"{word} is in the state")
        eventually(lambda t=there: ("edge1" in site.routes(DNS)) == t, 20, word)
        with open(os.path.join(edge.fragments, "dns.conf"), encoding="utf-8") as f:
            check(("\tdisabled;" in f.read()) != there, f"{word} is in the fragment")
    check(agent.status()["bird"]["sessions"] > 0, "the same sessions", agent.status()["bird"])
    seen = os.stat(agent.socket)
    check((seen.st_gid, stat.S_IMODE(seen.st_mode)) == (0, 0o660), "the status socket is as it was", seen)
    listens = edge.host.run(["ss", "-Hltn", "sport = :9479"], check=False).stdout
    check(listens.strip() == "", "no other listener", listens)


def test_every_key(site):
    """Each key alone, with a service that goes and comes back meanwhile."""
    edge = site.edges[0]
    agent = edge.agent
    os.mkdir(edge.host.path("elsewhere"))
    agent.config_before = agent.default_config()
    agent.start()
    for prefix in (DNS, WEB):
        site.wait_announced(prefix, "edge1")
    uses(site, edge, ["dns", "web"])
    for section, key, value in keys(edge):
        agent.config = agent.default_config()
        if section == "state":
            agent.config["state"] = value
        else:
            agent.config[section][key] = value
        del agent.config["services"]["web"]
        mark = len(agent.text())
        agent.reload()
        agent.wait_log(f"`{section}` has changed, which takes a restart", after=mark)
        print(f"# {section}.{key} = {json.dumps(value)}")
        uses(site, edge, ["dns"])
        agent.config = agent.default_config()
        agent.reload()
        eventually(lambda: "keep web\n" in the_list(edge), 10, lambda: the_list(edge))
        site.wait_announced(WEB, "edge1")


main(lambda: Site(edges=1))
