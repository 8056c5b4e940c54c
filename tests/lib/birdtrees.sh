# shellcheck shell=bash
# Sourced by tests/run: BIRDs of newer Debian suites, each in a tree of its own under build/birds.
#
# Nothing of them is installed here. mmdebstrap unpacks a suite's package and what it links to,
# verified as apt does, without running anything of it; a small script then starts that BIRD by the
# loader and with the libraries of its own tree. It sees the machine's files as they are, so that
# bird.conf, the fragments and the sockets need no second place, and nothing is ever mounted.
#
# Trees are kept: a suite moves on, so remove build/birds to get its present version.

BIRD_TREES=build/birds
BIRD_SUITES="trixie:bird2 forky:bird2 trixie:bird3 forky:bird3"

# bird_tree SUITE PACKAGE: makes the tree unless it is there; prints the path of the starter.
# It is called as BIRD's program is: that is its name in ps and in what BIRD logs.
bird_tree()
{
	local tree=$PWD/$BIRD_TREES/$1-$2
	if ! [ -x "$tree/bird" ]; then
		rm -rf "$tree" "$tree.new"
		mkdir -p "$BIRD_TREES"
		# A mirror that is a snapshot has a Release file that is signed, and past its date.
		mmdebstrap --quiet --mode=root --variant=extract --include="$2" \
			--aptopt='Acquire::Check-Valid-Until "false"' "$1" "$tree.new" "$(debian_mirror)" >&2 ||
			{ rm -rf "$tree.new"; die "no tree of $2 from Debian $1"; }
		mv "$tree.new" "$tree"
		bird_starter "$tree"
	fi
	echo "$tree/bird"
}

bird_starter()
{
	local tree=$1 loader libraries
	loader=$(find "$tree/usr" -name 'ld-linux*.so.*' | head -n 1)
	libraries=$(dirname "$loader")
	[ -n "$loader" ] || die "no dynamic loader in $tree"
	cat >"$tree/bird.new" <<-END
		#!/bin/sh
		exec "$loader" --argv0 bird --library-path "$libraries:$tree/usr/lib" "$tree/usr/sbin/bird" "\$@"
	END
	chmod 755 "$tree/bird.new"
	"$tree/bird.new" --version >&2 || die "$tree/usr/sbin/bird does not run here"
	mv "$tree/bird.new" "$tree/bird"
}

# bird_version PROGRAM: "2.17.6"
bird_version()
{
	"$1" --version 2>&1 | sed -n 's/.*BIRD version \([0-9.]*\).*/\1/p'
}
