"""What tests/try gives its reader to play with: one small command, IN, in the site's folder.

`IN edge1 redshankctl status` runs a command in a host, with the right sockets; `IN edge1 kill nsd`
and its like break and mend what runs there.
"""

import os

from lib.agentctl import build_folder

SCRIPT = """\
#!/bin/bash
# Runs a command inside a host of this site. Without arguments it tells what it can do.
site={site}
build={build}
usage()
{{
	cat <<END
usage: $0 HOST COMMAND...         HOST: {hosts}
  redshankctl status, birdc show route, ss -ltn, bash, ... in that host, on its own sockets
  kill|freeze|thaw|start WHAT     WHAT: nsd, nginx, bird, redshankd
  break-conf, mend-conf           a line of nonsense into bird.conf, and out of it
  slow, well                      its link no longer holds what it has to answer, and does again
END
	exit 2
}}
host=$1
case $host in {patterns}) shift ;; *) usage ;; esac
[ $# -gt 0 ] || usage
dir=$site/$host
enter() {{ nsenter --net="$(cat "$dir/netns")" -- "$@"; }}
# The processes of a program in this host, whoever started them; nsd calls its own "nsd: xfrd".
pids()
{{
	here=$(enter readlink /proc/self/ns/net)
	for pid in $(pgrep "^$1(:|\$)"); do
		[ "$(readlink "/proc/$pid/ns/net")" = "$here" ] && echo "$pid"
	done
}}
background() {{ (cd "$dir" && enter setsid "$@" >>"$dir/play.log" 2>&1 </dev/null &) }}
case $1 in
redshankctl) shift; enter "$build/redshankctl" --socket "$dir/status.sock" "$@" ;;
birdc) shift; enter birdc -s "$dir/bird.ctl" "$@" ;;
kill) pids "$2" | xargs -r kill -KILL ;;
freeze) pids "$2" | xargs -r kill -STOP ;;
thaw) pids "$2" | xargs -r kill -CONT ;;
break-conf) sed -i '1i nonsense;' "$dir/bird.conf" ;;
mend-conf) sed -i '/^nonsense;$/d' "$dir/bird.conf" ;;
slow) touch "$dir/slow" ;;
well) rm -f "$dir/slow" ;;
start)
	[ -z "$(pids "$2")" ] || {{ echo "$2 runs already on $host" >&2; exit 1; }}
	case $2 in
	nsd) background nsd -d -c "$dir/nsd/nsd.conf" ;;
	nginx) background nginx -c "$dir/nginx/nginx.conf" -e "$dir/nginx/error.log" ;;
	bird) background bird -f -c "$dir/bird.conf" -s "$dir/bird.ctl" -P "$dir/bird.pid" ;;
	redshankd) background "$build/redshankd" -c "$dir/redshank.json" --foreground ;;
	*) usage ;;
	esac ;;
*) enter "$@" ;;
esac
"""


def write(site):
    """Writes the command; its path."""
    path = os.path.join(site.dir, "in")
    hosts = list(site.lab.hosts)
    for name, host in site.lab.hosts.items():
        with open(os.path.join(site.dir, name, "netns"), "w", encoding="ascii") as f:
            f.write(host.netns + "\n")
    with open(path, "w", encoding="utf-8") as f:
        f.write(SCRIPT.format(site=site.dir, build=build_folder(), hosts=", ".join(hosts), patterns=" | ".join(hosts)))
    os.chmod(path, 0o755)
    return path


def text(path, site):
    """What to try, for a person."""
    shared = site.edges[0].agent.config["services"]["dns"]["prefixes"]
    return f"""
The site stays up until Ctrl-C, and what the router sees and the agents promise is told here as it happens.
In another terminal (all four edges have the weight 100 and share):

  in={path}
  $in edge1 redshankctl status            what edge1 wants, announces and exports
  $in edge1 redshankctl explain dns       why, what is behind it, and what happens next
  $in edge1 slow                          an overload, shed some 5 s later; and $in edge1 well
  $in edge1 kill nsd                      and $in edge1 start nsd
  $in edge1 freeze nsd                    and $in edge1 thaw nsd
  $in edge1 break-conf                    then kill something; and $in edge1 mend-conf
  $in edge1 kill redshankd                and $in edge1 start redshankd
  $in router birdc show route {next(iter(shared))} all
  $in edge1 bash                          a shell there; it ends with the site
"""
