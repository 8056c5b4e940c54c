"""Completion in real shells: bash and zsh complete commands, options, services, prefixes, peers and files."""

import os
import re
import shutil
import subprocess

from lib.agentctl import ROOT, build_folder
from lib.case import check, main, skip
from lib.operators import DNS, DNS6, WEB, untold
from lib.screen import Screen
from lib.site import Site

FOLDER = os.path.join(ROOT, "systemd", "package", "completion")
ENVIRONMENT = {**os.environ, "PATH": build_folder() + ":" + os.environ["PATH"], "TERM": "dumb", "LC_ALL": "C.UTF-8",
               "ASAN_OPTIONS": "detect_leaks=0"}

# As readline breaks a line into words, at blanks and colons, and calls the function. What it replies, sorted.
ASK = r"""
set -eu
. "$1"
declare -F _redshankctl >/dev/null
complete -p redshankctl | grep -q -- '-F _redshankctl'
COMP_WORDBREAKS=$' \t\n"\'><=;|&(:'
COMP_LINE=$2 COMP_POINT=${#2} COMP_WORDS=() COMP_CWORD=0
rest=$2
while [ -n "$rest" ]; do
	case $rest in
	[[:blank:]]*) rest=${rest#?}; continue ;;
	[:=]*) piece=${rest:0:1} ;;
	\"*) piece=${rest#\"}; piece=\"${piece%%\"*}\" ;;
	*) piece=${rest%%[[:blank:]:=]*} ;;
	esac
	COMP_WORDS+=("$piece"); rest=${rest#"$piece"}
done
case $2 in *' ') COMP_WORDS+=("") ;; esac
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_redshankctl redshankctl
printf '%s\n' "${COMPREPLY[@]}" | sort
"""


def bash(line):
    done = subprocess.run(["bash", "--norc", "-c", ASK, "ask", os.path.join(FOLDER, "redshankctl.bash"), line],
                          capture_output=True, text=True, timeout=60, env=ENVIRONMENT, check=False)
    check(done.returncode == 0 and done.stderr == "", f"bash: {line}", done)
    return done.stdout.split()


def names(site):
    if not site.edges[0].agent.process:
        untold(site)
    return f"redshankctl --socket {site.edges[0].agent.socket}"


def test_bash_words(site):
    """bash: commands, the options that go with each, times, peers and files."""
    untold(site)
    check(bash("redshankctl sta") == ["status"], "a command")
    check({"drain", "undrain", "announce", "weight", "freeze", "thaw", "shed", "unshed", "top", "events", "import"} <= set(bash("redshankctl ")),
          "all commands", bash("redshankctl "))
    check("complete" not in bash("redshankctl "), "but the one that is not for people")
    check(bash("redshankctl --js") == ["--json"], "an option")
    check(set(bash("redshankctl drain --")) == {"--all", "--for", "--help", "--json", "--reason", "--socket", "--version"},
          "those of drain", bash("redshankctl drain --"))
    check(bash("redshankctl thaw --r") == [], "none that does not go with thaw")
    check("2h" in bash("redshankctl drain dns --for "), "a time")
    check(bash("redshankctl drain dns --reason ") == [], "no words of a person")
    check(bash("redshankctl import b") == ["birdwatcher"], "a peer")
    file = site.edges[0].host.path("a-file.conf")
    with open(file, "w", encoding="utf-8"):
        pass
    check(bash(f"redshankctl import ahc {file[:-6]}") == [file], "a file")
    check(bash(f"redshankctl --socket {file[:-6]}") == [file], "a socket")
    check(bash("redshankctl nonsense ") == [] and bash("redshankctl check-now ") == [], "nothing")


def test_bash_names(site):
    """bash: services and prefixes of the agent that the line speaks to; what is taken back is what was said."""
    agent = site.edges[0].agent
    ctl = names(site)
    check(bash(f"{ctl} explain d") == ["dns"], "a service")
    check(set(bash(f"{ctl} drain ")) == {"dns", "web", DNS, DNS6, WEB}, "all", bash(f"{ctl} drain "))
    check(bash(f"{ctl} explain 192.0.2.5") == [DNS], "a prefix")
    check(bash(f"{ctl} explain 2001:db8:") == [":53/128"], "behind the last colon", bash(f"{ctl} explain 2001:db8:"))
    check(set(bash(f"{ctl} weight ")) == {DNS, DNS6, WEB}, "weights are of prefixes")
    check(bash(f"{ctl} weight {DNS} ") == [], "and a number is a person's")
    check(bash(f"{ctl} drain --all ") == [] and bash(f"{ctl} drain dns w") == [], "no second name")
    check(set(bash(f'{ctl} drain --reason "new disks" w')) == {"web"}, "words in quotes are one")
    check(bash(f"{ctl} undrain ") == [], "nothing is drained")
    agent.ctl("drain", "web")
    agent.ctl("announce", "dns", "--for", "1h")
    check(bash(f"{ctl} undrain ") == ["web"] and bash(f"{ctl} announce --reset ") == ["dns"], "what was said")
    check(bash("redshankctl --socket /nonexistent explain ") == [], "no agent, no names, and no complaint")


def type_into(argv, ready, line, env):
    """What a shell makes of the line and a TAB."""
    with Screen(argv, 200, 24, {**ENVIRONMENT, **env}) as screen:
        for words in ready:
            screen.press(words + "\n")
        screen.press("echo rea''dy\n")
        screen.until(lambda s: b"ready\r\n" in s.raw, 20, "the shell is ready")
        mark = len(screen.raw)
        screen.press(line + "\t")
        # What the shell has made of it becomes the argument of an echo.
        screen.press("\x01echo said=\x05.\n")
        said = re.compile(rb"[\r\n]said=(.*?)\.\r")
        screen.until(lambda s: said.search(s.raw, mark), 20, lambda: f"it is said: {screen.raw[mark:]!r}")
        return said.search(screen.raw, mark)[1].decode()


def test_at_the_keyboard_of_bash(site):
    """An interactive bash, TAB pressed."""
    ctl = names(site)
    ready = [f". {FOLDER}/redshankctl.bash", "PS1='> '"]
    for line, wanted in ((f"{ctl} expl", f"{ctl} explain"), (f"{ctl} explain 2001:db8::5", f"{ctl} explain {DNS6}"),
                         (f"{ctl} weight 192.0.2.8", f"{ctl} weight {WEB}")):
        got = type_into(["bash", "--norc", "--noprofile", "-i"], ready, line, {})
        check(got.strip() == wanted, line, got)


def test_at_the_keyboard_of_zsh(site):
    """An interactive zsh, TAB pressed."""
    if not shutil.which("zsh"):
        skip("no zsh")
    ctl = names(site)
    dump = site.edges[0].host.path("zcompdump")
    ready = [f"fpath=({FOLDER} $fpath); autoload -U compinit; compinit -u -d {dump}; unsetopt zle_bracketed_paste; PS1='> '"]
    for line, wanted in ((f"{ctl} expl", f"{ctl} explain"), (f"{ctl} explain 2001:db8::5", f"{ctl} explain {DNS6}"),
                         (f"{ctl} import bird", f"{ctl} import birdwatcher"), (f"{ctl} status --pl", f"{ctl} status --plugin")):
        got = type_into(["zsh", "-f", "-i"], ready, line, {})
        check(got.strip() == wanted, line, got)


main(lambda: Site(edges=1))
