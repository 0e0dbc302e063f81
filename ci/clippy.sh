#!/bin/sh
# Clippy has nothing to say, with planted faults and without; and of the library for lightweight
# kernels, where there is a libportals.
set -eu
cd "$(dirname "$0")/.."
${CARGO:-cargo} clippy --version >/dev/null 2>&1 || {
    echo "clippy is not installed (rustup component clippy)"
    exit 77
}
${CARGO:-cargo} clippy --quiet --workspace --all-targets -- -D warnings
# Tests of other packages know nothing of the faults.
${CARGO:-cargo} clippy --quiet -p gasnet -p portals3 --lib --bins --test pauses --features gasnet/faults -- -D warnings
if [ -e build-libportals/portals/lib ]; then
    PORTALS_PREFIX=$PWD/build-libportals/portals ${CARGO:-cargo} clippy --quiet -p gasnet -p sys --lib --no-default-features \
        --features libportals -- -D warnings
fi
