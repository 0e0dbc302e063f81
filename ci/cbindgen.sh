#!/bin/sh
# Generates include/gasnet_abi.h from src/capi/abi.rs and fails if the committed file differs.
# With --write it replaces the committed file. CBINDGEN names another cbindgen than that of PATH.
set -eu
cd "$(dirname "$0")/.."
cbindgen=${CBINDGEN:-cbindgen}
if ! command -v "$cbindgen" >/dev/null; then
    echo "cbindgen is not installed (cargo install cbindgen)"
    exit 77
fi
new=$(mktemp)
trap 'rm -f "$new"' EXIT
trap 'exit 130' INT TERM HUP
"$cbindgen" --quiet --config cbindgen.toml --output "$new" src/capi/abi.rs
# Its closing lines have comments of C++.
sed -i 's|//  *\(.*\)$|/* \1 */|' "$new"
if [ "${1:-}" = --write ]; then
    cp "$new" include/gasnet_abi.h
elif ! diff -u include/gasnet_abi.h "$new"; then
    echo "ci/cbindgen.sh: include/gasnet_abi.h is not what src/capi/abi.rs says; run ci/cbindgen.sh --write" >&2
    exit 1
fi
