#!/bin/sh
# Removes what a script of ci/ installed: the files that it would install now, and the folders
# that only this library uses.
#   ci/uninstall.sh install | install-portals DESTDIR PREFIX [NAME=folder]...
set -eu
cd "$(dirname "$0")/.."
script=$1
shift
make_first=make
. ci/folders.sh
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
"ci/$script.sh" "$stage" "$prefix" "$@" >/dev/null
(cd "$stage" && find . ! -type d) | while read -r file; do
    rm -f "$destdir${file#.}"
done
(cd "$stage" && find . -depth -type d) | while read -r folder; do
    case ${folder#.} in
    "$bindir/.debug" | "$includedir"/* | "$libdir/cmake/GASNet" | "$docdir" | "$docdir"/*)
        rmdir "$destdir${folder#.}" 2>/dev/null || true
        ;;
    esac
done
echo "removed from $destdir$prefix"
