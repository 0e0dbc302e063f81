#!/bin/sh
# Refuses a folder that has no libportals, with the files that were looked for.
#   ci/cross/prefix.sh TARGET PORTALS_PREFIX
set -eu
cd "$(dirname "$0")/../.."
target=$1
prefix=$2
. ci/cross/target.sh
# first FILE...: whether one of them exists.
first() {
    for file; do
        [ ! -e "$file" ] || return 0
    done
    return 1
}
set --
for folder in lib lib64; do
    for name in portals3 portals; do
        set -- "$@" "$prefix/$folder/lib$name.so" "$prefix/$folder/lib$name.a"
    done
done
missing=
first "$prefix/include/portals/portals3.h" "$prefix/include/portals3.h" ||
    missing="$prefix/include/portals/portals3.h $prefix/include/portals3.h"
first "$@" || missing="$missing $*"
[ -z "$missing" ] || refuse "PORTALS_PREFIX=$prefix has no libportals; none of these files exists: ${missing# }" \
    "give the folder that has the target's include/portals/portals3.h and lib/libportals.a"
