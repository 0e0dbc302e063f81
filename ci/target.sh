# Sourced by scripts that build, possibly for another machine: CARGO_BUILD_TARGET is its Rust
# target, CC its compiler and linker. Sets `released`: the folder of cargo's output below its
# target directory.
released=release
if [ -n "${CARGO_BUILD_TARGET-}" ]; then
    released=$CARGO_BUILD_TARGET/release
    linker=CARGO_TARGET_$(echo "$CARGO_BUILD_TARGET" | tr 'a-z-' 'A-Z_')_LINKER
    printenv "$linker" >/dev/null || export "$linker=${CC:-cc}"
fi
