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
mkdir -p "$work/SOURCES" "$work/SPECS"
cp "$tarball" "$work/SOURCES"
sed "s/@VERSION@/$version/" packaging/libgasnet.spec >"$work/SPECS/libgasnet.spec"
# Where packages are not RPMs, rpmbuild cannot know what is installed.
known=
rpm -q rpm >/dev/null 2>&1 || known=--nodeps
rpmbuild -ba $known --define "_topdir $work" "$work/SPECS/libgasnet.spec" >"$work/log" 2>&1 || {
    tail -n 60 "$work/log" >&2
    exit 1
}
rm -rf dist/rpm
mkdir -p dist/rpm
find "$work/RPMS" "$work/SRPMS" -name '*.rpm' -exec cp {} dist/rpm \;
for package in dist/rpm/*.rpm; do
    echo "$package: $(rpm -qlp "$package" 2>/dev/null | wc -l) files"
done
# Each package installs into an empty root, and is removed again.
root=$work/root
mkdir "$root"
rpm --root "$root" --initdb
rpm --root "$root" --install --nodeps --ignoreos --ignorearch $(ls dist/rpm/*.rpm | grep -v '\.src\.rpm$\|debug')
test -e "$root$(rpm --eval '%{_libdir}')/libgasnet.so.0"
LD_LIBRARY_PATH=$root$(rpm --eval '%{_libdir}') "$root$(rpm --eval '%{_bindir}')/gasnet_info" -v
rpm --root "$root" --erase --nodeps $(rpm --root "$root" -qa)
left=$(find "$root" -path "$root/var" -prune -o ! -type d -print)
[ -z "$left" ] || {
    echo "left after the removal: $left" >&2
    exit 1
}
echo "packages of version $version: installed and removed"
