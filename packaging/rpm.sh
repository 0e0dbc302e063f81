#!/bin/sh
# Builds the RPM packages in dist/rpm from the tarball of packaging/release.sh, which is made if it
# is missing, and without a network. Ends with 77 where rpmbuild is missing.
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
sed "s/@VERSION@/$version/" packaging/libgasnet.spec >"$work/SPECS/libgasnet.spec"
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
# shellcheck disable=SC2046 # a list of names
packages --erase --nodeps $(packages -qa)
left=$(find "$root" -path "$root/var" -prune -o ! -type d -print)
[ -z "$left" ] || {
    echo "left after the removal: $left" >&2
    exit 1
}
echo "packages of version $version: built, installed and removed"
