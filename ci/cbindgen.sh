#!/bin/sh
# Regenerates include/gasnet_abi.h from src/capi/abi.rs and fails if the committed file differs; with --write replaces
# it. Wants cbindgen on the PATH or in $CBINDGEN.
set -eu
cd "$(dirname "$0")/.."
cbindgen=${CBINDGEN:-cbindgen}
if ! command -v "$cbindgen" >/dev/null; then
    echo "ci/cbindgen.sh: cbindgen is missing; install it with: cargo install cbindgen" >&2
    exit 1
fi
new=$(mktemp)
trap 'rm -f "$new"' EXIT
"$cbindgen" --quiet --config cbindgen.toml --output "$new" src/capi/abi.rs
if [ "${1:-}" = --write ]; then
    cp "$new" include/gasnet_abi.h
elif ! diff -u include/gasnet_abi.h "$new"; then
    echo "ci/cbindgen.sh: include/gasnet_abi.h is not what src/capi/abi.rs says; run ci/cbindgen.sh --write" >&2
    exit 1
fi
