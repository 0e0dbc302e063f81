#!/bin/sh
# Removes what a script of ci/ installed: the files that it would install now, and the folders
# that only this library uses. Needs no build: files of the build are empty here.
#   ci/uninstall.sh install | install-portals DESTDIR PREFIX [NAME=folder]...
set -eu
cd "$(dirname "$0")/.."
script=$1
shift
make_first=make
. ci/folders.sh
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM HUP
stage=$scratch/stage
unbuilt=$scratch/unbuilt
. ci/target.sh
mkdir -p "$unbuilt/lib" "$unbuilt/bin" "$unbuilt/$released"
for file in lib/libgasnet.a lib/libgasnet.so.0 bin/gasnetrun bin/gasnet_info bin/gasnet_trace \
    "$released/libportals3_c.so" "$released/libportals3.a" "$released/ptlrun" "$released/libcnos.so" \
    "$released/libcnos-system.so" "$released/libcnos.a"; do
    : >"$unbuilt/$file"
done
# Programs are copied as they are, since there is nothing to strip.
CARGO_TARGET_DIR=$unbuilt "ci/$script.sh" "$stage" "$prefix" "$@" TREE="$unbuilt" KEEP_DEBUG=1 >/dev/null
for program in "$stage$bindir"/*; do
    [ -f "$program" ] || continue
    mkdir -p "$stage$bindir/.debug"
    : >"$stage$bindir/.debug/${program##*/}.debug"
done
(cd "$stage" && find . ! -type d) | while read -r file; do
    rm -f "$destdir${file#.}"
done
# What only a cross-build installs. The answers for configure scripts name its target.
for file in "$destdir$includedir"/portals-conduit/cross-configure-*; do
    [ "$script" = install ] && [ -f "$file" ] || continue
    target=${file##*/cross-configure-}
    rm -f "$file" "$destdir$libdir/cmake/GASNet/toolchain.cmake" "$destdir$bindir/$target-cc" "$destdir$bindir/$target-c++"
done
(cd "$stage" && find . -depth -type d) | while read -r folder; do
    case ${folder#.} in
    "$bindir/.debug" | "$includedir"/* | "$libdir/cmake/GASNet" | "$docdir" | "$docdir"/*)
        rmdir "$destdir${folder#.}" 2>/dev/null || true
        ;;
    esac
done
echo "removed from $destdir$prefix"
