# shellcheck shell=bash
# Sourced by tests/run and tests/try: what is missing is installed, what is old is built.
#
# Installing starts no daemon (a policy-rc.d that refuses lies there meanwhile), enables none of the
# new ones for the next boot, removes nothing, and leaves running ones alone. Two of these scripts
# at once take turns: a lock each for installing and for building, on files that are there anyway.

export LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive
PATH=$PATH:/usr/sbin:/sbin
POLICY=/usr/sbin/policy-rc.d
POLICY_MARK="redshank's tests put this here while they install packages; it may be deleted"
LISTED=$(dirname "${BASH_SOURCE[0]}")/packages

die()
{
	echo "${0##*/}: $*" >&2
	exit 1
}

# What everything here needs of the machine, said before anything is changed.
need_machine()
{
	[ "$(id -u)" = 0 ] || die "must run as root: it makes network namespaces, and installs packages that are missing"
	command -v dpkg-query >/dev/null || die "needs Debian (12 or later): there is no dpkg-query"
	[ -e /proc/self/stat ] || die "/proc is not mounted; in a chroot: mount -t proc proc /proc"
	if ! [ -c /dev/null ] || ! [ -c /dev/urandom ]; then die "/dev/null or /dev/urandom is missing"; fi
	[ -e /sys/kernel ] || echo "note: /sys is not mounted; what boots a systemd will be skipped"
	unshare --net true 2>/dev/null || die "no new network namespace can be made here (CAP_SYS_ADMIN is needed)"
}

installed()
{
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# missing KIND...: the packages of these kinds that are not there, one a line
missing()
{
	local kind names name found
	while read -r kind names; do
		case " $* " in *" $kind "*) ;; *) continue ;; esac
		found=
		for name in ${names//|/ }; do
			if installed "$name"; then found=1; fi
		done
		if [ -z "$found" ]; then echo "${names%%|*}"; fi
	done < <(grep -v '^#' "$LISTED")
}

apt()
{
	apt-get -q -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@"
}

refuse_daemons()
{
	if [ -e "$POLICY" ] && grep -q "$POLICY_MARK" "$POLICY"; then
		rm -f "$POLICY" # a killed run left it: nobody else holds the lock
	fi
	if [ -e "$POLICY" ]; then
		local answer=0
		"$POLICY" nsd start >/dev/null 2>&1 || answer=$?
		[ $answer = 101 ] || die "$POLICY lets daemons start; install these by hand: $*"
		return
	fi
	trap 'rm -f "$POLICY"' EXIT
	printf '#!/bin/sh\n# %s\nexit 101\n' "$POLICY_MARK" >"$POLICY"
	chmod 755 "$POLICY"
}

# install_missing KIND...
install_missing()
{
	local list
	mapfile -t list < <(missing "$@")
	[ ${#list[@]} -gt 0 ] || return 0
	echo "These packages are missing and will be installed from Debian; none of their daemons is started:"
	printf '  %s\n' "${list[@]}"
	# In a subshell, so that the trap and the lock end with it. The lock is on a folder of dpkg's.
	(
		flock 9
		mapfile -t list < <(missing "$@")
		[ ${#list[@]} -gt 0 ] || exit 0
		refuse_daemons "${list[@]}"
		export NEEDRESTART_SUSPEND=1
		log=$(mktemp)
		trap 'rm -f "$log"; if grep -qs "$POLICY_MARK" "$POLICY"; then rm -f "$POLICY"; fi' EXIT
		if ! compgen -G '/var/lib/apt/lists/*_Packages*' >/dev/null; then
			apt update >"$log" 2>&1 || { cat "$log"; die "apt-get update failed"; }
		fi
		if ! apt install -y --no-install-recommends --no-remove "${list[@]}" >"$log" 2>&1; then
			# Lists that are older than what the mirror holds now are the usual reason.
			if ! apt update >>"$log" 2>&1 ||
				! apt install -y --no-install-recommends --no-remove "${list[@]}" >>"$log" 2>&1; then
				tail -n 40 "$log"
				die "apt-get install failed"
			fi
		fi
		for daemon in bird2:bird nsd:nsd nginx:nginx frr:frr; do
			case " ${list[*]} " in
			*" ${daemon%:*} "*) update-rc.d "${daemon#*:}" disable >/dev/null 2>&1 || true ;;
			esac
		done
	) 9</var/lib/dpkg
}

# build PRESET [TARGET...]: configures and builds build/PRESET, all of it or these targets
build()
{
	local preset=$1
	shift
	echo "Building build/$preset"
	(
		flock 8
		log=$(mktemp)
		trap 'rm -f "$log"' EXIT
		if ! { cmake --preset "$preset" && cmake --build --preset "$preset" ${1:+--target "$@"}; } >"$log" 2>&1; then
			grep -v '^\[[0-9]*/[0-9]*\] \(Building\|Linking\)' "$log" | tail -n 60
			die "build/$preset does not build"
		fi
	) 8<CMakePresets.json
}

# The mirror that this machine's apt uses for Debian itself, for trees of other suites; REDSHANK_MIRROR
# names another one.
debian_mirror()
{
	if [ -n "${REDSHANK_MIRROR:-}" ]; then
		echo "$REDSHANK_MIRROR"
		return
	fi
	# shellcheck disable=SC2016 # apt's own format, not the shell's
	apt-get indextargets --format '$(REPO_URI) $(LABEL) $(ORIGIN)' 'Created-By: Packages' 2>/dev/null |
		awk '$2 == "Debian" { sub(/\/$/, "", $1); print $1; exit }'
}
