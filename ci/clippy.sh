#!/bin/sh
# Clippy has nothing to say, with planted faults and without.
set -eu
cd "$(dirname "$0")/.."
${CARGO:-cargo} clippy --version >/dev/null 2>&1 || {
    echo "clippy is not installed (rustup component clippy)"
    exit 77
}
${CARGO:-cargo} clippy --quiet --workspace --all-targets -- -D warnings
${CARGO:-cargo} clippy --quiet --workspace --all-targets --features gasnet/faults -- -D warnings
