#!/bin/sh
# The Rust sources are formatted as rustfmt.toml says.
set -eu
cd "$(dirname "$0")/.."
${CARGO:-cargo} fmt --all --check
