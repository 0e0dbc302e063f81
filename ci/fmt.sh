#!/bin/sh
# The Rust sources are formatted as rustfmt.toml says.
set -eu
cd "$(dirname "$0")/.."
${CARGO:-cargo} fmt --version >/dev/null 2>&1 || {
    echo "rustfmt is not installed (rustup component rustfmt)"
    exit 77
}
${CARGO:-cargo} fmt --all --check
