#!/bin/sh
# The documentation builds without a warning.
set -eu
cd "$(dirname "$0")/.."
RUSTDOCFLAGS="-D warnings" ${CARGO:-cargo} doc --quiet --workspace --no-deps
