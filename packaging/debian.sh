#!/bin/sh
# Builds the Debian source package and the binary packages in dist/debian, in a clean system of
# Debian SUITE (bookworm) without a network. Tries them with lintian. Installs them in another
# clean system, compiles a program against them, runs it as a job, and removes them again.
# The maintainer of the packages is DEBFULLNAME <DEBEMAIL>, as for Debian's own tools.
# Needs root; ends with 77 where something is missing.
set -eu
cd "$(dirname "$0")/.."
suite=${SUITE:-bookworm}
lacking() {
    echo "$1"
    exit 77
}
command -v mmdebstrap >/dev/null 2>&1 || lacking "mmdebstrap is not installed (Debian package mmdebstrap)"
[ "$(id -u)" = 0 ] || lacking "a chroot needs root"
unshare --mount true 2>/dev/null || lacking "this root may not mount"

# The machine's own sources, if they are Debian's; else what mmdebstrap takes by default.
sources=
for file in /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list; do
    if grep -qs "$suite" "$file"; then
        sources=$file
        break
    fi
done
# shellcheck disable=SC2086 # a file or nothing
why=$(mmdebstrap --simulate --variant=essential --format=null "$suite" /dev/null $sources 2>&1) ||
    lacking "no mirror has packages of Debian $suite: $(echo "$why" | grep '^E: ' | head -n 1)"

packaging/release.sh --sources
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
date=$(sed -n "s/^## \[$version\] - //p" CHANGELOG.md)
maintainer=$(sed -n 's/^Maintainer: //p' packaging/debian/control)
[ -z "${DEBEMAIL:-}" ] || maintainer="${DEBFULLNAME:-${maintainer% <*}} <$DEBEMAIL>"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
chmod 755 "$work"

# The source package: the tarball, and packaging/debian as debian/.
build=$work/build
mkdir "$build"
cp "dist/libgasnet-$version.tar.xz" "$build/libgasnet_$version.orig.tar.xz"
tar -xf "$build/libgasnet_$version.orig.tar.xz" -C "$build"
cp -r packaging/debian "$build/libgasnet-$version/debian"
MAINTAINER=$maintainer awk '/^Maintainer: / { $0 = "Maintainer: " ENVIRON["MAINTAINER"] } 1' packaging/debian/control \
    >"$build/libgasnet-$version/debian/control"
cat >"$build/libgasnet-$version/debian/changelog" <<END
libgasnet ($version-1) unstable; urgency=medium

  * Release $version; its changes are in CHANGELOG.md.

 -- $maintainer  $(LC_ALL=C date -u -R -d "$date")
END

# system VARIANT PACKAGES HOOK...: runs the hooks in a new system, which is then discarded.
system() {
    variant=$1
    include=$2
    shift 2
    # shellcheck disable=SC2086 # a file or nothing
    mmdebstrap --quiet --variant="$variant" --include="$include" --format=null "$@" "$suite" /dev/null $sources >"$work/log" 2>&1 || {
        tail -n 60 "$work/log" >&2
        exit 1
    }
}
cat >"$work/build.sh" <<'END'
set -eu
useradd --create-home builder
chown -R builder /build
cd /build/libgasnet-*/
apt-get build-dep -y -q ./
offline="unshare --net"
$offline true || offline=
# The caller's environment may name tools that this system has elsewhere, such as CARGO.
$offline runuser -u builder -- env -i PATH="$PATH" HOME=/home/builder LC_ALL=C.UTF-8 dpkg-buildpackage -us -uc
END
echo "building in a clean $suite"
system buildd util-linux \
    --customize-hook="cp -r $build \"\$1/build\"" \
    --customize-hook="cp $work/build.sh \"\$1/build.sh\"" \
    --customize-hook='chroot "$1" sh /build.sh' \
    --customize-hook="rm -rf $work/out; mkdir $work/out; find \"\$1/build\" -maxdepth 1 -type f -exec cp {} $work/out \\;"
cp "$work/log" "$work/build.log"
rm -rf dist/debian
mkdir -p dist/debian
cp "$work"/out/* dist/debian
cp "$work/build.log" dist/debian/build.log
ls dist/debian/*.deb

if command -v lintian >/dev/null 2>&1; then
    # Only an upload to Debian itself closes a bug there.
    lintian --allow-root --fail-on error,warning --tag-display-limit 0 \
        --suppress-tags initial-upload-closes-no-bugs dist/debian/*.changes
    echo "lintian: no errors, no warnings"
else
    echo "skipped lintian: needs the Debian package lintian"
fi

dpkg-deb -x dist/debian/libgasnet-dev_*.deb "$work/dev"
code=0
ci/links.sh "$work/dev/usr/share/doc/libgasnet-dev" >"$work/links" || code=$?
[ $code = 0 ] || [ $code = 77 ] || {
    cat "$work/links" >&2
    exit 1
}

cat >"$work/try.sh" <<'END'
set -eux
apt-get install -y -q /packages/libgasnet0_*.deb /packages/libgasnet-dev_*.deb /packages/libgasnet-tools_*.deb \
    /packages/libportals3-0_*.deb /packages/libportals3-dev_*.deb
cd /tmp
for mode in seq parsync par; do
    cc -O2 /try/hello.c -o hello-$mode $(pkg-config --cflags --libs gasnet-portals-$mode)
    timeout 60 gasnetrun -n 4 ./hello-$mode
    ldd ./hello-$mode | grep libgasnet
done
# The archive.
cc -O2 /try/hello.c -o hello-static $(pkg-config --cflags gasnet-portals-par) $(pkg-config --variable=GASNET_STATIC_LIBS gasnet-portals-par)
timeout 60 gasnetrun -n 2 ./hello-static
cc -std=c99 -D_POSIX_C_SOURCE=200809L -O2 /try/ring.c -o ring $(pkg-config --cflags --libs portals3)
timeout 60 ptlrun -n 3 ./ring
cc -std=c99 -D_POSIX_C_SOURCE=200809L -O2 /try/ring.c -o ring-cnos $(pkg-config --cflags --libs portals3 cnos)
timeout 60 ptlrun -n 3 ./ring-cnos
# Folders of the system need no run path.
paths=$(readelf -d /usr/lib/*/lib*gasnet*.so.0 /usr/lib/*/libportals3.so.0 /usr/lib/*/libcnos.so.0 /usr/bin/gasnet* /usr/bin/ptlrun hello-* ring-cnos | grep 'PATH)' || true)
[ -z "$paths" ]
gasnet_info -v
ls -L /usr/share/man/man1/gasnetrun.1.gz /usr/share/man/man3/gasnet_put.3.gz /usr/share/man/man1/ptlrun.1.gz
apt-get purge -y -q libgasnet0 libgasnet-dev libgasnet-tools libportals3-0 libportals3-dev
left=$(find / -xdev \( -name '*gasnet*' -o -name '*portals3*' -o -name '*libcnos*' \) ! -path '/packages/*' ! -path '/tmp/*' ! -path '/proc/*' ! -path '/var/*')
[ -z "$left" ]
echo "installed, compiled, run and removed"
END
echo "installing in a clean $suite"
system apt gcc,libc6-dev,pkg-config \
    --customize-hook="mkdir \"\$1/packages\" \"\$1/try\"; cp dist/debian/*.deb \"\$1/packages\"" \
    --customize-hook="cp examples/hello.c portals/capi-tests/* \"\$1/try\"; cp $work/try.sh \"\$1/try.sh\"" \
    --customize-hook='chroot "$1" sh /try.sh'
cp "$work/log" dist/debian/try.log
grep -h "^Hello from\|installed, compiled" "$work/log"
echo "packages of version $version for $suite: built, installed and removed"
