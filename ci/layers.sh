#!/bin/sh
# The layers hold: only crate sys names libc, and no Rust file has more than 600 lines. Prints what is wrong.
set -eu
cd "$(dirname "$0")/.."
wrong=$(mktemp)
trap 'rm -f "$wrong"' EXIT

# Comments may name libc.
git grep -nE '^[^/]*\blibc::|^[^/]*\buse libc\b|^[^/]*extern crate libc\b' -- '*.rs' ':!sys/*' |
    sed 's/^/libc outside sys: /' >>"$wrong" || true
git grep -nE '^ *libc *[.=]' -- '*Cargo.toml' ':!sys/*' ':!Cargo.toml' |
    sed 's/^/depends on libc: /' >>"$wrong" || true
sed -n '/^\[.*dependencies\]/,$p' Cargo.toml | sed '/^\[workspace.dependencies\]/,/^$/d' |
    grep -E '^ *libc *[.=]' | sed 's/^/depends on libc: Cargo.toml: /' >>"$wrong" || true

git ls-files '*.rs' | while read -r file; do
    lines=$(wc -l <"$file")
    if [ "$lines" -gt 600 ]; then echo "more than 600 lines: $file has $lines"; fi
done >>"$wrong"

cat "$wrong"
[ ! -s "$wrong" ]
