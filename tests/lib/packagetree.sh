# shellcheck shell=bash
# Sourced by tests/run: the Debian package, and a Debian of its own in which it is tried.
#
# The tree holds what the package depends on, BIRD, nsd and what a system needs to boot; the package
# itself is installed in there by the test, on an overlay that is forgotten. It is kept under build/
# and made again when what it holds is to change.

PACKAGE_TREE=build/package-tree
PACKAGE_SUITE=bookworm
PACKAGE_HOLDS="systemd-sysv,dbus,init-system-helpers,procps,iproute2,bird2,nsd,bash-completion,zsh,man-db"

# package_build: prints the path of the .deb of build/release
package_build()
{
	build release >&2
	(cd build/release && cpack -G DEB >cpack.log 2>&1) || { cat build/release/cpack.log >&2; die "cpack fails"; }
	ls "$PWD"/build/release/package/*.deb
}

# package_tree DEB: makes the tree unless it is there; prints its path
package_tree()
{
	local holds
	holds=$PACKAGE_HOLDS,$(dpkg-deb -f "$1" Depends | sed 's/ *([^)]*)//g; s/ *|[^,]*//g; s/, */,/g')
	if [ "$(cat "$PACKAGE_TREE.holds" 2>/dev/null)" != "$holds" ]; then
		rm -rf "$PACKAGE_TREE" "$PACKAGE_TREE.holds"
		mkdir -p build
		mmdebstrap --quiet --mode=root --variant=minbase --include="$holds" \
			--aptopt='Acquire::Check-Valid-Until "false"' \
			"$PACKAGE_SUITE" "$PACKAGE_TREE" "$(debian_mirror)" >&2 || die "no tree of Debian $PACKAGE_SUITE"
		echo "$holds" >"$PACKAGE_TREE.holds"
	fi
	echo "$PWD/$PACKAGE_TREE"
}
