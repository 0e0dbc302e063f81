# Read by scripts that build: for which machine. CARGO_BUILD_TARGET is its name in Rust, and CC then its compiler, which links too.
# Sets `released`, where cargo puts what it makes, below its target directory.
released=release
if [ -n "${CARGO_BUILD_TARGET-}" ]; then
    released=$CARGO_BUILD_TARGET/release
    linker=CARGO_TARGET_$(echo "$CARGO_BUILD_TARGET" | tr 'a-z-' 'A-Z_')_LINKER
    printenv "$linker" >/dev/null || export "$linker=${CC:-cc}"
fi
