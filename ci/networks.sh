#!/bin/sh
# Prints what a build is over: the value of PORTALS (ci/build.sh lists them), or what follows from
# the machine. Our own libportals3 is no reason to build over a libportals: the library contains
# the same code.
set -eu
pkg_config=${PKG_CONFIG:-pkg-config}
if [ -n "${PORTALS-}" ]; then
    echo "$PORTALS"
elif [ -n "${PORTALS_INCLUDE-}${PORTALS_LIBS-}${PORTALS_PREFIX-}" ]; then
    echo both
elif $pkg_config --exists portals3 2>/dev/null && [ -z "$($pkg_config --variable=libgasnet_version portals3)" ]; then
    echo both
else
    echo emulation
fi
