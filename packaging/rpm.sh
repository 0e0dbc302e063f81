#!/bin/sh
# Builds the RPM packages in dist/rpm without a network, from the tarball of packaging/release.sh,
# which it makes first. Installs them into an empty root, compiles programs against
# them, runs these as jobs, and removes the packages again. The packager is DEBFULLNAME <DEBEMAIL>,
# as for packaging/debian.sh. Ends with 77 where rpmbuild is missing.
set -eu
cd "$(dirname "$0")/.."
command -v rpmbuild >/dev/null 2>&1 || {
    echo "rpmbuild is not installed (Debian package rpm)"
    exit 77
}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
tarball=dist/libgasnet-$version.tar.xz
packaging/release.sh --sources
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
mkdir -p "$work/SOURCES" "$work/SPECS"
cp "$tarball" "$work/SOURCES"
date=$(sed -n "s/^## \[$version\] - //p" CHANGELOG.md)
packager=$(sed -n 's/^Maintainer: //p' packaging/debian/control)
[ -z "${DEBEMAIL:-}" ] || packager="${DEBFULLNAME:-${packager% <*}} <$DEBEMAIL>"
{
    sed "s/@VERSION@/$version/" packaging/libgasnet.spec
    printf '\n%%changelog\n* %s %s - %s-1\n' "$(LC_ALL=C date -u -d "$date" '+%a %b %d %Y')" "$packager" "$version"
    echo "- Release $version; its changes are in CHANGELOG.md."
} >"$work/SPECS/libgasnet.spec"
# Where packages are not RPMs, rpmbuild cannot know what is installed.
known=
rpm -q rpm >/dev/null 2>&1 || known=--nodeps
offline="unshare --net"
$offline true 2>/dev/null || offline=
# shellcheck disable=SC2086 # a command, an option or nothing
$offline rpmbuild -ba $known --define "_topdir $work" "$work/SPECS/libgasnet.spec" >"$work/log" 2>&1 || {
    tail -n 60 "$work/log" >&2
    exit 1
}
rm -rf dist/rpm
mkdir -p dist/rpm
find "$work/RPMS" "$work/SRPMS" -name '*.rpm' -exec cp {} dist/rpm \;
for package in dist/rpm/*.rpm; do
    echo "$package: $(rpm -qlp "$package" 2>/dev/null | wc -l) files"
done
# The packages are installed into an empty root, and removed again.
root=$work/root
lib=$(rpm --eval '%{_libdir}')
mkdir "$root"
packages() { rpm --root "$root" --define '_dbpath /var/lib/rpm' "$@" 2>"$work/said" || { cat "$work/said" >&2; exit 1; }; }
packages --initdb
# On Debian, rpm installs nothing without it.
force=
! rpm --help | grep -q -e --force-debian || force=--force-debian
# shellcheck disable=SC2046 # a list of files
packages --install --nodeps --ignoreos --ignorearch $force $(ls dist/rpm/*.rpm | grep -v '\.src\.rpm$\|debug')
export PKG_CONFIG_SYSROOT_DIR="$root" PKG_CONFIG_LIBDIR="$root$lib/pkgconfig"
export PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 PKG_CONFIG_ALLOW_SYSTEM_LIBS=1
for mode in seq parsync par; do
    # shellcheck disable=SC2046 # flags
    ${CC:-cc} -O2 examples/hello.c -o "$work/hello" $(pkg-config --cflags --libs gasnet-portals-$mode)
    LD_LIBRARY_PATH=$root$lib timeout 60 "$root$(rpm --eval '%{_bindir}')/gasnetrun" -n 2 "$work/hello"
done
# shellcheck disable=SC2046 # flags
${CC:-cc} -std=c99 -D_POSIX_C_SOURCE=200809L -O2 portals/capi-tests/ring.c -o "$work/ring" $(pkg-config --cflags --libs portals3 cnos)
LD_LIBRARY_PATH=$root$lib timeout 60 "$root$(rpm --eval '%{_bindir}')/ptlrun" -n 3 "$work/ring"
# Folders of the system need no run path.
! readelf -d "$root$lib"/*.so.0 "$root$(rpm --eval '%{_bindir}')"/* "$work/ring" | grep 'PATH)' || {
    echo "a library or program has a run path" >&2
    exit 1
}
code=0
ci/links.sh "$(find "$root" -type d -name libgasnet-devel)" >"$work/links" || code=$?
[ $code = 0 ] || [ $code = 77 ] || {
    cat "$work/links" >&2
    exit 1
}
# shellcheck disable=SC2046 # a list of names
packages --erase --nodeps $(packages -qa)
left=$(find "$root" -path "$root/var" -prune -o ! -type d -print)
[ -z "$left" ] || {
    echo "left after the removal: $left" >&2
    exit 1
}
echo "packages of version $version: built, installed and removed"
